#include "app/tasks/code_memory.h"

#include <algorithm>

#include "core/load/records.h"
#include "core/load/wrapper_memory.h"

namespace partita {
namespace {

using Kind = StepMemory::Kind;

/// The code of a forward or a backward.
struct CodeOfGraph {
  InductorCode code;
  WrapperMemory memory;
  std::size_t begin = 0;  ///< its first step

  /// The first and the last call while a storage is held; the last is before the first where it is held at none.
  std::size_t first_step(int made) const {
    return begin + static_cast<std::size_t>(std::ranges::lower_bound(code.kernels, made, {}, &InductorKernel::call) -
                                            code.kernels.begin());
  }
  std::size_t steps_until(int freed) const {
    return begin + static_cast<std::size_t>(std::ranges::upper_bound(code.kernels, freed, {}, &InductorKernel::call) -
                                            code.kernels.begin());
  }
};

bool holds_tangent(const WrapperStorage& s) {
  return s.is_input && s.name.starts_with("tangents_");
}

Result<CodeOfGraph> read_graph(InductorCode code) {
  TRY(const auto graph, code.post_grad->graph());
  TRY(WrapperMemory memory, read_wrapper_memory(code, *graph));
  return CodeOfGraph{std::move(code), std::move(memory)};
}

class Step {
 public:
  Step(CodeOfGraph forward, std::optional<CodeOfGraph> backward)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

  CodeMemory read() {
    add_steps(forward_, "forward");
    if (backward_) add_steps(*backward_, "backward");
    end_ = out_.memory.steps.size();
    find_saved();
    for (std::size_t s = 0; s < forward_.memory.storages.size(); ++s) add_of_forward(s);
    if (backward_)
      for (const WrapperStorage& s : backward_->memory.storages) add_of_backward(s);
    const std::size_t at = out_.memory.peak();
    for (const StepMemory::Row& row : out_.memory.rows)
      if (row.first <= at && at <= row.last) out_.memory.held[row.kind] += row.bytes;
    return std::move(out_);
  }

 private:
  void add_steps(CodeOfGraph& graph, const std::string& name) {
    graph.begin = out_.memory.steps.size();
    for (const InductorKernel& k : graph.code.kernels) out_.memory.steps.emplace_back(name, k.name);
    out_.unknown.insert(out_.unknown.end(), graph.memory.unknown.begin(), graph.memory.unknown.end());
  }

  /// Pairs what the forward returns for the backward with the backward's inputs. The forward returns saved tensors and
  /// then saved numbers, the backward takes the numbers first.
  void find_saved() {
    saved_.assign(forward_.memory.storages.size(), nullptr);
    if (!backward_) return;
    const WrapperMemory& back = backward_->memory;
    std::vector<const WrapperStorage*> taken;
    for (const int s : back.inputs)
      if (const WrapperStorage* input = s < 0 ? nullptr : &back.storages[static_cast<std::size_t>(s)];
          !input || !holds_tangent(*input))
        taken.push_back(input);
    const std::size_t numbers = static_cast<std::size_t>(
        std::ranges::find_if(taken, [](const WrapperStorage* s) { return s != nullptr; }) - taken.begin());
    const std::vector<int>& returned = forward_.memory.returned;
    outputs_ = returned.size() - std::min(returned.size(), taken.size());
    std::ranges::rotate(taken, taken.begin() + static_cast<std::ptrdiff_t>(numbers));
    for (std::size_t i = 0; i < taken.size() && outputs_ + i < returned.size(); ++i)
      if (const int s = returned[outputs_ + i]; s >= 0) saved_[static_cast<std::size_t>(s)] = taken[i];
  }

  bool is_result(std::size_t storage) const {
    const std::vector<int>& returned = forward_.memory.returned;
    const auto end = backward_ ? returned.begin() + static_cast<std::ptrdiff_t>(outputs_) : returned.end();
    return std::find(returned.begin(), end, static_cast<int>(storage)) != end;
  }

  void add_of_forward(std::size_t i) {
    const WrapperStorage& s = forward_.memory.storages[i];
    if (s.is_input) {
      out_.memory.inputs += s.bytes;
    } else if (is_result(i)) {
      add(Kind::Result, s, forward_.first_step(s.made), end_);
    } else if (const WrapperStorage* in_backward = saved_[i]) {
      add(Kind::Saved, s, forward_.first_step(s.made),
          in_backward->returned ? end_ : backward_->steps_until(in_backward->freed));
    } else {
      add(Kind::Temporary, s, forward_.first_step(s.made), forward_.steps_until(s.freed));
    }
  }

  void add_of_backward(const WrapperStorage& s) {
    if (holds_tangent(s))
      add(Kind::Tangent, s, backward_->begin, s.returned ? end_ : backward_->steps_until(s.freed));
    else if (!s.is_input)
      add(s.returned ? Kind::Gradient : Kind::Temporary, s, backward_->first_step(s.made),
          s.returned ? end_ : backward_->steps_until(s.freed));
  }

  /// `end`: the step behind the last.
  void add(Kind kind, const WrapperStorage& s, std::size_t first, std::size_t end) {
    if (s.bytes > 0 && first < end)
      out_.memory.rows.push_back({kind, s.node.empty() ? s.name : s.node, s.bytes, first, end - 1});
  }

  CodeOfGraph forward_;
  std::optional<CodeOfGraph> backward_;
  std::vector<const WrapperStorage*>
      saved_;                ///< of the forward's storages: as the backward takes them; null: not saved
  std::size_t outputs_ = 0;  ///< of the forward, before what it saves
  std::size_t end_ = 0;
  CodeMemory out_;
};

}  // namespace

Result<std::optional<CodeMemory>> code_memory(const Loaded& loaded, const Artefact& artefact) {
  std::optional<CodeOfGraph> forward, backward;
  for (InductorCode& code : inductor_code(loaded)) {
    if (code.code->group != artefact.group || log_of(*code.code) != log_of(artefact) || !code.post_grad) continue;
    TRY(CodeOfGraph graph, read_graph(std::move(code)));
    const bool is_backward = std::ranges::any_of(graph.memory.storages, holds_tangent);
    std::optional<CodeOfGraph>& place = is_backward ? backward : forward;
    if (!place) place = std::move(graph);
  }
  if (!forward) return std::optional<CodeMemory>();
  return std::optional(Step(std::move(*forward), std::move(backward)).read());
}

}  // namespace partita
