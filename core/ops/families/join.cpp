// Operators that place elements elsewhere: cat, stack, repeat, flip, roll, triangles.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/facts/view_strides.h"
#include "core/ops/facts/views.h"
#include "core/ops/families/body.h"
#include "core/ops/families/lower_place.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {
using namespace loops;

void give_triangle(LowerCall& call, bool lower) {
  LoweredTensor self = call.in("self");
  const std::size_t rank = self.dim();
  SymExpr diagonal = call.integer("diagonal");
  if (call.test(sym_lt(diagonal, -self.sizes[rank - 2]), "a diagonal below the matrix"))
    diagonal = -self.sizes[rank - 2];
  if (call.test(sym_lt(self.sizes[rank - 1], diagonal), "a diagonal above the matrix")) diagonal = self.sizes[rank - 1];
  call.give(call.to.map(self.dtype, self.sizes, [=](Body& body, const Index& i) {
    SymExpr row = i[i.size() - 2], column = i[i.size() - 1];
    Scalar keep = lower ? body.less(column, row + diagonal + 1) : body.less(row + (diagonal - 1), column);
    return body.b.where(keep, body.read(self, i), body.b.constant(self.dtype, 0));
  }));
}

void lower_tril(LowerCall& call) {
  give_triangle(call, true);
}

void lower_triu(LowerCall& call) {
  give_triangle(call, false);
}

void give_cat(LowerCall& call, const std::vector<LoweredTensor>& parts, std::size_t dim) {
  DType dtype = call.out().dtype;
  const SymList sizes = call.out_sizes();
  if (!parts.empty() && is_picked(call.to, dtype, sizes, parts)) {
    std::vector<PlacedPart> placed;
    Sizes at(sizes.size(), 0);
    for (const LoweredTensor& t : parts) {
      if (!t.numel().is(0)) placed.push_back({t, at});
      at[dim] += t.sizes[dim].as_int();
    }
    if (placed.empty()) return call.give(call.to.constant(dtype, sizes, 0));
    const auto first = [=, part = placed.front().part](Body& body, const Index& i) {
      Index inside = i;
      inside[dim] = body.math.mod(i[dim], part.sizes[dim].as_int());
      return body.b.cast(body.read(part, inside), dtype);
    };
    placed.erase(placed.begin());
    return call.give(picked(call.to, dtype, sizes, first, placed));
  }
  std::vector<Write> writes;
  SymExpr start = 0;
  for (const LoweredTensor& t : parts) {
    if (!t.numel().is(0)) writes.push_back(write(t, dtype, dim, start));
    start = start + t.sizes[dim];
  }
  call.give(call.to.writes(dtype, sizes, std::move(writes)));
}

void lower_flip(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::vector<bool> flipped(std::max<std::size_t>(self.dim(), 1), false);
  for (std::int64_t d : call.integers("dims")) flipped[wrap_dim(d, self.dim())] = true;
  call.give(call.to.map(self.dtype, self.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    for (std::size_t d = 0; d < at.size(); ++d)
      if (flipped[d]) at[d] = SymExpr(self.sizes[d] - 1) - i[d];
    return body.read(self, at);
  }));
}

/// `by`: of each dimension, within 0 .. its size - 1. Both parts of each dimension are copied on their own, because a
/// remainder by a size that is no number costs a division for each element.
void give_rolled_parts(LowerCall& call, const LoweredTensor& self, const SymList& by) {
  std::vector<Write> writes = {{self.sizes, {}, {}}};
  std::vector<SymList> from = {SymList(self.dim(), 0)}, to = from;
  for (std::size_t d = 0; d < self.dim(); ++d) {
    if (by[d].is(0)) continue;
    for (std::size_t w = writes.size(); w-- > 0;) {
      writes.push_back(writes[w]);
      from.push_back(from[w]);
      to.push_back(to[w]);
      writes[w].sizes[d] = self.sizes[d] - by[d];
      to[w][d] = by[d];
      writes.back().sizes[d] = by[d];
      from.back()[d] = self.sizes[d] - by[d];
    }
  }
  const auto shifted = [](const Index& i, const SymList& by) {
    Index at = i;
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = at[d] + by[d];
    return at;
  };
  for (std::size_t w = 0; w < writes.size(); ++w) {
    writes[w].sizes = call.to.plain(writes[w].sizes);
    writes[w].value = [=, at = from[w]](Body& body, const Index& i) { return body.read(self, shifted(i, at)); };
    writes[w].target = [=, at = to[w]](Body&, const Index& i) { return shifted(i, at); };
  }
  call.give(call.to.writes(self.dtype, self.sizes, std::move(writes)));
}

void lower_roll(LowerCall& call) {
  LoweredTensor self = call.in("self");
  Sizes dims = call.integers("dims");
  const SymList shifts = call.syms("shifts");
  LoweredTensor flat = dims.empty() ? call.to.reshape(self, {self.numel()}) : self;
  if (dims.empty()) dims = {0};
  SymList shift(flat.dim(), 0);
  for (std::size_t k = 0; k < dims.size(); ++k) {
    SymExpr& each = shift[wrap_dim(dims[k], flat.dim())];
    each = flat.numel().is(0) ? SymExpr(0) : each + shifts[k];
  }
  bool numbers = true;
  for (std::size_t d = 0; d < flat.dim(); ++d)
    numbers = numbers && (shift[d].is(0) || (shift[d].is_int() && flat.sizes[d].is_int()));
  if (!numbers) {
    for (std::size_t d = 0; d < flat.dim(); ++d) {
      if (shift[d].is(0)) continue;
      if (call.test(sym_lt(shift[d], 0), "a shift towards the start")) shift[d] = shift[d] + flat.sizes[d];
      if (call.test(sym_lt(shift[d], 0), "a shift by more than the size") ||
          call.test(sym_le(flat.sizes[d], shift[d]), "a shift by more than the size"))
        shift[d] = sym_mod(shift[d], flat.sizes[d]);
      if (call.test(sym_eq(shift[d], 0), "a shift by the size")) shift[d] = 0;
    }
    return give_rolled_parts(call, flat, shift);
  }
  Sizes by, sizes;
  for (std::size_t d = 0; d < flat.dim(); ++d) {
    by.push_back(shift[d].as_int());
    sizes.push_back(flat.sizes[d].is_int() ? flat.sizes[d].as_int() : 1);
  }
  call.give(call.to.map(self.dtype, flat.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    for (std::size_t d = 0; d < at.size(); ++d)
      if (by[d] != 0 && !flat.sizes[d].is(0)) {
        const std::int64_t size = sizes[d];
        at[d] = body.math.mod(i[d] + (size - by[d] % size), size);
      }
    return body.read(flat, at);
  }));
}

void lower_repeat(LowerCall& call) {
  LoweredTensor self = call.in("self");
  const SymList sizes = call.out_sizes();
  if (product(sizes).is(0)) return call.give(call.to.constant(self.dtype, sizes, 0));
  call.give(call.to.map(self.dtype, sizes, [=](Body& body, const Index& i) {
    Index at;
    for (std::size_t d = 0; d < self.dim(); ++d)
      at.push_back(body.math.mod(i[d + i.size() - self.dim()], self.sizes[d]));
    return body.read(self, at);
  }));
}

void lower_cat(LowerCall& call) {
  std::vector<LoweredTensor> parts;
  // cat ignores an empty 1-d tensor.
  for (const LoweredTensor& t : call.ins("tensors"))
    if (t.sizes != SymList{0}) parts.push_back(t);
  std::size_t rank = call.out_sizes().size();
  give_cat(call, parts, call.dim("dim", rank));
}

void lower_stack(LowerCall& call) {
  std::size_t dim = call.dim("dim", call.out_sizes().size());
  std::vector<LoweredTensor> parts;
  for (const LoweredTensor& t : call.ins("tensors")) parts.push_back(unsqueezed(call.to, t, dim));
  give_cat(call, parts, dim);
}

/// PyTorch's legacy rule: cat ignores a 1-d tensor without elements.
bool skipped(const TensorMeta& t) {
  return t.dim() == 1 && t.sizes[0].is(0);
}

/// Channels last if every tensor has that format, including the ignored ones (cat_compute_output_memory_format,
/// native/TensorShape.cpp).
MemoryFormat common_format(const FakeCall& call, std::span<const TensorMeta* const> tensors) {
  const MemoryFormat format = suggest_memory_format(*tensors[0], call.shapes);
  const bool common = std::ranges::all_of(
      tensors, [&](const TensorMeta* t) { return suggest_memory_format(*t, call.shapes) == format; });
  return common ? format : MemoryFormat::Contiguous;
}

struct Joined {
  TensorMeta meta;
  std::size_t dim = 0;
};

Joined join(const FakeCall& call) {
  std::vector<const TensorMeta*> tensors = call.tensors("tensors"), joined;
  if (tensors.empty()) fail("torch.cat(): expected a non-empty list of Tensors");
  std::vector<Operand> operands;
  for (const TensorMeta* t : tensors) {
    operands.push_back(Operand::of(*t));
    if (t->sizes.empty())
      fail(fmt::format("zero-dimensional tensor (at position {}) cannot be concatenated", operands.size() - 1));
    if (!skipped(*t)) joined.push_back(t);
  }
  const TensorMeta& first = joined.empty() ? *tensors[0] : *joined[0];
  Joined out{TensorMeta::contiguous(result_type(operands), first.sizes, first.device), 0};
  out.dim = wrap_dim(call.integer("dim"), first.dim());
  SymExpr total = 0;
  for (const TensorMeta* t : joined) {
    if (t->dim() != first.dim())
      fail(fmt::format("Tensors must have same number of dimensions: got {} and {}", first.dim(), t->dim()));
    for (std::size_t d = 0; d < first.dim(); ++d)
      if (d != out.dim && !checked_equal(call, t->sizes[d], first.sizes[d], "cat"))
        fail(fmt::format("Sizes of tensors must match except in dimension {}. Expected {} but got {} in dimension {}",
                         out.dim, first.sizes[d].str(), t->sizes[d].str(), d));
    total = total + t->sizes[out.dim];
  }
  out.meta.sizes[out.dim] = joined.empty() ? SymExpr(0) : total;
  out.meta.strides = strides_for(common_format(call, tensors), out.meta.sizes);
  return out;
}

Meta fake_cat(FakeCall& call) {
  return join(call).meta;
}

/// Slices the gradient into the parts of the tensors.
std::vector<Node*> cat_gradient(GradCall& call) {
  Joined joined = join(call);
  const ArgList& list = *call.arg("tensors").get<ArgList>();
  std::vector<Node*> grads;
  SymExpr at = 0;
  for (const Arg& a : list.items) {
    const TensorMeta& t = Builder::tensor(a);
    if (skipped(t)) {
      grads.push_back(call.build.call("aten.zeros.default", {Arg::list({Arg(0)})},
                                      {{"dtype", t.dtype}, {"layout", Layout::Strided}, {"device", t.device}}));
      continue;
    }
    SymExpr end = at + t.sizes[joined.dim];
    Node* part = call.build.call("aten.slice.Tensor", {call.grads[0], static_cast<std::int64_t>(joined.dim),
                                                       call.build.size(at), call.build.size(end)});
    grads.push_back(part);
    at = end;
  }
  return gradients_of_items(call, "tensors", std::move(grads));
}

Arg stack(DecomposeCall& call) {
  const ArgList& list = *call.arg("tensors").get<ArgList>();
  if (list.items.empty()) fail("stack expects a non-empty TensorList");
  std::int64_t dim = static_cast<std::int64_t>(wrap_dim(call.integer("dim"), call.tensors("tensors")[0]->dim() + 1));
  std::vector<Arg> parts;
  for (const Arg& a : list.items) parts.push_back(call.build.call("aten.unsqueeze.default", {a, dim}));
  return call.build.call("aten.cat.default", {Arg::list(std::move(parts)), dim});
}

Meta fake_stack(FakeCall& call) {
  std::vector<const TensorMeta*> tensors = call.tensors("tensors");
  if (tensors.empty()) fail("stack expects a non-empty TensorList");
  std::vector<Operand> operands;
  for (const TensorMeta* t : tensors) {
    operands.push_back(Operand::of(*t));
    if (!checked_sizes(call, t->sizes, tensors[0]->sizes, "stack")) fail("stack expects each tensor to be equal size");
  }
  const auto count = static_cast<std::int64_t>(tensors.size());
  SymList joined = tensors[0]->sizes, sizes = joined;
  const std::size_t dim = wrap_dim(call.integer("dim"), sizes.size() + 1);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), count);
  TensorMeta out = TensorMeta::contiguous(result_type(operands), sizes, tensors[0]->device);
  // Unless the new dimension is the last, PyTorch concatenates the tensors and takes a view, whose strides the result
  // has.
  if (dim < joined.size()) {
    joined[dim] = joined[dim] * count;
    if (auto view = view_geometry(call, joined, strides_for(common_format(call, tensors), joined), sizes))
      out.strides = std::move(view->strides);
  }
  return out;
}

std::vector<Node*> stack_gradient(GradCall& call) {
  std::size_t rank = Builder::tensor(call.grads[0]).dim();
  Arg dim = static_cast<std::int64_t>(wrap_dim(call.integer("dim"), rank));
  return gradients_of_items(call, "tensors",
                            results_of(call.build, call.build.call("aten.unbind.int", {call.grads[0], dim})));
}

Meta fake_repeat(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  SymList repeats = call.syms("repeats"), sizes = repeats;
  if (repeats.size() < self.dim())
    fail("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  std::size_t lead = repeats.size() - self.dim();
  for (std::size_t d = lead; d < sizes.size(); ++d) sizes[d] = sizes[d] * self.sizes[d - lead];
  return TensorMeta::contiguous(self.dtype, std::move(sizes), self.device);
}

/// repeat_backward (FunctionsManual.cpp): sums over the new dimensions one after the other, then over all repeats in
/// one call.
std::vector<Node*> repeat_gradient(GradCall& call) {
  const TensorMeta& self = call.tensor("self");
  const SymList repeats = call.syms("repeats");
  const std::size_t lead = repeats.size() - self.dim();
  Builder& b = call.build;
  Node* grad = call.grads[0];
  for (std::size_t d = 0; d < lead; ++d) grad = b.call("aten.sum.dim_IntList", {grad, Arg::list({0})});
  SymList split;
  std::vector<Arg> dims;
  for (std::size_t d = 0; d < self.dim(); ++d) {
    if (!repeats[lead + d].is(1)) {
      dims.emplace_back(static_cast<std::int64_t>(split.size()));
      split.push_back(repeats[lead + d]);
    }
    split.push_back(self.sizes[d]);
  }
  if (!dims.empty()) {
    Node* apart = b.call("aten.reshape.default", {grad, b.sizes(split)});
    grad = b.call("aten.sum.dim_IntList", {apart, Arg::list(std::move(dims))});
  }
  return gradient_of_first(call, grad);
}

Meta fake_flip(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  std::vector<bool> flipped(std::max<std::size_t>(self.dim(), 1), false);
  for (std::int64_t dim : call.integers("dims")) {
    const std::size_t d = wrap_dim(dim, self.dim());
    if (flipped[d]) fail(fmt::format("dim {} appears multiple times in the list of dims", d));
    flipped[d] = true;
  }
  TensorMeta out = TensorMeta::contiguous(self.dtype, self.sizes, self.device);
  out.strides = strides_like(call, self, self.sizes, MemoryFormat::Preserve);
  return out;
}

Meta fake_roll(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::size_t shifts = call.syms("shifts").size();
  const Sizes dims = call.integers("dims");
  if (shifts == 0) fail("`shifts` required");
  if (dims.size() != shifts && !(dims.empty() && shifts == 1))
    fail(fmt::format("shifts and dimensions must align. shifts: {}, dims:{}", shifts, dims.size()));
  for (std::int64_t d : dims) {
    if (self.dim() == 0) fail(fmt::format("Dimension specified as {} but tensor has no dimensions", d));
    wrap_dim(d, self.dim());
  }
  return TensorMeta::contiguous(self.dtype, self.sizes, self.device);
}

template <bool lower>
Meta fake_triangle(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  if (self.dim() < 2) fail(fmt::format("{}: input tensor must have at least 2 dimensions", lower ? "tril" : "triu"));
  return TensorMeta::contiguous(self.dtype, self.sizes, self.device);
}

Meta fake_diag_embed(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  std::size_t rank = self.dim() + 1;
  std::size_t a = wrap_dim(call.integer("dim1"), rank), b = wrap_dim(call.integer("dim2"), rank);
  if (a == b) fail("diagonal dimensions cannot be identical");
  if (self.sizes.empty()) fail("diag_embed needs at least one dimension");
  const std::int64_t offset = call.integer("offset");
  SymExpr n = self.sizes.back() + (offset < 0 ? -SymExpr(offset) : SymExpr(offset));
  SymList sizes(self.sizes.begin(), self.sizes.end() - 1);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(std::min(a, b)), n);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)), n);
  return TensorMeta::contiguous(self.dtype, std::move(sizes), self.device);
}

Value eval_diag_embed(EvalCall& call) {
  CallOfValues metas(call);
  TensorMeta meta = *fake_diag_embed(metas.call).tensor();
  Tensor out = unwrap(Tensor::zeros(meta.dtype, *concrete(meta.sizes)));
  Value shown = unwrap(
      evaluate(Op::torch("aten.diagonal.default"), {out, call.arg("offset"), call.arg("dim1"), call.arg("dim2")}, {}));
  shown.get<Tensor>()->copy_from(call.tensor("self"));
  return out;
}

Arg rot90(DecomposeCall& call) {
  Sizes dims = call.integers("dims");
  if (dims.size() != 2) fail(fmt::format("expected total rotation dims == 2, but got dims = {}", dims.size()));
  std::vector<std::pair<std::string, Arg>> names = {{"x", call.arg("self")}, {"a", dims[0]}, {"b", dims[1]}};
  switch (((call.integer("k") % 4) + 4) % 4) {
    case 1:
      return call.build.expression("transpose(flip(x, [b]), a, b)", names);
    case 2:
      return call.build.expression("flip(x, [a, b])", names);
    case 3:
      return call.build.expression("transpose(flip(x, [a]), a, b)", names);
    default:
      return call.build.expression("clone(x, memory_format=contiguous_format)", names);
  }
}

Arg tile(DecomposeCall& call) {
  SymList dims = call.syms("dims");
  std::size_t rank = call.tensor("self").dim();
  if (dims.size() < rank) dims.insert(dims.begin(), rank - dims.size(), 1);
  return call.build.call("aten.repeat.default", {call.arg("self"), call.build.sizes(dims)});
}

}  // namespace

void register_join(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.cat.default", fake_cat, nullptr, {},
        {.autograd = {.gradient = cat_gradient}, .lower = lower_cat, .role = Role::Concatenates});
  t.add("aten.stack.default", fake_stack, nullptr, {},
        {.compile_decompose = stack, .autograd = {.gradient = stack_gradient}, .lower = lower_stack});
  t.add("aten.concat.default", {.program = "cat(tensors, dim)"});
  t.add("aten.concatenate.default", {.program = "cat(tensors, dim)"});
  t.add("aten.repeat.default", fake_repeat, nullptr, {},
        {.autograd = {.gradient = repeat_gradient}, .lower = lower_repeat, .views = {.unchanged_if = any_arguments}});
  t.add("aten.tile.default", {.decompose = tile});
  t.add("aten.flip.default", fake_flip, nullptr, {{"self", "flip(grad, dims)"}}, {.lower = lower_flip});
  t.add("prims.rev.default",
        {.fake = [](FakeCall& call) -> Meta { return like_preserving(call.tensor("a"), call.shapes); },
         .eval = [](EvalCall& call) -> Value {
           return unwrap(evaluate(Op::torch("aten.flip.default"), {call.arg("a"), call.arg("dims")}, {}));
         }});
  t.add("aten.roll.default", fake_roll, nullptr, {{"self", "roll(grad, negated(shifts), dims)"}},
        {.lower = lower_roll});
  t.add("aten.rot90.default", {.decompose = rot90, .autograd = {.derivative = {{"self", "rot90(grad, -k, dims)"}}}});
  t.add("aten.tril.default", fake_triangle<true>, nullptr, {{"self", "tril(grad, diagonal)"}}, {.lower = lower_tril});
  t.add("aten.triu.default", fake_triangle<false>, nullptr, {{"self", "triu(grad, diagonal)"}},
        {.lower = lower_triu, .cost = {.recomputable = true}});
  t.add("aten.diag_embed.default", fake_diag_embed, eval_diag_embed, {{"self", "diagonal(grad, offset, dim1, dim2)"}});
}

}  // namespace partita
