#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/cpu/emit_math.h"
#include "core/loops/scalar.h"

namespace partita::codegen {

/// Emits IR for a row of scalar_ops.def or a cast, on scalars or on vectors of any length (all arguments alike).
/// Registers hold Bool as i1 and BFloat16 as its bits; memory holds Bool as a byte.
class OpEmitter {
 public:
  OpEmitter(llvm::IRBuilder<>& b, llvm::Module& module, bool avx512) : b(b), module(module), avx512(avx512) {}

  llvm::Type* register_type(DType dtype);
  llvm::Type* memory_type(DType dtype);
  llvm::Value* from_memory(llvm::Value* v, DType dtype) {
    return dtype == DType::Bool ? b.CreateICmpNE(v, whole(v, 0)) : v;
  }
  llvm::Value* to_memory(llvm::Value* v, DType dtype);
  llvm::Constant* constant(DType dtype, double real, std::int64_t integer);

  /// `dtype` is the dtype of the arguments.
  llvm::Value* apply(loops::ScalarOp op, DType dtype, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* cast(llvm::Value* v, DType from, DType to);
  llvm::Value* bitcast(llvm::Value* v, DType to) { return b.CreateBitCast(v, shaped(register_type(to), v)); }
  /// a ** exponent, for exponents for which it is cheaper or more exact than pow; null for others.
  llvm::Value* constant_power(llvm::Value* a, double exponent);

 private:
  struct Row;
  /// Lane by lane through the runtime function.
  llvm::Value* by_lane(loops::ScalarOp op, DType dtype, llvm::ArrayRef<llvm::Value*> args);
  /// The vector form while all |x| <= 1e9, lane by lane otherwise.
  llvm::Value* trigonometric(loops::ScalarOp op, llvm::Value* (MathEmitter::*function)(llvm::Value*), llvm::Value* x);
  llvm::Function* lane_function(loops::ScalarOp op, DType dtype, llvm::Type* type);
  llvm::FunctionCallee runtime(loops::ScalarOp op, DType dtype);
  llvm::Type* shaped(llvm::Type* element, llvm::Value* like);
  /// Tests the bits. LLVM 19 joins `fcmp uno` and `fcmp ogt` of fabs(x) to one comparison of x without the fabs, which
  /// made relu(abs(x)) relu(x).
  llvm::Value* is_nan(llvm::Value* x);
  llvm::Value* number(llvm::Value* like, double value) { return llvm::ConstantFP::get(like->getType(), value); }
  llvm::Value* whole(llvm::Value* like, std::int64_t value) {
    return llvm::ConstantInt::getSigned(like->getType(), value);
  }

  llvm::IRBuilder<>& b;
  llvm::Module& module;
  bool avx512;
};

}  // namespace partita::codegen
