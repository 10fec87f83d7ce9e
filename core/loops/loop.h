#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/loops/scalar.h"

namespace partita::loops {

/// Memory that a kernel reads or writes.
struct Buffer {
  enum class Role : std::uint8_t {
    Input,    ///< read only; memory of the caller
    Output,   ///< written; memory of the caller; may be read after it was written
    Scratch,  ///< private to one iteration of the parallel loop, e.g. a row kept in cache; `elements` is its size
  };
  std::string name;
  DType dtype = DType::Float32;
  SymExpr elements;
  Role role = Role::Input;
  /// True for an Output that starts at a 64-byte boundary, that the kernel does not load, and that is read only after
  /// it would have left the cache: stores may bypass the caches.
  bool streamed = false;
};

/// The running value of a reduction. It is set to `start` just before its loop and is complete just after it. From
/// there on ScalarOp::Input reads it, with its index in Kernel::accumulators as slot.
struct Accumulator {
  ScalarOp combine = ScalarOp::Add;  ///< Add, Mul, Min, Max, BitAnd, BitOr
  DType dtype = DType::Float32;
  double start = 0;  ///< the identity of combine: 0, 1, +inf, -inf; for integers the extreme value (2^63 saturates)
};
/// `start` in an integer dtype. No double is the largest 64-bit integer; the next double above it stands for it.
std::int64_t integer_start(DType dtype, double start);

struct Loop;
/// buffer[element] = value, or buffer[element] += value (scatter). A loop around the latter is never parallel.
struct Store {
  int buffer = 0;
  SymExpr element;
  Scalar index;  ///< if valid, this computed int64 is added to `element` (scatter)
  Scalar value;
  bool accumulate = false;
};
/// accumulator = combine(accumulator, value)
struct Reduce {
  int accumulator = 0;
  Scalar value;
};
using Stmt = std::variant<Store, Reduce, Loop>;

struct Loop {
  std::string var;  ///< a symbol of index expressions: "i0", unique within the kernel
  SymExpr extent;   ///< number of iterations, from 0; may depend on outer variables (a shorter last block)
  bool parallel = false;  ///< iterations are independent; only outermost loops may have it
  bool vector = false;    ///< innermost only: iterations are independent except for Reduce; may be parallel too
  std::vector<int> accumulators;  ///< accumulators that start before this loop and are complete after it
  std::vector<Stmt> body;
};

/// One fused loop nest, which a backend emits as one function. `scalars` holds every value. A value is computed where
/// it is used, in the innermost loop whose variable it depends on. A loop may load an element that it stores only just
/// before it stores it (x[i] = x[i] + 1); later loops over other variables may load what a loop stored.
struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Accumulator> accumulators;
  ScalarBuilder scalars;
  std::vector<Stmt> body;
  std::vector<std::string> origins;  ///< names of the graph nodes fused into it, in order
};

/// Readable text with one statement per line.
std::string print(const Kernel& kernel);
/// The broken rules (unknown buffer, variable out of scope, use of an incomplete accumulator); empty when there are
/// none.
std::vector<std::string> verify(const Kernel& kernel);

}  // namespace partita::loops
