#include "core/ir/symbols_of.h"

#include <utility>

namespace partita {

std::set<std::string> symbols_of(const Meta& meta) {
  std::set<std::string> out;
  const auto add = [&](SymExpr e) {
    if (e.is_int()) return;
    for (std::string& name : e.symbols()) out.insert(std::move(name));
  };
  if (const SymExpr* e = meta.sym()) add(*e);
  if (const TensorMeta* t = meta.tensor()) {
    for (const SymExpr e : t->sizes) add(e);
    for (const SymExpr e : t->strides) add(e);
    add(t->offset);
  }
  if (const MetaTuple* tuple = meta.tuple())
    for (const Meta& item : tuple->items) out.merge(symbols_of(item));
  return out;
}

}  // namespace partita
