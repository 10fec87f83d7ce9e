#pragma once
// Lowerings that put tensors at places of the result share this.
#include <algorithm>
#include <span>

#include "core/ops/record/lower_call.h"

namespace partita::loops {

using Write = Definition::Write;

/// Writes all elements of t into the result; element i goes to index target(i).
inline Write write(const LoweredTensor& t, DType dtype, IndexFunction target) {
  return {t.sizes, [t, dtype](Body& body, const Index& i) { return body.b.cast(body.read(t, i), dtype); },
          std::move(target)};
}

/// Writes t to every `step`-th index from `start` of a dimension.
inline Write write(const LoweredTensor& t, DType dtype, std::size_t dim, SymExpr start, std::int64_t step = 1) {
  return write(t, dtype, [=](Body&, const Index& i) {
    Index at = i;
    at[dim] = i[dim] * step + start;
    return at;
  });
}

/// A part of a result, whose first element goes to index `start`. All are numbers.
struct PlacedPart {
  LoweredTensor part;
  Sizes start;
};

/// Is a result of the target small enough to be one loop that picks the part that each element is of? Several loops are
/// several kernels, and what reads their result cannot be in them.
inline bool is_picked(const Lowering& to, DType dtype, const SymList& sizes, std::span<const LoweredTensor> parts) {
  constexpr std::size_t most_parts = 4;  // each element is computed of all
  // A part may have a symbol for a size that a guard makes a number.
  const bool numbers = concrete(sizes) && std::ranges::all_of(parts, [](const LoweredTensor& part) {
                         return concrete(part.sizes).has_value();
                       });
  return numbers && parts.size() <= most_parts && !is_complex(dtype) &&
         product(sizes).as_int() <= to.target().picked_elements;
}

/// The result of is_picked(): `base`, and over it the parts, later ones over earlier ones.
inline LoweredTensor picked(Lowering& to, DType dtype, const SymList& sizes, const ElementFunction& base,
                            const std::vector<PlacedPart>& parts) {
  return to.map(dtype, sizes, [=](Body& body, const Index& i) {
    Scalar value = base(body, i);
    for (const auto& [part, start] : parts) {
      Index inside = i;
      for (std::size_t d = 0; d < i.size(); ++d) {
        if (part.sizes[d] == sizes[d]) continue;
        const std::int64_t size = part.sizes[d].as_int();
        inside[d] = body.math.mod(i[d] + (size - start[d] % size) % size, size);  // an element, wherever i is
      }
      Scalar element = body.b.cast(body.read(part, inside), dtype);
      for (std::size_t d = 0; d < i.size(); ++d) {
        const std::int64_t end = start[d] + part.sizes[d].as_int();
        if (start[d] > 0) element = body.b.where(body.less(i[d], start[d]), value, element);
        if (end < sizes[d].as_int()) element = body.b.where(body.less(i[d], end), element, value);
      }
      value = element;
    }
    return value;
  });
}

/// The argument `name` of a slice, as a place in 0 .. size; `otherwise` when it is None.
inline SymExpr slice_place(LowerCall& call, std::string_view name, SymExpr otherwise, SymExpr size) {
  SymExpr at = call.has(name) ? call.sym(name) : otherwise;
  if (call.test(sym_lt(at, 0), "a slice from the end")) at = at + size;
  if (call.test(sym_lt(at, 0), "a slice from before the start")) return 0;
  return call.test(sym_lt(size, at), "a slice beyond the end") ? size : at;
}

/// With a dimension of size 1 before `dim`.
inline LoweredTensor unsqueezed(Lowering& to, const LoweredTensor& t, std::size_t dim) {
  SymList sizes = t.sizes;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  return to.reshape(t, sizes);
}

}  // namespace partita::loops
