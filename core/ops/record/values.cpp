#include "core/ops/record/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita {
namespace {

Sizes numbers(const SymList& list) {
  auto values = concrete(list);
  CHECK(values, "a value's meta has no symbols");
  return *std::move(values);
}

Args as_args(Graph& graph, const std::vector<Value>& values) {
  Args args;
  for (const Value& v : values) args.push_back(as_arg(v, graph));
  return args;
}

}  // namespace

Arg as_arg(const Value& value, Graph& graph, std::unordered_map<const Node*, Value>* held) {
  return std::visit(
      [&]<class T>(const T& v) -> Arg {
        if constexpr (std::is_same_v<T, Tensor>) {
          Node* n = graph.placeholder("value", meta_of(v));
          if (held) held->emplace(n, v);
          return n;
        } else if constexpr (std::is_same_v<T, ValueList>) {
          std::vector<Arg> items;
          for (const Value& item : v) items.push_back(as_arg(item, graph, held));
          return Arg::list(std::move(items));
        } else {
          return v;
        }
      },
      value.v);
}

TensorMeta meta_of(const Tensor& t) {
  TensorMeta m;
  m.dtype = t.dtype;
  m.sizes.assign(t.sizes.begin(), t.sizes.end());
  m.strides.assign(t.strides.begin(), t.strides.end());
  m.offset = t.offset;
  m.device = t.device();
  m.requires_grad = t.requires_grad;
  return m;
}

Tensor empty_of(const TensorMeta& meta) {
  return unwrap(Tensor::empty_strided(meta.dtype, numbers(meta.sizes), numbers(meta.strides)));
}

Tensor view_of(const Tensor& base, const TensorMeta& meta) {
  CHECK(meta.offset.is_int(), "a value's meta has no symbols");
  Tensor t = base.view_as(numbers(meta.sizes), numbers(meta.strides), meta.offset.as_int());
  t.dtype = meta.dtype;
  const auto size = static_cast<std::int64_t>(itemsize(t.dtype)),
             room = base.storage ? static_cast<std::int64_t>(base.storage->bytes()) : 0;
  const std::int64_t reached = unwrap(reach(t.sizes, t.strides));
  if (t.offset < 0) fail(fmt::format("Tensor: invalid storage offset {}", t.offset));
  if (reached > 0 && (reached > room / size || t.offset > room / size - reached))
    fail(fmt::format(
        "setStorage: sizes [{}], strides [{}], storage offset {}, and itemsize {} requiring a storage size of {} "
        "are out of bounds for storage of size {}",
        fmt::join(t.sizes, ", "), fmt::join(t.strides, ", "), t.offset, size,
        ((SymExpr(t.offset) + reached) * size).str(), room));
  return t;
}

Value alias_by(const Meta& meta, const Tensor& base) {
  if (const MetaTuple* tuple = meta.tuple()) {
    ValueList items;
    for (const Meta& item : tuple->items) items.push_back(alias_by(item, base));
    return items;
  }
  return view_of(base, *meta.tensor());
}

CallOfValues::CallOfValues(const EvalCall& values)
    : call(values.schema, as_args(graph_, values.args), *graph_.shapes) {}

Tensor empty_of(const EvalCall& call, Meta (*fake)(FakeCall&)) {
  CallOfValues metas(call);
  return empty_of(*fake(metas.call).tensor());
}

}  // namespace partita
