#pragma once
// Lowerings of what reads positions from memory share this.
#include "core/ops/record/lower_call.h"

namespace partita::loops {

using Write = Definition::Write;

/// How indices that are read from memory are brought into the range of a dimension.
struct Reach {
  Bound bound;
  bool checked = true;  ///< an index out of range is an error; else it is clamped, and its element is not used

  Reach(const LowerCall& call, std::size_t dim, SymExpr size, bool wraps, bool checked = true)
      : bound{call.to.origin, "dimension " + std::to_string(dim), size, wraps}, checked(checked) {
    // The call stays a call, which reports an index that is out of range. Loops would not read indices into size 1.
    if (size.is(0) || (checked && size.is(1))) fail_unsupported("indices into a dimension of size " + size.str());
  }

  /// The index as an expression. Its value is always in range, so a kernel never touches memory outside of the tensor.
  SymExpr position(Body& body, const LoweredTensor& index, const Index& at) const {
    ScalarBuilder& b = body.b;
    Scalar i = b.cast(body.read(index, at), DType::Int64);
    Scalar zero = b.constant_int(DType::Int64, 0);
    if (bound.wraps) i = b.where(b.Lt(i, zero), b.Add(i, b.index(bound.size)), i);
    if (checked) return body.indirect(b.within(i, bound), bound.size);
    return body.indirect(b.Max(b.Min(i, b.index(bound.size - 1)), zero), bound.size);
  }
};

inline LoweredTensor integer_index(LowerCall& call, std::string_view name) {
  LoweredTensor index = call.in(name);
  if (!is_integral(index.dtype)) fail_unsupported("an index of " + std::string(torch_name(index.dtype)));
  return index;
}

inline Write whole(const LoweredTensor& t) {
  return {t.sizes, [t](Body& body, const Index& i) { return body.read(t, i); },
          [](Body&, const Index& i) { return i; }};
}

}  // namespace partita::loops
