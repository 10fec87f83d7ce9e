// torch.ops.prims, in terms of ATen (torch/_prims/__init__.py has the same as impl_aten). They are no
// CompositeImplicitAutograd operators, but is_composite() treats them like these.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// broadcast_dimensions[i] is the dimension of the result that dimension i of `a` becomes.
Arg broadcast_in_dim(DecomposeCall& c) {
  Builder& b = c.build;
  const SymList shape = c.syms("shape");
  std::vector<bool> taken(shape.size());
  for (const std::int64_t d : c.integers("broadcast_dimensions")) {
    if (d < 0 || static_cast<std::size_t>(d) >= shape.size())
      fail(fmt::format("broadcast_in_dim: dimension {} of {}", d, shape.size()));
    taken[static_cast<std::size_t>(d)] = true;
  }
  Arg a = c.arg("a");
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!taken[d]) a = b.call("aten.unsqueeze.default", {a, static_cast<std::int64_t>(d)});
  return b.call("aten.expand.default", {a, b.sizes(shape)});
}

/// The sizes of `a` with dimensions start to end (included) as one.
SymList collapsed(DecomposeCall& c) {
  SymList sizes = c.tensor("a").sizes;
  if (sizes.empty()) return {1};
  const std::size_t first = wrap_dim(c.integer("start"), sizes.size()), last = wrap_dim(c.integer("end"), sizes.size());
  if (last < first) fail(fmt::format("collapse: dimension {} is not before {}", first, last));
  for (std::size_t d = last; d > first; --d) sizes[d - 1] = sizes[d - 1] * sizes[d];
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(first) + 1,
              sizes.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  return sizes;
}

Arg collapse(DecomposeCall& c) {
  return c.build.call("aten.reshape.default", {c.arg("a"), c.build.sizes(collapsed(c))});
}

Arg collapse_view(DecomposeCall& c) {
  return c.build.call("aten.view.default", {c.arg("a"), c.build.sizes(collapsed(c))});
}

Arg split_dim(DecomposeCall& c) {
  SymList sizes = c.tensor("a").sizes;
  if (sizes.empty()) fail("split_dim: the tensor has no dimensions");
  const std::size_t dim = wrap_dim(c.integer("dim"), sizes.size());
  const SymExpr outer = c.sym("outer_length");
  if (!checked(c, sym_ne(outer, 0), "split_dim")) fail("split_dim: integer division by zero");
  const SymExpr inner = sym_floordiv(sizes[dim], outer);
  if (!c.test(sym_eq(outer * inner, sizes[dim]), "split_dim"))
    fail(fmt::format("split_dim: {} is not divisible by {}", sizes[dim].str(), outer.str()));
  sizes[dim] = outer;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim) + 1, inner);
  return c.build.call("aten.view.default", {c.arg("a"), c.build.sizes(sizes)});
}

/// Whole numbers are divided as in C.
Arg divide(DecomposeCall& c) {
  const DType t = c.tensor("self").dtype;
  if (!is_integral(t) && t != DType::Bool) return c.build.call("aten.div.Tensor", {c.arg("self"), c.arg("other")});
  return c.build.call("aten.div.Tensor_mode", {c.arg("self"), c.arg("other")}, {{"rounding_mode", "trunc"}});
}

Arg prod(DecomposeCall& c) {
  Builder& b = c.build;
  const Kwargs dtype{{"dtype", c.arg("output_dtype")}};
  if (!c.has("dims")) return b.call("aten.prod.default", {c.arg("inp")}, dtype);
  Sizes dims = c.integers("dims");
  std::ranges::sort(dims, std::greater<>());
  Arg x = c.arg("inp");
  if (dims.empty()) return b.call("aten.clone.default", {x});
  for (const std::int64_t d : dims) x = b.call("aten.prod.dim_int", {x, d, false}, dtype);
  return x;
}

// Operators that ATen has by the same name.
#define SAME(name, arguments) {"prims." #name ".default", #name arguments}
constexpr CompositeRow prims_rows[] = {
    SAME(abs, "(self)"),
    SAME(acos, "(self)"),
    SAME(acosh, "(self)"),
    SAME(asin, "(self)"),
    SAME(asinh, "(self)"),
    SAME(atan, "(self)"),
    SAME(atanh, "(self)"),
    SAME(bitwise_not, "(self)"),
    SAME(ceil, "(self)"),
    SAME(cos, "(self)"),
    SAME(cosh, "(self)"),
    SAME(digamma, "(self)"),
    SAME(erf, "(self)"),
    SAME(erfc, "(self)"),
    SAME(exp, "(self)"),
    SAME(exp2, "(self)"),
    SAME(expm1, "(self)"),
    SAME(floor, "(self)"),
    SAME(frexp, "(self)"),
    SAME(lgamma, "(self)"),
    SAME(log, "(self)"),
    SAME(log10, "(self)"),
    SAME(log1p, "(self)"),
    SAME(log2, "(self)"),
    SAME(neg, "(self)"),
    SAME(reciprocal, "(self)"),
    SAME(round, "(self)"),
    SAME(rsqrt, "(self)"),
    SAME(sign, "(self)"),
    SAME(signbit, "(self)"),
    SAME(sin, "(self)"),
    SAME(sinh, "(self)"),
    SAME(sqrt, "(self)"),
    SAME(tan, "(self)"),
    SAME(tanh, "(self)"),
    SAME(trunc, "(self)"),
    SAME(add, "(self, other)"),
    SAME(atan2, "(self, other)"),
    SAME(bitwise_and, "(self, other)"),
    SAME(bitwise_or, "(self, other)"),
    SAME(bitwise_xor, "(self, other)"),
    SAME(eq, "(self, other)"),
    SAME(fmax, "(self, other)"),
    SAME(fmin, "(self, other)"),
    SAME(fmod, "(self, other)"),
    SAME(gcd, "(self, other)"),
    SAME(ge, "(self, other)"),
    SAME(gt, "(self, other)"),
    SAME(hypot, "(self, other)"),
    SAME(igamma, "(self, other)"),
    SAME(igammac, "(self, other)"),
    SAME(le, "(self, other)"),
    SAME(lt, "(self, other)"),
    SAME(maximum, "(self, other)"),
    SAME(minimum, "(self, other)"),
    SAME(mul, "(self, other)"),
    SAME(ne, "(self, other)"),
    SAME(nextafter, "(self, other)"),
    SAME(pow, "(self, other)"),
    SAME(remainder, "(self, other)"),
    SAME(sub, "(self, other)"),
    {"prims.bessel_i0.default", "i0(self)"},
    {"prims.bessel_i0e.default", "special_i0e(self)"},
    {"prims.bessel_i1.default", "special_i1(self)"},
    {"prims.bessel_i1e.default", "special_i1e(self)"},
    {"prims.bessel_j0.default", "special_bessel_j0(self)"},
    {"prims.bessel_j1.default", "special_bessel_j1(self)"},
    {"prims.cbrt.default", "copysign(pow(abs(self), 0.3333333333333333), self)"},
    {"prims.erf_inv.default", "erfinv(self)"},
    {"prims.erfcx.default", "special_erfcx(self)"},
    {"prims.ndtri.default", "special_ndtri(self)"},
    {"prims.spherical_bessel_j0.default", "special_spherical_bessel_j0(self)"},
    {"prims.zeta.default", "special_zeta(self, other)"},
    {"prims.shift_left.default", "bitwise_left_shift(self, other)"},
    {"prims.shift_right_arithmetic.default", "bitwise_right_shift(self, other)"},
    {"prims.where.default", "where(pred, a, b)"},
    {"prims.real.default", "real(self) if is_complex(self) else refuse('Only complex dtype is supported')"},
    {"prims.imag.default", "imag(self) if is_complex(self) else refuse('Only complex dtype is supported')"},
    {"prims.conj.default", "conj(a) if is_complex(a) else refuse('Expected complex dtype in prims.conj')"},
    {"prims.conj_physical.default",
     "conj_physical(self) if is_complex(self) else "
     "refuse('prims.conj_physical is only defined for complex dtypes')"},
    {"prims.transpose.default", "permute(a, permutation)"},
    {"prims.squeeze.default", "aten.squeeze.dims(a, dimensions)"},
    {"prims.view_of.default", "alias(a)"},
    {"prims.view_of_dtype.default", "aten.view.dtype(a, dtype)"},
    {"prims.as_strided.default", "as_strided(a, size, stride, storage_offset)"},
    {"prims.as_strided_scatter.default", "as_strided_scatter(self, src, size, stride, storage_offset)"},
    {"prims.reshape.default", "reshape(a, shape)"},
    {"prims.cat.default", "cat(tensors, dim)"},
    {"prims.clone.default", "clone(self, memory_format=memory_format)"},
    {"prims.device_put.default", "_to_copy(a, device=device, non_blocking=non_blocking)"},
    {"prims.copy_strided.default", "copy(new_empty_strided(a, sizes(a), stride), a)"},
    {"prims.inductor_force_stride_order.default", "copy(new_empty_strided(input, sizes(input), stride), input)"},
    {"prims.copy_to.default", "copy_(a, b)"},
    {"prims.resize.default", "resize_(a, shape)"},
    {"prims.item.default", "item(a)"},
    {"prims.fill.default", "aten.fill.Scalar(self, value)"},
    {"prims.full_like.default", "full_like(a, fill_value, dtype=dtype, device=device)"},
    {"prims.sum.default", "aten.sum.dim_IntList(inp, dims, dtype=output_dtype)"},
    {"prims.amax.default", "amax(inp, [] if dims is None else dims)"},
    {"prims.amin.default", "amin(inp, [] if dims is None else dims)"},
    {"prims.var.default", "aten.var.correction(inp, dims, correction=correction)"},
    {"prims.svd.default", "linalg_svd(A, full_matrices)"},
    {"prims.fft_r2c.default", "_fft_r2c(self, dim, 0, onesided)"},
    {"prims.fft_c2r.default", "_fft_c2r(self, dim, 0, last_dim_size)"},
    {"prims.fft_c2c.default", "_fft_c2c(self, dim, 0, forward)"},
    {"prims.prepare_softmax_online.default", "most = amax(a, [dim], True); (most, sum(exp(a - most), [dim], True))"},
};
#undef SAME

}  // namespace

void register_prims(OpTable& t) {
  add_composites(t, prims_rows);
  t.add("prims.broadcast_in_dim.default", {.decompose = broadcast_in_dim});
  t.add("prims.collapse.default", {.decompose = collapse});
  t.add("prims.collapse_view.default", {.decompose = collapse_view});
  t.add("prims.split_dim.default", {.decompose = split_dim});
  t.add("prims.div.default", {.decompose = divide});
  t.add("prims.prod.default", {.decompose = prod});
  t.add("prims.empty.default", {.program = "empty(shape, dtype=dtype, device=device)", .role = Role::Uninitialised});
  t.add("prims.empty_strided.default",
        {.program = "empty_strided(shape, strides, dtype=dtype, device=device)", .role = Role::Uninitialised});
  t.add("prims.empty_permuted.default",
        {.program = "empty_permuted(shape, physical_layout, dtype=dtype, device=device)", .role = Role::Uninitialised});
  t.add("prims.uniform.default",
        {.program = "uniform(empty_strided(shape, stride, dtype=dtype, device=device), low, high)", .random = true});
}

}  // namespace partita
