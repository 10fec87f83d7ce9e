// Histograms of points in one or more dimensions, with given or evenly spaced edges. (histc is in reduce.cpp.)
#include <algorithm>
#include <cmath>

#include "core/ops/families/reduce_parts.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// Points [M, N] to be counted in N dimensions. All arithmetic is in their dtype.
struct Points {
  Tensor values;
  std::int64_t count = 0, dims = 0;

  Points(const Tensor& t, bool flat) : values(load(t, t.dtype)) {
    if (!is_floating(t.dtype) || itemsize(t.dtype) < 4)
      fail("\"histogramdd\" not implemented for '" + std::string(torch_name(t.dtype)) + "'");
    if (!flat && t.sizes.size() < 2) fail("torch.histogramdd: input tensor should have at least 2 dimensions");
    dims = flat ? 1 : t.sizes.back();
    count = dims > 0 ? values.numel() / dims : 0;
  }
  template <class T>
  T at(std::int64_t point, std::int64_t dim) const {
    return values.as<T>()[point * dims + dim];
  }
};

/// The first and last edge of each dimension: `range` if given, else the points' extremes. Equal extremes are moved
/// apart by 1/2 each.
template <class T>
std::vector<std::pair<T, T>> outer_edges(const EvalCall& c, const Points& p) {
  std::vector<std::pair<T, T>> out(static_cast<std::size_t>(p.dims), {T(0), T(1)});
  if (c.has("range")) {
    if (!c.arg("range").get<ValueList>()) fail("torch.histogramdd: range must be a list of floats");
    const ValueList& range = *c.arg("range").get<ValueList>();
    if (range.size() != 2 * out.size()) fail("torch.histogramdd: range should have 2 values per dimension");
    for (std::size_t d = 0; d < out.size(); ++d) {
      auto value = [&](std::size_t i) {
        const std::int64_t* whole = range[i].get<std::int64_t>();
        return whole ? static_cast<T>(*whole) : static_cast<T>(*range[i].get<double>());
      };
      out[d] = {value(2 * d), value(2 * d + 1)};
    }
  } else if (p.count > 0) {
    for (std::int64_t d = 0; d < p.dims; ++d) {
      auto& [low, high] = out[static_cast<std::size_t>(d)];
      low = high = p.at<T>(0, d);
      for (std::int64_t i = 1; i < p.count; ++i) {
        low = std::min(low, p.at<T>(i, d));
        high = std::max(high, p.at<T>(i, d));
      }
    }
  }
  for (auto& [low, high] : out) {
    if (!std::isfinite(low) || !std::isfinite(high)) fail("torch.histogramdd: dimension's range is not finite");
    if (low > high) fail("torch.histogramdd: min should not exceed max");
    if (low == high) {
      low -= T(0.5);
      high += T(0.5);
    }
  }
  return out;
}

std::vector<Tensor> even_edges(const EvalCall& c, const Points& p, const Sizes& bins) {
  if (bins.size() != static_cast<std::size_t>(p.dims))
    fail("torch.histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  std::vector<Tensor> out;
  dispatch_floating(p.values.dtype, "histogramdd", [&]<class T>() {
    auto outer = outer_edges<T>(c, p);
    for (std::size_t d = 0; d < bins.size(); ++d)
      out.push_back(
          *unwrap(evaluate(Op::torch("aten.linspace.default"),
                           {static_cast<double>(outer[d].first), static_cast<double>(outer[d].second), bins[d] + 1},
                           {{"dtype", p.values.dtype}}))
               .get<Tensor>());
  });
  return out;
}

/// Counts the points, or sums their weights. The last bin includes its upper edge. With `density`, the result is
/// divided by the total and by each bin's volume.
Tensor counted(const EvalCall& c, const Points& p, const std::vector<Tensor>& edges) {
  if (edges.size() != static_cast<std::size_t>(p.dims))
    fail("torch.histogramdd: Expected as many sequences of edges as the input has columns");
  Sizes bins;
  for (const Tensor& e : edges) {
    if (e.sizes.size() != 1 || e.numel() < 1) fail("torch.histogramdd: edges must be one-dimensional and not empty");
    if (e.dtype != p.values.dtype) fail("torch.histogramdd: edges and input must have the same dtype");
    bins.push_back(e.numel() - 1);
  }
  Tensor out = zeros(p.values.dtype, bins);
  Tensor weight = c.has("weight") ? load(c.tensor("weight"), p.values.dtype) : Tensor();
  if (c.has("weight") && weight.numel() != p.count)
    fail("torch.histogramdd: if weight tensor is provided it should have the same shape as the input");
  dispatch_floating(p.values.dtype, "histogramdd", [&]<class T>() {
    for (std::int64_t i : steps(p.count, 4096)) {
      std::int64_t at = 0;
      bool inside = true;
      for (std::size_t d = 0; d < edges.size() && inside; ++d) {
        const T *first = edges[d].as<T>(), *last = first + edges[d].numel();
        T v = p.at<T>(i, static_cast<std::int64_t>(d));
        inside = bins[d] > 0 && v >= *first && v <= last[-1];
        std::int64_t bin = std::upper_bound(first, last, v) - first - 1;
        at = at * bins[d] + std::min(bin, bins[d] - 1);
      }
      if (inside) out.as<T>()[at] += weight.storage ? weight.as<T>()[i] : T(1);
    }
    if (!c.boolean("density")) return;
    T total = 0;
    for (std::int64_t i : steps(out.numel())) total += out.as<T>()[i];
    for (std::int64_t i : steps(out.numel())) {
      T& value = out.as<T>()[i];
      value /= total;
      std::int64_t rest = i;
      for (std::size_t d = edges.size(); d-- > 0; rest /= bins[d]) {
        const T* e = edges[d].as<T>() + rest % bins[d];
        value /= e[1] - e[0];
      }
    }
  });
  return out;
}

void check_edges(const TensorMeta& edges) {
  if (edges.dim() != 1 || edges.sizes[0].is(0)) fail("torch.histogramdd: edges must be one-dimensional and not empty");
}

void check_counts(const FakeCall& c) {
  for (std::int64_t bins : c.integers("bins"))
    if (bins <= 0) fail("torch.histogramdd(): bins must be > 0, but got " + std::to_string(bins));
}

Meta fake_histogram_bins(FakeCall& c) {
  const TensorMeta& bins = c.tensor("bins");
  check_edges(bins);
  return MetaTuple{{new_like(c.tensor("self"), {bins.numel() - 1}), new_like(bins, bins.sizes)}};
}
Value eval_histogram_bins(EvalCall& c) {
  Tensor edges = load(c.tensor("bins"), c.tensor("bins").dtype);
  return ValueList{counted(c, Points(c.tensor("self"), true), {edges}), unwrap(edges.clone())};
}

Meta fake_histogram_count(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  std::int64_t bins = c.integer("bins");
  if (bins <= 0) fail("torch.histogram(): bins must be > 0, but got " + std::to_string(bins));
  return MetaTuple{{new_like(self, {bins}), new_like(self, {SymExpr(bins) + 1})}};
}
Value eval_histogram_count(EvalCall& c) {
  Points p(c.tensor("self"), true);
  std::vector<Tensor> edges = even_edges(c, p, {c.integer("bins")});
  return ValueList{counted(c, p, edges), edges[0]};
}

Meta fake_bin_edges(FakeCall& c) {
  MetaTuple out;
  check_counts(c);
  for (std::int64_t bins : c.integers("bins")) out.items.push_back(new_like(c.tensor("self"), {SymExpr(bins) + 1}));
  return out;
}
Value eval_bin_edges(EvalCall& c) {
  ValueList out;
  for (Tensor& e : even_edges(c, Points(c.tensor("self"), false), c.integers("bins"))) out.push_back(std::move(e));
  return out;
}

Meta fake_from_counts(FakeCall& c) {
  SymList sizes;
  check_counts(c);
  for (std::int64_t bins : c.integers("bins")) sizes.push_back(bins);
  return new_like(c.tensor("self"), sizes);
}
Value eval_from_counts(EvalCall& c) {
  Points p(c.tensor("self"), false);
  return counted(c, p, even_edges(c, p, c.integers("bins")));
}

Meta fake_from_edges(FakeCall& c) {
  SymList sizes;
  for (const TensorMeta* e : c.tensors("bins")) {
    check_edges(*e);
    sizes.push_back(e->numel() - 1);
  }
  return new_like(c.tensor("self"), sizes);
}
Value eval_from_edges(EvalCall& c) {
  std::vector<Tensor> edges;
  for (const Tensor* e : c.tensors("bins")) edges.push_back(load(*e, e->dtype));
  return counted(c, Points(c.tensor("self"), false), edges);
}

Arg decompose_histogramdd(DecomposeCall& c) {
  Builder& b = c.build;
  Kwargs weights = {{"weight", c.arg("weight")}, {"density", c.boolean("density")}}, all = weights;
  all.emplace_back("range", c.arg("range"));
  Arg bins = c.arg("bins");
  if (c.schema.name.ends_with(".TensorList_bins"))
    return Arg::tuple({b.call("aten._histogramdd_from_bin_tensors.default", {c.arg("self"), bins}, weights), bins});
  if (c.schema.name.ends_with(".int_bins")) {
    if (c.tensor("self").dim() < 2) fail("torch.histogramdd: input tensor should have at least 2 dimensions");
    SymExpr dims = c.tensor("self").sizes.back();
    if (!dims.is_int()) fail_unsupported("histogramdd of a symbolic number of dimensions");
    bins = Arg::list(std::vector<Arg>(static_cast<std::size_t>(dims.as_int()), bins));
  }
  const std::vector<Node*> edges =
      results_of(b, b.call("aten._histogramdd_bin_edges.default", {c.arg("self"), bins}, all));
  Node* counts = b.call("aten._histogramdd_from_bin_cts.default", {c.arg("self"), bins}, all);
  return Arg::tuple({counts, Arg::list(std::vector<Arg>(edges.begin(), edges.end()))});
}

}  // namespace

void register_histogram(OpTable& t) {
  t.default_family = Family::Reduction;
  // These have gradients, for which PyTorch has no formulas.
  t.add("aten.histogram.bins_tensor", fake_histogram_bins, eval_histogram_bins);
  t.add("aten.histogram.bin_ct", fake_histogram_count, eval_histogram_count);
  t.add("aten._histogramdd_bin_edges.default", fake_bin_edges, eval_bin_edges);
  t.add("aten._histogramdd_from_bin_cts.default", fake_from_counts, eval_from_counts);
  t.add("aten._histogramdd_from_bin_tensors.default", fake_from_edges, eval_from_edges);
  for (const char* name : {"aten.histogramdd.default", "aten.histogramdd.TensorList_bins", "aten.histogramdd.int_bins"})
    t.add(name, {.decompose = decompose_histogramdd});
}

}  // namespace partita
