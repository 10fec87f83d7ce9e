// quantile and nanquantile: interpolate between sorted values.
#include <algorithm>
#include <array>

#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

constexpr std::array<std::string_view, 5> modes = {"linear", "lower", "higher", "midpoint", "nearest"};

/// Sizes of the result: first the number of quantiles, then what is left of self's sizes.
SymList quantile_sizes(DecomposeCall& c, std::size_t dim, const TensorMeta& q) {
  const TensorMeta& self = c.tensor("self");
  bool keep = c.boolean("keepdim");
  SymList out;
  if (c.has("dim") && self.dim() > 0) {
    out = self.sizes;
    if (keep)
      out[dim] = 1;
    else
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(dim));
  } else if (keep) {
    out.assign(self.dim(), 1);
  }
  out.insert(out.begin(), q.numel());
  return out;
}

/// The values sorted in ascending order along the last dimension.
Node* sorted_values(DecomposeCall& c, std::size_t dim) {
  Builder& b = c.build;
  Node* x = tensor_node(c, "self");
  if (!c.has("dim")) {
    x = b.call("aten.flatten.using_ints", {x});
  } else if (dim + 1 != c.tensor("self").dim()) {
    x = b.call("aten.unsqueeze.default", {x, -1});
    x = b.call("aten.transpose.int", {x, static_cast<std::int64_t>(dim), -1});
  }
  return b.getitem(b.call("aten.sort.default", {x}), 0);
}

Node* as_index(Builder& b, const Arg& x) {
  return b.call("aten._to_copy.default", {x}, options_of(b.tensor(x), DType::Int64));
}

/// The rank of each quantile among the sorted values. In a line with NaN it is the last rank, where a NaN is. With
/// ignore_nan only numbers count, and a line without any has rank 0.
Arg ranks_of(DecomposeCall& c, const Arg& q, Node* sorted, bool ignore_nan) {
  Builder& b = c.build;
  std::vector<std::pair<std::string, Arg>> names = {{"q", q}, {"x", sorted}};
  if (ignore_nan)
    return build_program(c,
                         "valid = aten.sum.dim_IntList(logical_not_(isnan(x)), [-1], True);"
                         "r = q * aten.sub.Scalar(valid, 1); aten.masked_fill_.Scalar(r, lt(r, 0), 0)",
                         names);
  names.emplace_back("last", b.size(b.tensor(sorted).sizes.back() - 1));
  return build_program(c,
                       "r = aten.mul.Scalar(q, last); n = any(isnan(x), -1, True); both = broadcast_tensors([r, n]);"
                       "aten.masked_fill.Scalar(both[0], both[1], last)",
                       names);
}

Arg quantile(DecomposeCall& c, const Arg& q, bool ignore_nan) {
  Builder& b = c.build;
  const TensorMeta &self = c.tensor("self"), &at = b.tensor(q);
  std::string mode = c.string("interpolation");
  if (std::find(modes.begin(), modes.end(), mode) == modes.end())
    fail("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got " + mode);
  if (self.numel().is(0)) fail("quantile() input tensor must be non-empty");
  if (at.dim() > 1) fail("quantile() q must be a scalar or 1D tensor");
  if (self.dtype != DType::Float32 && self.dtype != DType::Float64)
    fail("quantile() input tensor must be either float or double dtype");
  if (self.dtype != at.dtype) fail("quantile() q tensor must be same dtype as the input tensor");
  std::size_t dim = c.has("dim") ? wrap_dim(c.integer("dim"), self.dim()) : 0;
  SymList shape = quantile_sizes(c, dim, at);
  Node* sorted = sorted_values(c, dim);
  shape.erase(shape.begin());
  shape.push_back(b.tensor(sorted).dim() == 0 ? SymExpr(1) : b.tensor(sorted).sizes.back());
  sorted = b.call("aten.view.default", {sorted, b.sizes(shape)});
  Arg ranks = ranks_of(c, q, sorted, ignore_nan);
  if (mode == "lower") ranks = b.call("aten.floor_.default", {ranks});
  if (mode == "higher") ranks = b.call("aten.ceil_.default", {ranks});
  if (mode == "nearest") ranks = b.call("aten.round_.default", {ranks});
  Node* below = as_index(b, ranks);
  Node* values = b.call("aten.gather.default", {sorted, -1, below});
  if (mode == "linear" || mode == "midpoint") {
    Node* weights =
        mode == "midpoint" ? b.call("aten.full_like.default", {ranks, 0.5}) : b.call("aten.sub.Tensor", {ranks, below});
    Node* above = as_index(b, b.call("aten.ceil_.default", {ranks}));
    Node* upper = b.call("aten.gather.default", {sorted, -1, above});
    values = b.call("aten.lerp_.Tensor", {values, upper, weights});
  }
  if (at.dim() > 0) {
    values = b.call("aten.unsqueeze_.default", {values, 0});
    values = b.call("aten.transpose_.default", {values, 0, -1});
  }
  return b.call("aten.squeeze_.dim", {values, -1});
}

template <bool ignore_nan>
Arg of_tensor(DecomposeCall& c) {
  return quantile(c, c.arg("q"), ignore_nan);
}

template <bool ignore_nan>
Arg of_number(DecomposeCall& c) {
  double q = as_double(c.number("q"));
  if (q < 0 || q > 1) fail("quantile() q must be in the range [0, 1] but got " + std::to_string(q));
  return quantile(c, c.build.call("aten.scalar_tensor.default", {q}, options_of(c.tensor("self"))), ignore_nan);
}

}  // namespace

void register_quantile_composites(OpTable& t) {
  t.add("aten.quantile.default", {.decompose = of_tensor<false>});
  t.add("aten.quantile.scalar", {.decompose = of_number<false>});
  t.add("aten.nanquantile.default", {.decompose = of_tensor<true>});
  t.add("aten.nanquantile.scalar", {.decompose = of_number<true>});
}

}  // namespace partita
