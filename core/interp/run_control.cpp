// Runs control operators on values: cond, while_loop, map_impl, scan, wrappers, autograd functions, with_effects. Sub
// graphs run by a callback; map_impl and scan take rows as views and stack the results.
#include "core/interp/run_control.h"

#include <fmt/format.h>

#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

Diagnostic malformed(const ControlCall& c, std::string_view what) {
  return input_error("interp.control", fmt::format("{} {}", c.node.op()->brief(), what), place_of(c.node));
}

Result<const Graph*> graph_argument(const ControlCall& c, std::size_t i) {
  const Node* n = i < c.node.args().size() ? c.node.args()[i].node() : nullptr;
  const Graph* child = n && n->is(Op::get_attr()) ? c.node.graph().child(n->target) : nullptr;
  if (!child) return malformed(c, fmt::format("argument {} is not a sub graph of this graph", i));
  return child;
}

Result<ValueList> list_argument(const ControlCall& c, std::size_t i, bool optional = false) {
  if (optional && i >= c.node.args().size()) return ValueList();
  if (i >= c.node.args().size()) return malformed(c, fmt::format("has no argument {}", i));
  TRY(Value v, c.value_of(c.node.args()[i]));
  if (const auto* list = v.get<ValueList>()) return *list;
  return malformed(c, fmt::format("argument {} is not a list", i));
}

Result<ValueList> arguments_from(const ControlCall& c, std::size_t first) {
  ValueList values;
  for (std::size_t i = first; i < c.node.args().size(); ++i) {
    TRY(values.emplace_back(), c.value_of(c.node.args()[i]));
  }
  return values;
}

Result<bool> truth(const ControlCall& c, const Value& v) {
  if (const auto* b = v.get<bool>()) return *b;
  if (const auto* i = v.get<std::int64_t>()) return *i != 0;
  if (const auto* t = v.get<Tensor>(); t && t->numel() == 1) return t->item_as_double() != 0;
  return malformed(c, "has a condition that is not a single bool");
}

/// The element i along dimension 0, as a view.
Tensor row(const Tensor& t, std::int64_t i) {
  return t.view_as(Sizes(t.sizes.begin() + 1, t.sizes.end()), Sizes(t.strides.begin() + 1, t.strides.end()),
                   t.offset + i * t.strides[0]);
}

Result<std::int64_t> common_length(const ControlCall& c, const ValueList& xs) {
  std::int64_t length = -1;
  for (const Value& x : xs) {
    const auto* t = x.get<Tensor>();
    if (!t || t->dim() == 0 || (length >= 0 && t->sizes[0] != length))
      return malformed(c, "iterates over tensors of different lengths, or over no tensor");
    length = t->sizes[0];
  }
  if (length <= 0) return malformed(c, "iterates over nothing");
  return length;
}

/// Stacks the results of all iterations: one tensor for each result of the body.
class Stack {
 public:
  explicit Stack(std::int64_t length) : length_(length) {}
  Status put(const ControlCall& c, std::int64_t i, std::span<const Value> results) {
    for (std::size_t k = 0; k < results.size(); ++k) {
      const auto* t = results[k].get<Tensor>();
      if (!t) return malformed(c, "has a body that returns something other than tensors");
      if (i == 0) {
        Sizes sizes = t->sizes;
        sizes.insert(sizes.begin(), length_);
        TRY(Tensor whole, Tensor::empty(t->dtype, std::move(sizes)));
        rows_.push_back(std::move(whole));
      }
      if (k >= rows_.size()) return malformed(c, "has a body whose number of results changes");
      const Tensor target = row(rows_[k], i);
      if (target.sizes != t->sizes || target.dtype != t->dtype)
        return malformed(c, "has a body whose result sizes change");
      target.copy_from(*t);
    }
    return {};
  }
  void append_to(ValueList& list) {
    for (Tensor& t : rows_) list.emplace_back(std::move(t));
  }

 private:
  std::int64_t length_;
  std::vector<Tensor> rows_;
};

/// Copies results that lie in the memory of an operand: what is written to them later must not reach it.
Status take_own_memory(ValueList& results, const ValueList& operands) {
  for (Value& result : results) {
    auto* t = std::get_if<Tensor>(&result.v);
    const bool shared = t && std::ranges::any_of(operands, [&](const Value& operand) {
                          const auto* other = operand.get<Tensor>();
                          return other && other->storage == t->storage;
                        });
    if (shared) {
      TRY(*t, t->clone());
    }
  }
  return {};
}

Result<Value> cond(const ControlCall& c) {
  if (c.node.args().size() < 3) return malformed(c, "takes a condition and two graphs");
  TRY(const Value condition, c.value_of(c.node.args()[0]));
  TRY(const bool taken, truth(c, condition));
  TRY(const Graph* branch, graph_argument(c, taken ? 1 : 2));
  TRY(ValueList operands, list_argument(c, 3, true));
  TRY(ValueList results, c.run(*branch, operands));
  TRY_DO(take_own_memory(results, operands));
  return Value(std::move(results));
}

Result<Value> while_loop(const ControlCall& c) {
  TRY(const Graph* condition, graph_argument(c, 0));
  TRY(const Graph* body, graph_argument(c, 1));
  TRY(ValueList carried, list_argument(c, 2));
  TRY(ValueList additional, list_argument(c, 3, true));
  const std::size_t width = carried.size();
  ValueList operands = carried;
  operands.insert(operands.end(), additional.begin(), additional.end());
  for (;;) {
    ValueList inputs = carried;
    inputs.insert(inputs.end(), additional.begin(), additional.end());
    TRY(const ValueList answer, c.run(*condition, inputs));
    if (answer.size() != 1) return malformed(c, "has a condition graph that does not return one value");
    TRY(const bool again, truth(c, answer[0]));
    if (!again) {
      TRY_DO(take_own_memory(carried, operands));
      return Value(std::move(carried));
    }
    TRY(carried, c.run(*body, std::move(inputs)));
    if (carried.size() != width)
      return malformed(c, "has a body that returns a number of values other than it carries");
  }
}

/// scan, or map_impl, which carries nothing from one row to the next.
Result<Value> scan(const ControlCall& c, bool carries) {
  const std::size_t first = carries ? 2 : 1;
  ValueList carry;
  TRY(const Graph* body, graph_argument(c, 0));
  if (carries) {
    TRY(carry, list_argument(c, 1));
  }
  TRY(const ValueList xs, list_argument(c, first));
  TRY(const ValueList rest, list_argument(c, first + 1, carries));
  TRY(const std::int64_t length, common_length(c, xs));
  ValueList operands = carry;
  for (const ValueList* list : {&xs, &rest}) operands.insert(operands.end(), list->begin(), list->end());
  Stack stack(length);
  for (std::int64_t i = 0; i < length; ++i) {
    ValueList inputs = carry;
    for (const Value& x : xs) inputs.emplace_back(row(*x.get<Tensor>(), i));
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    TRY(const ValueList results, c.run(*body, std::move(inputs)));
    if (results.size() < carry.size()) return malformed(c, "has a body that returns fewer values than it carries");
    const std::size_t width = carry.size();
    carry.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(width));
    TRY_DO(stack.put(c, i, std::span(results).subspan(width)));
  }
  TRY_DO(take_own_memory(carry, operands));
  stack.append_to(carry);
  return Value(std::move(carry));
}

/// Calls the graph at argument `graph_at` with the arguments from `operands_at` on.
Result<Value> call_graph(const ControlCall& c, std::size_t graph_at, std::size_t operands_at) {
  TRY(const Graph* body, graph_argument(c, graph_at));
  const bool listed = !find_control(c.node.op())->operands.empty();
  TRY(ValueList operands, listed ? list_argument(c, operands_at) : arguments_from(c, operands_at));
  TRY(ValueList results, c.run(*body, std::move(operands)));
  // A module may return one value that is not in a tuple.
  const Node* output = body->output();
  if (output && output->args()[0].node() && !results.empty()) return std::move(results[0]);
  return Value(std::move(results));
}
/// autograd_function_apply(forward, backward, *operands). The forward returns its results and what it saves.
Result<Value> autograd_function(const ControlCall& c) {
  TRY(const Graph* forward, graph_argument(c, 0));
  TRY(ValueList operands, arguments_from(c, 2));
  // Earlier PyTorch gives the context first.
  if (forward->placeholders().size() == operands.size() + 1) operands.insert(operands.begin(), Value());
  TRY(ValueList results, c.run(*forward, std::move(operands)));
  TRY(const AutogradResults its, autograd_results(c.node, *forward));
  results.resize(std::min(results.size(), its.count));
  return its.single && !results.empty() ? std::move(results[0]) : Value(std::move(results));
}
/// with_effects(token, op, *args, **kwargs) runs the call and returns (token, *results).
Result<Value> with_effects(const ControlCall& c) {
  const Args& args = c.node.args();
  const ArgName* name = args.size() > 1 ? args[1].get<ArgName>() : nullptr;
  constexpr std::string_view prefix = "torch.ops.";
  if (!name || !name->text.starts_with(prefix)) return malformed(c, "takes a token and an operator");
  TRY(ValueList values, arguments_from(c, 2));
  std::vector<std::pair<std::string, Value>> named;
  for (const auto& [key, arg] : c.node.kwargs()) {
    TRY(Value v, c.value_of(arg));
    named.emplace_back(key, std::move(v));
  }
  ValueList results;
  TRY(results.emplace_back(), c.value_of(args[0]));
  TRY(Value result, evaluate(Op::torch(std::string_view(name->text).substr(prefix.size())), std::move(values),
                             std::move(named), c.context, &c.node));
  if (auto* list = result.get<ValueList>())
    results.insert(results.end(), list->begin(), list->end());
  else if (!result.is_none())
    results.push_back(std::move(result));
  return Value(std::move(results));
}

}  // namespace

Result<Value> run_control(const ControlCall& call) {
  switch (find_control(call.node.op())->kind) {
    case Control::Cond:
      return cond(call);
    case Control::WhileLoop:
      return while_loop(call);
    case Control::Map:
      return scan(call, false);
    case Control::Scan:
      return scan(call, true);
    case Control::Wrapper:
    case Control::Checkpoint:
      return call_graph(call, 0, 1);
    case Control::GradMode:
      return call_graph(call, 1, 2);
    case Control::Autocast:  // with_aten_calls() inlines it
      return malformed(call, "was not inlined");
    case Control::InvokeSubgraph:
      return call_graph(call, 0, 2);
    case Control::AutogradFunction:
      return autograd_function(call);
    case Control::CustomBackward: {
      TRY(ValueList results, list_argument(call, 1));
      return Value(std::move(results));
    }
    case Control::WithEffects:
      return with_effects(call);
    case Control::Kernel:
    case Control::FunctionalKernel:
      return kernel_without_code(call.node);
  }
  return malformed(call, "is no control operator");
}

}  // namespace partita
