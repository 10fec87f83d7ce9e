// Operators that depend on the order of elements: sort, topk, kthvalue, median, mode; and those that count: histc,
// searchsorted, bucketize.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/families/reduce_kernels.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

TensorMeta as_indices(TensorMeta meta) {
  meta.dtype = DType::Int64;
  return meta;
}

Meta fake_sort(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  TensorMeta values = like_preserving(self, c.shapes);
  return MetaTuple{{values, as_indices(values)}};
}

Meta fake_topk(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  auto dim = wrap_dim(c.integer("dim"), self.dim());
  SymExpr k = c.sym("k");
  SymList sizes = self.sizes;
  SymExpr size = sizes.empty() ? SymExpr(1) : sizes[dim];
  if (!checked(c, sym_le(k, size), "topk") || !checked(c, sym_le(0, k), "topk")) fail("selected index k out of range");
  if (!sizes.empty()) sizes[dim] = k;
  TensorMeta values = new_like(self, sizes);
  return MetaTuple{{values, as_indices(values)}};
}

/// kthvalue, median and mode select one element of each line.
Meta fake_selection(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  auto dim = wrap_dim(c.integer("dim"), self.dim());
  SymList sizes = self.sizes;
  if (!sizes.empty()) {
    if (sizes[dim].is(0))
      fail(c.schema.base.substr(5) + "(): Expected reduction dim " + std::to_string(dim) + " to have non-zero size.");
    if (c.boolean("keepdim"))
      sizes[dim] = 1;
    else
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  }
  TensorMeta values = new_like(self, sizes);
  return MetaTuple{{values, as_indices(values)}};
}

/// PyTorch's order, in which NaN is greater than every number.
template <class T>
bool less(T a, T b) {
  return is_nan(b) ? !is_nan(a) : a < b;
}

using Places = std::vector<std::int64_t>;

/// A comparison of two positions of a line by their elements.
template <class T>
auto before(const T* line, std::int64_t stride, bool descending) {
  return [=](std::int64_t a, std::int64_t b) {
    StopsLoops::check();
    T x = line[a * stride], y = line[b * stride];
    return descending ? less(y, x) : less(x, y);
  };
}

/// Sorts the positions of a line by their elements; equal elements keep their order.
constexpr auto sorted_places = [](const auto* line, std::int64_t stride, Places& order) {
  std::stable_sort(order.begin(), order.end(), before(line, stride, false));
};

/// Selects `count` elements of every line. arrange(line, stride, order) is given all positions in ascending order and
/// moves the selected ones to the front.
template <class Arrange>
Value select(EvalCall& c, std::int64_t count, Arrange arrange) {
  const Tensor& self = c.tensor("self");
  DType dtype = evaluation_dtype(self.dtype);
  Tensor x = load(self, dtype);
  std::int64_t dim = wrap_dim(c.integer("dim"), x.dim());
  if (x.dim() == 0) count = 1;  // a 0-dim tensor gives its element even for topk with k = 0
  DimSplit split = split_at(x.sizes, dim);
  Sizes sizes = x.sizes;
  if (!sizes.empty()) sizes[static_cast<std::size_t>(dim)] = count;
  Tensor values = empty(dtype, sizes), indices = empty(DType::Int64, sizes);
  dispatch_ordered(dtype, "sort", [&]<class T>() {
    std::vector<std::int64_t> order(static_cast<std::size_t>(split.length));
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t i : steps(split.inner, split.length)) {
        const T* line = x.as<T>() + o * split.length * split.inner + i;
        std::iota(order.begin(), order.end(), 0);
        if (count > 0) arrange(line, split.inner, order);
        for (std::int64_t k = 0; k < count; ++k) {
          std::int64_t from = order[static_cast<std::size_t>(k)], to = (o * count + k) * split.inner + i;
          values.as<T>()[to] = line[from * split.inner];
          indices.as<std::int64_t>()[to] = from;
        }
      }
  });
  return ValueList{values, indices};
}

std::int64_t line_length(const EvalCall& c) {
  const Tensor& self = c.tensor("self");
  return self.sizes.empty() ? 1 : self.sizes[wrap_dim(c.integer("dim"), self.dim())];
}

// PyTorch does not promise which of several equal elements sort, topk, kthvalue and mode return, but users see it.
// These are therefore the algorithms of PyTorch's CPU kernels, on the same sequence of positions.

Value eval_sort(EvalCall& c) {
  const bool stable = c.schema.index_of("stable") >= 0 && c.has("stable") && c.boolean("stable");
  return select(c, line_length(c),
                [stable, descending = c.boolean("descending")](const auto* line, std::int64_t stride, Places& order) {
                  const auto first = before(line, stride, descending);
                  if (stable)
                    std::stable_sort(order.begin(), order.end(), first);
                  else
                    std::sort(order.begin(), order.end(), first);
                });
}

Value eval_topk(EvalCall& c) {
  const std::int64_t k = c.integer("k");
  return select(c, k, [k, largest = c.boolean("largest")](const auto* line, std::int64_t stride, Places& order) {
    const auto first = before(line, stride, largest);
    if (k * 64 <= static_cast<std::int64_t>(order.size())) {
      std::partial_sort(order.begin(), order.begin() + k, order.end(), first);
    } else {
      std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), first);
      std::sort(order.begin(), order.begin() + (k - 1), first);
    }
  });
}

/// Hoare's quickselect with the median of three as pivot. Afterwards order[k] is the position of the k-th smallest
/// element.
template <class T>
void quick_select(const T* line, std::int64_t stride, Places& order, std::int64_t k) {
  auto at = [&](std::int64_t i) -> std::int64_t& { return order[static_cast<std::size_t>(i)]; };
  auto value = [&](std::int64_t i) { return line[at(i) * stride]; };
  auto swap_if_greater = [&](std::int64_t i, std::int64_t j) {
    if (less(value(j), value(i))) std::swap(at(i), at(j));
  };
  for (std::int64_t low = 0, high = static_cast<std::int64_t>(order.size()) - 1; low < high;) {
    if (high == low + 1) return swap_if_greater(low, high);
    std::swap(at(low + (high - low) / 2), at(low + 1));
    swap_if_greater(low + 1, high);
    swap_if_greater(low, high);
    swap_if_greater(low + 1, low);
    const T pivot = value(low);
    std::int64_t i = low + 1, j = high;
    while (true) {
      do ++i;
      while (less(value(i), pivot));
      do --j;
      while (less(pivot, value(j)));
      if (j < i) break;
      std::swap(at(i), at(j));
    }
    std::swap(at(low), at(j));
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
}

Value eval_kthvalue(EvalCall& c) {
  std::int64_t k = c.integer("k");
  if (k < 1 || k > line_length(c)) fail("kthvalue(): selected number k out of range for dimension");
  return select(c, 1, [k](const auto* line, std::int64_t stride, Places& order) {
    quick_select(line, stride, order, k - 1);
    order[0] = order[static_cast<std::size_t>(k - 1)];
  });
}

/// The lower of the two middle elements. The result is NaN if the line has one; with `ignore_nan` NaNs do not count.
template <bool ignore_nan>
Value eval_median(EvalCall& c) {
  if (line_length(c) == 0) fail("median(): Expected reduction dim to have non-zero size.");
  return select(c, 1, [](const auto* line, std::int64_t stride, Places& order) {
    sorted_places(line, stride, order);
    std::size_t numbers = order.size();
    while (numbers > 0 && is_nan(line[order[numbers - 1] * stride])) --numbers;
    const bool nan = numbers < order.size() && (!ignore_nan || numbers == 0);
    order[0] = order[nan ? numbers : (numbers - 1) / 2];
  });
}

Meta fake_median_of_all(FakeCall& c) {
  return new_like(c.tensor("self"), {});
}

template <bool ignore_nan>
Value eval_median_of_all(EvalCall& c) {
  const DType dtype = evaluation_dtype(c.tensor("self").dtype);
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
  return y;
}

/// The most frequent element; of several the smallest.
Value eval_mode(EvalCall& c) {
  return select(c, 1, [](const auto* line, std::int64_t stride, Places& order) {
    std::sort(order.begin(), order.end(), before(line, stride, false));
    std::size_t best = 0, longest = 0;
    for (std::size_t i = 0; i < order.size();) {
      std::size_t j = i + 1;
      while (j < order.size() && line[order[j] * stride] == line[order[i] * stride]) ++j;
      if (j - i > longest) {
        longest = j - i;
        best = j - 1;
      }
      i = j;
    }
    order[0] = order[best];
  });
}

Meta fake_histc(FakeCall& c) {
  if (!checked(c, sym_lt(0, c.sym("bins")), "histc")) fail("torch.histc: bins must be > 0");
  return new_like(c.tensor("self"), {c.sym("bins")});
}

/// Positions among the bins are computed in the tensor's dtype, and rounded for half types, since they decide the bin
/// of an element at an edge.
Value eval_histc(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  const std::int64_t bins = c.integer("bins");
  const DType dtype = is_floating(self.dtype) ? evaluation_dtype(self.dtype) : DType::Float64;
  Tensor x = load(self, dtype), counts = zeros(DType::Float64, {bins});
  double low = as_double(c.number("min")), high = as_double(c.number("max"));
  dispatch_floating(dtype, "histogram_cpu", [&]<class T>() {
    const T* values = x.as<T>();
    if (low == high && x.numel() > 0) {
      auto [least, most] = std::minmax_element(values, values + x.numel());
      low = static_cast<double>(*least);
      high = static_cast<double>(*most);
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
    if (!std::isfinite(low) || !std::isfinite(high))
      fail("range of [" + std::to_string(low) + ", " + std::to_string(high) + "] is not finite");
    if (!(low < high)) fail("max must be larger than min");
    auto step = [&](T v) { return rounded(self.dtype, v); };
    const T first = static_cast<T>(low), last = static_cast<T>(high), width = step(last - first);
    for (std::int64_t i : steps(x.numel())) {
      if (!(values[i] >= first && values[i] <= last)) continue;
      const T position = step(step(step(values[i] - first) * static_cast<T>(bins)) / width);
      counts.as<double>()[position < static_cast<T>(bins) ? static_cast<std::int64_t>(position) : bins - 1] += 1;
    }
  });
  return counts;
}

Meta fake_searchsorted(FakeCall& c) {
  const bool bucketize = c.schema.index_of("boundaries") >= 0;
  const TensorMeta& sorted = c.tensor(bucketize ? "boundaries" : "sorted_sequence");
  if (bucketize && sorted.dim() != 1)
    fail("boundaries tensor must be 1 dimension, but got dim(" + std::to_string(sorted.dim()) + ")");
  if (sorted.dim() == 0) fail("torch.searchsorted(): boundaries tensor should have positive dimension");
  bool fits = sorted.dim() == 1;
  if (!fits && c.is_tensor("self")) {
    const SymList& values = c.tensor("self").sizes;
    fits = values.size() == sorted.dim();
    for (std::size_t d = 0; fits && d + 1 < values.size(); ++d)
      fits = checked(c, sym_eq(values[d], sorted.sizes[d]), "searchsorted");
  }
  if (!fits)
    fail(
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
        "tensor and input value tensor must match");
  if (!bucketize && c.has("sorter")) {
    const TensorMeta& sorter = c.tensor("sorter");
    if (!checked_sizes(c, sorter.sizes, sorted.sizes, "searchsorted sorter"))
      fail("torch.searchsorted(): boundary and sorter must have the same size");
    if (sorter.dtype != DType::Int64) fail("torch.searchsorted(): sorter must be a tensor of long dtype");
  }
  TensorMeta meta = new_like(sorted, c.is_tensor("self") ? c.tensor("self").sizes : SymList{});
  meta.dtype = c.boolean("out_int32") ? DType::Int32 : DType::Int64;
  return meta;
}

Value eval_searchsorted(EvalCall& c) {
  bool bucketize = c.schema.index_of("boundaries") >= 0;
  const Tensor& sequence = c.tensor(bucketize ? "boundaries" : "sorted_sequence");
  Tensor values =
      c.is_tensor("self") ? c.tensor("self") : unwrap(Tensor::scalar(DType::Float64, as_double(c.number("self"))));
  bool integers = evaluation_dtype(sequence.dtype) == DType::Int64 && evaluation_dtype(values.dtype) == DType::Int64;
  DType dtype = integers ? DType::Int64 : DType::Float64;
  bool right = c.boolean("right");
  if (!bucketize && c.has("side")) right = c.string("side") == "right";
  Tensor edges = load(sequence, dtype), x = load(values, dtype), at = empty(DType::Int64, x.sizes);
  Tensor sorter = !bucketize && c.has("sorter") ? load(c.tensor("sorter"), DType::Int64) : Tensor{};
  std::int64_t length = edges.sizes.empty() ? 1 : edges.sizes.back(), width = x.sizes.empty() ? 1 : x.sizes.back();
  dispatch_ordered(dtype, "searchsorted", [&]<class T>() {
    for (std::int64_t i : steps(x.numel())) {
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
        bool before = right ? !(edge(middle) > v) : !(edge(middle) >= v);  // of NaN both are true, as in PyTorch
        if (before)
          low = middle + 1;
        else
          high = middle;
      }
      at.as<std::int64_t>()[i] = low;
    }
  });
  return at;
}

}  // namespace

void register_sort(OpTable& t) {
  t.default_family = Family::Reduction;
  constexpr std::string_view of_line = "value_selecting_reduction_backward(grad, dim, result1, self, True)",
                             of_element = "value_selecting_reduction_backward(grad, dim, result1, self, keepdim)";
  t.add("aten.sort.default", fake_sort, eval_sort, {{"self", of_line}}, {.cost = {.expensive = true}});
  t.add("aten.sort.stable", fake_sort, eval_sort, {{"self", of_line}}, {.cost = {.expensive = true}});
  t.add("aten.topk.default", fake_topk, eval_topk, {{"self", of_line}}, {.cost = {.expensive = true}});
  t.add("aten.kthvalue.default", fake_selection, eval_kthvalue, {{"self", of_element}});
  t.add("aten.median.dim", fake_selection, eval_median<false>, {{"self", of_element}});
  t.add("aten.nanmedian.dim", fake_selection, eval_median<true>, {{"self", of_element}});
  t.add("aten.mode.default", fake_selection, eval_mode, {{"self", of_element}});
  t.add("aten.median.default", fake_median_of_all, eval_median_of_all<false>,
        {{"self", "evenly_distribute_backward(grad, self, result)"}});
  t.add("aten.nanmedian.default", fake_median_of_all, eval_median_of_all<true>,
        {{"self", "evenly_distribute_backward(grad, self, result)"}});
  t.add("aten.argsort.default", {.program = "aten.sort.default(self, dim, descending)[1]"});
  t.add("aten.argsort.stable", {.program = "aten.sort.stable(self, stable=stable, dim=dim, descending=descending)[1]"});
  t.add("aten.msort.default", {.program = "aten.sort.default(self, 0)[0]"});
  t.add("aten.histc.default", fake_histc, eval_histc, {}, {.autograd = {.not_differentiable = true}});
  for (const char* name :
       {"aten.searchsorted.Tensor", "aten.searchsorted.Scalar", "aten.bucketize.Tensor", "aten.bucketize.Scalar"})
    t.add(name, fake_searchsorted, eval_searchsorted, {}, {.autograd = {.not_differentiable = true}});
}

}  // namespace partita
