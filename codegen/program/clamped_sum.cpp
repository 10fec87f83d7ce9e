#include "codegen/program/clamped_sum.h"

#include "core/loops/loop.h"

namespace partita::codegen {
namespace {

using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;

/// The only store within loops that all threads share; null if there is more.
const loops::Store* only_store(const std::vector<loops::Stmt>& body) {
  if (body.size() != 1) return nullptr;
  if (const auto* loop = std::get_if<loops::Loop>(&body[0])) return only_store(loop->body);
  return std::get_if<loops::Store>(&body[0]);
}

}  // namespace

std::optional<ClampedSum> clamped_sum(const loops::Kernel& kernel) {
  const loops::Store* store = only_store(kernel.body);
  if (!store || store->buffer != 0 || store->index.id >= 0 || store->accumulate != loops::Accumulate::None)
    return std::nullopt;
  for (const loops::Buffer& b : kernel.buffers)
    if (b.dtype != DType::Float32) return std::nullopt;
  ClampedSum out;
  // The number that a Min or Max has beside the value, which becomes `value`.
  const auto bound = [&](Scalar& value) -> std::optional<double> {
    const ScalarNode& n = kernel.scalars[value];
    for (int i = 0; i < 2; ++i)
      if (const ScalarNode& number = kernel.scalars[n.args[i]]; number.op == ScalarOp::Const) {
        value = n.args[1 - i];
        return number.real;
      }
    return std::nullopt;
  };
  const auto element_of = [&](Scalar s) -> int {  // the buffer; -1: something else
    const ScalarNode& n = kernel.scalars[s];
    return n.op == ScalarOp::Load && n.args[0].id < 0 && n.index == store->element ? n.slot : -1;
  };
  Scalar value = store->value;
  if (kernel.scalars[value].op == ScalarOp::Min) {
    const auto high = bound(value);
    if (!high) return std::nullopt;
    out.high = *high;
  }
  if (kernel.scalars[value].op == ScalarOp::Max) {
    const auto low = bound(value);
    if (!low) return std::nullopt;
    out.low = *low;
  }
  if (out.low != out.low || out.high != out.high) return std::nullopt;
  if (const ScalarNode& sum = kernel.scalars[value]; sum.op == ScalarOp::Add) {
    const int a = element_of(sum.args[0]), b = element_of(sum.args[1]);
    if ((a == 0) == (b == 0) || a < 0 || b < 0) return std::nullopt;
    out.added = a + b;
    return out;
  }
  if (element_of(value) != 0) return std::nullopt;
  return out;
}

}  // namespace partita::codegen
