// The pseudo-inverse, by singular values or, for Hermitian matrices, by eigenvalues.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/families/linalg.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/tensor/convert.h"

namespace partita {

namespace {

using namespace kernels;

Meta fake_pinv(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_matrix(self, "linalg.pinv");
  return new_like(self, with_batch(leading(self.sizes, 2), {columns_of(self), rows_of(self)}));
}

/// A tolerance for each matrix: the tensor argument broadcast to the batch, or `otherwise` when it is None.
std::vector<double> tolerances(const EvalCall& c, const char* name, const Sizes& batch, std::int64_t count,
                               double otherwise) {
  if (!c.has(name)) return std::vector<double>(static_cast<std::size_t>(count), otherwise);
  Tensor t = load(expand_batch(c.tensor(name), batch, 0), DType::Float64);
  return {t.as<double>(), t.as<double>() + count};
}

/// A matrix as a sum over i of values[i] * left column i * (right column i)^H. Both are column-major.
template <class T>
struct Spectrum {
  using Real = decltype(std::abs(T()));
  std::vector<T> left, right;
  std::vector<Real> values;
};

template <class T>
Spectrum<T> singular_values(T* a, int m, int n) {
  int k = std::min(m, n);
  auto area = [](int x, int y) { return static_cast<std::size_t>(x) * static_cast<std::size_t>(y); };
  Spectrum<T> s{std::vector<T>(area(m, k)), std::vector<T>(area(n, k)), {}};
  std::vector<T> adjoint(area(k, n));
  s.values.resize(static_cast<std::size_t>(k));
  if (!lapack::singular_values<T>('S', m, n, a, s.values.data(), s.left.data(), adjoint.data()))
    fail("linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.");
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < n; ++j) {
      T v = adjoint[area(j, k) + static_cast<std::size_t>(i)];
      if constexpr (is_complex_type<T>::value) v = std::conj(v);
      s.right[area(i, n) + static_cast<std::size_t>(j)] = v;
    }
  return s;
}

template <class T>
Spectrum<T> eigenvalues(T* a, int n) {
  Spectrum<T> s;
  s.values.resize(static_cast<std::size_t>(n));
  if (lapack::heevd<T>('V', 'L', n, a, n, s.values.data()) > 0)
    fail(
        "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
        "repeated eigenvalues.");
  s.left.assign(a, a + static_cast<std::ptrdiff_t>(n) * n);
  s.right = s.left;
  return s;
}

Value eval_pinv(EvalCall& c) {
  // Computed in double, because the gradient multiplies the error of the pseudo-inverse by the condition number.
  const DType kept = c.tensor("self").dtype, wide = is_complex(kept) ? DType::Complex128 : DType::Float64;
  Matrices a(load(c.tensor("self"), wide));
  std::int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  Tensor inverse = zeros_for(c, fake_pinv, wide);
  if (inverse.numel() == 0) return inverse;
  bool hermitian = c.boolean("hermitian");
  if (hermitian && m != n) fail("linalg.pinv: A must be square when hermitian=True");
  double eps =
      real_of(kept) == DType::Float64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Sizes batch = batch_of(c.tensor("self"));
  std::vector<double> atol = tolerances(c, "atol", batch, a.count, 0);
  std::vector<double> rtol = tolerances(c, "rtol", batch, a.count, eps * static_cast<double>(std::max(m, n)));
  dispatch_inexact(kept, "pinv", [&]<class Kept>() {
    using T = std::conditional_t<is_complex_type<Kept>::value, std::complex<double>, double>;
    for (std::int64_t b : steps(a.count, 4096)) {
      auto s = hermitian ? eigenvalues(a.at<T>(b), static_cast<int>(n))
                         : singular_values(a.at<T>(b), static_cast<int>(m), static_cast<int>(n));
      double largest = 0;
      for (auto v : s.values) largest = std::max(largest, static_cast<double>(std::abs(v)));
      auto at = static_cast<std::size_t>(b);
      // If only one tolerance is given and it is not 0, the default of the other does not apply.
      double relative = c.has("atol") && !c.has("rtol") && atol[at] > 0 ? 0 : rtol[at];
      double least = std::max(atol[at], relative * largest);
      T* y = inverse.as<T>() + b * n * m;
      for (std::int64_t r = 0; r < k; ++r) {
        auto value = s.values[static_cast<std::size_t>(r)];
        if (!(static_cast<double>(std::abs(value)) > least)) continue;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < m; ++j) {
            T l = s.left[static_cast<std::size_t>(r * m + j)];
            if constexpr (is_complex_type<T>::value) l = std::conj(l);
            y[i * m + j] += s.right[static_cast<std::size_t>(r * n + i)] / value * l;
          }
      }
    }
  });
  return inverse;
}

}  // namespace

void register_linalg_spectral(OpTable& t) {
  t.add("aten.linalg_pinv.atol_rtol_tensor", fake_pinv, eval_pinv, {{"self", "pinv_backward(grad, result, self)"}},
        {.cost = {.expensive = true}});
}

}  // namespace partita
