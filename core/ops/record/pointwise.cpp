#include "core/ops/record/pointwise.h"

#include "core/loops/scalar_eval.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

using loops::Scalar;
using loops::ScalarBuilder;
using loops::ScalarOp;

const SymExpr* expression_of(const Arg& arg) {
  return arg.node() ? arg.node()->meta.sym() : nullptr;
}

/// A symbolic number in double precision, as Python computes it; nullopt for what only values decide.
std::optional<Scalar> real_number(ScalarBuilder& b, SymExpr e) {
  if (!e.is_float()) return b.cast(b.index(e), DType::Float64);
  if (e.kind() == SymKind::Float) return b.constant(DType::Float64, e.as_float());
  const auto of_first = [&](ScalarOp op) -> std::optional<Scalar> {
    const auto value = real_number(b, e.args()[0]);
    return value ? std::optional(b.make(op, *value)) : std::nullopt;
  };
  constexpr std::pair<std::string_view, ScalarOp> functions[] = {{"Abs", ScalarOp::Abs},
                                                                 {"OpaqueUnaryFn_sqrt", ScalarOp::Sqrt},
                                                                 {"OpaqueUnaryFn_exp", ScalarOp::Exp},
                                                                 {"OpaqueUnaryFn_log", ScalarOp::Log},
                                                                 {"OpaqueUnaryFn_sin", ScalarOp::Sin},
                                                                 {"OpaqueUnaryFn_cos", ScalarOp::Cos},
                                                                 {"OpaqueUnaryFn_tanh", ScalarOp::Tanh}};
  ScalarOp op = ScalarOp::Mul;
  switch (e.kind()) {
    case SymKind::Symbol:
      return b.bitcast(b.index(e), DType::Float64);  // kernels take a float's bits
    case SymKind::Call:
      if (e.name() == "ToFloat") return real_number(b, e.args()[0]);
      for (const auto& [name, function] : functions)
        if (e.name() == name) return of_first(function);
      return std::nullopt;
    case SymKind::Pow:
      if (e.args()[1] == SymExpr::real(0.5)) return of_first(ScalarOp::Sqrt);
      op = ScalarOp::Pow;
      break;
    case SymKind::TrueDiv:
      op = ScalarOp::Div;
      break;
    case SymKind::Add:
      op = ScalarOp::Add;
      break;
    case SymKind::Mul:
      break;
    default:
      return std::nullopt;
  }
  std::optional<Scalar> sum;
  for (const SymExpr each : e.args()) {
    const auto value = real_number(b, each);
    if (!value) return std::nullopt;
    sum = sum ? b.make(op, *sum, *value) : *value;
  }
  return sum;
}

Scalar number_value(ScalarBuilder& b, const FakeCall& call, std::string_view name, DType dtype) {
  const SymExpr* e = expression_of(call.arg(name));
  if (e && e->is_float() && e->kind() != SymKind::Float) {
    const auto value = real_number(b, *e);
    if (!value) fail_unsupported("the number " + e->str() + " in loops");
    return b.cast(*value, dtype);
  }
  if (e && !e->is_float() && !e->is_int()) return b.cast(b.index(*e), dtype);
  return number_constant(b, call.number(name), dtype);
}

}  // namespace

Scalar number_constant(ScalarBuilder& b, const Number& n, DType dtype) {
  if (auto* i = std::get_if<std::int64_t>(&n); i && (is_integral(dtype) || dtype == DType::Bool))
    return b.constant_int(dtype, dtype == DType::Bool ? *i != 0 : *i);
  if (auto* flag = std::get_if<bool>(&n); flag && (is_integral(dtype) || dtype == DType::Bool))
    return b.constant_int(dtype, *flag);
  if (auto* c = std::get_if<std::complex<double>>(&n); c && c->imag() != 0) {
    if (dtype == DType::Bool) return b.constant_int(dtype, true);
    if (!is_complex(dtype)) fail("a complex number cannot be combined with real operands");
    Scalar i = b.make(ScalarOp::Sqrt, b.constant(dtype, -1));  // constants of scalar bodies are real
    return b.make(ScalarOp::Add, b.constant(dtype, c->real()), b.make(ScalarOp::Mul, b.constant(dtype, c->imag()), i));
  }
  return b.constant(dtype, as_double(n));
}

Scalar constant(ScalarBuilder& b, const FakeCall& call, std::string_view name, Scalar like) {
  return number_value(b, call, name, b.dtype(like));
}

std::vector<std::string_view> pointwise_inputs(const OpRecord& record) {
  if (!record.pointwise.inputs.empty()) return record.pointwise.inputs;
  std::vector<std::string_view> names;
  for (const SchemaArg& a : record.schema->args)
    if (!a.keyword_only && !a.is_list && (a.type == SchemaType::Tensor || a.type == SchemaType::Scalar))
      names.push_back(a.name);
  return names;
}

Promoted pointwise_dtypes(const OpRecord& record, const FakeCall& call) {
  std::vector<Operand> operands;
  for (std::string_view name : pointwise_inputs(record)) {
    if (!call.has(name)) continue;
    if (call.is_tensor(name))
      operands.push_back(Operand::of(call.tensor(name)));
    else
      operands.push_back({call.dtype_of_number(name), Operand::Rank::Number});
  }
  const Pointwise& p = record.pointwise;
  // An operator with a fake of its own promotes by its first input only: masked_fill converts `value` to self's dtype.
  if (record.fake && p.body && operands.size() > 1) operands.resize(1);
  return promote(p.promotion_of ? p.promotion_of(call) : p.promotion, operands);
}

Meta fake_pointwise(const OpRecord& record, const FakeCall& call) {
  static const TensorMeta number;
  std::vector<const TensorMeta*> operands;
  std::vector<SymList> sizes;
  TensorMeta out;
  bool placed = false;
  std::vector<std::string_view> names = pointwise_inputs(record);
  if (!record.pointwise.condition.empty()) names.insert(names.begin(), record.pointwise.condition);
  for (std::string_view name : names) {
    if (!call.has(name)) continue;
    if (!call.is_tensor(name)) {
      operands.push_back(&number);
      continue;
    }
    const TensorMeta& t = call.tensor(name);
    operands.push_back(&t);
    sizes.push_back(t.sizes);
    // A number on the CPU goes where the others are.
    if (!placed || out.device.type == DeviceType::Cpu) out.device = t.device;
    placed = true;
  }
  out.sizes = broadcast(call, sizes);
  out.dtype = pointwise_dtypes(record, call).result;
  out.strides = record.pointwise.row_major ? strides_for(MemoryFormat::Contiguous, out.sizes)
                                           : elementwise_strides(call, out.sizes, operands);
  return out;
}

Scalar pointwise_value(const OpRecord& record, const FakeCall& call, ScalarBuilder& b, const LoadInput& load) {
  Promoted types = pointwise_dtypes(record, call);
  const bool half = types.common == DType::Float16 || types.common == DType::BFloat16;
  std::vector<Scalar> inputs;
  for (std::string_view name : pointwise_inputs(record)) {
    if (!call.has(name)) {
      inputs.push_back({});
      continue;
    }
    const bool number = !call.is_tensor(name) || call.tensor(name).dim() == 0;
    Scalar value = call.is_tensor(name) ? load(name) : number_value(b, call, name, types.compute);
    if (half && !(number && record.pointwise.exact_numbers)) value = b.cast(value, types.common);
    inputs.push_back(b.cast(value, types.compute));
  }
  if (std::string_view condition = record.pointwise.condition; !condition.empty())
    inputs.push_back(b.cast(load(condition), DType::Bool));
  return b.cast(record.pointwise.body(b, inputs, call), types.result);
}

Value eval_pointwise(const OpRecord& record, const EvalCall& call) {
  CallOfValues fake(call);
  Meta result = record.fake ? record.fake(fake.call) : fake_pointwise(record, fake.call);
  const TensorMeta& meta = *result.tensor();
  ScalarBuilder body;
  std::vector<Tensor> inputs;
  Scalar value = pointwise_value(record, fake.call, body, [&](std::string_view name) {
    inputs.push_back(call.tensor(name));
    return body.input(static_cast<int>(inputs.size()) - 1, inputs.back().dtype);
  });
  Tensor out = empty_of(meta);
  unwrap(loops::evaluate(body, {{value}}, inputs, {{out}}));
  return out;
}

}  // namespace partita
