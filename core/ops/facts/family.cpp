#include "core/ops/facts/family.h"

#include <string>

#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

// "aten.add.Tensor" -> "add"; in-place names lose their underscore: "add_" -> "add".
std::string_view base_name(const Op& op) {
  std::string_view base = op.brief();
  if (base.size() > 1 && base.back() == '_' && base[base.size() - 2] != '_') base.remove_suffix(1);
  return base;
}

Family family_of_schema(const Schema& schema) {
  if (schema.is_view) return Family::View;
  if (schema.nondeterministic_seeded) return Family::Random;
  return schema.pointwise ? Family::Pointwise : Family::Other;
}

}  // namespace

std::string_view family_name(Family family) {
  switch (family) {
#define V(name, text) \
  case Family::name:  \
    return text;
    PARTITA_FAMILY_NAMES(V)
#undef V
  }
  return {};
}

Family derived_family(const OpRecord& record) {
  if (record.random) return Family::Random;
  if (record.collective != CollectivePart::None) return Family::Collective;
  if (record.pointwise.body) return Family::Pointwise;
  if (record.side_effect) return Family::Control;
  return family_of_schema(*record.schema);
}

Family family_of(const Op* op) {
  if (!op->is_call()) return Family::Input;
  if (is_control(op)) return Family::Control;
  const bool torch = op->kind == OpKind::Torch;
  if (torch) {
    if (op->of_library("c10d")) return Family::Collective;  // those without records
    if (const OpRecord* record = find_record(op)) return record->family;
  }
  // An overload without a record is like its siblings, a call of Python like its ATen namesake.
  std::string_view base = base_name(*op);
  const auto& overloads = find_overloads("aten." + std::string(base));
  for (const Schema* s : overloads)
    if (const OpRecord* record = ops().find(Op::torch(s->name))) return record->family;
  if (const auto family = ops().family_without_record(base)) return *family;
  if (const Schema* schema = torch ? find_schema(op) : nullptr) return family_of_schema(*schema);
  return overloads.empty() ? Family::Other : family_of_schema(*overloads.front());
}

}  // namespace partita
