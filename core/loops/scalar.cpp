#include "core/loops/scalar.h"

#include <bit>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/tensor/convert.h"
#include "core/tensor/dtype_dispatch.h"

namespace partita::loops {
namespace {

struct Row {
  std::string_view name;
  int arity;
  bool is_bool;
  int weight;
};
constexpr bool Same = false;
constexpr bool Bool = true;
constexpr Row rows[] = {
#define SCALAR_OP(name, arity, result, weight, ...) {#name, arity, result, weight},
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
    {"Const", 0, false, 0}, {"Input", 0, false, 0}, {"Index", 0, false, 0},   {"Load", 0, false, 0},
    {"Where", 3, false, 1}, {"Cast", 1, false, 1},  {"Bitcast", 1, false, 0}, {"Within", 1, false, 1}};

/// Stores a constant as a tensor of its dtype would hold it: rounded, or wrapped around, or true for anything but zero.
void hold(ScalarNode& n, auto value) {
  if (n.dtype == DType::Float64 || is_complex(n.dtype) || (is_floating(n.dtype) && itemsize(n.dtype) == 1)) {
    n.real = static_cast<double>(value);
    return;
  }
  dispatch(n.dtype, [&]<class T>() {
    if (is_floating(n.dtype))
      n.real = convert<double>(convert<T>(value));
    else
      n.integer = convert<std::int64_t>(convert<T>(value));
  });
}

std::uint64_t hash(const ScalarNode& n) {
  std::uint64_t h = hash_combine(static_cast<std::uint64_t>(n.op), static_cast<std::uint64_t>(n.dtype));
  for (Scalar a : n.args) h = hash_combine(h, static_cast<std::uint32_t>(a.id));
  h = hash_combine(h, static_cast<std::uint64_t>(n.slot));
  h = hash_combine(h, std::bit_cast<std::uint64_t>(n.real));
  h = hash_combine(h, static_cast<std::uint64_t>(n.integer));
  return hash_combine(h, n.index.hash());
}

}  // namespace

bool ScalarNode::operator==(const ScalarNode& o) const {
  return op == o.op && dtype == o.dtype && args[0] == o.args[0] && args[1] == o.args[1] && args[2] == o.args[2] &&
         slot == o.slot && std::bit_cast<std::uint64_t>(real) == std::bit_cast<std::uint64_t>(o.real) &&
         integer == o.integer && index == o.index;
}

int arity(ScalarOp op) {
  return rows[static_cast<std::size_t>(op)].arity;
}
std::string_view name(ScalarOp op) {
  return rows[static_cast<std::size_t>(op)].name;
}
int weight(ScalarOp op) {
  return rows[static_cast<std::size_t>(op)].weight;
}
bool is_elementary(ScalarOp op) {
  return weight(op) >= 12 && op != ScalarOp::Pow;
}

Scalar ScalarBuilder::intern(ScalarNode node) {
  std::uint64_t h = hash(node);
  auto [first, last] = table_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (nodes_[static_cast<std::size_t>(it->second)] == node) return {it->second};
  auto id = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back(node);
  sources_.push_back(source);
  table_.emplace(h, id);
  return {id};
}

Scalar ScalarBuilder::input(int slot, DType dtype) {
  return intern({.op = ScalarOp::Input, .dtype = dtype, .args = {}, .slot = slot});
}

Scalar ScalarBuilder::constant(DType dtype, double value) {
  ScalarNode n{ScalarOp::Const, dtype, {}};
  hold(n, value);
  return intern(n);
}

Scalar ScalarBuilder::constant_int(DType dtype, std::int64_t value) {
  if (is_floating(dtype) || is_complex(dtype)) return constant(dtype, static_cast<double>(value));
  ScalarNode n{ScalarOp::Const, dtype, {}};
  hold(n, value);
  return intern(n);
}

Scalar ScalarBuilder::index(SymExpr e) {
  if (e.is_int()) return constant_int(DType::Int64, e.as_int());
  return intern({.op = ScalarOp::Index, .dtype = DType::Int64, .args = {}, .index = e});
}

Scalar ScalarBuilder::count(DType dtype, SymExpr n) {
  return n.is_int() ? constant(dtype, static_cast<double>(n.as_int())) : cast(index(n), dtype);
}

Scalar ScalarBuilder::load(int buffer, SymExpr element, DType dtype) {
  return load_at(buffer, {}, dtype, element);
}

Scalar ScalarBuilder::cast(Scalar a, DType dtype) {
  const ScalarNode& from = (*this)[a];
  if (from.dtype == dtype) return a;
  if (from.op == ScalarOp::Const && from.dtype != DType::Complex64 && from.dtype != DType::Complex128) {
    bool was_real = is_floating(from.dtype);
    if (was_real && (dtype == DType::Float32 || dtype == DType::Float64)) return constant(dtype, from.real);
    if (!was_real && (dtype == DType::Float64 || dtype == DType::Float32))
      return constant(dtype, static_cast<double>(from.integer));
  }
  return intern({ScalarOp::Cast, dtype, {a}});
}

Scalar ScalarBuilder::bitcast(Scalar a, DType dtype) {
  CHECK(itemsize(this->dtype(a)) == itemsize(dtype));
  if (this->dtype(a) == dtype) return a;
  return intern({ScalarOp::Bitcast, dtype, {a}});
}

Scalar ScalarBuilder::where(Scalar condition, Scalar a, Scalar b) {
  CHECK(dtype(condition) == DType::Bool && dtype(a) == dtype(b));
  if (a == b) return a;
  if ((*this)[condition].op == ScalarOp::Const) return (*this)[condition].integer ? a : b;
  return intern({ScalarOp::Where, dtype(a), {condition, a, b}});
}

Scalar ScalarBuilder::within(Scalar position, const Bound& bound) {
  CHECK(dtype(position) == DType::Int64);
  const ScalarNode& known = (*this)[position];
  if (known.op == ScalarOp::Const && known.integer >= 0 && bound.size.is_int() && known.integer < bound.size.as_int())
    return position;
  // An equal check serves both, even if it names another node.
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].op == ScalarOp::Within && nodes_[i].args[0] == position && nodes_[i].index == bound.size)
      return {static_cast<std::int32_t>(i)};
  bounds_.push_back(bound);
  return intern({.op = ScalarOp::Within,
                 .dtype = DType::Int64,
                 .args = {position},
                 .slot = static_cast<int>(bounds_.size()) - 1,
                 .index = bound.size});
}

Scalar ScalarBuilder::make(ScalarOp op, Scalar a, Scalar b, Scalar c) {
  const Row& row = rows[static_cast<std::size_t>(op)];
  CHECK(op < ScalarOp::Const, std::string(row.name));
  const Scalar args[3] = {a, b, c};
  for (int i = 0; i < 3; ++i)
    CHECK((args[i].id >= 0) == (i < row.arity), std::string(row.name) + ": wrong argument count");
  for (int i = 1; i < row.arity; ++i)
    CHECK(dtype(args[i]) == dtype(a), std::string(row.name) + ": arguments of different dtypes");
  return intern({op, row.is_bool ? DType::Bool : dtype(a), {a, b, c}});
}

Diagnostic out_of_bounds(const Bound& bound, std::int64_t position) {
  const std::int64_t size = bound.size.as_int(), given = bound.wraps && position < 0 ? position - size : position;
  return input_error("ops.arguments", fmt::format(fmt::runtime(bound.space), given, size), {.node = bound.node});
}

}  // namespace partita::loops
