// max_unpool2d/3d: write values back to the positions that max pooling took them from.
#include "core/ops/families/lower_pool.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

/// PyTorch's 2-d kernel keeps channels last, its meta function does not. Graphs with symbolic sizes were traced with
/// the meta function.
MemoryFormat format_of(const FakeCall& c, std::size_t rank) {
  const TensorMeta& self = c.tensor("self");
  return rank == 2 && concrete(self.sizes) ? suggest_memory_format(self, c.shapes) : MemoryFormat::Contiguous;
}

template <std::size_t rank>
Meta fake_max_unpool(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &indices = c.tensor("indices");
  const std::string name = "max_unpooling" + std::to_string(rank) + "d";
  if (indices.dtype != DType::Int64)
    fail("elements in indices should be type int64 but got: " + std::string(torch_name(indices.dtype)));
  if (self.dim() != rank + 1 && self.dim() != rank + 2)
    fail("Input to " + name + " should be a " + std::to_string(rank + 1) + "d or " + std::to_string(rank + 2) +
         "d Tensor, but got a tensor with " + std::to_string(self.dim()) + " dimensions.");
  if (!checked_sizes(c, self.sizes, indices.sizes, "max_unpool indices"))
    fail(name + ": Expected shape of indices to be same as that of the input tensor");
  for (std::size_t d = 1; d < self.dim(); ++d)
    if (!checked(c, sym_lt(0, self.sizes[d]), "max_unpool input"))
      fail(name + "(): Expected input to have non-zero size for non-batch dimensions, but got dimension " +
           std::to_string(d) + " being empty.");
  SymList sizes = self.sizes, output = c.syms("output_size");
  if (output.size() != rank) fail(name + ": output_size must have " + std::to_string(rank) + " elements");
  for (SymExpr size : output)
    if (!checked(c, sym_le(0, size), "max_unpool output"))
      fail(name + "(): output_size must contain non-negative spatial dimensions, but got " + size.str());
  if (c.schema.index_of("stride") >= 0)
    for (std::int64_t stride : c.integers("stride"))
      if (stride <= 0) fail("strides should be greater than zero, but got stride: " + std::to_string(stride));
  std::copy(output.begin(), output.end(), sizes.end() - rank);
  return new_like(self, sizes, format_of(c, rank));
}

template <std::size_t rank>
void lower_max_unpool(loops::LowerCall& call) {
  loops::give_at_indices(call, "self", rank, false, "Found an invalid max index: {} (output volumes are of size {})");
}

/// Writes the values into zeros. Indices are made to count through all planes.
template <std::size_t rank>
Arg decompose_max_unpool(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  SymList lead(self.sizes.begin(), self.sizes.end() - rank), size = c.syms("output_size"), output = lead;
  output.insert(output.end(), size.begin(), size.end());
  Node* zeros = b.call("aten.new_zeros.default", {c.arg("self"), b.sizes(output)});
  if (guard_or(c, sym_eq(product(output), 0), false, "an empty output")) return zeros;
  SymList beside = lead;
  beside.resize(self.dim(), 1);
  Node* planes =
      b.call("aten.arange.default", {b.size(product(lead))}, {{"device", self.device}, {"pin_memory", false}});
  Node* offsets =
      b.call("aten.mul.Tensor", {b.call("aten.view.default", {planes, b.sizes(beside)}), b.size(product(size))});
  Node* indices = b.call("aten.add.Tensor", {c.arg("indices"), offsets});
  auto flat = [&](const Arg& x) { return b.call("aten.reshape.default", {x, Arg::list({-1})}); };
  Node* put = b.call("aten._unsafe_index_put.default", {flat(zeros), Arg::list({flat(indices)}), flat(c.arg("self"))});
  Node* result = b.call("aten.view.default", {put, b.sizes(output)});
  return b.call("aten.contiguous.default", {result}, {{"memory_format", format_of(c, rank)}});
}

template <std::size_t rank>
OpRecord record(std::string_view gradient) {
  return {.fake = fake_max_unpool<rank>,
          .compile_decompose = decompose_max_unpool<rank>,
          .kept = Kept::CheckedValues,
          .autograd = {.derivative = {{"self", gradient}}},
          .lower = lower_max_unpool<rank>};
}

}  // namespace

void register_max_unpool(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.max_unpool2d.default", record<2>("max_pool_double_backward(grad, indices, 2)"));
  t.add("aten.max_unpool3d.default", record<3>("max_pool_double_backward(grad, indices, 3)"));
}

}  // namespace partita
