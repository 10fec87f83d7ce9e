// Lowers a graph call by call until only ATen is left: resolves torch-level calls, decomposes composites, inlines
// regions and autograd functions, follows autocast, torch.func and grad mode, and infers metas.
#include "core/functionalize/to_aten.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "core/fake/renaming.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/autocast.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/facts/requires_grad.h"
#include "core/ops/functorch/functorch.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/record/composite_call.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"
#include "core/ops/schema/in_place.h"
#include "core/ops/schema/resolve.h"

namespace partita {
namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, bool pre_dispatch) : pre_dispatch_(pre_dispatch) {
    out_.graph = graph.clone();
    follow_in_place(*out_.graph);
  }

  Result<AtenGraph> run(const std::vector<bool>& wanted) {
    if (!wanted.empty()) {
      std::vector<Node*> placeholders = out_.graph->placeholders();
      for (std::size_t i = 0; i < placeholders.size(); ++i)
        set_requires_grad(*placeholders[i], i < wanted.size() && wanted[i]);
    }
    Node* node = out_.graph->first();
    while (node) {
      if (!node->op()->is_call()) {
        if (node->is(Op::get_attr())) bind_attribute(*node);
        node = node->next();
        continue;
      }
      TRY(node, lower(node));
    }
    for (Node* mode : *out_.graph)
      if (changes_mode(*mode) && mode->users().empty() && !(pre_dispatch_ && mode->is(set_grad_enabled())))
        out_.graph->erase(mode);
    for (const Node* call : made_here_) TRY_DO(refuse_later_writes(*call));
    out_.graph->eliminate_dead(has_effect);
    return std::move(out_);
  }

 private:
  void bind_attribute(Node& node) {
    auto it = out_.graph->attributes.find(node.target);
    if (node.meta.known() || it == out_.graph->attributes.end()) return;
    node.meta = meta_of(it->second);
  }

  /// Lowers one node. Returns the next node to lower: the first of its replacements, or the node after it.
  Result<Node*> lower(Node* node) {
    if (changes_mode(*node)) return change_mode(node);
    if (is_autocast(node->op())) return autocast_.follow(node);
    if (functorch_call(node->op()) != Functorch::None) return functorch(node);
    if (const ControlOp* control = find_control(node->op())) {
      if (find_region(node->op())) autocast_.enter_sub_graphs(*node);
      if (control->kind == Control::GradMode) return inline_grad_region(node);
      if (control->kind == Control::Autocast) return inline_autocast(node);
      if (control->kind == Control::Wrapper || control->kind == Control::Checkpoint ||
          control->kind == Control::InvokeSubgraph)
        return inline_wrapper(node, *control);
      if (control->kind == Control::AutogradFunction) return inline_autograd_function(node);
      if (control->kind == Control::CustomBackward) return custom_backward_call(node);
      if (!control->graphs.empty()) return region(node, *control);
    }
    TRY_DO(autocast_.cast_arguments(*node));
    if (node->op()->kind == OpKind::Torch && !is_taken_apart(node->op())) return lower_aten(node);
    if (is_number_arithmetic(*node)) return infer_and_go_on(node);
    return replace(node, [](Node& n) { return resolve(n); });
  }

  /// Calls that change how others are seen. They stay until the end, because calls of functorch put new ones among
  /// those before them.
  Result<Node*> change_mode(Node* node) {
    const Functorch kind = functorch_call(node->op());
    if (kind == Functorch::BeginGrad) {
      if (!grad_enabled_ && !around_grad_.empty())
        return unsupported("ops.func_grad", "torch.func.grad under no_grad within another", place_of(*node));
      around_grad_.push_back(grad_enabled_);
    } else if (kind == Functorch::EndGrad) {
      if (around_grad_.empty())
        return input_error("ops.func_grad", node->op()->name + " ends nothing", place_of(*node));
      around_grad_.pop_back();
    } else {
      const bool* on = node->args().empty() ? nullptr : node->args()[0].get<bool>();
      if (!on) return input_error("functionalize.grad_mode", "_set_grad_enabled takes a constant", place_of(*node));
      grad_enabled_ = *on;
    }
    return node->next();
  }
  static bool changes_mode(const Node& node) {
    const Functorch kind = functorch_call(node.op());
    return node.is(set_grad_enabled()) || kind == Functorch::BeginGrad || kind == Functorch::EndGrad;
  }

  Result<Node*> functorch(Node* node) {
    const Node* const after = node->next();
    TRY(Node* const next, follow_functorch(node));
    if (next == after) return next;
    grad_enabled_ = true;
    around_grad_.clear();
    for (Node* before = out_.graph->first(); before != next; before = before->next())
      if (changes_mode(*before)) TRY_DO(change_mode(before));
    return next;
  }

  /// The sub graphs stay as they are; functionalisation lowers them. Here the metas of the results are found.
  Result<Node*> region(Node* node, const ControlOp& op) {
    TRY_DO(give_metas_to_regions(op, *node));
    TRY(Graph* const body, region_graph(*node, op.body));
    const std::vector<Arg> outputs = body->outputs();
    TRY(const AtenGraph lowered, to_aten(*body));
    const std::vector<Arg> known = lowered.graph->outputs();
    for (std::size_t i = 0; i < outputs.size() && i < known.size(); ++i)
      if (Node* n = outputs[i].node(); n && known[i].node() && !n->meta.known()) n->meta = known[i].node()->meta;
    node->meta = region_results(op, *node);
    return infer_and_go_on(node);
  }

  /// torch.export keeps a no_grad region as a call of a sub graph. Inlines it between two changes of the grad mode.
  Result<Node*> inline_grad_region(Node* node) {
    Graph& graph = *out_.graph;
    const bool* on = node->args().size() < 2 ? nullptr : node->args()[0].get<bool>();
    const Node* body_node = on ? node->args()[1].node() : nullptr;
    const Graph* body = body_node && body_node->is(Op::get_attr()) ? graph.child(body_node->target) : nullptr;
    if (!body) return unsupported("ops.region", node->op()->name + " without its sub graph", place_of(*node));
    Node* begin = graph.create(set_grad_enabled(), {*on}, {}, {}, node);
    TRY(Node * made, inline_region(node, begin, std::vector<Arg>(node->args().begin() + 2, node->args().end()), *body));
    graph.create(set_grad_enabled(), {grad_enabled_}, {}, {}, node);
    graph.erase(node);
    return made;
  }

  /// Inlines the forward of a torch.autograd.Function, of which autograd does not know. Where gradients are wanted, its
  /// results go through custom_backward().
  Result<Node*> inline_autograd_function(Node* node) {
    Graph& graph = *out_.graph;
    TRY(const Graph* const forward, region_graph(*node, 0));
    TRY_DO(region_graph(*node, 1));
    const std::vector<Arg> operands(node->args().begin() + 2, node->args().end());
    std::vector<Arg> given = operands;
    // Earlier PyTorch gives the context first.
    if (forward->placeholders().size() == given.size() + 1) given.insert(given.begin(), Arg());
    Node* const begin = graph.create(set_grad_enabled(), {false}, {}, {}, node);
    TRY(const Arg returned, copy_body(*node, *forward, given, node));
    for (Node* n = begin->next(); n != node;) n = n->is(set_grad_enabled()) ? drop(n) : n->next();
    graph.create(set_grad_enabled(), {grad_enabled_}, {}, {}, node);
    TRY(const AutogradResults its, autograd_results(*node, *forward));
    std::vector<Arg> results = returned.get<ArgList>()->items;
    if (its.count == 0 || results.size() < its.count)
      return input_error("ops.region", "the forward of a torch.autograd.Function returns no results", place_of(*node));
    const std::vector<Arg> saved(results.begin() + static_cast<std::ptrdiff_t>(its.count), results.end());
    results.resize(its.count);
    const auto needs = [](const Arg& a) { return a.node() && requires_grad(a.node()); };
    if (grad_enabled_ && std::ranges::any_of(operands, needs)) {
      TRY_DO(give_backward(*node, results, saved, operands));
    }
    TRY_DO(replace_uses(*node, its.single ? results[0] : Arg::list(results)));
    graph.erase(node);
    return begin;
  }

  /// Results of custom_backward() have memory of their own. Eager PyTorch's may be views of operands, which a write to
  /// either would show in.
  static Status refuse_later_writes(const Node& call) {
    std::unordered_set<const Node*> operands, shared;
    for (const Arg& a : call.args()[3].get<ArgList>()->items)
      if (a.node()) operands.insert(memory_owner(a.node()));
    const std::vector<Arg>& results = call.args()[1].get<ArgList>()->items;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!operands.contains(memory_owner(results[i].node()))) continue;
      shared.insert(memory_owner(results[i].node()));
      for (const Node* user : call.users())
        if (user->is(Op::getitem()) && user->args()[1] == Arg(static_cast<std::int64_t>(i))) shared.insert(user);
    }
    for (const Node* n = call.next(); n; n = n->next())
      for (const Node* target : written_by(*n))
        if (shared.contains(memory_owner(target)))
          return unsupported("functionalize.autograd_function",
                             "a write to memory that a torch.autograd.Function takes and returns; clone its result",
                             place_of(*n));
    return {};
  }

  /// Other calls of this operator come from a file.
  Result<Node*> custom_backward_call(Node* node) {
    if (!made_here_.contains(node))
      return input_error("functionalize.autograd_function", "this call is for graphs in the making; files have none",
                         place_of(*node));
    MetaTuple results;
    for (const Arg& a : node->args()[1].get<ArgList>()->items) results.items.push_back(a.node()->meta);
    node->meta = std::move(results);
    return infer_and_go_on(node);
  }

  /// Makes the results those of a custom_backward().
  Status give_backward(Node& node, std::vector<Arg>& results, const std::vector<Arg>& saved,
                       const std::vector<Arg>& operands) {
    const auto indices = [&](std::string_view name) {
      const auto it = std::ranges::find(node.kwargs(), name, &Kwargs::value_type::first);
      const ArgList* list = it == node.kwargs().end() ? nullptr : it->second.get<ArgList>();
      return list ? list->items : std::vector<Arg>();
    };
    if (!indices("dirty_idx").empty())
      return unsupported("functionalize.autograd_function", "a function that marks what it writes (mark_dirty)",
                         place_of(node));
    if (!std::ranges::all_of(results, [](const Arg& a) { return a.node() != nullptr; }))
      return unsupported("functionalize.autograd_function", "a function with results that are no tensors",
                         place_of(node));
    Graph& graph = *out_.graph;
    Node* const made = graph.create(
        custom_backward(), {node.args()[1], Arg::list(results), Arg::list(saved), Arg::list(operands)}, {}, {}, &node);
    made->origin = node.origin;
    made_here_.insert(made);
    const std::vector<Arg> constant = indices("non_differentiable_idx");
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const Arg at = static_cast<std::int64_t>(i); std::ranges::find(constant, at) == constant.end())
        results[i] = graph.create(Op::getitem(), {made, at}, {}, {}, &node);
    return {};
  }

  /// Is the node a getitem of a tuple or arithmetic on sizes? These stay Python calls in ATen graphs.
  static bool is_number_arithmetic(const Node& node) {
    if (node.op()->kind != OpKind::Function) return false;
    if (node.is(Op::getitem())) {
      // A value without meta comes from an operator without a record, and is a tuple; tensors are annotated.
      Node* from = node.args().empty() ? nullptr : node.args()[0].node();
      return from && !from->meta.tensor();
    }
    if (!is_python_arithmetic(node.op()->name)) return false;
    return std::ranges::all_of(node.inputs(), [](const Node* input) { return input->meta.sym() != nullptr; });
  }

  Result<Node*> lower_aten(Node* node) {
    if (is_composite(node->op()) && !(pre_dispatch_ && makes_new_values(node->op())))
      return replace(node, [](Node& n) { return decompose(n); });
    return infer_and_go_on(node);
  }

  /// Functionalisation needs to know what is written or viewed, and takes all else as it is.
  static bool makes_new_values(const Op* op) {
    const Schema* schema = find_schema(op);
    return schema && !schema->is_mutable &&
           std::ranges::all_of(schema->args, [](const SchemaArg& a) { return a.alias_set.empty(); });
  }

  /// Gives a node the meta of its call, by which the calls after it are decomposed. An annotation may have other
  /// strides: torch.export decomposes batch_norm, which keeps those of its input, where eager PyTorch gives a 3-d
  /// result new ones. Another dtype is refused: a cast to it may have been dropped.
  static Status infer_meta(Node& node) {
    Result<Meta> inferred = infer(node);
    if (!inferred) {
      if (node.meta.known() || (inferred.error().code == "ops.unknown" && parts_are_known(node))) return {};
      return std::move(inferred).error();
    }
    const TensorMeta *annotated = node.meta.tensor(), *found = inferred->tensor();
    if (annotated && found && found->dtype != annotated->dtype)
      return input_error("functionalize.annotation",
                         fmt::format("{} is annotated {}, but its call gives {}; mend one of them", node.name(),
                                     annotation(node.meta), annotation(*inferred)),
                         place_of(node));
    if (!node.meta.known() || !UnbackedRenaming(*node.graph().shapes).same(*inferred, node.meta))
      node.meta = *std::move(inferred);
    return {};
  }

  Result<Node*> infer_and_go_on(Node* node) {
    TRY_DO(infer_meta(*node));
    const bool seen = grad_enabled_ && std::ranges::find(around_grad_, false) == around_grad_.end();
    if (!seen) out_.no_grad.insert(node);
    const bool needs = seen && call_requires_grad(*node);
    set_requires_grad(*node, needs);
    // A tensor that is written in place requires grad from here on.
    const Schema* schema = node->op()->kind == OpKind::Torch ? find_schema(node->op()) : nullptr;
    if (needs && schema && schema->is_mutable && node->args()[0].node())
      set_requires_grad(*node->args()[0].node(), true);
    return node->next();
  }

  static bool parts_are_known(const Node& node) {
    return std::ranges::none_of(node.users(),
                                [&](Node* user) { return !user->is(Op::getitem()) || !user->meta.known(); });
  }

  /// Replaces a node. `rewrite` makes calls before it and returns the replacement. Returns the first new call.
  Result<Node*> replace(Node* node, auto rewrite) {
    Node* previous = node->previous();
    Result<Arg> value = rewrite(*node);
    if (!value) return std::move(value).error();
    if (value->node() == node) return infer_and_go_on(node);
    if (Node* n = value->node(); n && !n->origin) n->origin = node->origin;
    for (Node* made = previous ? previous->next() : out_.graph->first(); made != node; made = made->next())
      if (made->recompute == Recompute::Unspecified) made->recompute = node->recompute;
    TRY_DO(replace_uses(*node, *value));
    Node* next = previous ? previous->next() : out_.graph->first();
    autocast_.replaced(*node, next);
    if (next == node) next = node->next();
    out_.graph->erase(node);
    return next;
  }

  Node* drop(Node* node) {
    Node* next = node->next();
    out_.graph->erase(node);
    return next;
  }

  AtenGraph out_;
  AutocastRegions autocast_;
  std::unordered_set<const Node*> made_here_;  ///< calls of custom_backward()
  bool pre_dispatch_ = false;
  bool grad_enabled_ = true;
  std::vector<bool> around_grad_;  ///< grad_enabled_ where each torch.func.grad around began
};

}  // namespace

Result<AtenGraph> to_aten(const Graph& graph, const std::vector<bool>& requires_grad, bool pre_dispatch) {
  return Lowering(graph, pre_dispatch).run(requires_grad);
}

}  // namespace partita
