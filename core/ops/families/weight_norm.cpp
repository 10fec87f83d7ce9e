// Weight normalisation: weights given by a direction and a length (aten/src/ATen/native/WeightNorm.cpp).
#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// The norm over all dimensions but `dim`, which keeps its place. dim = -1 means over all dimensions.
Arg norm_except_dim(DecomposeCall& c) {
  std::int64_t dim = c.integer("dim");
  const TensorMeta& v = c.tensor("v");
  if (dim == -1) return build_program(c, "aten.norm.Scalar(v, pow)");
  auto last = static_cast<std::int64_t>(v.dim()) - 1;
  if (dim < 0 || dim > last) fail(fmt::format("norm_except_dim: dim {} is out of range", dim));
  if (dim != 0 && dim != last)
    return build_program(c, "transpose(norm_except_dim(transpose(v, 0, dim), pow, 0), 0, dim)");
  SymExpr kept = v.sizes[static_cast<std::size_t>(dim)];
  SymList sizes(v.dim(), 1);
  sizes[static_cast<std::size_t>(dim)] = kept;
  Arg size = c.build.size(kept);
  return build_program(
      c, "aten.view.default(aten.norm.ScalarOpt_dim(aten.view.default(contiguous(v), flat), pow, [over]), out)",
      {{"flat", dim == 0 ? Arg::list({size, -1}) : Arg::list({-1, size})},
       {"over", std::int64_t{dim == 0 ? 1 : 0}},
       {"out", c.build.sizes(sizes)}});
}

/// v scaled so that its norm over all dimensions but `dim` is g.
Arg weight_norm(DecomposeCall& c) {
  const TensorMeta& v = c.tensor("v");
  std::int64_t dim = c.integer("dim");
  if (dim == 0 || dim == static_cast<std::int64_t>(v.dim()) - 1)
    return build_program(c, "_weight_norm_interface(contiguous(v), contiguous(g), dim)[0]");
  return build_program(c, "x = contiguous(v); y = contiguous(g); x * (y / norm_except_dim(x, 2, dim))");
}

/// The result and the norms that are kept for the gradient. Halves are multiplied as floats; norms of bfloat16 stay
/// floats.
Arg weight_norm_interface(DecomposeCall& c) {
  const DType dtype = c.tensor("v").dtype;
  return build_program(c,
                       "x = in_dtype(v, wide); n = norm_except_dim(x, 2, dim);"
                       "(in_dtype(x * (in_dtype(g, wide) / n), narrow), in_dtype(n, of_norms))",
                       {{"wide", opmath_dtype(dtype)},
                        {"narrow", dtype},
                        {"of_norms", dtype == DType::BFloat16 ? DType::Float32 : dtype}});
}

/// With unit = v / norms: g gets the component of the gradient along unit; v gets the rest, scaled by g / norms.
constexpr std::string_view unit_gradients =
    "n = in_dtype(norms, wide); unit = in_dtype(v, wide) / n; grad = in_dtype(grad_w, wide);"
    "along = aten.sum.dim_IntList(grad * unit, over, True);"
    "(in_dtype(in_dtype(g, wide) / n * (grad - unit * along), dtype(v)), in_dtype(along, dtype(g)))";

Arg weight_norm_backward(DecomposeCall& c) {
  std::vector<std::int64_t> over;
  auto rank = static_cast<std::int64_t>(c.tensor("saved_v").dim());
  std::int64_t kept = c.integer("dim");
  for (std::int64_t d = 0; d < rank; ++d)
    if (d != kept && !(kept < 0 && d == kept + rank)) over.push_back(d);
  return build_program(c, unit_gradients,
                       {{"v", c.arg("saved_v")},
                        {"g", c.arg("saved_g")},
                        {"norms", c.arg("saved_norms")},
                        {"over", list_of(over)},
                        {"wide", opmath_dtype(c.tensor("saved_v").dtype)}});
}

}  // namespace

void register_weight_norm(OpTable& t) {
  t.add("aten.norm_except_dim.default", {.decompose = norm_except_dim});
  t.add("aten._weight_norm.default", {.decompose = weight_norm});
  t.add("aten._weight_norm_interface.default",
        {.decompose = weight_norm_interface,
         .autograd = {
             .derivative = {
                 {"v, g", "aten._weight_norm_interface_backward.default(contiguous(grad), v, g, result1, dim)"}}}});
  t.add("aten._weight_norm_interface_backward.default", {.decompose = weight_norm_backward});
}

}  // namespace partita
