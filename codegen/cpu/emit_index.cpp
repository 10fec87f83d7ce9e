// Emits index expressions: for one lane, for all lanes, and as steps from lane to lane.
#include "codegen/cpu/emit_phase.h"
#include "core/base/check.h"
#include "core/base/mapped.h"

namespace partita::codegen {

using llvm::SmallBitVector;
using llvm::Value;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;

bool PhaseEmitter::in_lanes(Scalar s) const {
  const SmallBitVector& loops = dependence(s).loops;
  return active_ && loops.test(static_cast<unsigned>(deps_.loop_of_var.at(active_->var)));
}

std::optional<SymExpr> PhaseEmitter::step(const SymExpr& e) const {
  return lane_step(e, active_->var, lanes_);
}

std::optional<SymExpr> PhaseEmitter::step(Scalar s) const {
  if (!in_lanes(s)) return SymExpr(0);
  const ScalarNode& n = kernel_.scalars[s];
  switch (n.op) {
    case ScalarOp::Index:
      return step(n.index);
    case ScalarOp::Add:
    case ScalarOp::Sub: {
      auto x = step(n.args[0]), y = step(n.args[1]);
      if (!x || !y) return std::nullopt;
      return n.op == ScalarOp::Add ? *x + *y : *x - *y;
    }
    case ScalarOp::Mul: {
      auto factor = [&](Scalar constant, Scalar other) -> std::optional<SymExpr> {
        auto move = step(other);
        if (kernel_.scalars[constant].op != ScalarOp::Const || !move) return std::nullopt;
        return *move * SymExpr(kernel_.scalars[constant].integer);
      };
      if (auto move = factor(n.args[0], n.args[1])) return move;
      return factor(n.args[1], n.args[0]);
    }
    default:
      return std::nullopt;
  }
}

std::optional<SymExpr> PhaseEmitter::step(const ElementIndex& p) const {
  auto affine = step(p.element);
  if (p.computed.id < 0 || !affine) return affine;
  auto computed = step(p.computed);
  return computed ? std::optional(*affine + *computed) : std::nullopt;
}

Value* PhaseEmitter::first_element(const ElementIndex& p) {
  if (p.computed.id < 0) return sym(p.element);
  Value* computed = active_ ? first_lane(p.computed) : value(p.computed).v;
  return p.element.is(0) ? computed : b_.CreateAdd(sym(p.element), computed);
}

Value* PhaseEmitter::element_of_each_lane(const ElementIndex& p) {
  if (p.computed.id < 0) return sym_lanes(p.element);
  Value* computed = spread(value(p.computed));
  if (p.element.is(0)) return computed;
  return b_.CreateAdd(b_.CreateSExt(sym_lanes(p.element), computed->getType()), computed);
}

/// The value at lane 0 of a computed index that step() knows.
Value* PhaseEmitter::first_lane(Scalar s) {
  if (!in_lanes(s)) return value(s).v;
  const ScalarNode& n = kernel_.scalars[s];
  if (n.op == ScalarOp::Index) return sym(n.index);
  if (n.op == ScalarOp::Add) return b_.CreateAdd(first_lane(n.args[0]), first_lane(n.args[1]));
  if (n.op == ScalarOp::Sub) return b_.CreateSub(first_lane(n.args[0]), first_lane(n.args[1]));
  if (n.op == ScalarOp::Mul) return b_.CreateMul(first_lane(n.args[0]), first_lane(n.args[1]));
  CHECK(false, "no lane step");
}

Value* PhaseEmitter::iota(llvm::Type* element, std::int64_t step) {
  std::vector<llvm::Constant*> c;
  for (int i = 0; i < lanes_; ++i) c.push_back(llvm::ConstantInt::getSigned(element, i * step));
  return llvm::ConstantVector::get(c);
}

std::optional<IndexRange> PhaseEmitter::range_of(const SymExpr& e) const {
  return index_range(e, [&](const std::string& name) -> std::optional<std::int64_t> {
    auto it = extents_.find(name);
    return it == extents_.end() ? std::nullopt : std::optional(it->second);
  });
}

bool PhaseEmitter::non_negative(const SymExpr& e) const {
  auto range = range_of(e);
  return range && range->low >= 0;
}

Value* PhaseEmitter::sym_op(SymKind kind, const std::vector<Value*>& args, bool unsigned_ok) {
  Value* r = args[0];
  llvm::Type* const type = r->getType();
  auto whole = [&](std::int64_t v) { return llvm::ConstantInt::getSigned(type, v); };
  auto boolean = [&](Value* v) { return b_.CreateZExt(v, type); };
  if (kind == SymKind::Not) return boolean(b_.CreateICmpEQ(r, whole(0)));
  // Integer division of lanes is done lane by lane unless the divisor is a number. Double precision is exact for what
  // indexes memory, which is below 2^52: quotients differ from the next whole number by 1 / divisor at least.
  auto quotient = [&](Value* left, Value* right) {
    llvm::Type* real = type->getWithNewType(b_.getDoubleTy());
    Value* q = b_.CreateFDiv(b_.CreateSIToFP(left, real), b_.CreateSIToFP(right, real));
    return b_.CreateFPToSI(b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, q), type);
  };
  const bool by_reals = type->isVectorTy() && args.size() == 2 && !llvm::isa<llvm::Constant>(args[1]);
  auto next = [&](Value* left, Value* right) -> Value* {
    switch (kind) {
      case SymKind::Add:
        return b_.CreateAdd(left, right);
      case SymKind::Mul:
        return b_.CreateMul(left, right);
      case SymKind::FloorDiv: {
        if (by_reals) return quotient(left, right);
        if (unsigned_ok) return b_.CreateUDiv(left, right);
        Value* q = b_.CreateSDiv(left, right);
        Value* rest = b_.CreateSub(left, b_.CreateMul(q, right));
        Value* down =
            b_.CreateAnd(b_.CreateICmpNE(rest, whole(0)), b_.CreateICmpSLT(b_.CreateXor(left, right), whole(0)));
        return b_.CreateSelect(down, b_.CreateSub(q, whole(1)), q);
      }
      case SymKind::Mod: {
        if (by_reals) return b_.CreateSub(left, b_.CreateMul(quotient(left, right), right));
        if (unsigned_ok) return b_.CreateURem(left, right);
        Value* rest = b_.CreateSRem(left, right);
        Value* wrong =
            b_.CreateAnd(b_.CreateICmpNE(rest, whole(0)), b_.CreateICmpSLT(b_.CreateXor(rest, right), whole(0)));
        return b_.CreateSelect(wrong, b_.CreateAdd(rest, right), rest);
      }
      case SymKind::Min:
        return b_.CreateSelect(b_.CreateICmpSLT(left, right), left, right);
      case SymKind::Max:
        return b_.CreateSelect(b_.CreateICmpSGT(left, right), left, right);
      case SymKind::Eq:
        return boolean(b_.CreateICmpEQ(left, right));
      case SymKind::Ne:
        return boolean(b_.CreateICmpNE(left, right));
      case SymKind::Lt:
        return boolean(b_.CreateICmpSLT(left, right));
      case SymKind::Le:
        return boolean(b_.CreateICmpSLE(left, right));
      case SymKind::And:
        return b_.CreateAnd(left, right);
      case SymKind::Or:
        return b_.CreateOr(left, right);
      default:
        CHECK(false, "index expression");
    }
  };
  for (std::size_t i = 1; i < args.size(); ++i) r = next(r, args[i]);
  return r;
}

Value* PhaseEmitter::sym_op(const SymExpr& e, const std::function<Value*(const SymExpr&)>& emit) {
  if (e.kind() == SymKind::Pow) {
    Value* base = emit(e.args()[0]);
    return sym_op(SymKind::Mul, std::vector<Value*>(static_cast<std::size_t>(e.args()[1].as_int()), base), false);
  }
  if (e.kind() == SymKind::Call) {
    const auto how = e.name() == "CeilToInt"    ? llvm::Intrinsic::ceil
                     : e.name() == "FloorToInt" ? llvm::Intrinsic::floor
                                                : llvm::Intrinsic::trunc;
    Value* const rounded = b_.CreateUnaryIntrinsic(how, sym_real(e.args()[0], emit));
    return b_.CreateFPToSI(rounded, emit(0)->getType());
  }
  bool divides = e.kind() == SymKind::FloorDiv || e.kind() == SymKind::Mod;
  return sym_op(e.kind(), mapped(e.args(), emit),
                divides && non_negative(e.args()[0]) && e.args()[1].is_int() && e.args()[1].as_int() > 0);
}

Value* PhaseEmitter::sym_real(const SymExpr& e, const std::function<Value*(const SymExpr&)>& emit) {
  llvm::Type* const type = emit(0)->getType()->getWithNewType(b_.getDoubleTy());
  if (!e.is_float()) return b_.CreateSIToFP(emit(e), type);
  if (e.kind() == SymKind::Float) return llvm::ConstantFP::get(type, e.as_float());
  if (e.kind() == SymKind::Symbol) return b_.CreateBitCast(emit(e), type);
  Value* out = sym_real(e.args()[0], emit);  // of ToFloat
  for (SymExpr a : e.args().subspan(1)) {
    Value* const next = sym_real(a, emit);
    out = e.kind() == SymKind::Add   ? b_.CreateFAdd(out, next)
          : e.kind() == SymKind::Mul ? b_.CreateFMul(out, next)
                                     : b_.CreateFDiv(out, next);
  }
  return out;
}

Value* PhaseEmitter::sym(const SymExpr& e) {
  if (e.is_int()) return b_.getInt64(static_cast<std::uint64_t>(e.as_int()));
  if (e.kind() == SymKind::Symbol) {
    auto it = variables_.find(e.name());
    CHECK(it != variables_.end(), "unbound index symbol " + e.name() + " in " + kernel_.name);
    return it->second;
  }
  return sym_op(e, [&](const SymExpr& a) { return sym(a); });
}

/// Fits into 32 bits, with room for the indices of lanes beyond the extent, which are masked but still computed.
bool PhaseEmitter::is_small(const SymExpr& e) const {
  auto range = range_of(e);
  return range && range->low > -(std::int64_t{1} << 28) && range->high < (std::int64_t{1} << 28);
}

Value* PhaseEmitter::sym_lanes(const SymExpr& e) {
  return sym_lanes(e, is_small(e) ? b_.getInt32Ty() : b_.getInt64Ty());
}

Value* PhaseEmitter::sym_lanes(const SymExpr& e, llvm::Type* element) {
  auto scalar = [&] { return b_.CreateVectorSplat(width(), b_.CreateTrunc(sym(e), element)); };
  auto move = step(e);
  if (move && move->is(0)) return scalar();
  if (move && move->is_int()) return b_.CreateAdd(scalar(), iota(element, move->as_int()));
  if (move) {
    Value* by = b_.CreateVectorSplat(width(), b_.CreateTrunc(sym(*move), element));
    return b_.CreateAdd(scalar(), b_.CreateMul(by, iota(element, 1)));
  }
  return sym_op(e, [&](const SymExpr& a) { return sym_lanes(a, element); });
}

}  // namespace partita::codegen
