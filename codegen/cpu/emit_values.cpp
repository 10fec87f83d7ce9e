// Emits scalar expressions, each in the outermost scope that it depends on, and the faults that they detect.
#include "codegen/cpu/emit_phase.h"
#include "codegen/host/runtime.h"

namespace partita::codegen {

using llvm::BasicBlock;
using llvm::Value;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;

PhaseEmitter::Val PhaseEmitter::value(Scalar s) {
  const ScalarNode& n = kernel_.scalars[s];
  if (n.op == ScalarOp::Const) return {ops_.constant(n.dtype, n.real, n.integer), false};
  if (n.op == ScalarOp::Input) return running_[static_cast<std::size_t>(n.slot)].complete;
  std::size_t at = depth(dependence(s));
  if (auto it = scopes_[at].values.find(s.id); it != scopes_[at].values.end()) return it->second;
  Val v;
  if (at + 1 == scopes_.size()) {
    const Marked marked(*this, s);
    v = compute(n);
  } else {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(scopes_[at + 1].before);
    const Marked marked(*this, s);
    v = compute(n);
  }
  scopes_[at].values[s.id] = v;
  return v;
}

/// Is it an integer division by a value that may be 0?
bool PhaseEmitter::may_divide_by_zero(const ScalarNode& n) const {
  if (n.op != ScalarOp::Div && n.op != ScalarOp::FloorDiv && n.op != ScalarOp::Fmod && n.op != ScalarOp::Remainder)
    return false;
  const ScalarNode& divisor = kernel_.scalars[n.args[1]];
  return !is_floating(n.dtype) && (divisor.op != ScalarOp::Const || divisor.integer == 0);
}

/// An int64 in 32 bits, if it is known to fit: of 64-bit lanes a register holds half as many.
std::optional<PhaseEmitter::Val> PhaseEmitter::narrowed(Scalar s) {
  const ScalarNode& n = kernel_.scalars[s];
  llvm::Type* i32 = b_.getInt32Ty();
  const auto fits = [](std::int64_t v) { return v == static_cast<std::int32_t>(v); };
  if (n.op == ScalarOp::Index) {
    if (!is_small(n.index)) return std::nullopt;
    const auto move = step(n.index);
    if (move && move->is(0)) return Val{b_.CreateTrunc(sym(n.index), i32), false};
    return Val{sym_lanes(n.index, i32), true};
  }
  const bool constant = n.op == ScalarOp::Const && fits(n.integer);
  const bool bounded = n.op == ScalarOp::Within && n.index.is_int() && fits(n.index.as_int());
  if (!constant && !bounded) return std::nullopt;
  const Val v = value(s);
  return v.lanes ? std::nullopt : std::optional(Val{b_.CreateTrunc(v.v, i32), false});
}

PhaseEmitter::Val PhaseEmitter::compute(const ScalarNode& n) {
  if (n.op == ScalarOp::Load) return load(n);
  if (n.op == ScalarOp::Index) {
    if (!active_) return {sym(n.index), false};
    auto move = step(n.index);
    if (move && move->is(0)) return {sym(n.index), false};
    return {b_.CreateSExt(sym_lanes(n.index), vector_of(b_.getInt64Ty())), true};
  }
  if (n.op == ScalarOp::Pow) {
    const ScalarNode& exponent = kernel_.scalars[n.args[1]];
    if (exponent.op == ScalarOp::Const && is_floating(n.dtype)) {
      Val base = value(n.args[0]);
      if (Value* v = ops_.constant_power(base.v, exponent.real)) return {v, base.lanes};
    }
  }
  const bool compares = n.op == ScalarOp::Eq || n.op == ScalarOp::Ne || n.op == ScalarOp::Lt || n.op == ScalarOp::Le;
  if (active_ && compares && kernel_.scalars.dtype(n.args[0]) == DType::Int64) {
    const auto x = narrowed(n.args[0]), y = narrowed(n.args[1]);
    if (x && y && (x->lanes || y->lanes)) return {ops_.apply(n.op, DType::Int32, {spread(*x), spread(*y)}), true};
  }
  std::vector<Val> vals;
  bool lanes = false;
  for (Scalar a : n.args) {
    if (a.id < 0) continue;
    vals.push_back(value(a));
    lanes |= vals.back().lanes;
  }
  std::vector<Value*> args;
  for (Val v : vals) args.push_back(lanes ? spread(v) : v.v);
  switch (n.op) {
    case ScalarOp::Where:
      return {b_.CreateSelect(args[0], args[1], args[2]), lanes};
    case ScalarOp::Cast:
      return {ops_.cast(args[0], kernel_.scalars.dtype(n.args[0]), n.dtype), lanes};
    case ScalarOp::Bitcast:
      return {ops_.bitcast(args[0], n.dtype), lanes};
    case ScalarOp::Within: {
      Value* bad = b_.CreateICmpUGE(args[0], lanes ? b_.CreateVectorSplat(width(), sym(n.index)) : sym(n.index));
      fault(n.slot, {args[0], lanes}, bad);
      return {b_.CreateSelect(bad, llvm::Constant::getNullValue(args[0]->getType()), args[0]), lanes};
    }
    default:
      if (may_divide_by_zero(n)) {
        Value* bad = b_.CreateICmpEQ(args[1], llvm::Constant::getNullValue(args[1]->getType()));
        fault(KernelFault::zero_division, {bad, lanes}, bad);
      }
      return {ops_.apply(n.op, kernel_.scalars.dtype(n.args[0]), args), lanes};
  }
}

/// Stores `seen` in a slot if it is bad, and reports it at the end of the function, so that loops need no branches. The
/// slot starts with 0, which is not bad.
void PhaseEmitter::fault(std::int64_t which, Val seen, Value* bad) {
  if (seen.lanes && active_->mask) bad = b_.CreateAnd(bad, active_->mask);
  llvm::AllocaInst*& kept = faults_[{which, seen.lanes ? width() : 0}];
  if (!kept) {
    kept = slot(seen.v->getType());
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_end_);
    b_.CreateStore(llvm::Constant::getNullValue(seen.v->getType()), kept);
  }
  b_.CreateStore(b_.CreateSelect(bad, seen.v, b_.CreateLoad(kept->getAllocatedType(), kept)), kept);
}

void PhaseEmitter::report_faults() {
  for (const auto& [key, kept] : faults_) {
    Value* seen = b_.CreateLoad(kept->getAllocatedType(), kept);
    Value* bad = seen;
    if (key.first != KernelFault::zero_division) {
      Value* size = sym(kernel_.scalars.bounds()[static_cast<std::size_t>(key.first)].size);
      if (auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(seen->getType()))
        size = b_.CreateVectorSplat(lanes->getElementCount(), size);
      bad = b_.CreateICmpUGE(seen, size);
    }
    report(key.first, seen, bad);
  }
}

/// Calls the runtime if a lane is bad, with the value of the first such lane.
void PhaseEmitter::report(std::int64_t which, Value* seen, Value* bad) {
  auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(bad->getType());
  BasicBlock* met = block("fault");
  BasicBlock* after = block("no_fault");
  b_.CreateCondBr(lanes ? b_.CreateOrReduce(bad) : bad, met, after);
  b_.SetInsertPoint(met);
  if (lanes) {
    Value* bits = b_.CreateBitCast(bad, b_.getIntNTy(lanes->getNumElements()));
    Value* first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
    seen = b_.CreateExtractElement(seen, b_.CreateZExtOrTrunc(first, b_.getInt64Ty()));
  }
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Type* ptr = b_.getPtrTy();
  auto function = module_.getOrInsertFunction(report_fault_symbol, b_.getVoidTy(), ptr, i64, i64);
  Value* fault = b_.CreateLoad(ptr, b_.CreateConstGEP1_64(ptr, function_->getArg(0), arguments_));
  b_.CreateCall(function, {fault, b_.getInt64(static_cast<std::uint64_t>(which)), b_.CreateZExtOrTrunc(seen, i64)});
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace partita::codegen
