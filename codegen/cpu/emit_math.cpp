// The polynomials for exp, expm1, log and erf are minimax approximations in single precision with fused multiply-adds.
#include "codegen/cpu/emit_math.h"

#include <limits>
#include <vector>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/cpu/emit_pieces.h"

namespace partita::codegen {

using llvm::Value;

namespace {

constexpr double magic = 12582912.0;  // 1.5 * 2^23: adding it rounds a float to an integer
constexpr double infinity = std::numeric_limits<double>::infinity();

llvm::Type* with_element(Value* like, llvm::Type* element) {
  if (auto* v = llvm::dyn_cast<llvm::VectorType>(like->getType())) return llvm::VectorType::get(element, v);
  return element;
}

}  // namespace

Value* MathEmitter::constant(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

Value* MathEmitter::int_constant(Value* like, std::int64_t value) {
  return llvm::ConstantInt::getSigned(with_element(like, b.getInt32Ty()), value);
}

Value* MathEmitter::fma(Value* x, Value* y, Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

Value* MathEmitter::polynomial(Value* x, std::initializer_list<double> highest_first) {
  auto c = highest_first.begin();
  Value* r = constant(x, *c);
  while (++c != highest_first.end()) r = fma(r, x, constant(x, *c));
  return r;
}

Value* MathEmitter::as_int(Value* x) {
  return b.CreateBitCast(x, with_element(x, b.getInt32Ty()));
}
Value* MathEmitter::as_float(Value* x) {
  return b.CreateBitCast(x, with_element(x, b.getFloatTy()));
}

/// Selects `replacement` where x < bound; a NaN takes `otherwise`.
Value* MathEmitter::select_less(Value* x, double bound, double replacement, Value* otherwise) {
  return b.CreateSelect(b.CreateFCmpOLT(x, constant(x, bound)), constant(x, replacement), otherwise);
}

Value* MathEmitter::copysign(Value* magnitude, Value* sign) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

MathEmitter::Reduced MathEmitter::reduce_ln2(Value* x) {
  Reduced r = split_ln2(x);
  r.rest = fma(r.whole, -1.42860677e-6, fma(r.whole, -6.93145752e-1, x));
  return r;
}

/// Uses ln 2 as one float, so `rest` is off by 2e-9 per unit of `whole`. For whole < 0 the factor 2^whole makes that
/// negligible.
MathEmitter::Reduced MathEmitter::reduce_ln2_once(Value* x) {
  Reduced r = split_ln2(x);
  r.rest = fma(r.whole, -0.693147182, x);
  return r;
}

MathEmitter::Reduced MathEmitter::split_ln2(Value* x) {
  Value* shifted = fma(x, 1.44269504, constant(x, magic));
  Value* whole = b.CreateFSub(shifted, constant(x, magic));
  return {nullptr, whole, b.CreateSub(as_int(shifted), int_constant(x, 0x4B400000)), shifted};
}

Value* MathEmitter::exp_of_rest(Value* rest) {
  return polynomial(rest, {1.37805939e-3, 8.37312452e-3, 4.16695364e-2, 1.66664720e-1, 4.99999851e-1, 1, 1});
}

/// exp(rest) * 2^whole. Gives denormal results; overflow gives infinity.
Value* MathEmitter::exp_of(const Reduced& r) {
  Value* p = exp_of_rest(r.rest);
  if (Value* scaled = scale_by_instruction(p, r.whole)) return scaled;
  Value* half = b.CreateAShr(r.whole_int, int_constant(p, 1));
  auto power = [&](Value* n) {
    return as_float(b.CreateShl(b.CreateAdd(n, int_constant(p, 127)), int_constant(p, 23)));
  };
  return b.CreateFMul(b.CreateFMul(p, power(half)), power(b.CreateSub(r.whole_int, half)));
}

/// Applies an AVX-512 instruction on 16 floats, in parts for longer vectors. Scalars and shorter vectors are padded, so
/// that a loop's remainder gives the same bits as its body.
Value* MathEmitter::by_sixteen(std::initializer_list<Value*> arguments,
                               const std::function<Value*(std::span<Value* const>)>& instruction) {
  constexpr unsigned width = 16;
  auto* part = llvm::FixedVectorType::get(b.getFloatTy(), width);
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>((*arguments.begin())->getType());
  std::vector<Value*> slices;
  if (!type || type->getNumElements() < width) {
    Value* one = llvm::ConstantFP::get(part, 1);
    for (Value* v : arguments)
      slices.push_back(type ? b.CreateInsertVector(part, one, v, b.getInt64(0))
                            : b.CreateInsertElement(one, v, std::uint64_t{0}));
    Value* r = instruction(slices);
    return type ? b.CreateExtractVector(type, r, b.getInt64(0)) : b.CreateExtractElement(r, std::uint64_t{0});
  }
  if (type->getNumElements() == width) return instruction({arguments.begin(), arguments.size()});
  Value* whole = llvm::PoisonValue::get(type);
  for (unsigned first = 0; first < type->getNumElements(); first += width) {
    slices.clear();
    for (Value* v : arguments) slices.push_back(b.CreateExtractVector(part, v, b.getInt64(first)));
    whole = b.CreateInsertVector(type, whole, instruction(slices), b.getInt64(first));
  }
  return whole;
}

/// p * 2^n by one AVX-512 instruction; null without AVX-512.
Value* MathEmitter::scale_by_instruction(Value* p, Value* n) {
  if (!avx512) return nullptr;
  constexpr int current_rounding = 4;
  return by_sixteen({p, n}, [&](std::span<Value* const> v) -> Value* {
    return b.CreateIntrinsic(
        llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
        {v[0], v[1], llvm::Constant::getNullValue(v[0]->getType()), b.getInt16(0xffff), b.getInt32(current_rounding)});
  });
}

/// n / d for d in [2^-126, 2^126], within 1.5 ulp. A Newton step on AVX-512's approximation costs a third of a
/// division.
Value* MathEmitter::divide(Value* n, Value* d) {
  if (!avx512) return b.CreateFDiv(n, d);
  Value* guess = by_sixteen({d}, [&](std::span<Value* const> v) -> Value* {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {},
                             {v[0], llvm::Constant::getNullValue(v[0]->getType()), b.getInt16(0xffff)});
  });
  Value* quotient = b.CreateFMul(n, guess);
  return fma(fma(b.CreateFNeg(d), quotient, n), guess, quotient);
}

/// 2^whole for exponents of normal numbers, where one factor is enough.
Value* MathEmitter::power_of_two(const Reduced& r) {
  Value* exponent = b.CreateShl(as_int(r.shifted), int_constant(r.rest, 23));
  return as_float(b.CreateAdd(exponent, int_constant(r.rest, 0x3f800000)));
}

/// For x in [-87, 0].
Value* MathEmitter::expm1_of_negative(Value* x) {
  Reduced r = reduce_ln2_once(x);
  Value* t = power_of_two(r);
  return fma(expm1_of(r), t, b.CreateFSub(t, constant(x, 1)));
}

// Powers that are too small for a float are not computed: Intel's processors take 150 cycles for a result that is no
// normal number, and a masked softmax has many.

Value* MathEmitter::exp(Value* x) {
  Value* low = select_less(x, -104, 0, x);
  Value* power = exp_of(reduce_ln2(b.CreateSelect(b.CreateFCmpOGT(low, constant(x, 90)), constant(x, 90), low)));
  return select_less(x, -104, 0, power);
}

Value* MathEmitter::exp2(Value* x) {
  Value* low = select_less(x, -150, 0, x);
  Value* t = b.CreateSelect(b.CreateFCmpOGT(low, constant(x, 129)), constant(x, 129), low);
  Value* shifted = b.CreateFAdd(t, constant(x, magic));
  Value* whole = b.CreateFSub(shifted, constant(x, magic));
  Value* rest = b.CreateFMul(b.CreateFSub(t, whole), constant(x, 0.693147182));
  Value* power = exp_of({rest, whole, b.CreateSub(as_int(shifted), int_constant(x, 0x4B400000)), shifted});
  return select_less(x, -150, 0, power);
}

/// exp(rest) - 1.
Value* MathEmitter::expm1_of(const Reduced& r) {
  Value* p = polynomial(r.rest, {1.38824969e-3, 8.36664718e-3, 4.16672044e-2, 1.66665420e-1, 4.99999970e-1});
  return fma(p, b.CreateFMul(r.rest, r.rest), r.rest);
}

/// For x in [-50, 88].
Value* MathEmitter::expm1_core(Value* x) {
  Reduced r = reduce_ln2(x);
  Value* v = expm1_of(r);
  // Compute (2^whole * (1 + v) - 1) as twice its half, so that whole = 128 does not overflow early.
  Value* half = constant(x, 0.5);
  Value* t = as_float(b.CreateShl(b.CreateAdd(r.whole_int, int_constant(x, 126)), int_constant(x, 23)));
  Value* y = b.CreateFSub(t, half);
  Value* lost = b.CreateFSub(b.CreateFSub(t, y), half);
  Value* result = b.CreateFAdd(fma(v, t, lost), y);
  result = b.CreateFAdd(result, result);
  result = b.CreateSelect(b.CreateFCmpOEQ(r.whole, constant(x, 0)), v, result);
  return b.CreateSelect(b.CreateFCmpOEQ(x, constant(x, 0)), x, result);  // keeps -0
}

Value* MathEmitter::expm1(Value* x) {
  Value* low = select_less(x, -50, -50, x);
  Value* large = b.CreateFCmpOGT(low, constant(x, 88));
  // From here on, expm1 and exp round to the same float.
  return b.CreateSelect(large, exp(x), expm1_core(b.CreateSelect(large, constant(x, 88), low)));
}

MathEmitter::Mantissa MathEmitter::split(Value* x) {
  Value* tiny = b.CreateFCmpOLT(x, constant(x, 1.17549435e-38));
  Value* scaled = b.CreateSelect(tiny, b.CreateFMul(x, constant(x, 8388608.0)), x);
  Value* bits = as_int(scaled);
  Value* e = b.CreateAnd(b.CreateSub(bits, int_constant(x, 0x3f2aaaab)), int_constant(x, -0x00800000));
  Value* m = as_float(b.CreateSub(bits, e));
  Value* exponent = b.CreateSIToFP(b.CreateAShr(e, int_constant(x, 23)), x->getType());
  exponent = b.CreateFAdd(exponent, b.CreateSelect(tiny, constant(x, -23), constant(x, 0)));
  return {b.CreateFSub(m, constant(x, 1)), exponent};
}

Value* MathEmitter::log_of(Value* f) {
  Value* s = b.CreateFMul(f, f);
  Value* r = polynomial(s, {-0.130310059, -0.121483512, -0.166846126, -0.249996200});
  Value* t = polynomial(s, {0.140869141, 0.139814854, 0.200120345});
  r = fma(t, f, r);
  r = fma(r, f, 0.333331972);
  r = fma(r, f, -0.5);
  return fma(r, s, f);
}

Value* MathEmitter::log_ends(Value* x, Value* result) {
  result = b.CreateSelect(b.CreateFCmpOEQ(x, constant(x, infinity)), x, result);
  result = b.CreateSelect(b.CreateFCmpOEQ(x, constant(x, 0)), constant(x, -infinity), result);
  // Negative or NaN. The sign is that of the NaNs that machines and libm make, which copysign shows.
  Value* invalid = b.CreateFCmpULT(x, constant(x, 0));
  return b.CreateSelect(invalid, constant(x, -std::numeric_limits<double>::quiet_NaN()), result);
}

Value* MathEmitter::log(Value* x) {
  Mantissa m = split(x);
  return log_ends(x, fma(m.e, 0.693147182, log_of(m.f)));
}

Value* MathEmitter::log2(Value* x) {
  Mantissa m = split(x);
  Value* l = log_of(m.f);
  return log_ends(x, b.CreateFAdd(m.e, fma(l, 1.44269502, b.CreateFMul(l, constant(x, 1.92596299e-8)))));
}

Value* MathEmitter::log10(Value* x) {
  Mantissa m = split(x);
  Value* l = log_of(m.f);
  Value* low = fma(m.e, 4.60503907e-6, b.CreateFMul(l, constant(x, -1.01030501e-8)));
  return log_ends(x, fma(m.e, 0.301025391, fma(l, 0.434294492, low)));
}

Value* MathEmitter::log1p(Value* x) {
  Value* one = constant(x, 1);
  Value* u = b.CreateFAdd(one, x);
  Value* v = b.CreateFSub(u, one);
  Value* lost = b.CreateFAdd(b.CreateFSub(one, b.CreateFSub(u, v)), b.CreateFSub(x, v));
  Value* bits = as_int(u);
  Value* e = b.CreateAnd(b.CreateSub(bits, int_constant(x, 0x3f2aaaab)), int_constant(x, -0x00800000));
  // 2^-exponent, kept above 0 where it would underflow; the result does not change there.
  Value* inverse = b.CreateSub(int_constant(x, 0x3f800000), e);
  Value* scale = as_float(b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, inverse, int_constant(x, 0x00800000)));
  Value* f = fma(lost, scale, b.CreateFSub(as_float(b.CreateSub(bits, e)), one));
  Value* exponent = b.CreateSIToFP(b.CreateAShr(e, int_constant(x, 23)), x->getType());
  Value* result = log_ends(u, fma(exponent, 0.693147182, log_of(f)));
  return b.CreateSelect(b.CreateFCmpOEQ(x, constant(x, 0)), x, result);  // keeps -0
}

Value* MathEmitter::tanh(Value* x) {
  Value* a = b.CreateFMul(abs(x), constant(x, -2));
  Value* m = expm1_of_negative(select_less(a, -40, -40, a));
  return copysign(divide(m, b.CreateFAdd(m, constant(x, 2))), x);
}

Value* MathEmitter::sigmoid(Value* x) {
  Value* one = constant(x, 1);
  Value* low = select_less(x, -88, -88, x);
  Reduced r = reduce_ln2(b.CreateFNeg(b.CreateSelect(b.CreateFCmpOGT(low, constant(x, 87)), constant(x, 87), low)));
  Value* e = b.CreateFMul(exp_of_rest(r.rest), power_of_two(r));
  return select_less(x, -88, 0, divide(one, b.CreateFAdd(one, e)));
}

Value* MathEmitter::erf_by_pieces(Value* x) {
  Value* a = abs(x);
  Value* shifted = fma(a, 1 / ErfPieces::length, constant(x, magic));
  Value* rest = fma(b.CreateFSub(shifted, constant(x, magic)), -ErfPieces::length, a);
  auto coefficient = [&](std::size_t power) {
    auto half = [&](std::size_t first) {
      const auto all = llvm::ArrayRef(erf_pieces().of_power[power]);
      return llvm::ConstantDataVector::get(b.getContext(), all.slice(first, ErfPieces::pieces / 2));
    };
    // The instruction reads the low bits, which hold the number of the piece.
    return by_sixteen({shifted}, [&](std::span<Value* const> v) -> Value* {
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_ps_512, {},
                               {half(0), as_int(v[0]), half(ErfPieces::pieces / 2)});
    });
  };
  Value* ratio = coefficient(ErfPieces::coefficients - 1);
  for (std::size_t power = ErfPieces::coefficients - 1; power-- > 0;) ratio = fma(ratio, rest, coefficient(power));
  Value* one = constant(x, 1);
  Value* value = b.CreateFMul(ratio, a);
  value = b.CreateSelect(b.CreateFCmpOGT(value, one), one, value);
  return copysign(b.CreateSelect(b.CreateFCmpOGT(a, constant(x, ErfPieces::one)), one, value), x);
}

/// log(1 - erf(t)) is t times a polynomial, fitted so that erf has a uniform relative error.
Value* MathEmitter::erf(Value* x) {
  if (avx512) return erf_by_pieces(x);
  Value* a = abs(x);
  Value* t = b.CreateSelect(b.CreateFCmpOGT(a, constant(x, 4)), constant(x, 4), a);
  Value* p = polynomial(t, {8.35054016e-06, -1.09214947e-4, 6.013987e-4, -1.60648942e-3, 9.59078097e-05, 1.91908572e-2,
                            -1.02789201e-1, -6.36617899e-1, -1.12837923});
  return copysign(expm1_of_negative(b.CreateFMul(p, t)), x);
}

MathEmitter::Quadrant MathEmitter::quadrant(Value* x) {
  Value* d = b.CreateFPExt(x, with_element(x, b.getDoubleTy()));
  constexpr double magic_double = 6755399441055744.0;  // 1.5 * 2^52
  Value* shifted = fma(d, 6.36619772367581382433e-1, constant(d, magic_double));
  Value* n = b.CreateFSub(shifted, constant(d, magic_double));
  Value* rest = fma(n, -1.57079632679489655800e+0, d);
  rest = fma(n, -6.12323399573676603587e-17, rest);
  Value* bits = b.CreateBitCast(shifted, with_element(x, b.getInt64Ty()));
  return {rest, b.CreateTrunc(bits, with_element(x, b.getInt32Ty()))};
}

Value* MathEmitter::sine_of(Value* r) {
  Value* s = b.CreateFMul(r, r);
  Value* p =
      polynomial(s, {2.7557319223985893e-06, -1.9841269841269841e-04, 8.3333333333333332e-03, -1.6666666666666666e-01});
  return fma(b.CreateFMul(p, s), r, r);
}

Value* MathEmitter::cosine_of(Value* r) {
  Value* s = b.CreateFMul(r, r);
  return polynomial(
      s, {-2.7557319223985888e-07, 2.4801587301587302e-05, -1.3888888888888889e-03, 4.1666666666666664e-02, -0.5, 1});
}

Value* MathEmitter::sine(Value* x, int shift) {
  Quadrant q = quadrant(x);
  Value* count = b.CreateAdd(q.count, int_constant(x, shift));
  Value* zero = int_constant(x, 0);
  Value* odd = b.CreateICmpNE(b.CreateAnd(count, int_constant(x, 1)), zero);
  Value* value = b.CreateFPTrunc(b.CreateSelect(odd, cosine_of(q.rest), sine_of(q.rest)), x->getType());
  Value* negative = b.CreateICmpNE(b.CreateAnd(count, int_constant(x, 2)), zero);
  value = b.CreateSelect(negative, b.CreateFNeg(value), value);
  // The reduction turns -0 into +0, so select x itself.
  return shift == 0 ? b.CreateSelect(b.CreateFCmpOEQ(x, constant(x, 0)), x, value) : value;
}

Value* MathEmitter::tan(Value* x) {
  Quadrant q = quadrant(x);
  Value* odd = b.CreateICmpNE(b.CreateAnd(q.count, int_constant(x, 1)), int_constant(x, 0));
  Value* s = sine_of(q.rest);
  Value* c = cosine_of(q.rest);
  Value* value = b.CreateSelect(odd, b.CreateFDiv(b.CreateFNeg(c), s), b.CreateFDiv(s, c));
  value = b.CreateFPTrunc(value, x->getType());
  return b.CreateSelect(b.CreateFCmpOEQ(x, constant(x, 0)), x, value);
}

}  // namespace partita::codegen
