// torch.fft: transforms with given sizes, dimensions and norms, decomposed to the three operators of fft.cpp. The calls
// and their order are those of ATen's native/SpectralOps.cpp.
#include <algorithm>
#include <numeric>

#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

struct Transform {
  std::vector<std::size_t> dims;
  SymList sizes;  ///< number of points along each of `dims`
};

/// The number for _fft_*'s `normalization`: 0 for no scaling, 1 for 1/sqrt(n), 2 for 1/n.
std::int64_t normalization(const FakeCall& c, bool forward) {
  const std::string norm = c.has("norm") ? c.string("norm") : "backward";
  if (norm == "ortho") return 1;
  if (norm == "backward") return forward ? 0 : 2;
  if (norm == "forward") return forward ? 2 : 0;
  fail("Invalid normalization mode: \"" + norm + "\"");
}

void check_points(const FakeCall& c, SymExpr n) {
  if (!checked(c, sym_le(1, n), "points of a transform"))
    fail("Invalid number of data points (" + n.str() + ") specified");
}

Node* promoted(Builder& b, Node* x, bool to_complex) {
  DType type = b.tensor(x).dtype;
  if (type == DType::Float16 || type == DType::BFloat16 || type == DType::Complex32)
    fail("Unsupported dtype " + std::string(torch_name(type)));
  if (!is_floating(type) && !is_complex(type)) type = DType::Float32;
  if (to_complex) type = complex_of(type);
  return to_dtype(b, x, type);
}

/// Slices x, or pads it with zeros, to the number of points transformed.
Node* resized(const FakeCall& c, Builder& b, Node* x, const Transform& t) {
  const std::size_t rank = b.tensor(x).dim();
  std::vector<Arg> pads(2 * rank, Arg(0));
  bool padded = false;
  for (std::size_t i = 0; i < t.dims.size(); ++i) {
    const SymExpr size = b.tensor(x).sizes[t.dims[i]];
    if (c.test(sym_lt(size, t.sizes[i]), "points of a transform")) {
      pads[2 * (rank - t.dims[i]) - 1] = b.size(t.sizes[i] - size);
      padded = true;
    } else if (c.test(sym_lt(t.sizes[i], size), "points of a transform")) {
      x = b.call("aten.slice.Tensor", {x, static_cast<std::int64_t>(t.dims[i]), 0, b.size(t.sizes[i])});
    }
  }
  return padded ? b.call("aten.constant_pad_nd.default", {x, Arg::list(std::move(pads))}) : x;
}

Arg dims_of(std::span<const std::size_t> dims) {
  std::vector<Arg> items;
  for (std::size_t d : dims) items.emplace_back(static_cast<std::int64_t>(d));
  return Arg::list(std::move(items));
}

Transform one_dimension(const DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  const std::size_t d = wrap_dim(c.integer("dim"), self.dim());
  if (self.sizes.empty()) fail("Dimension specified as -1 but tensor has no dimensions");
  return {{d}, {c.has("n") ? c.sym("n") : self.sizes[d]}};
}

Transform dimensions(const DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  Transform t;
  SymList asked = c.has("s") ? c.syms("s") : SymList();
  if (c.has("dim")) {
    if (self.sizes.empty() && !c.integers("dim").empty()) fail(c.schema.base + ": the tensor has no dimensions");
    for (std::int64_t d : c.integers("dim")) t.dims.push_back(wrap_dim(d, self.dim()));
    std::vector<std::size_t> sorted = t.dims;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) fail("FFT dims must be unique");
    if (c.has("s") && asked.size() != t.dims.size())
      fail("When given, dim and shape arguments must have the same length");
  } else {
    if (asked.size() > self.dim())
      fail("Got shape with " + std::to_string(asked.size()) + " values but input tensor only has " +
           std::to_string(self.dim()) + " dimensions.");
    t.dims.resize(c.has("s") ? asked.size() : self.dim());
    std::iota(t.dims.begin(), t.dims.end(), self.dim() - t.dims.size());
  }
  for (std::size_t i = 0; i < t.dims.size(); ++i)
    t.sizes.push_back(c.has("s") && !asked[i].is(-1) ? asked[i] : self.sizes[t.dims[i]]);
  return t;
}

/// The last size is the number of real points n, of which the complex input has n / 2 + 1. Sets the size to that and
/// returns n.
SymExpr halve_last(const DecomposeCall& c, Transform& t, bool given) {
  if (t.dims.empty()) fail(c.schema.name + " must transform at least one axis");
  const SymExpr points = given ? t.sizes.back() : (t.sizes.back() - 1) * 2;
  check_points(c, points);
  t.sizes.back() = sym_floordiv(points, 2) + 1;
  return points;
}

Node* conjugate(Builder& b, Node* x) {
  return b.call("aten._conj.default", {x});
}

Node* complex_to_complex(Builder& b, Node* x, std::span<const std::size_t> dims, std::int64_t norm, bool forward) {
  return b.call("aten._fft_c2c.default", {x, dims_of(dims), norm, forward});
}

/// Transforms half a spectrum to real numbers. A forward transform is the inverse transform of the conjugate.
Node* to_real(Builder& b, Node* x, std::span<const std::size_t> dims, std::int64_t norm, SymExpr points, bool forward) {
  if (forward) {
    x = b.call("aten.clone.default", {conjugate(b, x)});
  }
  return b.call("aten._fft_c2r.default", {x, dims_of(dims), norm, b.size(points)});
}

struct FftKind {
  bool real_input = false, real_output = false, forward = true;
};

Arg transform(DecomposeCall& c, FftKind kind, Transform t, bool last_given) {
  Builder& b = c.build;
  Node* x = tensor_node(c, "self");
  const bool complex = is_complex(c.tensor("self").dtype);
  const bool single = c.schema.index_of("n") >= 0;
  if (kind.real_input && complex)
    fail(c.schema.base + " expects a real input tensor, but got " + std::string(torch_name(c.tensor("self").dtype)));
  const std::int64_t norm = normalization(c, kind.forward);
  if (kind.real_output) {
    const SymExpr points = halve_last(c, t, last_given);
    x = resized(c, b, promoted(b, x, true), t);
    const std::span dims(t.dims);
    if (!kind.forward) return to_real(b, x, dims, norm, points, false);
    if (dims.size() > 1) x = complex_to_complex(b, x, dims.first(dims.size() - 1), norm, true);
    return to_real(b, x, dims.last(1), norm, points, true);
  }
  for (SymExpr n : t.sizes) check_points(c, n);
  if (kind.real_input || (single && !complex)) {
    if (t.dims.empty()) fail(c.schema.base + " must transform at least one axis");
    x = resized(c, b, promoted(b, x, false), t);
    if (kind.forward) return b.call("aten._fft_r2c.default", {x, dims_of(t.dims), norm, kind.real_input});
    const std::span dims(t.dims);
    x = b.call("aten._fft_r2c.default", {x, dims_of(dims.last(1)), norm, kind.real_input});
    if (dims.size() == 1) return conjugate(b, x);
    x = b.call("aten._conj_physical.default", {x});
    return complex_to_complex(b, x, dims.first(dims.size() - 1), norm, false);
  }
  x = resized(c, b, promoted(b, x, true), t);
  return complex_to_complex(b, x, t.dims, norm, kind.forward);
}

template <bool real_input, bool real_output, bool forward>
Arg along_one(DecomposeCall& c) {
  return transform(c, {real_input, real_output, forward}, one_dimension(c), c.has("n"));
}
template <bool real_input, bool real_output, bool forward>
Arg along_many(DecomposeCall& c) {
  const bool given = c.has("s") && !c.syms("s").empty() && !c.syms("s").back().is(-1);
  return transform(c, {real_input, real_output, forward}, dimensions(c), given);
}

/// Moves the frequency 0 to the middle, or back (inverse).
template <bool inverse>
Arg shift(DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  std::vector<std::size_t> dims(self.dim());
  std::iota(dims.begin(), dims.end(), 0);
  if (c.has("dim")) {
    dims.clear();
    for (std::int64_t d : c.integers("dim")) dims.push_back(wrap_dim(d, self.dim()));
  }
  if (self.sizes.empty() || dims.empty()) fail(c.schema.base + ": the tensor has no dimensions to shift");
  SymList shifts;
  for (std::size_t d : dims) shifts.push_back(sym_floordiv(self.sizes[d] + (inverse ? 1 : 0), 2));
  return c.build.call("aten.roll.default", {c.arg("self"), c.build.sizes(shifts), dims_of(dims)});
}

/// The frequencies of n points that lie d apart; without negative ones for a real transform.
template <bool real>
Arg frequencies(DecomposeCall& c) {
  const std::int64_t n = c.integer("n");
  const double d = c.has("d") ? as_double(c.number("d")) : 1;
  const auto range = [&](std::int64_t from, std::int64_t to) {
    const DType dtype = c.dtype("dtype").value_or(DType::Float32);
    return c.build.call("aten.arange.start", {from, to}, {{"dtype", dtype}, {"device", c.arg("device")}});
  };
  Node* const steps = real ? range(0, n / 2 + 1)
                           : c.build.call("aten.cat.default", {Arg::list({range(0, (n + 1) / 2), range(-(n / 2), 0)})});
  return c.build.call("aten.mul.Tensor", {steps, 1 / (static_cast<double>(n) * d)});
}

}  // namespace

void register_fft_composites(OpTable& t) {
  struct Row {
    const char* name;
    Arg (*one)(DecomposeCall&);
    Arg (*many)(DecomposeCall&);
  };
  const Row rows[] = {
      {"fft", along_one<false, false, true>, along_many<false, false, true>},
      {"ifft", along_one<false, false, false>, along_many<false, false, false>},
      {"rfft", along_one<true, false, true>, along_many<true, false, true>},
      {"irfft", along_one<false, true, false>, along_many<false, true, false>},
      {"hfft", along_one<false, true, true>, along_many<false, true, true>},
      {"ihfft", along_one<true, false, false>, along_many<true, false, false>},
  };
  for (const Row& row : rows) {
    const std::string base = std::string("aten.fft_") + row.name;
    t.add(base + ".default", {.decompose = row.one});
    t.add(base + "2.default", {.decompose = row.many});
    t.add(base + "n.default", {.decompose = row.many});
  }
  t.add("aten.fft_fftfreq.default", {.decompose = frequencies<false>});
  t.add("aten.fft_rfftfreq.default", {.decompose = frequencies<true>});
  t.add("aten.fft_fftshift.default", {.decompose = shift<false>});
  t.add("aten.fft_ifftshift.default", {.decompose = shift<true>});
}

}  // namespace partita
