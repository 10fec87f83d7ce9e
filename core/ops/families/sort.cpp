// Order along a dimension: sort, topk, kthvalue, median; and counting: histc, searchsorted, bucketize.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/families.h"
#include "core/ops/gradients.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/layout.h"

namespace partita {

namespace {

using namespace kernels;

TensorMeta as_indices(TensorMeta meta) {
  meta.dtype = DType::Int64;
  return meta;
}

Meta fake_sort(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  dim_index(c.integer("dim"), static_cast<std::int64_t>(self.dim()));
  TensorMeta values = like_preserving(self, c.shapes);
  return MetaTuple{{values, as_indices(values)}};
}

Meta fake_topk(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  auto dim = static_cast<std::size_t>(dim_index(c.integer("dim"), static_cast<std::int64_t>(self.dim())));
  SymExpr k = c.sym("k");
  SymList sizes = self.sizes;
  SymExpr size = sizes.empty() ? SymExpr(1) : sizes[dim];
  if (!c.test(sym_le(k, size), "topk") || !c.test(sym_le(0, k), "topk")) fail("selected index k out of range");
  if (!sizes.empty()) sizes[dim] = k;
  TensorMeta values = new_like(self, sizes);
  return MetaTuple{{values, as_indices(values)}};
}

/// One element of each line: kthvalue, median, mode.
Meta fake_selection(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  auto dim = static_cast<std::size_t>(dim_index(c.integer("dim"), static_cast<std::int64_t>(self.dim())));
  SymList sizes = self.sizes;
  if (!sizes.empty()) {
    if (c.boolean("keepdim")) sizes[dim] = 1;
    else sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  }
  TensorMeta values = new_like(self, sizes);
  return MetaTuple{{values, as_indices(values)}};
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  else return false;
}

/// PyTorch's order: NaN is greater than everything.
template <class T>
bool less(T a, T b) {
  return is_nan(b) ? !is_nan(a) : a < b;
}

/// Positions of a line in order; ties by position.
template <class T>
void order_line(const T* line, std::int64_t stride, std::vector<std::int64_t>& order, bool descending) {
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    T x = line[a * stride], y = line[b * stride];
    return descending ? less(y, x) : less(x, y);
  });
}

/// Takes `count` entries of every sorted line; pick(order) says which, as positions in the line.
template <class Pick>
Value select_sorted(EvalCall& c, Meta (*fake)(FakeCall&), bool descending, std::int64_t count, Pick pick) {
  std::vector<Tensor> outputs = allocate_all(c, fake);
  const Tensor& self = c.tensor("self");
  DType dtype = arithmetic_dtype(self.dtype);
  Tensor x = load(self, dtype);
  std::int64_t dim = dim_index(c.integer("dim"), x.dim());
  DimSplit split = split_at(x.sizes, dim);
  Sizes sizes = x.sizes;
  if (!sizes.empty()) sizes[static_cast<std::size_t>(dim)] = count;
  Tensor values = empty(dtype, sizes), indices = empty(DType::Int64, sizes);
  dispatch_ordered(dtype, "sort", [&]<class T>() {
    std::vector<std::int64_t> order(static_cast<std::size_t>(split.length));
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t i = 0; i < split.inner; ++i) {
        const T* line = x.as<T>() + o * split.length * split.inner + i;
        order_line(line, split.inner, order, descending);
        for (std::int64_t k = 0; k < count; ++k) {
          std::int64_t from = pick(line, order, k), to = (o * count + k) * split.inner + i;
          values.as<T>()[to] = line[from * split.inner];
          indices.as<std::int64_t>()[to] = from;
        }
      }
  });
  for (std::size_t i = 0; i < 2; ++i) {
    const Tensor& from = i == 0 ? values : indices;
    outputs[i].copy_from(from.view_as(outputs[i].sizes, row_major_strides(outputs[i].sizes), 0));
  }
  return ValueList{outputs[0], outputs[1]};
}

std::int64_t line_length(const EvalCall& c) {
  const Tensor& self = c.tensor("self");
  return self.sizes.empty() ? 1 : self.sizes[static_cast<std::size_t>(dim_index(c.integer("dim"), self.dim()))];
}

constexpr auto in_order = [](const auto*, const std::vector<std::int64_t>& order, std::int64_t k) {
  return order[static_cast<std::size_t>(k)];
};

Value eval_sort(EvalCall& c) { return select_sorted(c, fake_sort, c.boolean("descending"), line_length(c), in_order); }
Value eval_topk(EvalCall& c) { return select_sorted(c, fake_topk, c.boolean("largest"), c.integer("k"), in_order); }

Value eval_kthvalue(EvalCall& c) {
  std::int64_t k = c.integer("k");
  if (k < 1 || k > line_length(c)) fail("kthvalue(): selected number k out of range for dimension");
  return select_sorted(c, fake_selection, false, 1,
                       [k](const auto*, const std::vector<std::int64_t>& order, std::int64_t) { return order[static_cast<std::size_t>(k - 1)]; });
}

/// The lower of the middle elements; a NaN wins unless `ignore_nan`, which does not count them.
template <bool ignore_nan>
Value eval_median(EvalCall& c) {
  if (line_length(c) == 0) fail("median(): Expected reduction dim to have non-zero size.");
  std::int64_t inner = split_at(c.tensor("self").sizes, dim_index(c.integer("dim"), c.tensor("self").dim())).inner;
  return select_sorted(c, fake_selection, false, 1, [inner](const auto* line, const std::vector<std::int64_t>& order, std::int64_t) {
    std::size_t numbers = order.size();
    while (numbers > 0 && is_nan(line[order[numbers - 1] * inner])) --numbers;
    if (numbers < order.size() && (!ignore_nan || numbers == 0)) return order[numbers];
    return order[(numbers - 1) / 2];
  });
}

Meta fake_median_of_all(FakeCall& c) { return new_like(c.tensor("self"), {}); }

template <bool ignore_nan>
Value eval_median_of_all(EvalCall& c) {
  Tensor out = allocate(c, fake_median_of_all);
  DType dtype = arithmetic_dtype(out.dtype);
  Tensor x = load(c.tensor("self"), dtype), y = empty(dtype, {});
  dispatch_ordered(dtype, "median", [&]<class T>() {
    std::vector<T> values(x.as<T>(), x.as<T>() + x.numel());
    std::sort(values.begin(), values.end(), less<T>);
    std::size_t numbers = values.size();
    while (numbers > 0 && is_nan(values[numbers - 1])) --numbers;
    bool nan = numbers < values.size() && (!ignore_nan || numbers == 0);
    if constexpr (std::is_floating_point_v<T>)
      *y.as<T>() = values.empty() || nan ? std::nan("") : values[(numbers - 1) / 2];
    else
      *y.as<T>() = values.empty() ? std::numeric_limits<T>::min() : values[(numbers - 1) / 2];
  });
  out.copy_from(y);
  return out;
}

/// The most frequent value, the smallest of equals; the index is its last position in the line.
Value eval_mode(EvalCall& c) {
  std::int64_t inner = split_at(c.tensor("self").sizes, dim_index(c.integer("dim"), c.tensor("self").dim())).inner;
  return select_sorted(c, fake_selection, false, 1, [inner](const auto* line, const std::vector<std::int64_t>& order, std::int64_t) {
    std::size_t best = 0, longest = 0;
    for (std::size_t i = 0; i < order.size();) {
      std::size_t j = i;
      while (j < order.size() && line[order[j] * inner] == line[order[i] * inner]) ++j;
      j = std::max(j, i + 1);
      if (j - i > longest) {
        longest = j - i;
        best = j - 1;
      }
      i = j;
    }
    return order[best];
  });
}

/// value_selecting_reduction_backward: the gradient goes where the value came from.
template <bool keeps_dim>
std::vector<Node*> grad_selection(GradCall& c) {
  GradientSlots slots(c);
  Node* grad = c.grads[0];
  if (!grad) return slots;
  Builder& b = c.build;
  Node* indices = c.results[1];
  bool keepdim = true;
  if constexpr (!keeps_dim) keepdim = c.boolean("keepdim");
  if (!keepdim && c.tensor("self").dim() > 0) {
    grad = b.call("aten.unsqueeze.default", {grad, c.arg("dim")});
    indices = b.call("aten.unsqueeze.default", {indices, c.arg("dim")});
  }
  Node* zeros = b.call("aten.new_zeros.default", {grad, b.sizes(c.tensor("self").sizes)});
  slots["self"] = b.call("aten.scatter.src", {zeros, c.arg("dim"), indices, grad});
  return slots;
}

/// evenly_distribute_backward: all elements equal to the result share the gradient.
std::vector<Node*> grad_median_of_all(GradCall& c) {
  GradientSlots slots(c);
  Builder& b = c.build;
  Node *self = tensor_node(c, "self"), *result = c.results[0];
  Node* nan = b.call("aten.logical_and.default", {b.call("aten.isnan.default", {self}), b.call("aten.isnan.default", {result})});
  Node* mask = b.call("aten.logical_or.default", {b.call("aten.eq.Tensor", {self, result}), nan});
  Node* share = b.call("aten.div.Tensor", {c.grads[0], b.call("aten.sum.default", {mask})});
  slots["self"] = b.call("aten.mul.Tensor", {mask, share});
  return slots;
}

Arg decompose_argsort(DecomposeCall& c) {
  Builder& b = c.build;
  Node* sorted = c.schema.index_of("stable") >= 0
                     ? b.call("aten.sort.stable", {c.arg("self")}, {{"stable", c.arg("stable")}, {"dim", c.arg("dim")}, {"descending", c.arg("descending")}})
                     : b.call("aten.sort.default", {c.arg("self"), c.arg("dim"), c.arg("descending")});
  return b.getitem(sorted, 1);
}

Arg decompose_msort(DecomposeCall& c) {
  return c.build.getitem(c.build.call("aten.sort.default", {c.arg("self"), 0}), 0);
}

Meta fake_histc(FakeCall& c) { return new_like(c.tensor("self"), {c.sym("bins")}); }

Value eval_histc(EvalCall& c) {
  Tensor out = allocate(c, fake_histc), counts = zeros(DType::Float64, out.sizes);
  Tensor x = load(c.tensor("self"), DType::Float64);
  std::int64_t bins = c.integer("bins");
  double low = as_double(c.number("min")), high = as_double(c.number("max"));
  if (low == high && x.numel() > 0) {
    auto [least, most] = std::minmax_element(x.as<double>(), x.as<double>() + x.numel());
    low = *least;
    high = *most;
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!std::isfinite(low) || !std::isfinite(high)) fail("range of [" + std::to_string(low) + ", " + std::to_string(high) + "] is not finite");
  if (!(low < high)) fail("max must be larger than min");
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    double v = x.as<double>()[i];
    if (!(v >= low && v <= high)) continue;
    auto bin = static_cast<std::int64_t>((v - low) / (high - low) * static_cast<double>(bins));
    counts.as<double>()[std::min(bin, bins - 1)] += 1;
  }
  out.copy_from(counts);
  return out;
}

Meta fake_searchsorted(FakeCall& c) {
  const TensorMeta& sorted = c.tensor(c.schema.index_of("boundaries") >= 0 ? "boundaries" : "sorted_sequence");
  TensorMeta meta = new_like(sorted, c.is_tensor("self") ? c.tensor("self").sizes : SymList{});
  meta.dtype = c.boolean("out_int32") ? DType::Int32 : DType::Int64;
  return meta;
}

Value eval_searchsorted(EvalCall& c) {
  Tensor out = allocate(c, fake_searchsorted);
  bool bucketize = c.schema.index_of("boundaries") >= 0;
  const Tensor& sequence = c.tensor(bucketize ? "boundaries" : "sorted_sequence");
  Tensor values = c.is_tensor("self") ? c.tensor("self") : unwrap(Tensor::scalar(DType::Float64, as_double(c.number("self"))));
  bool integers = arithmetic_dtype(sequence.dtype) == DType::Int64 && arithmetic_dtype(values.dtype) == DType::Int64;
  DType dtype = integers ? DType::Int64 : DType::Float64;
  bool right = c.boolean("right");
  if (!bucketize && c.has("side")) right = c.string("side") == "right";
  Tensor edges = load(sequence, dtype), x = load(values, dtype), at = empty(DType::Int64, x.sizes);
  Tensor sorter = !bucketize && c.has("sorter") ? load(c.tensor("sorter"), DType::Int64) : Tensor{};
  std::int64_t length = edges.sizes.empty() ? 1 : edges.sizes.back(), width = x.sizes.empty() ? 1 : x.sizes.back();
  dispatch_ordered(dtype, "searchsorted", [&]<class T>() {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      std::int64_t row = edges.dim() > 1 ? i / std::max<std::int64_t>(width, 1) * length : 0;
      auto edge = [&](std::int64_t k) {
        if (sorter.storage) k = sorter.as<std::int64_t>()[row + k];
        if (k < 0 || k >= length) fail("searchsorted(): sorter index out of range");
        return edges.as<T>()[row + k];
      };
      std::int64_t low = 0, high = length;
      T v = x.as<T>()[i];
      while (low < high) {
        std::int64_t middle = low + (high - low) / 2;
        bool before = right ? !less(v, edge(middle)) : less(edge(middle), v);
        if (before) low = middle + 1;
        else high = middle;
      }
      at.as<std::int64_t>()[i] = low;
    }
  });
  out.copy_from(at);
  return out;
}

}  // namespace

void register_sort(OpTable& t) {
  t.add("aten.sort.default", {.fake = fake_sort, .eval = eval_sort, .gradient = grad_selection<true>, .expensive = true});
  t.add("aten.sort.stable", {.fake = fake_sort, .eval = eval_sort, .gradient = grad_selection<true>, .expensive = true});
  t.add("aten.topk.default", {.fake = fake_topk, .eval = eval_topk, .gradient = grad_selection<true>, .expensive = true});
  t.add("aten.kthvalue.default", {.fake = fake_selection, .eval = eval_kthvalue, .gradient = grad_selection<false>});
  t.add("aten.median.dim", {.fake = fake_selection, .eval = eval_median<false>, .gradient = grad_selection<false>});
  t.add("aten.nanmedian.dim", {.fake = fake_selection, .eval = eval_median<true>, .gradient = grad_selection<false>});
  t.add("aten.mode.default", {.fake = fake_selection, .eval = eval_mode, .gradient = grad_selection<false>});
  t.add("aten.median.default", {.fake = fake_median_of_all, .eval = eval_median_of_all<false>, .gradient = grad_median_of_all});
  t.add("aten.nanmedian.default", {.fake = fake_median_of_all, .eval = eval_median_of_all<true>, .gradient = grad_median_of_all});
  t.add("aten.argsort.default", {.decompose = decompose_argsort});
  t.add("aten.argsort.stable", {.decompose = decompose_argsort});
  t.add("aten.msort.default", {.decompose = decompose_msort});
  t.add("aten.histc.default", {.fake = fake_histc, .eval = eval_histc, .not_differentiable = true});
  for (const char* name : {"aten.searchsorted.Tensor", "aten.searchsorted.Scalar", "aten.bucketize.Tensor", "aten.bucketize.Scalar"})
    t.add(name, {.fake = fake_searchsorted, .eval = eval_searchsorted, .not_differentiable = true});
}

}  // namespace partita
