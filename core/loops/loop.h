#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/loops/scalar.h"

namespace partita::loops {

/// Memory that a kernel reads or writes.
struct Buffer {
  enum class Role : std::uint8_t {
    Input,    ///< read only; memory of the caller
    Output,   ///< written; memory of the caller; may be read after it was written
    Scratch,  ///< memory that only the kernel uses, such as a row kept in cache
  };
  /// Which iterations share a scratch buffer. Its values last as long as they do.
  enum class Scope : std::uint8_t {
    Thread,  ///< one of the innermost Thread loop around it; without one, of the Block loop, or the whole kernel
    Block,   ///< one of the Block loop around it: all threads of a group
  };
  std::string name;
  DType dtype = DType::Float32;
  SymExpr elements;
  Role role = Role::Input;
  Scope scope = Scope::Thread;  ///< of Scratch
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
/// What a store does with the element's old value.
enum class Accumulate : std::uint8_t {
  None,    ///< replaces it
  Plain,   ///< adds to it; no other thread may do so at the same time
  Atomic,  ///< adds to it, as other threads may at the same time
};
/// buffer[element] = value, or += value.
struct Store {
  int buffer = 0;
  SymExpr element;
  Scalar index;  ///< if valid, this computed int64 is added to `element` (scatter)
  Scalar value;
  Accumulate accumulate = Accumulate::None;
};
/// accumulator = combine(accumulator, value)
struct Reduce {
  int accumulator = 0;
  Scalar value;
};
/// What threads stored before it they all see after it. In the kernel's body it holds for all threads; within a Block
/// loop, for the threads of one group. It never stands within a Thread loop.
struct Barrier {};
using Stmt = std::variant<Store, Reduce, Barrier, Loop>;

/// Who runs the iterations of a loop.
enum class Mapping : std::uint8_t {
  Serial,  ///< the current thread, one after the other
  Unroll,  ///< as Serial, but written out; the extent is a number
  Thread,  ///< several threads, in any order; within a Block loop, those of its group. It is outermost, or the only
           ///< statement of a Thread loop, or within a Block loop: only there it may have accumulators
  Block,   ///< groups of threads, in any order; outermost. One thread of a group runs what is not in its Thread loops
};

struct Loop {
  std::string var;  ///< a symbol of index expressions: "i0", unique within the kernel
  SymExpr extent;   ///< number of iterations, from 0; may depend on outer variables (a shorter last block)
  Mapping mapping = Mapping::Serial;
  /// Neighbouring iterations run in the lanes of a vector, whatever the mapping. They are independent except for
  /// Reduce, and there is no loop within.
  bool vector = false;
  std::vector<int> accumulators;  ///< accumulators that start before this loop and are complete after it
  std::vector<Stmt> body;

  /// Do its iterations run at the same time, on several threads?
  bool parallel() const { return mapping == Mapping::Thread || mapping == Mapping::Block; }
};

/// One fused loop nest, which a backend emits as one function. `scalars` holds every value. A value is computed where
/// it is used, in the innermost loop whose variable it depends on. A loop may load an element that it stores only just
/// before it stores it (x[i] = x[i] + 1). A later loop over another variable may load what a loop stored; if one of the
/// two is parallel, a Barrier is between them.
struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Accumulator> accumulators;
  ScalarBuilder scalars;
  std::vector<Stmt> body;
  std::vector<std::string> origins;  ///< names of the graph nodes fused into it, in order; sources of scalars count it
};

/// Text whose lines are known to come from graph nodes. `lines` has for each line indices into Kernel::origins, sorted.
struct LinkedText {
  std::string text;
  std::vector<std::vector<int>> lines;

  /// Appends a line, to which the text is without its newline.
  void add(std::string_view line, std::vector<int> sources = {});
};

/// Readable text with one statement per line.
std::string print(const Kernel& kernel);
/// The same, with the nodes that the values on each line are computed for.
LinkedText print_linked(const Kernel& kernel);
/// The broken rules (unknown buffer, variable out of scope, use of an incomplete accumulator, a missing barrier, a sum
/// that is not atomic, scratch beyond its scope); empty when there are none.
std::vector<std::string> verify(const Kernel& kernel);
std::string_view name(Mapping mapping);  ///< "thread"

}  // namespace partita::loops
