// Tensors brought to a common rank, concatenated or split by direction (CompositeImplicitAutograd).

#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

Node* view(Builder& b, Node* x, SymList sizes) {
  return b.call("aten.reshape.default", {x, b.sizes(sizes)});
}

Node* at_least(Builder& b, Node* x, std::size_t rank) {
  const std::size_t own = b.tensor(x).dim();
  if (own >= rank) return x;
  if (own == 0) return view(b, x, SymList(rank, 1));
  if (own == 1) x = b.call("aten.unsqueeze.default", {x, 0});
  return rank == 3 ? b.call("aten.unsqueeze.default", {x, -1}) : x;
}

template <std::size_t rank>
Arg atleast(DecomposeCall& c) {
  return at_least(c.build, tensor_node(c, "self"), rank);
}

std::vector<Node*> tensors_of(const DecomposeCall& c) {
  std::vector<Node*> out = tensor_list(c, "tensors");
  if (out.empty()) fail(c.schema.base + " expects a non-empty TensorList");
  return out;
}

template <std::size_t rank>
Arg atleast_list(DecomposeCall& c) {
  std::vector<Arg> out;
  for (const Arg& a : c.arg("tensors").get<ArgList>()->items) out.emplace_back(at_least(c.build, a.node(), rank));
  return Arg::list(std::move(out));
}

/// hstack, vstack, dstack: bring tensors to 1, 2 or 3 dimensions and concatenate them along dimension 1, 0 or 2; hstack
/// concatenates vectors along dimension 0.
template <std::size_t rank>
Arg stack(DecomposeCall& c) {
  std::vector<Node*> tensors = tensors_of(c);
  for (Node*& t : tensors) t = at_least(c.build, t, rank);
  if constexpr (rank == 1) return concatenate(c.build, tensors, c.build.tensor(tensors[0]).dim() == 1 ? 0 : 1);
  return concatenate(c.build, tensors, rank == 2 ? 0 : 2);
}

Arg column_stack(DecomposeCall& c) {
  std::vector<Node*> tensors = tensors_of(c);
  for (Node*& t : tensors)
    if (c.build.tensor(t).dim() <= 1) t = view(c.build, t, {c.build.tensor(t).numel(), 1});
  return concatenate(c.build, tensors, 1);
}

Arg meshgrid(DecomposeCall& c) {
  std::vector<Node*> tensors = tensors_of(c);
  const std::string indexing = c.schema.index_of("indexing") >= 0 ? c.string("indexing") : "ij";
  if (indexing != "ij" && indexing != "xy")
    fail("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: " + indexing);
  const bool swapped = indexing == "xy" && tensors.size() >= 2;
  if (swapped) std::swap(tensors[0], tensors[1]);
  tensors = grids(c.build, tensors);
  if (swapped) std::swap(tensors[0], tensors[1]);
  return list_of(tensors);
}

Arg cartesian_prod(DecomposeCall& c) {
  Builder& b = c.build;
  std::vector<Node*> tensors = tensors_of(c);
  for (Node* t : tensors)
    if (b.tensor(t).dim() != 1) fail(fmt::format("Expect a 1D vector, but got {} dimensions", b.tensor(t).dim()));
  if (tensors.size() == 1) return tensors[0];
  tensors = grids(b, tensors);
  for (Node*& grid : tensors) grid = b.call("aten.flatten.using_ints", {grid});
  return stacked(b, tensors, 1);
}

/// hsplit, vsplit, dsplit: split along dimension 1 (vectors: 0), 0 or 2.
template <char direction>
Arg split(DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  const std::size_t least = direction == 'h' ? 1 : direction == 'v' ? 2 : 3;
  if (self.dim() < least)
    fail(fmt::format("torch.{}split requires a tensor with at least {} dimension, but got a tensor with {} dimensions!",
                     direction, least, self.dim()));
  const std::int64_t dim = direction == 'h' ? (self.dim() == 1 ? 0 : 1) : direction == 'v' ? 0 : 2;
  if (c.schema.index_of("indices") >= 0)
    return c.build.call("aten.tensor_split.indices", {c.arg("self"), c.arg("indices"), dim});
  const std::int64_t sections = c.integer("sections");
  const SymExpr size = self.sizes[static_cast<std::size_t>(dim)];
  if (sections <= 0 || !checked(c, sym_eq(sym_mod(size, sections), 0), "a split into equal sections"))
    fail(
        fmt::format("torch.{}split attempted to split along dimension {}, but the size of the dimension {} is not "
                    "divisible by the split_size {}!",
                    direction, dim, size.str(), sections));
  return c.build.call("aten.tensor_split.sections", {c.arg("self"), sections, dim});
}

Arg diag(DecomposeCall& c) {
  const std::size_t rank = c.tensor("self").dim();
  if (rank != 1 && rank != 2) fail(fmt::format("diag(): Supports 1D or 2D tensors. Got {}D", rank));
  return c.build.call(rank == 1 ? "aten.diag_embed.default" : "aten.diagonal_copy.default",
                      {c.arg("self"), c.arg("diagonal")});
}

Arg matrix_h(DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (self.dim() == 0) return c.arg("self");
  if (self.dim() != 2)
    fail(fmt::format("tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.", self.dim()));
  Node* out = c.build.call("aten.transpose.int", {c.arg("self"), 0, 1});
  return is_complex(self.dtype) ? c.build.call("aten._conj.default", {out}) : out;
}

}  // namespace

void register_stack_composites(OpTable& t) {
  t.default_family = Family::View;
  t.add("aten.atleast_1d.default", {.decompose = atleast<1>});
  t.add("aten.atleast_2d.default", {.decompose = atleast<2>});
  t.add("aten.atleast_3d.default", {.decompose = atleast<3>});
  t.add("aten.atleast_1d.Sequence", {.decompose = atleast_list<1>});
  t.add("aten.atleast_2d.Sequence", {.decompose = atleast_list<2>});
  t.add("aten.atleast_3d.Sequence", {.decompose = atleast_list<3>});
  t.add("aten.hstack.default", {.decompose = stack<1>});
  t.add("aten.vstack.default", {.decompose = stack<2>});
  t.add("aten.row_stack.default", {.decompose = stack<2>});
  t.add("aten.dstack.default", {.decompose = stack<3>});
  t.add("aten.column_stack.default", {.decompose = column_stack});
  t.add("aten.meshgrid.default", {.decompose = meshgrid});
  t.add("aten.meshgrid.indexing", {.decompose = meshgrid});
  t.add("aten.cartesian_prod.default", {.decompose = cartesian_prod});
  t.add("aten.hsplit.int", {.decompose = split<'h'>});
  t.add("aten.hsplit.array", {.decompose = split<'h'>});
  t.add("aten.vsplit.int", {.decompose = split<'v'>});
  t.add("aten.vsplit.array", {.decompose = split<'v'>});
  t.add("aten.dsplit.int", {.decompose = split<'d'>});
  t.add("aten.dsplit.array", {.decompose = split<'d'>});
  t.add("aten.diag.default", {.decompose = diag});
  t.add("aten.matrix_H.default", {.decompose = matrix_h});
  const CompositeRow programs[] = {
      {"aten.fliplr.default", "refuse('Input must be >= 2-d.') if dim(self) < 2 else flip(self, [1])"},
      {"aten.flipud.default", "refuse('Input must be >= 1-d.') if dim(self) < 1 else flip(self, [0])"},
      {"aten.diagflat.default", "diag_embed(aten.view.default(aten.contiguous.default(self), [-1]), offset)"},
      {"aten.real.default", "aten.select.int(view_as_real(self), dim(self), 0) if is_complex(self) else self"},
      {"aten.imag.default",
       "aten.select.int(view_as_real(self), dim(self), 1) if is_complex(self) else refuse('imag is not implemented for "
       "tensors with non-complex dtypes.')"},
  };
  add_composites(t, programs);
}

}  // namespace partita
