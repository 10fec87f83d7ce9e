#pragma once
#include <map>
#include <string>

#include "core/ir/meta.h"
#include "core/sym/shape_env.h"

namespace partita {

/// Compares metas whose unbacked symbols (u0, zuf0) may have other names, by what is known of the sizes. A pair of
/// names found once must hold for all metas compared later.
class UnbackedRenaming {
 public:
  explicit UnbackedRenaming(const ShapeEnv& shapes) : shapes_(shapes) {}
  /// Are the metas equal if the symbols of the first are renamed?
  bool same(const Meta& a, const Meta& b);

 private:
  SymExpr rename(SymExpr from, SymExpr to);
  bool same_tensors(TensorMeta a, TensorMeta b);
  const ShapeEnv& shapes_;
  std::map<std::string, SymExpr> names_;
};

}  // namespace partita
