#include "core/functionalize/to_aten.h"

#include <unordered_map>

#include <fmt/format.h>

#include "core/ops/record.h"
#include "core/ops/requires_grad.h"
#include "core/ops/resolve.h"

namespace partita {
namespace {

Where where(const Node& node) {
  return {.graph = node.graph().name, .node = node.name()};
}

class Lowering {
 public:
  explicit Lowering(const Graph& graph) { out_.graph = graph.clone(); }

  Result<AtenGraph> run(const std::vector<bool>& wanted) {
    if (!wanted.empty()) {
      std::vector<Node*> placeholders = out_.graph->placeholders();
      for (std::size_t i = 0; i < placeholders.size(); ++i)
        set_requires_grad(*placeholders[i], i < wanted.size() && wanted[i]);
    }
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

  /// Lowers one node. Returns the next node to lower: the first of its replacements, or the node after it.
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
    if (name == "higher_order.wrap_with_set_grad_enabled") return inline_grad_region(node);
    if (node->op()->kind == OpKind::Torch) return lower_aten(node);
    if (is_number_arithmetic(*node)) return infer_and_go_on(node);
    return replace(node, [](Node& n) { return resolve(n); });
  }

  /// torch.export keeps a no_grad region as a call of a sub graph. Inlines it between two changes of the grad mode.
  Result<Node*> inline_grad_region(Node* node) {
    Graph& graph = *out_.graph;
    const bool* on = node->args().size() < 2 ? nullptr : node->args()[0].get<bool>();
    const Node* body_node = on ? node->args()[1].node() : nullptr;
    const Graph* body = body_node && body_node->is(Op::get_attr()) ? graph.child(body_node->target) : nullptr;
    std::vector<Node*> parameters = body ? body->placeholders() : std::vector<Node*>();
    if (!body || parameters.size() + 2 != node->args().size())
      return unsupported("functionalize.region", node->op()->name + " without its sub graph", where(*node));
    const Op* mode = Op::get(OpKind::Function, "torch._C._set_grad_enabled");
    std::unordered_map<const Node*, Arg> twins;
    for (std::size_t i = 0; i < parameters.size(); ++i) twins.emplace(parameters[i], node->args()[i + 2]);
    auto twin = [&](Node* n) { return twins.at(n); };
    Node* first = graph.create(mode, {*on}, {}, {}, node);
    for (Node* inner : *body) {
      if (inner->is_placeholder() || inner->is_output()) continue;
      if (inner->is(Op::get_attr()) && body->child(inner->target))
        return unsupported("functionalize.region", node->op()->name + " with sub graphs of its own", where(*node));
      if (auto it = body->attributes.find(inner->target); inner->is(Op::get_attr()) && it != body->attributes.end())
        graph.attributes.emplace(inner->target, it->second);
      twins.emplace(inner, graph.copy_node(*inner, twin, node));
    }
    graph.create(mode, {grad_enabled_}, {}, {}, node);
    std::vector<Arg> results;
    for (const Arg& result : body->outputs()) results.push_back(map_nodes(result, twin));
    TRY_DO(substitute(node, Arg::list(std::move(results))));
    graph.erase(node);
    return first;
  }

  /// Is the node a getitem of a tuple or arithmetic on sizes? These stay Python calls in ATen graphs.
  static bool is_number_arithmetic(const Node& node) {
    if (node.op()->kind != OpKind::Function) return false;
    if (node.is(Op::getitem())) {
      // A value without meta comes from an operator without a record, and is a tuple; tensors are annotated.
      Node* from = node.args().empty() ? nullptr : node.args()[0].node();
      return from && !from->meta.tensor();
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
    const bool needs = grad_enabled_ && call_requires_grad(*node);
    set_requires_grad(*node, needs);
    // A tensor that is written in place requires grad from here on.
    const Schema* schema = node->op()->kind == OpKind::Torch ? find_schema(node->op()) : nullptr;
    if (needs && schema && schema->is_mutable && node->args()[0].node())
      set_requires_grad(*node->args()[0].node(), true);
    return node->next();
  }

  static bool parts_are_known(const Node& node) {
    for (Node* user : node.users())
      if (!user->is(Op::getitem()) || !user->meta.known()) return false;
    return true;
  }

  /// Replaces a node. `rewrite` makes calls before it and returns the replacement. Returns the first new call.
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

  /// Makes all users read `value`. The getitems of a list read its items.
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
                           fmt::format("{} reads an item that {} does not have", user->name(), node->name()),
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

Result<AtenGraph> to_aten(const Graph& graph, const std::vector<bool>& requires_grad) {
  return Lowering(graph).run(requires_grad);
}

}  // namespace partita
