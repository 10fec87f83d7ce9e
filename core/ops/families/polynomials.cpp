// Orthogonal polynomials by their three-term recurrences, in the dtype of x (Abramowitz and Stegun, 22.7). Chebyshev
// polynomials of high degree inside (-1, 1) use the trigonometric form (22.3.15-16). A negative degree gives 0. Each
// step is a fused multiply-add, as in PyTorch's kernels: near a zero of a polynomial of high degree the result consists
// of rounding errors only.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/ops/families/special.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/loop_budget.h"
#include "core/ops/record/record.h"
#include "core/tensor/convert.h"

namespace partita {
namespace {

/// The recurrence p(0) = 1, p(1) = first, p(k + 1) = next(k, p(k), p(k - 1)). It ends early at NaN.
template <class T, class Next>
T recur(std::int64_t n, T first, Next next) {
  if (n < 0) return 0;
  if (n == 0) return 1;
  T before = 1, p = first;
  constexpr std::int64_t between = 4096;
  for (std::int64_t done : steps(n - 1)) {
    if (std::isnan(p)) break;
    if (done % between == 0) LoopBudget::spend(std::min(between, n - 1 - done));
    T after = next(static_cast<T>(done + 1), p, before);
    before = p;
    p = after;
  }
  return p;
}

template <class T>
T chebyshev(T x, std::int64_t n, T first) {
  return recur(n, first, [x](T, T p, T before) { return std::fma(x + x, p, -before); });
}

/// `even` for an even degree, else -even.
template <class T>
T alternating(std::int64_t n, T even) {
  return n % 2 == 0 ? even : -even;
}

// Degrees wrap too, as in PyTorch.
std::int64_t after(std::int64_t n) {
  return kernels::wrapping_sum<std::int64_t>(n, 1);
}
std::int64_t twice(std::int64_t n) {
  return kernels::wrapping_sum(n, n);
}

constexpr auto chebyshev_t = []<class T>(T x, T degree) -> T {
  auto n = convert<std::int64_t>(degree);
  if (n < 0) return 0;
  if (std::abs(x) == 1) return x > 0 ? T(1) : alternating(n, T(1));
  if (n > 6 && std::abs(x) < 1) return std::cos(static_cast<T>(n) * std::acos(x));
  return chebyshev(x, n, x);
};

constexpr auto chebyshev_u = []<class T>(T x, T degree) -> T {
  auto n = convert<std::int64_t>(degree);
  if (n < 0) return 0;
  T count = static_cast<T>(after(n));
  if (std::abs(x) == 1) return x > 0 ? count : alternating(n, count);
  if (n > 8 && std::abs(x) < 1) {
    T angle = std::acos(x), sine = std::sin(angle);
    return sine != 0 ? std::sin(count * angle) / sine : count * std::cos(count * angle) / x;
  }
  return chebyshev(x, n, x + x);
};

constexpr auto chebyshev_v = []<class T>(T x, T degree) -> T {
  auto n = convert<std::int64_t>(degree);
  if (n < 0) return 0;
  T end = static_cast<T>(after(twice(n)));
  if (std::abs(x) == 1) return x > 0 ? T(1) : alternating(n, end);
  if (n > 8 && std::abs(x) < 1) {
    T angle = std::acos(x);
    if (std::sin(angle / 2) == 1) return alternating(n, end);
    return std::cos((static_cast<T>(n) + T(0.5)) * angle) / std::cos(angle / 2);
  }
  return chebyshev(x, n, x + x - 1);
};

constexpr auto chebyshev_w = []<class T>(T x, T degree) -> T {
  auto n = convert<std::int64_t>(degree);
  if (n < 0) return 0;
  T end = static_cast<T>(after(twice(n)));
  if (std::abs(x) == 1) return x > 0 ? end : alternating(n, T(1));
  if (n > 8 && std::abs(x) < 1) {
    T angle = std::acos(x);
    if (std::cos(angle / 2) == 1) return end;
    return std::sin((static_cast<T>(n) + T(0.5)) * angle) / std::sin(angle / 2);
  }
  return chebyshev(x, n, x + x + 1);
};

/// Shifted polynomials are evaluated at 2x - 1, since their interval is [0, 1].
template <auto f>
constexpr auto shifted = []<class T>(T x, T degree) -> T { return f(x + x - 1, degree); };

constexpr auto hermite_h = []<class T>(T x, T degree) -> T {
  return recur(convert<std::int64_t>(degree), x + x,
               [x](T k, T p, T before) { return std::fma(x + x, p, -(k + k) * before); });
};

constexpr auto hermite_he = []<class T>(T x, T degree) -> T {
  return recur(convert<std::int64_t>(degree), x, [x](T k, T p, T before) { return std::fma(x, p, -k * before); });
};

constexpr auto laguerre = []<class T>(T x, T degree) -> T {
  return recur(convert<std::int64_t>(degree), 1 - x,
               [x](T k, T p, T before) { return std::fma(k + k + 1 - x, p, -k * before) / (k + 1); });
};

constexpr auto legendre = []<class T>(T x, T degree) -> T {
  auto n = convert<std::int64_t>(degree);
  if (n >= 0 && std::abs(x) == 1) return x > 0 ? T(1) : alternating(n, T(1));
  return recur(n, x, [x](T k, T p, T before) { return std::fma((k + k + 1) * x, p, -k * before) / (k + 1); });
};

struct Polynomial {
  std::string_view name;
  Value (*eval)(EvalCall&);
};
constexpr Polynomial polynomials[] = {
    {"chebyshev_polynomial_t", eval_special<chebyshev_t>},
    {"chebyshev_polynomial_u", eval_special<chebyshev_u>},
    {"chebyshev_polynomial_v", eval_special<chebyshev_v>},
    {"chebyshev_polynomial_w", eval_special<chebyshev_w>},
    {"shifted_chebyshev_polynomial_t", eval_special<shifted<chebyshev_t>>},
    {"shifted_chebyshev_polynomial_u", eval_special<shifted<chebyshev_u>>},
    {"shifted_chebyshev_polynomial_v", eval_special<shifted<chebyshev_v>>},
    {"shifted_chebyshev_polynomial_w", eval_special<shifted<chebyshev_w>>},
    {"hermite_polynomial_h", eval_special<hermite_h>},
    {"hermite_polynomial_he", eval_special<hermite_he>},
    {"laguerre_polynomial_l", eval_special<laguerre>},
    {"legendre_polynomial_p", eval_special<legendre>},
};

}  // namespace

void register_polynomials(OpTable& t) {
  t.default_family = Family::Pointwise;
  for (const Polynomial& row : polynomials)
    for (std::string_view overload : {"default", "n_scalar", "x_scalar"})
      t.add("aten.special_" + std::string(row.name) + "." + std::string(overload),
            {.fake = fake_special, .eval = row.eval, .pointwise = {.promotion = Promotion::IntToFloat}});
}

}  // namespace partita
