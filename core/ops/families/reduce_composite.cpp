// Reductions that decompose to other reductions.
#include "core/ops/families/reduce_parts.h"

namespace partita {
namespace {

Arg sum_to_size(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  SymList size = call.syms("size");
  if (size.size() > self.dim()) fail("sum_to_size: size is not expandable to the tensor's size");
  // at::sum_to: for an empty size the result is the sum of all elements. It has the dtype of a sum, also when self is
  // 0-dim.
  if (size.empty()) return call.build.call("aten.sum.default", {call.arg("self")});
  std::size_t lead = self.dim() - size.size();
  std::vector<Arg> dims;
  for (std::size_t d = 0; d < self.dim(); ++d)
    if (d < lead || (size[d - lead].is(1) && !self.sizes[d].is(1))) dims.push_back(static_cast<std::int64_t>(d));
  if (dims.empty()) return call.arg("self");
  Node* out = call.build.call("aten.sum.dim_IntList", {call.arg("self"), Arg::list(std::move(dims)), true});
  return lead > 0 ? Arg(call.build.call("aten.view.default", {out, call.build.sizes(size)})) : Arg(out);
}

}  // namespace

void add_reduce_composites(OpTable& t) {
  for (const auto& [name, program, recomputable] : {
           std::tuple("aten.var.default", "aten.var.correction(self, None, correction=1 if unbiased else 0)", true),
           std::tuple("aten.var.dim",
                      "aten.var.correction(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)", true),
           std::tuple("aten.std.default", "aten.std.correction(self, None, correction=1 if unbiased else 0)", true),
           std::tuple("aten.std.dim",
                      "aten.std.correction(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)", true),
           std::tuple("aten.var_mean.default", "aten.var_mean.correction(self, None, correction=1 if unbiased else 0)",
                      true),
           std::tuple("aten.var_mean.dim",
                      "aten.var_mean.correction(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)", true),
           std::tuple("aten.std_mean.default", "aten.std_mean.correction(self, None, correction=1 if unbiased else 0)",
                      false),
           std::tuple("aten.std_mean.dim",
                      "aten.std_mean.correction(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)", false),
       })
    t.add(name, {.program = program, .recomputable = recomputable});
  t.add("aten.trace.default",
        {.program = "sum(diagonal(self)) if dim(self) == 2 else refuse('trace: expected a matrix')",
         .derivative = {{"self", "trace_backward(grad, self)"}}});
  t.add("aten.max.other", {.program = "maximum(self, other)"});
  t.add("aten.min.other", {.program = "minimum(self, other)"});
  t.add("aten.dist.default", {.program = "norm(self - other, p)"});
  t.add("aten.sum_to_size.default", {.decompose = sum_to_size, .recomputable = true});
}

}  // namespace partita
