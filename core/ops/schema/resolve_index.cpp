// Python's x[...] on tensors, decomposed as in torch/csrc/autograd/python_variable_indexing.cpp.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/ops/schema/resolve_parts.h"

namespace partita {

bool is_ellipsis(const Arg& arg) {
  const auto* name = arg.get<ArgName>();
  return name && (name->text == "Ellipsis" || name->text == "...");
}

namespace {

constexpr std::int64_t end_of_dim = std::numeric_limits<std::int64_t>::max();

/// The view that ints, slices, None and ... select, and the index tensors that remain for aten.index.
struct Sliced {
  Node* view;
  /// By dimension of the view, None for one that is not indexed; empty: there are no index tensors.
  std::vector<Arg> indices;
};

class Slicing {
 public:
  Slicing(Builder& build, Node* x) : b_(build), view_(x), given_dims_(Builder::tensor(x).dim()) {}

  Sliced apply(const std::vector<Arg>& items) {
    std::size_t consumed = 0;
    for (const Arg& item : items) consumed += dims_taken(item);
    if (consumed > given_dims_) fail(fmt::format("too many indices for tensor of dimension {}", given_dims_));
    for (const Arg& item : items) {
      if (is_ellipsis(item))
        dim_ += given_dims_ - consumed;
      else
        one(item);
    }
    return {view_, std::move(indices_)};
  }

 private:
  static std::size_t dims_taken(const Arg& item) {
    if (item.is_none() || is_ellipsis(item) || item.get<bool>()) return 0;
    if (!is_tensor(item)) return 1;
    const TensorMeta& t = Builder::tensor(item);
    return t.dtype == DType::Bool || t.dtype == DType::UInt8 ? t.dim() : 1;
  }

  std::int64_t dim() const { return static_cast<std::int64_t>(dim_); }

  void one(const Arg& item) {
    if (item.is_none()) {
      view_ = b_.call("aten.unsqueeze.default", {view_, dim()});
      ++dim_;
    } else if (const auto* slice = item.get<ArgSlice>()) {
      take_slice(*slice);
      ++dim_;
    } else if (is_int_like(item)) {
      view_ = b_.call("aten.select.int", {view_, dim(), item});
    } else if (is_tensor(item)) {
      take_tensor(item.node());
    } else if (const auto* flag = item.get<bool>()) {
      view_ = b_.call("aten.unsqueeze.default", {view_, dim()});
      record(constant_tensor(b_, unwrap(Tensor::zeros(DType::Int64, {*flag ? 1 : 0}))));
      ++dim_;
    } else {
      fail_unsupported("an index that is not an int, slice, tensor, None or ...");
    }
  }

  void take_slice(const ArgSlice& slice) {
    Arg start = slice.parts[0].is_none() ? Arg(0) : slice.parts[0];
    Arg stop = slice.parts[1].is_none() ? Arg(end_of_dim) : slice.parts[1];
    Arg step = slice.parts[2].is_none() ? Arg(1) : slice.parts[2];
    if (start == Arg(0) && step == Arg(1)) {
      SymExpr size = Builder::tensor(view_).sizes.at(dim_);
      const auto* end = stop.get<std::int64_t>();
      if (end && (*end == end_of_dim || size.is(*end))) return;
    }
    view_ = b_.call("aten.slice.Tensor", {view_, dim(), start, stop, step});
  }

  void take_tensor(Node* index) {
    const TensorMeta& t = Builder::tensor(index);
    bool mask = t.dtype == DType::Bool || t.dtype == DType::UInt8;
    if (mask && t.dim() == 0) view_ = b_.call("aten.unsqueeze.default", {view_, dim()});
    record(index);
    dim_ += mask ? std::max<std::size_t>(t.dim(), 1) : 1;
  }

  /// Appends an item to the list for aten.index. A mask is one item, though it covers several dimensions.
  void record(Node* index) {
    std::size_t items = 0;
    for (const Arg& a : indices_) items += a.node() ? std::max<std::size_t>(dims_taken(a), 1) : 1;
    while (items++ < dim_) indices_.emplace_back();
    indices_.emplace_back(index);
  }

  Builder& b_;
  Node* view_;
  std::size_t given_dims_;
  std::size_t dim_ = 0;  ///< the next dimension of the view to be indexed
  std::vector<Arg> indices_;
};

/// The items of an index. A list of ints becomes an index tensor, one of bools a mask.
std::vector<Arg> items_of(Builder& b, const Arg& index) {
  std::vector<Arg> items;
  const auto* tuple = index.get<ArgList>();
  if (tuple && tuple->is_tuple)
    items = tuple->items;
  else
    items = {index};
  for (Arg& item : items) {
    const auto* list = item.get<ArgList>();
    if (!list) continue;
    const auto is_flag = [](const Arg& i) { return i.get<bool>() != nullptr; };
    const bool mask = !list->items.empty() && std::ranges::all_of(list->items, is_flag);
    Tensor t = unwrap(Tensor::empty(mask ? DType::Bool : DType::Int64, {std::ssize(list->items)}));
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const auto* value = list->items[i].get<std::int64_t>();
      const auto* flag = list->items[i].get<bool>();
      if (!value && !flag) fail_unsupported("a list index with items that are neither ints nor bools");
      if (mask)
        t.as<StoredBool>()[i] = *flag;
      else
        t.as<std::int64_t>()[i] = value ? *value : *flag;
    }
    item = constant_tensor(b, std::move(t));
  }
  return items;
}

}  // namespace

Arg get_item(Builder& b, Node* x, const Arg& index) {
  Sliced sliced = Slicing(b, x).apply(items_of(b, index));
  if (!sliced.indices.empty()) return b.call("aten.index.Tensor", {sliced.view, Arg::list(std::move(sliced.indices))});
  if (sliced.view == x) return b.call("aten.alias.default", {x});
  return sliced.view;
}

Arg set_item(Builder& b, Node* x, const Arg& index, const Arg& value) {
  Node* source = is_tensor(value) ? value.node() : number_as_tensor(b, value, Builder::tensor(x).dtype);
  Sliced sliced = Slicing(b, x).apply(items_of(b, index));
  if (!sliced.indices.empty()) {
    b.call("aten.index_put_.default", {sliced.view, Arg::list(std::move(sliced.indices)), source});
    return x;
  }
  const TensorMeta &to = b.tensor(sliced.view), from = b.tensor(source);
  if (from.dim() == 0 && to.dim() != 0) {
    b.call("aten.fill_.Tensor", {sliced.view, source});
    return x;
  }
  // Leading dimensions of size 1 that the target does not have are dropped.
  SymList sizes = from.sizes;
  while (sizes.size() > to.dim() && sizes[0].is(1)) sizes.erase(sizes.begin());
  if (sizes.size() != from.sizes.size()) source = b.call("aten.view.default", {source, b.sizes(sizes)});
  b.call("aten.copy_.default", {sliced.view, source});
  return x;
}

}  // namespace partita
