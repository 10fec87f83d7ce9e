// Sizes, dtypes and values of inputs.
#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "core/interp/random_values.h"
#include "core/interp/symbols.h"
#include "core/minify/candidate.h"
#include "core/minify/variants.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"

namespace partita::minify {
namespace {

/// Dense strides with the dimensions in the order that the old strides had.
Sizes dense_strides(const Sizes& sizes, const Sizes& old) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return old[a] > old[b]; });
  Sizes strides(sizes.size(), 1);
  std::int64_t step = 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = step;
    step *= std::max<std::int64_t>(sizes[order[k]], 1);
  }
  return strides;
}

/// The first elements of each dimension, with dense strides. Integers that may be indices into the removed part are
/// brought back into range.
Result<Tensor> narrowed(const Tensor& t, const Sizes& sizes, std::int64_t old_size, std::int64_t new_size) {
  TRY(Tensor out, Tensor::empty_strided(t.dtype, sizes, dense_strides(sizes, t.strides)));
  out.copy_from(t.view_as(sizes, t.strides, t.offset));
  if (is_floating(t.dtype) || is_complex(t.dtype) || t.dtype == DType::Bool) return out;
  TRY(Tensor wide, out.to(DType::Int64));
  bool changed = false;
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    std::int64_t& x = wide.as<std::int64_t>()[i];
    if (x < new_size || x >= old_size || new_size == 0) continue;
    x %= new_size;
    changed = true;
  }
  if (changed) out.copy_from(wide);
  return out;
}

/// Is it a size argument? Those are SymInt in the schemas (dimensions are plain int), and also arange's end.
bool is_size(const SchemaArg& arg) {
  return arg.type == SchemaType::SymInt || arg.name == "end";
}

Arg map_integers(const Arg& arg, const auto& f) {
  if (const auto* i = arg.get<std::int64_t>()) return Arg(f(*i));
  if (const auto* list = arg.get<ArgList>()) {
    ArgList out{{}, list->is_tuple};
    for (const Arg& item : list->items) out.items.push_back(map_integers(item, f));
    return out;
  }
  return arg;
}

void map_size_arguments(Node& node, const auto& f) {
  const Schema* schema = node.op()->is_call() ? find_schema(node.op()) : nullptr;
  if (!schema) return;
  Args args = node.args();
  Kwargs kwargs = node.kwargs();
  for (std::size_t i = 0; i < args.size() && i < schema->args.size(); ++i)
    if (is_size(schema->args[i])) args[i] = map_integers(args[i], f);
  for (auto& [key, a] : kwargs)
    if (const int i = schema->index_of(key); i >= 0 && is_size(schema->args[static_cast<std::size_t>(i)]))
      a = map_integers(a, f);
  node.set_args(std::move(args), std::move(kwargs));
}

/// Is n a product of sizes in the set, or 1?
bool is_product(std::int64_t n, const std::set<std::int64_t>& sizes) {
  if (n == 1) return true;
  return std::ranges::any_of(sizes, [&](std::int64_t s) { return s > 1 && n % s == 0 && is_product(n / s, sizes); });
}

std::optional<Variant> with_size(const Graph& graph, const std::vector<Value>& inputs, std::int64_t from,
                                 std::int64_t to, const std::set<std::int64_t>& sizes, bool products) {
  const auto shrunk = [&](std::int64_t n) {
    if (n == from) return to;
    return products && n > 0 && n % from == 0 && is_product(n / from, sizes) ? n / from * to : n;
  };
  Variant v{graph.clone(), inputs, fmt::format("size {} to {}{}", from, to, products ? " in products" : "")};
  std::size_t i = 0;
  bool changed = false;
  for (Node* node : v.graph->placeholders()) {
    Value& value = v.inputs[i++];
    TensorMeta* meta = node->meta.tensor();
    const auto* t = value.get<Tensor>();
    if (!meta || !t) continue;
    Sizes now = t->sizes;
    for (std::int64_t& n : now) n = shrunk(n);
    if (now == t->sizes) continue;
    auto less = narrowed(*t, now, from, to);
    if (!less) return std::nullopt;
    meta->sizes.assign(less->sizes.begin(), less->sizes.end());
    meta->strides.assign(less->strides.begin(), less->strides.end());
    value = *std::move(less);
    changed = true;
  }
  if (!changed) return std::nullopt;
  for (Node* node : *v.graph) map_size_arguments(*node, shrunk);
  if (!infer_again(*v.graph)) return std::nullopt;
  return v;
}

/// Gives a symbol another value: inputs whose sizes use it shrink, and number inputs that use it change.
std::optional<Variant> with_symbol(const Graph& graph, const std::vector<Value>& inputs, const SymbolMap& symbols,
                                   const std::string& symbol, std::int64_t to) {
  SymbolMap now;
  for (const auto& [name, value] : symbols.all()) now.bind(SymExpr::symbol(name), name == symbol ? to : value);
  Variant v{graph.clone(), inputs, fmt::format("{} to {}", symbol, to)};
  std::size_t i = 0;
  for (const Node* node : v.graph->placeholders()) {
    Value& value = v.inputs[i++];
    if (const SymExpr* e = node->meta.sym()) {
      const auto n = now.value(*e);
      if (!n) return std::nullopt;
      value = Value(*n);
    }
    const TensorMeta* meta = node->meta.tensor();
    const auto* t = value.get<Tensor>();
    if (!meta || !t) continue;
    Sizes sizes;
    for (SymExpr e : meta->sizes) {
      const auto n = now.value(e);
      if (!n || *n < 1 || *n > t->sizes[sizes.size()]) return std::nullopt;
      sizes.push_back(*n);
    }
    if (sizes == t->sizes) continue;
    auto less = narrowed(*t, sizes, symbols.all().at(symbol), to);
    if (!less) return std::nullopt;
    value = *std::move(less);
  }
  return v;
}

/// Is it all zeros or all ones?
bool is_plain(const Tensor& t) {
  const double first = t.item_as_double(0);
  if (first != 0 && first != 1) return false;
  for (std::int64_t i = 1; i < t.numel(); ++i)
    if (t.item_as_double(i) != first) return false;
  return true;
}

Result<Tensor> filled(const Tensor& like, double x) {
  TRY(Tensor out, Tensor::empty_strided(like.dtype, like.sizes, dense_strides(like.sizes, like.strides)));
  TRY(const Tensor one, Tensor::scalar(like.dtype, x));
  out.copy_from(one.view_as(like.sizes, Sizes(like.sizes.size(), 0), 0));
  return out;
}

/// Is it dense: do the elements fill their memory without gaps and overlaps?
bool is_dense(const Tensor& t) {
  return dense_strides(t.sizes, t.strides) == t.strides;
}

}  // namespace

void smaller_sizes(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  std::set<std::int64_t> sizes;
  for (const Node* node : graph.placeholders())
    if (const TensorMeta* t = node->meta.tensor(); t && concrete(t->sizes))
      for (SymExpr e : t->sizes) sizes.insert(e.as_int());
  for (auto it = sizes.rbegin(); it != sizes.rend(); ++it) {
    if (*it < 2) continue;
    std::set<std::int64_t> smaller{1, 2, *it / 2};
    for (const std::int64_t to : smaller)
      for (const bool products : {true, false}) {
        if (to >= *it || to < 1) continue;
        auto v = with_size(graph, inputs, *it, to, sizes, products);
        if (v && offer(std::move(*v))) return;
      }
  }
  const auto symbols = bind_symbols(graph, inputs);
  if (!symbols) return;
  for (const auto& [name, value] : symbols->all())
    // PyTorch never leaves sizes of 0 and 1 symbolic.
    for (const std::int64_t to : std::set<std::int64_t>{2, value / 2}) {
      if (to < 2 || to >= value) continue;
      auto v = with_symbol(graph, inputs, *symbols, name, to);
      if (v && offer(std::move(*v))) return;
    }
}

void plainer_dtypes(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  std::set<DType> dtypes;
  for (const Node* node : graph)
    if (const TensorMeta* t = node->meta.tensor(); t && is_floating(t->dtype) && t->dtype != DType::Float32)
      dtypes.insert(t->dtype);
  for (const DType dtype : dtypes) {
    Variant v{graph.clone(), inputs, fmt::format("{} to float32", torch_name(dtype))};
    std::size_t i = 0;
    for (Node* node : v.graph->placeholders()) {
      Value& value = v.inputs[i++];
      TensorMeta* meta = node->meta.tensor();
      const auto* t = value.get<Tensor>();
      if (!meta || !t || t->dtype != dtype) continue;
      auto plain = Tensor::empty_strided(DType::Float32, t->sizes, dense_strides(t->sizes, t->strides));
      if (!plain) return;
      plain->copy_from(*t);
      meta->dtype = DType::Float32;
      if (concrete(meta->strides)) meta->strides.assign(plain->strides.begin(), plain->strides.end());
      value = *std::move(plain);
    }
    const auto replaced = [&](const Arg& a) {
      const DType* d = a.get<DType>();
      return d && *d == dtype ? Arg(DType::Float32) : a;
    };
    for (Node* node : *v.graph) {
      if (!node->op()->is_call()) continue;
      Args args = node->args();
      Kwargs kwargs = node->kwargs();
      for (Arg& a : args) a = replaced(a);
      for (auto& [key, a] : kwargs) a = replaced(a);
      node->set_args(std::move(args), std::move(kwargs));
    }
    if (infer_again(*v.graph) && offer(std::move(v))) return;
  }
}

void plainer_values(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  const std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto* t = inputs[i].get<Tensor>();
    const TensorMeta* meta = placeholders[i]->meta.tensor();
    if (!t || !meta || t->numel() == 0) continue;
    const std::string& name = placeholders[i]->name();
    if (!t->is_contiguous() && concrete(meta->strides)) {
      auto plain = t->clone();
      if (!plain) return;
      Variant v{graph.clone(), inputs, name + " row-major"};
      TensorMeta* now = v.graph->find(name)->meta.tensor();
      now->strides.assign(plain->strides.begin(), plain->strides.end());
      v.inputs[i] = *std::move(plain);
      if (infer_again(*v.graph) && offer(std::move(v))) return;
    }
    if (is_plain(*t)) continue;
    for (const double x : {0.0, 1.0}) {
      auto plain = filled(*t, x);
      if (!plain) return;
      // A broadcast input keeps its strides, so it cannot be filled densely.
      if (concrete(meta->strides) && plain->strides != t->strides) continue;
      Variant v{graph.clone(), inputs, fmt::format("{} all {}", name, x)};
      v.inputs[i] = *std::move(plain);
      if (offer(std::move(v))) return;
    }
  }
}

void earlier_ends(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  std::vector<Value> larger = inputs;
  for (Value& value : larger)
    if (const auto* t = value.get<Tensor>(); t && is_floating(t->dtype) && is_dense(*t)) {
      auto scaled = evaluate(Op::torch("aten.mul.Tensor"), {*t, Value(1024.0)}, {});
      if (!scaled) return;
      value = *std::move(scaled);
    }
  for (const Arg& result : graph.outputs()) {
    const Node* last = result.node();
    while (last && last->is(Op::getitem())) last = last->args()[0].node();
    if (!last || !last->op()->is_call()) continue;
    Variant v{graph.clone(), larger, "larger inputs, without " + last->name()};
    std::vector<Arg> ends;
    for (const Node* in : last->inputs())
      if (in->op()->is_call() && in->meta.tensor()) ends.emplace_back(v.graph->find(in->name()));
    if (ends.empty()) continue;
    v.graph->set_output(Arg::tuple(std::move(ends)));
    drop_unread(*v.graph, v.inputs);
    if (offer(std::move(v))) return;
  }
}

void calls_as_inputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  const Node* first_call = nullptr;
  for (const Node* node = graph.last(); node && !node->is_placeholder(); node = node->previous()) first_call = node;
  for (const Node* node = graph.last(); node; node = node->previous()) {
    const TensorMeta* meta = node->op()->is_call() && !node->users().empty() ? node->meta.tensor() : nullptr;
    if (!meta || !first_call) continue;
    const auto ones = filled_value(node->meta, *graph.shapes, 1);
    if (!ones) return;
    const Tensor& plain = *ones->get<Tensor>();
    Variant v{graph.clone(), inputs, node->name() + " an input of ones"};
    Node* call = v.graph->find(node->name());
    Meta as_input = node->meta;
    TensorMeta* now = as_input.tensor();
    now->sizes.assign(plain.sizes.begin(), plain.sizes.end());
    now->strides.assign(plain.strides.begin(), plain.strides.end());
    call->replace_all_uses_with(
        v.graph->placeholder(node->name(), std::move(as_input), v.graph->find(first_call->name())));
    v.inputs.push_back(*ones);
    drop_unread(*v.graph, v.inputs);
    if (infer_again(*v.graph) && offer(std::move(v))) return;
  }
}

}  // namespace partita::minify
