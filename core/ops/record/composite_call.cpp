#include "core/ops/record/composite_call.h"

#include <algorithm>

#include "core/ops/record/record.h"

namespace partita {
namespace {

const OpRecord* own_record(const Op* op) {
  return op->kind == OpKind::Torch ? ops().find(op) : nullptr;
}

/// Has it a decomposition for compilers, or one because it has no evaluation?
bool decomposes(const OpRecord& record) {
  return record.compile_decompose || (record.decompose && !record.eval && !record.pointwise.body);
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
  if (!record || !record->decompose) return false;
  // prims have no derivatives in PyTorch, so no graph is differentiated through a call of one.
  return record->schema->composite_implicit || (op->of_library("prims") && decomposes(*record));
}

bool decomposes_to_core(const Op* op) {
  const OpRecord* record = own_record(op);
  return record && record->kept != Kept::CoreAten && decomposes(*record);
}

bool decomposes_for_compiler(const Node& call) {
  const OpRecord* found = own_record(call.op());
  if (!found || !decomposes(*found)) return false;
  const OpRecord& record = *found;
  if (record.kept == Kept::CheckedValues || (record.kept == Kept::HalfTypes && computes_halves(call))) return false;
  return record.compile_decompose || !record.lower;
}

}  // namespace partita
