// Computes values that depend on no input.
// 1. In order, a pure call with concrete sizes whose tensors are all constants is a constant; its value is computed.
// 2. A constant that a non-constant reads becomes an attribute, or, if all its elements are equal, aten.full, which
//    costs no memory. A bare aten.full and the like stay as they are.
// Results over PassContext::fold_limit_bytes are not folded, so large masks are computed where they are used; in a
// frozen graph those are, too, that are no larger than the constants they are made of. A view of an attribute shares
// its memory.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/ops/facts/effects.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/record/record.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

class ConstantFolder {
 public:
  ConstantFolder(Graph& graph, PassContext& context)
      : graph_(graph), context_(context), aliases_(graph), values_(graph.id_limit()) {
    for (const auto& [name, tensor] : graph.attributes) given_.insert(tensor.storage.get());
  }

  Result<bool> run() {
    for (Node* node : graph_) TRY_DO(compute(*node));
    bool changed = false;
    for (Node* node : graph_) {
      if (node->id() >= values_.size() || !values_[node->id()] || !is_read_by_others(*node) || !is_worth_it(*node) ||
          !context_.may_rewrite("constant", *node))
        continue;
      TRY_DO(replace(*node, *values_[node->id()]->get<Tensor>()));
      changed = true;
    }
    if (changed) graph_.eliminate_dead(has_effect);
    return changed;
  }

 private:
  bool is_constant(const Node* node) const { return node->id() < values_.size() && values_[node->id()].has_value(); }

  std::optional<Value> value_of(const Arg& arg) const {
    if (const Node* n = arg.node()) return values_[n->id()];
    if (const auto* list = arg.get<ArgList>()) {
      ValueList out;
      for (const Arg& a : list->items) {
        auto v = value_of(a);
        if (!v) return std::nullopt;
        out.push_back(*std::move(v));
      }
      return Value(std::move(out));
    }
    return to_value(arg);
  }

  Status compute(const Node& node) {
    if (node.is(Op::get_attr())) {
      const auto it = graph_.attributes.find(node.target);
      if (it != graph_.attributes.end() && !aliases_.mutated(node) && (context_.frozen || fits(node.meta, 0)))
        values_[node.id()] = Value(it->second);
      return {};
    }
    if (!node.op()->is_call() || has_effect(node) || aliases_.mutated(node)) return {};
    if (node.op()->kind == OpKind::Torch && !find_record(node.op())) return {};
    if (!std::ranges::all_of(node.inputs(), [&](const Node* n) { return is_constant(n); })) return {};
    if (!fits(node.meta, context_.frozen ? bytes_of_inputs(node) : 0)) return {};
    std::vector<Value> args;
    for (const Arg& a : node.args()) args.push_back(*value_of(a));
    std::vector<std::pair<std::string, Value>> kwargs;
    for (const auto& [key, a] : node.kwargs()) kwargs.emplace_back(key, *value_of(a));
    Result<Value> value = evaluate(node.op(), std::move(args), std::move(kwargs), {.threads = context_.threads}, &node);
    if (value)
      values_[node.id()] = *std::move(value);
    else if (value.error().fault != Fault::Unsupported)
      return std::move(value).error();  // a call that the interpreter does not support stays
    return {};
  }

  /// Is the value concrete, and within the limit or no larger than `bytes`? A size of 0 makes the byte count known even
  /// when another size is symbolic, so sizes are checked too.
  bool fits(const Meta& meta, std::size_t bytes) const {
    const TensorMeta* t = meta.tensor();
    if (!t || !t->strides_known || !concrete(t->sizes) || !concrete(t->strides)) return false;
    return static_cast<std::size_t>(byte_size(*t).as_int()) <= std::max(context_.fold_limit_bytes, bytes);
  }

  /// Of the memory of the constants that a call reads, each counted once.
  std::size_t bytes_of_inputs(const Node& node) const {
    std::map<const Storage*, std::size_t> held;
    for (const Node* n : node.inputs())
      if (const Tensor* t = values_[n->id()]->get<Tensor>()) {
        const auto reached = reach(t->sizes, t->strides);
        std::size_t& bytes = held[t->storage.get()];
        bytes = std::max(bytes, reached ? static_cast<std::size_t>(*reached) * itemsize(t->dtype) : 0);
      }
    std::size_t sum = 0;
    for (const auto& [storage, bytes] : held) sum += bytes;
    return sum;
  }

  bool is_view_of_attribute(const Tensor& value) const { return given_.contains(value.storage.get()); }

  bool is_read_by_others(const Node& node) const {
    return std::ranges::any_of(node.users(), [&](const Node* user) { return !is_constant(user); });
  }
  /// False for attributes and factory calls: they are as cheap as their replacement.
  bool is_worth_it(const Node& node) const { return node.op()->is_call() && !node.inputs().empty(); }

  Status replace(Node& node, const Tensor& value) {
    const TensorMeta& meta = *node.meta.tensor();
    Node* constant = uniform_fill(node, value);
    if (!constant) {
      std::string name;
      for (int i = 0; name.empty() || graph_.attributes.contains(name); ++i)
        name = fmt::format("_folded_constant{}", i);
      Tensor own = value;
      if (!is_view_of_attribute(value) || value.strides != *concrete(meta.strides)) {
        TRY(own, Tensor::empty_strided(value.dtype, value.sizes, *concrete(meta.strides)));
        own.copy_from(value);
      }
      graph_.attributes.emplace(name, std::move(own));
      constant = graph_.create(Op::get_attr(), {}, {}, name, &node);
      constant->target = name;
    }
    constant->meta = node.meta;
    constant->origin = node.origin;
    for (Node* user : std::vector<Node*>(node.users()))
      if (!is_constant(user)) user->replace_input(&node, constant);
    return {};
  }

  /// Makes aten.full of the value that all elements have; null when they differ or the strides would.
  Node* uniform_fill(Node& node, const Tensor& value) {
    const TensorMeta& meta = *node.meta.tensor();
    if (is_view_of_attribute(value) && value.numel() > 64) return nullptr;  // it costs no memory as it is
    if (is_complex(value.dtype) || !has_arithmetic(value.dtype) || value.numel() == 0 ||
        meta.strides != contiguous_strides(meta.sizes))
      return nullptr;
    const auto dense = value.contiguous();
    if (!dense) return nullptr;
    const std::size_t item = itemsize(value.dtype);
    for (std::int64_t i = 1; i < dense->numel(); ++i)
      if (std::memcmp(dense->data(), dense->data() + static_cast<std::size_t>(i) * item, item) != 0) return nullptr;
    const double x = dense->item_as_double();
    if (!is_floating(value.dtype) && std::abs(x) > 0x1p53) return nullptr;
    Arg fill = is_floating(value.dtype)     ? Arg(x)
               : value.dtype == DType::Bool ? Arg(x != 0)
                                            : Arg(static_cast<std::int64_t>(x));
    std::vector<Arg> sizes;
    for (std::int64_t s : value.sizes) sizes.emplace_back(s);
    return graph_.create(
        Op::torch("aten.full.default"), {Arg::list(std::move(sizes)), std::move(fill)},
        {{"dtype", value.dtype}, {"layout", Layout::Strided}, {"device", meta.device}, {"pin_memory", false}},
        "full_default", &node);
  }

  Graph& graph_;
  PassContext& context_;
  const Aliases aliases_;
  std::vector<std::optional<Value>> values_;  // by node id; set: constant
  std::set<const Storage*> given_;            // of the attributes
};

}  // namespace

Result<bool> fold_constants(Graph& graph, PassContext& context) {
  return ConstantFolder(graph, context).run();
}

}  // namespace partita
