#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/loops/scalar.h"

namespace partita::loops {

/// Memory that a kernel reads or writes.
struct Buffer {
  enum class Role : std::uint8_t {
    Input,    ///< read only, given by the caller
    Output,   ///< written, given by the caller; may be read after it was written
    Scratch,  ///< private to one iteration of the parallel loop: a row kept in cache; `elements` is its size
  };
  std::string name;
  DType dtype = DType::Float32;
  SymExpr elements;
  Role role = Role::Input;
  /// Of an Output at a 64-byte boundary that the kernel does not load: nobody reads it while it would still be cached,
  /// so stores may go past the caches.
  bool streamed = false;
};

/// A running value of a reduction. It starts at `start` just before its loop and is complete just after it; read there
/// by ScalarOp::Input with slot = its index in Kernel::accumulators.
struct Accumulator {
  ScalarOp combine = ScalarOp::Add;  ///< Add, Mul, Min, Max, BitAnd, BitOr
  DType dtype = DType::Float32;
  double start = 0;  ///< the identity of combine: 0, 1, +inf, -inf (integers: the extreme value, 2^63 saturates)
};
/// The bits of `start` in an integer dtype; the largest 64-bit integers, which no double is, are meant by the next.
std::int64_t integer_start(DType dtype, double start);

struct Loop;
/// buffer[element] = value, or buffer[element] += value (scatter; such loops are never parallel).
struct Store {
  int buffer = 0;
  SymExpr element;
  Scalar index;  ///< when valid, this computed int64 is added to `element` (scatter)
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
  SymExpr extent;   ///< iterations; the variable runs from 0; may depend on outer variables (a last, shorter block)
  bool parallel = false;  ///< iterations are independent; only outermost loops
  bool vector = false;    ///< innermost: iterations are independent but for Reduce; a loop may be parallel and vector
  std::vector<int> accumulators;  ///< that start before and are complete after this loop
  std::vector<Stmt> body;
};

/// One fused loop nest: what a backend emits as one function. `scalars` holds every value; a value is computed where it
/// is used, in the innermost loop whose variable it depends on. A loop never loads an element that it also stores,
/// other than the one it is about to store (x[i] = x[i] + 1): what one loop stored a later loop, of another variable,
/// may load.
struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Accumulator> accumulators;
  ScalarBuilder scalars;
  std::vector<Stmt> body;
  std::vector<std::string> origins;  ///< names of the graph nodes fused into it, in order
};

/// Readable text, one statement a line.
std::string print(const Kernel& kernel);
/// Broken rules (unknown buffer, variable out of scope, use of an incomplete accumulator), empty when sound.
std::vector<std::string> verify(const Kernel& kernel);

}  // namespace partita::loops
