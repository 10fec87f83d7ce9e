#include "core/functionalize/to_aten.h"

#include <fmt/format.h>

#include "core/ops/record.h"
#include "core/ops/resolve.h"

namespace partita {
namespace {

Where where(const Node& node) {
  return {.graph = node.graph().name, .node = node.name()};
}

class Lowering {
 public:
  explicit Lowering(const Graph& graph) { out_.graph = graph.clone(); }

  Result<AtenGraph> run() {
    Node* node = out_.graph->first();
    while (node) {
      if (!node->op()->is_call()) {
        if (node->is(Op::get_attr())) bind_attribute(*node);
        node = node->next();
        continue;
      }
      TRY(node, lower(node));
    }
    out_.graph->eliminate_dead([](const Node& n) { return has_effect(n); });
    return std::move(out_);
  }

 private:
  static bool has_effect(const Node& n) {
    const Schema* schema = n.op()->kind == OpKind::Torch ? find_schema(n.op()) : nullptr;
    if (schema && schema->is_mutable) return true;
    const OpRecord* record = schema ? find_record(n.op()) : nullptr;
    return record && record->side_effect;
  }

  void bind_attribute(Node& node) {
    auto it = out_.graph->attributes.find(node.target);
    if (node.meta.known() || it == out_.graph->attributes.end()) return;
    TensorMeta m;
    m.dtype = it->second.dtype;
    m.sizes.assign(it->second.sizes.begin(), it->second.sizes.end());
    m.strides.assign(it->second.strides.begin(), it->second.strides.end());
    node.meta = std::move(m);
  }

  /// The node to look at next: the first of those that replace this one, or the one after it.
  Result<Node*> lower(Node* node) {
    const std::string& name = node->op()->name;
    if (name == "torch._C._set_grad_enabled") {
      const bool* on = node->args().empty() ? nullptr : node->args()[0].get<bool>();
      if (!on) return input_error("functionalize.grad_mode", "_set_grad_enabled takes a constant", where(*node));
      grad_enabled_ = *on;
      return drop(node);
    }
    if (name.starts_with("torch.amp.autocast_mode."))
      return unsupported("functionalize.autocast",
                         "autocast regions are not supported; export the graph under autocast "
                         "so that it holds the casts",
                         where(*node));
    if (node->op()->kind == OpKind::Torch) return lower_aten(node);
    if (is_number_arithmetic(*node)) return infer_and_go_on(node);
    return replace(node, [](Node& n) { return resolve(n); });
  }

  /// getitem of a tuple, arithmetic on sizes: they stay Python calls in ATen graphs.
  static bool is_number_arithmetic(const Node& node) {
    if (node.op()->kind != OpKind::Function) return false;
    if (node.is(Op::getitem())) {
      Node* from = node.args().empty() ? nullptr : node.args()[0].node();
      return from && from->meta.tuple();
    }
    if (!node.op()->name.starts_with("_operator.") && !node.op()->name.starts_with("torch.sym_") &&
        !node.op()->name.starts_with("math."))
      return false;
    bool tensors = false;
    for (Node* input : node.inputs()) tensors |= input->meta.sym() == nullptr;
    return !tensors;
  }

  Result<Node*> lower_aten(Node* node) {
    const Schema* schema = find_schema(node->op());
    const OpRecord* record = schema ? ops().find(node->op()) : nullptr;
    if (schema && schema->composite_implicit && record && record->decompose)
      return replace(node, [](Node& n) { return decompose(n); });
    return infer_and_go_on(node);
  }

  Result<Node*> infer_and_go_on(Node* node) {
    if (!node->meta.known()) {
      Result<Meta> meta = infer(*node);
      if (meta)
        node->meta = *std::move(meta);
      else if (meta.error().code != "ops.unknown" || !parts_are_known(*node))
        return std::move(meta).error();
    }
    if (!grad_enabled_) out_.no_grad.insert(node);
    return node->next();
  }

  static bool parts_are_known(const Node& node) {
    for (Node* user : node.users())
      if (!user->is(Op::getitem()) || !user->meta.known()) return false;
    return true;
  }

  /// `rewrite` appends calls before the node and says what replaces it; they are looked at next.
  template <class F>
  Result<Node*> replace(Node* node, F rewrite) {
    Node* previous = node->previous();
    Result<Arg> value = rewrite(*node);
    if (!value) return std::move(value).error();
    if (value->node() == node) return infer_and_go_on(node);
    if (Node* n = value->node(); n && !n->origin) n->origin = node->origin;
    TRY_DO(substitute(node, *value));
    Node* next = previous ? previous->next() : out_.graph->first();
    if (next == node) next = node->next();
    out_.graph->erase(node);
    return next;
  }

  /// Everybody reads `value` instead; getitems of a list take its items.
  Status substitute(Node* node, const Arg& value) {
    if (Node* n = value.node()) {
      node->replace_all_uses_with(n);
      return {};
    }
    auto* list = value.get<ArgList>();
    while (!node->users().empty()) {
      Node* user = node->users().front();
      if (!list || !user->is(Op::getitem())) {
        user->replace_input(node, value);
        continue;
      }
      auto* index = user->args()[1].get<std::int64_t>();
      auto count = static_cast<std::int64_t>(list->items.size());
      std::int64_t at = index ? (*index < 0 ? *index + count : *index) : count;
      if (at < 0 || at >= count)
        return input_error("functionalize.getitem",
                           fmt::format("{} takes an item that {} does not have", user->name(), node->name()),
                           where(*user));
      TRY_DO(substitute(user, list->items[static_cast<std::size_t>(at)]));
      out_.graph->erase(user);
    }
    return {};
  }

  Result<Node*> drop(Node* node) {
    Node* next = node->next();
    out_.graph->erase(node);
    return next;
  }

  AtenGraph out_;
  bool grad_enabled_ = true;
};

}  // namespace

Result<AtenGraph> to_aten(const Graph& graph) {
  return Lowering(graph).run();
}

}  // namespace partita
