#include "core/ops/kernels/fft.h"

#include <bit>
#include <numbers>
#include <optional>

#include <unsupported/Eigen/FFT>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {
namespace {

using Complex = std::complex<double>;
using Plan = Eigen::FFT<double>;

std::int64_t largest_prime_factor(std::int64_t n) {
  std::int64_t largest = 1;
  for (std::int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return std::max(largest, n);
}

/// Bluestein's algorithm: a transform of any length as a convolution, which three transforms of a power of two compute.
/// Its time is n log n where Eigen's is n times the largest prime factor.
class ChirpTransform {
 public:
  ChirpTransform(Plan& plan, std::size_t length, bool forward)
      : plan_(plan),
        chirp_(length),
        padded_(std::bit_ceil(2 * length - 1)),
        kernel_(padded_),
        a_(padded_),
        b_(padded_) {
    for (std::size_t i = 0; i < length; ++i) {
      const auto turn = static_cast<double>(i * i % (2 * length)) / static_cast<double>(length);
      chirp_[i] = std::polar(1.0, (forward ? -1 : 1) * std::numbers::pi * turn);
    }
    a_[0] = std::conj(chirp_[0]);
    for (std::size_t i = 1; i < length; ++i) a_[i] = a_[padded_ - i] = std::conj(chirp_[i]);
    plan_.fwd(kernel_.data(), a_.data(), static_cast<std::int64_t>(padded_));
  }

  void operator()(const Complex* line, Complex* result) {
    const auto n = static_cast<std::int64_t>(padded_);
    std::fill(a_.begin(), a_.end(), 0);
    for (std::size_t i = 0; i < chirp_.size(); ++i) a_[i] = line[i] * chirp_[i];
    plan_.fwd(b_.data(), a_.data(), n);
    StopsLoops::check();
    for (std::size_t i = 0; i < padded_; ++i) b_[i] *= kernel_[i];
    plan_.inv(a_.data(), b_.data(), n);
    StopsLoops::check();
    for (std::size_t i = 0; i < chirp_.size(); ++i) result[i] = a_[i] * chirp_[i] / static_cast<double>(padded_);
  }

 private:
  Plan& plan_;
  std::vector<Complex> chirp_;
  std::size_t padded_;
  std::vector<Complex> kernel_, a_, b_;
};

}  // namespace

void fourier(const Tensor& t, std::int64_t dim, bool forward) {
  DimSplit split = split_at(t.sizes, dim);
  if (split.length < 2) return;
  Plan plan(Eigen::default_fft_impl<double>(), Plan::Unscaled);
  auto* data = t.as<Complex>();
  auto length = static_cast<std::size_t>(split.length);
  std::vector<Complex> line(length), result(length);
  std::optional<ChirpTransform> chirp;
  constexpr std::int64_t small_factor = 128;
  if (largest_prime_factor(split.length) > small_factor) chirp.emplace(plan, length, forward);
  for (std::int64_t outer = 0; outer < split.outer; ++outer)
    for (std::int64_t inner : steps(split.inner, split.length)) {
      Complex* first = data + outer * split.length * split.inner + inner;
      for (std::size_t i = 0; i < length; ++i) line[i] = first[static_cast<std::int64_t>(i) * split.inner];
      if (chirp)
        (*chirp)(line.data(), result.data());
      else if (forward)
        plan.fwd(result.data(), line.data(), split.length);
      else
        plan.inv(result.data(), line.data(), split.length);
      for (std::size_t i = 0; i < length; ++i) first[static_cast<std::int64_t>(i) * split.inner] = result[i];
    }
}

}  // namespace partita::kernels
