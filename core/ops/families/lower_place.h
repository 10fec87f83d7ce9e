#pragma once
// Lowerings that put tensors at places of the result share this.
#include "core/ops/lower_call.h"

namespace partita::loops {

using Write = Definition::Write;

/// Writes all elements of t into the result; element i goes to index target(i).
inline Write write(const LoweredTensor& t, DType dtype, IndexFunction target) {
  return {t.sizes, [t, dtype](Body& body, const Index& i) { return body.b.cast(body.read(t, i), dtype); },
          std::move(target)};
}

inline Write write(const LoweredTensor& t, DType dtype, std::size_t dim, SymExpr start, std::int64_t step = 1) {
  return write(t, dtype, [=](Body&, const Index& i) {
    Index at = i;
    at[dim] = i[dim] * step + start;
    return at;
  });
}

/// The argument `name` of a slice, as a place in 0 .. size; `otherwise` when it is None.
inline SymExpr slice_place(LowerCall& call, std::string_view name, SymExpr otherwise, SymExpr size) {
  SymExpr at = call.has(name) ? call.sym(name) : otherwise;
  if (call.test(sym_lt(at, 0), "a slice from the end")) at = at + size;
  if (call.test(sym_lt(at, 0), "a slice from before the start")) return 0;
  return call.test(sym_lt(size, at), "a slice beyond the end") ? size : at;
}

inline LoweredTensor unsqueezed(Lowering& to, const LoweredTensor& t, std::size_t dim) {
  SymList sizes = t.sizes;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  return to.reshape(t, sizes);
}

}  // namespace partita::loops
