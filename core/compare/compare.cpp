// Compares two values: dtype, sizes and strides, then elements, integers exactly and others in double (errors, ulps,
// NaNs, cosine). judge_by_baseline() ranks errors against those of a run in double.
#include "core/compare/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/assign.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

/// The position of a float in the order of all floats of its width; neighbours differ by one.
template <class Bits>
std::int64_t ordinal(Bits bits) {
  constexpr Bits sign = Bits{1} << (sizeof(Bits) * 8 - 1);
  const auto magnitude = static_cast<std::int64_t>(bits & static_cast<Bits>(sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}
std::int64_t ordinal(DType t, double v) {
  switch (t) {
    case DType::Float64:
      return ordinal(std::bit_cast<std::uint64_t>(v));
    case DType::Float32:
      return ordinal(std::bit_cast<std::uint32_t>(static_cast<float>(v)));
    case DType::BFloat16:
      return ordinal(to_bfloat16(static_cast<float>(v)).bits);
    case DType::Float16:
      return ordinal(to_half(static_cast<float>(v)).bits);
    default:
      CHECK(false, "no ULP for this dtype");
  }
}
bool has_ulp(DType t) {
  return t == DType::Float64 || t == DType::Float32 || t == DType::BFloat16 || t == DType::Float16;
}

template <class T>
double magnitude(T v) {
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return std::abs(v);
  else
    return static_cast<double>(v);
}
bool is_nan(auto v) {
  return std::isnan(std::real(v)) || std::isnan(std::imag(v));
}
bool is_inf(auto v) {
  return std::isinf(std::real(v)) || std::isinf(std::imag(v));
}

/// The sums from which the angle between two vectors follows.
struct Angle {
  double dot = 0, first = 0, second = 0;

  void add(double x, double y) {
    dot += x * y;
    first += x * x;
    second += y * y;
  }
  template <class R>
  void add(std::complex<R> x, std::complex<R> y) {
    dot += (std::conj(x) * y).real();
    first += std::norm(x);
    second += std::norm(y);
  }
  std::optional<double> cosine() const {
    const double size = std::sqrt(first) * std::sqrt(second);
    return size > 0 && std::isfinite(size) && std::isfinite(dot) ? std::optional(dot / size) : std::nullopt;
  }
};

template <class T>
void compare_floats(Difference& d, const Tensor& expected, const Tensor& found, const Tolerance& tolerance, bool ulp,
                    DType grid) {
  const T* a = expected.as<T>();
  const T* b = found.as<T>();
  std::int64_t max_ulp = 0;
  Angle angle;
  for (std::int64_t i = 0; i < d.numel; ++i) {
    const T x = a[i], y = b[i];
    angle.add(x, y);
    d.nan_expected += is_nan(x);
    d.nan_found += is_nan(y);
    d.inf_expected += is_inf(x);
    d.inf_found += is_inf(y);
    bool same = x == y || (is_nan(x) && is_nan(y));
    if (same) {
      ++d.histogram.equal;
    } else if (is_nan(x) || is_nan(y) || is_inf(x) || is_inf(y)) {
      ++d.histogram.not_finite;
    } else {
      const double distance = std::abs(magnitude(T(y - x))), size = std::abs(magnitude(x));
      d.histogram.add(distance);
      d.max_abs = std::max(d.max_abs, distance);
      d.max_rel = std::max(d.max_rel, size > 0 ? distance / size : std::numeric_limits<double>::infinity());
      if constexpr (std::is_same_v<T, double>)
        if (ulp) max_ulp = std::max(max_ulp, std::abs(ordinal(grid, y) - ordinal(grid, x)));
      same = distance <= tolerance.absolute + tolerance.relative * size;
    }
    if (same) continue;
    if (d.wrong++ == 0) d.first_wrong = WrongElement{index_at(expected.sizes, i), magnitude(x), magnitude(y)};
  }
  if (ulp) d.max_ulp = max_ulp;
  d.cosine = angle.cosine();
}

void compare_integers(Difference& d, const Tensor& expected, const Tensor& found) {
  dispatch(expected.dtype, [&]<class T>() {
    if constexpr (is_integral_type<T>) {
      const T* a = expected.as<T>();
      const T* b = found.as<T>();
      Angle angle;
      for (std::int64_t i = 0; i < d.numel; ++i) {
        const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
        angle.add(x, y);
        if (a[i] == b[i]) {
          ++d.histogram.equal;
          continue;
        }
        d.histogram.add(std::abs(x - y));
        d.max_abs = std::max(d.max_abs, std::abs(x - y));
        d.max_rel = std::max(d.max_rel, x != 0 ? std::abs((x - y) / x) : std::numeric_limits<double>::infinity());
        if (d.wrong++ == 0) d.first_wrong = WrongElement{index_at(expected.sizes, i), x, y};
      }
      d.cosine = angle.cosine();
    }
  });
}

/// Views complex32, which has no arithmetic here, as pairs of float16 numbers.
Tensor as_pairs(Tensor t) {
  t.dtype = DType::Float16;
  for (std::int64_t& stride : t.strides) stride *= 2;
  t.offset *= 2;
  t.sizes.push_back(2);
  t.strides.push_back(1);
  return t;
}

void compare_tensors(Difference& d, const Tensor& expected, const Tensor& found, const Tolerance& tolerance,
                     bool strides) {
  d.numel = expected.numel();
  if (expected.dtype != found.dtype)
    d.layout.push_back(
        fmt::format("dtype: {} expected, {} found", torch_name(expected.dtype), torch_name(found.dtype)));
  if (expected.sizes != found.sizes) {
    d.layout.push_back(
        fmt::format("sizes: [{}] expected, [{}] found", fmt::join(expected.sizes, ", "), fmt::join(found.sizes, ", ")));
    return;
  }
  if (strides && !same_significant_strides(expected.sizes, expected.strides, found.strides))
    d.layout.push_back(fmt::format("strides: [{}] expected, [{}] found", fmt::join(expected.strides, ", "),
                                   fmt::join(found.strides, ", ")));
  if (d.numel == 0) return;
  if (expected.dtype == DType::Complex32 && found.dtype == DType::Complex32)
    return compare_tensors(d, as_pairs(expected), as_pairs(found), default_tolerance(DType::Float16), false);
  if (!has_arithmetic(expected.dtype) || !has_arithmetic(found.dtype)) {
    if (expected.dtype != found.dtype) return;
    Tensor a = expected, b = found;  // compare bit for bit
    a.dtype = b.dtype = itemsize(a.dtype) == 1 ? DType::UInt8 : itemsize(a.dtype) == 2 ? DType::UInt16 : DType::Int32;
    return compare_tensors(d, a, b, tolerance, false);
  }
  const bool integers = expected.dtype == found.dtype && !is_floating(expected.dtype) && !is_complex(expected.dtype);
  const DType meet = integers                                                ? expected.dtype
                     : is_complex(expected.dtype) || is_complex(found.dtype) ? DType::Complex128
                                                                             : DType::Float64;
  const auto a = expected.to(meet), b = found.to(meet);
  if (!a || !b) {
    d.layout.push_back((a ? b : a).error().message);
    return;
  }
  if (integers)
    compare_integers(d, *a, *b);
  else if (meet == DType::Complex128)
    compare_floats<std::complex<double>>(d, *a, *b, tolerance, false, meet);
  else
    compare_floats<double>(d, *a, *b, tolerance, expected.dtype == found.dtype && has_ulp(expected.dtype),
                           expected.dtype);
  d.values_agree = d.wrong == 0;
}

std::optional<Tensor> as_tensor(const Value& v) {
  auto tensor = tensor_or_number(v);
  return tensor ? *std::move(tensor) : std::nullopt;
}

}  // namespace

Result<std::optional<Tensor>> tensor_or_number(const Value& value) {
  std::optional<Tensor> out;
  if (const auto* t = value.get<Tensor>()) out = *t;
  if (const auto* i = value.get<std::int64_t>()) {
    TRY(out, Tensor::empty(DType::Int64, {}));
    *out->as<std::int64_t>() = *i;  // not through a double, which has fewer digits
  }
  if (const auto* b = value.get<bool>()) TRY_DO(assign(out, Tensor::scalar(DType::Bool, *b)));
  if (const auto* x = value.get<double>()) TRY_DO(assign(out, Tensor::scalar(DType::Float64, *x)));
  return out;
}

Sizes index_at(const Sizes& sizes, std::int64_t position) {
  Sizes index(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) continue;
    index[d] = position % sizes[d];
    position /= sizes[d];
  }
  return index;
}

void ErrorHistogram::add(double error) {
  static_assert(lowest == -16 && highest == 6);
  static constexpr double powers[] = {1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5,
                                      1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,   1e2,  1e3,  1e4,  1e5,  1e6};
  ++decades[static_cast<std::size_t>(std::ranges::upper_bound(powers, error) - std::begin(powers))];
}

Tolerance default_tolerance(DType t) {
  switch (t) {
    case DType::Float16:
    case DType::Complex32:
      return {1e-3, 1e-5};
    case DType::BFloat16:
      return {1.6e-2, 1e-5};
    case DType::Float32:
    case DType::Complex64:
      return {1.3e-6, 1e-5};
    case DType::Float64:
    case DType::Complex128:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

Tolerance Tolerance::of(DType t) const {
  double last_place = 0;
  if (t == DType::Float16 || t == DType::Complex32) last_place = 0x1p-10;
  if (t == DType::BFloat16) last_place = 0x1p-7;
  return {unit ? std::max(relative, last_place) : relative, absolute};
}

Difference compare_values(std::string name, const Value& expected, const Value& found, const Tolerance& tolerance,
                          bool strides) {
  Difference d;
  d.name = std::move(name);
  const auto a = as_tensor(expected), b = as_tensor(found);
  if (a && b) {
    compare_tensors(d, *a, *b, tolerance.of(b->dtype), strides);
  } else if (expected.v.index() != found.v.index()) {
    const auto kind = [](const Value& v) {
      return v.is_none() ? "None" : v.get<Tensor>() ? "a tensor" : "another kind of value";
    };
    d.layout.push_back(fmt::format("kind: {} expected, {} found", kind(expected), kind(found)));
  }
  return d;
}

namespace {

using Complex = std::complex<double>;

bool same(Complex a, Complex b) {
  const auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return equal(a.real(), b.real()) && equal(a.imag(), b.imag());
}
bool finite(Complex v) {
  return std::isfinite(v.real()) && std::isfinite(v.imag());
}

/// Row-major.
std::optional<Tensor> widest(const Value& v) {
  const auto t = as_tensor(v);
  if (!t || !has_arithmetic(t->dtype)) return std::nullopt;
  const auto wide = t->to(DType::Complex128);
  return wide ? std::optional(*wide) : std::nullopt;
}

/// How far a value's elements are from those of a run in double, in tolerances.
class Errors {
 public:
  /// `narrow`: the exact element in the value's dtype. `differs`: the other value has another element here.
  void add(Complex exact, Complex element, Complex narrow, double unit, bool differs) {
    if (finite(exact) && finite(element)) {
      const double error = std::abs(element - exact) / unit;
      all_.push_back(error);
      if (differs) where_they_differ_.push_back(error);
    } else if (differs) {
      finite_alike_ = finite_alike_ && same(element, narrow);
    }
  }
  /// Is each error where they differ at most twice the other's of the same rank, or one tolerance?
  bool are_like(Errors& other) {
    std::ranges::sort(where_they_differ_, std::greater());
    std::ranges::sort(other.all_, std::greater());
    for (std::size_t i = 0; i < where_they_differ_.size(); ++i) {
      const double usual = i < other.all_.size() ? other.all_[i] : 0;
      if (where_they_differ_[i] > std::max(1.0, 2 * usual)) return false;
    }
    return finite_alike_;
  }

 private:
  std::vector<double> all_, where_they_differ_;
  bool finite_alike_ = true;
};

}  // namespace

bool judge_by_baseline(Difference& d, const Value& baseline, const Value& expected, const Value& found,
                       const Tolerance& given) {
  const auto exact = widest(baseline), theirs = widest(expected), ours = widest(found);
  if (!exact || !theirs || !ours || exact->sizes != theirs->sizes || exact->sizes != ours->sizes) return true;
  // A value that is finite in double may be infinite in the result's dtype.
  const DType dtype = as_tensor(found)->dtype;
  const Tolerance tolerance = given.of(dtype);
  const auto rounded = exact->to(dtype);
  const auto narrow = rounded ? widest(*rounded) : std::nullopt;
  if (!narrow) return true;
  d.expected_error = d.found_error = 0;
  Errors of_expected, of_found;
  for (std::int64_t i = 0; i < d.numel; ++i) {
    const Complex x = exact->as<Complex>()[i], a = theirs->as<Complex>()[i], b = ours->as<Complex>()[i];
    const double unit = std::max(tolerance.absolute + tolerance.relative * std::abs(x), 1e-30);
    if (finite(x) && finite(a)) d.expected_error = std::max(*d.expected_error, std::abs(a - x));
    if (finite(x) && finite(b)) d.found_error = std::max(*d.found_error, std::abs(b - x));
    const bool agree = same(a, b) || (finite(a) && finite(b) &&
                                      std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(a));
    of_expected.add(x, a, narrow->as<Complex>()[i], unit, !agree);
    of_found.add(x, b, narrow->as<Complex>()[i], unit, !agree);
  }
  d.rounding = !d.values_agree && of_found.are_like(of_expected);
  return of_expected.are_like(of_found);
}

}  // namespace partita
