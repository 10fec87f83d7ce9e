// Emits loads and stores: of one element, of neighbours, gathers and scatters.
#include <algorithm>

#include "codegen/cpu/emit_phase.h"

namespace partita::codegen {

using llvm::BasicBlock;
using llvm::Value;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Store;

Value* PhaseEmitter::pointer(int buffer, Value* element) {
  return b_.CreateGEP(ops_.memory_type(buffer_dtype(buffer)), pointers_[static_cast<std::size_t>(buffer)], element);
}

PhaseEmitter::Val PhaseEmitter::load(const ScalarNode& n) {
  ElementIndex p{n.index, n.args[0]};
  if (!active_) return {load_scalar(n.slot, first_element(p)), false};
  auto move = step(p);
  if (move && move->is(0)) return {load_scalar(n.slot, first_element(p)), false};
  if (move && move->is(1)) {
    Value* first = first_element(p);
    if (ahead_ && ahead_->buffers.contains(n.slot)) ask_for_next_row(n, first);
    return {load_contiguous(n.slot, first), true};
  }
  return {load_gather(n.slot, element_of_each_lane(p)), true};
}

/// Brings what lies a row after the lanes that begin at `first` into the first cache. A long row would push out what
/// the loop still reads.
void PhaseEmitter::ask_for_next_row(const ScalarNode& n, Value* first) {
  constexpr std::int64_t longest = 1 << 16;  // bytes
  constexpr std::uint64_t line = 64;
  const auto row = lane_step(n.index, ahead_->rows, 1);
  const auto item = static_cast<std::int64_t>(itemsize(buffer_dtype(n.slot)));
  if (!row || !row->is_int() || row->as_int() <= 0 || row->as_int() > longest / item) return;
  constexpr int reading = 0, keep = 3, data = 1;
  Value* next = pointer(n.slot, b_.CreateAdd(first, b_.getInt64(static_cast<std::uint64_t>(row->as_int()))));
  for (std::uint64_t at = 0; at < width() * static_cast<std::uint64_t>(item); at += line) {
    Value* p = b_.CreateGEP(b_.getInt8Ty(), next, b_.getInt64(at));
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                       {p, b_.getInt32(reading), b_.getInt32(keep), b_.getInt32(data)});
  }
}

Value* PhaseEmitter::load_scalar(int buffer, Value* element) {
  DType dtype = buffer_dtype(buffer);
  auto* v = b_.CreateAlignedLoad(ops_.memory_type(dtype), pointer(buffer, element), llvm::Align(itemsize(dtype)));
  return ops_.from_memory(v, dtype);
}

Value* PhaseEmitter::load_contiguous(int buffer, Value* element) {
  DType dtype = buffer_dtype(buffer);
  llvm::Align align(itemsize(dtype));
  llvm::Type* type = vector_of(ops_.memory_type(dtype));
  Value* p = pointer(buffer, element);
  Value* v = active_->mask ? b_.CreateMaskedLoad(type, p, align, active_->mask, llvm::Constant::getNullValue(type))
                           : static_cast<Value*>(b_.CreateAlignedLoad(type, p, align));
  return ops_.from_memory(v, dtype);
}

Value* PhaseEmitter::load_gather(int buffer, Value* elements) {
  DType dtype = buffer_dtype(buffer);
  llvm::Type* type = vector_of(ops_.memory_type(dtype));
  Value* mask = active_->mask ? active_->mask : llvm::ConstantInt::getTrue(vector_of(b_.getInt1Ty()));
  Value* v = b_.CreateMaskedGather(type, pointer(buffer, elements), llvm::Align(itemsize(dtype)), mask,
                                   llvm::Constant::getNullValue(type));
  return ops_.from_memory(v, dtype);
}

/// Half types are added in single precision.
Value* PhaseEmitter::sum(Value* x, Value* y, DType dtype) {
  const DType wide = itemsize(dtype) == 2 && is_floating(dtype) ? DType::Float32 : dtype;
  return ops_.cast(ops_.apply(ScalarOp::Add, wide, {ops_.cast(x, dtype, wide), ops_.cast(y, dtype, wide)}), wide,
                   dtype);
}

void PhaseEmitter::store(const Store& s) {
  DType dtype = buffer_dtype(s.buffer);
  const bool adds = s.accumulate != loops::Accumulate::None;
  Val v = value(s.value);
  v.v = ops_.cast(v.v, kernel_.scalars.dtype(s.value), dtype);
  if (active_) {
    store_lanes(s, v, dtype);
  } else {
    Value* element = first_element({s.element, s.index});
    if (adds) v.v = sum(load_scalar(s.buffer, element), v.v, dtype);
    Value* stored = ops_.to_memory(v.v, dtype);
    b_.CreateAlignedStore(stored, pointer(s.buffer, element), llvm::Align(itemsize(dtype)));
  }
  forget([&](const Dependences::Node& d) { return d.buffers.test(static_cast<unsigned>(s.buffer)); });
}

void PhaseEmitter::store_lanes(const Store& s, Val v, DType dtype) {
  ElementIndex p{s.element, s.index};
  const bool adds = s.accumulate != loops::Accumulate::None;
  auto move = step(p);
  auto first = [&] { return first_element(p); };
  auto elements = [&] { return element_of_each_lane(p); };
  llvm::Align align(itemsize(dtype));
  if (move && move->is(1)) {
    Value* element = first();
    Value* all = spread(v);
    if (adds) all = sum(load_contiguous(s.buffer, element), all, dtype);
    Value* stored = ops_.to_memory(all, dtype);
    if (active_->mask)
      b_.CreateMaskedStore(stored, pointer(s.buffer, element), align, active_->mask);
    else
      store_vector(s, stored, element);
    return;
  }
  bool distinct = move && move->is_int() && !move->is(0);
  if (adds && !distinct) {
    Value* index = elements();
    return add_each_lane(b_.CreateSExt(index, vector_of(b_.getInt64Ty())), spread(v), dtype, s.buffer);
  }
  if (move && move->is(0)) {
    // All lanes store to one element; the last iteration wins.
    Value* last = v.lanes ? b_.CreateExtractElement(v.v, b_.CreateSub(active_->count, b_.getInt64(1))) : v.v;
    b_.CreateAlignedStore(ops_.to_memory(last, dtype), pointer(s.buffer, first()), align);
    return;
  }
  Value* index = elements();
  Value* all = spread(v);
  if (adds) all = sum(load_gather(s.buffer, index), all, dtype);
  b_.CreateMaskedScatter(ops_.to_memory(all, dtype), pointer(s.buffer, index), align, active_->mask);
}

/// Stores all lanes to neighbouring elements. Bypasses the caches if the buffer asks for it and vectors begin at
/// multiples of their size.
void PhaseEmitter::store_vector(const Store& s, Value* stored, Value* element) {
  const std::size_t item = itemsize(buffer_dtype(s.buffer)), bytes = item * width();
  auto at_multiple = [&] {
    constexpr std::size_t line = 64;
    auto d = static_cast<std::size_t>(divisor(s.element, active_->var, lanes_));
    return s.index.id < 0 && std::min(bytes, line) >= 32 && d * item % std::min(bytes, line) == 0;
  };
  bool past_caches = kernel_.buffers[static_cast<std::size_t>(s.buffer)].streamed && at_multiple();
  llvm::Align align(past_caches ? std::min<std::size_t>(bytes, 64) : item);
  llvm::StoreInst* store = b_.CreateAlignedStore(stored, pointer(s.buffer, element), align);
  if (!past_caches) return;
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b_.getContext(), one));
  streams_ = true;
}

/// Adds lane by lane, so that lanes with equal indices add up.
void PhaseEmitter::add_each_lane(Value* index, Value* v, DType dtype, int buffer) {
  llvm::Type* i64 = b_.getInt64Ty();
  Value* stored = ops_.to_memory(v, dtype);
  llvm::Type* element = ops_.memory_type(dtype);
  Value* indices = slot(index->getType());
  Value* values = slot(stored->getType());
  b_.CreateStore(index, indices);
  b_.CreateStore(stored, values);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* body = block("each_lane");
  BasicBlock* after = block("after_lanes");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  auto* i = b_.CreatePHI(i64, 2);
  i->addIncoming(b_.getInt64(0), before);
  Value* where = pointer(buffer, b_.CreateLoad(i64, b_.CreateGEP(i64, indices, i)));
  Value* old = ops_.from_memory(b_.CreateLoad(element, where), dtype);
  Value* more = ops_.from_memory(b_.CreateLoad(element, b_.CreateGEP(element, values, i)), dtype);
  b_.CreateStore(ops_.to_memory(sum(old, more, dtype), dtype), where);
  Value* next = b_.CreateAdd(i, b_.getInt64(1));
  i->addIncoming(next, body);
  b_.CreateCondBr(b_.CreateICmpSLT(next, active_->count), body, after);
  b_.SetInsertPoint(after);
}

}  // namespace partita::codegen
