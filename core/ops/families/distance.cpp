// Distances between rows (cdist, pdist), and cross products.
#include <cmath>

#include "core/ops/families/linalg.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// The p-norm of the difference of two rows. p = 0 counts the coordinates that differ.
template <class T>
double distance(const T* a, const T* b, std::int64_t n, double p) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (p == 0)
      sum += d != 0;
    else if (std::isinf(p))
      sum = std::isnan(d) || d > sum ? d : sum;
    else
      sum += p == 1 ? d : p == 2 ? d * d : std::pow(d, p);
  }
  return p == 0 || p == 1 || std::isinf(p) ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

/// The difference of two coordinates, rounded to their dtype. With p = inf it is compared for equality with the
/// distance, which was rounded so.
double difference(DType t, double a, double b) {
  return t == DType::Float64 ? a - b : static_cast<double>(static_cast<float>(a) - static_cast<float>(b));
}

/// What one distance adds to the gradient of a coordinate; `d` is the difference of the two rows in that coordinate.
double distance_gradient(double d, double grad, double distance, double p) {
  double sign = d > 0 ? 1 : d < 0 ? -1 : 0, size = std::abs(d);
  if (p == 0) return 0;
  if (p == 1) return grad * sign;
  if (std::isinf(p)) return size == distance ? grad * sign : 0;
  if (distance == 0 || (p < 1 && d == 0)) return 0;
  if (p == 2) return grad * d / distance;
  return sign * std::pow(size, p - 1) * grad / std::pow(distance, p - 1);
}

Meta fake_cdist(FakeCall& c) {
  const TensorMeta &a = c.tensor("x1"), &b = c.tensor("x2");
  if (a.dim() < 2 || b.dim() < 2) fail("cdist only supports at least 2D tensors");
  if (!checked(c, sym_eq(columns_of(a), columns_of(b)), "cdist"))
    fail("X1 and X2 must have the same number of columns. X1: " + columns_of(a).str() + " X2: " + columns_of(b).str());
  return new_like(a, with_batch(common_batch(c, a, b), {rows_of(a), rows_of(b)}));
}

Value eval_cdist(EvalCall& c) {
  Tensor y = zeros_for(c, fake_cdist);
  Sizes batch = common_batch(c.tensor("x1"), c.tensor("x2"));
  Tensor a = load(expand_batch(c.tensor("x1"), batch, 2), y.dtype),
         b = load(expand_batch(c.tensor("x2"), batch, 2), y.dtype);
  double p = as_double(c.number("p"));
  std::int64_t rows = y.sizes[y.sizes.size() - 2], columns = y.sizes.back(), n = a.sizes.back();
  dispatch_floating(y.dtype, "cdist", [&]<class T>() {
    for (std::int64_t i : steps(y.numel())) {
      std::int64_t entry = i / columns / rows, row = i / columns, column = entry * columns + i % columns;
      y.as<T>()[i] = static_cast<T>(distance(a.as<T>() + row * n, b.as<T>() + column * n, n, p));
    }
  });
  return y;
}

Meta fake_cdist_backward(FakeCall& c) {
  const TensorMeta &a = c.tensor("x1"), &b = c.tensor("x2");
  if (!checked(c, sym_eq(columns_of(a), columns_of(b)), "cdist_backward"))
    fail("X1 and X2 must have the same number of columns. X1: " + columns_of(a).str() + " X2: " + columns_of(b).str());
  SymList batch = common_batch(c, a, b);
  const SymList distances = with_batch(batch, {rows_of(a), rows_of(b)});
  for (const char* name : {"grad", "cdist"}) {
    if (!checked_sizes(c, c.tensor(name).sizes, distances, "cdist_backward"))
      fail(std::string("_cdist_backward: ") + name + " must have one element per pair of rows");
  }
  return new_like(a, with_batch(std::move(batch), {rows_of(a), columns_of(a)}));
}

Value eval_cdist_backward(EvalCall& c) {
  Tensor y = zeros_for(c, fake_cdist_backward, DType::Float64);
  const DType dtype = c.tensor("x1").dtype;
  Sizes batch = common_batch(c.tensor("x1"), c.tensor("x2"));
  auto operand = [&](const char* name) { return load(expand_batch(c.tensor(name), batch, 2), DType::Float64); };
  Tensor a = operand("x1"), b = operand("x2"), grad = operand("grad"), distances = operand("cdist");
  double p = as_double(c.number("p"));
  std::int64_t rows = grad.sizes[grad.sizes.size() - 2], columns = grad.sizes.back(), n = a.sizes.back();
  for (std::int64_t i : steps(grad.numel())) {
    std::int64_t row = i / columns, column = row / rows * columns + i % columns;
    for (std::int64_t k = 0; k < n; ++k)
      y.as<double>()[row * n + k] +=
          distance_gradient(difference(dtype, a.as<double>()[row * n + k], b.as<double>()[column * n + k]),
                            grad.as<double>()[i], distances.as<double>()[i], p);
  }
  return y;
}

Meta fake_pdist(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (self.dim() != 2) fail("pdist only supports 2D tensors, got: " + std::to_string(self.dim()) + "D");
  SymExpr n = self.sizes[0];
  return new_like(self, {sym_floordiv(n * (n - 1), 2)});
}

/// Calls f(pair number, first row, second row) for each pair of rows.
void each_pair(std::int64_t rows, auto use) {
  std::int64_t at = 0;
  for (std::int64_t i : steps(rows, 4096))
    for (std::int64_t j = i + 1; j < rows; ++j) use(at++, i, j);
}

Value eval_pdist(EvalCall& c) {
  Tensor x = load(c.tensor("self"), DType::Float64), y = zeros_for(c, fake_pdist, DType::Float64);
  double p = as_double(c.number("p"));
  std::int64_t n = x.sizes[1];
  each_pair(x.sizes[0], [&](std::int64_t at, std::int64_t i, std::int64_t j) {
    y.as<double>()[at] = distance(x.as<double>() + i * n, x.as<double>() + j * n, n, p);
  });
  return y;
}

Meta fake_pdist_backward(FakeCall& c) {
  const TensorMeta pairs = *fake_pdist(c).tensor();
  for (const char* name : {"grad", "pdist"})
    if (c.tensor(name).dim() != 1 || !checked(c, sym_eq(c.tensor(name).sizes[0], pairs.sizes[0]), "pdist_backward"))
      fail(std::string("_pdist_backward: ") + name + " must have one element per pair of rows");
  return new_like(c.tensor("self"), c.tensor("self").sizes);
}

Value eval_pdist_backward(EvalCall& c) {
  const DType dtype = c.tensor("self").dtype;
  Tensor y = zeros(DType::Float64, c.tensor("self").sizes), x = load(c.tensor("self"), DType::Float64),
         grad = load(c.tensor("grad"), DType::Float64), distances = load(c.tensor("pdist"), DType::Float64);
  double p = as_double(c.number("p"));
  std::int64_t n = x.sizes[1];
  each_pair(x.sizes[0], [&](std::int64_t at, std::int64_t i, std::int64_t j) {
    for (std::int64_t k = 0; k < n; ++k) {
      double g = distance_gradient(difference(dtype, x.as<double>()[i * n + k], x.as<double>()[j * n + k]),
                                   grad.as<double>()[at], distances.as<double>()[at], p);
      y.as<double>()[i * n + k] += g;
      y.as<double>()[j * n + k] -= g;
    }
  });
  return y;
}

Meta fake_cross(FakeCall& c) {
  const TensorMeta &a = c.tensor("self"), &b = c.tensor("other");
  if (a.dim() != b.dim()) fail("linalg.cross: inputs must have the same number of dimensions.");
  auto dim = wrap_dim(c.integer("dim"), a.dim());
  if (a.sizes.empty()) fail("linalg.cross: the inputs have no dimensions");
  if (a.dtype != b.dtype)
    fail("expected scalar type " + std::string(torch_name(a.dtype)) + " but found " + std::string(torch_name(b.dtype)));
  if (!a.sizes[dim].is(3) || !b.sizes[dim].is(3))
    fail("linalg.cross: inputs dimension " + std::to_string(dim) + " must have length 3.");
  SymList sizes[] = {a.sizes, b.sizes};
  return new_like(a, broadcast(c, sizes));
}

/// Element k along the dimension is u[k + 1] v[k + 2] - u[k + 2] v[k + 1], where 3 is 0 again.
Arg decompose_cross(DecomposeCall& c) {
  return build_program(c,
                       "back = [dim]; roll(self, [2], back) * roll(other, [1], back) - "
                       "roll(self, [1], back) * roll(other, [2], back)");
}

}  // namespace

void register_distance(OpTable& t) {
  t.add("aten._cdist_forward.default", fake_cdist, eval_cdist,
        {{"x1", "_cdist_backward(contiguous(grad), x1, x2, p, result)"},
         {"x2", "_cdist_backward(contiguous(mT(grad)), x2, x1, p, contiguous(mT(result)))"}});
  t.add("aten._cdist_backward.default", fake_cdist_backward, eval_cdist_backward);
  // Equal rows have the subgradient 0.
  t.add("aten._euclidean_dist.default",
        {.program = "n1 = sum(pow(x1, 2), [-1], True); n2 = sum(pow(x2, 2), [-1], True); "
                    "left = cat([x1 * -2, n1, ones_like(n1)], -1); right = cat([x2, ones_like(n2), n2], -1); "
                    "sqrt(clamp_min(matmul(left, mT(right)), 0))",
         .autograd = {.derivative = {{"x1",
                                      "ratio = masked_fill(grad / result, aten.eq.Scalar(result, 0), 0); "
                                      "x1 * sum(ratio, [-1], True) - matmul(ratio, x2)"},
                                     {"x2",
                                      "ratio = masked_fill(grad / result, aten.eq.Scalar(result, 0), 0); "
                                      "x2 * unsqueeze(sum(ratio, [-2]), -1) - matmul(mT(ratio), x1)"}}}});
  t.add("aten._pdist_forward.default", fake_pdist, eval_pdist,
        {{"self", "_pdist_backward(contiguous(grad), self, p, result)"}});
  t.add("aten._pdist_backward.default", fake_pdist_backward, eval_pdist_backward);
  t.add("aten.linalg_cross.default", fake_cross, nullptr,
        {{"self", "linalg_cross(conj(other), grad, dim=dim)"}, {"other", "linalg_cross(grad, conj(self), dim=dim)"}},
        {.compile_decompose = decompose_cross, .kept = Kept::CoreAten});
}

}  // namespace partita
