#include "core/fake/renaming.h"

#include <algorithm>
#include <optional>

#include "core/sym/float_symbol.h"

namespace partita {

namespace {

/// The symbol of an expression that only values decide, if there is one such.
std::optional<std::string> only_unbacked(SymExpr e) {
  std::optional<std::string> found;
  for (const std::string& symbol : e.symbols()) {
    if (!is_unbacked(symbol)) continue;
    if (found) return std::nullopt;
    found = symbol;
  }
  return found;
}

}  // namespace

bool UnbackedRenaming::same(const Meta& a, const Meta& b) {
  if (a.tensor() && b.tensor()) return same_tensors(*a.tensor(), *b.tensor());
  if (auto* e = a.sym(); e && b.sym())
    return same_annotation(shapes_.simplified(rename(*e, *b.sym())), shapes_.simplified(*b.sym()));
  if (auto* t = a.tuple(); t && b.tuple())
    return std::ranges::equal(t->items, b.tuple()->items, [&](const Meta& x, const Meta& y) { return same(x, y); });
  return same_annotation(a, b);
}

SymExpr UnbackedRenaming::rename(SymExpr from, SymExpr to) {
  const auto unnamed = only_unbacked(from);  // a symbol may also be met first in an expression: u1 + 1
  const auto name = only_unbacked(to);
  if (from.kind() == SymKind::Symbol && is_unbacked(from.name())) {
    names_.emplace(from.name(), to);
  } else if (unnamed && name && !names_.contains(*unnamed)) {
    const SymExpr symbol = SymExpr::symbol(*name);
    const SymExpr renamed = from.substitute([&](const std::string& s) -> std::optional<SymExpr> {
      return s == *unnamed ? std::optional(symbol) : std::nullopt;
    });
    if (renamed == to) names_.emplace(*unnamed, symbol);
  }
  return from.substitute([&](const std::string& symbol) -> std::optional<SymExpr> {
    auto it = names_.find(symbol);
    return it == names_.end() ? std::nullopt : std::optional(it->second);
  });
}

bool UnbackedRenaming::same_tensors(TensorMeta a, TensorMeta b) {
  const auto match = [&](SymList& from, SymList& to) {
    for (std::size_t d = 0; d < from.size() && d < to.size(); ++d) {
      from[d] = shapes_.simplified(rename(from[d], to[d]));
      to[d] = shapes_.simplified(to[d]);
    }
  };
  match(a.sizes, b.sizes);
  match(a.strides, b.strides);
  return same_annotation(Meta(std::move(a)), Meta(std::move(b)));
}

}  // namespace partita
