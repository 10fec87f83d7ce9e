// Reads PyTorch's cut from the graphs that it left. The forward returns saved tensors, then saved numbers, after its
// own outputs; the backward takes the numbers, the tensors, and then the tangents.
#include "core/partition/read_cut.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"
#include "core/ir/print.h"
#include "core/ops/facts/shared_memory.h"
#include "core/partition/cost.h"
#include "core/partition/extract.h"
#include "core/partition/joint_parts.h"

namespace partita {
namespace {

SavedValue saved_value(const Node& n) {
  const Node* memory = memory_of(&n);
  const Node* input = memory->is_placeholder() ? memory : nullptr;  // a view of it needs no memory of its own
  std::string why = n.meta.sym() ? "a number" : "its backward takes it";
  if (input) why = input == &n ? "input" : "a view of " + input->name();
  if (n.recompute != Recompute::Unspecified) why += fmt::format(", marked {}", name_of(n.recompute));
  return {n.name(), bytes_of(n), input != nullptr, n.meta.sym() != nullptr, std::move(why)};
}

/// False only where both are known and differ.
bool may_be_same(const Meta& returned, const Meta& taken) {
  const TensorMeta *a = returned.tensor(), *b = taken.tensor();
  if (returned.known() && taken.known() && !a != !b) return false;
  return !a || !b || (a->dtype == b->dtype && may_be_same_size(returned, taken));
}

/// The backward's inputs that are saved values.
std::vector<Node*> taken_by(const Graph& backward) {
  std::vector<Node*> taken = backward.placeholders();
  taken.erase(std::ranges::find_if(taken, [](const Node* n) { return is_backward_input(*n); }), taken.end());
  return taken;
}

/// The backward's input for each of the forward's last outputs.
Result<std::vector<Node*>> paired(const Graph& forward, const Graph& backward, std::span<Node* const> returned,
                                  const std::vector<Node*>& taken) {
  std::vector<Node*> in_order;  // as the forward returns them
  std::ranges::copy_if(taken, std::back_inserter(in_order), [](const Node* n) { return !n->meta.sym(); });
  std::ranges::copy_if(taken, std::back_inserter(in_order), [](const Node* n) { return n->meta.sym() != nullptr; });
  for (std::size_t i = 0; i < returned.size(); ++i)
    if (!may_be_same(returned[i]->meta, in_order[i]->meta))
      return input_error(
          "partition.pair",
          fmt::format("{} does not belong to {}: it takes {} as {}, and the forward returns {}", backward.name,
                      forward.name, in_order[i]->name(), annotation(in_order[i]->meta), annotation(returned[i]->meta)),
          {.graph = backward.name, .node = in_order[i]->name()});
  return in_order;
}

}  // namespace

std::optional<std::vector<Node*>> described_saved(const Graph& forward) {
  const std::vector<Arg> outputs = forward.outputs();
  const std::vector<std::string_view> notes = lines_of(forward.output()->note);
  if (notes.size() != outputs.size()) return std::nullopt;
  std::vector<Node*> saved;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].node() && notes[i].starts_with("SavedForBackwards")) saved.push_back(outputs[i].node());
  return saved;
}

Partition cut_of_forward(const Graph& forward, const std::vector<Node*>& saved) {
  Partition cut;
  cut.forward_outputs = forward.outputs().size() - saved.size();
  for (const Node* n : saved) {
    SavedValue value = saved_value(*n);
    if (value.is_symbol)
      ++cut.saved_symbols;
    else
      (value.is_input ? cut.input_bytes : cut.activation_bytes) += value.bytes;
    cut.saved.push_back(std::move(value));
  }
  return cut;
}

Result<Partition> read_cut(const Graph& forward, const Graph& backward) {
  const std::vector<Node*> taken = taken_by(backward);
  const std::vector<Arg> outputs = forward.outputs();
  std::vector<Node*> returned;
  for (std::size_t i = outputs.size() - std::min(taken.size(), outputs.size()); i < outputs.size(); ++i)
    if (outputs[i].node()) returned.push_back(outputs[i].node());
  if (returned.size() < taken.size())
    return input_error("partition.pair",
                       fmt::format("{} does not belong to {}: it takes {} values before the tangents, and the forward "
                                   "returns {}",
                                   backward.name, forward.name, taken.size(), returned.size()),
                       {.graph = backward.name});
  TRY_DO(paired(forward, backward, returned, taken));
  Partition cut = cut_of_forward(forward, returned);
  cut.forward = forward.clone();
  cut.backward = backward.clone();
  note_recomputed(cut);
  return cut;
}

namespace {

/// What one cut does with a value that the other saves.
class Instead {
 public:
  Instead(const Partition& here, const Partition& there, std::string_view whose)
      : here_(here), there_(there), whose_(whose) {}

  std::string of(const std::string& name) const {
    if (std::ranges::find(here_.recomputed, name) != here_.recomputed.end())
      return fmt::format("{} computes it again in the backward, from {}", whose_, sources(*here_.backward->find(name)));
    if (const std::string other = read_in_place(name); !other.empty())
      return fmt::format("{} reads {} in its place", whose_, other);
    if (here_.backward->find(name)) return fmt::format("only the backward of {} computes it", whose_);
    if (here_.forward->find(name)) return fmt::format("the backward of {} does not read it", whose_);
    return fmt::format("{} has no value of this name, which passes made or replaced", whose_);
  }

 private:
  /// What a call that the backward computes again begins with.
  static std::string sources(const Node& again) {
    std::vector<const Node*> open = {&again};
    std::vector<std::string> names;
    std::vector<char> seen(again.graph().id_limit(), 0);
    while (!open.empty()) {
      const Node* n = open.back();
      open.pop_back();
      if (std::exchange(seen[n->id()], 1)) continue;
      if (n->is_placeholder()) names.push_back(n->name());
      for (const Node* input : n->inputs()) open.push_back(input);
    }
    std::ranges::sort(names);
    const std::size_t all = names.size();
    if (all > 4) names.resize(4);
    return fmt::format("{}{}", fmt::join(names, ", "), all > 4 ? fmt::format(" and {} more", all - 4) : "");
  }

  /// What calls of the backward here read where those there read the value; empty if no call is in both.
  std::string read_in_place(const std::string& name) const {
    const Node* value = there_.backward->find(name);
    if (!value) return {};
    for (const Node* user : value->users()) {
      const Node* same = user->op()->is_call() ? here_.backward->find(user->name()) : nullptr;
      if (!same || same->op() != user->op() || same->args().size() != user->args().size()) continue;
      for (std::size_t i = 0; i < user->args().size(); ++i)
        if (const Node* other = same->args()[i].node();
            user->args()[i].node() == value && other && other->name() != name)
          return other->name();
    }
    return {};
  }

  const Partition &here_, &there_;
  std::string_view whose_;
};

}  // namespace

std::vector<CutDifference> compare_cuts(const Partition& theirs, const Partition& ours) {
  std::vector<CutDifference> both, one;
  const Instead of_theirs(theirs, ours, "PyTorch"), of_ours(ours, theirs, "ours");
  for (const SavedValue& value : theirs.saved) {
    const auto same = std::ranges::find(ours.saved, value.name, &SavedValue::name);
    if (same != ours.saved.end())
      both.push_back({value.name, value, *same, same->why});
    else
      one.push_back({value.name, value, {}, of_ours.of(value.name)});
  }
  for (const SavedValue& value : ours.saved)
    if (std::ranges::find(theirs.saved, value.name, &SavedValue::name) == theirs.saved.end())
      one.push_back({value.name, {}, value, fmt::format("{}; {}", value.why, of_theirs.of(value.name))});
  both.insert(both.end(), std::make_move_iterator(one.begin()), std::make_move_iterator(one.end()));
  return both;
}

}  // namespace partita
