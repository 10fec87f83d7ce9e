#pragma once
// Lowerings of what reads and writes at positions from memory share this.
#include "core/ops/record/lower_call.h"

namespace partita::loops {

using Write = Definition::Write;

/// How indices that are read from memory are brought into the range of a dimension.
struct Reach {
  LoweredTensor index;
  Bound bound;
  bool checked = true;  ///< an index out of range is an error; else it is clamped, and its element is not used

  Reach(const LowerCall& call, LoweredTensor indices, std::size_t dim, SymExpr size, bool wraps, bool checked = true);

  /// The index as an expression. Its value is always in range, so a kernel never touches memory outside of the tensor.
  SymExpr position(Body& body, const Index& at) const;
};

LoweredTensor integer_index(LowerCall& call, std::string_view name);
/// A number counts as a vector of one element.
LoweredTensor as_vector(LowerCall& call, const LoweredTensor& t);
/// A number argument in each element. Only loops that are evaluated have complex numbers.
ElementFunction number_value(const LowerCall& call, std::string_view name, DType dtype);
Write whole(const LoweredTensor& t);

/// What a reduction argument names: sum, prod, mean, amax or amin, or the older add and multiply.
struct Combination {
  ScalarOp op;
  bool mean = false;  ///< sums are divided by their number
};
Combination combination(const std::string& name);

/// Values that are put to places of a tensor.
struct Put {
  SymList sizes;  ///< of the values
  ElementFunction value;
  IndexFunction place;
};
/// `self` with the values in the places of its elements.
LoweredTensor replaced(LowerCall& call, const LoweredTensor& self, const Put& put);
/// `self` with the values combined with its elements, which do not count unless `from_self`. Half types are combined in
/// float32 and rounded once, as in PyTorch's kernels; means of integers are floored. Loops that are compiled have sums,
/// and means of floats.
LoweredTensor combined(LowerCall& call, const LoweredTensor& self, const Put& put, Combination how,
                       bool from_self = true);

}  // namespace partita::loops
