// What the text of every kernel begins with. NVRTC and nvcc take it as it stands. A C++ compiler takes it too, with
// PARTITA_EMULATED defined and CUDA's words before it: threadIdx, __syncthreads, __shfl_xor_sync, atomicAdd, rsqrt, ...
#include "core/loops/complex_device.h"

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

/// Half types as they are stored. Arithmetic on them is done in float.
struct Half {
  unsigned short bits;
};
struct BFloat16 {
  unsigned short bits;
};

namespace partita::loops::device {

template <class To, class From>
PARTITA_DEVICE To bitcast(From v) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  union {
    From from;
    To to;
  } u;
  u.from = v;
  return u.to;
}

PARTITA_DEVICE inline float to_float(Half v) {
#ifndef PARTITA_EMULATED
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
#else
  return bitcast<_Float16>(v.bits);
#endif
}
PARTITA_DEVICE inline float to_float(BFloat16 v) {
  return bitcast<float>(static_cast<unsigned int>(v.bits) << 16);
}
PARTITA_DEVICE inline Half to_half(float v) {
#ifndef PARTITA_EMULATED
  Half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(v));
  return h;
#else
  return {bitcast<unsigned short>(static_cast<_Float16>(v))};
#endif
}
/// Rounds to nearest even; NaN stays NaN.
PARTITA_DEVICE inline BFloat16 to_bfloat16(float v) {
  const unsigned int bits = bitcast<unsigned int>(v);
  const unsigned int rounded = v != v ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  return {static_cast<unsigned short>(rounded >> 16)};
}

/// A float as an integer, as PyTorch converts on x86: out of range and NaN give the least int32 (the least int64 for
/// 64-bit types and unsigned int), of which narrower types take the low bits.
template <class To, class From>
PARTITA_DEVICE To to_integer(From v) {
  if constexpr (sizeof(To) == 8 && !is_signed<To>)
    if (v >= From(9223372036854775808.0))
      return static_cast<To>(to_integer<long long>(v - From(9223372036854775808.0))) ^ (To(1) << 63);
  if constexpr (sizeof(To) < 4 || (sizeof(To) == 4 && is_signed<To>)) {
    if (!(v > -2147483649.0 && v < 2147483648.0)) return static_cast<To>(-2147483647 - 1);
  } else {
    if (!(v > -9.2233720368547758e18 && v < 9.2233720368547758e18)) return static_cast<To>(-9223372036854775807LL - 1);
  }
  return static_cast<To>(static_cast<long long>(v));
}

// The rows of scalar_ops.def, for what has no operator or function of that meaning in C++.
constexpr bool Same = false, Bool = true;
template <bool is_bool, class T>
struct ResultOf {
  using type = T;
};
template <class T>
struct ResultOf<true, T> {
  using type = bool;
};
#define SCALAR_OP(name, arity, result, weight, evaluation, cuda, ...)                                      \
  template <class T>                                                                                       \
  PARTITA_DEVICE typename ResultOf<result, T>::type name([[maybe_unused]] T a, [[maybe_unused]] T b = T(), \
                                                         [[maybe_unused]] T c = T()) {                     \
    return static_cast<typename ResultOf<result, T>::type>(cuda);                                          \
  }
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP

/// Neighbouring elements, which are loaded and stored at once where they begin at a multiple of their size or of 16.
template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) Pack {
  T of[n];
  PARTITA_DEVICE T& operator[](int i) { return of[i]; }
  PARTITA_DEVICE const T& operator[](int i) const { return of[i]; }
};
template <int n, class T>
PARTITA_DEVICE Pack<T, n> load(const T* from) {
  return *reinterpret_cast<const Pack<T, n>*>(from);
}
/// The first `left` elements, one by one.
template <int n, class T>
PARTITA_DEVICE Pack<T, n> load_each(const T* from, long long left) {
  Pack<T, n> pack = {};
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (i < left) pack[i] = from[i];
  return pack;
}
template <int n, class T>
PARTITA_DEVICE Pack<T, n> load(const T* from, long long left) {
  return left >= n ? load<n>(from) : load_each<n>(from, left);
}
/// They may begin anywhere: sizes decide.
template <int n, class T>
PARTITA_DEVICE bool begins_pack(const T* at) {
  return reinterpret_cast<unsigned long long>(at) % alignof(Pack<T, n>) == 0;
}
template <int n, class T>
PARTITA_DEVICE Pack<T, n> load_any(const T* from, long long left = n) {
  return begins_pack<n>(from) ? load<n>(from, left) : load_each<n>(from, left);
}
template <class T, int n>
PARTITA_DEVICE void store(T* to, const Pack<T, n>& pack) {
  *reinterpret_cast<Pack<T, n>*>(to) = pack;
}
template <class T, int n>
PARTITA_DEVICE void store_each(T* to, const Pack<T, n>& pack, long long left) {
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (i < left) to[i] = pack[i];
}
template <class T, int n>
PARTITA_DEVICE void store(T* to, const Pack<T, n>& pack, long long left) {
  left >= n ? store(to, pack) : store_each(to, pack, left);
}
template <class T, int n>
PARTITA_DEVICE void store_any(T* to, const Pack<T, n>& pack, long long left = n) {
  begins_pack<n>(to) ? store(to, pack, left) : store_each(to, pack, left);
}

/// codegen/host/runtime.h has this for the host. Only the first fault is kept.
struct KernelFault {
  unsigned int met;
  long long which, position;
};
PARTITA_DEVICE inline void report(KernelFault* fault, long long which, long long position) {
  if (atomicExch(&fault->met, 1u) != 0u) return;
  fault->which = which;
  fault->position = position;
}
/// `position` if it lies in 0 .. size-1. Otherwise a fault, and 0.
PARTITA_DEVICE inline long long within(long long position, long long size, KernelFault* fault, int which) {
  if (static_cast<unsigned long long>(position) < static_cast<unsigned long long>(size)) return position;
  report(fault, which, position);
  return 0;
}
/// The divisor of integers. Zero is a fault.
template <class T>
PARTITA_DEVICE T nonzero(T divisor, KernelFault* fault) {
  if (divisor == T(0)) report(fault, -1, 0);
  return divisor;
}

/// What another lane of the warp gives.
template <class T>
PARTITA_DEVICE T exchanged(T v, int lane) {
  return static_cast<T>(__shfl_xor_sync(~0u, v, lane, 32));
}
template <class R>
PARTITA_DEVICE Complex<R> exchanged(Complex<R> v, int lane) {
  return {exchanged(v.re, lane), exchanged(v.im, lane)};
}

template <class T>
PARTITA_DEVICE T sum_of(T a, T b) {
  return Add(a, b);
}
PARTITA_DEVICE inline Half sum_of(Half a, Half b) {
  return to_half(to_float(a) + to_float(b));
}
PARTITA_DEVICE inline BFloat16 sum_of(BFloat16 a, BFloat16 b) {
  return to_bfloat16(to_float(a) + to_float(b));
}

/// *to += v, while other threads do so. Types of one or two bytes are exchanged with the word around them.
template <class T>
PARTITA_DEVICE void atomic_add(T* to, T v) {
  static_assert(sizeof(T) <= 2, "a type with an atomicAdd");
  const unsigned long long address = reinterpret_cast<unsigned long long>(to);
  unsigned int* word = reinterpret_cast<unsigned int*>(address & ~3ull);
  const unsigned int shift = static_cast<unsigned int>(address & 3ull) * 8u, mask = (sizeof(T) == 1 ? 0xffu : 0xffffu);
  unsigned int seen = atomicAdd(word, 0u), before;
  do {
    before = seen;
    const unsigned int bits = before >> shift & mask;
    unsigned int sum;
    if constexpr (sizeof(T) == 1)
      sum = bitcast<unsigned char>(sum_of(bitcast<T>(static_cast<unsigned char>(bits)), v));
    else
      sum = bitcast<unsigned short>(sum_of(bitcast<T>(static_cast<unsigned short>(bits)), v));
    seen = atomicCAS(word, before, (before & ~(mask << shift)) | sum << shift);
  } while (seen != before);
}
PARTITA_DEVICE inline void atomic_add(float* to, float v) {
  atomicAdd(to, v);
}
PARTITA_DEVICE inline void atomic_add(double* to, double v) {
  atomicAdd(to, v);
}
PARTITA_DEVICE inline void atomic_add(int* to, int v) {
  atomicAdd(to, v);
}
PARTITA_DEVICE inline void atomic_add(unsigned int* to, unsigned int v) {
  atomicAdd(to, v);
}
PARTITA_DEVICE inline void atomic_add(unsigned long long* to, unsigned long long v) {
  atomicAdd(to, v);
}
PARTITA_DEVICE inline void atomic_add(long long* to, long long v) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(v));
}
template <class R>
PARTITA_DEVICE void atomic_add(Complex<R>* to, Complex<R> v) {
  atomicAdd(&to->re, v.re);
  atomicAdd(&to->im, v.im);
}

// warp_sum, block_sum, warp_max, ...: every thread gives a value and gets all of them combined. All threads of the warp
// or of the block take part. A block has a whole number of warps.
#define PARTITA_REDUCTION(word, row)                                                                        \
  template <class T>                                                                                        \
  PARTITA_DEVICE T warp_##word(T v) {                                                                       \
    for (int lane = 16; lane > 0; lane /= 2) v = row(v, exchanged(v, lane));                                \
    return v;                                                                                               \
  }                                                                                                         \
  template <class T>                                                                                        \
  PARTITA_DEVICE T block_##word(T v) {                                                                      \
    __shared__ T of_warps[32];                                                                              \
    v = warp_##word(v);                                                                                     \
    if (blockDim.x == 32) return v;                                                                         \
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;                                              \
    __syncthreads();                                                                                        \
    v = of_warps[0];                                                                                        \
    for (unsigned int warp = 1; warp < blockDim.x / 32; ++warp) v = row(v, of_warps[warp]);                 \
    __syncthreads();                                                                                        \
    return v;                                                                                               \
  }
PARTITA_REDUCTION(sum, Add)
PARTITA_REDUCTION(product, Mul)
PARTITA_REDUCTION(min, Min)
PARTITA_REDUCTION(max, Max)
PARTITA_REDUCTION(and, BitAnd)
PARTITA_REDUCTION(or, BitOr)
#undef PARTITA_REDUCTION

}  // namespace partita::loops::device

using namespace partita::loops::device;
