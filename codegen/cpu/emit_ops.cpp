#include "codegen/cpu/emit_ops.h"

#include <llvm/IR/Intrinsics.h>

#include "codegen/cpu/emit_math.h"
#include "codegen/cpu/runtime.h"
#include "core/base/check.h"

namespace partita::codegen {

using llvm::Value;
using llvm::Intrinsic::ID;
using loops::ScalarOp;
namespace Intrinsic = llvm::Intrinsic;

llvm::Type* OpEmitter::register_type(DType dtype) {
  if (dtype == DType::Bool) return b.getInt1Ty();
  return memory_type(dtype);
}

llvm::Type* OpEmitter::memory_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return b.getHalfTy();
    case DType::Float32:
      return b.getFloatTy();
    case DType::Float64:
      return b.getDoubleTy();
    default:
      return b.getIntNTy(static_cast<unsigned>(itemsize(dtype)) * 8);
  }
}

llvm::Type* OpEmitter::shaped(llvm::Type* element, Value* like) {
  if (auto* v = llvm::dyn_cast<llvm::VectorType>(like->getType())) return llvm::VectorType::get(element, v);
  return element;
}

Value* OpEmitter::number(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}
Value* OpEmitter::whole(Value* like, std::int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

Value* OpEmitter::is_nan(Value* x) {
  llvm::Type* element = x->getType()->getScalarType();
  const unsigned width = element->getScalarSizeInBits();
  Value* bits = b.CreateBitCast(x, shaped(b.getIntNTy(width), x));
  Value* magnitude = b.CreateAnd(bits, llvm::ConstantInt::get(bits->getType(), llvm::APInt::getSignedMaxValue(width)));
  const llvm::APInt infinity = llvm::APFloat::getInf(element->getFltSemantics()).bitcastToAPInt();
  return b.CreateICmpUGT(magnitude, llvm::ConstantInt::get(bits->getType(), infinity));
}

Value* OpEmitter::from_memory(Value* v, DType dtype) {
  return dtype == DType::Bool ? b.CreateICmpNE(v, whole(v, 0)) : v;
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

Value* OpEmitter::apply(ScalarOp op, DType dtype, llvm::ArrayRef<Value*> args) {
  if (dtype == DType::Bool) return boolean(op, args);
  if (is_integral(dtype)) return integral(op, dtype, args);
  CHECK(dtype == DType::Float32 || dtype == DType::Float64,
        std::string(loops::name(op)) + " of " + std::string(short_name(dtype)));
  return floating(op, dtype, args);
}

Value* OpEmitter::single_only(ScalarOp op, DType dtype, llvm::ArrayRef<Value*> args) {
  if (dtype != DType::Float32) return by_lane(op, dtype, args);
  MathEmitter math(b, avx512);
  Value* x = args[0];
  switch (op) {
    case ScalarOp::Exp:
      return math.exp(x);
    case ScalarOp::Exp2:
      return math.exp2(x);
    case ScalarOp::Expm1:
      return math.expm1(x);
    case ScalarOp::Log:
      return math.log(x);
    case ScalarOp::Log2:
      return math.log2(x);
    case ScalarOp::Log10:
      return math.log10(x);
    case ScalarOp::Log1p:
      return math.log1p(x);
    case ScalarOp::Tanh:
      return math.tanh(x);
    case ScalarOp::Sigmoid:
      return math.sigmoid(x);
    case ScalarOp::Erf:
      return math.erf(x);
    default:
      return trigonometric(op, x);
  }
}

Value* OpEmitter::floating(ScalarOp op, DType dtype, llvm::ArrayRef<Value*> args) {
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  auto unary = [&](ID id) { return b.CreateUnaryIntrinsic(id, x); };
  switch (op) {
    case ScalarOp::Add:
      return b.CreateFAdd(x, y);
    case ScalarOp::Sub:
      return b.CreateFSub(x, y);
    case ScalarOp::Mul:
      return b.CreateFMul(x, y);
    case ScalarOp::Div:
      return b.CreateFDiv(x, y);
    case ScalarOp::Fma:
      return b.CreateIntrinsic(Intrinsic::fma, {x->getType()}, {x, y, args[2]});
    case ScalarOp::Neg:
      return b.CreateFNeg(x);
    case ScalarOp::Conj:
      return x;
    case ScalarOp::Abs:
      return unary(Intrinsic::fabs);
    case ScalarOp::Sign: {
      auto unit = [&](Value* condition) { return b.CreateSelect(condition, number(x, 1), number(x, 0)); };
      return b.CreateFSub(unit(b.CreateFCmpOLT(number(x, 0), x)), unit(b.CreateFCmpOLT(x, number(x, 0))));
    }
    // x < y ? x : y, which gives y if y is NaN; the second select handles a NaN in x. Max is alike.
    case ScalarOp::Min: {
      Value* least = b.CreateSelect(b.CreateFCmpOLT(x, y), x, y);
      return b.CreateSelect(is_nan(x), x, least);
    }
    case ScalarOp::Max: {
      Value* greatest = b.CreateSelect(b.CreateFCmpOGT(x, y), x, y);
      return b.CreateSelect(is_nan(x), x, greatest);
    }
    case ScalarOp::Sqrt:
      return unary(Intrinsic::sqrt);
    case ScalarOp::Rsqrt:
      return b.CreateFDiv(number(x, 1), unary(Intrinsic::sqrt));
    case ScalarOp::Floor:
      return unary(Intrinsic::floor);
    case ScalarOp::Ceil:
      return unary(Intrinsic::ceil);
    case ScalarOp::Trunc:
      return unary(Intrinsic::trunc);
    case ScalarOp::Round:
      return unary(Intrinsic::roundeven);
    case ScalarOp::Eq:
      return b.CreateFCmpOEQ(x, y);
    case ScalarOp::Ne:
      return b.CreateFCmpUNE(x, y);
    case ScalarOp::Lt:
      return b.CreateFCmpOLT(x, y);
    case ScalarOp::Le:
      return b.CreateFCmpOLE(x, y);
    case ScalarOp::IsNan:
      return is_nan(x);
    case ScalarOp::Copysign:
      return b.CreateBinaryIntrinsic(Intrinsic::copysign, x, y);
    case ScalarOp::Exp:
    case ScalarOp::Exp2:
    case ScalarOp::Expm1:
    case ScalarOp::Log:
    case ScalarOp::Log2:
    case ScalarOp::Log10:
    case ScalarOp::Log1p:
    case ScalarOp::Tanh:
    case ScalarOp::Sigmoid:
    case ScalarOp::Erf:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tan:
      return single_only(op, dtype, args);
    case ScalarOp::FloorDiv:
    case ScalarOp::Fmod:
    case ScalarOp::Remainder:
    case ScalarOp::Pow:
    case ScalarOp::Asin:
    case ScalarOp::Acos:
    case ScalarOp::Atan:
    case ScalarOp::Sinh:
    case ScalarOp::Cosh:
    case ScalarOp::Asinh:
    case ScalarOp::Acosh:
    case ScalarOp::Atanh:
    case ScalarOp::Atan2:
    case ScalarOp::Erfc:
    case ScalarOp::Erfinv:
    case ScalarOp::Lgamma:
    case ScalarOp::Digamma:
    case ScalarOp::Nextafter:
      return by_lane(op, dtype, args);
    case ScalarOp::BitAnd:
    case ScalarOp::BitOr:
    case ScalarOp::BitXor:
    case ScalarOp::BitNot:
    case ScalarOp::Shl:
    case ScalarOp::Shr:
    case ScalarOp::Const:
    case ScalarOp::Input:
    case ScalarOp::Index:
    case ScalarOp::Load:
    case ScalarOp::Where:
    case ScalarOp::Cast:
    case ScalarOp::Bitcast:
    case ScalarOp::Within:
      break;
  }
  CHECK(false, std::string(loops::name(op)) + " of a float");
}

/// A zero divisor gives 0; the caller reports it.
Value* OpEmitter::integer_quotient(Value* a, Value* divisor, DType dtype, bool rest) {
  Value* zero = b.CreateICmpEQ(divisor, whole(a, 0));
  Value* unsafe = zero;
  Value* minus_one = nullptr;
  if (is_signed(dtype)) {
    minus_one = b.CreateICmpEQ(divisor, whole(a, -1));
    unsafe = b.CreateOr(zero, minus_one);
  }
  Value* safe = b.CreateSelect(unsafe, whole(a, 1), divisor);
  Value* result;
  if (is_signed(dtype)) {
    result = rest ? b.CreateSRem(a, safe) : b.CreateSDiv(a, safe);
    result = b.CreateSelect(minus_one, rest ? whole(a, 0) : b.CreateNeg(a), result);
  } else {
    result = rest ? b.CreateURem(a, safe) : b.CreateUDiv(a, safe);
  }
  return b.CreateSelect(zero, whole(a, 0), result);
}

Value* OpEmitter::shift(ScalarOp op, Value* a, Value* amount, DType dtype) {
  std::int64_t width = static_cast<std::int64_t>(itemsize(dtype)) * 8;
  Value* outside = b.CreateICmpUGE(amount, whole(a, width));  // true for negative amounts too
  Value* safe = b.CreateSelect(outside, whole(a, 0), amount);
  if (op == ScalarOp::Shl) return b.CreateSelect(outside, whole(a, 0), b.CreateShl(a, safe));
  if (!is_signed(dtype)) return b.CreateSelect(outside, whole(a, 0), b.CreateLShr(a, safe));
  return b.CreateSelect(outside, b.CreateAShr(a, whole(a, width - 1)), b.CreateAShr(a, safe));
}

Value* OpEmitter::integral(ScalarOp op, DType dtype, llvm::ArrayRef<Value*> args) {
  bool sign = is_signed(dtype);
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  switch (op) {
    case ScalarOp::Add:
      return b.CreateAdd(x, y);
    case ScalarOp::Sub:
      return b.CreateSub(x, y);
    case ScalarOp::Mul:
      return b.CreateMul(x, y);
    case ScalarOp::Div:
      return integer_quotient(x, y, dtype, false);
    case ScalarOp::FloorDiv: {
      Value* q = integer_quotient(x, y, dtype, false);
      if (!sign) return q;
      Value* opposite = b.CreateICmpSLT(b.CreateXor(x, y), whole(x, 0));
      Value* inexact = b.CreateICmpNE(b.CreateMul(q, y), x);
      Value* down = b.CreateAnd(b.CreateAnd(opposite, inexact), b.CreateICmpNE(y, whole(x, 0)));
      return b.CreateSelect(down, b.CreateSub(q, whole(x, 1)), q);
    }
    case ScalarOp::Fmod:
      return integer_quotient(x, y, dtype, true);
    case ScalarOp::Remainder: {
      Value* r = integer_quotient(x, y, dtype, true);
      if (!sign) return r;
      Value* opposite = b.CreateICmpSLT(b.CreateXor(r, y), whole(x, 0));
      Value* wrong = b.CreateAnd(opposite, b.CreateICmpNE(r, whole(x, 0)));
      return b.CreateSelect(wrong, b.CreateAdd(r, y), r);
    }
    case ScalarOp::Pow:
      return by_lane(op, dtype, args);
    case ScalarOp::Neg:
      return b.CreateNeg(x);
    case ScalarOp::Conj:
      return x;
    case ScalarOp::Abs:
      return sign ? b.CreateSelect(b.CreateICmpSLT(x, whole(x, 0)), b.CreateNeg(x), x) : x;
    case ScalarOp::Sign: {
      Value* positive = b.CreateZExt(b.CreateICmpNE(x, whole(x, 0)), x->getType());
      return sign ? b.CreateSelect(b.CreateICmpSLT(x, whole(x, 0)), whole(x, -1), positive) : positive;
    }
    case ScalarOp::Min:
      return b.CreateBinaryIntrinsic(sign ? Intrinsic::smin : Intrinsic::umin, x, y);
    case ScalarOp::Max:
      return b.CreateBinaryIntrinsic(sign ? Intrinsic::smax : Intrinsic::umax, x, y);
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Round:
      return x;
    case ScalarOp::Eq:
      return b.CreateICmpEQ(x, y);
    case ScalarOp::Ne:
      return b.CreateICmpNE(x, y);
    case ScalarOp::Lt:
      return sign ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
    case ScalarOp::Le:
      return sign ? b.CreateICmpSLE(x, y) : b.CreateICmpULE(x, y);
    case ScalarOp::IsNan:
      return b.CreateICmpNE(x, x);
    case ScalarOp::BitAnd:
      return b.CreateAnd(x, y);
    case ScalarOp::BitOr:
      return b.CreateOr(x, y);
    case ScalarOp::BitXor:
      return b.CreateXor(x, y);
    case ScalarOp::BitNot:
      return b.CreateNot(x);
    case ScalarOp::Shl:
    case ScalarOp::Shr:
      return shift(op, x, y, dtype);
    case ScalarOp::Fma:
    case ScalarOp::Sqrt:
    case ScalarOp::Rsqrt:
    case ScalarOp::Exp:
    case ScalarOp::Exp2:
    case ScalarOp::Expm1:
    case ScalarOp::Log:
    case ScalarOp::Log2:
    case ScalarOp::Log10:
    case ScalarOp::Log1p:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tan:
    case ScalarOp::Asin:
    case ScalarOp::Acos:
    case ScalarOp::Atan:
    case ScalarOp::Sinh:
    case ScalarOp::Cosh:
    case ScalarOp::Tanh:
    case ScalarOp::Asinh:
    case ScalarOp::Acosh:
    case ScalarOp::Atanh:
    case ScalarOp::Atan2:
    case ScalarOp::Erf:
    case ScalarOp::Erfc:
    case ScalarOp::Erfinv:
    case ScalarOp::Lgamma:
    case ScalarOp::Digamma:
    case ScalarOp::Sigmoid:
    case ScalarOp::Copysign:
    case ScalarOp::Nextafter:
    case ScalarOp::Const:
    case ScalarOp::Input:
    case ScalarOp::Index:
    case ScalarOp::Load:
    case ScalarOp::Where:
    case ScalarOp::Cast:
    case ScalarOp::Bitcast:
    case ScalarOp::Within:
      break;
  }
  CHECK(false, std::string(loops::name(op)) + " of an integer");
}

/// Bools are one bit: sums are `or`, products `and`, differences `xor`.
Value* OpEmitter::boolean(ScalarOp op, llvm::ArrayRef<Value*> args) {
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Max:
    case ScalarOp::BitOr:
      return b.CreateOr(x, y);
    case ScalarOp::Mul:
    case ScalarOp::Min:
    case ScalarOp::BitAnd:
      return b.CreateAnd(x, y);
    case ScalarOp::Sub:
    case ScalarOp::Ne:
    case ScalarOp::BitXor:
      return b.CreateXor(x, y);
    case ScalarOp::Eq:
      return b.CreateNot(b.CreateXor(x, y));
    case ScalarOp::Lt:
      return b.CreateAnd(b.CreateNot(x), y);
    case ScalarOp::Le:
      return b.CreateOr(b.CreateNot(x), y);
    case ScalarOp::Shl:
    case ScalarOp::Shr:
      return b.CreateAnd(x, b.CreateNot(y));
    case ScalarOp::BitNot:
      return b.CreateNot(x);
    case ScalarOp::Div:
    case ScalarOp::FloorDiv:
      return b.CreateAnd(x, y);
    case ScalarOp::Fmod:
    case ScalarOp::Remainder:
      return llvm::ConstantInt::getFalse(x->getType());
    case ScalarOp::Pow:
      return b.CreateOr(x, b.CreateNot(y));
    case ScalarOp::IsNan:
      return llvm::ConstantInt::getFalse(x->getType());
    case ScalarOp::Neg:
    case ScalarOp::Conj:
    case ScalarOp::Abs:
    case ScalarOp::Sign:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Round:
      return x;
    default:
      break;
  }
  CHECK(false, std::string(loops::name(op)) + " of a bool");
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

Value* OpEmitter::bitcast(Value* v, DType to) {
  return b.CreateBitCast(v, shaped(register_type(to), v));
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

Value* OpEmitter::trigonometric(ScalarOp op, Value* x) {
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
    auto reduced = [&] { return op == ScalarOp::Tan ? math.tan(arg) : math.sine(arg, op == ScalarOp::Cos ? 1 : 0); };
    b.SetInsertPoint(near);
    b.CreateRet(reduced());
    b.SetInsertPoint(far);
    b.CreateRet(b.CreateSelect(large, by_lane(op, DType::Float32, {arg}), reduced()));
  }
  return b.CreateCall(f, {x});
}

}  // namespace partita::codegen
