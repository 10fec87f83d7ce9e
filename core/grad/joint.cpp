// Builds the joint graph as the autograd engine would: chooses tangents, counts the gradients that each function waits
// for, visits ready functions from the last to the first, and detaches what they save.
#include "core/grad/joint.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/functionalize/stage_rules.h"
#include "core/grad/region_backward.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/effects.h"
#include "core/ops/facts/requires_grad.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// Where a gradient goes: a result of a call, or a primal.
struct Edge {
  Node* function = nullptr;  ///< null: no gradient is wanted
  std::size_t result = 0;
};

/// The call that is differentiated: for a getitem, the call that makes the tuple.
Node* function_of(Node* value) {
  return value->is(Op::getitem()) ? value->args()[0].node() : value;
}
std::size_t result_of(const Node* value) {
  if (!value->is(Op::getitem())) return 0;
  auto* index = value->args()[1].get<std::int64_t>();
  return index && *index > 0 ? static_cast<std::size_t>(*index) : 0;
}

bool dense(const TensorMeta& t) {
  std::vector<std::size_t> order(t.dim());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  auto sizes = concrete(t.sizes), strides = concrete(t.strides);
  if (!sizes || !strides) return t.strides == contiguous_strides(t.sizes);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair((*strides)[a], (*sizes)[a]) < std::pair((*strides)[b], (*sizes)[b]);
  });
  std::int64_t expected = 1;
  for (std::size_t i : order) {
    if ((*sizes)[i] == 1) continue;
    if ((*strides)[i] != expected) return false;
    expected *= (*sizes)[i];
  }
  return true;
}

class Differentiator {
 public:
  Differentiator(FunctionalGraph forward, const JointOptions& options)
      : forward_(std::move(forward)), options_(options), graph_(*forward_.graph) {}

  Result<Joint> run() {
    name_primals();
    for (const InputAliasInfo& input : forward_.meta.inputs) wants_.push_back(input.requires_grad);
    TRY_DO(find_what_requires_grad());
    output_ = graph_.output();
    outputs_ = graph_.outputs();
    choose_tangents();
    number_functions();
    const std::vector<Node*> epilogue = writes();
    TRY_DO(backward());
    // The backward reads what inputs were before.
    for (Node* write : epilogue) graph_.move_before(write, output_);
    TRY_DO(remove_custom_backwards(graph_));
    outputs_ = graph_.outputs();

    Joint joint;
    joint.forward_outputs = outputs_.size();
    joint.tangent_of = tangent_of_;
    std::vector<Arg> returned = outputs_;
    for (std::size_t i = 0; i < primals_.size(); ++i)
      returned.push_back(i < wants_.size() && wants_[i] && gradient_[primals_[i]] ? Arg(gradient_[primals_[i]])
                                                                                  : Arg());
    graph_.set_output(Arg::list(std::move(returned)));
    graph_.eliminate_dead(has_effect);
    std::erase_if(graph_.children, [&](const auto& child) {
      return std::ranges::none_of(graph_,
                                  [&](const Node* n) { return n->is(Op::get_attr()) && n->target == child.first; });
    });
    graph_.form = GraphForm::Joint;
    graph_.name = "inner_f";
    joint.graph = renamed_in_order(graph_);
    return joint;
  }

 private:
  void name_primals() {
    primals_ = graph_.placeholders();
    for (std::size_t i = 0; i < primals_.size(); ++i) {
      graph_.rename(primals_[i], fmt::format("primals_{}", i + 1));
      primals_[i]->target = primals_[i]->name();
    }
  }

  /// Computes which values require grad (needs_). Calls on a gradient's path with a decomposition but no derivative are
  /// replaced by their decomposition, which is visited next.
  Status find_what_requires_grad() {
    std::size_t placeholders = 0;
    for (Node* n = graph_.first(); n;) {
      needs_.resize(graph_.id_limit());
      if (n->is_placeholder()) {
        needs_[n->id()] = placeholders < wants_.size() && wants_[placeholders] && can_require_grad(n->meta);
        ++placeholders;
      } else if (const auto it = forward_.hidden.find(n); it != forward_.hidden.end()) {
        needs_[n->id()] = needs(it->second);
        n = n->next();
        continue;
      } else if (n->op()->is_call() && !forward_.no_grad.contains(n)) {
        needs_[n->id()] = call_requires_grad(*n, [&](const Node* input) { return needs(input); });
      }
      const OpRecord* record = needs_[n->id()] && n->op()->kind == OpKind::Torch ? ops().find(n->op()) : nullptr;
      if (!record || !record->decompose || record->autograd.gradient || !record->autograd.derivative.empty()) {
        n = n->next();
        continue;
      }
      Node* previous = n->previous();
      TRY(const Arg value, decompose(*n));
      TRY_DO(replace_uses(*n, value));
      for (Node* made = previous ? previous->next() : graph_.first(); made != n; made = made->next())
        made->recompute = n->recompute;
      for (auto& [now, before] : forward_.hidden)
        if (before == n) before = value.node();
      graph_.erase(n);
      n = previous ? previous->next() : graph_.first();
    }
    return {};
  }

  /// The copy_ epilogue.
  std::vector<Node*> writes() const {
    std::vector<Node*> out;
    for (Node* n : graph_)
      if (const Schema* schema = n->op()->kind == OpKind::Torch ? find_schema(n->op()) : nullptr;
          schema && schema->is_mutable)
        out.push_back(n);
    return out;
  }

  Node* first_call() const {
    Node* n = graph_.first();
    while (n && n->is_placeholder()) n = n->next();
    return n;
  }

  /// Chooses the outputs that take a tangent: those that require grad among mutated inputs, outputs that are not
  /// aliases, and intermediate bases. With tangents_for_aliases, aliases take one and intermediate bases do not.
  void choose_tangents() {
    const ViewAndMutationMeta& meta = forward_.meta;
    std::vector<std::size_t> mutated = meta.mutated_runtime_inputs();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      Node* value = outputs_[i].node();
      if (!value || !needs_[value->id()]) continue;
      if (i < mutated.size()) {
        const InputAliasInfo& input = meta.inputs[mutated[i]];
        if (input.mutates_storage) continue;  // not through autograd
        if (input.mutates_data ? input.mutations_under_no_grad : !options_.tangents_for_aliases) continue;
      } else if (i < mutated.size() + meta.outputs.size()) {
        OutputType type = meta.outputs[i - mutated.size()].type;
        bool alias = type != OutputType::NonAlias && type != OutputType::UnsafeViewAlias;
        if (alias && !options_.tangents_for_aliases) continue;
      } else if (options_.tangents_for_aliases) {
        continue;
      }
      TensorMeta t = *value->meta.tensor();
      t.requires_grad = false;
      t.offset = 0;
      t.storage_id = -1;
      if (!dense(t)) t.strides = contiguous_strides(t.sizes);
      Node* tangent = graph_.placeholder(fmt::format("tangents_{}", tangents_.size() + 1), std::move(t), first_call());
      tangents_.push_back(tangent);
      tangent_of_.push_back(i);
    }
  }

  void number_functions() {
    std::size_t count = 0;
    for (Node* n : graph_) sequence_[n] = n->is_placeholder() ? static_cast<std::size_t>(-1) : count++;
  }

  bool needs(const Node* n) const { return n->id() < needs_.size() && needs_[n->id()]; }

  /// Where the gradient of a value goes.
  Edge edge_to(Node* value) const {
    for (auto it = forward_.hidden.find(value); it != forward_.hidden.end(); it = forward_.hidden.find(value))
      value = it->second;
    return {function_of(value), result_of(value)};
  }

  /// The edges of a function in schema order: one for each tensor argument that needs a gradient, one per item of a
  /// list.
  struct Slot {
    int argument = 0;
    int item = -1;
    Edge edge;
  };
  Result<std::vector<Slot>> slots(Node* function) {
    std::vector<Slot> out;
    if (const ControlOp* op = find_region(function->op())) {
      for (const RegionOperand& o : operands_of(*op, function->args()))
        if (Node* n = o.value.node(); n && needs(n))
          out.push_back({static_cast<int>(o.list), static_cast<int>(o.item), edge_to(n)});
      return out;
    }
    if (function->is(custom_backward())) {
      const std::vector<Arg>& operands = function->args()[3].get<ArgList>()->items;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (Node* n = operands[i].node(); n && needs(n)) out.push_back({3, static_cast<int>(i), edge_to(n)});
      return out;
    }
    const Schema* schema = find_schema(function->op());
    if (!schema && !find_record(function->op()))
      if (Result<Meta> known = infer(*function); !known) return std::move(known).error();
    if (!schema)
      return unsupported("ops.unknown", fmt::format("no derivative for {}", function->op()->name), place_of(*function));
    TRY(Args bound, bind_arguments(*schema, function->args(), function->kwargs()));
    auto add = [&](int argument, int item, const Arg& a) {
      Node* n = a.node();
      if (!n || !needs(n)) return;
      out.push_back({argument, item, edge_to(n)});
    };
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (auto* list = bound[i].get<ArgList>())
        for (std::size_t j = 0; j < list->items.size(); ++j)
          add(static_cast<int>(i), static_cast<int>(j), list->items[j]);
      else
        add(static_cast<int>(i), -1, bound[i]);
    }
    return out;
  }

  struct Later {
    bool operator()(const std::pair<std::size_t, Node*>& a, const std::pair<std::size_t, Node*>& b) const {
      return a.first < b.first;
    }
  };

  Status backward() {
    // The functions that the engine will visit, and the number of gradients that each waits for.
    std::unordered_map<Node*, std::size_t> waiting;
    std::unordered_map<Node*, std::vector<Slot>> edges;
    std::vector<Node*> open;
    auto reach = [&](Node* function) {
      if (waiting[function]++ == 0) open.push_back(function);
    };
    for (std::size_t i : tangent_of_) reach(edge_to(outputs_[i].node()).function);
    while (!open.empty()) {
      Node* function = open.back();
      open.pop_back();
      if (function->is_placeholder()) continue;
      TRY(edges[function], slots(function));
      for (const Slot& s : edges[function]) reach(s.edge.function);
    }

    std::priority_queue<std::pair<std::size_t, Node*>, std::vector<std::pair<std::size_t, Node*>>, Later> ready;
    std::unordered_map<Node*, std::vector<Node*>> incoming;
    std::shared_ptr<const Origin> origin;
    auto arrive = [&](const Edge& edge, Node* gradient) {
      std::vector<Node*>& buffer = incoming[edge.function];
      if (buffer.size() <= edge.result) buffer.resize(edge.result + 1, nullptr);
      Node*& slot = buffer[edge.result];
      if (gradient && slot)
        slot = Builder(graph_, output_, origin).call("aten.add.Tensor", {slot, gradient});
      else if (gradient)
        slot = gradient;
      if (--waiting[edge.function] == 0) ready.emplace(sequence_.at(edge.function), edge.function);
    };
    // Of gradients that have been visited, nothing is read any more. A gradient may also be a value of the forward.
    const auto is_shared = [&, forward_ids = graph_.id_limit()](const Node* gradient) {
      const Node* const owner = memory_owner(gradient);
      const auto same = [owner](const Node* g) { return g && memory_owner(g) == owner; };
      const bool of_forward = owner->id() < forward_ids && std::ranges::find(tangents_, owner) == tangents_.end();
      return of_forward ||
             std::ranges::any_of(incoming, [&](const auto& row) { return std::ranges::any_of(row.second, same); }) ||
             std::ranges::any_of(gradient_, [&](const auto& row) { return same(row.second); });
    };
    for (std::size_t k = 0; k < tangents_.size(); ++k) {
      arrive(edge_to(outputs_[tangent_of_[k]].node()), tangents_[k]);
    }
    while (!ready.empty()) {
      Node* function = ready.top().second;
      ready.pop();
      const std::vector<Node*> grads = std::move(incoming[function]);
      incoming.erase(function);
      if (function->is_placeholder()) {
        gradient_[function] = grads[0];
        continue;
      }
      origin = function->origin;
      bool any = std::any_of(grads.begin(), grads.end(), [](Node* g) { return g != nullptr; });
      std::vector<Node*> direct;
      std::map<int, std::vector<Node*>> lists;
      if (any && function->is(custom_backward())) {
        Builder build(graph_, output_, function->origin);
        TRY(lists[3], differentiate_custom(build, *function, grads, is_shared));
      } else if (any) {
        TRY_DO(apply(function, grads, edges[function], direct, lists));
      }
      for (const Slot& s : edges[function]) {
        Node* gradient = nullptr;
        auto argument = static_cast<std::size_t>(s.argument);
        if (s.item < 0) {
          gradient = argument < direct.size() ? direct[argument] : nullptr;
        } else if (auto it = lists.find(s.argument); it != lists.end()) {
          auto item = static_cast<std::size_t>(s.item);
          gradient = item < it->second.size() ? it->second[item] : nullptr;
        }
        arrive(s.edge, gradient);
      }
    }
    return {};
  }

  Status apply(Node* function, std::vector<Node*> grads, const std::vector<Slot>& edges, std::vector<Node*>& direct,
               std::map<int, std::vector<Node*>>& lists) {
    if (const ControlOp* op = find_region(function->op())) return apply_region(*function, *op, std::move(grads), lists);
    const Schema* schema = find_schema(function->op());
    std::vector<bool> wants(schema->args.size(), false);
    for (const Slot& s : edges) wants[static_cast<std::size_t>(s.argument)] = true;
    if (auto* tuple = function->meta.tuple()) grads.resize(std::max(grads.size(), tuple->items.size()), nullptr);
    Node* last = output_->previous();
    Builder build(graph_, output_, function->origin);
    TRY(direct, differentiate(build, *function, std::move(grads), std::move(wants), &lists));
    detach_results(*function, last);
    return {};
  }

  Status apply_region(Node& function, const ControlOp& op, std::vector<Node*> grads,
                      std::map<int, std::vector<Node*>>& lists) {
    std::vector<bool> wants;
    const std::vector<RegionOperand> operands = operands_of(op, function.args());
    for (const RegionOperand& o : operands) wants.push_back(o.value.node() && needs(o.value.node()));
    grads.resize(function.meta.tuple()->items.size(), nullptr);
    Builder build(graph_, output_, function.origin);
    TRY(const std::vector<Node*> gradients,
        differentiate_region(build, function, op, grads, wants, forward_.no_grad, forward_.hidden));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::vector<Node*>& list = lists[static_cast<int>(operands[i].list)];
      list.resize(std::max(list.size(), operands[i].item + 1), nullptr);
      list[operands[i].item] = gradients[i];
    }
    return {};
  }

  /// Autograd saves a result detached from its history, and detaches it again when a backward formula reads it.
  void detach_results(Node& function, Node* last) {
    std::vector<Node*> results;
    if (function.meta.tuple()) {
      for (Node* user : function.users())
        if (user->is(Op::getitem()) && needs(user) && std::find(results.begin(), results.end(), user) == results.end())
          results.push_back(user);
    } else {
      results.push_back(&function);
    }
    Node* first = last->next();
    for (Node* result : results) {
      std::vector<Node*> readers;
      for (Node* n = first; n != output_; n = n->next()) {
        std::vector<Node*> read = n->inputs();
        if (std::find(read.begin(), read.end(), result) != read.end()) readers.push_back(n);
      }
      if (readers.empty()) continue;
      Node*& saved = saved_[result];
      if (!saved) {
        Node* after = &function;
        while (after->next()->is(Op::getitem()) && after->next()->args()[0].node() == &function) after = after->next();
        saved = Builder(graph_, after->next(), function.origin).call("aten.detach.default", {result});
        if (function.recompute != Recompute::Unspecified) saved->recompute = Recompute::PreferRecompute;
      }
      Node* handed_out = Builder(graph_, first, function.origin).call("aten.detach.default", {saved});
      for (Node* n : readers) n->replace_input(result, handed_out);
    }
  }

  FunctionalGraph forward_;
  const JointOptions& options_;
  Graph& graph_;
  std::vector<Node*> primals_;
  std::vector<bool> wants_;
  std::vector<char> needs_;  ///< by id of forward nodes
  Node* output_ = nullptr;
  std::vector<Arg> outputs_;
  std::vector<Node*> tangents_;
  std::vector<std::size_t> tangent_of_;
  std::unordered_map<Node*, std::size_t> sequence_;
  std::unordered_map<Node*, Node*> gradient_;  ///< by primal
  std::unordered_map<Node*, Node*> saved_;     ///< detached results
};

}  // namespace

Result<Joint> make_joint(FunctionalGraph forward, const JointOptions& options) {
  return catch_raised<Joint>([&]() -> Result<Joint> {
    TRY(Joint joint, Differentiator(std::move(forward), options).run());
    TRY_DO(check_stage(*joint.graph, Stage::Joint));
    return joint;
  });
}

}  // namespace partita
