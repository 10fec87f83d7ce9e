// Operators that copy a part of a tensor or change its sizes: _chunk_cat, resize.
#include <fmt/format.h>

#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {

namespace {

using namespace kernels;

/// Each tensor is padded with zeros along `dim` to num_chunks chunks of equal length. Each chunk is flattened to one
/// row; row i of the result joins the i-th chunks of all tensors.
Meta fake_chunk_cat(FakeCall& c) {
  std::vector<const TensorMeta*> tensors = c.tensors("tensors");
  std::int64_t chunks = c.integer("num_chunks");
  if (tensors.empty()) fail("_chunk_cat expects a non-empty input tensor list");
  if (chunks < 1) fail("_chunk_cat expects positive num_chunks");
  auto dim = wrap_dim(c.integer("dim"), tensors[0]->dim());
  SymExpr rows = chunks, width = 0;
  for (const TensorMeta* t : tensors) {
    if (t->dtype != tensors[0]->dtype) fail("_chunk_cat expects all input tensors with the same dtype");
    if (t->dim() <= dim) fail("_chunk_cat expects input tensors to have at least dim + 1 dimensions");
    for (std::size_t d = 0; d < dim; ++d)
      if (!checked(c, sym_eq(t->sizes[d], tensors[0]->sizes[d]), "_chunk_cat"))
        fail("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
    SymExpr each = sym_floordiv(t->sizes[dim] + chunks - 1, chunks), rest = 1;
    for (std::size_t d = dim + 1; d < t->dim(); ++d) rest = rest * t->sizes[d];
    // When chunks have length 1, PyTorch's reshape keeps the padded dimension unchanged and takes a guard.
    bool kept = c.test(sym_eq(each * chunks, chunks), "_chunk_cat");
    if (t == tensors[0] && kept) rows = each * chunks;
    width = width + (kept ? rest : each * rest);
  }
  SymList sizes(tensors[0]->sizes.begin(), tensors[0]->sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  sizes.insert(sizes.end(), {rows, width});
  return new_like(*tensors[0], sizes);
}

Arg decompose_chunk_cat(DecomposeCall& c) {
  Builder& b = c.build;
  const std::int64_t chunks = c.integer("num_chunks");
  const std::size_t dim = wrap_dim(c.integer("dim"), c.tensors("tensors")[0]->dim());
  std::vector<Arg> parts;
  for (const Arg& item : c.arg("tensors").get<ArgList>()->items) {
    const SymList& sizes = b.tensor(item).sizes;
    SymList pad(2 * (sizes.size() - dim), 0), rows(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(dim));
    pad.back() = sym_floordiv(sizes[dim] + chunks - 1, chunks) * chunks - sizes[dim];
    Node* padded = b.call("aten.constant_pad_nd.default", {item, b.sizes(pad)});
    rows.insert(rows.end(), {chunks, sym_floordiv(product(std::span(b.tensor(padded).sizes).subspan(dim)), chunks)});
    parts.emplace_back(b.call("aten.reshape.default", {padded, b.sizes(rows)}));
  }
  return b.call("aten.cat.default", {Arg::list(std::move(parts)), static_cast<std::int64_t>(dim) + 1});
}

/// A dense tensor of the given sizes; self's strides have no influence.
TensorMeta resized(const FakeCall& c, const TensorMeta& self, SymList sizes, MemoryFormat format) {
  if (c.has("memory_format")) format = *c.memory_format("memory_format");
  if (format == MemoryFormat::Preserve) fail("Unsupported memory format Preserve");
  return new_like(self, std::move(sizes), format);
}

Meta fake_resize(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  // A resize to the same sizes changes nothing, not even the strides.
  SymList sizes = c.syms("size");
  bool same = sizes.size() == self.dim();
  for (std::size_t d = 0; same && d < sizes.size(); ++d) same = c.test(sym_eq(sizes[d], self.sizes[d]), "resize");
  if (same && !c.has("memory_format")) return self;
  return resized(c, self, sizes, MemoryFormat::Contiguous);
}

Meta fake_resize_as(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &like = c.tensor("the_template");
  bool same = like.dim() == self.dim();
  for (std::size_t d = 0; same && d < like.dim(); ++d) same = c.test(sym_eq(like.sizes[d], self.sizes[d]), "resize_as");
  if (same && !c.has("memory_format")) return self;
  if (c.has("memory_format") && *c.memory_format("memory_format") == MemoryFormat::Preserve)
    return new_like(self, like.sizes, suggest_memory_format(like, c.shapes));
  return resized(c, self, like.sizes, MemoryFormat::Contiguous);
}

/// The result uses self's storage where that is large enough (in place), else a new storage that begins with self's
/// elements.
template <Meta (*fake)(FakeCall&), bool in_place>
Value eval_resize(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  Tensor out = empty_of(c, fake);
  std::size_t size = itemsize(self.dtype), offset = static_cast<std::size_t>(self.offset) * size;
  std::size_t needed = out.storage->bytes();
  if (in_place && offset + static_cast<std::size_t>(out.numel()) * size <= self.storage->bytes())
    return self.view_as(out.sizes, out.strides, self.offset);
  std::size_t own = self.storage->bytes() - offset;
  std::copy_n(self.storage->data() + offset, std::min(own, needed), out.storage->data());
  return out;
}

Meta fake_set(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &source = c.tensor("source");
  if (self.dtype != source.dtype)
    fail(fmt::format("Could not set tensor of type {} to a tensor of type {}", torch_name(source.dtype),
                     torch_name(self.dtype)));
  return source;
}

Value eval_set(EvalCall& c) {
  return c.tensor("source");
}

Meta fake_set_empty(FakeCall& c) {
  return new_like(c.tensor("self"), {0});
}

Value eval_set_empty(EvalCall& c) {
  return empty_of(c, fake_set_empty);
}

/// The view begins where the storage of `source` does. Without strides it is row-major.
Arg set_to_place(DecomposeCall& c) {
  Builder& b = c.build;
  const Arg* stride = &c.arg("stride");
  const ArgList* given = stride->get<ArgList>();
  Arg strides = given && !given->items.empty() ? *stride : b.sizes(contiguous_strides(c.syms("size")));
  Node* const view =
      b.call("aten.as_strided.default", {c.arg("source"), c.arg("size"), strides, c.arg("storage_offset")});
  return b.call("aten.set_.source_Tensor", {c.arg("self"), view});
}

}  // namespace

void register_blocks(OpTable& t) {
  t.default_family = Family::View;
  t.add("aten._chunk_cat.default", fake_chunk_cat, nullptr, {}, {.compile_decompose = decompose_chunk_cat});
  t.add("aten.resize.default", fake_resize, eval_resize<fake_resize, false>);
  t.add("aten.resize_.default", fake_resize, eval_resize<fake_resize, true>);
  t.add("aten.resize_as.default", fake_resize_as, eval_resize<fake_resize_as, false>, {},
        {.from_any_device = "the_template"});
  t.add("aten.resize_as_.default", fake_resize_as, eval_resize<fake_resize_as, true>, {},
        {.from_any_device = "the_template"});
  t.add("aten.set_.source_Tensor", fake_set, eval_set, {}, {.autograd = {.not_differentiable = true}});
  t.add("aten.set_.default", fake_set_empty, eval_set_empty, {}, {.autograd = {.not_differentiable = true}});
  t.add("aten.set_.source_Tensor_storage_offset",
        {.decompose = set_to_place, .autograd = {.not_differentiable = true}});
  // What a tensor whose memory was freed holds is not defined, so the interpreter leaves it. Functionalisation refuses
  // to read it.
  t.add(
      "inductor.resize_storage_bytes_.default", [](FakeCall&) { return Meta(); }, [](EvalCall&) { return Value(); }, {},
      {.autograd = {.not_differentiable = true}, .side_effect = true});
}

}  // namespace partita
