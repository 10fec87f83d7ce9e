#pragma once
// Bytes and operations as text: "10.2 KiB", or an expression where a symbol has no hint.
#include "views/look/format.h"
#include "views/picture/picture.h"

namespace partita::views {

inline QString expression_text(SymExpr e) {
  constexpr qsizetype kLongest = 60;
  const QString expression = text(e.str());
  return expression.size() > kLongest ? expression.left(kLongest - 1) + QString::fromUtf8("…") : expression;
}

inline QString size_text(const ByteSum& sum) {
  if (sum.unknown.is(0)) return bytes_text(sum.known);
  return expression_text(sum.unknown + SymExpr(sum.known)) + " B";
}

/// "182 k", or "2*s0*768".
inline QString operations_text(SymExpr operations) {
  return operations.is_int() ? amount_text(static_cast<double>(operations.as_int())) : expression_text(operations);
}

inline QString size_text(const Meta& meta, const ShapeEnv* shapes) {
  ByteSum sum;
  sum.add(meta, shapes);
  return size_text(sum);
}

inline QString size_text(const SavedValue& value, const UnknownBytes& unknown) {
  const auto found = unknown.of.find(value.name);
  return found == unknown.of.end() ? bytes_text(value.bytes) : size_text(ByteSum{0, found->second});
}

inline QString kept_inputs_text(const UnknownBytes& saved) {
  return count_text(saved.kept_inputs, "input") + " kept, " + size_text(saved.inputs);
}

}  // namespace partita::views
