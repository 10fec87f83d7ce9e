#include "core/ops/facts/effects.h"

#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"

namespace partita {

bool draws(const Op* op) {
  if (const OpRecord* record = find_record(op)) return record->random;
  const Schema* schema = find_schema(op);
  return schema && schema->nondeterministic_seeded;
}

bool is_collective(const Op* op) {
  const OpRecord* record = find_record(op);
  return record && record->collective != CollectivePart::None;
}

bool starts_collective(const Op* op) {
  const OpRecord* record = find_record(op);
  return record && record->collective == CollectivePart::Starts;
}

namespace {

/// Composite norms write the statistics that they are given when they use those of the batch. Their schemas do not say
/// so.
bool writes_statistics(const Node& node, const Schema& schema) {
  const int at = schema.index_of("running_mean");
  if (!schema.composite_implicit || at < 0) return false;
  const auto bound = bind_arguments(schema, node.args(), node.kwargs());
  if (!bound) return true;
  const auto i = static_cast<std::size_t>(at);
  return (*bound)[i].node() && (*bound)[i + 2] != Arg(false);  // running_mean, running_var, training
}

}  // namespace

bool has_effect(const Node& node) {
  if (!node.op()->is_call()) return !node.is(Op::get_attr());
  if (node.is(Op::getitem())) return false;
  if (const ControlOp* control = find_control(node.op()); control && control->kind == Control::FunctionalKernel)
    return false;
  if (node.op()->kind == OpKind::Function && node.meta.sym()) return false;  // arithmetic on sizes
  bool runs_graphs = false;
  for (const Node* in : node.inputs())
    if (const Graph* child = in->is(Op::get_attr()) ? node.graph().child(in->target) : nullptr) {
      runs_graphs = true;
      for (const Node* inner : *child)
        if (inner->op()->is_call() && has_effect(*inner)) return true;
    }
  if (runs_graphs) return false;
  const Schema* schema = find_schema(node.op());
  if (!schema) return true;
  const OpRecord* record = find_record(node.op());
  return schema->is_mutable || draws(node.op()) || is_collective(node.op()) || (record && record->side_effect) ||
         schema->returns.empty() || writes_statistics(node, *schema);
}

}  // namespace partita
