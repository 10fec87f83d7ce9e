// Divides a base graph into removable calls, and computes values of its nodes by interpreting only the slice that they
// need. A candidate copies the kept calls, with placeholders for what they read of the others.
#include "core/minify/candidate.h"

#include <algorithm>

#include "core/aot/graph_io.h"
#include "core/aot/saved_case.h"
#include "core/base/assign.h"
#include "core/compare/per_node.h"
#include "core/interp/interpreter.h"
#include "core/ops/record/values.h"
#include "core/ops/schema/schema.h"

namespace partita::minify {
namespace {

bool is_sub_graph(const Node& node) {
  return node.is(Op::get_attr()) && node.graph().child(node.target);
}
bool is_part(const Node& node) {
  return node.is(Op::getitem()) && !node.args().empty() && node.args()[0].node() && !node.meta.sym();
}
/// Can the node's value be an input or a result?
bool has_value(const Node& node) {
  return !node.meta.tuple() && !is_sub_graph(node) && !node.is_output();
}
bool is_read_in_parts(const Node& node) {
  if (node.meta.known() || node.users().empty()) return node.meta.tuple() != nullptr;
  return std::ranges::all_of(node.users(), [&](const Node* user) { return user->is(Op::getitem()); });
}

/// A value of zeros for a meta. Symbols take their hints.
Result<Value> zero_value(const Meta& meta, const ShapeEnv& shapes) {
  const auto numbers = [&](const SymList& list) -> Result<Sizes> {
    Sizes out;
    for (SymExpr e : list) {
      const auto n = shapes.hint(e);
      if (!n)
        return input_error("minify.size", "the size " + e.str() + " has no example value; give the inputs by --inputs");
      out.push_back(*n);
    }
    return out;
  };
  if (const SymExpr* e = meta.sym()) {
    TRY(const Sizes number, numbers({*e}));
    return Value(number[0]);
  }
  const TensorMeta* t = meta.tensor();
  if (!t) return input_error("minify.value", "no value can be made for a node that is not known to be a tensor");
  TRY(Sizes sizes, numbers(t->sizes));
  TRY(Sizes strides, numbers(t->strides));
  if (!t->strides_known) strides = row_major_strides(sizes);
  TRY(const std::int64_t elements, reach(sizes, strides));
  TRY(const Tensor memory, Tensor::zeros(t->dtype, {elements}));
  return Value(memory.view_as(std::move(sizes), std::move(strides), 0));
}

}  // namespace

Base::Base(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, std::uint64_t salt, int threads,
           CallUnknown call_unknown)
    : graph_(std::move(graph)),
      inputs_(std::move(inputs)),
      salt_(salt),
      threads_(threads),
      call_unknown_(std::move(call_unknown)),
      mutates_(mutates_inputs(*graph_)),
      removable_(graph_->id_limit(), not_removable),
      position_(graph_->id_limit(), 0) {
  std::size_t position = 0;
  for (const Node* node : *graph_) {
    position_[node->id()] = position++;
    if (node->is_placeholder() || node->is_output() || is_sub_graph(*node)) continue;
    std::size_t& item = removable_[node->id()];
    if (is_part(*node)) item = removable_[node->args()[0].node()->id()];
    if (item != not_removable) {
      removables_[item].parts.push_back(node);
      continue;
    }
    item = removables_.size();
    removables_.push_back({node, {}, {}});
    for (const Node* in : node->inputs()) removables_.back().reads.push_back(in);
  }
}

Status Base::compute(const std::vector<const Node*>& wanted) {
  // Build the slice of the graph that computes the wanted nodes from known values.
  Graph slice(graph_->name);
  slice.shapes = graph_->shapes;
  std::vector<bool> needed(graph_->id_limit(), false);
  for (const Node* node : wanted) needed[node->id()] = true;
  for (const Node* node = graph_->last(); node; node = node->previous()) {
    if (mutates_ && node->op()->is_call()) needed[node->id()] = true;  // keep all calls, as any may write
    if (!needed[node->id()] || (!mutates_ && values_.contains(node->name()))) continue;
    for (const Node* in : node->inputs()) needed[in->id()] = true;
  }
  std::vector<Value> inputs;
  std::vector<Node*> copy_of(graph_->id_limit(), nullptr);
  std::size_t position = 0;
  Node* first_call = nullptr;
  for (const Node* node : *graph_) {
    if (node->is_output()) break;
    const std::size_t place = node->is_placeholder() ? position++ : 0;
    if (!needed[node->id()]) continue;
    const auto known = mutates_ ? values_.end() : values_.find(node->name());
    if (node->is_placeholder() || known != values_.end()) {
      copy_of[node->id()] = slice.placeholder(node->name(), node->meta, first_call);
      // Known values come after the placeholders that they depend on, so appending keeps the order of `inputs`.
      inputs.push_back(node->is_placeholder() ? inputs_[place] : known->second);
      continue;
    }
    if (const Graph* child = is_sub_graph(*node) ? graph_->child(node->target) : nullptr)
      slice.children.emplace_back(node->target, child->clone());
    else if (const auto it = graph_->attributes.find(node->target);
             node->is(Op::get_attr()) && it != graph_->attributes.end())
      slice.attributes.insert(*it);
    copy_of[node->id()] = slice.copy_node(*node, [&](Node* n) -> Arg { return copy_of[n->id()]; });
    if (!first_call) first_call = copy_of[node->id()];
  }
  slice.set_output(Arg::tuple({}));
  if (mutates_) TRY_DO(assign(inputs, copy_values(inputs)));
  InterpOptions options;
  options.threads = threads_;
  options.check_inputs = false;
  options.call_unknown = call_unknown_;
  options.observer = [&](const Node& node, const Value& value) -> Status {
    if (values_.contains(node.name())) return {};
    if (!mutates_) {
      values_.emplace(node.name(), value);
      return {};
    }
    TRY(std::vector<Value> own, copy_values({value}));
    values_.emplace(node.name(), std::move(own[0]));
    return {};
  };
  if (auto done = interpret(slice, std::move(inputs), options); !done) return std::move(done).error();
  return {};
}

Result<std::vector<Value>> Base::values(const std::vector<std::string>& names) {
  if (values_.empty()) {
    std::size_t i = 0;
    for (const Node* node : graph_->placeholders())
      if (i < inputs_.size()) values_.emplace(node->name(), inputs_[i++]);
  }
  std::vector<const Node*> wanted;
  for (const std::string& name : names)
    if (const Node* node = values_.contains(name) ? nullptr : graph_->find(name)) wanted.push_back(node);
  Status computed;
  if (!wanted.empty()) computed = compute(wanted);
  std::vector<Value> out;
  for (const std::string& name : names) {
    auto found = values_.find(name);
    if (found == values_.end()) {
      const Node* node = graph_->find(name);
      auto zeros = node ? zero_value(node->meta, *graph_->shapes)
                        : Result<Value>(input_error("minify.value", "no node " + name));
      if (!zeros) return computed ? std::move(zeros).error() : std::move(computed).error();
      found = values_.emplace(name, *std::move(zeros)).first;
      made_up_.insert(name);
    }
    out.push_back(found->second);
  }
  return out;
}

Result<std::vector<Value>> Candidate::inputs() const {
  if (!base) return given;
  std::vector<std::string> names;
  for (const Node* node : graph->placeholders()) names.push_back(node->name());
  return base->values(names);
}

namespace {

/// Builds one candidate.
class CandidateBuilder {
 public:
  CandidateBuilder(const std::shared_ptr<Base>& base, const Kept& kept, bool results)
      : base_(base),
        from_(base->graph()),
        kept_(kept),
        stays_(base->removables().size(), 0),
        wanted_(from_.id_limit(), 0) {
    for (const std::size_t item : kept) stays_[item] = 1;
    if (!results) return;
    for (const Arg& arg : from_.outputs())
      if (const Node* n = arg.node(); n && stays(*n) && std::ranges::find(results_, n) == results_.end())
        results_.push_back(n);
  }

  std::optional<Candidate> operator()() {
    if (!find_inputs()) return std::nullopt;
    graph_ = std::make_unique<Graph>(from_.name);
    graph_->shapes = from_.shapes;
    copy_of_.assign(from_.id_limit(), nullptr);
    if (!make_placeholders()) return std::nullopt;
    Candidate out;
    for (const std::size_t item : kept_) {
      copy(item);
      out.calls += base_->removables()[item].node->op()->is_call();
    }
    if (!make_output()) return std::nullopt;
    out.graph = std::move(graph_);
    out.base = base_;
    return out;
  }

 private:
  bool stays(const Node& node) const {
    const std::size_t item = base_->removable_of(node);
    return item != Base::not_removable && stays_[item];
  }

  /// Marks a part and the tuples that it lies in as wanted.
  void want(const Node* part) {
    for (; part && is_part(*part) && !wanted_[part->id()]; part = part->args()[0].node()) {
      wanted_[part->id()] = 1;
      wanted_[base_->removables()[base_->removable_of(*part)].node->id()] = 1;
    }
  }

  /// Returns false when a kept node reads something that cannot be an input.
  bool find_inputs() {
    std::vector<char> seen(from_.id_limit(), 0);
    for (const std::size_t item : kept_)
      for (const Node* in : base_->removables()[item].reads) {
        if (is_sub_graph(*in)) continue;
        if (stays(*in)) {
          want(in);
        } else if (!seen[in->id()]) {
          if (!in->is_placeholder() && (!has_value(*in) || is_read_in_parts(*in))) return false;
          seen[in->id()] = 1;
          inputs_.push_back(in);
        }
      }
    for (const Node* result : results_) want(result);
    std::ranges::sort(inputs_, {}, [&](const Node* n) { return base_->position_of(*n); });
    return true;
  }

  bool make_placeholders() {
    for (const Node* node : inputs_) {
      Meta meta = node->meta;
      if (!meta.known() && !node->is_placeholder()) {
        const auto value = base_->values({node->name()});
        if (value) meta = meta_of(value->front());
        if (!meta.known()) return false;
      }
      Node* placeholder = graph_->placeholder(node->name(), std::move(meta));
      placeholder->target = node->name();
      copy_of_[node->id()] = placeholder;
    }
    return true;
  }

  void copy(const Node& node) {
    if (const auto it = from_.attributes.find(node.target); node.is(Op::get_attr()) && it != from_.attributes.end())
      graph_->attributes.insert(*it);
    copy_of_[node.id()] = graph_->copy_node(node, [&](Node* n) -> Arg { return copy_of_[n->id()]; });
  }

  void copy(std::size_t index) {
    const Base::Removable& item = base_->removables()[index];
    for (const Node* in : item.reads) {
      if (!is_sub_graph(*in) || copy_of_[in->id()]) continue;
      graph_->children.emplace_back(in->target, from_.child(in->target)->clone());
      copy(*in);
    }
    copy(*item.node);
    // Unread parts are left out, unless no part is read.
    const bool some = wanted_[item.node->id()];
    for (const Node* part : item.parts)
      if (!some || wanted_[part->id()]) copy(*part);
  }

  /// Returns false when nothing would be returned.
  bool make_output() {
    std::vector<Arg> returned;
    std::vector<char> is_returned(graph_->id_limit(), 0);
    const auto give = [&](Node* node) {
      is_returned[node->id()] = 1;
      returned.emplace_back(node);
    };
    for (const Node* result : results_) give(copy_of_[result->id()]);
    for (Node* node : *graph_)
      if (!node->is_placeholder() && node->users().empty() && !is_returned[node->id()] && may_be_returned(*node))
        give(node);
    if (returned.empty()) return false;
    graph_->set_output(Arg::tuple(std::move(returned)));
    return true;
  }

  static bool may_be_returned(const Node& node) {
    if (node.meta.known()) return has_value(node);
    const Schema* schema = find_schema(node.op());
    return !is_sub_graph(node) && (!schema || (schema->returns.size() == 1 && !schema->returns[0].is_list));
  }

  const std::shared_ptr<Base>& base_;
  const Graph& from_;
  const Kept& kept_;
  std::vector<char> stays_;   // by removable
  std::vector<char> wanted_;  // by node id: parts, and removables of which a part is wanted
  std::vector<const Node*> results_, inputs_;
  std::unique_ptr<Graph> graph_;
  std::vector<Node*> copy_of_;  // by node id of the base
};

}  // namespace

std::optional<Candidate> keep(const std::shared_ptr<Base>& base, const Kept& kept, bool results) {
  return CandidateBuilder(base, kept, results)();
}

Candidate with_inputs(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, std::uint64_t salt) {
  Candidate out;
  out.calls = count_calls(*graph);
  out.graph = std::move(graph);
  out.given = std::move(inputs);
  out.salt = salt;
  return out;
}

std::size_t count_calls(const Graph& graph) {
  std::size_t calls = 0;
  for (const Node* node : graph) calls += node->op()->is_call() && !node->is(Op::getitem());
  return calls;
}

}  // namespace partita::minify
