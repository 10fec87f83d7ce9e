#pragma once
#include <map>
#include <string>

#include "core/ir/meta.h"

namespace partita {

/// Compares metas whose unbacked symbols (u0, zuf0) may be called otherwise; what a symbol was taken for once it is for
/// the metas that follow.
class UnbackedRenaming {
 public:
  /// Are they equal when the symbols of the first are renamed?
  bool same(const Meta& a, const Meta& b);

 private:
  SymExpr rename(SymExpr from, SymExpr to);
  Meta renamed(TensorMeta a, const TensorMeta& b);
  std::map<std::string, SymExpr> names_;
};

}  // namespace partita
