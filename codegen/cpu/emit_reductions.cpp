// Emits running values of reductions: set before their loop, combined in it, reduced to one number after it.
#include <algorithm>

#include "codegen/cpu/emit_phase.h"

namespace partita::codegen {

using llvm::Value;
using loops::Loop;
using loops::Reduce;
using loops::ScalarOp;
using loops::Stmt;

bool PhaseEmitter::reduces(const Loop& l, int accumulator) {
  return std::ranges::any_of(l.body, [&](const Stmt& s) {
    if (auto* r = std::get_if<Reduce>(&s)) return r->accumulator == accumulator;
    auto* inner = std::get_if<Loop>(&s);
    return inner && reduces(*inner, accumulator);
  });
}

/// The vector loop, l or one in it, that combines an accumulator; null: none does.
const Loop* PhaseEmitter::lanes_that_reduce(int accumulator, const Loop& l) const {
  if (vector_.contains(&l)) return reduces(l, accumulator) ? &l : nullptr;
  for (const Stmt& s : l.body) {
    auto* inner = std::get_if<Loop>(&s);
    const Loop* found = inner ? lanes_that_reduce(accumulator, *inner) : nullptr;
    if (found) return found;
  }
  return nullptr;
}

void PhaseEmitter::start(const Loop& l) {
  for (int a : l.accumulators) {
    const loops::Accumulator& acc = kernel_.accumulators[static_cast<std::size_t>(a)];
    Running& running = running_[static_cast<std::size_t>(a)];
    const Loop* vector = active_ ? nullptr : lanes_that_reduce(a, l);
    running.lanes = vector || (active_ && reduces(l, a));
    if (vector) lanes_ = lanes_of_.at(vector);
    const std::int64_t integer = is_floating(acc.dtype) ? 0 : loops::integer_start(acc.dtype, acc.start);
    Value* initial = ops_.constant(acc.dtype, acc.start, integer);
    llvm::Type* type = initial->getType();
    if (running.lanes) {
      type = vector_of(type);
      initial = b_.CreateVectorSplat(width(), initial);
    }
    running.slot = slot(type);
    b_.CreateStore(initial, running.slot);
    forget([&](const Dependences::Node& d) { return d.accumulators.test(static_cast<unsigned>(a)); });
  }
}

void PhaseEmitter::complete(const Loop& l) {
  for (int a : l.accumulators) {
    const loops::Accumulator& acc = kernel_.accumulators[static_cast<std::size_t>(a)];
    Running& running = running_[static_cast<std::size_t>(a)];
    Value* v = b_.CreateLoad(running.slot->getAllocatedType(), running.slot);
    bool across = running.lanes && !active_;
    running.complete = {across ? horizontal(acc.combine, acc.dtype, v) : v, running.lanes && !across};
  }
}

Value* PhaseEmitter::horizontal(ScalarOp combine, DType dtype, Value* v) {
  for (unsigned n = llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); n > 1; n /= 2) {
    std::vector<int> low(n / 2), high(n / 2);
    for (unsigned i = 0; i < n / 2; ++i) {
      low[i] = static_cast<int>(i);
      high[i] = static_cast<int>(i + n / 2);
    }
    v = ops_.apply(combine, dtype, {b_.CreateShuffleVector(v, low), b_.CreateShuffleVector(v, high)});
  }
  return b_.CreateExtractElement(v, std::uint64_t{0});
}

void PhaseEmitter::reduce(const Reduce& r) {
  const loops::Accumulator& acc = kernel_.accumulators[static_cast<std::size_t>(r.accumulator)];
  Running& running = running_[static_cast<std::size_t>(r.accumulator)];
  Val v = value(r.value);
  v.v = ops_.cast(v.v, kernel_.scalars.dtype(r.value), acc.dtype);
  Value* old = b_.CreateLoad(running.slot->getAllocatedType(), running.slot);
  if (running.lanes && !active_) {
    // Outside of the vector loop, lane 0 takes the value.
    Value* lane = ops_.apply(acc.combine, acc.dtype, {b_.CreateExtractElement(old, std::uint64_t{0}), v.v});
    b_.CreateStore(b_.CreateInsertElement(old, lane, std::uint64_t{0}), running.slot);
    return;
  }
  Value* combined = ops_.apply(acc.combine, acc.dtype, {old, running.lanes ? spread(v) : v.v});
  if (running.lanes && active_->mask) combined = b_.CreateSelect(active_->mask, combined, old);
  b_.CreateStore(combined, running.slot);
}

}  // namespace partita::codegen
