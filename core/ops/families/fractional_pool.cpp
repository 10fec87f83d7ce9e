// Fractional max pooling: windows of equal size at places that random samples decide, separately for each plane.
#include "core/ops/families/lower_pool.h"
#include "core/ops/families/pool.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

template <std::size_t rank>
Meta fake_fractional(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &samples = c.tensor("random_samples");
  const std::string name = "fractional_max_pool" + std::to_string(rank) + "d";
  if (self.dim() != rank + 1 && self.dim() != rank + 2)
    fail(name + "(): Expected " + std::to_string(rank + 1) + "D or " + std::to_string(rank + 2) +
         "D tensor, but got: " + std::to_string(self.dim()) + "D");
  if (samples.dim() != 3 || !samples.sizes[2].is(rank))
    fail(name + ": Expect _random_samples of size [batch, channels, " + std::to_string(rank) + "]");
  if (samples.dtype != self.dtype) fail(name + ": Expect _random_samples to have the same dtype as input");
  SymExpr batch = self.dim() == rank + 2 ? self.sizes[0] : SymExpr(1), channels = self.sizes[self.dim() - rank - 1];
  if (!checked(c, sym_le(batch, samples.sizes[0]), "fractional pooling samples") ||
      !checked(c, sym_eq(channels, samples.sizes[1]), "fractional pooling samples"))
    fail(name + ": _random_samples must have at least the input's batch size and its number of channels");
  SymList sizes = self.sizes, kernel = c.syms("kernel_size"), output = c.syms("output_size");
  if (kernel.size() != rank || output.size() != rank)
    fail(name + ": kernel_size and output_size must either be a single int or a tuple of " + std::to_string(rank) +
         " ints");
  for (std::size_t d = 0; d < rank; ++d) {
    SymExpr& size = sizes[sizes.size() - rank + d];
    if (!checked(c, sym_and(sym_lt(0, kernel[d]), sym_lt(0, output[d])), "fractional pooling window"))
      fail(name + "(): kernel_size and output_size must be greater than zero, but got " + kernel[d].str() + " and " +
           output[d].str());
    if (!checked(c, sym_le(output[d] + kernel[d] - 1, size), "fractional pooling window"))
      fail(name + "(): pool size " + kernel[d].str() + " too large relative to input size " + size.str());
    size = output[d];
  }
  return with_indices(new_like(self, sizes));
}

/// The starts of the windows along one dimension. Half types round each step as PyTorch does.
template <class T>
std::vector<Span> windows(DType dtype, T sample, std::int64_t in, std::int64_t out, std::int64_t kernel) {
  std::vector<Span> spans;
  auto step = [&](T v) { return rounded(dtype, v); };
  T alpha = out > 1 ? step(step(static_cast<T>(in - kernel)) / step(static_cast<T>(out - 1))) : T(0);
  for (std::int64_t i = 0; i < out; ++i) {
    auto moved = static_cast<int>(step(step(static_cast<T>(i) + sample) * alpha));
    std::int64_t begin = i + 1 == out ? in - kernel : moved - static_cast<int>(step(sample * alpha));
    spans.push_back({begin, begin + kernel});
  }
  return spans;
}

template <std::size_t rank>
Value eval_fractional(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_fractional<rank>);
  const Sizes &in = c.tensor("self").sizes, &out = outputs[0].sizes;
  DType dtype = c.tensor("self").dtype;
  Sizes kernel = c.integers("kernel_size");
  kernel.resize(rank, kernel[0]);
  Tensor samples = load(c.tensor("random_samples"), evaluation_dtype(dtype));
  Cells cells = empty_cells(in, rank);
  return max_of_cells(c, out, rank, [&](std::int64_t plane) -> const Cells& {
    dispatch_floating(samples.dtype, "fractional_max_pool", [&]<class T>() {
      for (std::size_t d = 0; d < rank; ++d) {
        // PyTorch's 2-d kernel takes the first sample for the width; the 3-d kernel goes by depth, height, width.
        std::size_t of = rank == 2 ? 1 - d : d;
        T sample = samples.as<T>()[plane * static_cast<std::int64_t>(rank) + static_cast<std::int64_t>(of)];
        cells.along[3 - rank + d] =
            windows(dtype, sample, in[in.size() - rank + d], out[out.size() - rank + d], kernel[d]);
      }
    });
    return cells;
  });
}

template <std::size_t rank>
Meta fake_fractional_backward(FakeCall& c) {
  check_planes(c, rank);
  return fake_volume_pool_backward(c);
}

}  // namespace

void register_fractional_pool(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.fractional_max_pool2d.default", fake_fractional<2>, eval_fractional<2>,
        {{"self", "fractional_max_pool2d_backward(grad, self, kernel_size, output_size, result1)"}});
  t.add("aten.fractional_max_pool3d.default", fake_fractional<3>, eval_fractional<3>,
        {{"self", "fractional_max_pool3d_backward(grad, self, kernel_size, output_size, result1)"}});
  t.add("aten.fractional_max_pool2d_backward.default", fake_fractional_backward<2>, nullptr,
        {{"grad_output", "max_pool_double_backward(grad, indices, 2)"}, {"self", "zeros_like(self)"}},
        {.lower = loops::lower_max_pool_backward<2>});
  t.add("aten.fractional_max_pool3d_backward.default", fake_fractional_backward<3>, nullptr,
        {{"grad_output", "max_pool_double_backward(grad, indices, 3)"}, {"self", "zeros_like(self)"}},
        {.lower = loops::lower_max_pool_backward<3>});
}

}  // namespace partita
