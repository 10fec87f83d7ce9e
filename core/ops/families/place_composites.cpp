// Positions of nonzero elements, repeated slices, one-hot classes, casts by name.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// Repeats each slice of `self` along `dim` as often as `repeats` says.
Arg repeat_interleave(DecomposeCall& c) {
  Builder& b = c.build;
  Node *x = tensor_node(c, "self"), *repeats = tensor_node(c, "repeats");
  std::int64_t dim = 0;
  if (c.has("dim"))
    dim = c.integer("dim");
  else
    x = b.call("aten.flatten.using_ints", {x});
  const TensorMeta &counts = c.tensor("repeats"), &rows = b.tensor(x);
  SymExpr size = rows.dim() == 0 ? SymExpr(1) : rows.sizes[wrap_dim(dim, rows.dim())];
  if (counts.dim() > 1) fail("repeats must be 0-dim or 1-dim tensor");
  if (counts.dim() == 0 || counts.sizes[0].is(1)) {
    repeats = b.call("aten.expand.default", {reshape(b, repeats, {1}), b.sizes({size})});
  } else if (!checked(c, sym_eq(counts.sizes[0], size), "repeat_interleave")) {
    fail(
        fmt::format("repeats must have the same size as input along dim, but got repeats.size(0) = {} and "
                    "input.size({}) = {}",
                    counts.sizes[0].str(), dim, size.str()));
  }
  Kwargs given;
  if (c.has("output_size")) given.emplace_back("output_size", c.arg("output_size"));
  Node* indices = b.call("aten.repeat_interleave.Tensor", {repeats}, std::move(given));
  return b.call("aten.index_select.default", {x, dim, indices});
}

/// repeat_interleave.Tensor: each position of `repeats`, as often as the number there says.
Meta fake_repeated(FakeCall& c) {
  TensorMeta repeats = c.tensor("repeats");
  if (repeats.dim() != 1) fail("repeat_interleave only accept 1D vector as repeat");
  if (repeats.dtype != DType::Int64 && repeats.dtype != DType::Int32) fail("repeats has to be Long or Int tensor");
  return new_like(repeats, {c.has("output_size") ? c.sym("output_size") : c.shapes.new_unbacked()});
}

Value eval_repeated(EvalCall& c) {
  const Tensor& given = c.tensor("repeats");
  Tensor repeats = kernels::load(given, DType::Int64);
  std::int64_t total = 0;
  for (std::int64_t i : steps(repeats.numel())) {
    const std::int64_t times = repeats.as<std::int64_t>()[i];
    if (times < 0) fail("repeats can not be negative");
    if (__builtin_add_overflow(total, times, &total)) fail("repeat_interleave: the result is too large");
  }
  if (c.has("output_size") && c.integer("output_size") != total) fail("allocated size does not match required size");
  Tensor places = kernels::empty(DType::Int64, {total});
  std::int64_t* to = places.as<std::int64_t>();
  for (std::int64_t i : steps(repeats.numel())) to = std::fill_n(to, repeats.as<std::int64_t>()[i], i);
  return given.dtype == DType::Int64 ? places : unwrap(places.to(given.dtype));
}

/// Compares the classes with a range, as PyTorch traces it. Without num_classes their number depends on the values.
Arg one_hot(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  if (self.dtype != DType::Int64) fail("one_hot is only applicable to index tensor of type LongTensor.");
  Arg classes = c.arg("num_classes");
  if (auto* n = classes.get<std::int64_t>(); n && *n == -1) {
    Node* largest = b.call("aten.item.default", {b.call("aten.max.default", {c.arg("self")})});
    classes = b.call("_operator.add", {largest, 1});
  }
  Node* range = b.call("aten.arange.default", {classes}, options_of(self));
  Node* hit = b.call("aten.eq.Tensor", {b.call("aten.unsqueeze.default", {c.arg("self"), -1}), range});
  return b.call("aten._to_copy.default", {hit}, {{"dtype", DType::Int64}});
}

/// Writes through a view of the diagonal; with `wrap`, also of those that follow below the last column. ATen takes
/// as_strided views, which depend on where the tensor lies.
Arg fill_diagonal(DecomposeCall& c) {
  Builder& b = c.build;
  Node* const self = tensor_node(c, "self");
  const TensorMeta meta = b.tensor(self);
  const SymList& sizes = meta.sizes;
  if (sizes.size() < 2) fail("dimensions must larger than 1");
  if (sizes.size() > 2)
    for (const SymExpr size : sizes)
      if (!checked(c, sym_eq(size, sizes[0]), "fill_diagonal_"))
        fail("all dimensions of input must be of equal length");
  Node* filled = self;
  if (c.boolean("wrap") && sizes.size() == 2 && c.test(sym_lt(sizes[1] + 1, sizes[0]), "fill_diagonal_")) {
    if (!is_row_major(meta))
      fail_unsupported(
          "fill_diagonal_ with wrap of a tensor that is not row-major, of which PyTorch fills other elements");
    filled = b.call("aten.slice.Tensor",
                    {b.call("aten.view.default", {self, b.sizes({-1})}), 0, 0, Arg(), b.size(sizes[1] + 1)});
  } else {
    for (std::size_t d = sizes.size(); d > 1; --d) filled = b.call("aten.diagonal.default", {filled, 0, 0, -1});
  }
  b.call("aten.fill_.Scalar", {filled, c.arg("fill_value")});
  return self;
}

constexpr CompositeRow place_rows[] = {
    {"aten.argwhere.default", "nonzero(self)"},
    {"aten.nonzero_numpy.default", "unbind(nonzero(unsqueeze(self, 0) if dim(self) == 0 else self), 1)"},
    {"aten.where.default", "nonzero_numpy(condition)"},
    {"aten.chalf.default", "aten.to.dtype(self, torch.complex32, False, False, memory_format)"},
    {"aten._cast_Byte.default", "aten.to.dtype(self, torch.uint8, non_blocking)"},
    {"aten._cast_Char.default", "aten.to.dtype(self, torch.int8, non_blocking)"},
    {"aten._cast_Short.default", "aten.to.dtype(self, torch.int16, non_blocking)"},
    {"aten._cast_Int.default", "aten.to.dtype(self, torch.int32, non_blocking)"},
    {"aten._cast_Long.default", "aten.to.dtype(self, torch.int64, non_blocking)"},
    {"aten._cast_Half.default", "aten.to.dtype(self, torch.float16, non_blocking)"},
    {"aten._cast_Float.default", "aten.to.dtype(self, torch.float32, non_blocking)"},
    {"aten._cast_Double.default", "aten.to.dtype(self, torch.float64, non_blocking)"},
};

}  // namespace

void register_place_composites(OpTable& t) {
  add_composites(t, place_rows);
  t.add("aten.repeat_interleave.self_Tensor", {.decompose = repeat_interleave});
  t.add("aten.repeat_interleave.Tensor", fake_repeated, eval_repeated, {}, {.autograd = {.not_differentiable = true}});
  t.add("aten.one_hot.default", {.decompose = one_hot});
  t.add("aten.fill_diagonal_.default", {.decompose = fill_diagonal});
}

}  // namespace partita
