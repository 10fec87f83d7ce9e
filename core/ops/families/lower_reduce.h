#pragma once
// What lowerings of reductions are made of.
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"

namespace partita::loops {

/// Which dimensions the call reduces; all, if it has no `dim`.
inline std::vector<bool> reduced_dims(LowerCall& call, std::size_t rank) {
  if (call.schema.index_of("dim") < 0) return std::vector<bool>(rank, true);
  return call.dims("dim", rank);
}

/// `self` converted to the result's dtype `out`, then to the dtype in which its sum is accumulated.
inline LoweredTensor summand(LowerCall& call, DType out) {
  return call.to.cast(call.to.cast(call.in("self"), out), opmath_dtype(out));
}

/// How many elements are reduced to one.
inline SymExpr count(const LoweredTensor& t, const std::vector<bool>& reduced) {
  SymExpr n = 1;
  for (std::size_t d = 0; d < reduced.size(); ++d)
    if (reduced[d]) n = n * t.sizes[d];
  return n;
}

/// Each element by a number of elements.
inline LoweredTensor divided(Lowering& to, const LoweredTensor& t, SymExpr by) {
  return pointwise(to, t.dtype, t.dtype, {t},
                   [=](ScalarBuilder& b, auto x) { return b.Div(x[0], b.count(b.dtype(x[0]), by)); });
}

}  // namespace partita::loops
