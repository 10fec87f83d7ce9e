// Fills tensors by distribution: uniform, normal, Bernoulli, integers and others. Each checks its parameters, then
// takes as many draws for an element as ATen's CPU kernel for that dtype, and computes with them as it does.
#include "core/ops/kernels/distributions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "core/ops/families/reduce_kernels.h"
#include "core/ops/kernels/box_muller.h"
#include "core/ops/kernels/broadcast.h"

namespace partita::kernels {
namespace {

[[noreturn]] void not_implemented(const char* kernel, DType t) {
  fail("\"" + std::string(kernel) + "\" not implemented for '" + std::string(torch_name(t)) + "'");
}

template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_float = is_half<T> || std::is_floating_point_v<T>;
template <class T>
using OpMath = std::conditional_t<is_half<T>, float, T>;

/// digits and max of std::numeric_limits<T>, which do not cover Half and BFloat16.
template <class T>
constexpr int digits = std::is_same_v<T, Half>       ? 11
                       : std::is_same_v<T, BFloat16> ? 8
                                                     : std::numeric_limits<T>::digits;
template <class T>
double largest() {
  if constexpr (std::is_same_v<T, Half>)
    return 65504;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return static_cast<double>(to_float(BFloat16{0x7f7f}));
  else
    return static_cast<double>(std::numeric_limits<T>::max());
}

template <class T>
T uniform_in_unit(Generator& numbers) {
  if constexpr (std::is_same_v<T, double>)
    return numbers.uniform();
  else
    return numbers.uniform_float();
}

/// Calls f.operator()<T>() for a floating element type; fails for others.
void dispatch_float(DType t, const char* kernel, auto f) {
  dispatch(t, [&]<class T>() {
    if constexpr (is_float<T>)
      f.template operator()<T>();
    else
      not_implemented(kernel, t);
  });
}
/// The same, and for the integer dtypes in AT_DISPATCH_ALL_TYPES.
void dispatch_real(DType t, const char* kernel, auto f) {
  if (t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64) not_implemented(kernel, t);
  dispatch(t, [&]<class T>() {
    if constexpr (is_complex_type<T>::value)
      not_implemented(kernel, t);
    else
      f.template operator()<T>();
  });
}

template <class T, class Draw>
void fill(const Tensor& out, Draw draw) {
  const Tensor t = in_memory_order(out);
  Line(t.sizes, t.strides).each([&](std::int64_t at) { t.as<T>()[at] = convert<T>(draw()); });
}

/// Fills by value(draws), which is given as many new draws for each element.
template <class T, std::size_t draws, class F>
void fill_from_draws(const Tensor& out, Generator& numbers, F value) {
  const Tensor t = in_memory_order(out);
  constexpr std::int64_t block = 1024;
  std::array<std::uint32_t, block * draws> words;
  if (!t.is_contiguous()) {
    return fill<T>(out, [&] {
      numbers.random(std::span(words).template first<draws>());
      return value(words.data());
    });
  }
  const std::int64_t n = t.numel();
  for (std::int64_t b : steps((n + block - 1) / block, block)) {
    T* part = t.as<T>() + b * block;
    const auto count = static_cast<std::size_t>(std::min(block, n - b * block));
    numbers.random(std::span(words).first(count * draws));
    for (std::size_t i = 0; i < count; ++i) part[i] = convert<T>(value(words.data() + i * draws));
  }
}

/// 53 bits of two draws.
std::uint64_t bits_of(const std::uint32_t* draws) {
  return (std::uint64_t{draws[0]} << 32 | draws[1]) & ((std::uint64_t{1} << 53) - 1);
}

/// torch.view_as_real.
Tensor as_real(const Tensor& t) {
  Tensor real = t;
  real.dtype = t.dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
  for (std::int64_t& stride : real.strides) stride *= 2;
  real.sizes.push_back(2);
  real.strides.push_back(1);
  real.offset *= 2;
  return real;
}

template <class T>
void fill_normal_blocks(const Tensor& out, double mean, double deviation, Generator& numbers) {
  using Op = OpMath<T>;
  T* data = out.as<T>();
  const std::int64_t n = out.numel();
  const auto draw = [&](std::int64_t first, std::int64_t count) {
    if constexpr (!is_half<T>) fill_uniform(out.view_as({count}, {1}, out.offset + first), 0, 1, numbers);
  };
  const auto transform = [&](std::int64_t first) {
    if constexpr (is_half<T>) {
      float block[16];
      for (float& u : block) u = numbers.uniform_float();
      box_muller_16(block, static_cast<float>(mean), static_cast<float>(deviation));
      for (int i = 0; i < 16; ++i) data[first + i] = convert<T>(block[i]);
    } else {
      box_muller_16(data + first, static_cast<Op>(mean), static_cast<Op>(deviation));
    }
  };
  draw(0, n);
  for (std::int64_t i : steps(n / 16, 16)) transform(i * 16);
  if (n % 16 == 0) return;
  draw(n - 16, 16);  // the last sixteen numbers are drawn again
  transform(n - 16);
}

/// The smallest number from `from` on that the dtype can represent (update_from and update_to in PyTorch).
template <class T>
std::int64_t round_up(std::int64_t from) {
  const auto next = convert<std::int64_t>(convert<T>(from + 1));
  if (next >= from) return from;
  const int log2 = 63 - std::countl_zero(static_cast<std::uint64_t>(std::abs(from + 1)));
  return next + (std::int64_t{1} << (log2 - digits<T> + 1));
}
template <class T>
std::int64_t round_down(std::int64_t to) {
  const auto previous = convert<std::int64_t>(convert<T>(to - 1));
  if (previous < to) return to;
  const int log2 = 63 - std::countl_zero(static_cast<std::uint64_t>(std::abs(to - 1)));
  return previous - (std::int64_t{1} << (log2 - digits<T> + 1));
}

template <class T>
void check_range(std::int64_t from, std::int64_t last, DType t) {
  const auto out_of = [&](const char* name) {
    fail(std::string(name) + " is out of bounds for torch." + std::string(torch_name(t)));
  };
  if constexpr (is_float<T>) {
    if (std::abs(static_cast<double>(from)) > largest<T>()) out_of("from");
    if (std::abs(static_cast<double>(last)) > largest<T>()) out_of("to - 1");
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, std::uint64_t>, std::int64_t, T>;
    const auto holds = [](std::int64_t v) {
      return v >= static_cast<std::int64_t>(std::numeric_limits<T>::lowest()) &&
             v <= static_cast<std::int64_t>(std::numeric_limits<Wide>::max());
    };
    if (!holds(from)) out_of("from");
    if (!holds(last)) out_of("to - 1");
  }
}

}  // namespace

Tensor in_memory_order(const Tensor& t) {
  std::vector<std::size_t> order(t.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t d) { return t.strides[d]; });
  Tensor out = t;
  for (std::size_t d = 0; d < order.size(); ++d) {
    out.sizes[d] = t.sizes[order[d]];
    out.strides[d] = t.strides[order[d]];
  }
  return out;
}

void fill_uniform(const Tensor& out, double from, double to, Generator& numbers) {
  if (is_complex(out.dtype)) return fill_uniform(as_real(out), from, to, numbers);
  dispatch_float(out.dtype, "check_uniform_bounds", [&]<class T>() {
    const auto check = [&](const char* name, double v) {
      if (!(std::abs(v) <= largest<T>()))
        fail(std::string(name) + " is out of bounds for torch." + std::string(torch_name(out.dtype)));
    };
    check("from", from);
    check("to", to);
    if (from > to)
      fail(fmt::format("uniform_ expects to return a [from, to) range, but found from={} > to={}", from, to));
    if (to - from > largest<T>())
      fail(
          fmt::format("uniform_ expects to-from <= std::numeric_limits::max(), but found to={} and from={}", to, from));
    using Op = OpMath<T>;
    const Op low = static_cast<Op>(from), length = static_cast<Op>(to) - low;
    const Op first = convert<Op>(convert<T>(from)), end = convert<Op>(convert<T>(to));
    const auto scaled = [=](Op in_unit) {
      const Op v = convert<Op>(convert<T>(low == 0 ? in_unit * length : std::fma(in_unit, length, low)));
      return v == end ? first : v;  // a number that was rounded up to the excluded end
    };
    if constexpr (std::is_same_v<Op, double>)
      fill_from_draws<T, 2>(out, numbers, [&](const std::uint32_t* draws) {
        return scaled(static_cast<double>(bits_of(draws)) * 0x1p-53);
      });
    else
      fill_from_draws<T, 1>(out, numbers,
                            [&](const std::uint32_t* draw) { return scaled(Generator::uniform_of(*draw)); });
  });
}

void fill_normal(const Tensor& out, double mean, double deviation, Generator& numbers) {
  if (!(deviation >= 0)) fail(fmt::format("normal expects std >= 0.0, but found std {}", deviation));
  if (out.numel() == 0) return;
  if (is_complex(out.dtype)) return fill_normal(as_real(out), mean, deviation / std::numbers::sqrt2, numbers);
  dispatch_float(out.dtype, "normal_kernel_cpu", [&]<class T>() {
    if (out.numel() >= 16 && out.is_contiguous()) return fill_normal_blocks<T>(out, mean, deviation, numbers);
    fill<T>(out, [&] { return numbers.normal(mean, deviation); });
  });
}

void fill_log_normal(const Tensor& out, double mean, double deviation, Generator& numbers) {
  if (!(deviation > 0)) fail(fmt::format("log_normal_ expects std > 0.0, but found std={}", deviation));
  dispatch_float(out.dtype, "log_normal_cpu",
                 [&]<class T>() { fill<T>(out, [&] { return std::exp(numbers.normal(mean, deviation)); }); });
}

void fill_cauchy(const Tensor& out, double median, double sigma, Generator& numbers) {
  if (!(sigma > 0)) fail(fmt::format("cauchy_ expects sigma > 0.0, but found sigma={}", sigma));
  dispatch_float(out.dtype, "cauchy_cpu", [&]<class T>() {
    fill<T>(out, [&] { return std::fma(sigma, std::tan(std::numbers::pi * (numbers.uniform() - 0.5)), median); });
  });
}

void fill_exponential(const Tensor& out, double lambda, Generator& numbers) {
  if (!(lambda > 0)) fail(fmt::format("exponential_ expects lambda > 0.0, but found lambda={}", lambda));
  dispatch_float(out.dtype, "exponential_cpu",
                 [&]<class T>() { fill<T>(out, [&] { return -1.0 / lambda * std::log1p(-numbers.uniform()); }); });
}

void fill_geometric(const Tensor& out, double p, Generator& numbers) {
  if (!(p > 0 && p < 1)) fail(fmt::format("geometric_ expects p to be in (0, 1), but got p={}", p));
  if (out.dtype == DType::Bool) not_implemented("geometric_cpu", out.dtype);
  dispatch_real(out.dtype, "geometric_cpu", [&]<class T>() {
    fill<T>(out, [&] { return std::ceil(std::log(numbers.uniform()) / std::log1p(-p)); });
  });
}

void fill_bernoulli(const Tensor& out, double p, Generator& numbers) {
  if (!(p >= 0 && p <= 1)) fail(fmt::format("bernoulli_ expects p to be in [0, 1], but got p={}", p));
  // A number k / 2^53 is less than p where k is less than this.
  const auto limit = static_cast<std::uint64_t>(std::ceil(p * 0x1p53));
  dispatch_real(out.dtype, "bernoulli_scalar_cpu_", [&]<class T>() {
    fill_from_draws<T, 2>(out, numbers, [=](const std::uint32_t* draws) { return bits_of(draws) < limit; });
  });
}

void fill_bernoulli(const Tensor& out, const Tensor& p, Generator& numbers) {
  dispatch_real(out.dtype, "bernoulli_tensor_cpu_self_", [&]<class T>() {
    dispatch_float(p.dtype, "bernoulli_tensor_cpu_p_", [&]<class P>() {
      // p is laid out like out, so that both are visited in the same order.
      Tensor chances = unwrap(Tensor::empty_strided(DType::Float64, out.sizes, out.strides));
      chances.copy_from(expand_load(p, out.sizes, DType::Float64));
      const Tensor to = in_memory_order(out), from = in_memory_order(chances);
      Line(to.sizes, to.strides).each([&](std::int64_t at) {
        const double chance = from.as<double>()[at];
        if (!(chance >= 0 && chance <= 1)) fail("Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
        to.as<T>()[at] = convert<T>(static_cast<double>(uniform_in_unit<OpMath<P>>(numbers)) < chance);
      });
    });
  });
}

void fill_integers(const Tensor& out, std::int64_t from, std::optional<std::int64_t> to, Generator& numbers) {
  if (is_complex(out.dtype)) fail("check_random_bounds handles only integral, floating-point and boolean types");
  if (to && from >= *to)
    fail(fmt::format("random_ expects 'from' to be less than 'to', but got from={} >= to={}", from, *to));
  dispatch(out.dtype, [&]<class T>() {
    if constexpr (!is_complex_type<T>::value) {
      if (!to && from == std::numeric_limits<std::int64_t>::lowest()) {
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_floating_point_v<T> || std::is_same_v<T, BFloat16>)
          return fill<T>(out, [&] { return static_cast<std::int64_t>(numbers.random64()); });
        fail("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
      }
      std::int64_t last;
      if constexpr (is_float<T>) {
        from = round_up<T>(from);
        last = to ? round_down<T>(*to) - 1 : std::int64_t{1} << digits<T>;
        if (from > last)
          fail(
              fmt::format("random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                          "from={} >= to={}",
                          from, last + 1));
      } else {
        last = to ? *to - 1 : static_cast<std::int64_t>(std::numeric_limits<T>::max());
      }
      check_range<T>(from, last, out.dtype);
      const std::uint64_t range = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(from) + 1;
      // With 32 bits the remainder would be biased by more than 2^28 / 2^32.
      const bool wide = range >= std::uint64_t{1} << 28;
      fill<T>(out, [&] {
        const std::uint64_t drawn = wide ? numbers.random64() : numbers.random();
        return static_cast<std::int64_t>(drawn % range + static_cast<std::uint64_t>(from));
      });
    }
  });
}

void fill_integers(const Tensor& out, Generator& numbers) {
  dispatch_real(out.dtype, "random_kernel_cpu", [&]<class T>() {
    constexpr bool wide = std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>;
    std::uint64_t range;
    if constexpr (is_float<T>)
      range = (std::uint64_t{1} << digits<T>)+1;
    else
      range = static_cast<std::uint64_t>(std::numeric_limits<T>::max()) + 1;
    fill<T>(out, [&] { return static_cast<std::int64_t>((wide ? numbers.random64() : numbers.random()) % range); });
  });
}

}  // namespace partita::kernels
