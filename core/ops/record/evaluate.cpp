#include "core/ops/record/evaluate.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ops/record/values.h"

namespace partita {

Result<std::vector<Value>> bind_values(const Schema& schema, std::vector<Value> args,
                                       std::vector<std::pair<std::string, Value>> kwargs) {
  // bind_arguments() does the binding. It is given each value's position in `given` in place of the value, except for
  // literals that it may replace.
  Args positions;
  Kwargs named;
  std::vector<Value> given = std::move(args);
  const auto stand_in = [](const Value& value, std::size_t position) {
    if (const auto* number = value.get<std::int64_t>()) return Arg(*number);
    if (const auto* text = value.get<std::string>()) return Arg(*text);
    return value.is_none() ? Arg() : Arg(ArgName{std::to_string(position)});
  };
  for (std::size_t i = 0; i < given.size(); ++i) positions.push_back(stand_in(given[i], i));
  for (auto& [key, value] : kwargs) {
    named.emplace_back(key, stand_in(value, given.size()));
    given.push_back(std::move(value));
  }
  TRY(Args bound, bind_arguments(schema, positions, named));
  std::vector<Value> out;
  for (const Arg& a : bound) {
    if (auto* position = a.get<ArgName>())
      out.push_back(std::move(given[std::stoul(position->text)]));
    else
      out.push_back(to_value(a));
    // bind_arguments() did not see what lists hold.
    const SchemaArg& argument = schema.args[out.size() - 1];
    const auto* list = out.back().get<ValueList>();
    if (list && argument.type == SchemaType::Tensor && !argument.is_list)
      return input_error("ops.arguments",
                         fmt::format("{}: argument '{}' must be a tensor", schema.name, argument.name));
    if (list && argument.type == SchemaType::Tensor && !argument.items_optional &&
        std::ranges::any_of(*list, &Value::is_none))
      return input_error("ops.arguments",
                         fmt::format("{}: argument '{}' must not hold None", schema.name, argument.name));
  }
  return out;
}

namespace {

/// Turns a value into an argument of a scratch graph: a tensor becomes a placeholder, anything else a literal.
Arg import(const Value& value, Graph& graph, std::unordered_map<const Node*, Value>& held) {
  return std::visit(
      [&]<class T>(const T& v) -> Arg {
        if constexpr (std::is_same_v<T, Tensor>) {
          Node* n = graph.placeholder("input", meta_of(v));
          held[n] = v;
          return n;
        } else if constexpr (std::is_same_v<T, ValueList>) {
          std::vector<Arg> items;
          for (const Value& item : v) items.push_back(import(item, graph, held));
          return Arg::list(std::move(items));
        } else {
          return v;
        }
      },
      value.v);
}

Value look_up(const Arg& arg, const std::unordered_map<const Node*, Value>& held) {
  if (Node* n = arg.node()) return held.at(n);
  if (auto* list = arg.get<ArgList>()) {
    ValueList out;
    for (const Arg& a : list->items) out.push_back(look_up(a, held));
    return out;
  }
  return to_value(arg);
}

}  // namespace

Result<Value> evaluate_by_decomposition(const OpRecord& record, std::vector<Value> bound, const EvalContext& context,
                                        const Node* node) {
  Graph graph("decomposition");
  std::unordered_map<const Node*, Value> held;
  Args args;
  for (const Value& v : bound) args.push_back(import(v, graph, held));
  Builder build(graph, nullptr);
  DecomposeCall call(*record.schema, std::move(args), build);
  Result<Arg> result = catch_raised<Arg>([&] { return record.decompose(call); });
  if (!result) {
    if (node && result.error().where.node.empty()) {
      result.error().where.graph = node->graph().name;
      result.error().where.node = node->name();
    }
    return std::move(result).error();
  }
  for (Node* n : graph) {
    if (n->is_placeholder()) continue;
    std::vector<Value> values;
    std::vector<std::pair<std::string, Value>> named;
    for (const Arg& a : n->args()) values.push_back(look_up(a, held));
    for (const auto& [key, a] : n->kwargs()) named.emplace_back(key, look_up(a, held));
    TRY(held[n], evaluate(n->op(), std::move(values), std::move(named), context, node));
  }
  return look_up(*result, held);
}

}  // namespace partita
