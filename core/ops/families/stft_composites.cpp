// Short-time Fourier transforms and window functions.
#include <numbers>

#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

using Names = std::vector<std::pair<std::string, Arg>>;

std::int64_t integer_or(DecomposeCall& c, const char* name, std::int64_t otherwise) {
  return c.has(name) ? c.integer(name) : otherwise;
}
bool boolean_or(DecomposeCall& c, const char* name, bool otherwise) {
  return c.has(name) ? c.boolean(name) : otherwise;
}

/// Pads half a frame at both ends, with pad_mode (reflect by default).
Node* centered(DecomposeCall& c, Node* x, std::int64_t points) {
  Builder& b = c.build;
  SymList sizes = b.tensor(x).sizes;
  std::size_t extra = sizes.size() < 3 ? 3 - sizes.size() : 0;
  sizes.insert(sizes.begin(), extra, SymExpr(1));
  Node* wide = b.call("aten.view.default", {x, b.sizes(sizes)});
  Node* padded = b.call("aten.pad.default", {wide, Arg::list({points / 2, points / 2}), c.arg("pad_mode")});
  const SymList& out = b.tensor(padded).sizes;
  return b.call("aten.view.default", {padded, b.sizes({out.begin() + static_cast<std::ptrdiff_t>(extra), out.end()})});
}

/// The window in the middle of a frame as long as the transform, with zeros around it. A window that is not given
/// consists of ones, or is None if it fills the frame.
Arg frame_window(DecomposeCall& c, std::int64_t points, std::int64_t length) {
  Arg window = c.arg("window");
  if (!window.is_none() && (c.tensor("window").dim() != 1 || !c.tensor("window").sizes[0].is(length)))
    fail(fmt::format("stft: expected a 1D window tensor of size equal to win_length={}", length));
  if (length >= points) return window;
  std::int64_t left = (points - length) / 2;
  const TensorMeta& like = window.is_none() ? c.tensor("self") : c.tensor("window");
  Node* whole = c.build.call("aten.zeros.default", {Arg::list({points})}, options_of(like));
  Names names = {{"part", slice(c.build, whole, 0, left, left + length)}};
  build_program(c, window.is_none() ? "aten.fill_.Scalar(part, 1)" : "aten.copy_.default(part, window)", names);
  return whole;
}

Arg stft(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta self = c.tensor("self");
  std::int64_t points = c.integer("n_fft"), hop = integer_or(c, "hop_length", points / 4);
  std::int64_t length = integer_or(c, "win_length", points);
  bool complex_window = c.has("window") && is_complex(c.tensor("window").dtype);
  bool complex_input = is_complex(self.dtype), center = c.schema.index_of("center") >= 0 && c.boolean("center");
  if (boolean_or(c, "align_to_window", false)) fail_unsupported("stft with align_to_window");
  if (!c.has("return_complex") && !complex_input && !complex_window)
    fail(
        "stft requires the return_complex parameter be given for real inputs, and will further require that "
        "return_complex=True in a future PyTorch release.");
  if (self.dim() != 1 && self.dim() != 2) fail("stft: expected a 1D or 2D tensor");
  if (hop <= 0) fail(fmt::format("stft: expected hop_length > 0, but got hop_length={}", hop));
  if (length <= 0 || length > points) fail("stft: expected 0 < win_length <= n_fft");
  Node* x = tensor_node(c, "self");
  if (self.dim() == 1) x = b.call("aten.unsqueeze.default", {x, 0});
  if (center) x = centered(c, x, points);
  const TensorMeta signal = b.tensor(x);
  if (points <= 0 || !checked(c, sym_le(points, signal.sizes[1]), "stft"))
    fail(fmt::format("stft: expected 0 < n_fft < {}, but got n_fft={}", signal.sizes[1].str(), points));
  Arg window = frame_window(c, points, length);
  SymExpr frames = sym_floordiv(signal.sizes[1] - points, hop) + 1;
  x = b.call("aten.as_strided.default", {x, b.sizes({signal.sizes[0], frames, points}),
                                         b.sizes({signal.strides[0], signal.strides[1] * hop, signal.strides[1]})});
  if (!window.is_none()) x = b.call("aten.mul.Tensor", {x, window});
  bool complex_frames = is_complex(b.tensor(x).dtype), onesided = boolean_or(c, "onesided", !complex_frames);
  if (complex_frames && onesided) fail("Cannot have onesided output if window or input is complex");
  std::int64_t norm = c.boolean("normalized") ? 1 : 0;
  Node* out = complex_frames ? b.call("aten._fft_c2c.default", {x, Arg::list({2}), norm, true})
                             : b.call("aten._fft_r2c.default", {x, Arg::list({2}), norm, onesided});
  out = b.call("aten.transpose_.default", {out, 1, 2});
  if (self.dim() == 1) out = b.call("aten.squeeze_.dim", {out, 0});
  if (boolean_or(c, "return_complex", complex_input || complex_window)) return out;
  return b.call("aten.view_as_real.default", {out});
}

/// Transforms the frames back, multiplies them by the window, adds them where they overlap, and divides by the sum of
/// the squared windows.
Arg istft(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta self = c.tensor("self");
  if (!is_complex(self.dtype))
    fail("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  if (self.dim() != 2 && self.dim() != 3) fail("istft: expected a tensor with 2 or 3 dimensions");
  std::int64_t points = c.integer("n_fft"), hop = integer_or(c, "hop_length", points / 4);
  std::int64_t length = integer_or(c, "win_length", points);
  SymExpr bins = self.sizes[self.dim() - 2], frames = self.sizes[self.dim() - 1];
  SymExpr whole = (frames - 1) * hop + points;
  bool onesided = c.has("onesided") ? c.boolean("onesided") : !c.test(sym_eq(bins, points), "istft");
  if (!checked(c, sym_eq(bins, onesided ? points / 2 + 1 : points), "istft"))
    fail("istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft");
  if (hop <= 0 || hop > length) fail("istft: expected 0 < hop_length <= win_length");
  if (length <= 0 || length > points) fail("istft: expected 0 < win_length <= n_fft");
  DType real = self.dtype == DType::Complex128 ? DType::Float64 : DType::Float32;
  Arg window = c.arg("window");
  if (window.is_none()) window = b.call("aten.ones.default", {Arg::list({length})}, options_of(self, real));
  if (std::int64_t left = (points - length) / 2; length != points)
    window = b.call("aten.constant_pad_nd.default", {window, Arg::list({left, points - length - left}), 0});
  Node* x = tensor_node(c, "self");
  if (self.dim() == 2) x = b.call("aten.unsqueeze.default", {x, 0});
  x = b.call("aten.transpose.int", {x, 1, 2});
  std::int64_t norm = c.boolean("normalized") ? 1 : 2;
  bool complex = c.boolean("return_complex");
  if (complex && onesided) fail("Cannot have onesided output if window or input is complex");
  if (!complex && !onesided) x = slice(b, x, -1, 0, points / 2 + 1);
  x = complex ? b.call("aten._fft_c2c.default", {x, Arg::list({2}), norm, false})
              : b.call("aten._fft_c2r.default", {x, Arg::list({2}), norm, points});
  std::int64_t start = c.boolean("center") ? points / 2 : 0;
  SymExpr end = c.has("length") ? SymExpr(start + c.integer("length")) : whole - start;
  Names names = {{"x", x},
                 {"window", window},
                 {"row", Arg::list({1, 1, points})},
                 {"frames", b.sizes({1, frames, points})},
                 {"whole", b.sizes({b.tensor(x).sizes[0], whole})},
                 {"one", b.sizes({1, whole})},
                 {"points", points},
                 {"hop", hop},
                 {"start", start},
                 {"end", b.size(sym_min(end, whole))}};
  Arg signal = build_program(c,
                             "y = x * aten.view.default(window, row); y = unfold_backward(y, whole, 1, points, hop);"
                             "w = expand(aten.pow.Tensor_Scalar(window, 2), frames);"
                             "w = unfold_backward(w, one, 1, points, hop);"
                             "y = slice(y, 1, start, end); y / slice(w, 1, start, end)",
                             names);
  if (self.dim() == 2) signal = b.call("aten.squeeze.dim", {signal, 0});
  if (c.test(sym_le(end, whole), "istft")) return signal;
  Arg missing = b.size(end - whole);
  return b.call("aten.constant_pad_nd.default", {signal, Arg::list({0, missing}), 0});
}

/// The arguments that every factory takes, where given.
Kwargs factory_options(DecomposeCall& c) {
  Kwargs out;
  for (const char* name : {"dtype", "layout", "device"})
    if (c.has(name)) out.emplace_back(name, c.arg(name));
  return out;
}

/// A window from its formula over n = 0, 1, ..., with step = 2 pi / (points - 1). A periodic window has one point more,
/// which is dropped afterwards. A window is periodic unless the overload says otherwise.
Arg window(DecomposeCall& c, std::string_view formula, Names names) {
  Builder& b = c.build;
  std::int64_t length = c.integer("window_length");
  if (length < 0) fail(fmt::format("{} requires non-negative window_length", c.schema.base.substr(5)));
  if (length == 0) return b.call("aten.empty.memory_format", {Arg::list({0})}, factory_options(c));
  if (length == 1) return b.call("aten.ones.default", {Arg::list({1})}, factory_options(c));
  bool periodic = c.schema.index_of("periodic") < 0 || c.boolean("periodic");
  std::int64_t points = periodic ? length + 1 : length;
  Kwargs options = factory_options(c);
  if (!c.has("dtype")) options.emplace_back("dtype", DType::Float32);
  names.emplace_back("n", b.call("aten.arange.default", {points}, std::move(options)));
  names.emplace_back("last", points - 1);
  names.emplace_back("step", 2 * std::numbers::pi / static_cast<double>(points - 1));
  Arg whole = build_program(c, formula, std::move(names));
  return periodic ? Arg(slice(b, whole.node(), 0, 0, length)) : whole;
}

Arg cosine_window(DecomposeCall& c, double alpha, double beta) {
  return window(c, "cos(n * step) * minus + alpha", {{"alpha", alpha}, {"minus", -beta}});
}

double number_or(DecomposeCall& c, const char* name, double otherwise) {
  return c.schema.index_of(name) >= 0 ? as_double(c.number(name)) : otherwise;
}

Arg hamming(DecomposeCall& c) {
  return cosine_window(c, number_or(c, "alpha", 0.54), number_or(c, "beta", 0.46));
}
Arg hann(DecomposeCall& c) {
  return cosine_window(c, 0.5, 0.5);
}
Arg blackman(DecomposeCall& c) {
  return window(c, "w = n * step; cos(w * 2) * 0.08 - cos(w) * 0.5 + 0.42", {});
}
Arg bartlett(DecomposeCall& c) {
  return window(c, "x = aten.mul.Scalar(n, 2.0) / last; -abs(x - 1) + 1", {});
}
/// i0(beta sqrt(1 - x^2)) / i0(beta) for x from -1 to 1.
Arg kaiser(DecomposeCall& c) {
  double beta = number_or(c, "beta", 12.0);
  return window(
      c, "x = n * 2.0 / last - 1; arc = sqrt(clamp_min(-(x * x) + 1, 0)); i0(arc * beta) / i0(full_like(x, beta))",
      {{"beta", beta}});
}

}  // namespace

void register_stft_composites(OpTable& t) {
  t.add("aten.stft.default", {.decompose = stft});
  t.add("aten.stft.center", {.decompose = stft});
  t.add("aten.istft.default", {.decompose = istft});

  auto add = [&](std::string_view name, Arg (*decompose)(DecomposeCall&),
                 std::initializer_list<const char*> more = {}) {
    for (const char* overload : {"default", "periodic"})
      t.add(fmt::format("aten.{}.{}", name, overload),
            {.decompose = decompose, .autograd = {.not_differentiable = true}});
    for (const char* overload : more)
      t.add(fmt::format("aten.{}.{}", name, overload),
            {.decompose = decompose, .autograd = {.not_differentiable = true}});
  };
  add("hann_window", hann);
  add("hamming_window", hamming, {"periodic_alpha", "periodic_alpha_beta"});
  add("blackman_window", blackman);
  add("bartlett_window", bartlett);
  add("kaiser_window", kaiser, {"beta"});
}

}  // namespace partita
