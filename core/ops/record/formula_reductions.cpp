// Backward functions of reductions, as in PyTorch's FunctionsManual.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/record/formula_functions.h"
#include "core/ops/record/promote.h"
#include "core/sym/integer.h"

namespace partita {
namespace {

/// The reduced dimensions in argument i: an int, or a list; None and [] mean all.
std::vector<std::size_t> reduced_dims(const FormulaCall& f, std::size_t i, std::size_t rank) {
  std::vector<std::size_t> dims;
  if (f.has(i))
    for (std::int64_t d : f.integers(i)) dims.push_back(wrap_dim(d, rank));
  if (dims.empty())
    for (std::size_t d = 0; d < rank; ++d) dims.push_back(d);
  std::sort(dims.begin(), dims.end());
  return dims;
}

Arg restore(const FormulaCall& f, Arg reduced, const std::vector<std::size_t>& dims, bool keepdim, std::size_t rank) {
  if (keepdim || rank == 0) return reduced;
  for (std::size_t d : dims) reduced = f.build.call("aten.unsqueeze.default", {reduced, static_cast<std::int64_t>(d)});
  return reduced;
}

/// restore_reduced_dims(reduced, self, dims, keepdim)
Arg restore_reduced_dims(const FormulaCall& f) {
  std::size_t rank = f.tensor(1).dim();
  return restore(f, f.args[0], reduced_dims(f, 2, rank), f.flag(3), rank);
}

/// sum_backward(grad, self, dims, keepdim). The gradient of a sum of all has no dimensions and expands as it is.
Arg sum_backward(const FormulaCall& f) {
  const Arg spread = f.has(2) && !f.integers(2).empty() ? restore_reduced_dims(f) : f.args[0];
  return f.build.call("aten.expand.default", {spread, f.build.sizes(f.tensor(1).sizes)});
}

/// The number of elements that are reduced to one.
SymExpr reduced_count(const FormulaCall& f, std::size_t self, std::size_t dims) {
  const TensorMeta& t = f.tensor(self);
  SymExpr count = 1;
  for (std::size_t d : reduced_dims(f, dims, t.dim()))
    if (!t.sizes.empty()) count = count * t.sizes[d];
  return count;
}

/// mean_backward(grad, self, dims, keepdim)
Arg mean_backward(const FormulaCall& f) {
  Arg spread = sum_backward(f);
  return f.build.call("aten.div.Scalar", {spread, f.build.size(reduced_count(f, 1, 2))});
}

/// scale_grad_by_count(grad, mask, self, dims): equal extremes share the gradient.
Arg scale_grad_by_count(const FormulaCall& f) {
  std::vector<Arg> dims;
  for (std::size_t d : reduced_dims(f, 3, f.tensor(2).dim())) dims.push_back(static_cast<std::int64_t>(d));
  return f("x0 * x1 / sum(x1, dims, True)", {{"dims", Arg::list(std::move(dims))}});
}

/// amax_backward(grad, result, self, dims, keepdim)
Arg extreme_backward(const FormulaCall& f) {
  return f(
      "grad = restore_reduced_dims(x0, x2, x3, x4); result = restore_reduced_dims(x1, x2, x3, x4);"
      "scale_grad_by_count(grad, eq(result, x2), x2, x3)");
}

/// evenly_distribute_backward(grad, self, value): for max() and min() over all elements.
Arg evenly_distribute_backward(const FormulaCall& f) {
  return f("mask = logical_or(eq(x1, x2), logical_and(isnan(x1), isnan(x2))); mask * (x0 / sum(mask))");
}

/// value_selecting_reduction_backward(grad, dim, indices, self, keepdim)
Arg value_selecting_reduction_backward(const FormulaCall& f) {
  const TensorMeta& self = f.tensor(3);
  Arg grad = f.args[0], indices = f.args[2];
  if (!self.sizes.empty() && !f.flag(4)) {
    grad = f.build.call("aten.unsqueeze.default", {grad, f.args[1]});
    indices = f.build.call("aten.unsqueeze.default", {indices, f.args[1]});
  }
  Node* zeros = f.build.call("aten.new_zeros.default", {grad, f.build.sizes(self.sizes)});
  return f.build.call("aten.scatter.src", {zeros, f.args[1], indices, grad});
}

/// var_backward(grad, self, dims, correction, keepdim)
Arg var_backward(const FormulaCall& f) {
  const TensorMeta& self = f.tensor(1);
  std::vector<std::size_t> dims = reduced_dims(f, 2, self.dim());
  const Arg correction = f.has(3) ? f.args[3] : Arg(1);
  Arg grad = restore(f, f.args[0], dims, f.flag(4), self.dim());
  const SymExpr count = reduced_count(f, 1, 2);
  Arg scaled;
  if (const auto number = as_number(correction); number && count.is_int()) {
    scaled = f.build.call("aten.mul.Scalar", {grad, 2.0 / (static_cast<double>(count.as_int()) - as_double(*number))});
  } else {
    const auto whole = number ? as_integer(as_double(*number)) : std::nullopt;
    const bool exact = whole && static_cast<double>(*whole) == as_double(*number);
    const Arg degrees =
        exact ? f.build.size(count - *whole) : f("n - c", {{"n", f.build.size(count)}, {"c", correction}});
    scaled = f.build.call("aten.div.Scalar", {f("g * 2", {{"g", grad}}), degrees});
  }
  std::vector<Arg> list;
  for (std::size_t d : dims) list.push_back(static_cast<std::int64_t>(d));
  Arg mean = self.sizes.empty() ? f("x1") : f("mean(x1, dims, True)", {{"dims", Arg::list(std::move(list))}});
  return f("g * (x1 - m)", {{"g", scaled}, {"m", mean}});
}

/// std_backward(result, grad, self, dims, correction, keepdim)
Arg std_backward(const FormulaCall& f) {
  Arg grad = f("masked_fill(x1 / (x0 * 2), eq(x0, 0), 0)");
  Args args = {grad, f.args[2], f.args[3], f.args[4], f.args[5]};
  return var_backward({f.build, args});
}

/// Elements `from` up to `to` (excluded) along dim.
Node* narrow(const FormulaCall& f, const Arg& x, std::int64_t dim, std::int64_t from, SymExpr to) {
  return f.build.call("aten.slice.Tensor", {x, dim, from, f.build.size(to)});
}

/// For each element, the product of all other elements along dim. It is the product of those before it times the
/// product of those after it, so that zeros do no harm.
Arg products_of_others(const FormulaCall& f, const Arg& x, std::int64_t dim) {
  const TensorMeta& t = Builder::tensor(x);
  const auto d = static_cast<std::size_t>(dim);
  SymList one = t.sizes;
  one[d] = 1;
  Node* ones = f.build.call("aten.ones.default", {f.build.sizes(one)},
                            {{"dtype", t.dtype}, {"layout", Layout::Strided}, {"device", t.device}});
  std::vector<std::pair<std::string, Arg>> names = {{"o", ones}, {"d", dim}};
  names.emplace_back("head", narrow(f, x, dim, 0, t.sizes[d] - 1));
  names.emplace_back("tail", narrow(f, x, dim, 1, t.sizes[d]));
  return f("cumprod(cat([o, head], d), d) * flip(cumprod(cat([o, flip(tail, [d])], d), d), [d])", names);
}

/// prod_backward(grad, self, result[, dim, keepdim])
Arg prod_backward(const FormulaCall& f) {
  const TensorMeta& self = f.tensor(1);
  if (self.sizes.empty()) return f("x0");
  const bool all = !f.has(3);
  Arg grad = f.args[0], x = all ? f("reshape(x1, [-1])") : f.args[1];
  const auto dim = all ? std::int64_t{0} : static_cast<std::int64_t>(wrap_dim(f.integer(3), self.dim()));
  if (!all && !f.flag(4)) grad = f.build.call("aten.unsqueeze.default", {grad, dim});
  if (self.numel().is(0)) return f("zeros_like(x1)");
  Arg out = grad;
  if (!Builder::tensor(x).sizes[static_cast<std::size_t>(dim)].is(1))
    out = f("g * conj(others)", {{"g", grad}, {"others", products_of_others(f, x, dim)}});
  return all ? f("reshape(y, sizes(x1))", {{"y", out}}) : out;
}

/// cumprod_backward(grad, self, dim, result), as eager PyTorch computes it. Before the first zero of a line: the sum of
/// the later gradients times products, over the element. At the first zero: the gradients up to the second zero, times
/// the products without the first. After it: 0. PyTorch traces a formula that does not look for zeros, but is quadratic
/// in the size of dim.
Arg cumprod_backward(const FormulaCall& f) {
  const TensorMeta& self = f.tensor(1);
  if (self.sizes.empty() || self.numel().is(1)) return f.args[0];
  if (self.numel().is(0)) return f("zeros_like(x1)");
  return f(
      "zero = eq(x1, 0); zeros = cumsum(zero, x2); hit = ge(zeros, 1);"
      "before = flip(cumsum(flip(masked_fill(x0 * conj(x3), hit, 0), [x2]), x2), [x2]) / conj(x1);"
      "before = masked_fill(before, hit, 0);"
      "first = logical_and(zero, eq(zeros, 1)); others = cumprod(masked_fill(x1, first, 1), x2);"
      "at = sum(masked_fill(x0 * conj(others), ne(zeros, 1), 0), [x2], True); where(first, at, before)");
}

/// logcumsumexp_backward(grad, self, result, dim). Positive and negative gradients are handled separately, as
/// logarithms.
Arg logcumsumexp_backward(const FormulaCall& f) {
  const TensorMeta& grad = f.tensor(0);
  if (grad.sizes.empty() || grad.numel().is(0)) return f.args[0];
  auto through = [&](const Arg& logarithm) {
    return f("exp(flip(logcumsumexp(flip(l - x2, [x3]), x3), [x3]) + x1)", {{"l", logarithm}});
  };
  if (is_complex(grad.dtype)) {
    Arg out = through(f("log(conj(x0))"));
    return f("conj(y)", {{"y", out}});
  }
  const double lowest = grad.dtype == DType::Float64    ? std::numeric_limits<double>::lowest()
                        : grad.dtype == DType::Float16  ? -65504.0
                        : grad.dtype == DType::BFloat16 ? -0x1.FEp127
                                                        : static_cast<double>(std::numeric_limits<float>::lowest());
  std::vector<std::pair<std::string, Arg>> names = {{"l", f("log(abs(x0))")}, {"low", lowest}};
  Arg positive = f("where(gt(x0, 0), l, low)", names), negative = f("where(lt(x0, 0), l, low)", names);
  Arg up = through(positive), down = through(negative);
  return f("up - down", {{"up", up}, {"down", down}});
}

/// trace_backward(grad, self)
Arg trace_backward(const FormulaCall& f) {
  return f("zeros = new_zeros(x0, sizes(x1)); diagonal_scatter(zeros, expand(x0, sizes(diagonal(x1))))");
}

/// cumsum_backward(grad, dim)
Arg cumsum_backward(const FormulaCall& f) {
  return f("x0 if dim(x0) == 0 else flip(cumsum(flip(x0, [x1]), x1), [x1])");
}

/// logsumexp_backward(grad, self, result, dims, keepdim)
Arg logsumexp_backward(const FormulaCall& f) {
  return f(
      "grad = restore_reduced_dims(x0, x1, x3, x4); result = restore_reduced_dims(x2, x1, x3, x4);"
      "grad * conj(exp(x1 - result))");
}

/// linalg_vector_norm_backward(grad, self, ord, result, dims, keepdim)
Arg vector_norm_backward(const FormulaCall& f) {
  const TensorMeta& self = f.tensor(1);
  std::vector<std::size_t> dims = reduced_dims(f, 4, self.dim());
  bool keepdim = f.flag(5);
  Arg grad = restore(f, f.args[0], dims, keepdim, self.dim()), norm = restore(f, f.args[3], dims, keepdim, self.dim());
  const double ord = f.real(2);
  const std::vector<std::pair<std::string, Arg>> names = {
      {"g", grad}, {"n", norm}, {"less", ord - 1}, {"two_less", ord - 2}, {"rest", 1 - ord}};
  if (ord == 0) return {};
  if (ord == 1) return f("sgn(x1) * g", names);
  if (ord == 2) return f("g * masked_fill(x1 / n, eq(n, 0), 0)", names);
  if (std::isinf(ord)) {
    const Arg mask = f("a = abs(x1); logical_or(eq(a, n), isnan(a))", names);
    return scale_grad_by_count({f.build, {f("sgn(x1) * g", names), mask, f.args[1], f.has(4) ? f.args[4] : Arg()}});
  }
  if (ord < 1) return f("masked_fill(sgn(x1) * pow(abs(x1), less), eq(x1, 0), 0) * g * pow(n, rest)", names);
  if (ord < 2) return f("sgn(x1) * pow(abs(x1), less) * g * masked_fill(pow(n, rest), eq(n, 0), 0)", names);
  return f("x1 * pow(abs(x1), two_less) * g * masked_fill(reciprocal(pow(n, less)), eq(n, 0), 0)", names);
}

}  // namespace

void register_formula_reductions(OpTable& t) {
  t.add_formula_functions({
      {"restore_reduced_dims", restore_reduced_dims},
      {"sum_backward", sum_backward},
      {"mean_backward", mean_backward},
      {"scale_grad_by_count", scale_grad_by_count},
      {"extreme_backward", extreme_backward},
      {"evenly_distribute_backward", evenly_distribute_backward},
      {"value_selecting_reduction_backward", value_selecting_reduction_backward},
      {"var_backward", var_backward},
      {"std_backward", std_backward},
      {"prod_backward", prod_backward},
      {"cumprod_backward", cumprod_backward},
      {"logcumsumexp_backward", logcumsumexp_backward},
      {"trace_backward", trace_backward},
      {"cumsum_backward", cumsum_backward},
      {"logsumexp_backward", logsumexp_backward},
      {"vector_norm_backward", vector_norm_backward},
  });
}

}  // namespace partita
