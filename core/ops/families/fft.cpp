// Discrete Fourier transforms: the three ATen operators that torch.fft and torch.stft call.
#include "core/ops/kernels/fft.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

std::vector<std::size_t> transformed_dims(const Sizes& dims, std::size_t rank) {
  std::vector<std::size_t> out;
  for (std::int64_t d : dims) {
    const auto dim = wrap_dim(d, rank);
    if (rank == 0) fail("Dimension specified as " + std::to_string(d) + " but tensor has no dimensions");
    if (std::find(out.begin(), out.end(), dim) != out.end()) fail("FFT dims must be unique");
    out.push_back(dim);
  }
  return out;
}

/// Orders dimensions from the largest stride to the smallest. Symbolic strides count with their hints, without a guard.
void sort_by_stride(std::span<std::size_t> dims, const TensorMeta& t, const ShapeEnv& shapes) {
  auto stride = [&](std::size_t d) { return shapes.hint(t.strides[d]).value_or(0); };
  std::sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) { return stride(a) > stride(b); });
}

/// The layout of PyTorch's result for a transform of `dims`: dense; batch dimensions outermost, in the order of the
/// input's strides; then the transformed dimensions in the order of `dims`.
TensorMeta transformed(const TensorMeta& input, SymList sizes, std::span<const std::size_t> dims,
                       const ShapeEnv& shapes) {
  for (std::size_t d : dims)
    if (input.sizes[d].is(0)) fail("Invalid number of data points (0) specified");
  std::vector<std::size_t> order(input.dim());
  std::iota(order.begin(), order.end(), 0);
  auto batch = [&](std::size_t d) { return std::find(dims.begin(), dims.end(), d) == dims.end(); };
  auto batch_end = std::partition(order.begin(), order.end(), batch);
  sort_by_stride({order.begin(), batch_end}, input, shapes);
  std::copy(dims.begin(), dims.end(), batch_end);
  const auto batches = static_cast<std::size_t>(batch_end - order.begin());
  SymList permuted = {1};  // all batch dimensions as one, then the transformed ones
  for (std::size_t i = batches; i < order.size(); ++i) permuted.push_back(sizes[order[i]]);
  const SymList strides = strides_for(MemoryFormat::Contiguous, permuted);
  TensorMeta out = new_like(input, std::move(sizes));
  for (std::size_t i = batches; i < order.size(); ++i) out.strides[order[i]] = strides[i - batches + 1];
  SymExpr step = strides[0];
  for (std::size_t i = batches; i-- > 0;) {
    out.strides[order[i]] = step;
    step = step * (out.sizes[order[i]].is(0) ? SymExpr(1) : out.sizes[order[i]]);
  }
  return out;
}

void check_dtype(bool ok, const TensorMeta& t, const char* what) {
  if (!ok) fail(std::string(what) + " expects another dtype than " + std::string(torch_name(t.dtype)));
}

TensorMeta complex_to_complex(const TensorMeta& self, std::vector<std::size_t> dims, const ShapeEnv& shapes) {
  if (dims.empty()) return like_preserving(self, shapes);
  sort_by_stride(dims, self, shapes);
  return transformed(self, self.sizes, dims, shapes);
}

Meta fake_c2c(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_dtype(is_complex(self.dtype), self, "_fft_c2c");
  return complex_to_complex(self, transformed_dims(c.integers("dim"), self.dim()), c.shapes);
}

Meta fake_r2c(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_dtype(is_floating(self.dtype), self, "_fft_r2c");
  std::vector<std::size_t> dims = transformed_dims(c.integers("dim"), self.dim());
  if (dims.empty()) fail("_fft_r2c: at least one dimension is needed");
  sort_by_stride({dims.begin(), dims.end() - 1}, self, c.shapes);
  SymList sizes = self.sizes;
  if (c.boolean("onesided")) sizes[dims.back()] = sym_floordiv(sizes[dims.back()], 2) + 1;
  TensorMeta out = transformed(self, std::move(sizes), dims, c.shapes);
  out.dtype = complex_of(self.dtype);
  return out;
}

Meta fake_c2r(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_dtype(is_complex(self.dtype), self, "_fft_c2r");
  std::vector<std::size_t> dims = transformed_dims(c.integers("dim"), self.dim());
  if (dims.empty()) fail("_fft_c2r: at least one dimension is needed");
  // A complex transform of all dimensions but the last comes first.
  TensorMeta input = dims.size() > 1 ? complex_to_complex(self, {dims.begin(), dims.end() - 1}, c.shapes) : self;
  SymList sizes = self.sizes;
  sizes[dims.back()] = c.sym("last_dim_size");
  TensorMeta out = transformed(input, std::move(sizes), {&dims.back(), 1}, c.shapes);
  out.dtype = real_of(self.dtype);
  return out;
}

/// Scales by 1, 1/sqrt(n) or 1/n when `normalization` is 0, 1 or 2; n is the number of points of one transform.
void normalize(const EvalCall& c, const Tensor& t, std::int64_t points) {
  std::int64_t kind = c.integer("normalization");
  if (kind < 0 || kind > 2) fail("unsupported normalization mode " + std::to_string(kind));
  if (kind == 0 || points == 0) return;
  double n = static_cast<double>(points), factor = kind == 1 ? 1 / std::sqrt(n) : 1 / n;
  auto* data = t.as<std::complex<double>>();
  for (std::int64_t i : steps(t.numel())) data[i] *= factor;
}

/// Completes a Hermitian spectrum from its first half. The imaginary parts at frequency 0 and n/2, which must be 0, are
/// ignored.
Tensor whole_spectrum(const Tensor& half, std::int64_t dim, std::int64_t length) {
  DimSplit from = split_at(half.sizes, dim);
  if (length < 1 || from.length < length / 2 + 1)
    fail("_fft_c2r: " + std::to_string(from.length) + " frequencies do not give " + std::to_string(length) + " points");
  Sizes sizes = half.sizes;
  sizes[static_cast<std::size_t>(dim)] = length;
  Tensor whole = empty(DType::Complex128, sizes);
  const auto* source = half.as<std::complex<double>>();
  auto* target = whole.as<std::complex<double>>();
  for (std::int64_t o = 0; o < from.outer; ++o)
    for (std::int64_t i = 0; i < from.inner; ++i)
      for (std::int64_t k = 0; k <= length / 2; ++k) {
        std::complex<double> v = source[(o * from.length + k) * from.inner + i];
        if (k == 0 || 2 * k == length) v = v.real();
        target[(o * length + k) * from.inner + i] = v;
        if (k > 0) target[(o * length + length - k) * from.inner + i] = std::conj(v);
      }
  return whole;
}

/// The transform of a copy in complex128. With `length` the last dimension is half of a Hermitian spectrum.
Tensor transform(const EvalCall& c, bool forward, std::optional<std::int64_t> length = {}) {
  Tensor x = empty(DType::Complex128, c.tensor("self").sizes);
  x.copy_from(c.tensor("self"));
  const std::vector<std::size_t> dims = transformed_dims(c.integers("dim"), x.sizes.size());
  std::int64_t points = 1;
  for (std::size_t d : dims) {
    if (length && d == dims.back()) x = whole_spectrum(x, static_cast<std::int64_t>(d), *length);
    fourier(x, static_cast<std::int64_t>(d), forward);
    points *= x.sizes[d];
  }
  normalize(c, x, points);
  return x;
}

Value eval_c2c(EvalCall& c) {
  return transform(c, c.boolean("forward"));
}
Value eval_r2c(EvalCall& c) {
  const Tensor x = transform(c, true);
  Sizes sizes = x.sizes;
  if (std::int64_t& last = sizes[transformed_dims(c.integers("dim"), sizes.size()).back()]; c.boolean("onesided"))
    last = last / 2 + 1;
  return x.view_as(sizes, x.strides, 0);
}
Value eval_c2r(EvalCall& c) {
  return transform(c, false, c.integer("last_dim_size"));
}

/// Pads the gradient of a one-sided result with zeros for the missing frequencies; the result is the real part of a
/// complex transform.
std::vector<Node*> grad_r2c(GradCall& c) {
  Builder& b = c.build;
  Node* grad = c.grads[0];
  std::size_t last = transformed_dims(c.integers("dim"), c.tensor("self").dim()).back();
  SymExpr missing = c.tensor("self").sizes[last] - b.tensor(grad).sizes[last];
  if (c.boolean("onesided") && !missing.is(0)) {
    std::vector<Arg> pads(2 * (c.tensor("self").dim() - last), Arg(0));
    pads.back() = b.size(missing);
    grad = b.call("aten.constant_pad_nd.default", {grad, Arg::list(std::move(pads)), 0.0});
  }
  Node* whole = b.call("aten._fft_c2c.default", {grad, c.arg("dim"), c.arg("normalization"), false});
  return gradient_of_first(c, b.call("aten.select.int", {b.call("aten.view_as_real.default", {whole}), -1, 0}));
}

/// In the half spectrum, a frequency whose mirror image was left out counts twice.
std::vector<Node*> grad_c2r(GradCall& c) {
  Builder& b = c.build;
  Node* half = b.call("aten._fft_r2c.default", {c.grads[0], c.arg("dim"), c.arg("normalization"), true});
  auto last = static_cast<std::int64_t>(transformed_dims(c.integers("dim"), c.tensor("self").dim()).back());
  auto at = static_cast<std::size_t>(last);
  SymExpr doubled = c.sym("last_dim_size") - b.tensor(half).sizes[at];
  if (!doubled.is(0)) {
    Arg end = b.size(doubled + 1);
    Node* twice = b.call("aten.mul.Scalar", {b.call("aten.slice.Tensor", {half, last, 1, end}), 2});
    half = b.call("aten.slice_scatter.default", {half, twice, last, 1, end});
  }
  return gradient_of_first(c, half);
}

}  // namespace

void register_fft(OpTable& t) {
  t.add("aten._fft_c2c.default", fake_c2c, eval_c2c,
        {{"self", "aten._fft_c2c.default(grad, dim, normalization, not forward)"}}, {.cost = {.expensive = true}});
  t.add("aten._fft_r2c.default", fake_r2c, eval_r2c, {},
        {.autograd = {.gradient = grad_r2c}, .cost = {.expensive = true}});
  t.add("aten._fft_c2r.default", fake_c2r, eval_c2r, {},
        {.autograd = {.gradient = grad_c2r}, .cost = {.expensive = true}});
}

}  // namespace partita
