#include "core/ops/record/evaluate.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/loops/evaluate_lowered.h"
#include "core/ops/record/lower_call.h"
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

Result<Value> evaluate_by_decomposition(const Schema& schema, Arg (*decompose)(DecomposeCall&),
                                        std::vector<Value> bound, const EvalContext& context, const Node* node) {
  Graph graph("decomposition");
  std::unordered_map<const Node*, Value> held;
  Args args;
  for (const Value& v : bound) args.push_back(as_arg(v, graph, &held));
  Builder build(graph, nullptr);
  DecomposeCall call(schema, std::move(args), build);
  Result<Arg> result = catch_raised<Arg>([&] { return decompose(call); });
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

Value as_promised(Value value, const Meta& promised) {
  if (auto* list = std::get_if<ValueList>(&value.v)) {
    const MetaTuple* metas = promised.tuple();
    for (std::size_t i = 0; metas && i < list->size() && i < metas->items.size(); ++i)
      (*list)[i] = as_promised(std::move((*list)[i]), metas->items[i]);
    return value;
  }
  const TensorMeta* meta = promised.tensor();
  const Tensor* t = value.get<Tensor>();
  if (t && !t->storage) return {};
  const auto sizes = meta ? concrete(meta->sizes) : std::nullopt;
  if (!t || !sizes || t->numel() != numel(*sizes)) return value;
  const auto strides = concrete(meta->strides);
  if (!strides || (t->dtype == meta->dtype && t->sizes == *sizes && t->strides == *strides)) return value;
  Tensor out = empty_of(*meta);
  out.copy_from(t->sizes == *sizes ? *t : t->view_as(*sizes, row_major_strides(*sizes), t->offset));
  return out;
}

namespace {

/// The same with double in the place of single precision.
Meta in_double(Meta meta) {
  if (auto* tuple = std::get_if<MetaTuple>(&meta.v))
    for (Meta& item : tuple->items) item = in_double(std::move(item));
  else if (auto* t = std::get_if<TensorMeta>(&meta.v); t && t->dtype == DType::Float32)
    t->dtype = DType::Float64;
  return meta;
}

/// The loops of a call, over its values.
struct LoopsOfCall {
  Graph graph{"loops"};
  std::unordered_map<const Node*, Value> held;
  Node* node;
  Meta promised;  ///< of the results
  loops::Lowering lowering;
  std::map<int, Tensor> memory;  ///< by definition
  std::vector<loops::LoweredTensor> results;

  /// If `widened`, all of single precision is computed in double.
  LoopsOfCall(const OpRecord& record, const EvalCall& call, bool widened) {
    Args args;
    for (const Value& v : call.args) args.push_back(as_arg(v, graph, &held));
    FakeCall metas(call.schema, args, *graph.shapes);
    promised = record.fake(metas);
    node = graph.create(Op::torch(call.schema.name), args);
    node->meta = widened ? in_double(promised) : promised;
    if (widened)
      for (Node* input : graph.placeholders()) input->meta = in_double(input->meta);
    loops::LowerCall lower(call.schema, std::move(args), *node, lowering, [&](const Node* input) {
      const TensorMeta& meta = *input->meta.tensor();
      const loops::LoweredTensor made = lowering.memory(meta.dtype, meta.sizes);
      const Tensor& t = *held.at(input).get<Tensor>();
      memory.emplace(made.id, t.dtype == meta.dtype ? t : unwrap(t.to(meta.dtype)));
      return made;
    });
    lower.evaluates = true;
    record.lower(lower);
    results = std::move(lower.results);
  }

  bool sums_single_precision() const {
    for (int i = 0; i < lowering.size(); ++i) {
      const loops::Definition& d = lowering[i];
      const bool rounds = d.combine == loops::ScalarOp::Add || d.combine == loops::ScalarOp::Mul;
      if (d.kind == loops::Definition::Kind::Reduce && rounds && d.dtype == DType::Float32) return true;
    }
    return false;
  }

  Value run() {
    const MetaTuple* tuple = promised.tuple();
    ValueList values(results.size());
    std::vector<Tensor> computed(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      if (results[i].valid()) computed[i] = empty_of(*(tuple ? node->meta.tuple()->items.at(i) : node->meta).tensor());
    unwrap(loops::evaluate(lowering, std::move(memory), results, computed));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = computed[i];
    return as_promised(tuple ? Value(std::move(values)) : values[0], promised);
  }
};

}  // namespace

/// What sums single precision is computed in double, and rounded once.
Value eval_by_loops(EvalCall& call) {
  const OpRecord& record = *ops().find(Op::torch(call.schema.name));
  LoopsOfCall plain(record, call, false);
  return plain.sums_single_precision() ? LoopsOfCall(record, call, true).run() : plain.run();
}

Value eval_by_compile_decomposition(EvalCall& call) {
  const OpRecord& record = *ops().find(Op::torch(call.schema.name));
  return unwrap(evaluate_by_decomposition(call.schema, record.compile_decompose, call.args, call.context, nullptr));
}

}  // namespace partita
