// Puts the calls of texts in the places of calls of the user's operators, and of their gradients.
#include "core/ops/record/user_calls.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "core/ir/print.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/effects.h"
#include "core/ops/facts/requires_grad.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/schema/resolve.h"

namespace partita {
namespace {

/// Is it copy_, by which alone a text writes, to one of its arguments? Calls of Python are not resolved yet.
bool copies(const Op* op) {
  const auto is_copy = [](const Op* aten) {
    const OpRecord* record = find_record(aten);
    const Schema* schema = find_schema(aten);
    return record && record->role == Role::CopiesSecond && schema && schema->is_mutable;
  };
  if (op->kind == OpKind::Torch) return is_copy(op);
  if (op->kind != OpKind::Method) return false;
  return std::ranges::any_of(find_overloads("aten." + op->name),
                             [&](const Schema* overload) { return is_copy(Op::torch(overload->name)); });
}

/// Places the calls of a text of an operator in a graph.
class Placing {
 public:
  /// `given`: for the text's parameters. `writes`: it may write those that the schema says.
  Placing(const UserOperator& op, const Graph& body, const std::string& file, const Args& given, bool writes,
          Builder& build)
      : op_(op), body_(body), file_(file), build_(build) {
    const std::vector<Node*> parameters = body.placeholders();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      values_.emplace(parameters[i], given[i]);
      for_each_node(given[i], [&](Node* n) { arguments_.insert(n); });
      if (writes && op.schema.args[i].is_write) written_.insert(given[i].node());
    }
  }

  /// What the text returns, in order.
  std::vector<Arg> operator()() {
    for (const Node* node : body_) {
      if (node->is_placeholder() || node->is_output()) continue;
      try {
        values_.emplace(node, placed(*node));
      } catch (Raise& raised) {
        raised.diagnostic.message += fmt::format(" (at {} in {})", node->name(), file_);
        throw;
      }
    }
    std::vector<Arg> results;
    for (const Arg& result : body_.outputs()) results.push_back(mapped(result));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Node *n = results[i].node(), *in_text = body_.outputs()[i].node();
      if (in_text && (!n || n->meta.sym()))
        fail(fmt::format("{} gives {}, which is no tensor ({})", in_text->name(), print(results[i]), file_));
      if (n && !in_text->is_placeholder()) refuse_view(*n);
    }
    return results;
  }

 private:
  Arg mapped(const Arg& arg) {
    return map_nodes(arg, [&](Node* n) { return values_.at(n); });
  }

  Arg placed(const Node& node) {
    const Args args = map_nodes(node.args(), [&](Node* n) { return values_.at(n); });
    const Kwargs kwargs = map_nodes(node.kwargs(), [&](Node* n) { return values_.at(n); });
    if (node.is(Op::getitem()) && args.size() == 2)
      if (const ArgList* list = args[0].get<ArgList>())
        return list->items.at(unwrap(getitem_position(args[1], list->items.size())));
    if (std::optional<Arg> number = computed(node, args, kwargs)) return *std::move(number);
    Graph& graph = build_.graph;
    Node* const before = build_.before;
    Node* const copy = graph.create(node.op(), args, kwargs, node.name(), before);
    copy->origin = build_.origin;
    Node* const previous = copy->previous();
    Arg value = copy;
    if (stays(*copy)) {
      copy->meta = unwrap(infer(*copy));
      if (call_requires_grad(*copy)) set_requires_grad(*copy, true);
    } else {
      value = unwrap(resolve(*copy));
    }
    for (Node* made = previous ? previous->next() : graph.first(); made && made != before; made = made->next())
      if (made != copy || value.node() == copy) refuse_effects(*made);
    if (value.node() != copy) graph.erase(copy);
    return value;
  }

  /// Arithmetic of numbers that are all known.
  std::optional<Arg> computed(const Node& node, const Args& args, const Kwargs& kwargs) {
    if (node.op()->kind != OpKind::Function || !is_python_arithmetic(node.op()->name) || !kwargs.empty()) return {};
    std::vector<Value> values;
    for (const Arg& a : args) {
      if (!as_number(a)) return {};
      values.push_back(to_value(a));
    }
    const Value value = unwrap(evaluate_python(node.op(), std::move(values), {}, nullptr));
    if (const auto* b = value.get<bool>()) return Arg(*b);
    if (const auto* i = value.get<std::int64_t>()) return Arg(*i);
    if (const auto* d = value.get<double>()) return Arg(*d);
    return {};
  }

  /// Is the call one of those that ATen graphs have?
  static bool stays(const Node& node) {
    if (node.op()->kind == OpKind::Torch) return !is_taken_apart(node.op());
    if (node.op()->kind != OpKind::Function) return false;
    if (node.is(Op::getitem())) return node.args()[0].node() && !node.args()[0].node()->meta.tensor();
    return is_python_arithmetic(node.op()->name) &&
           std::ranges::none_of(node.inputs(), [](const Node* n) { return n->meta.tensor() != nullptr; });
  }

  /// What the operator's schema and record do not say of it.
  void refuse_effects(const Node& made) {
    if (!has_effect(made)) return;
    const std::vector<Node*> written = written_by(made);
    if (!written.empty() && copies(made.op()) && written_.contains(written[0])) return;
    if (!written.empty())
      fail(
          fmt::format("it writes by {}; a text writes only by copy_ to a whole argument, so make new values in place "
                      "of writing to them",
                      made.op()->name));
    if (op_.record.random && draws(made.op())) return;
    fail(
        fmt::format("{} does more than give results, which its name in the text does not tell; call it as "
                    "torch.ops.{}, or leave it out",
                    made.op()->name, made.op()->name));
  }

  /// Operators of one's own return new memory (torch.library.custom_op).
  void refuse_view(const Node& result) {
    for (Node* from = aliased_input(result); from; from = aliased_input(*from))
      if (arguments_.contains(from))
        fail(fmt::format("{} returns a view of its argument, which an operator of one's own must not; return a clone",
                         file_));
  }

  const UserOperator& op_;
  const Graph& body_;
  const std::string& file_;
  Builder& build_;
  std::unordered_map<const Node*, Arg> values_;  ///< by node of the text
  std::set<const Node*> arguments_, written_;
};

/// The results of a call as Partita has them: none, one value, or a tuple of several.
Arg as_result(std::vector<Arg> results) {
  if (results.empty()) return {};
  return results.size() == 1 ? results[0] : Arg::list(std::move(results));
}

}  // namespace

Node* written_argument(const Node& node) {
  Node* const target = copies(node.op()) && !node.args().empty() ? node.args()[0].node() : nullptr;
  return target && target->is_placeholder() ? target : nullptr;
}

bool draws_by_name(const Op* op) {
  if (op->kind == OpKind::Torch && find_schema(op)) return draws(op);
  return std::ranges::any_of(find_overloads(fmt::format("aten.{}", op->brief())),
                             [](const Schema* overload) { return draws(Op::torch(overload->name)); });
}

Arg decompose_by_text(DecomposeCall& call) {
  const UserOperator& op = *call.schema.meaning;
  for (std::size_t i = 0; i < call.args.size(); ++i)
    if (const SchemaArg& a = call.schema.args[i]; a.type == SchemaType::Tensor && !a.is_list && as_number(call.args[i]))
      fail(fmt::format("{}: argument '{}' must be a tensor", call.schema.name, a.name));
  return as_result(Placing(op, *op.forward, op.file, call.args, true, call.build)());
}

std::string result_name(std::size_t k, std::size_t results) {
  return results == 1 ? "result" : fmt::format("result{}", k);
}

std::vector<Node*> gradient_by_text(GradCall& call) {
  const UserOperator& op = *call.schema.meaning;
  Builder& build = call.build;
  Args given;
  for (std::size_t k = 0; k < call.results.size(); ++k) {
    const TensorMeta& t = Builder::tensor(call.results[k]);
    given.emplace_back(call.grads[k] ? Arg(call.grads[k])
                                     : Arg(build.call("aten.zeros.default", {build.sizes(t.sizes)},
                                                      {{"dtype", t.dtype}, {"device", t.device}})));
  }
  const std::vector<Node*> parameters = op.backward->placeholders();
  for (std::size_t i = given.size(); i < parameters.size(); ++i) {
    const int argument = call.schema.index_of(parameters[i]->target);
    if (argument >= 0) {
      given.push_back(call.args[static_cast<std::size_t>(argument)]);
      continue;
    }
    for (std::size_t k = 0; k < call.results.size(); ++k)
      if (parameters[i]->target == result_name(k, call.results.size())) given.emplace_back(call.results[k]);
  }
  const std::vector<Arg> returned = Placing(op, *op.backward, op.backward_file, given, false, build)();
  std::vector<Node*> gradients(call.args.size(), nullptr);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!call.wants[i]) continue;
    if (call.args[i].get<ArgList>())
      fail_unsupported(
          fmt::format("the gradient of '{}', a list of tensors, from {}", call.schema.args[i].name, op.backward_file));
    gradients[i] = returned[i].node();
  }
  return gradients;
}

}  // namespace partita
