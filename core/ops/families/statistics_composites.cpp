// Covariance and correlation, Vandermonde matrices, and special functions under other names.
#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// Rows are variables, columns are observations. Each observation has the weight fweights * aweights.
Arg cov(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  if (self.dim() > 2)
    fail(fmt::format("cov(): expected input to have two or fewer dimensions but got an input with {} dimensions",
                     self.dim()));
  if (self.dtype == DType::Bool) fail("cov(): bool dtype is not supported for input");
  Arg x = c.arg("self"), weights, total;
  if (self.dim() < 2) x = b.call("aten.view.default", {x, Arg::list({1, -1})});
  SymExpr observations = b.tensor(x).sizes[1];
  for (const char* name : {"fweights", "aweights"}) {
    if (!c.has(name)) continue;
    const bool whole = is_integral(c.tensor(name).dtype);
    if (whole != (std::string_view(name) == "fweights") || (!whole && !is_floating(c.tensor(name).dtype)))
      fail(fmt::format("cov(): expected {} to have {} dtype", name, whole ? "floating point" : "integral"));
    if (c.tensor(name).dim() > 1) fail(fmt::format("cov(): expected {} to have one or fewer dimensions", name));
    if (!checked(c, sym_eq(c.tensor(name).numel(), observations), "cov"))
      fail(fmt::format("cov(): expected {} to have the same number of observations as the input", name));
    weights = weights.is_none() ? c.arg(name) : Arg(b.call("aten.mul.Tensor", {weights, c.arg(name)}));
  }
  auto weighted = [&] { return weights.is_none() ? x : Arg(b.call("aten.mul.Tensor", {x, weights})); };
  if (weights.is_none())
    total = b.call("aten.scalar_tensor.default", {b.size(observations)}, options_of(self, DType::Int64));
  else
    total = b.call("aten.sum.default", {weights});
  Arg mean = build_program(c, "aten.sum.dim_IntList(x, [1]) / total", {{"x", weighted()}, {"total", total}});
  std::vector<std::pair<std::string, Arg>> names = {{"x", x}, {"mean", mean}, {"total", total}, {"w", weights}};
  bool corrected = c.has("aweights") && c.integer("correction") != 0;
  Arg factor = build_program(
      c, corrected ? "total - aten.sum.default(w * aweights) * correction / total" : "total - correction", names);
  // PyTorch replaces a factor below 0 by 0.
  x = build_program(c, "x - unsqueeze(mean, 1)", names);
  return build_program(c, "squeeze(mm(x, conj(t(y))) / clamp_min(factor, 0))",
                       {{"x", x}, {"y", weighted()}, {"factor", factor}});
}

Arg corrcoef(DecomposeCall& c) {
  if (c.tensor("self").dim() > 2)
    fail(fmt::format("corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions",
                     c.tensor("self").dim()));
  Arg covariance = build_program(c, "cov(self)");
  if (Builder::tensor(covariance).dim() == 0) return build_program(c, "c / c", {{"c", covariance}});
  Arg normal = build_program(c,
                             "deviation = sqrt(real(diag(c)));"
                             "c / aten.view.default(deviation, [-1, 1]) / aten.view.default(deviation, [1, -1])",
                             {{"c", covariance}});
  if (!is_complex(Builder::tensor(normal).dtype)) return build_program(c, "clamp(c, -1, 1)", {{"c", normal}});
  return build_program(c, "complex(clamp(real(c), -1, 1), clamp(imag(c), -1, 1))", {{"c", normal}});
}

Arg vander(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& x = c.tensor("x");
  if (x.dim() != 1) fail("x must be a one-dimensional tensor.");
  SymExpr columns = c.has("N") ? SymExpr(c.integer("N")) : x.sizes[0];
  if (c.has("N") && c.integer("N") < 0) fail("N must be non-negative.");
  bool whole = !is_floating(x.dtype) && !is_complex(x.dtype);
  Node* out = b.call("aten.empty.memory_format", {b.sizes({x.sizes[0], columns})},
                     options_of(x, whole ? DType::Int64 : x.dtype));
  if (c.test(sym_lt(0, columns), "vander")) build_program(c, "fill_(select(out, 1, 0), 1)", {{"out", out}});
  if (c.test(sym_lt(1, columns), "vander"))
    build_program(c,
                  "first = slice(out, 1, 1); aten.copy_.default(first, unsqueeze(x, 1));"
                  "to = slice(out, 1, 1); aten.copy_.default(to, cumprod(slice(out, 1, 1), 1))",
                  {{"out", out}});
  return c.boolean("increasing") ? Arg(out) : build_program(c, "flip(out, [1])", {{"out", out}});
}

constexpr CompositeRow statistics_rows[] = {
    {"aten.special_logsumexp.default", "logsumexp(self, dim, keepdim)"},
    {"aten.special_xlogy.other_scalar", "aten.xlogy.Scalar_Other(self, other)"},
    {"aten.special_xlogy.self_scalar", "aten.xlogy.Scalar_Self(self, other)"},
};

}  // namespace

void register_statistics_composites(OpTable& t) {
  add_composites(t, statistics_rows);
  t.add("aten.cov.default", {.decompose = cov});
  t.add("aten.corrcoef.default", {.decompose = corrcoef});
  t.add("aten.vander.default", {.decompose = vander});
}

}  // namespace partita
