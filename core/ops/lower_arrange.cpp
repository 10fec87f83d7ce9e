#include <algorithm>

#include "core/ops/lowerings.h"
#include "core/ops/promote.h"

namespace partita::loops {
namespace {

using Write = Definition::Write;

/// Writes all elements of t into the result; element i goes to index target(i).
Write write(const LoweredTensor& t, DType dtype, IndexFunction target) {
  return {t.sizes, [t, dtype](Body& body, const Index& i) { return body.b.cast(body.read(t, i), dtype); },
          std::move(target)};
}
Write write(const LoweredTensor& t, DType dtype, std::size_t dim, std::int64_t start, std::int64_t step = 1) {
  return write(t, dtype, [=](Body&, const Index& i) {
    Index at = i;
    at[dim] = i[dim] * step + start;
    return at;
  });
}

void give_cat(LowerCall& call, const std::vector<LoweredTensor>& parts, std::size_t dim) {
  DType dtype = call.out().dtype;
  std::vector<Write> writes;
  std::int64_t start = 0;
  for (const LoweredTensor& t : parts) {
    if (t.numel() > 0) writes.push_back(write(t, dtype, dim, start));
    start += t.sizes[dim];
  }
  call.give(call.to.writes(dtype, call.out_sizes(), std::move(writes)));
}

/// `base`, with `part` written over every `step`-th index of `dim` from `start` on.
void give_scatter(LowerCall& call, const LoweredTensor& base, const LoweredTensor& part, std::size_t dim,
                  std::int64_t start, std::int64_t step) {
  DType dtype = call.out().dtype;
  std::vector<Write> writes{write(base, dtype, [](Body&, const Index& i) { return i; })};
  if (part.numel() > 0) writes.push_back(write(part, dtype, dim, start, step));
  call.give(call.to.writes(dtype, base.sizes, std::move(writes)));
}

std::int64_t slice_start(LowerCall& call, std::int64_t size) {
  std::int64_t start = call.has("start") ? call.integer("start") : 0;
  return std::clamp<std::int64_t>(start < 0 ? start + size : start, 0, size);
}

std::int64_t wrap_index(LowerCall& call, std::int64_t size) {
  std::int64_t index = call.integer("index");
  return index < 0 ? index + size : index;
}

LoweredTensor unsqueezed(Lowering& to, const LoweredTensor& t, std::size_t dim) {
  Sizes sizes = t.sizes;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  return to.reshape(t, sizes);
}

}  // namespace

Status lower_flip(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::vector<bool> flipped(self.dim(), false);
  for (std::int64_t d : call.integers("dims")) flipped[wrap_dim(d, self.dim())] = true;
  call.give(call.to.map(self.dtype, self.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    for (std::size_t d = 0; d < at.size(); ++d)
      if (flipped[d]) at[d] = SymExpr(self.sizes[d] - 1) - i[d];
    return body.read(self, at);
  }));
  return {};
}

Status lower_roll(LowerCall& call) {
  LoweredTensor self = call.in("self");
  Sizes shifts = call.integers("shifts"), dims = call.integers("dims");
  LoweredTensor flat = dims.empty() ? call.to.reshape(self, {self.numel()}) : self;
  if (dims.empty()) dims = {0};
  Sizes by(flat.dim(), 0);
  for (std::size_t k = 0; k < dims.size(); ++k) by[wrap_dim(dims[k], flat.dim())] += shifts[k];
  call.give(call.to.map(self.dtype, flat.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    for (std::size_t d = 0; d < at.size(); ++d)
      if (by[d] != 0 && flat.sizes[d] > 0)
        at[d] = body.math.mod(i[d] + (flat.sizes[d] - by[d] % flat.sizes[d]), flat.sizes[d]);
    return body.read(flat, at);
  }));
  return {};
}

Status lower_repeat(LowerCall& call) {
  LoweredTensor self = call.in("self");
  Sizes sizes = call.out_sizes();
  if (call.out().numel().is(0)) return call.give(call.to.constant(self.dtype, sizes, 0)), Status();
  call.give(call.to.map(self.dtype, sizes, [=](Body& body, const Index& i) {
    Index at;
    for (std::size_t d = 0; d < self.dim(); ++d)
      at.push_back(body.math.mod(i[d + i.size() - self.dim()], self.sizes[d]));
    return body.read(self, at);
  }));
  return {};
}

Status lower_cat(LowerCall& call) {
  std::vector<LoweredTensor> parts;
  // cat ignores an empty 1-d tensor.
  for (const LoweredTensor& t : call.ins("tensors"))
    if (t.sizes != Sizes{0}) parts.push_back(t);
  std::size_t rank = call.out_sizes().size();
  give_cat(call, parts, call.dim("dim", rank));
  return {};
}

Status lower_stack(LowerCall& call) {
  std::size_t dim = call.dim("dim", call.out_sizes().size());
  std::vector<LoweredTensor> parts;
  for (const LoweredTensor& t : call.ins("tensors")) parts.push_back(unsqueezed(call.to, t, dim));
  give_cat(call, parts, dim);
  return {};
}

Status lower_pad(LowerCall& call) {
  LoweredTensor self = call.in("self");
  Sizes pad = call.integers("pad"), sizes = call.out_sizes();
  std::size_t rank = self.dim();
  DType dtype = self.dtype;
  double value = as_double(call.number("value"));
  Sizes before(rank, 0), crop(rank, 0), kept = self.sizes;
  for (std::size_t k = 0; 2 * k < pad.size(); ++k) {
    std::size_t d = rank - 1 - k;
    before[d] = std::max<std::int64_t>(pad[2 * k], 0);
    crop[d] = std::max<std::int64_t>(-pad[2 * k], 0);
    kept[d] -= crop[d] + std::max<std::int64_t>(-pad[2 * k + 1], 0);
  }
  LoweredTensor inner = call.to.view(self, kept, [crop](Body&, const Index& i) {
    Index at = i;
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = i[d] + crop[d];
    return at;
  });
  std::vector<Write> writes{
      write(call.to.constant(dtype, sizes, value), dtype, [](Body&, const Index& i) { return i; })};
  if (inner.numel() > 0)
    writes.push_back(write(inner, dtype, [before](Body&, const Index& i) {
      Index at = i;
      for (std::size_t d = 0; d < at.size(); ++d) at[d] = i[d] + before[d];
      return at;
    }));
  call.give(call.to.writes(dtype, sizes, std::move(writes)));
  return {};
}

Status lower_slice_scatter(LowerCall& call) {
  LoweredTensor self = call.in("self"), src = call.in("src");
  std::size_t dim = call.dim("dim", self.dim());
  give_scatter(call, self, src, dim, slice_start(call, self.sizes[dim]), call.integer("step"));
  return {};
}

Status lower_select_scatter(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::size_t dim = call.dim("dim", self.dim());
  give_scatter(call, self, unsqueezed(call.to, call.in("src"), dim), dim, wrap_index(call, self.sizes[dim]), 1);
  return {};
}

Status lower_slice_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), zero = call.to.constant(grad.dtype, call.out_sizes(), 0);
  std::size_t dim = call.dim("dim", zero.dim());
  std::int64_t start = call.integer("start");
  auto within = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + zero.sizes[dim] : at, 0, zero.sizes[dim]);
  };
  start = within(start);
  Sizes window = zero.sizes;
  window[dim] = (std::max<std::int64_t>(within(call.integer("end")) - start, 0) + call.integer("step") - 1) /
                call.integer("step");
  if (grad.sizes != window) fail_unsupported("a gradient that is broadcast");
  give_scatter(call, zero, grad, dim, start, call.integer("step"));
  return {};
}

Status lower_select_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), zero = call.to.constant(grad.dtype, call.out_sizes(), 0);
  std::size_t dim = call.dim("dim", zero.dim());
  Sizes window = zero.sizes;
  window.erase(window.begin() + static_cast<std::ptrdiff_t>(dim));
  if (grad.sizes != window) fail_unsupported("a gradient that is broadcast");
  give_scatter(call, zero, unsqueezed(call.to, grad, dim), dim, wrap_index(call, zero.sizes[dim]), 1);
  return {};
}

}  // namespace partita::loops
