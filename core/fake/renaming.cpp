#include "core/fake/renaming.h"

#include <optional>

#include "core/sym/unbacked.h"

namespace partita {

bool UnbackedRenaming::same(const Meta& a, const Meta& b) {
  if (auto* t = a.tensor(); t && b.tensor()) return same_annotation(renamed(*t, *b.tensor()), b);
  if (auto* e = a.sym(); e && b.sym()) return same_annotation(rename(*e, *b.sym()), b);
  if (auto* t = a.tuple(); t && b.tuple()) {
    if (t->items.size() != b.tuple()->items.size()) return false;
    for (std::size_t i = 0; i < t->items.size(); ++i)
      if (!same(t->items[i], b.tuple()->items[i])) return false;
    return true;
  }
  return same_annotation(a, b);
}

SymExpr UnbackedRenaming::rename(SymExpr from, SymExpr to) {
  if (from.kind() == SymKind::Symbol && is_unbacked(from.name())) names_.emplace(from.name(), to);
  return from.substitute([&](const std::string& symbol) -> std::optional<SymExpr> {
    auto it = names_.find(symbol);
    return it == names_.end() ? std::nullopt : std::optional(it->second);
  });
}

Meta UnbackedRenaming::renamed(TensorMeta a, const TensorMeta& b) {
  for (std::size_t d = 0; d < a.sizes.size() && d < b.sizes.size(); ++d) a.sizes[d] = rename(a.sizes[d], b.sizes[d]);
  for (std::size_t d = 0; d < a.strides.size() && d < b.strides.size(); ++d)
    a.strides[d] = rename(a.strides[d], b.strides[d]);
  return a;
}

}  // namespace partita
