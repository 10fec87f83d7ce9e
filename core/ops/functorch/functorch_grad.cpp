// torch.func.grad by a sweep back over the calls before it, with the operators' derivatives; writes become functional.
// torch.func.jvp differentiates the gradient a second time, by its seed.
#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/requires_grad.h"
#include "core/ops/functorch/functorch.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/functional_variant.h"

namespace partita {
namespace {

Diagnostic refused(const Node& node, std::string_view why) {
  return unsupported("ops.func_grad", fmt::format("{} in a torch.func.grad {}", node.op()->name, why), place_of(node));
}

std::vector<Arg> items_of(const Arg& arg) {
  if (const auto* list = arg.get<ArgList>()) return list->items;
  return arg.is_none() ? std::vector<Arg>() : std::vector<Arg>{arg};
}

std::vector<Node*> nodes_of(const Node& call, std::size_t argument) {
  std::vector<Node*> nodes;
  if (argument < call.args().size())
    for (const Arg& item : items_of(call.args()[argument])) nodes.push_back(item.node());
  return nodes;
}

/// The gradients that a call (outputs, inputs, seeds) asks for, by a sweep over the calls before it. New calls stand
/// before it.
class Gradient {
 public:
  /// `everything`: forward mode sees calls under no_grad, too.
  explicit Gradient(Node* call, bool everything = false)
      : graph_(call->graph()),
        before_(call),
        build_(graph_, call, call->origin),
        inputs_(nodes_of(*call, 1)),
        everything_(everything) {}

  /// Of the outputs, each times its seed (none: ones), by the inputs; null where none depends on it.
  Result<std::vector<Node*>> run() {
    TRY_DO(find_what_depends());
    Node* const last = before_->previous();
    const std::vector<Node*> outputs = nodes_of(*before_, 0), seeds = nodes_of(*before_, 2);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i] || !needs(outputs[i])) continue;
      Node* const seed = i < seeds.size() ? seeds[i] : nullptr;
      arrive(outputs[i], seed ? seed : build_.call("aten.ones_like.default", {outputs[i]}));
    }
    for (Node* node = last; node; node = node->previous())
      if (incoming_.contains(node) && !is_input(node)) TRY_DO(apply(*node));
    std::vector<Node*> gradients;
    for (Node* input : inputs_) {
      const auto found = incoming_.find(input);
      gradients.push_back(found == incoming_.end() ? nullptr : found->second[0]);
    }
    return gradients;
  }

  /// After it stand calls that replaced others, of which there were no derivatives; null when there are none.
  Node* before_replaced() const { return before_replaced_; }

 private:
  bool is_input(const Node* node) const { return std::ranges::find(inputs_, node) != inputs_.end(); }
  bool needs(const Node* node) const { return node->id() < needs_.size() && needs_[node->id()]; }
  bool would_need(const Node& node) const {
    return call_requires_grad(node, [&](const Node* in) { return needs(in); });
  }

  /// Calls that have a decomposition and no derivative are replaced by it.
  Status find_what_depends() {
    bool enabled = true;
    for (Node *node = graph_.first(), *next = nullptr; node != before_; node = next) {
      next = node->next();
      needs_.resize(graph_.id_limit());
      if (node->is(set_grad_enabled()) && !node->args().empty()) enabled = everything_ || node->args()[0] != Arg(false);
      if (is_input(node)) {
        needs_[node->id()] = true;
        continue;
      }
      if (!node->op()->is_call()) continue;
      const std::vector<Node*> written = written_by(*node);
      const auto differentiated = std::ranges::find_if(written, [&](Node* target) {
        return needs(target) || needs(memory_owner(target)) || would_need(*node) ||
               (everything_ && was_read(*node, target));
      });
      if (differentiated != written.end()) {
        // Autograd goes on as if nothing had been written.
        if (!enabled) return refused(*node, "writes what is differentiated under no_grad");
        TRY(next, make_functional(node, *differentiated));
        continue;
      }
      if (!enabled || !would_need(*node)) continue;
      const OpRecord* record = node->op()->kind == OpKind::Torch ? ops().find(node->op()) : nullptr;
      if (!record || !record->decompose || record->autograd.gradient || !record->autograd.derivative.empty()) {
        needs_[node->id()] = true;
        continue;
      }
      Node* const previous = node->previous();
      TRY(const Arg value, decompose(*node));
      TRY_DO(replace_uses(*node, value));
      next = previous->next() == node ? node->next() : previous->next();
      graph_.erase(node);
      if (!before_replaced_) before_replaced_ = previous;
    }
    return {};
  }

  /// Has what depends on the inputs read this memory before? Its derivative reads it too, and is computed later. Where
  /// a backward would read what was written meanwhile, PyTorch raises an error; forward mode computes tangents at once.
  bool was_read(const Node& write, const Node* target) const {
    const Node* owner = memory_owner(target);
    for (const Node* node = write.previous(); node; node = node->previous())
      if (needs(node) && std::ranges::any_of(node->inputs(), [&](const Node* in) { return memory_owner(in) == owner; }))
        return true;
    return false;
  }

  /// Readers of a tensor that nothing else shows read the new value from here on. Returns the call to go on with.
  Result<Node*> make_functional(Node* node, Node* target) {
    const std::optional<FunctionalVariant> variant = functional_variant(node->op());
    const auto shows = [&](const Node* other) {
      const OpRecord* record = find_record(other->op());
      return written_by(*other).empty() && (memory_owner(other) == target ||
                                            (record && record->views.may_alias && other->args()[0].node() == target));
    };
    const bool own = target->op()->is_call() && memory_owner(target) == target && !is_input(target) &&
                     std::ranges::none_of(target->users(), shows);
    if (!own || !variant || variant->written.size() != 1) return refused(*node, "writes what is differentiated");
    Builder build(graph_, node, node->origin);
    Node* const before = node->previous();
    Node* const value = call_functional(build, *variant, *node);
    for (Node* later = node->next(); later; later = later->next()) later->replace_input(target, value);
    if (!before_replaced_) before_replaced_ = before;
    node->replace_all_uses_with(value);
    graph_.erase(node);
    return value;
  }

  void arrive(Node* value, Node* gradient) {
    const bool item = value->is(Op::getitem()) && !is_input(value);
    Node* const function = item ? value->args()[0].node() : value;
    const auto* index = item ? value->args()[1].get<std::int64_t>() : nullptr;
    const auto at = static_cast<std::size_t>(index && *index > 0 ? *index : 0);
    std::vector<Node*>& gradients = incoming_[function];
    if (gradients.size() <= at) gradients.resize(at + 1);
    gradients[at] = gradients[at] ? build_.call("aten.add.Tensor", {gradients[at], gradient}) : gradient;
  }

  Status apply(Node& node) {
    const Schema* schema = find_schema(node.op());
    if (!schema) return refused(node, "has no derivative");
    TRY(const Args bound, bind_arguments(*schema, node.args(), node.kwargs()));
    std::vector<bool> wants;
    for (const Arg& arg : bound)
      wants.push_back(std::ranges::any_of(items_of(arg), [&](const Arg& a) { return a.node() && needs(a.node()); }));
    std::vector<Node*> gradients = incoming_.at(&node);
    if (const MetaTuple* tuple = node.meta.tuple()) gradients.resize(std::max(gradients.size(), tuple->items.size()));
    Builder build(graph_, before_, node.origin);
    std::map<int, std::vector<Node*>> lists;
    Node* const last = before_->previous();
    TRY(std::vector<Node*> direct, differentiate(build, node, std::move(gradients), wants, &lists));
    for (Node* made = last->next(); made != before_; made = made->next()) TRY_DO(check_differentiable(*made, node));
    direct.resize(bound.size());
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const std::vector<Arg> items = items_of(bound[i]);
      std::vector<Node*> each{direct[i]};
      if (bound[i].get<ArgList>()) each = lists[static_cast<int>(i)];
      each.resize(std::max(each.size(), items.size()));
      for (std::size_t k = 0; k < items.size(); ++k)
        if (items[k].node() && needs(items[k].node()) && each[k]) arrive(items[k].node(), each[k]);
    }
    return {};
  }

  /// PyTorch's formulas may read results that have no gradient, as the factors of a matrix whose determinant is asked
  /// for. Where what they give is differentiated again, PyTorch takes other formulas.
  Status check_differentiable(const Node& made, const Node& of) const {
    for (const Node* in : made.inputs()) {
      if (!in->is(Op::getitem()) || in->args()[0].node() != &of || !can_require_grad(in->meta) || would_need(*in))
        continue;
      bool again = requires_grad(&of);
      for (const Node* later = before_->next(); later; later = later->next())
        again |=
            functorch_call(later->op()) == Functorch::Gradient || functorch_call(later->op()) == Functorch::UnpackDual;
      if (again && differentiates_by(made, in)) return refused(of, "has a gradient that we cannot differentiate again");
    }
    return {};
  }

  /// Would the call's derivative have a part for this input?
  static bool differentiates_by(const Node& call, const Node* input) {
    const OpRecord* record = find_record(call.op());
    if (!record || record->autograd.derivative.empty()) return true;
    const auto bound = bind_arguments(*record->schema, call.args(), call.kwargs());
    if (!bound) return true;
    for (std::size_t i = 0; i < bound->size(); ++i) {
      if ((*bound)[i].node() != input) continue;
      for (const Derivative& part : record->autograd.derivative)  // "input, weight": one formula for both
        for (const auto name : part.input | std::views::split(std::string_view(", ")))
          if (std::string_view(name.begin(), name.end()) == record->schema->args[i].name) return true;
    }
    return false;
  }

  Graph& graph_;
  Node* before_;
  Builder build_;
  std::vector<Node*> inputs_;
  bool everything_;
  Node* before_replaced_ = nullptr;
  std::vector<char> needs_;                                 ///< by Node::id
  std::unordered_map<Node*, std::vector<Node*>> incoming_;  ///< gradients, by call and result
};

Arg node_list(const std::vector<Node*>& nodes) {
  std::vector<Arg> items;
  for (Node* node : nodes) items.push_back(node ? Arg(node) : Arg());
  return Arg::list(std::move(items));
}

/// Replaces a call by a tuple of what was computed after `last`. Returns the first call after it.
Result<Node*> finish(Node* call, const std::vector<Node*>& results, Node* last) {
  TRY_DO(replace_uses(*call, node_list(results)));
  Node* const first = last->next() == call ? call->next() : last->next();
  call->graph().erase(call);
  return first;
}

}  // namespace

Result<Node*> replace_gradient(Node* call) {
  return catch_raised<Node*>([&]() -> Result<Node*> {
    const std::vector<Node*> inputs = nodes_of(*call, 1);
    if (inputs.empty() || std::ranges::find(inputs, nullptr) != inputs.end())
      return input_error("ops.func_grad", "differentiates by what is no tensor", place_of(*call));
    Node* const last = call->previous();
    Gradient gradient(call);
    TRY(std::vector<Node*> results, gradient.run());
    Builder build(call->graph(), call, call->origin);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!results[i]) results[i] = build.call("aten.zeros_like.default", {inputs[i]});
    return finish(call, results, gradient.before_replaced() ? gradient.before_replaced() : last);
  });
}

// The derivative by u of the gradient of y times u, which is linear in u: forward mode by two backwards
// (https://j-towns.github.io/2017/06/12/A-new-trick.html).
Result<Node*> replace_tangent(Node* call) {
  return catch_raised<Node*>([&]() -> Result<Node*> {
    Node* const value = call->args().empty() ? nullptr : call->args()[0].node();
    if (!value) return input_error("ops.func_grad", call->op()->name + " takes no tensor", place_of(*call));
    std::vector<Node*> primals, tangents;
    for (Node* node = call->previous(); node && functorch_call(node->op()) != Functorch::BeginJvp;
         node = node->previous()) {
      if (functorch_call(node->op()) != Functorch::MakeDual) continue;
      if (node->args().size() < 2 || !node->args()[1].node())
        return input_error("ops.func_grad", "a tangent is no tensor", place_of(*node));
      primals.push_back(node);
      tangents.push_back(node->args()[1].node());
    }
    Node* const last = call->previous();
    Builder build(call->graph(), call, call->origin);
    Node* const u = build.call("aten.zeros_like.default", {value});
    // The call holds what the sweeps go over, since they may replace it.
    call->set_args({value, node_list(primals), u}, {});
    Gradient backward(call, true);
    TRY(const std::vector<Node*> gradients, backward.run());
    call->set_args({node_list(gradients), u, node_list(tangents), call->args()[0]}, {});
    Gradient twice(call, true);
    TRY(const std::vector<Node*> tangent, twice.run());
    Node* const replaced = backward.before_replaced() ? backward.before_replaced() : twice.before_replaced();
    return finish(call, {call->args()[3].node(), tangent[0] ? tangent[0] : u}, replaced ? replaced : last);
  });
}

}  // namespace partita
