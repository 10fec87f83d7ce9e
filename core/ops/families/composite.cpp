// Composites of several families that decompose before autograd.
#include "core/ops/families/composites.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

Arg decompose_diff(DecomposeCall& c) {
  Builder& b = c.build;
  Node* x = tensor_node(c, "self");
  Arg dim = c.arg("dim");
  auto at = wrap_dim(c.integer("dim"), c.tensor("self").dim());
  if (c.tensor("self").dim() == 0) fail("diff expects input to be at least one-dimensional");
  std::int64_t n = c.integer("n");
  if (n < 0) fail("order must be non-negative but got " + std::to_string(n));
  if (n == 0) return b.call("aten.clone.default", {x});  // as at::diff, which ignores prepend and append when n is 0
  if (c.has("prepend") || c.has("append")) {
    std::vector<Arg> parts;
    if (c.has("prepend")) parts.push_back(c.arg("prepend"));
    parts.emplace_back(x);
    if (c.has("append")) parts.push_back(c.arg("append"));
    x = b.call("aten.cat.default", {Arg::list(std::move(parts)), dim});
  }
  SymExpr size = b.tensor(x).sizes[at];
  if (size.is_int()) n = std::min(n, size.as_int());
  for (std::int64_t i = 0; i < n; ++i) {
    size = size - 1;
    auto narrow = [&](SymExpr start) {
      return b.call("aten.slice.Tensor", {x, dim, b.size(start), b.size(start + size)});
    };
    Node* left = narrow(0);
    Node* right = narrow(1);
    bool boolean = b.tensor(x).dtype == DType::Bool;
    x = b.call(boolean ? "aten.logical_xor.default" : "aten.sub.Tensor", {right, left});
  }
  return x;
}

Arg decompose_broadcast_tensors(DecomposeCall& c) {
  Builder& b = c.build;
  std::vector<SymList> sizes;
  for (const TensorMeta* t : c.tensors("tensors")) {
    if (!t) fail("broadcast_tensors: one of the tensors is None");
    sizes.push_back(t->sizes);
  }
  SymList common = broadcast(c, sizes);
  std::vector<Arg> results;
  for (const Arg& t : c.arg("tensors").get<ArgList>()->items)
    results.push_back(b.tensor(t).sizes == common ? t : Arg(b.call("aten.expand.default", {t, b.sizes(common)})));
  return Arg::tuple(std::move(results));
}

Arg decompose_repeat_interleave(DecomposeCall& c) {
  Builder& b = c.build;
  Node* x = tensor_node(c, "self");
  if (!c.has("dim")) x = b.call("aten.flatten.using_ints", {x});
  std::int64_t dim = c.has("dim") ? wrap_dim(c.integer("dim"), b.tensor(x).dim()) : 0;
  if (b.tensor(x).dim() == 0) x = b.call("aten.view.default", {x, Arg::list({1})});
  SymList sizes = b.tensor(x).sizes;
  auto at = sizes.begin() + dim;
  SymExpr repeats = c.sym("repeats");
  SymList flat = sizes;
  flat[static_cast<std::size_t>(dim)] = *at * repeats;
  sizes.insert(at + 1, repeats);
  x = b.call("aten.unsqueeze.default", {x, dim + 1});
  x = b.call("aten.expand.default", {x, b.sizes(sizes)});
  x = b.call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
  return b.call("aten.view.default", {x, b.sizes(flat)});
}

}  // namespace

void register_composite(OpTable& t) {
  t.add("aten.diff.default", {.decompose = decompose_diff});
  for (const char* name : {"aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar"})
    t.add(name, {.program = "where(condition, self, other)"});
  t.add("aten.broadcast_tensors.default", {.decompose = decompose_broadcast_tensors, .cost = {.recomputable = true}});
  t.add("aten.repeat_interleave.self_int", {.decompose = decompose_repeat_interleave});
}

}  // namespace partita
