#include "core/compare/torch_same.h"

#include <cmath>
#include <complex>

namespace partita {
namespace {

using Complex = std::complex<double>;

bool is_nan(Complex v) {
  return std::isnan(v.real()) || std::isnan(v.imag());
}

/// The elements as complex doubles in row-major order.
std::optional<Tensor> widest(const Tensor& t) {
  auto wide = t.to(DType::Complex128);
  return wide ? std::optional(*std::move(wide)) : std::nullopt;
}

struct Elements {
  const Complex* at = nullptr;
  std::int64_t count = 0;

  explicit Elements(const Tensor& t) : at(t.as<Complex>()), count(t.numel()) {}
  bool any_nan() const {
    for (std::int64_t i = 0; i < count; ++i)
      if (is_nan(at[i])) return true;
    return false;
  }
};

/// torch.allclose(a, b): the tolerance is relative to b.
bool all_close(const Elements& a, const Elements& b, double tolerance, bool equal_nan) {
  for (std::int64_t i = 0; i < a.count; ++i) {
    const Complex x = a.at[i], y = b.at[i];
    if (x == y || (equal_nan && is_nan(x) && is_nan(y))) continue;
    const double distance = std::abs(x - y);
    if (!(distance <= tolerance + tolerance * std::abs(y)) || !std::isfinite(distance)) return false;
  }
  return true;
}

double root_mean_square(const Elements& a, const Elements& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.count; ++i) sum += std::norm(a.at[i] - b.at[i]);
  return std::sqrt(sum / static_cast<double>(a.count));
}

double multiplier(const Tensor& result, const SameOptions& options) {
  if (result.dtype == DType::Float16 || result.dtype == DType::BFloat16) return 3;
  const bool one_by_one = result.dim() == 4 && result.sizes[2] == 1 && result.sizes[3] == 1;
  return result.numel() < 1000 || one_by_one || options.tolerance >= 2e-2 ? 3 : 2;
}

std::optional<std::string> difference(const Tensor& reference, const Tensor& result, const Tensor* exact,
                                      const SameOptions& options) {
  if (reference.dtype != result.dtype) return "dtype";
  if (reference.sizes != result.sizes) return "sizes";
  if (reference.numel() == 0) return std::nullopt;
  const auto a = widest(reference), b = widest(result);
  if (!a || !b) return std::nullopt;  // a dtype without arithmetic
  const Elements x(*a), y(*b);
  if (all_close(x, y, options.tolerance, options.equal_nan)) return std::nullopt;
  const std::string what = y.any_nan() && !x.any_nan() ? "nan" : "values";
  const auto wide =
      exact && (exact->dtype == DType::Float64 || exact->dtype == DType::Complex128) && exact->sizes == reference.sizes
          ? widest(*exact)
          : std::nullopt;
  if (!wide) return what;
  const Elements z(*wide);
  // The result may be better than the reference: no NaN where the run in double precision has none.
  constexpr double loose = 4e-2;
  if (!z.any_nan() && !y.any_nan() && x.any_nan() && all_close(z, y, loose, options.equal_nan)) return std::nullopt;
  const double reference_error = root_mean_square(z, x), result_error = root_mean_square(z, y);
  if (result_error <= multiplier(result, options) * reference_error + options.tolerance / 10) return std::nullopt;
  if (options.equal_nan && std::isnan(reference_error) && std::isnan(result_error)) return std::nullopt;
  return what;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (const auto* x = a.get<std::int64_t>()) return *x == *b.get<std::int64_t>();
  if (const auto* x = a.get<bool>()) return *x == *b.get<bool>();
  return true;
}

}  // namespace

std::optional<std::string> torch_difference(const Value& reference, const Value& result, const Value& exact,
                                            const SameOptions& options) {
  if (reference.v.index() != result.v.index()) return "kind";
  if (const auto* t = reference.get<Tensor>())
    return difference(*t, *result.get<Tensor>(), exact.get<Tensor>(), options);
  if (const auto* x = reference.get<double>()) {
    const double y = *result.get<double>();
    const bool close =
        *x == y || (std::isnan(*x) && std::isnan(y)) || std::abs(*x - y) <= options.tolerance * (1 + std::abs(y));
    return close ? std::nullopt : std::optional<std::string>("values");
  }
  return equal_numbers(reference, result) ? std::nullopt : std::optional<std::string>("values");
}

}  // namespace partita
