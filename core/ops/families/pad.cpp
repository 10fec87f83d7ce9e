// Padding with a constant, by reflection or by replication, with gradients; and the composite pad.
#include <algorithm>

#include "core/ops/families/composites.h"
#include "core/ops/families/lower_place.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/pointwise.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

void lower_pad(LowerCall& call) {
  LoweredTensor self = call.in("self");
  const SymList pad = call.syms("pad");
  const SymList sizes = call.out_sizes();
  std::size_t rank = self.dim();
  DType dtype = self.dtype;
  const auto around = [dtype, value = call.FakeCall::number("value")](Body& body, const Index&) {
    return number_constant(body.b, value, dtype);
  };
  SymList before(rank, 0), crop(rank, 0);
  SymList kept = self.sizes;
  for (std::size_t k = 0; 2 * k < pad.size(); ++k) {
    std::size_t d = rank - 1 - k;
    const auto crops = [&](SymExpr at) { return call.test(sym_lt(at, 0), "a part to crop"); };
    if (crops(pad[2 * k]))
      crop[d] = -pad[2 * k];
    else
      before[d] = pad[2 * k];
    kept[d] = kept[d] - crop[d];
    if (crops(pad[2 * k + 1])) kept[d] = kept[d] + pad[2 * k + 1];
  }
  LoweredTensor inner = call.to.view(self, call.to.plain(kept), [crop](Body&, const Index& i) {
    Index at = i;
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = i[d] + crop[d];
    return at;
  });
  const auto fits = concrete(before);
  if (fits && !inner.numel().is(0) && is_picked(call.to, dtype, sizes, {&inner, 1}))
    return call.give(picked(call.to, dtype, sizes, around, {{inner, *fits}}));
  std::vector<Write> writes{write(call.to.map(dtype, sizes, around), dtype, [](Body&, const Index& i) { return i; })};
  if (!inner.numel().is(0))
    writes.push_back(write(inner, dtype, [before](Body&, const Index& i) {
      Index at = i;
      for (std::size_t d = 0; d < at.size(); ++d) at[d] = i[d] + before[d];
      return at;
    }));
  call.give(call.to.writes(dtype, sizes, std::move(writes)));
}

/// Where the elements of reflection_pad and replication_pad come from.
struct Borders {
  SymList sizes, before;      ///< of the tensor that is padded, and how much is put before it
  std::vector<bool> changes;  ///< is there anything before or after?

  explicit Borders(LowerCall& call)
      : sizes(call.in("self").sizes), before(sizes.size(), 0), changes(sizes.size(), false) {
    const SymList pad = call.to.plain(call.syms("padding"));
    for (std::size_t k = 0; 2 * k < pad.size(); ++k) {
      const std::size_t d = sizes.size() - 1 - k;
      before[d] = pad[2 * k];
      changes[d] = !pad[2 * k].is(0) || !pad[2 * k + 1].is(0);
    }
  }

  template <bool reflect>
  Index source(const Index& i) const {
    Index from = i;
    for (std::size_t d = 0; d < i.size(); ++d) {
      if (!changes[d]) continue;
      const SymExpr last = sizes[d] - 1;
      SymExpr at = i[d] - before[d];
      if (reflect) {
        at = sym_max(at, -at);
        at = sym_min(at, 2 * last - at);
      }
      from[d] = sym_max(sym_min(at, last), 0);
    }
    return from;
  }
};

template <bool reflect>
void lower_border(LowerCall& call) {
  const LoweredTensor self = call.in("self");
  const Borders borders(call);
  call.give(call.to.map(self.dtype, call.out_sizes(),
                        [=](Body& body, const Index& i) { return body.read(self, borders.source<reflect>(i)); }));
}

template <bool reflect>
void lower_border_backward(LowerCall& call) {
  const LoweredTensor grad = call.to.cast(call.in("grad_output"), opmath_dtype(call.out().dtype));
  const Borders borders(call);
  Write add{grad.sizes, [grad](Body& body, const Index& i) { return body.read(grad, i); },
            [=](Body&, const Index& i) { return borders.source<reflect>(i); }, true, true};
  call.give(call.to.writes(
      grad.dtype, borders.sizes,
      {write(call.to.constant(grad.dtype, borders.sizes, 0), grad.dtype, [](Body&, const Index& i) { return i; }),
       std::move(add)}));
}

/// Sizes after padding. `pad` holds pairs (before, after), starting with the last dimension.
SymList padded_sizes(const SymList& sizes, const SymList& pad) {
  if (pad.size() % 2 != 0 || pad.size() > 2 * sizes.size())
    fail("Length of pad must be even and no more than twice the number of dimensions of the input");
  SymList out = sizes;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    SymExpr& size = out[out.size() - 1 - i];
    size = size + pad[2 * i] + pad[2 * i + 1];
  }
  return out;
}

Meta fake_constant_pad(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  SymList sizes = padded_sizes(self.sizes, c.syms("pad"));
  for (SymExpr s : sizes)
    if (s.is_int() && s.as_int() < 0) fail("The input size plus negative padding resulted in a negative output size");
  SymList pad = c.syms("pad");
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    SymExpr kept = self.sizes[self.dim() - 1 - i];
    for (SymExpr width : {pad[2 * i], pad[2 * i + 1]})
      if (guard_or(c, sym_lt(width, 0), false, "a part to crop")) {
        kept = kept + width;
        if (!checked(c, sym_le(0, kept), "the part that is left")) fail("narrow(): length must be non-negative.");
      }
  }
  bool only_crops = std::all_of(pad.begin(), pad.end(), [](SymExpr p) { return p.is_int() && p.as_int() <= 0; });
  if (!only_crops) return new_like(self, sizes, suggest_memory_format(self, c.shapes));
  // Eager PyTorch clones the slice that is left, so strides follow self's.
  TensorMeta part = self;
  part.sizes = sizes;
  return like_preserving(part, c.shapes);
}

/// The padded sizes for reflection_pad and replication_pad in 1, 2 or 3 dimensions. Fails unless `self` has these
/// dimensions, channels and perhaps a batch; only the batch may be empty. With `reflect` each padding must be smaller
/// than its dimension.
template <bool reflect>
SymList bordered_sizes(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  const SymList pad = c.syms("padding");
  const std::size_t rank = pad.size() / 2;
  bool fits = pad.size() % 2 == 0 && rank >= 1 && rank <= 3 && (self.dim() == rank + 1 || self.dim() == rank + 2);
  for (std::size_t d = fits ? self.dim() - rank - 1 : self.dim(); d < self.dim(); ++d) fits &= !self.sizes[d].is(0);
  if (!fits)
    fail("Expected " + std::to_string(rank + 1) + "D or " + std::to_string(rank + 2) +
         "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input");
  SymList sizes = padded_sizes(self.sizes, pad);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = self.dim() - 1 - i;
    const SymExpr size = self.sizes[d];
    if (reflect &&
        !(checked(c, sym_lt(pad[2 * i], size), "padding") && checked(c, sym_lt(pad[2 * i + 1], size), "padding")))
      fail("Padding size should be less than the corresponding input dimension, but got: padding (" + pad[2 * i].str() +
           ", " + pad[2 * i + 1].str() + ") at dimension " + std::to_string(d));
    if (!checked(c, sym_lt(0, sizes[d]), "padding"))
      fail("input (" + size.str() + ") is too small. Calculated output: " + sizes[d].str());
  }
  return sizes;
}

template <bool reflect>
Meta fake_border(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  return new_like(self, bordered_sizes<reflect>(c), suggest_memory_format(self, c.shapes));
}

template <bool reflect>
Meta fake_border_backward(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &grad = c.tensor("grad_output");
  const SymList padded = bordered_sizes<reflect>(c);
  if (!checked_sizes(c, grad.sizes, padded, "padding")) fail("grad_output does not have the sizes of the padded input");
  return new_like(self, self.sizes, suggest_memory_format(self, c.shapes));
}

/// Circular padding: copies the tensor into the middle of the result, then the borders from within the result.
Node* circular(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  SymList pad = c.syms("pad");
  SymList out_sizes = padded_sizes(self.sizes, pad);
  std::size_t rank = pad.size() / 2;
  if (self.dim() != rank + 2 && self.dim() != rank + 1) fail("Invalid padding size for circular padding");
  auto concrete_pad = c.integers("pad");
  Node* out = b.call("aten.new_empty.default", {c.arg("self"), b.sizes(out_sizes)}, options_of(self));
  auto slice = [&](Node* x, std::size_t d, SymExpr from, SymExpr to) {
    if (from.is(0) && b.tensor(x).sizes[d] == to) return x;
    return b.call("aten.slice.Tensor", {x, static_cast<std::int64_t>(d), b.size(from), b.size(to)});
  };
  auto positive = [](std::int64_t v) { return std::max<std::int64_t>(v, 0); };
  Node *to = out, *from = tensor_node(c, "self");
  for (std::size_t i = 0; i < rank; ++i) {
    std::size_t d = self.dim() - 1 - i;
    std::int64_t left = concrete_pad[2 * i], right = concrete_pad[2 * i + 1];
    to = slice(to, d, positive(left), out_sizes[d] - positive(right));
    from = slice(from, d, positive(-left), self.sizes[d] - positive(-right));
  }
  b.call("aten.copy_.default", {to, from});
  for (std::size_t i = 0; i < rank; ++i) {
    std::size_t d = self.dim() - 1 - i;
    std::int64_t left = concrete_pad[2 * i], right = concrete_pad[2 * i + 1];
    if (left > 0) {
      Node* border = slice(out, d, 0, left);
      b.call("aten.copy_.default",
             {border, slice(out, d, out_sizes[d] - left - positive(right), out_sizes[d] - positive(right))});
    }
    if (right > 0) {
      Node* border = slice(out, d, out_sizes[d] - right, out_sizes[d]);
      b.call("aten.copy_.default", {border, slice(out, d, positive(left), positive(left) + right)});
    }
  }
  return out;
}

Arg decompose_pad(DecomposeCall& c) {
  Builder& b = c.build;
  std::string mode = c.string("mode");
  if (mode == "constant")
    return b.call("aten.constant_pad_nd.default",
                  {c.arg("self"), c.arg("pad"), c.has("value") ? c.arg("value") : Arg(0.0)});
  if (c.has("value") && as_double(c.number("value")) != 0)
    fail("Padding mode \"" + mode + "\" doesn't take in value argument");
  if (mode == "circular") return circular(c);
  std::size_t rank = c.syms("pad").size() / 2;
  if (rank < 1 || rank > 3 || (c.tensor("self").dim() != rank + 1 && c.tensor("self").dim() != rank + 2))
    fail("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
  std::string base = mode == "reflect" ? "reflection_pad" : mode == "replicate" ? "replication_pad" : "";
  if (base.empty()) fail("Unrecognised padding mode " + mode);
  return b.call("aten." + base + std::to_string(rank) + "d.default", {c.arg("self"), c.arg("pad")});
}

bool widths_are_zero(const Args& bound) {
  const auto* widths = bound[1].get<ArgList>();
  return widths && std::ranges::all_of(widths->items, [](const Arg& width) { return width == Arg(0); });
}

}  // namespace

void register_pad(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.constant_pad_nd.default", fake_constant_pad, nullptr,
        {{"self", "aten.constant_pad_nd.default(grad, negated(pad))"}},
        {.lower = lower_pad, .views = {.unchanged_if = widths_are_zero}, .role = Role::Pads});
#define BORDER(name, reflect)                                                                                      \
  t.add("aten." name ".default", fake_border<reflect>, nullptr, {{"self", name "_backward(grad, self, padding)"}}, \
        {.lower = lower_border<reflect>});                                                                         \
  t.add("aten." name "_backward.default", fake_border_backward<reflect>, nullptr, {},                              \
        {.lower = lower_border_backward<reflect>})
  BORDER("reflection_pad1d", true);
  BORDER("reflection_pad2d", true);
  BORDER("reflection_pad3d", true);
  BORDER("replication_pad1d", false);
  BORDER("replication_pad2d", false);
  BORDER("replication_pad3d", false);
#undef BORDER
  t.add("aten.pad.default", {.decompose = decompose_pad});
}

}  // namespace partita
