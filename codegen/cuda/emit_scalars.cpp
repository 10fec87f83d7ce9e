// Writes values: operations by the CUDA column of scalar_ops.def, casts, loads, and what is checked at run time.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"
#include "core/base/check.h"

namespace partita::codegen {

using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;

namespace {

constexpr std::size_t longest = 90;  // of an expression without a name

/// A row of scalar_ops.def: its name, and what its CUDA column says.
struct ScalarRow {
  std::string_view name, cuda;
  int arity;
};
constexpr ScalarRow scalar_rows[] = {
#define SCALAR_OP(name, arity, result, weight, evaluation, cuda, ...) {#name, #cuda, arity},
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
};

/// Operators of two operands that columns consist of.
struct Operator {
  std::string_view text;
  Expression::Level level;
};
constexpr Operator operators[] = {{"+", Expression::Sum},       {"-", Expression::Sum},
                                  {"*", Expression::Product},   {"==", Expression::Equality},
                                  {"!=", Expression::Equality}, {"<", Expression::Relation},
                                  {"<=", Expression::Relation}, {"&", Expression::BitAnd},
                                  {"|", Expression::BitOr},     {"^", Expression::BitXor}};

bool is_real(DType t) {
  return t == DType::Float32 || t == DType::Float64;
}

Expression binary(std::string_view text, Expression::Level level, const Expression& x, const Expression& y) {
  const auto below = static_cast<Expression::Level>(level - 1);
  return {fmt::format("{} {} {}", x.as(level), text, y.as(below)), level};
}

Expression call(std::string_view function, const std::vector<Expression>& operands) {
  std::string out = std::string(function) + "(";
  for (std::size_t i = 0; i < operands.size(); ++i) out += (i ? ", " : "") + operands[i].text;
  return {out + ")"};
}

std::string real_text(double v, bool single) {
  std::string text = single ? fmt::format("{}", static_cast<float>(v)) : fmt::format("{}", v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + (single ? "f" : "");
}

/// Of the parts of a complex number.
DType part_of(DType dtype) {
  return dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
}

/// A real or complex number as a complex one.
Expression to_complex(const Expression& v, DType to) {
  return call(fmt::format("to_complex<{}>", cuda_type(part_of(to))), {v});
}

}  // namespace

std::string_view cuda_type(DType dtype) {
  static constexpr std::pair<DType, std::string_view> types[] = {{DType::Bool, "bool"},
                                                                 {DType::UInt8, "unsigned char"},
                                                                 {DType::Int8, "signed char"},
                                                                 {DType::UInt16, "unsigned short"},
                                                                 {DType::Int16, "short"},
                                                                 {DType::UInt32, "unsigned int"},
                                                                 {DType::Int32, "int"},
                                                                 {DType::UInt64, "unsigned long long"},
                                                                 {DType::Int64, "long long"},
                                                                 {DType::Float16, "Half"},
                                                                 {DType::BFloat16, "BFloat16"},
                                                                 {DType::Float32, "float"},
                                                                 {DType::Float64, "double"},
                                                                 {DType::Complex64, "Complex<float>"},
                                                                 {DType::Complex128, "Complex<double>"}};
  const auto* const found = std::ranges::find(types, dtype, &std::pair<DType, std::string_view>::first);
  CHECK(found != std::end(types), "a dtype without a CUDA type");
  return found->second;
}

std::string_view cuda_memory_type(DType dtype) {
  return dtype == DType::Bool ? "unsigned char" : cuda_type(dtype);
}

Expression cuda_constant(DType dtype, double real, std::int64_t integer) {
  if (is_complex(dtype)) return to_complex(cuda_constant(part_of(dtype), real, integer), dtype);
  if (dtype == DType::Bool) return {integer ? "true" : "false"};
  if (is_floating(dtype)) {
    const bool single = dtype != DType::Float64;
    const bool negative = std::signbit(real);
    const std::string type = single ? "" : "(double)";  // of these two, which are floats
    std::string text = std::isnan(real)   ? type + "NAN"
                       : std::isinf(real) ? type + "INFINITY"
                                          : real_text(std::fabs(real), single);
    const Expression magnitude{negative && !std::isnan(real) ? "-" + text : text,
                               negative || text.starts_with('(') ? Expression::Unary : Expression::Primary};
    if (dtype == DType::Float16) return call("to_half", {magnitude});
    if (dtype == DType::BFloat16) return call("to_bfloat16", {magnitude});
    return magnitude;
  }
  const auto bits = static_cast<std::uint64_t>(integer);
  switch (dtype) {
    case DType::UInt64:
      return {fmt::format("{}ULL", bits)};
    case DType::UInt32:
      return {fmt::format("{}u", static_cast<std::uint32_t>(bits))};
    case DType::Int64:
      if (integer == INT64_MIN) return {"(-9223372036854775807LL - 1)"};
      return {fmt::format("{}LL", integer), integer < 0 ? Expression::Unary : Expression::Primary};
    case DType::Int32:
      if (integer == INT32_MIN) return {"(-2147483647 - 1)"};
      return {fmt::format("{}", integer), integer < 0 ? Expression::Unary : Expression::Primary};
    default:
      return {fmt::format("({}){}", cuda_type(dtype), integer), Expression::Unary};
  }
}

Expression cuda_cast(const Expression& v, DType from, DType to) {
  if (from == to) return v;
  if (is_complex(from) && is_complex(to)) return to_complex(v, to);
  if (is_complex(to)) return to_complex(cuda_cast(v, from, part_of(to)), to);
  if (is_complex(from) && to == DType::Bool)
    return binary("!=", Expression::Equality, v, {std::string(cuda_type(from)) + "()"});
  if (is_complex(from)) return cuda_cast({v.as(Expression::Primary) + ".re"}, part_of(from), to);
  if (from == DType::Float16 || from == DType::BFloat16) return cuda_cast(call("to_float", {v}), DType::Float32, to);
  if (to == DType::Float16 || to == DType::BFloat16)
    return call(to == DType::Float16 ? "to_half" : "to_bfloat16", {cuda_cast(v, from, DType::Float32)});
  if (to == DType::Bool) return {v.as(Expression::Equality) + " != 0", Expression::Equality};
  if (is_real(from) && !is_real(to)) return call(fmt::format("to_integer<{}>", cuda_type(to)), {v});
  return {fmt::format("({}){}", cuda_type(to), v.as(Expression::Unary)), Expression::Unary};
}

Expression cuda_operation(ScalarOp op, DType dtype, const std::vector<Expression>& operands) {
  const ScalarRow& row = scalar_rows[static_cast<std::size_t>(op)];
  const bool real = is_real(dtype);
  if (row.cuda == "a") return is_complex(dtype) ? call("conjugate", operands) : operands[0];
  const auto is_operand = [&](std::string_view text, std::string_view name) {
    return text == name || (real && text.size() == name.size() + 9 && text.starts_with("wrapped(") &&
                            text.substr(8, name.size()) == name);
  };
  if (row.arity == 1 && row.cuda.starts_with("-") && is_operand(row.cuda.substr(1), "a"))
    return {"-" + operands[0].as(Expression::Primary), Expression::Unary};
  if (row.arity == 2) {
    if (real && row.cuda == "quotient(a, b)") return binary("/", Expression::Product, operands[0], operands[1]);
    const std::size_t first = row.cuda.find(' '), last = row.cuda.rfind(' ');
    for (const Operator& o : operators) {
      if (first == last || row.cuda.substr(first + 1, last - first - 1) != o.text) continue;
      if (!is_operand(row.cuda.substr(0, first), "a") || !is_operand(row.cuda.substr(last + 1), "b")) continue;
      const bool compares = o.level == Expression::Relation || o.level == Expression::Equality;
      // Integers of less than 32 bits would become int.
      if (real || compares || itemsize(dtype) >= 4) return binary(o.text, o.level, operands[0], operands[1]);
    }
  }
  // A column that is a call of its operands names the function; others are called by the name of the row.
  const std::size_t bracket = row.cuda.find('(');
  constexpr std::string_view lists[] = {"(a)", "(a, b)", "(a, b, c)"};
  const bool is_call = bracket != std::string_view::npos && bracket > 0 &&
                       row.cuda.substr(bracket) == lists[static_cast<std::size_t>(row.arity) - 1] &&
                       row.cuda.substr(0, bracket).find_first_of(" -<>=!&|") == std::string_view::npos;
  return call(is_call ? row.cuda.substr(0, bracket) : row.name, operands);
}

/// Does computing it report a fault? Such a value is computed even where a Where does not take it.
bool CudaEmitter::has_fault(const ScalarNode& n) const {
  if (n.op == ScalarOp::Within) return true;
  if (n.op != ScalarOp::Div && n.op != ScalarOp::FloorDiv && n.op != ScalarOp::Fmod && n.op != ScalarOp::Remainder)
    return false;
  const ScalarNode& divisor = kernel_.scalars[n.args[1]];
  return !is_floating(n.dtype) && !is_complex(n.dtype) && (divisor.op != ScalarOp::Const || divisor.integer == 0);
}

/// The graph node whose value a buffer holds.
std::string CudaEmitter::graph_name(int buffer) const {
  const std::string& name = buffer_names_[static_cast<std::size_t>(buffer)];
  return name.substr(name.find('_') + 1);
}

/// A name that says what the value is: the graph node for which it was computed, and how; or from where it was loaded.
std::string CudaEmitter::name_for(Scalar s, const ScalarNode& n) {
  if (n.op == ScalarOp::Load) return fresh(graph_name(n.slot));
  if (n.op == ScalarOp::Cast && kernel_.scalars[n.args[0]].op == ScalarOp::Load)
    return fresh(fmt::format("{}_{}", graph_name(kernel_.scalars[n.args[0]].slot), short_name(n.dtype)));
  std::string word(loops::name(n.op));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const int source = kernel_.scalars.sources()[static_cast<std::size_t>(s.id)];
  if (source < 0) return fresh(word);
  const std::string node = identifier(kernel_.origins[static_cast<std::size_t>(source)]);
  return fresh(node.starts_with(word) ? node : fmt::format("{}_{}", node, word));
}

Expression CudaEmitter::value(Scalar s) {
  const ScalarNode& n = kernel_.scalars[s];
  if (n.op == ScalarOp::Const) return cuda_constant(n.dtype, n.real, n.integer);
  if (n.op == ScalarOp::Input) return {accumulator_names_[static_cast<std::size_t>(n.slot)]};
  const std::size_t at = depth(s);
  if (const auto known = scopes_[at].names.find(s.id); known != scopes_[at].names.end()) return {known->second};
  const std::size_t here = current_;
  current_ = at;
  from_pack_ = false;
  Expression v = compute(n);
  const int source = kernel_.scalars.sources()[static_cast<std::size_t>(s.id)];
  if (source >= 0 && n.op != ScalarOp::Index) met_.insert(source);
  const bool is_name = n.op == ScalarOp::Load
                           ? from_pack_ && n.dtype != DType::Bool
                           : v.level == Expression::Primary && v.text.find_first_of("([") == std::string::npos;
  const bool often = uses_[static_cast<std::size_t>(s.id)] > 1;
  if (!is_name && (at != here || often || has_fault(n) || v.text.size() > longest)) {
    const std::string name = name_for(s, n);
    line(fmt::format("const {} {} = {};", cuda_type(n.dtype), name, v.text));
    scopes_[at].names[s.id] = name;
    v = {name};
  }
  current_ = here;
  return v;
}

Expression CudaEmitter::compute(const ScalarNode& n) {
  switch (n.op) {
    case ScalarOp::Load: {
      const auto in_lane = lane_load(n.slot, n.index, n.args[0].id >= 0);
      from_pack_ = in_lane.has_value();
      const std::string at = in_lane ? *in_lane : element(n.slot, n.index, n.args[0]);
      if (n.dtype == DType::Bool) return {at + " != 0", Expression::Equality};
      return {at};
    }
    case ScalarOp::Index: {
      const Expression e = index(n.index);
      return narrow_ ? Expression{"(long long)" + e.as(Expression::Unary), Expression::Unary} : e;
    }
    case ScalarOp::Where: {
      const Expression condition = value(n.args[0]), yes = value(n.args[1]), no = value(n.args[2]);
      return {fmt::format("{} ? {} : {}", condition.as(Expression::Or), yes.as(Expression::Or),
                          no.as(Expression::Conditional)),
              Expression::Conditional};
    }
    case ScalarOp::Cast: {
      // An index is an int or a long long in the text, so its cast differs.
      const ScalarNode& from = kernel_.scalars[n.args[0]];
      if (from.op == ScalarOp::Index) return cuda_cast(index(from.index), DType::Int64, n.dtype);
      return cuda_cast(value(n.args[0]), from.dtype, n.dtype);
    }
    case ScalarOp::Bitcast:
      return call(fmt::format("bitcast<{}>", cuda_type(n.dtype)), {value(n.args[0])});
    case ScalarOp::Within:
      return call("within", {value(n.args[0]), index(n.index), {"fault"}, {fmt::format("{}", n.slot)}});
    default: {
      std::vector<Expression> operands;
      for (const Scalar a : n.args)
        if (a.id >= 0) operands.push_back(value(a));
      if (has_fault(n)) operands[1] = call("nonzero", {operands[1], {"fault"}});
      return cuda_operation(n.op, kernel_.scalars.dtype(n.args[0]), operands);
    }
  }
}

std::string CudaEmitter::element(int buffer, SymExpr e, Scalar computed) {
  const std::string& name = buffer_names_[static_cast<std::size_t>(buffer)];
  Expression at = index(e);
  if (computed.id >= 0) {
    const Expression more = value(computed);
    at = e.is(0) ? more : binary("+", Expression::Sum, more, at);
  }
  return fmt::format("{}[{}]", name, at.text);
}

}  // namespace partita::codegen
