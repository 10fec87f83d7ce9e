// Lists of tensors: flattened to one tensor, padded to one length, combined; and helpers for other composites.

#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {

std::vector<Node*> tensor_list(const FakeCall& call, std::string_view name) {
  const ArgList* list = call.arg(name).get<ArgList>();
  std::vector<Node*> out;
  for (const Arg& item : list ? list->items : std::vector<Arg>()) {
    Builder::tensor(item);
    out.push_back(item.node());
  }
  return out;
}

Arg list_of(const std::vector<Node*>& nodes) {
  return Arg::list(std::vector<Arg>(nodes.begin(), nodes.end()));
}
Arg list_of(const std::vector<std::int64_t>& numbers) {
  return Arg::list(std::vector<Arg>(numbers.begin(), numbers.end()));
}

Node* slice(Builder& b, Node* x, std::int64_t dim, Arg start, Arg end) {
  Args args = {x, dim, std::move(start)};
  if (!end.is_none()) args.push_back(std::move(end));
  return b.call("aten.slice.Tensor", std::move(args));
}

Node* concatenate(Builder& b, const std::vector<Node*>& parts, std::int64_t dim) {
  return b.call("aten.cat.default", {list_of(parts), dim});
}

Node* stacked(Builder& b, const std::vector<Node*>& parts, std::int64_t dim) {
  return b.call("aten.stack.default", {list_of(parts), dim});
}

Kwargs options_of(const TensorMeta& like, std::optional<DType> dtype) {
  return {{"dtype", dtype.value_or(like.dtype)}, {"layout", Layout::Strided}, {"device", like.device}};
}

Node* reshape(Builder& b, Node* x, const SymList& sizes) {
  return b.expression("reshape(x, size)", {{"x", x}, {"size", b.sizes(sizes)}}).node();
}

std::vector<Node*> grids(Builder& b, const std::vector<Node*>& vectors) {
  SymList shape;
  for (Node* t : vectors) {
    if (b.tensor(t).dim() > 1)
      fail(fmt::format("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of {} dimensions",
                       b.tensor(t).dim()));
    shape.push_back(b.tensor(t).numel());
  }
  std::vector<Node*> out;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::vector<std::int64_t> along(vectors.size(), 1);
    along[i] = -1;
    Node* laid = b.call("aten.view.default", {vectors[i], list_of(along)});
    out.push_back(b.call("aten.expand.default", {laid, b.sizes(shape)}));
  }
  return out;
}

namespace {

constexpr std::int64_t most_dimensions = 64;  // of a tensor, in PyTorch

/// Takes the r-dimensional grid of indices and keeps those that increase.
Arg combinations(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  std::int64_t r = c.integer("r");
  if (self.dim() != 1) fail(fmt::format("Expect a 1D vector, but got shape of rank {}", self.dim()));
  if (r < 0) fail(fmt::format("Expect a non-negative number, but got {}", r));
  if (r > most_dimensions) fail_unsupported(fmt::format("combinations of {} elements", r));
  if (r == 0) return b.call("aten.empty.memory_format", {Arg::list({0})}, options_of(self));
  auto copies = static_cast<std::size_t>(r);
  std::vector<Node*> values = grids(b, std::vector(copies, tensor_node(c, "self")));
  Node* range = b.call("aten.arange.default", {b.size(self.numel())}, options_of(self, DType::Int64));
  const std::vector<Node*> indices = grids(b, std::vector(copies, range));
  Node* mask = b.call("aten.full.default", {b.sizes(b.tensor(indices[0]).sizes), true}, options_of(self, DType::Bool));
  const char* rises = c.boolean("with_replacement") ? "aten.le.Tensor" : "aten.lt.Tensor";
  for (std::size_t i = 0; i + 1 < copies; ++i)
    mask = b.call("aten.mul_.Tensor", {mask, b.call(rises, {indices[i], indices[i + 1]})});
  // nonzero is called once, so that all selections have the same symbolic length.
  Arg places = build_program(c, "aten.squeeze.dim(nonzero(reshape(mask, [-1])), 1)", {{"mask", mask}});
  for (Node*& grid : values)
    grid = b.call("aten.index_select.default", {b.call("aten.flatten.using_ints", {grid}), 0, places});
  return stacked(b, values, 1);
}

Node* flat(Builder& b, Node* x) {
  Arg dense = b.expression("contiguous(x)", {{"x", x}});
  return b.call("aten.view.default", {dense, Arg::list({-1})});
}

Arg flatten_dense_tensors(DecomposeCall& c) {
  std::vector<Node*> parts = tensor_list(c, "tensors");
  for (Node*& part : parts) part = flat(c.build, part);
  if (parts.size() == 1) return parts[0];
  return concatenate(c.build, parts);
}

Arg unflatten_dense_tensors(DecomposeCall& c) {
  Builder& b = c.build;
  SymExpr offset = 0;
  std::vector<Node*> parts;
  for (Node* t : tensor_list(c, "tensors")) {
    SymExpr end = offset + b.tensor(t).numel();
    Node* part = slice(b, tensor_node(c, "flat"), 0, b.size(offset), b.size(end));
    parts.push_back(b.call("aten.view.default", {part, b.sizes(b.tensor(t).sizes)}));
    offset = end;
  }
  return list_of(parts);
}

Arg pad_sequence(DecomposeCall& c) {
  Builder& b = c.build;
  std::vector<Node*> sequences = tensor_list(c, "sequences");
  if (sequences.empty()) fail("received an empty list of sequences");
  std::string side = c.string("padding_side");
  if (side != "left" && side != "right")
    fail(fmt::format("Expected padding_side to be one of left or right, but got {}.", side));
  bool batch_first = c.boolean("batch_first");
  const TensorMeta& first = b.tensor(sequences[0]);
  for (Node* s : sequences)
    if (b.tensor(s).dim() == 0 || b.tensor(s).dim() != first.dim())
      fail("pad_sequence: sequences must have one number of dimensions, at least 1");
  SymExpr longest = first.sizes.at(0);
  for (Node* s : sequences) longest = sym_max(longest, b.tensor(s).sizes.at(0));
  SymList sizes = {longest, static_cast<std::int64_t>(sequences.size())};
  if (batch_first) std::swap(sizes[0], sizes[1]);
  sizes.insert(sizes.end(), first.sizes.begin() + 1, first.sizes.end());
  Node* out = b.call("aten.full.default", {b.sizes(sizes), c.arg("padding_value")}, options_of(first));
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    SymExpr length = b.tensor(sequences[i]).sizes[0], start = side == "left" ? longest - length : SymExpr(0);
    auto position = static_cast<std::int64_t>(i);
    auto steps = [&](Node* x) { return slice(b, x, 0, b.size(start), b.size(start + length)); };
    auto row = [&](Node* x, std::int64_t dim) { return b.call("aten.select.int", {x, dim, position}); };
    Node* place = batch_first ? steps(row(out, 0)) : row(steps(out), 1);
    b.call("aten.copy_.default", {place, sequences[i]});
  }
  return out;
}

}  // namespace

void register_list_composites(OpTable& t) {
  t.add("aten.combinations.default", {.decompose = combinations});
  t.add("aten.flatten_dense_tensors.default", {.decompose = flatten_dense_tensors});
  t.add("aten.unflatten_dense_tensors.default", {.decompose = unflatten_dense_tensors});
  t.add("aten.pad_sequence.default", {.decompose = pad_sequence});
}

}  // namespace partita
