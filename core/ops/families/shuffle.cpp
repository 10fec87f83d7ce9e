// Operators that move elements between channels and space: pixel_shuffle, pixel_unshuffle, channel_shuffle.
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

/// Reshapes self to `split`, permutes, copies and reshapes to `sizes`. The result has self's memory format.
Arg rearranged(DecomposeCall& c, const SymList& split, const std::vector<Arg>& order, const SymList& sizes) {
  Builder& b = c.build;
  Node* x = b.call("aten.reshape.default", {c.arg("self"), b.sizes(split)});
  x = b.call("aten.permute.default", {x, Arg::list(order)});
  x = b.call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
  x = b.call("aten.view.default", {x, b.sizes(sizes)});
  MemoryFormat format = suggest_memory_format(c.tensor("self"), c.shapes);
  if (format == MemoryFormat::Contiguous) return x;
  return b.call("aten.clone.default", {x}, {{"memory_format", format}});
}

/// The permutation 0, 1, ..., lead - 1, then lead + each of `tail`.
std::vector<Arg> order_after(std::size_t lead, std::initializer_list<std::size_t> tail) {
  std::vector<Arg> order;
  for (std::size_t i = 0; i < lead; ++i) order.emplace_back(static_cast<std::int64_t>(i));
  for (std::size_t i : tail) order.emplace_back(static_cast<std::int64_t>(lead + i));
  return order;
}

/// The factor r between [..., C * r^2, H, W] and [..., C, H * r, W * r]. Stores the sizes before the last three in
/// `lead`.
std::int64_t factor(FakeCall& c, const char* name, SymList& lead) {
  const TensorMeta& self = c.tensor("self");
  std::string op = c.schema.base.substr(6);
  if (self.dim() < 3)
    fail(op + " expects input to have at least 3 dimensions, but got input with " + std::to_string(self.dim()) +
         " dimension(s)");
  std::int64_t r = c.integer(name);
  if (r <= 0) fail(op + " expects a positive " + name + ", but got " + std::to_string(r));
  lead.assign(self.sizes.begin(), self.sizes.end() - 3);
  return r;
}

SymList joined(SymList lead, std::initializer_list<SymExpr> tail) {
  lead.insert(lead.end(), tail);
  return lead;
}

/// The sizes [..., C / r^2, H * r, W * r]; `lead` are those before the last three.
SymList shuffled_sizes(FakeCall& c, std::int64_t r, const SymList& lead) {
  const SymList& s = c.tensor("self").sizes;
  SymExpr channels = s[s.size() - 3];
  const SymExpr square = SymExpr(r) * r;
  if (!checked(c, sym_eq(sym_mod(channels, square), 0), "pixel_shuffle channels"))
    fail(
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
        "input.size(-3)=" +
        channels.str() + " is not divisible by " + square.str());
  return joined(lead, {sym_floordiv(channels, square), s[s.size() - 2] * r, s.back() * r});
}

/// As meta_pixel_shuffle: the sizes are computed directly. The views on the way would give other expressions for
/// symbolic sizes.
Meta fake_pixel_shuffle(FakeCall& c) {
  SymList lead;
  const std::int64_t r = factor(c, "upscale_factor", lead);
  const TensorMeta& self = c.tensor("self");
  TensorMeta out = TensorMeta::contiguous(self.dtype, shuffled_sizes(c, r, lead), self.device);
  out.strides = strides_like(c, out, out.sizes, suggest_memory_format(self, c.shapes));
  return out;
}

Arg decompose_pixel_shuffle(DecomposeCall& c) {
  SymList lead;
  const std::int64_t r = factor(c, "upscale_factor", lead);
  const SymList& s = c.tensor("self").sizes;
  const SymList sizes = shuffled_sizes(c, r, lead);
  return rearranged(c, joined(lead, {sizes[lead.size()], r, r, s[s.size() - 2], s.back()}),
                    order_after(lead.size(), {0, 3, 1, 4, 2}), sizes);
}

Arg decompose_pixel_unshuffle(DecomposeCall& c) {
  SymList lead;
  std::int64_t r = factor(c, "downscale_factor", lead);
  const SymList& s = c.tensor("self").sizes;
  SymExpr channels = s[s.size() - 3], height = s[s.size() - 2], width = s.back();
  for (SymExpr size : {height, width})
    if (!checked(c, sym_eq(sym_mod(size, r), 0), "pixel_unshuffle size"))
      fail("pixel_unshuffle expects height and width to be divisible by downscale_factor, but " + size.str() +
           " is not divisible by " + std::to_string(r));
  SymExpr h = sym_floordiv(height, r), w = sym_floordiv(width, r);
  return rearranged(c, joined(lead, {channels, h, r, w, r}), order_after(lead.size(), {0, 2, 4, 1, 3}),
                    joined(lead, {channels * r * r, h, w}));
}

Arg decompose_channel_shuffle(DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  SymExpr groups = c.sym("groups");
  if (self.dim() < 3)
    fail("channel_shuffle expects input with > 2 dims, but got input with " + std::to_string(self.dim()) + " dims");
  if (!checked(c, sym_lt(0, groups), "channel_shuffle groups"))
    fail("Number of groups to divide channels in must be positive.");
  if (!checked(c, sym_eq(sym_mod(self.sizes[1], groups), 0), "channel_shuffle channels"))
    fail("Number of channels must be divisible by groups. Got " + self.sizes[1].str() + " channels and " +
         groups.str() + " groups.");
  SymExpr space = product(std::span(self.sizes).subspan(2)), own = sym_floordiv(self.sizes[1], groups);
  SymList sizes = self.sizes;
  sizes[1] = groups * own;
  return rearranged(c, {self.sizes[0], groups, own, space}, order_after(0, {0, 2, 1, 3}), sizes);
}

/// The gradient is shuffled back, with as many groups as a group has channels.
std::vector<Node*> grad_channel_shuffle(GradCall& c) {
  SymExpr back = sym_floordiv(c.tensor("self").sizes[1], c.sym("groups"));
  return gradient_of_first(c, c.build.call("aten.channel_shuffle.default", {c.grads[0], c.build.size(back)}));
}

}  // namespace

void register_shuffle(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.pixel_shuffle.default",
        {.fake = fake_pixel_shuffle,
         .decompose = decompose_pixel_shuffle,
         .autograd = {.derivative = {{"self", "pixel_unshuffle(grad, upscale_factor)"}}}});
  t.add("aten.pixel_unshuffle.default",
        {.decompose = decompose_pixel_unshuffle,
         .autograd = {.derivative = {{"self", "pixel_shuffle(grad, downscale_factor)"}}}});
  t.add("aten.channel_shuffle.default",
        {.decompose = decompose_channel_shuffle, .autograd = {.gradient = grad_channel_shuffle}});
  t.add("aten.native_channel_shuffle.default", {.decompose = decompose_channel_shuffle});
}

}  // namespace partita
