#pragma once
#include <functional>
#include <span>

#include <llvm/IR/IRBuilder.h>

namespace partita::codegen {

/// Emits elementary functions of f32 as straight-line IR, for scalars and vectors. They are right for infinities, NaN
/// and denormals. Errors are in units in the last place; tests/codegen/test_scalar_ops.cpp checks them.
class MathEmitter {
 public:
  /// avx512: the host has AVX-512, so vectors of 16 floats may use its instructions.
  MathEmitter(llvm::IRBuilder<>& b, bool avx512) : b(b), avx512(avx512) {}

  llvm::Value* exp(llvm::Value* x);      ///< 1 ulp
  llvm::Value* exp2(llvm::Value* x);     ///< 1 ulp
  llvm::Value* expm1(llvm::Value* x);    ///< 1.5 ulp
  llvm::Value* log(llvm::Value* x);      ///< 1 ulp
  llvm::Value* log2(llvm::Value* x);     ///< 2 ulp
  llvm::Value* log10(llvm::Value* x);    ///< 2 ulp
  llvm::Value* log1p(llvm::Value* x);    ///< 1 ulp
  llvm::Value* tanh(llvm::Value* x);     ///< 2.5 ulp
  llvm::Value* sigmoid(llvm::Value* x);  ///< 2 ulp
  llvm::Value* erf(llvm::Value* x);      ///< 2.5 ulp
  // By reduction in double precision: 1 ulp for |x| <= 1e9.
  llvm::Value* sin(llvm::Value* x) { return sine(x, 0); }
  llvm::Value* cos(llvm::Value* x) { return sine(x, 1); }
  llvm::Value* tan(llvm::Value* x);

 private:
  llvm::Value* constant(llvm::Value* like, double value);
  llvm::Value* int_constant(llvm::Value* like, std::int64_t value);  ///< i32 of the same shape
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, double c) { return fma(a, b, constant(a, c)); }
  llvm::Value* fma(llvm::Value* a, double b, llvm::Value* c) { return fma(a, constant(a, b), c); }
  llvm::Value* polynomial(llvm::Value* x, std::initializer_list<double> highest_first);
  llvm::Value* as_int(llvm::Value* x);
  llvm::Value* as_float(llvm::Value* x);
  llvm::Value* select_less(llvm::Value* x, double bound, double replacement, llvm::Value* otherwise);
  llvm::Value* abs(llvm::Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  llvm::Value* copysign(llvm::Value* magnitude, llvm::Value* sign);

  struct Reduced {
    llvm::Value* rest;   ///< x - whole * step
    llvm::Value* whole;  ///< nearest integer, as float
    llvm::Value* whole_int;
    llvm::Value* shifted;  ///< whole + 1.5 * 2^23
  };
  Reduced reduce_ln2(llvm::Value* x);
  Reduced reduce_ln2_once(llvm::Value* x);
  Reduced split_ln2(llvm::Value* x);  ///< fills all fields but `rest`
  llvm::Value* exp_of(const Reduced& r);
  llvm::Value* exp_of_rest(llvm::Value* rest);
  llvm::Value* expm1_of(const Reduced& r);
  llvm::Value* expm1_of_negative(llvm::Value* x);
  llvm::Value* power_of_two(const Reduced& r);
  llvm::Value* by_sixteen(std::initializer_list<llvm::Value*> arguments,
                          const std::function<llvm::Value*(std::span<llvm::Value* const>)>& instruction);
  llvm::Value* scale_by_instruction(llvm::Value* p, llvm::Value* n);
  llvm::Value* divide(llvm::Value* n, llvm::Value* d);
  llvm::Value* erf_by_pieces(llvm::Value* x);  ///< needs AVX-512
  llvm::Value* expm1_core(llvm::Value* x);     ///< for |x| <= 88
  struct Mantissa {
    llvm::Value* f;  ///< mantissa - 1, in [-1/3, 1/3]
    llvm::Value* e;  ///< exponent, as float
  };
  Mantissa split(llvm::Value* x);
  llvm::Value* log_of(llvm::Value* f);  ///< log(1 + f)
  llvm::Value* log_ends(llvm::Value* x, llvm::Value* result);
  struct Quadrant {
    llvm::Value* rest;   ///< double, in [-pi/4, pi/4]
    llvm::Value* count;  ///< i32
  };
  Quadrant quadrant(llvm::Value* x);
  llvm::Value* sine(llvm::Value* x, int shift);  ///< 1: cosine
  llvm::Value* sine_of(llvm::Value* r);
  llvm::Value* cosine_of(llvm::Value* r);

  llvm::IRBuilder<>& b;
  bool avx512;
};

}  // namespace partita::codegen
