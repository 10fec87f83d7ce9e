#pragma once
#include <complex>
#include <cstdint>
#include <functional>
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
  Input,  ///< input `slot` of a body; in loops, accumulator `slot`
  Index,  ///< `index`, an int64 expression of loop variables and sizes
  Load,   ///< buffer `slot` at element `index`, plus the computed int64 args[0] if valid; lowering makes these
  Where,  ///< args: condition (b8), then, else
  Cast,   ///< to dtype; floats truncate towards zero
  Bitcast,
  Within,  ///< args[0], an int64 checked to be in 0 .. index-1; `slot`: index into ScalarBuilder::bounds()
};

/// An index whose value is known only at run time, and what the error says when it is out of range.
struct Bound {
  std::string node;   ///< name of the graph node
  std::string space;  ///< what the error says, with {} for the index that was given and for the size
  SymExpr size = 0;   ///< of what is indexed; 0 only where loops are evaluated
  bool wraps = true;  ///< negative indices count from the end: `size` was already added to them
  bool operator==(const Bound&) const = default;
};
/// The error ops.arguments that evaluating the operator gives. `position`: the index after wrapping. Precondition: the
/// bound's size is a number.
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

/// A DAG of scalar operations: the body of one loop. Equal nodes are made once. Constants fold where that is exact; x +
/// 0 does not, because of -0.0. Half types have no arithmetic: cast to f32 first.
class ScalarBuilder {
 public:
  /// What the values made from now on are computed for, for people who read the code: sources() keeps it with each
  /// value that is new. -1: nothing that can be named.
  int source = -1;
  const std::vector<int>& sources() const { return sources_; }  ///< by node
  /// Puts `name` of each source in its place.
  void map_sources(const std::function<int(int)>& name) {
    for (int& s : sources_)
      if (s >= 0) s = name(s);
  }

  const std::vector<ScalarNode>& nodes() const { return nodes_; }
  const ScalarNode& operator[](Scalar s) const { return nodes_[static_cast<std::size_t>(s.id)]; }
  DType dtype(Scalar s) const { return (*this)[s].dtype; }

  /// Leaves of a body: an operand of its own, and numbers.
  Scalar input(int slot, DType dtype);
  Scalar constant(DType dtype, double value);
  Scalar constant_int(DType dtype, std::int64_t value);
  Scalar index(SymExpr e);  ///< int64
  /// A number of elements, in a floating dtype.
  Scalar count(DType dtype, SymExpr n);
  Scalar load(int buffer, SymExpr element, DType dtype);
  /// A gather at `computed` (an int64) + `index`; the sum lies within the buffer. `computed` is often the same for all
  /// iterations of the innermost loop, whose variable then occurs only in `index`: a row of an embedding.
  Scalar load_at(int buffer, Scalar computed, DType dtype, SymExpr index = 0) {
    return intern({.op = ScalarOp::Load, .dtype = dtype, .args = {computed, {}, {}}, .slot = buffer, .index = index});
  }
  Scalar cast(Scalar a, DType dtype);     ///< a itself if it has the dtype
  Scalar bitcast(Scalar a, DType dtype);  ///< the same bits
  Scalar where(Scalar condition, Scalar a, Scalar b);
  /// `position` if it lies within 0 .. bound.size-1. Otherwise the run fails, and the value is 0.
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
  std::vector<int> sources_;
  std::vector<Bound> bounds_;
  std::unordered_multimap<std::uint64_t, std::int32_t> table_;
};

/// How many operands it has, 0 to 3.
int arity(ScalarOp op);
/// The cost of one operation (a column of scalar_ops.def); an addition costs 1. Operations that only move or name a
/// value cost 0.
int weight(ScalarOp op);
/// Is the operation computed by a polynomial or a library function, at about the cost of exp? False for Pow, because
/// its exponent is mostly a constant.
bool is_elementary(ScalarOp op);
std::string_view name(ScalarOp op);

}  // namespace partita::loops
