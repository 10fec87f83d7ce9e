// Reductions that decompose to other reductions.
#include <fmt/format.h>

#include "core/ops/families/reduce_parts.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// std(unbiased), var.dim(dim, unbiased, keepdim) and similar overloads call the overload with `correction`.
template <bool has_dim>
Arg with_correction(DecomposeCall& call) {
  Args args = {call.arg("self")};
  args.push_back(has_dim ? call.arg("dim") : Arg());
  Kwargs kwargs = {{"correction", Arg(call.boolean("unbiased") ? 1 : 0)}};
  if (has_dim) kwargs.emplace_back("keepdim", call.arg("keepdim"));
  return call.build.call(call.schema.base + ".correction", std::move(args), std::move(kwargs));
}

Arg sum_to_size(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  SymList size = call.syms("size");
  if (size.size() > self.dim()) fail("sum_to_size: size is not expandable to the tensor's size");
  // at::sum_to: for an empty size the result is the sum of all elements. It has the dtype of a sum, also when self is
  // 0-dim.
  if (size.empty()) return call.build.call("aten.sum.default", {call.arg("self")});
  std::size_t lead = self.dim() - size.size();
  std::vector<Arg> dims;
  const auto is_one = [&](SymExpr e) { return guard_or(call, sym_eq(e, 1), false, "sum_to_size"); };
  const auto broadcast = [&](SymExpr from, SymExpr to) { return from != to && is_one(from) && !is_one(to); };
  for (std::size_t d = 0; d < self.dim(); ++d) {
    if (d < lead || broadcast(size[d - lead], self.sizes[d]))
      dims.push_back(static_cast<std::int64_t>(d));
    else if (!checked(call, sym_eq(size[d - lead], self.sizes[d]), "sum_to_size"))
      fail(fmt::format("sum_to_size: size {} is not expandable to {}", size[d - lead].str(), self.sizes[d].str()));
  }
  if (dims.empty()) return call.arg("self");
  Node* out = call.build.call("aten.sum.dim_IntList", {call.arg("self"), Arg::list(std::move(dims)), true});
  return lead > 0 ? Arg(call.build.call("aten.view.default", {out, call.build.sizes(size)})) : Arg(out);
}

}  // namespace

void register_reduce_composite(OpTable& t) {
  t.default_family = Family::Reduction;
  for (auto [base, recomputable] :
       {std::pair("aten.var", true), {"aten.std", true}, {"aten.var_mean", true}, {"aten.std_mean", false}}) {
    t.add(std::string(base) + ".default",
          {.decompose = with_correction<false>, .cost = {.recomputable = recomputable}});
    t.add(std::string(base) + ".dim", {.decompose = with_correction<true>, .cost = {.recomputable = recomputable}});
  }
  t.add("aten.trace.default",
        {.program = "sum(diagonal(self)) if dim(self) == 2 else refuse('trace: expected a matrix')",
         .autograd = {.derivative = {{"self", "trace_backward(grad, self)"}}}});
  t.add("aten.max.other", {.program = "maximum(self, other)"});
  t.add("aten.min.other", {.program = "minimum(self, other)"});
  t.add("aten.dist.default", {.program = "norm(self - other, p)"});
  t.add("aten.sum_to_size.default", {.decompose = sum_to_size, .cost = {.recomputable = true}});
}

}  // namespace partita
