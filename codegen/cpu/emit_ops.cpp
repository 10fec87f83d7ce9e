// Scalar operations in LLVM IR, by the LLVM columns of scalar_ops.def: instructions, polynomials in single precision,
// and runtime functions called lane by lane. Also casts, powers with constant exponents, and NaN tests.
#include "codegen/cpu/emit_ops.h"

#include <fmt/format.h>
#include <llvm/IR/Intrinsics.h>

#include "codegen/host/runtime.h"
#include "core/base/check.h"

namespace partita::codegen {

using llvm::Value;
using loops::ScalarOp;
namespace Intrinsic = llvm::Intrinsic;

llvm::Type* OpEmitter::register_type(DType dtype) {
  if (dtype == DType::Bool) return b.getInt1Ty();
  return memory_type(dtype);
}

llvm::Type* OpEmitter::memory_type(DType dtype) {
  if (dtype == DType::Float16) return b.getHalfTy();
  if (dtype == DType::Float32) return b.getFloatTy();
  if (dtype == DType::Float64) return b.getDoubleTy();
  return b.getIntNTy(static_cast<unsigned>(itemsize(dtype)) * 8);
}

llvm::Type* OpEmitter::shaped(llvm::Type* element, Value* like) {
  if (auto* v = llvm::dyn_cast<llvm::VectorType>(like->getType())) return llvm::VectorType::get(element, v);
  return element;
}

Value* OpEmitter::is_nan(Value* x) {
  llvm::Type* element = x->getType()->getScalarType();
  const unsigned width = element->getScalarSizeInBits();
  Value* bits = b.CreateBitCast(x, shaped(b.getIntNTy(width), x));
  Value* magnitude = b.CreateAnd(bits, llvm::ConstantInt::get(bits->getType(), llvm::APInt::getSignedMaxValue(width)));
  const llvm::APInt infinity = llvm::APFloat::getInf(element->getFltSemantics()).bitcastToAPInt();
  return b.CreateICmpUGT(magnitude, llvm::ConstantInt::get(bits->getType(), infinity));
}

Value* OpEmitter::to_memory(Value* v, DType dtype) {
  return dtype == DType::Bool ? b.CreateZExt(v, shaped(b.getInt8Ty(), v)) : v;
}

llvm::Constant* OpEmitter::constant(DType dtype, double real, std::int64_t integer) {
  llvm::Type* type = register_type(dtype);
  if (dtype == DType::BFloat16) return llvm::ConstantInt::get(type, to_bfloat16(static_cast<float>(real)).bits);
  if (is_floating(dtype)) return llvm::ConstantFP::get(type, real);
  return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(integer), true);
}

/// The words that the LLVM columns of scalar_ops.def are written in: one operation on registers x, y and z.
struct OpEmitter::Row {
  OpEmitter& emit;
  ScalarOp op;
  DType dtype;  ///< of the arguments
  llvm::ArrayRef<Value*> args;

  llvm::IRBuilder<>& ir = emit.b;
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  Value* z = args.size() > 2 ? args[2] : nullptr;
  bool is_signed = partita::is_signed(dtype);

  using ID = llvm::Intrinsic::IndependentIntrinsics;
  static constexpr Value* none = nullptr;

  /// The operation; null when there is none for the dtype.
  Value* value();

  Value* number(double value) { return emit.number(x, value); }
  Value* whole(std::int64_t value) { return emit.whole(x, value); }
  Value* is_nan(Value* v) { return emit.is_nan(v); }
  /// A bool that is never true.
  Value* no() { return llvm::ConstantInt::getFalse(x->getType()); }
  Value* intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> of) {
    return ir.CreateIntrinsic(id, {x->getType()}, of);
  }
  Value* by_lane() { return emit.by_lane(op, dtype, args); }
  /// Single precision by straight-line code, double by lane.
  Value* polynomial(Value* (MathEmitter::*function)(Value*)) {
    if (dtype != DType::Float32) return by_lane();
    MathEmitter math(ir, emit.avx512);
    return (math.*function)(x);
  }
  /// The same where large arguments need more.
  Value* periodic(Value* (MathEmitter::*function)(Value*)) {
    return dtype == DType::Float32 ? emit.trigonometric(op, function, x) : by_lane();
  }

  Value* less(Value* p, Value* q) { return is_signed ? ir.CreateICmpSLT(p, q) : ir.CreateICmpULT(p, q); }
  Value* less_or_equal(Value* p, Value* q) { return is_signed ? ir.CreateICmpSLE(p, q) : ir.CreateICmpULE(p, q); }
  using Order = llvm::CmpInst::Predicate;
  static bool is_number(Value* v) {
    auto* c = llvm::dyn_cast<llvm::Constant>(v);
    auto* f = llvm::dyn_cast_or_null<llvm::ConstantFP>(c && c->getType()->isVectorTy() ? c->getSplatValue() : c);
    return f && !f->isNaN();
  }
  /// x where it wins, else y; NaN if either is. The processor's instruction gives y if one of them is NaN, so a NaN in
  /// x is chosen apart. The fence keeps LLVM from joining the two choices to one of more instructions.
  Value* extreme(Order wins, Order wins_or_nan) {
    if (is_number(y)) return ir.CreateSelect(ir.CreateFCmp(wins_or_nan, x, y), x, y);
    Value* winner = ir.CreateSelect(ir.CreateFCmp(wins, x, y), x, y);
    if (is_number(x)) return winner;
    return ir.CreateSelect(ir.CreateFCmpUNO(x, x), x, intrinsic(ID::arithmetic_fence, {winner}));
  }
  Value* magnitude() { return is_signed ? ir.CreateSelect(less(x, whole(0)), ir.CreateNeg(x), x) : x; }
  Value* sign() {
    if (is_floating(dtype)) {
      auto unit = [&](Value* condition) { return ir.CreateSelect(condition, number(1), number(0)); };
      return ir.CreateFSub(unit(ir.CreateFCmpOLT(number(0), x)), unit(ir.CreateFCmpOLT(x, number(0))));
    }
    Value* positive = ir.CreateZExt(ir.CreateICmpNE(x, whole(0)), x->getType());
    return is_signed ? ir.CreateSelect(less(x, whole(0)), whole(-1), positive) : positive;
  }

  /// x / y or x % y. A zero divisor gives 0; the caller reports it.
  Value* quotient(bool rest) {
    Value* zero = ir.CreateICmpEQ(y, whole(0));
    if (!is_signed) {
      Value* safe = ir.CreateSelect(zero, whole(1), y);
      return ir.CreateSelect(zero, whole(0), rest ? ir.CreateURem(x, safe) : ir.CreateUDiv(x, safe));
    }
    Value* minus_one = ir.CreateICmpEQ(y, whole(-1));
    Value* safe = ir.CreateSelect(ir.CreateOr(zero, minus_one), whole(1), y);
    Value* result = rest ? ir.CreateSRem(x, safe) : ir.CreateSDiv(x, safe);
    result = ir.CreateSelect(minus_one, rest ? whole(0) : ir.CreateNeg(x), result);
    return ir.CreateSelect(zero, whole(0), result);
  }
  Value* floor_quotient() {
    Value* q = quotient(false);
    if (!is_signed) return q;
    Value* opposite = less(ir.CreateXor(x, y), whole(0));
    Value* inexact = ir.CreateICmpNE(ir.CreateMul(q, y), x);
    Value* down = ir.CreateAnd(ir.CreateAnd(opposite, inexact), ir.CreateICmpNE(y, whole(0)));
    return ir.CreateSelect(down, ir.CreateSub(q, whole(1)), q);
  }
  Value* floor_rest() {
    Value* r = quotient(true);
    if (!is_signed) return r;
    Value* opposite = less(ir.CreateXor(r, y), whole(0));
    Value* wrong = ir.CreateAnd(opposite, ir.CreateICmpNE(r, whole(0)));
    return ir.CreateSelect(wrong, ir.CreateAdd(r, y), r);
  }

  std::int64_t width() const { return static_cast<std::int64_t>(itemsize(dtype)) * 8; }
  Value* too_far() { return ir.CreateICmpUGE(y, whole(width())); }  // true for negative amounts too
  Value* shift_left() {
    Value* outside = too_far();
    return ir.CreateSelect(outside, whole(0), ir.CreateShl(x, ir.CreateSelect(outside, whole(0), y)));
  }
  Value* shift_right() {
    Value* outside = too_far();
    Value* safe = ir.CreateSelect(outside, whole(0), y);
    if (!is_signed) return ir.CreateSelect(outside, whole(0), ir.CreateLShr(x, safe));
    return ir.CreateSelect(outside, ir.CreateAShr(x, whole(width() - 1)), ir.CreateAShr(x, safe));
  }
};

Value* OpEmitter::Row::value() {
  const bool computed = dtype == DType::Float32 || dtype == DType::Float64;
  switch (op) {
    // Bools are one bit: sums are `or`, products `and`, differences `xor`.
#define SCALAR_OP(name, arity, result, weight, evaluation, cuda, floats, integers, bools) \
  case ScalarOp::name:                                                                    \
    if (dtype == DType::Bool) return bools;                                               \
    if (is_integral(dtype)) return integers;                                              \
    return computed ? floats : none;
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
    default:
      return none;
  }
}

Value* OpEmitter::apply(ScalarOp op, DType dtype, llvm::ArrayRef<Value*> args) {
  Value* value = Row{*this, op, dtype, args}.value();
  CHECK(value, fmt::format("{} of {}", loops::name(op), short_name(dtype)));
  return value;
}

Value* OpEmitter::cast(Value* v, DType from, DType to) {
  if (from == to) return v;
  if (to == DType::Bool) {
    if (from == DType::BFloat16) return b.CreateICmpNE(b.CreateAnd(v, whole(v, 0x7fff)), whole(v, 0));
    return is_floating(from) ? b.CreateFCmpUNE(v, number(v, 0)) : b.CreateICmpNE(v, whole(v, 0));
  }
  // Half types are converted through f32 only.
  if (from == DType::BFloat16) {
    Value* bits = b.CreateShl(b.CreateZExt(v, shaped(b.getInt32Ty(), v)), 16);
    return cast(b.CreateBitCast(bits, shaped(b.getFloatTy(), v)), DType::Float32, to);
  }
  if (from == DType::Float16 && to != DType::Float32)
    return cast(b.CreateFPExt(v, shaped(b.getFloatTy(), v)), DType::Float32, to);
  if ((to == DType::Float16 || to == DType::BFloat16) && from != DType::Float32)
    return cast(cast(v, from, DType::Float32), DType::Float32, to);
  if (to == DType::BFloat16) {
    // Round to nearest even on the bits, because the hardware conversion would flush denormals.
    Value* bits = b.CreateBitCast(v, shaped(b.getInt32Ty(), v));
    Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), whole(bits, 1));
    Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, whole(bits, 0x7fff)), odd), 16);
    Value* nan = b.CreateOr(b.CreateLShr(bits, 16), whole(bits, 0x40));
    Value* result = b.CreateSelect(b.CreateFCmpUNO(v, v), nan, rounded);
    return b.CreateTrunc(result, shaped(b.getInt16Ty(), v));
  }

  llvm::Type* type = shaped(register_type(to), v);
  bool from_float = is_floating(from), to_float = is_floating(to);
  if (from_float && to_float) return itemsize(to) > itemsize(from) ? b.CreateFPExt(v, type) : b.CreateFPTrunc(v, type);
  if (from == DType::Bool && to_float)
    return b.CreateSelect(v, llvm::ConstantFP::get(type, 1), llvm::ConstantFP::get(type, 0));
  if (to_float) return is_signed(from) ? b.CreateSIToFP(v, type) : b.CreateUIToFP(v, type);
  if (!from_float) {
    bool extends_sign = from != DType::Bool && is_signed(from);
    return b.CreateIntCast(v, type, extends_sign);
  }
  // Converting a float out of range is undefined in C++ and poison in IR. From poison LLVM would conclude that an
  // earlier special case (the logarithm of 0) cannot occur. So it gives what the machine gives: the least integer.
  // Narrow and unsigned types take the low bits of a wider signed conversion, as C++ compilers do.
  if (to == DType::UInt64) {  // from 2^63 on, the remainder with the highest bit flipped
    Value* high = b.CreateFCmpOGE(v, number(v, 0x1p63));
    Value* rest = cast(b.CreateSelect(high, b.CreateFSub(v, number(v, 0x1p63)), v), from, DType::Int64);
    return b.CreateXor(rest, b.CreateSelect(high, whole(rest, INT64_MIN), whole(rest, 0)));
  }
  const bool to_64 = to == DType::Int64 || to == DType::UInt32;
  llvm::Type* wide = shaped(to_64 ? b.getInt64Ty() : b.getInt32Ty(), v);
  Value* size = b.CreateUnaryIntrinsic(Intrinsic::fabs, v);
  Value* fits = b.CreateFCmpOLT(size, number(v, to_64 ? 0x1p63 : 0x1p31));
  Value* whole_part = b.CreateFPToSI(b.CreateSelect(fits, v, number(v, 0)), wide);
  Value* least = whole(whole_part, to_64 ? INT64_MIN : INT32_MIN);
  return b.CreateTrunc(b.CreateSelect(fits, whole_part, least), type);
}

Value* OpEmitter::constant_power(Value* a, double exponent) {
  auto square = [&](Value* v) { return b.CreateFMul(v, v); };
  if (exponent == 1) return a;
  if (exponent == 2) return square(a);
  if (exponent == 3) return b.CreateFMul(square(a), a);
  if (exponent == 4) return square(square(a));
  if (exponent == -1) return b.CreateFDiv(number(a, 1), a);
  if (exponent == -2) return b.CreateFDiv(number(a, 1), square(a));
  if (exponent == 0.5) return b.CreateUnaryIntrinsic(Intrinsic::sqrt, a);
  if (exponent == -0.5) return b.CreateFDiv(number(a, 1), b.CreateUnaryIntrinsic(Intrinsic::sqrt, a));
  return nullptr;
}

llvm::FunctionCallee OpEmitter::runtime(ScalarOp op, DType dtype) {
  llvm::Type* type = register_type(dtype);
  std::vector<llvm::Type*> args(static_cast<std::size_t>(loops::arity(op)), type);
  auto callee = module.getOrInsertFunction(runtime_symbol(op, dtype), llvm::FunctionType::get(type, args, false));
  auto* f = llvm::cast<llvm::Function>(callee.getCallee());
  f->setDoesNotThrow();
  f->setDoesNotAccessMemory();
  // The ABI leaves the upper bits of small integers undefined unless an attribute says how they are extended.
  if (type->isIntegerTy() && type->getIntegerBitWidth() < 32) {
    auto extend = is_signed(dtype) ? llvm::Attribute::SExt : llvm::Attribute::ZExt;
    f->addRetAttr(extend);
    for (unsigned i = 0; i < args.size(); ++i) f->addParamAttr(i, extend);
  }
  return callee;
}

/// Makes a function on vectors that calls the runtime function in a loop over the lanes.
llvm::Function* OpEmitter::lane_function(ScalarOp op, DType dtype, llvm::Type* type) {
  auto lanes = llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
  std::string name = runtime_symbol(op, dtype) + "_x" + std::to_string(lanes);
  if (auto* f = module.getFunction(name)) return f;
  auto arity = static_cast<std::size_t>(loops::arity(op));
  auto* f = llvm::Function::Create(llvm::FunctionType::get(type, std::vector<llvm::Type*>(arity, type), false),
                                   llvm::Function::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  auto* entry = llvm::BasicBlock::Create(b.getContext(), "entry", f);
  auto* body = llvm::BasicBlock::Create(b.getContext(), "lane", f);
  auto* exit = llvm::BasicBlock::Create(b.getContext(), "exit", f);
  b.SetInsertPoint(entry);
  auto* element = register_type(dtype);
  std::vector<Value*> slots;
  for (auto& arg : f->args()) {
    slots.push_back(b.CreateAlloca(type));
    b.CreateStore(&arg, slots.back());
  }
  Value* result = b.CreateAlloca(type);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), entry);
  std::vector<Value*> values;
  for (Value* slot : slots) values.push_back(b.CreateLoad(element, b.CreateGEP(element, slot, i)));
  b.CreateStore(b.CreateCall(runtime(op, dtype), values), b.CreateGEP(element, result, i));
  Value* next = b.CreateAdd(i, b.getInt64(1));
  i->addIncoming(next, body);
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(lanes)), body, exit);
  b.SetInsertPoint(exit);
  b.CreateRet(b.CreateLoad(type, result));
  return f;
}

Value* OpEmitter::by_lane(ScalarOp op, DType dtype, llvm::ArrayRef<Value*> args) {
  llvm::Type* type = args[0]->getType();
  if (!type->isVectorTy()) return b.CreateCall(runtime(op, dtype), args);
  return b.CreateCall(lane_function(op, dtype, type), args);
}

Value* OpEmitter::trigonometric(ScalarOp op, Value* (MathEmitter::*function)(Value*), Value* x) {
  llvm::Type* type = x->getType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  std::string name = runtime_symbol(op, DType::Float32) + "_v" + std::to_string(vector ? vector->getNumElements() : 1);
  llvm::Function* f = module.getFunction(name);
  if (!f) {
    f = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false), llvm::Function::InternalLinkage, name,
                               module);
    f->addFnAttr(llvm::Attribute::NoInline);
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    auto* entry = llvm::BasicBlock::Create(b.getContext(), "entry", f);
    auto* near = llvm::BasicBlock::Create(b.getContext(), "near", f);
    auto* far = llvm::BasicBlock::Create(b.getContext(), "far", f);
    b.SetInsertPoint(entry);
    Value* arg = f->getArg(0);
    Value* large = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, arg), number(arg, 1e9));
    b.CreateCondBr(vector ? b.CreateOrReduce(large) : large, far, near);
    MathEmitter math(b, avx512);
    b.SetInsertPoint(near);
    b.CreateRet((math.*function)(arg));
    b.SetInsertPoint(far);
    b.CreateRet(b.CreateSelect(large, by_lane(op, DType::Float32, {arg}), (math.*function)(arg)));
  }
  return b.CreateCall(f, {x});
}

}  // namespace partita::codegen
