#pragma once
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
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
  Within,  ///< args[0], an int64, brought into 0 .. integer-1; one outside is an error: `slot` of
           ///< ScalarBuilder::bounds()
};

/// An index that a graph's input decides, and what to say of one out of range.
struct Bound {
  std::string node;       ///< of the graph
  std::string space;      ///< what is indexed: "dimension 0"
  std::int64_t size = 0;  ///< of it, at least 1
  bool wraps = true;      ///< negative indices count from the end: `size` was added to them
  bool operator==(const Bound&) const = default;
};
/// Error ops.arguments, as evaluating the operator gives it. `position`: after wrapping.
Diagnostic out_of_bounds(const Bound& bound, std::int64_t position);

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

/// A DAG of scalar operations: the body of one loop. Equal nodes are made once; constants fold where exact (x + 0 is
/// not folded: -0.0). Half types are not computed with: cast to f32 first.
class ScalarBuilder {
 public:
  const std::vector<ScalarNode>& nodes() const { return nodes_; }
  const ScalarNode& operator[](Scalar s) const { return nodes_[static_cast<std::size_t>(s.id)]; }
  DType dtype(Scalar s) const { return (*this)[s].dtype; }

  Scalar input(int slot, DType dtype);
  Scalar constant(DType dtype, double value);
  Scalar constant_int(DType dtype, std::int64_t value);
  Scalar index(SymExpr e);  ///< int64
  Scalar load(int buffer, SymExpr element, DType dtype);
  /// A gather at `computed` (an int64) + `index`; their sum lies within the buffer. `computed` is often the same for
  /// all iterations of the innermost loop, whose variable is in `index` alone: a row of an embedding.
  Scalar load_at(int buffer, Scalar computed, DType dtype, SymExpr index = 0) {
    return intern({.op = ScalarOp::Load, .dtype = dtype, .args = {computed, {}, {}}, .slot = buffer, .index = index});
  }
  Scalar cast(Scalar a, DType dtype);  ///< itself when it has the dtype
  Scalar bitcast(Scalar a, DType dtype);
  Scalar where(Scalar condition, Scalar a, Scalar b);
  /// `position` where it lies within 0 .. bound.size-1; elsewhere the run fails, and the value is 0.
  Scalar within(Scalar position, const Bound& bound);
  const std::vector<Bound>& bounds() const { return bounds_; }
  /// One row of scalar_ops.def. CHECKs arity and equal argument dtypes.
  Scalar make(ScalarOp op, Scalar a, Scalar b = {}, Scalar c = {});

#define SCALAR_OP(name, ...)              \
  template <class... S>                   \
  Scalar name(S... args) {                \
    return make(ScalarOp::name, args...); \
  }
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP

 private:
  Scalar intern(ScalarNode node);
  std::vector<ScalarNode> nodes_;
  std::vector<Bound> bounds_;
  std::unordered_multimap<std::uint64_t, std::int32_t> table_;
};

int arity(ScalarOp op);
/// Cost of one operation, an addition being 1: the column of scalar_ops.def. What only moves or names a value costs 0.
int weight(ScalarOp op);
/// Computed by a polynomial or by a library's function, about as costly as exp. Not Pow, whose exponent is mostly
/// known.
bool is_elementary(ScalarOp op);
std::string_view name(ScalarOp op);

}  // namespace partita::loops
