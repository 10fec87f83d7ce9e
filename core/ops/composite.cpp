#include "core/ops/composite.h"

#include <algorithm>

#include "core/ops/record.h"

namespace partita {
namespace {

const OpRecord* own_record(const Op* op) {
  return op->kind == OpKind::Torch ? ops().find(op) : nullptr;
}

bool computes_halves(const Node& node) {
  return std::ranges::any_of(node.inputs(), [](const Node* n) {
    const TensorMeta* t = n->meta.tensor();
    return t && (t->dtype == DType::BFloat16 || t->dtype == DType::Float16);
  });
}

}  // namespace

bool is_composite(const Op* op) {
  const OpRecord* record = own_record(op);
  return record && record->decompose && record->schema->composite_implicit;
}

bool decomposes_to_core(const Op* op) {
  const OpRecord* record = own_record(op);
  return record && (record->compile_decompose || (record->decompose && !record->eval && !record->pointwise.body));
}

bool decomposes_for_compiler(const Node& call) {
  if (!decomposes_to_core(call.op())) return false;
  const OpRecord& record = *own_record(call.op());
  if (record.checks_values || (record.rounds_halves && computes_halves(call))) return false;
  return record.compile_decompose || !record.lower;
}

}  // namespace partita
