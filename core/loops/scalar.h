#pragma once
#include <complex>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <string>
#include <vector>

#include "core/sym/sym_expr.h"
#include "core/tensor/dtype.h"

namespace partita::loops {

enum class ScalarOp : std::uint8_t {
#define SCALAR_OP(name, ...) name,
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
  Const,  ///< `real` / `integer`
  Input,  ///< input `slot` of a body; in loops the value loaded there
  Index,  ///< an integer expression of loop variables and sizes, as int64: `index`
  Load,   ///< buffer `slot` at element `index`, plus the computed int64 args[0] where valid; lowering makes these
  Where,  ///< args: condition (b8), then, else
  Cast,   ///< to dtype; floats truncate towards zero
  Bitcast,
};

/// A value within one ScalarBuilder.
struct Scalar {
  std::int32_t id = -1;
  bool operator==(const Scalar&) const = default;
};

struct ScalarNode {
  ScalarOp op;
  DType dtype;
  Scalar args[3];
  int slot = 0;
  double real = 0;
  std::int64_t integer = 0;
  SymExpr index = 0;
  bool operator==(const ScalarNode&) const;
};

/// A DAG of scalar operations: the body of one loop. Equal nodes are made once; constants fold where exact (x + 0 is not
/// folded: -0.0). Half types are not computed with: cast to f32 first.
class ScalarBuilder {
 public:
  const std::vector<ScalarNode>& nodes() const { return nodes_; }
  const ScalarNode& operator[](Scalar s) const { return nodes_[static_cast<std::size_t>(s.id)]; }
  DType dtype(Scalar s) const { return (*this)[s].dtype; }

  Scalar input(int slot, DType dtype);
  Scalar constant(DType dtype, double value);
  Scalar constant_int(DType dtype, std::int64_t value);
  Scalar index(SymExpr e);                              ///< int64
  Scalar load(int buffer, SymExpr element, DType dtype);
  /// A gather at `computed` (an int64) + `index`; their sum lies within the buffer. `computed` is often the same for all
  /// iterations of the innermost loop, whose variable is in `index` alone: a row of an embedding.
  Scalar load_at(int buffer, Scalar computed, DType dtype, SymExpr index = 0) {
    return intern({.op = ScalarOp::Load, .dtype = dtype, .args = {computed, {}, {}}, .slot = buffer, .index = index});
  }
  Scalar cast(Scalar a, DType dtype);                   ///< itself when it has the dtype
  Scalar bitcast(Scalar a, DType dtype);
  Scalar where(Scalar condition, Scalar a, Scalar b);
  /// One row of scalar_ops.def. CHECKs arity and equal argument dtypes.
  Scalar make(ScalarOp op, Scalar a, Scalar b = {}, Scalar c = {});

#define SCALAR_OP(name, ...) \
  template <class... S>      \
  Scalar name(S... args) { return make(ScalarOp::name, args...); }
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP

 private:
  Scalar intern(ScalarNode node);
  std::vector<ScalarNode> nodes_;
  std::unordered_multimap<std::uint64_t, std::int32_t> table_;
};

int arity(ScalarOp op);
std::string_view name(ScalarOp op);

}  // namespace partita::loops
