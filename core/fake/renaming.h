#pragma once
#include <map>
#include <string>

#include "core/ir/meta.h"

namespace partita {

/// Compares metas whose unbacked symbols (u0, zuf0) may have other names. A pair of names found once must hold for all
/// metas compared later.
class UnbackedRenaming {
 public:
  /// Are the metas equal if the symbols of the first are renamed?
  bool same(const Meta& a, const Meta& b);

 private:
  SymExpr rename(SymExpr from, SymExpr to);
  Meta renamed(TensorMeta a, const TensorMeta& b);
  std::map<std::string, SymExpr> names_;
};

}  // namespace partita
