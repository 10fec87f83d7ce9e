// Comparisons, integrals and means decomposed to other operators (CompositeImplicitAutograd).
#include <fmt/format.h>

#include "core/ops/families/body.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

bool counts(DType t) {
  return is_integral(t) || t == DType::Bool;
}

Arg isclose(DecomposeCall& c) {
  Builder& b = c.build;
  Node *x = tensor_node(c, "self"), *y = tensor_node(c, "other");
  const DType type = b.tensor(x).dtype;
  if (type != b.tensor(y).dtype)
    fail(fmt::format("{} did not match {}", torch_name(type), torch_name(b.tensor(y).dtype)));
  const double rtol = as_double(c.number("rtol")), atol = as_double(c.number("atol"));
  if (rtol < 0 || atol < 0)
    fail(fmt::format("rtol and atol must be greater than or equal to zero, but got {} and {}", rtol, atol));
  Arg close = build_program(c, "eq(self, other)");
  if (c.boolean("equal_nan") && !counts(type))
    close = build_program(c, "bitwise_or(close, bitwise_and(isnan(self), isnan(other)))", {{"close", close}});
  if (rtol == 0 && atol == 0) return close;
  if (type == DType::Bool) x = to_dtype(b, x, DType::Float32);
  if (counts(type)) y = to_dtype(b, y, DType::Float32);
  const Arg allowed = build_program(c, "abs(aten.mul.Scalar(y, rtol)) + atol", {{"y", y}});
  const Arg actual = build_program(c, "abs(x - y)", {{"x", x}, {"y", y}});
  return build_program(c, "bitwise_or(close, bitwise_and(isfinite(actual), le(actual, allowed)))",
                       {{"close", close}, {"actual", actual}, {"allowed", allowed}});
}

/// pow computed in float64, or in complex128 when an operand is complex.
Arg float_power(DecomposeCall& c) {
  Builder& b = c.build;
  auto complex = [&](const char* name) {
    return c.is_tensor(name) ? is_complex(c.tensor(name).dtype) : is_complex(c.dtype_of_number(name));
  };
  const DType dtype = complex("self") || complex("exponent") ? DType::Complex128 : DType::Float64;
  auto operand = [&](const char* name) -> Arg {
    return c.is_tensor(name) ? Arg(to_dtype(b, tensor_node(c, name), dtype)) : c.arg(name);
  };
  const Arg base = operand("self"), exponent = operand("exponent");
  return b.call("aten.pow", {base, exponent});
}

Arg nanmean(DecomposeCall& c) {
  if (!is_floating(c.tensor("self").dtype) && !is_complex(c.tensor("self").dtype))
    fail("nanmean(): expected input to have floating point or complex dtype");
  Builder& b = c.build;
  const Arg present = build_program(c, "logical_not(isnan(self))");
  Node* count = b.call("aten.sum.dim_IntList", {present, c.arg("dim"), c.arg("keepdim")});
  Node* sum =
      b.call("aten.nansum.default", {c.arg("self"), c.arg("dim"), c.arg("keepdim")}, {{"dtype", c.arg("dtype")}});
  return b.call("aten.div.Tensor", {sum, count});
}

/// The sum, or the running sum, of the averages of neighbours times their distance. The distance is dx or the
/// difference of x.
template <bool cumulative>
Arg trapezoid(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& y = c.tensor("y");
  if (y.dim() == 0) fail("trapezoid: y must have at least one dimension");
  const std::size_t at = wrap_dim(c.integer("dim"), y.dim());
  if (y.sizes[at].is(0)) {
    SymList sizes = y.sizes;
    if (!cumulative) sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
    return b.call("aten.zeros.default", {b.sizes(sizes)}, {{"dtype", y.dtype}});
  }
  const bool spaced = c.schema.index_of("x") >= 0;
  if (!spaced && !cumulative) {
    return build_program(c,
                         "last = select(y, dim, -1); ends = (select(y, dim, 0) + last) * 0.5; "
                         "(aten.sum.dim_IntList(y, [dim]) - ends) * dx");
  }
  if (!spaced)
    return build_program(c, "left = slice(y, dim, 0, -1); cumsum((left + slice(y, dim, 1)) * half, dim)",
                         {{"half", as_double(c.number("dx")) / 2.0}});
  Node* x = tensor_node(c, "x");
  const TensorMeta& points = c.tensor("x");
  if (points.dim() == 1) {
    if (!checked(c, sym_eq(points.sizes[0], y.sizes[at]), "trapezoid"))
      fail("trapezoid: There must be one `x` value for each sample point");
    SymList sizes(y.dim(), 1);
    sizes[at] = points.sizes[0];
    x = b.call("aten.view.default", {x, b.sizes(sizes)});
  } else if (points.dim() < y.dim()) {
    SymList sizes(y.dim() - points.dim(), 1);
    sizes.insert(sizes.end(), points.sizes.begin(), points.sizes.end());
    x = b.call("aten.view.default", {x, b.sizes(sizes)});
  }
  return build_program(c,
                       "start = slice(x, d, 0, -1); widths = slice(x, d, 1) - start; left = slice(y, d, 0, -1); "
                       "areas = (left + slice(y, d, 1)) * widths; "
                       "(cumsum(areas, d) if cumulative else aten.sum.dim_IntList(areas, [d])) / 2.0",
                       {{"x", x}, {"d", static_cast<std::int64_t>(at)}, {"cumulative", cumulative}});
}

}  // namespace

void register_numeric_composites(OpTable& t) {
  t.default_family = Family::Pointwise;
  t.add("aten.isclose.default", {.decompose = isclose});
  t.add("aten.isreal.default",
        {.program = "eq(imag(self), 0) if is_complex(self) else aten.ones_like.default(self, dtype=torch.bool)"});
  for (const char* overload : {"Tensor_Tensor", "Tensor_Scalar", "Scalar"})
    t.add(std::string("aten.float_power.") + overload, {.decompose = float_power});
  t.add("aten.nanmean.default", {.decompose = nanmean});
  for (const char* overload : {"x", "dx"}) {
    t.add(std::string("aten.trapezoid.") + overload, {.decompose = trapezoid<false>});
    t.add(std::string("aten.trapz.") + overload, {.decompose = trapezoid<false>});
    t.add(std::string("aten.cumulative_trapezoid.") + overload, {.decompose = trapezoid<true>});
  }
}

}  // namespace partita
