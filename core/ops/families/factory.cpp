// Factories: full, arange, new_zeros, ones_like, ...
#include <cmath>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "core/ops/families/factory_parts.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"
#include "core/sym/integer.h"
#include "core/tensor/convert.h"

namespace partita {
namespace {
using namespace loops;

void give_constant(LowerCall& call, const Number& value) {
  DType dtype = call.out().dtype;
  if (is_complex(dtype)) fail_unsupported("complex constants in loops");
  call.give(call.to.map(dtype, call.out_sizes(), [=](Body& body, const Index&) {
    auto* whole = std::get_if<std::int64_t>(&value);
    return whole ? body.b.constant_int(dtype, *whole) : body.b.constant(dtype, as_double(value));
  }));
}

/// The expression of sizes that a number is; null for another number.
const SymExpr* size_given(const LowerCall& call, std::string_view name) {
  const Node* given = call.arg(name).node();
  const SymExpr* e = given ? given->meta.sym() : nullptr;
  return !e || e->is_int() || e->is_float() || e->is_boolean() ? nullptr : e;
}

/// A number of a range: a literal, or an expression of sizes.
struct RangeNumber {
  Number number;
  std::optional<SymExpr> size;

  RangeNumber(const LowerCall& call, std::string_view name, std::int64_t otherwise) : number(otherwise) {
    if (call.schema.index_of(name) < 0) return;
    if (const SymExpr* e = size_given(call, name))
      size = *e;
    else
      number = call.number(name);
  }
  SymExpr whole() const { return size ? *size : SymExpr(as_int(number)); }
  Scalar real(Body& body) const {
    constexpr DType wide = DType::Float64;
    return size ? body.b.cast(body.b.index(*size), wide) : body.b.constant(wide, as_double(number));
  }
};

/// start + step * i in the result's dtype. Integers are exact; floating dtypes are computed in double and rounded once.
void give_range(LowerCall& call) {
  const RangeNumber start(call, "start", 0), step(call, "step", 1);
  DType dtype = call.out().dtype;
  bool whole = !is_floating(dtype);
  call.give(call.to.map(dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    if (whole) return body.b.cast(body.scalar(i[0] * step.whole() + start.whole()), dtype);
    Scalar at = body.b.cast(body.scalar(i[0]), DType::Float64);
    return body.b.cast(body.b.Add(body.b.Mul(at, step.real(body)), start.real(body)), dtype);
  }));
}

/// Every element is the number `name`, which may be a symbol.
void give_number(LowerCall& call, std::string_view name) {
  const SymExpr* e = size_given(call, name);
  if (!e) return give_constant(call, call.number(name));
  const DType dtype = call.out().dtype;
  call.give(call.to.map(dtype, call.out_sizes(),
                        [dtype, e = *e](Body& body, const Index&) { return body.b.cast(body.b.index(e), dtype); }));
}

void lower_full(LowerCall& call) {
  give_number(call, "fill_value");
}

/// Lowers scalar_tensor(s), full_like and fill.Scalar.
void lower_full_like(LowerCall& call) {
  for (std::string_view name : {"fill_value", "value", "s"})
    if (call.schema.index_of(name) >= 0) return give_number(call, name);
  fail_unsupported("this form of a fill value");
}

void lower_zeros(LowerCall& call) {
  give_constant(call, std::int64_t{0});
}

void lower_ones(LowerCall& call) {
  give_constant(call, std::int64_t{1});
}

void lower_eye(LowerCall& call) {
  DType dtype = call.out().dtype;
  call.give(call.to.map(dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Scalar same = body.b.Eq(body.scalar(i[0]), body.scalar(i[1]));
    return body.b.where(same, body.b.constant(dtype, 1), body.b.constant(dtype, 0));
  }));
}

void lower_fill(LowerCall& call) {
  give_copy(call, "value");
}

}  // namespace

TensorMeta made(const FakeCall& call, DType otherwise, SymList sizes) {
  return TensorMeta::contiguous(call.dtype("dtype").value_or(otherwise), std::move(sizes),
                                call.device("device").value_or(Device{}));
}

TensorMeta new_meta(const FakeCall& call, DType otherwise, std::string_view size) {
  TensorMeta out = made(call, otherwise, call.syms(size));
  for (SymExpr s : out.sizes)
    if (s.is_int() && s.as_int() < 0)
      fail(fmt::format("Trying to create tensor with negative dimension {}", s.as_int()));
  if (call.schema.index_of("memory_format") >= 0 && call.memory_format("memory_format")) {
    const MemoryFormat format = *call.memory_format("memory_format");
    if (format == MemoryFormat::Preserve) fail("preserve_format needs a tensor whose format is kept");
    out.strides = strides_like(call, out, out.sizes, format);
  }
  return out;
}

Meta fake_like(FakeCall& call) {
  return like_meta(call);
}

TensorMeta like_meta(const FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  TensorMeta out = TensorMeta::contiguous(call.dtype("dtype").value_or(self.dtype), self.sizes,
                                          call.device("device").value_or(self.device));
  out.strides =
      strides_like(call, self, self.sizes, call.memory_format("memory_format").value_or(MemoryFormat::Preserve));
  return out;
}

namespace {

TensorMeta new_from_self(const FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  TensorMeta out = new_meta(call, self.dtype, "size");
  if (!call.device("device")) out.device = self.device;
  return out;
}

Meta fake_new(FakeCall& call) {
  return new_meta(call, DType::Float32, "size");
}
Meta fake_new_from(FakeCall& call) {
  return new_from_self(call);
}
/// Without a dtype argument, full takes the dtype of the number.
Meta fake_full(FakeCall& call) {
  return new_meta(call, call.dtype_of_number("fill_value"), "size");
}
Meta fake_prims_full(FakeCall& call) {
  return new_meta(call, DType::Float32, "shape");
}
/// Effect tokens (torch/_higher_order_ops/effects.py): empty tensors, which are made and taken.
Meta fake_token(FakeCall&) {
  return TensorMeta::contiguous(DType::Float32, {0}, Device{});
}

Meta fake_scalar_tensor(FakeCall& call) {
  return made(call, DType::Float32, {});
}

Meta fake_strided(FakeCall& call) {
  TensorMeta out = call.schema.index_of("self") >= 0 ? new_from_self(call) : new_meta(call, DType::Float32, "size");
  out.strides = call.syms("stride");
  if (out.strides.size() != out.dim())
    fail(fmt::format("dimensionality of sizes ({}) must match dimensionality of strides ({})", out.dim(),
                     out.strides.size()));
  return out;
}

Meta fake_permuted(FakeCall& call) {
  TensorMeta out = new_meta(call, DType::Float32, "size");
  Sizes layout = call.integers("physical_layout");
  SymExpr step = 1;
  for (std::size_t i = layout.size(); i-- > 0;) {
    std::size_t d = wrap_dim(layout[i], out.dim());
    out.strides[d] = step;
    step = step * out.sizes[d];
  }
  return out;
}

void fill(const Tensor& out, const Number& value) {
  Tensor one = unwrap(Tensor::empty(out.dtype, {}));
  dispatch(out.dtype, [&]<class T>() { *one.as<T>() = std::visit([](auto n) { return convert<T>(n); }, value); });
  out.copy_from(one.view_as(out.sizes, Sizes(out.sizes.size(), 0), 0));
}

/// Fills a tensor of the fake's meta with a constant. aten.empty gives zeros, so that runs are reproducible.
template <Meta (*fake)(FakeCall&), auto value>
Value filled(EvalCall& call) {
  Tensor out = empty_of(call, fake);
  fill(out, value(call));
  return out;
}
constexpr auto zero = [](const EvalCall&) -> Number { return std::int64_t{0}; };
constexpr auto one = [](const EvalCall&) -> Number { return std::int64_t{1}; };
constexpr auto given = [](const EvalCall& call) -> Number { return call.number("fill_value"); };
constexpr auto scalar = [](const EvalCall& call) -> Number { return call.number("s"); };

// arange has integer results when all of its numbers are integers.

SymExpr sym_or(const FakeCall& call, std::string_view name, std::int64_t otherwise) {
  return call.schema.index_of(name) >= 0 && call.has(name) ? call.sym(name) : SymExpr(otherwise);
}

bool is_whole(const FakeCall& call, std::string_view name) {
  if (call.schema.index_of(name) < 0 || !call.has(name)) return true;
  if (Node* n = call.arg(name).node()) return n->meta.sym() && !n->meta.sym()->is_float();
  return call.number(name).index() <= 1;
}

bool is_number(SymExpr e) {
  return e.is_int() || e.kind() == SymKind::Float;
}

/// A number that the graph may compute; `otherwise` when it is not given.
SymExpr real_sym(const FakeCall& call, std::string_view name, std::int64_t otherwise) {
  if (call.schema.index_of(name) < 0 || !call.has(name)) return otherwise;
  const Node* node = call.arg(name).node();
  if (node && node->meta.sym()) return *node->meta.sym();
  const Number n = call.number(name);
  const auto* whole = std::get_if<std::int64_t>(&n);
  return whole ? SymExpr(*whole) : SymExpr::real(as_double(n));
}

Meta fake_arange(FakeCall& call) {
  bool whole = is_whole(call, "start") && is_whole(call, "end") && is_whole(call, "step");
  TensorMeta out;
  out.dtype = call.dtype("dtype").value_or(whole ? DType::Int64 : DType::Float32);
  // For int64 PyTorch truncates the numbers before it counts the elements; for narrower integers it does not.
  bool truncates = out.dtype == DType::Int64;
  out.device = call.device("device").value_or(Device{});
  SymExpr length;
  if (whole) {
    SymExpr start = sym_or(call, "start", 0), end = call.sym("end"), step = sym_or(call, "step", 1);
    if (step.is(0)) fail("step must be nonzero");
    if (const auto down = guard_if_known(call, sym_lt(step, 0), "arange's direction")) {
      if (!checked(call, *down ? sym_le(end, start) : sym_le(start, end), "arange's bounds"))
        fail("upper bound and lower bound inconsistent with step sign");
      length = sym_floordiv(end - start + step + (*down ? 1 : -1), step);
    } else {
      length = -sym_floordiv(start - end, step);
    }
  } else if (const auto [from, to, by] =
                 std::tuple(real_sym(call, "start", 0), real_sym(call, "end", 0), real_sym(call, "step", 1));
             !is_number(from) || !is_number(to) || !is_number(by)) {
    const auto part = [&](SymExpr e) { return truncates ? sym_call("TruncToInt", {e}) : e; };
    length = sym_call("CeilToInt", {sym_truediv(part(to) - part(from), part(by))});
  } else {
    auto number = [&](std::string_view name, double otherwise) {
      if (call.schema.index_of(name) < 0 || !call.has(name)) return otherwise;
      double v = as_double(call.number(name));
      return truncates ? std::trunc(v) : v;
    };
    double start = number("start", 0), end = number("end", 0), step = number("step", 1);
    if (!std::isfinite(start) || !std::isfinite(end)) fail(fmt::format("unsupported range: {} -> {}", start, end));
    if (step == 0) fail("step must be nonzero");
    if (step > 0 ? start > end : start < end) fail("upper bound and lower bound inconsistent with step sign");
    const auto count = as_integer(std::ceil((end - start) / step));
    if (!count) fail("invalid size, possible overflow?");
    length = *count;
  }
  out.sizes = {length};
  out.strides = {1};
  return out;
}

/// start + step * i; of integers it wraps.
template <Meta (*fake)(FakeCall&)>
Value eval_range(EvalCall& call) {
  Tensor out = empty_of(call, fake);
  auto number = [&](std::string_view name, std::int64_t otherwise) -> Number {
    return call.schema.index_of(name) >= 0 && call.has(name) ? call.number(name) : Number(otherwise);
  };
  Number start = number("start", 0), step = number("step", 1);
  dispatch(out.dtype, [&]<class T>() {
    for (std::int64_t i : steps(out.numel())) {
      if constexpr (is_integral_type<T>)
        out.as<T>()[i] = convert<T>(kernels::wrapping_sum(as_int(start), kernels::wrapping_product(i, as_int(step))));
      else
        out.as<T>()[i] = convert<T>(as_double(start) + static_cast<double>(i) * as_double(step));
    }
  });
  return out;
}

Meta fake_iota(FakeCall& call) {
  return made(call, DType::Int64, {call.sym("length")});
}

Meta fake_linspace(FakeCall& call) {
  DType type = DType::Float32;
  for (std::string_view end : {"start", "end"}) {
    if (call.is_tensor(end) && call.tensor(end).dim() > 0)
      fail(call.schema.base.substr(5) + " only supports 0-dimensional start and end tensors, but got " +
           std::string(end) + " with " + std::to_string(call.tensor(end).dim()) + " dimension(s).");
    DType t = call.is_tensor(end) ? call.tensor(end).dtype : call.dtype_of_number(end);
    if (is_complex(t)) type = complex_of(type);
    if (call.is_tensor(end) && is_floating(t) && !is_complex(type)) type = promote(type, t);
  }
  return made(call, type, {call.sym("steps")});
}
std::complex<double> end_of(const EvalCall& call, std::string_view name) {
  if (!call.is_tensor(name)) {
    Number n = call.number(name);
    if (auto* c = std::get_if<std::complex<double>>(&n)) return *c;
    return as_double(n);
  }
  return *unwrap(call.tensor(name).to(DType::Complex128)).as<std::complex<double>>();
}
/// Like PyTorch's kernel, computes the first half from `start` and the second half from `end`. Integer results
/// truncate.
template <bool exponents>
Value eval_linspace(EvalCall& call) {
  Tensor out = empty_of(call, fake_linspace);
  std::int64_t n = call.integer("steps");
  std::complex<double> start = end_of(call, "start"), end = end_of(call, "end");
  if (is_integral(out.dtype)) {
    start = std::trunc(start.real());
    end = std::trunc(end.real());
  }
  std::complex<double> step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  double base = exponents ? as_double(call.number("base")) : 0;
  dispatch(out.dtype, [&]<class T>() {
    constexpr bool half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
    // PyTorch's kernel for half types rounds the step and each multiple of it.
    auto held = [](std::complex<double> v) {
      if constexpr (half) return std::complex<double>(convert<double>(convert<T>(v.real())));
      return v;
    };
    step = held(step);
    for (std::int64_t i : steps(n)) {
      std::complex<double> v =
          i < n / 2 ? start + held(step * static_cast<double>(i)) : end - held(step * static_cast<double>(n - 1 - i));
      // PyTorch's kernel for integers rounds once: a whole number is not missed.
      if constexpr (is_integral_type<T>)
        v = i < n / 2 ? std::fma(step.real(), static_cast<double>(i), start.real())
                      : std::fma(-step.real(), static_cast<double>(n - 1 - i), end.real());
      if (n == 1) v = start;
      if constexpr (exponents)
        v = is_complex(out.dtype) ? std::pow(std::complex<double>(base), v) : std::pow(base, v.real());
      if constexpr (is_complex_type<T>::value)
        out.as<T>()[i] = convert<T>(v);
      else
        out.as<T>()[i] = convert<T>(v.real());
    }
  });
  return out;
}

Meta fake_eye(FakeCall& call) {
  SymExpr n = call.sym("n"), m = call.schema.index_of("m") >= 0 ? call.sym("m") : n;
  return made(call, DType::Float32, {n, m});
}
/// The elements of a matrix on and below (lower) or above a diagonal, row by row.
template <bool lower>
struct Triangle {
  std::int64_t rows, columns, offset;

  explicit Triangle(const auto& call)
      : rows(call.integer("row")), columns(call.integer("col")), offset(call.integer("offset")) {
    if (rows < 0) fail(fmt::format("row must be non-negative, got{}", rows));
    if (columns < 0) fail(fmt::format("col must be non-negative, got{}", columns));
    // Beyond the matrix all diagonals are alike.
    offset = std::clamp(offset, -rows, columns);
  }

  /// The rows that have elements.
  std::int64_t first_row() const { return lower ? std::clamp<std::int64_t>(-offset, 0, rows) : 0; }
  std::int64_t end_row() const { return lower ? rows : std::clamp<std::int64_t>(columns - offset, 0, rows); }
  /// The columns of a row that are in the triangle.
  std::int64_t first_column(std::int64_t row) const { return lower ? 0 : std::max<std::int64_t>(row + offset, 0); }
  std::int64_t end_column(std::int64_t row) const { return lower ? std::min(row + offset + 1, columns) : columns; }

  std::int64_t count() const {
    const std::int64_t first = first_row(), end = end_row();
    if (first >= end || columns == 0) return 0;
    // Rows that the diagonal crosses differ by one element each; before or behind them all are whole.
    const std::int64_t from = lower ? first : std::clamp<std::int64_t>(-offset, first, end),
                       to = lower ? std::clamp<std::int64_t>(columns - offset, first, end) : end;
    const auto length = [&](std::int64_t row) { return SymExpr(end_column(row) - first_column(row)); };
    const SymExpr whole = SymExpr(columns) * ((end - first) - (to - from));
    return (whole + (to > from ? sym_floordiv((length(from) + length(to - 1)) * (to - from), 2) : SymExpr(0))).as_int();
  }
};

template <bool lower>
Meta fake_triangle(FakeCall& call) {
  return made(call, DType::Int64, {2, Triangle<lower>(call).count()});
}
template <bool lower>
Value eval_triangle(EvalCall& call) {
  const Triangle<lower> t(call);
  const std::int64_t n = t.count();
  Tensor out = unwrap(Tensor::empty(DType::Int64, {2, n}));
  std::int64_t* at = out.as<std::int64_t>();
  if (n > 0)
    for (std::int64_t row = t.first_row(); row < t.end_row(); ++row)
      for (std::int64_t i : steps(t.end_column(row) - t.first_column(row))) {
        at[0] = row, at[n] = t.first_column(row) + i;
        ++at;
      }
  return unwrap(out.to(call.dtype("dtype").value_or(DType::Int64)));
}

/// fill and zero: sizes, strides and dtype of self, another value.
Meta fake_fill(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  TensorMeta out = TensorMeta::contiguous(self.dtype, self.sizes, self.device);
  out.strides = strides_like(call, self, self.sizes, MemoryFormat::Preserve);
  return out;
}
constexpr auto fill_value = [](const EvalCall& call) -> Number {
  if (!call.is_tensor("value")) return call.number("value");
  const Tensor& v = call.tensor("value");
  if (!v.sizes.empty())
    fail(fmt::format("fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.", v.dim()));
  if (is_complex(v.dtype)) return *unwrap(v.to(DType::Complex128)).as<std::complex<double>>();
  if (is_floating(v.dtype)) return v.item_as_double();
  return *unwrap(v.to(DType::Int64)).as<std::int64_t>();
};

}  // namespace

void register_factory(OpTable& t) {
  t.default_family = Family::Index;
  t.add_without_record({"tensor"});
  const auto row = [&t](std::string_view name, Meta (*fake)(FakeCall&), Value (*eval)(EvalCall&),
                        loops::LowerFunction lower = nullptr, bool recomputable = false, bool uninitialised = false) {
    t.add(name, fake, eval, {},
          {.autograd = {.not_differentiable = true},
           .lower = lower,
           .cost = {.recomputable = recomputable},
           .role = uninitialised ? Role::Uninitialised : Role::None});
  };
  row("aten.empty.memory_format", fake_new, filled<fake_new, zero>, lower_zeros, true, true);
  row("aten.zeros.default", fake_new, filled<fake_new, zero>, lower_zeros, true);
  row("aten.ones.default", fake_new, filled<fake_new, one>, lower_ones, true);
  row("aten.full.default", fake_full, filled<fake_full, given>, lower_full, true);
  row("prims.full.default", fake_prims_full, filled<fake_prims_full, given>);
  row("aten.empty_strided.default", fake_strided, filled<fake_strided, zero>, lower_zeros);
  row("aten.empty_permuted.default", fake_permuted, filled<fake_permuted, zero>);
  row("aten.new_empty.default", fake_new_from, filled<fake_new_from, zero>, lower_zeros);
  row("aten.new_zeros.default", fake_new_from, filled<fake_new_from, zero>, lower_zeros, true);
  row("aten.new_ones.default", fake_new_from, filled<fake_new_from, one>, lower_ones);
  row("aten.new_full.default", fake_new_from, filled<fake_new_from, given>, lower_full);
  row("aten.new_empty_strided.default", fake_strided, filled<fake_strided, zero>, lower_zeros);
  row("aten.empty_like.default", fake_like, filled<fake_like, zero>, lower_zeros, true);
  row("aten.zeros_like.default", fake_like, filled<fake_like, zero>, lower_zeros, true);
  row("aten.ones_like.default", fake_like, filled<fake_like, one>, lower_ones);
  row("aten.full_like.default", fake_like, filled<fake_like, given>, lower_full_like, true);
  row("aten.scalar_tensor.default", fake_scalar_tensor, filled<fake_scalar_tensor, scalar>, lower_full_like, true);
  row("prims.scalar_tensor.default", fake_scalar_tensor, filled<fake_scalar_tensor, scalar>);
  row("prims._make_token.default", fake_token, filled<fake_token, zero>);
  t.add(
      "prims._sink_tokens.default", [](FakeCall&) { return Meta(); }, [](EvalCall&) { return Value(); }, {},
      {.autograd = {.not_differentiable = true}, .side_effect = true});
  row("aten.arange.default", fake_arange, eval_range<fake_arange>, give_range, true);
  row("aten.arange.start", fake_arange, eval_range<fake_arange>, give_range, true);
  row("aten.arange.start_step", fake_arange, eval_range<fake_arange>, give_range, true);
  row("prims.iota.default", fake_iota, eval_range<fake_iota>, give_range, true);
  for (const char* ends : {"default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"}) {
    row(fmt::format("aten.linspace.{}", ends), fake_linspace, eval_linspace<false>);
    row(fmt::format("aten.logspace.{}", ends), fake_linspace, eval_linspace<true>);
  }
  row("aten.eye.default", fake_eye, nullptr, lower_eye);
  row("aten.eye.m", fake_eye, nullptr, lower_eye);
  row("aten.tril_indices.default", fake_triangle<true>, eval_triangle<true>);
  row("aten.triu_indices.default", fake_triangle<false>, eval_triangle<false>);
  t.add("aten.zero.default", fake_fill, filled<fake_fill, zero>, {{"self", "zeros_like(grad)"}},
        {.lower = lower_zeros});
  t.add("aten.fill.Scalar", fake_fill, filled<fake_fill, fill_value>, {{"self", "zeros_like(grad)"}},
        {.lower = lower_full_like});
  t.add("aten.fill.Tensor", fake_fill, filled<fake_fill, fill_value>,
        {{"self", "zeros_like(grad)"}, {"value", "sum(grad)"}}, {.lower = lower_fill});
}

}  // namespace partita
