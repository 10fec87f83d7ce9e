#include "core/interp/aten_calls.h"

#include <unordered_set>

#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/autocast.h"
#include "core/ops/facts/control.h"
#include "core/ops/functorch/functorch.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/schema/in_place.h"
#include "core/ops/schema/resolve.h"

namespace partita {
namespace {

bool reads_tensor(const Node& node) {
  for (const Node* in : node.inputs())
    if (in->meta.tensor()) return true;
  return false;
}

bool is_torch_call(const Node& node) {
  if (const ControlOp* control = find_control(node.op())) return control->kind == Control::Autocast;
  if (node.op()->kind == OpKind::Method || is_taken_apart(node.op())) return true;
  if (node.op()->kind != OpKind::Function) return false;
  if (node.is(Op::getitem())) {
    const Node* from = node.args().empty() ? nullptr : node.args()[0].node();
    return from && from->meta.tensor();
  }
  return !is_python_arithmetic(node.op()->name) || reads_tensor(node);
}

/// Does the call, of which is_autocast() holds, end a region? It takes what its beginning returned.
bool ends_region(const Node& node) {
  const Node* begin = node.args().empty() ? nullptr : node.args()[0].node();
  return begin && is_autocast(begin->op());
}

/// A call that changes how autograd or autocast treats others.
bool is_region(const Node& node) {
  const ControlOp* control = find_control(node.op());
  return node.is(set_grad_enabled()) || is_autocast(node.op()) || (control && control->kind == Control::Autocast);
}

/// What a call from Python is depends on what it reads, of which the text need not say anything.
Status infer_inputs(const Node& node) {
  std::vector<Node*> waiting = node.inputs();
  std::unordered_set<const Node*> seen;
  while (!waiting.empty()) {
    Node* const n = waiting.back();
    if (n->meta.known() || !n->op()->is_call()) {
      waiting.pop_back();
    } else if (seen.insert(n).second) {
      for (Node* input : n->inputs()) waiting.push_back(input);
    } else {
      waiting.pop_back();
      TRY(n->meta, infer(*n));
    }
  }
  return {};
}

}  // namespace

Result<bool> resolve_calls(Graph& graph, bool before_autograd) {
  bool changed = false;
  AutocastRegions autocast;
  int regions = 0;  // of autocast around the node
  for (Node *node = graph.first(), *next = nullptr; node; node = next) {
    if (before_autograd && is_autocast(node->op())) regions += ends_region(*node) ? -1 : 1;
    if (before_autograd && (regions > 0 || is_region(*node))) {
      next = node->next();
      continue;
    }
    if (const ControlOp* control = find_control(node->op()); control && control->kind == Control::Autocast) {
      TRY(next, inline_autocast(node));
      changed = true;
      continue;
    }
    if (is_autocast(node->op())) {
      TRY(next, autocast.follow(node));
      changed = true;
      continue;
    }
    if (functorch_call(node->op()) != Functorch::None) {
      next = node->next();
      if (before_autograd) continue;
      TRY(next, follow_functorch(node));
      changed = true;
      continue;
    }
    next = node->next();
    if (node->is(set_grad_enabled())) continue;  // functorch's gradients mind it
    if (find_control(node->op())) autocast.enter_sub_graphs(*node);
    TRY_DO(autocast.cast_arguments(*node));
    const bool arithmetic =
        node->op()->kind == OpKind::Function && !node->is(Op::getitem()) && is_python_arithmetic(node->op()->name);
    const bool python =
        node->op()->kind == OpKind::Method || (node->op()->kind == OpKind::Function && !node->is(Op::getitem()));
    if (python) TRY_DO(infer_inputs(*node));
    const bool torch_call = is_torch_call(*node);
    if (!torch_call && !autocast.casts_parts(*node)) {
      // Overloads are chosen by the kinds of numbers, which text may leave out.
      if (arithmetic && !node->meta.known()) {
        TRY(node->meta, infer(*node));
        changed = true;
      }
      continue;
    }
    changed = true;
    const std::size_t first_new = graph.id_limit();
    Node* previous = node->previous();
    auto value = torch_call ? resolve(*node) : decompose(*node);
    if (!value) return at_node(std::move(value).error(), *node);
    TRY_DO(replace_uses(*node, *value));
    next = previous ? previous->next() : graph.first();
    if (next == node) next = node->next();
    const std::string name = node->name();
    const Meta meta = node->meta;
    const auto origin = node->origin;
    graph.erase(node);
    Node* result = value->node();
    if (!result || result->id() < first_new) continue;
    graph.rename(result, name);
    // Text without strides knows less than inference.
    const bool strided = !meta.tensor() || meta.tensor()->strides_known;
    if (meta.known() && (strided || !before_autograd || !result->meta.known())) result->meta = meta;
    result->origin = origin;
  }
  for (Node* node : graph) {
    const Functorch kind = functorch_call(node->op());
    if (before_autograd || !node->users().empty()) continue;
    if (!node->is(set_grad_enabled()) && kind != Functorch::BeginGrad && kind != Functorch::EndGrad) continue;
    graph.erase(node);
    changed = true;
  }
  return changed;
}

bool has_torch_calls(const Graph& graph) {
  for (const Node* node : graph)
    if (is_torch_call(*node)) return true;
  for (const auto& [name, child] : graph.children)
    if (has_torch_calls(*child)) return true;
  return false;
}

namespace {

Status resolve_all(Graph& graph) {
  if (auto changed = resolve_calls(graph); !changed) return std::move(changed).error();
  for (auto& [name, child] : graph.children) TRY_DO(resolve_all(*child));
  return {};
}

}  // namespace

Result<std::unique_ptr<Graph>> with_aten_calls(const Graph& graph) {
  std::unique_ptr<Graph> copy = graph.clone();
  follow_in_place(*copy);
  TRY_DO(resolve_all(*copy));
  return copy;
}

}  // namespace partita
