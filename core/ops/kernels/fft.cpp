#include "core/ops/kernels/fft.h"

#include <unsupported/Eigen/FFT>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

void fourier(const Tensor& t, std::int64_t dim, bool forward) {
  DimSplit split = split_at(t.sizes, dim);
  if (split.length < 2) return;
  Eigen::FFT<double> plan(Eigen::default_fft_impl<double>(), Eigen::FFT<double>::Unscaled);
  auto* data = t.as<std::complex<double>>();
  auto length = static_cast<std::size_t>(split.length);
  std::vector<std::complex<double>> line(length), result(length);
  for (std::int64_t outer = 0; outer < split.outer; ++outer)
    for (std::int64_t inner = 0; inner < split.inner; ++inner) {
      std::complex<double>* first = data + outer * split.length * split.inner + inner;
      for (std::size_t i = 0; i < length; ++i) line[i] = first[static_cast<std::int64_t>(i) * split.inner];
      if (forward)
        plan.fwd(result.data(), line.data(), split.length);
      else
        plan.inv(result.data(), line.data(), split.length);
      for (std::size_t i = 0; i < length; ++i) first[static_cast<std::int64_t>(i) * split.inner] = result[i];
    }
}

}  // namespace partita::kernels
