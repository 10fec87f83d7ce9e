// The exponential of square matrices by Taylor polynomials of degree 1, 2, 4, 8, 12 or 18, which take 0 to 5 matrix
// products (Bader, Blanes, Casas: "Computing the matrix exponential with an optimized Taylor polynomial approximation",
// 2019). Computed in double and rounded once.
#include <array>
#include <cmath>

#include "core/ops/families/linalg.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

Meta fake_matrix_exp(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_square(c, self, "linalg.matrix_exp");
  return new_like(self, self.sizes);
}

/// The largest norms for which the polynomials of degree 1, 2, 4, 8, 12 and 18 are exact up to rounding.
constexpr std::array<double, 6> bounds = {2.220446049250313e-16, 2.580956802971767e-08, 3.397168839976962e-04,
                                          4.991228871115323e-02, 2.996158913811580e-01, 1.090863719290036e+00};

/// A dense n x n matrix, row-major.
template <class T>
struct Square {
  std::int64_t n;
  std::vector<T> values;

  explicit Square(std::int64_t n) : n(n), values(static_cast<std::size_t>(n * n)) {}

  Square operator*(const Square& b) const {
    Square out(n);
    gemm<T>(n, n, n, {values.data(), n, 1}, {b.values.data(), n, 1}, out.values.data(), n);
    return out;
  }
  Square operator+(const Square& b) const {
    Square out = *this;
    for (std::size_t i = 0; i < values.size(); ++i) out.values[i] += b.values[i];
    return out;
  }
};

/// The sum of factors times terms.
template <class T, std::size_t count>
Square<T> combine(const std::array<const Square<T>*, count>& terms, const std::array<double, count>& factors) {
  Square<T> out(terms[0]->n);
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] += factors[k] * terms[k]->values[i];
  return out;
}

template <class T>
Square<T> degree_8(const Square<T>& one, const Square<T>& a, const Square<T>& a2) {
  const double r = std::sqrt(177.0), x3 = 2.0 / 3;
  Square<T> a4 = a2 * combine<T, 2>({&a, &a2}, {x3 * ((1 + r) / 88), x3 * ((1 + r) / 352)});
  Square<T> a8 = combine<T, 2>({&a2, &a4}, {x3, 1}) *
                 combine<T, 4>({&one, &a, &a2, &a4}, {(-271 + 29 * r) / (315 * x3), (-11 + 11 * r) / (1260 * x3),
                                                      (-99 + 11 * r) / (5040 * x3), (89 - r) / (5040 * x3)});
  return combine<T, 4>({&one, &a, &a2, &a8}, {1, 1, (857 - 58 * r) / 630, 1});
}

template <class T>
Square<T> degree_12(const Square<T>& one, const Square<T>& a, const Square<T>& a2) {
  Square<T> a3 = a * a2;
  auto linear = [&](std::array<double, 4> b) { return combine<T, 4>({&one, &a, &a2, &a3}, b); };
  Square<T> b0 = linear({9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740});
  Square<T> b1 =
      linear({5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031, 0.01108844528519167989});
  Square<T> b2 =
      linear({0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968, 0.00610700528898058230});
  Square<T> b3 = linear({-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359});
  Square<T> a6 = b2 + b3 * b3;
  return b0 + (b1 + a6) * a6;
}

template <class T>
Square<T> degree_18(const Square<T>& one, const Square<T>& a, const Square<T>& a2) {
  Square<T> a3 = a * a2, a6 = a3 * a3;
  auto linear = [&](std::array<double, 5> b) { return combine<T, 5>({&one, &a, &a2, &a3, &a6}, b); };
  Square<T> b0 = linear({0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0});
  Square<T> b1 = linear({0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01,
                         -6.37898194594723280150e-04});
  Square<T> b2 = linear({-1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02,
                         -6.98210122488052056106e-03, 3.34975017086070470649e-05});
  Square<T> b3 = linear({-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
                         2.95552570429315521194e-02, -1.39180257516060693404e-05});
  Square<T> b4 = linear({0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05});
  Square<T> a9 = b3 + b0 * b4;
  return b1 + (b2 + a9) * a9;
}

template <class T>
Square<T> exponential(Square<T> a) {
  double norm = 0;  // the largest column sum
  for (std::int64_t j = 0; j < a.n; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.n; ++i) sum += std::abs(a.values[static_cast<std::size_t>(i * a.n + j)]);
    if (!std::isfinite(sum)) fail_unsupported("matrix_exp of a matrix with elements that are not finite");
    norm = std::max(norm, sum);
  }
  Square<T> one(a.n);
  for (std::int64_t i = 0; i < a.n; ++i) one.values[static_cast<std::size_t>(i * a.n + i)] = T(1);
  if (norm <= bounds[0]) return one + a;
  int squarings = 0;
  if (norm > bounds[4]) {
    squarings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / bounds[5]))));
    for (T& x : a.values) x /= std::ldexp(1.0, squarings);
  }
  Square<T> a2 = a * a;
  if (norm <= bounds[1]) return combine<T, 3>({&one, &a, &a2}, {1, 1, 0.5});
  if (norm <= bounds[2]) {
    Square<T> a4 = a2 * combine<T, 3>({&one, &a, &a2}, {1 / 2.0, 1 / 6.0, 1 / 24.0});
    return combine<T, 3>({&one, &a, &a4}, {1, 1, 1});
  }
  if (norm <= bounds[3]) return degree_8(one, a, a2);
  if (norm <= bounds[4]) return degree_12(one, a, a2);
  Square<T> result = degree_18(one, a, a2);
  for (int k = 0; k < squarings; ++k) result = result * result;
  return result;
}

Value eval_matrix_exp(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  if (self.dtype == DType::BFloat16 || self.dtype == DType::Float16)
    fail_unsupported("matrix_exp of a half type, whose coefficients PyTorch's CPU kernel misreads");
  const Tensor x = load(self, accumulate_dtype(self.dtype)), result = empty(x.dtype, x.sizes);
  auto each_matrix = [&]<class T>() {
    std::int64_t n = x.sizes.back();
    for (std::int64_t at = 0; at < x.numel(); at += n * n) {
      T* to = result.as<T>() + at;
      if (n == 1) {
        *to = std::exp(x.as<T>()[at]);
        continue;
      }
      Square<T> a(n);
      std::copy_n(x.as<T>() + at, n * n, a.values.begin());
      Square<T> e = exponential(std::move(a));
      std::copy(e.values.begin(), e.values.end(), to);
    }
  };
  if (is_complex(x.dtype))
    each_matrix.operator()<std::complex<double>>();
  else
    each_matrix.operator()<double>();
  return result;
}

}  // namespace

void register_linalg_matrix_exp(OpTable& t) {
  t.add("aten.linalg_matrix_exp.default", fake_matrix_exp, eval_matrix_exp,
        {{"self", "matrix_exp_backward(grad, self)"}}, {.cost = {.expensive = true}});
  t.add("aten.matrix_exp.default", {.program = "linalg_matrix_exp(self)"});
}

}  // namespace partita
