#include "core/ops/facts/control.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ir/place.h"

namespace partita {

const ControlOp* find_control(const Op* op) {
  static const ControlOp table[] = {
      {"higher_order.cond", Control::Cond, 1, {1, 2}, {3}, -1, -1, {"true_graph", "false_graph"}},
      {"higher_order.while_loop",
       Control::WhileLoop,
       1,
       {0, 1},
       {2, 3},
       -1,
       2,
       {"while_loop_cond_graph", "while_loop_body_graph"}},
      {"higher_order.map_impl", Control::Map, 0, {0}, {1, 2}, 1, -1, {"body_graph"}},
      {"higher_order.scan", Control::Scan, 0, {0}, {1, 2, 3}, 2, 1, {"scan_combine_graph"}},
      {"higher_order.tag_activation_checkpoint", Control::Checkpoint},
      {"higher_order.wrap_activation_checkpoint", Control::Checkpoint},
      {"higher_order.wrap", Control::Wrapper},
      {"higher_order.strict_mode", Control::Wrapper, 0, {}, {1}},
      {"higher_order.hints_wrapper", Control::Wrapper, 0, {}, {1}},
      {"higher_order.wrap_with_set_grad_enabled", Control::GradMode},
      {"higher_order.wrap_with_autocast", Control::Autocast},
      {"higher_order.invoke_subgraph", Control::InvokeSubgraph},
      {"higher_order.autograd_function_apply", Control::AutogradFunction},
      {"partita.custom_backward", Control::CustomBackward},
      {"higher_order.with_effects", Control::WithEffects},
      {"higher_order.triton_kernel_wrapper_mutation", Control::Kernel},
      {"higher_order.triton_kernel_wrapper_functional", Control::FunctionalKernel},
      {"higher_order.helion_kernel_wrapper_mutation", Control::Kernel},
      {"higher_order.helion_kernel_wrapper_functional", Control::FunctionalKernel},
  };
  const auto* it = std::ranges::find(table, op->name, &ControlOp::name);
  return op->kind == OpKind::Torch && it != std::end(table) ? it : nullptr;
}

const ControlOp* find_region(const Op* op) {
  const ControlOp* control = find_control(op);
  return control && !control->graphs.empty() ? control : nullptr;
}

bool is_kernel(const Op* op) {
  const ControlOp* control = find_control(op);
  return control && (control->kind == Control::Kernel || control->kind == Control::FunctionalKernel);
}

std::vector<std::pair<std::string, Node*>> written_by_kernel(const Node& call) {
  const Arg* given = call.kwarg("kwargs");
  if (!given) given = call.kwarg("tensor_args");  // Helion's
  const Arg* cloned = call.kwarg("tensors_to_clone");
  const ArgDict* tensors = given ? given->get<ArgDict>() : nullptr;
  const ArgList* names = cloned ? cloned->get<ArgList>() : nullptr;
  std::vector<std::pair<std::string, Node*>> out;
  if (!tensors) return out;
  for (const auto& [name, value] : tensors->items) {
    Node* const node = value.node();
    if (!node || node->meta.sym()) continue;
    if (!names || std::ranges::find(names->items, Arg(name)) != names->items.end()) out.emplace_back(name, node);
  }
  return out;
}

Diagnostic kernel_without_code(const Node& call) {
  return unsupported("ops.kernel",
                     fmt::format("{} runs a kernel of the user's own, whose code is not in the graph, only its number; "
                                 "interp and torch: backends run it in a Python, where --python-import MODULE imports "
                                 "a module that enters it into PyTorch's kernel_side_table, as a repro script does",
                                 call.op()->name),
                     place_of(call));
}

const Op* functional_kernel(const Op* op) {
  static const Op* const mutation = Op::torch("higher_order.triton_kernel_wrapper_mutation");
  static const Op* const functional = Op::torch("higher_order.triton_kernel_wrapper_functional");
  return op == mutation ? functional : nullptr;
}

std::vector<RegionOperand> operands_of(const ControlOp& op, const Args& args) {
  std::vector<RegionOperand> out;
  for (const std::size_t list : op.operands) {
    const ArgList* values = list < args.size() ? args[list].get<ArgList>() : nullptr;
    for (std::size_t i = 0; values && i < values->items.size(); ++i)
      out.push_back(
          {values->items[i], list, i, op.rows == static_cast<int>(list), op.carried == static_cast<int>(list)});
  }
  return out;
}

Meta row_of(const Meta& meta) {
  const TensorMeta* t = meta.tensor();
  if (!t || t->sizes.empty()) return {};
  TensorMeta row = *t;
  row.sizes.erase(row.sizes.begin());
  row.strides.erase(row.strides.begin());
  row.offset = 0;
  row.storage_id = -1;
  return row;
}

Result<Graph*> region_graph(const Node& call, std::size_t i) {
  const Node* attribute = i < call.args().size() ? call.args()[i].node() : nullptr;
  Graph* child = attribute && attribute->is(Op::get_attr()) ? call.graph().child(attribute->target) : nullptr;
  if (!child)
    return input_error("ops.region", fmt::format("argument {} of {} is no sub graph", i, call.op()->name),
                       place_of(call));
  return child;
}

namespace {

Meta meta_of_operand(const RegionOperand& operand) {
  if (const Node* n = operand.value.node()) return operand.row ? row_of(n->meta) : n->meta;
  if (const auto* value = operand.value.get<std::int64_t>()) return SymExpr(*value);
  return {};
}

}  // namespace

Status give_metas_to_regions(const ControlOp& op, Node& call) {
  const std::vector<RegionOperand> operands = operands_of(op, call.args());
  for (const std::size_t i : op.graphs) {
    TRY(Graph* const child, region_graph(call, i));
    const std::vector<Node*> placeholders = child->placeholders();
    if (placeholders.size() != operands.size())
      return input_error("ops.region",
                         fmt::format("sub graph {} takes {} inputs, but {} are given", call.args()[i].node()->target,
                                     placeholders.size(), operands.size()),
                         place_of(call));
    child->shapes = call.graph().shapes;
    for (std::size_t p = 0; p < placeholders.size(); ++p) {
      Meta meta = meta_of_operand(operands[p]);
      if (!meta.known() || (operands[p].carried && !meta.tensor() && placeholders[p]->meta.known())) continue;
      placeholders[p]->meta = std::move(meta);
    }
  }
  return {};
}

MetaTuple region_results(const ControlOp& op, const Node& call) {
  const std::vector<RegionOperand> operands = operands_of(op, call.args());
  const auto carried = static_cast<std::size_t>(std::ranges::count_if(operands, &RegionOperand::carried));
  const auto row = std::ranges::find_if(operands, &RegionOperand::row);
  const Node* rows = row == operands.end() ? nullptr : row->value.node();
  const TensorMeta* whole = rows ? rows->meta.tensor() : nullptr;
  std::vector<Arg> other;
  if (op.kind == Control::Cond)
    if (const auto graph = region_graph(call, op.graphs.back())) other = (*graph)->outputs();
  MetaTuple results;
  const auto body = region_graph(call, op.body);
  const std::vector<Arg> outputs = body ? (*body)->outputs() : std::vector<Arg>();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Node* n = outputs[i].node();
    Meta meta = n ? n->meta : Meta();
    if (TensorMeta* t = meta.tensor()) {
      t->storage_id = -1;
      t->offset = 0;
      const TensorMeta* there = i < other.size() && other[i].node() ? other[i].node()->meta.tensor() : nullptr;
      if (there && there->sizes != t->sizes) meta = Meta();
    }
    if (const TensorMeta* t = meta.tensor(); t && whole && i >= carried) {
      SymList sizes = t->sizes;
      sizes.insert(sizes.begin(), whole->sizes.empty() ? SymExpr(0) : whole->sizes[0]);
      meta = TensorMeta::contiguous(t->dtype, std::move(sizes), t->device);
    }
    results.items.push_back(std::move(meta));
  }
  for (const Node* user : call.users()) {
    const auto* index = user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= results.items.size()) continue;
    Meta& item = results.items[static_cast<std::size_t>(*index)];
    if (!item.known()) item = user->meta;
  }
  return results;
}

std::vector<std::string> region_names(const ControlOp& op, const Graph& graph) {
  for (int n = 0;; ++n) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < op.graphs.size(); ++i) names.push_back(fmt::format("{}_{}", op.prefixes[i], n));
    if (std::ranges::none_of(names, [&](const std::string& name) { return graph.child(name) != nullptr; }))
      return names;
  }
}

bool is_control(const Op* op) {
  if (op->kind == OpKind::Torch) return op->of_library("higher_order");
  return op == set_grad_enabled() || is_autocast(op) || op->name.starts_with("torch._functorch.") ||
         op->name.starts_with("torch.utils.checkpoint.");
}

Result<AutogradResults> autograd_results(const Node& call, const Graph& forward) {
  const Node* const output = forward.output();
  const ArgList* const returned = output ? output->args()[0].get<ArgList>() : nullptr;
  if (!returned || returned->items.size() != 2 || !returned->items[1].get<ArgList>())
    return input_error("ops.region", "the forward of a torch.autograd.Function returns its results and what it saves",
                       place_of(call));
  const ArgList* const results = returned->items[0].get<ArgList>();
  return AutogradResults{results ? results->items.size() : 1, results == nullptr};
}

const Op* custom_backward() {
  static const Op* const op = Op::torch("partita.custom_backward");
  return op;
}

const Op* set_grad_enabled() {
  static const Op* const op = Op::get(OpKind::Function, "torch._C._set_grad_enabled");
  return op;
}

bool is_autocast(const Op* op) {
  return op->name.starts_with("torch.amp.autocast_mode.");
}

}  // namespace partita
