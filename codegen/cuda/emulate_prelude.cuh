// CUDA's words in C++, for kernels that run on this machine's CPU. What needs the other threads of a block is a function
// of the runtime (emulate_run.cpp): a wait tells it the line, which the compiler fills in as the last argument.
#define PARTITA_EMULATED 1
#define __CUDACC__ 1
#define __device__ __attribute__((always_inline))
#define __host__
#define __global__ __attribute__((noinline))
#define __shared__ __attribute__((annotate("partita_shared")))
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict

typedef unsigned long size_t;
struct uint3 {
  unsigned x, y, z;
};
typedef uint3 dim3;

extern "C" {
struct partita_place {
  uint3 thread, block, block_size, grid;
};
/// Of the thread that asks.
const partita_place* partita_here() __attribute__((const, nothrow));
unsigned long partita_static_shared();
/// Waits for all threads of the block; how many of them gave a predicate.
unsigned partita_wait_block(int predicate, unsigned line) __attribute__((convergent, nothrow));
/// Waits for the lanes of the mask; what each of them gave, 64 bytes for a lane.
const char* partita_wait_warp(unsigned mask, const void* mine, unsigned bytes, unsigned line)
    __attribute__((convergent, nothrow));
/// The lane whose value is asked for gave none.
void partita_wait_nobody(unsigned mask, unsigned lane, unsigned line) __attribute__((nothrow));
unsigned partita_active() __attribute__((nothrow));
void partita_wait_trap(unsigned line) __attribute__((nothrow));
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
float partita_Erfinv_f32(float);
double partita_Erfinv_f64(double);
}

#define threadIdx (partita_here()->thread)
#define blockIdx (partita_here()->block)
#define blockDim (partita_here()->block_size)
#define gridDim (partita_here()->grid)
#define warpSize 32
#define PARTITA_INLINE static inline __attribute__((always_inline))

PARTITA_INLINE void __syncthreads() { partita_wait_block(0, 0); }
PARTITA_INLINE int __syncthreads_count(int predicate) { return partita_wait_block(predicate, 0); }
PARTITA_INLINE int __syncthreads_or(int predicate) { return partita_wait_block(predicate, 0) != 0; }
PARTITA_INLINE int __syncthreads_and(int predicate) { return partita_wait_block(!predicate, 0) == 0; }
PARTITA_INLINE void __syncwarp(unsigned mask = 0xffffffff) { partita_wait_warp(mask, nullptr, 0, 0); }
PARTITA_INLINE unsigned __activemask() { return partita_active(); }
PARTITA_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
PARTITA_INLINE void __threadfence_block() {}
PARTITA_INLINE void __trap() { partita_wait_trap(0); }
#define __builtin_assume_aligned(p, n) (p)

PARTITA_INLINE unsigned partita_lane() { return threadIdx.x & 31; }
template <class T>
PARTITA_INLINE T partita_from_lane(unsigned mask, T mine, unsigned lane) {
  static_assert(sizeof(T) <= 64, "a value that lanes exchange");
  const char* all = partita_wait_warp(mask, &mine, sizeof(T), 0);
  if (!(mask >> lane & 1)) partita_wait_nobody(mask, lane, 0);
  T out;
  __builtin_memcpy(&out, all + 64 * lane, sizeof(T));
  return out;
}
template <class T>
PARTITA_INLINE T __shfl_sync(unsigned mask, T mine, int from, int width = 32) {
  return partita_from_lane(mask, mine, (partita_lane() & ~unsigned(width - 1)) | (unsigned(from) & unsigned(width - 1)));
}
template <class T>
PARTITA_INLINE T __shfl_up_sync(unsigned mask, T mine, unsigned delta, int width = 32) {
  const unsigned lane = partita_lane(), first = lane & ~unsigned(width - 1);
  return partita_from_lane(mask, mine, lane >= first + delta ? lane - delta : lane);
}
template <class T>
PARTITA_INLINE T __shfl_down_sync(unsigned mask, T mine, unsigned delta, int width = 32) {
  const unsigned lane = partita_lane();
  return partita_from_lane(mask, mine, (lane & unsigned(width - 1)) + delta < unsigned(width) ? lane + delta : lane);
}
template <class T>
PARTITA_INLINE T __shfl_xor_sync(unsigned mask, T mine, int bits, int width = 32) {
  const unsigned lane = partita_lane(), from = lane ^ unsigned(bits);
  return partita_from_lane(mask, mine, from <= (lane | unsigned(width - 1)) ? from : lane);
}
PARTITA_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  const char* all = partita_wait_warp(mask, &predicate, sizeof(int), 0);
  unsigned out = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      int theirs;
      __builtin_memcpy(&theirs, all + 64 * lane, sizeof(int));
      out |= unsigned(theirs != 0) << lane;
    }
  return out;
}
PARTITA_INLINE int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
PARTITA_INLINE int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T>
PARTITA_INLINE unsigned __match_any_sync(unsigned mask, T mine) {
  const char* all = partita_wait_warp(mask, &mine, sizeof(T), 0);
  unsigned out = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    T theirs;
    __builtin_memcpy(&theirs, all + 64 * lane, sizeof(T));
    if (mask >> lane & 1 && theirs == mine) out |= 1u << lane;
  }
  return out;
}
/// The values of all lanes of a full warp, for matrix instructions that are written out.
template <class T>
PARTITA_INLINE void partita_warp_gather(const T& mine, T (&all)[32]) {
  static_assert(sizeof(T) <= 64, "a value that lanes exchange");
  const char* slots = partita_wait_warp(0xffffffff, &mine, sizeof(T), 0);
  for (unsigned lane = 0; lane < 32; ++lane) __builtin_memcpy(&all[lane], slots + 64 * lane, sizeof(T));
}

#define PARTITA_LOADS(name)       \
  template <class T>              \
  PARTITA_INLINE T name(const T* at) { \
    return *at;                   \
  }
PARTITA_LOADS(__ldg)
PARTITA_LOADS(__ldca)
PARTITA_LOADS(__ldcs)
PARTITA_LOADS(__ldcg)
PARTITA_LOADS(__ldlu)
PARTITA_LOADS(__ldcv)
#define PARTITA_STORES(name)                \
  template <class T>                        \
  PARTITA_INLINE void name(T* at, T value) { \
    *at = value;                            \
  }
PARTITA_STORES(__stcs)
PARTITA_STORES(__stcg)
PARTITA_STORES(__stwb)
PARTITA_STORES(__stwt)

template <class T>
struct partita_same {
  typedef T type;
};
#define PARTITA_ATOMIC(name, builtin)                                      \
  template <class T>                                                       \
  PARTITA_INLINE T name(T* at, typename partita_same<T>::type value) {     \
    return builtin(at, value, __ATOMIC_RELAXED);                           \
  }
PARTITA_ATOMIC(atomicAdd, __atomic_fetch_add)
PARTITA_ATOMIC(atomicSub, __atomic_fetch_sub)
PARTITA_ATOMIC(atomicMax, __atomic_fetch_max)
PARTITA_ATOMIC(atomicMin, __atomic_fetch_min)
PARTITA_ATOMIC(atomicAnd, __atomic_fetch_and)
PARTITA_ATOMIC(atomicOr, __atomic_fetch_or)
PARTITA_ATOMIC(atomicXor, __atomic_fetch_xor)
template <class T>
PARTITA_INLINE T atomicExch(T* at, typename partita_same<T>::type value) {
  T old;
  __atomic_exchange(at, &value, &old, __ATOMIC_RELAXED);
  return old;
}
template <class T>
PARTITA_INLINE T atomicCAS(T* at, typename partita_same<T>::type expected, typename partita_same<T>::type value) {
  __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

template <class To, class From>
PARTITA_INLINE To partita_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits of the same number");
  return __builtin_bit_cast(To, from);
}
PARTITA_INLINE int __float_as_int(float a) { return partita_bits<int>(a); }
PARTITA_INLINE unsigned __float_as_uint(float a) { return partita_bits<unsigned>(a); }
PARTITA_INLINE float __int_as_float(int a) { return partita_bits<float>(a); }
PARTITA_INLINE float __uint_as_float(unsigned a) { return partita_bits<float>(a); }
PARTITA_INLINE long long __double_as_longlong(double a) { return partita_bits<long long>(a); }
PARTITA_INLINE double __longlong_as_double(long long a) { return partita_bits<double>(a); }
PARTITA_INLINE int __double2hiint(double a) { return int(__double_as_longlong(a) >> 32); }
PARTITA_INLINE int __double2loint(double a) { return int(__double_as_longlong(a)); }
PARTITA_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)(unsigned)low | (long long)high << 32);
}
PARTITA_INLINE unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
PARTITA_INLINE int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
PARTITA_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
PARTITA_INLINE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
PARTITA_INLINE int __popc(unsigned a) { return __builtin_popcount(a); }
PARTITA_INLINE int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
PARTITA_INLINE int __clz(int a) { return a ? __builtin_clz(a) : 32; }
PARTITA_INLINE int __clzll(long long a) { return a ? __builtin_clzll(a) : 64; }
PARTITA_INLINE int __ffs(int a) { return __builtin_ffs(a); }
PARTITA_INLINE int __ffsll(long long a) { return __builtin_ffsll(a); }
PARTITA_INLINE unsigned __brev(unsigned a) { return __builtin_bitreverse32(a); }

// Math: a name for float and double, and C's name for float.
#define PARTITA_MATH_1(name)                                                  \
  extern "C" float name##f(float) __attribute__((nothrow));                   \
  extern "C" double name(double) __attribute__((nothrow));                    \
  PARTITA_INLINE float name(float a) { return name##f(a); }
#define PARTITA_MATH_2(name)                                                  \
  extern "C" float name##f(float, float) __attribute__((nothrow));            \
  extern "C" double name(double, double) __attribute__((nothrow));            \
  PARTITA_INLINE float name(float a, float b) { return name##f(a, b); }
#define PARTITA_BUILTIN_1(name)                                                   \
  PARTITA_INLINE float name##f(float a) { return __builtin_##name##f(a); }        \
  PARTITA_INLINE float name(float a) { return __builtin_##name##f(a); }           \
  PARTITA_INLINE double name(double a) { return __builtin_##name(a); }
PARTITA_BUILTIN_1(sqrt)
PARTITA_BUILTIN_1(fabs)
PARTITA_BUILTIN_1(floor)
PARTITA_BUILTIN_1(ceil)
PARTITA_BUILTIN_1(trunc)
PARTITA_BUILTIN_1(rint)
PARTITA_BUILTIN_1(nearbyint)
PARTITA_BUILTIN_1(round)
PARTITA_MATH_1(exp)
PARTITA_MATH_1(exp2)
PARTITA_MATH_1(exp10)
PARTITA_MATH_1(expm1)
PARTITA_MATH_1(log)
PARTITA_MATH_1(log2)
PARTITA_MATH_1(log10)
PARTITA_MATH_1(log1p)
PARTITA_MATH_1(sin)
PARTITA_MATH_1(cos)
PARTITA_MATH_1(tan)
PARTITA_MATH_1(asin)
PARTITA_MATH_1(acos)
PARTITA_MATH_1(atan)
PARTITA_MATH_1(sinh)
PARTITA_MATH_1(cosh)
PARTITA_MATH_1(tanh)
PARTITA_MATH_1(asinh)
PARTITA_MATH_1(acosh)
PARTITA_MATH_1(atanh)
PARTITA_MATH_1(erf)
PARTITA_MATH_1(erfc)
PARTITA_MATH_1(lgamma)
PARTITA_MATH_1(tgamma)
PARTITA_MATH_1(cbrt)
PARTITA_MATH_1(j0)
PARTITA_MATH_1(j1)
PARTITA_MATH_2(pow)
PARTITA_MATH_2(fmod)
PARTITA_MATH_2(remainder)
PARTITA_MATH_2(atan2)
PARTITA_MATH_2(hypot)
PARTITA_MATH_2(nextafter)
#define PARTITA_BUILTIN_2(name)                                                                    \
  PARTITA_INLINE float name##f(float a, float b) { return __builtin_##name##f(a, b); }             \
  PARTITA_INLINE float name(float a, float b) { return __builtin_##name##f(a, b); }                \
  PARTITA_INLINE double name(double a, double b) { return __builtin_##name(a, b); }
PARTITA_BUILTIN_2(copysign)
PARTITA_BUILTIN_2(fmin)
PARTITA_BUILTIN_2(fmax)
PARTITA_INLINE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PARTITA_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PARTITA_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
PARTITA_INLINE float rsqrtf(float a) { return 1 / __builtin_sqrtf(a); }
PARTITA_INLINE float rsqrt(float a) { return 1 / __builtin_sqrtf(a); }
PARTITA_INLINE double rsqrt(double a) { return 1 / __builtin_sqrt(a); }
PARTITA_INLINE float erfinvf(float a) { return partita_Erfinv_f32(a); }
PARTITA_INLINE float erfinv(float a) { return partita_Erfinv_f32(a); }
PARTITA_INLINE double erfinv(double a) { return partita_Erfinv_f64(a); }
PARTITA_INLINE float ldexpf(float a, int b) { return __builtin_ldexpf(a, b); }
PARTITA_INLINE float ldexp(float a, int b) { return __builtin_ldexpf(a, b); }
PARTITA_INLINE double ldexp(double a, int b) { return __builtin_ldexp(a, b); }
PARTITA_INLINE float scalbnf(float a, int b) { return __builtin_ldexpf(a, b); }
PARTITA_INLINE float frexpf(float a, int* b) { return __builtin_frexpf(a, b); }
PARTITA_INLINE float frexp(float a, int* b) { return __builtin_frexpf(a, b); }
PARTITA_INLINE double frexp(double a, int* b) { return __builtin_frexp(a, b); }
PARTITA_INLINE float fdividef(float a, float b) { return a / b; }
PARTITA_INLINE float __fdividef(float a, float b) { return a / b; }
PARTITA_INLINE float __expf(float a) { return expf(a); }
PARTITA_INLINE float __exp10f(float a) { return exp10f(a); }
PARTITA_INLINE float __logf(float a) { return logf(a); }
PARTITA_INLINE float __log2f(float a) { return log2f(a); }
PARTITA_INLINE float __sinf(float a) { return sinf(a); }
PARTITA_INLINE float __cosf(float a) { return cosf(a); }
PARTITA_INLINE float __powf(float a, float b) { return powf(a, b); }
PARTITA_INLINE float __frcp_rn(float a) { return 1 / a; }
PARTITA_INLINE float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
PARTITA_INLINE float __frsqrt_rn(float a) { return 1 / __builtin_sqrtf(a); }
PARTITA_INLINE float __fadd_rn(float a, float b) { return a + b; }
PARTITA_INLINE float __fsub_rn(float a, float b) { return a - b; }
PARTITA_INLINE float __fmul_rn(float a, float b) { return a * b; }
PARTITA_INLINE float __fdiv_rn(float a, float b) { return a / b; }
PARTITA_INLINE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PARTITA_INLINE double __dadd_rn(double a, double b) { return a + b; }
PARTITA_INLINE double __dsub_rn(double a, double b) { return a - b; }
PARTITA_INLINE double __dmul_rn(double a, double b) { return a * b; }
PARTITA_INLINE double __ddiv_rn(double a, double b) { return a / b; }
PARTITA_INLINE double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
PARTITA_INLINE double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
PARTITA_INLINE float __saturatef(float a) { return a > 0 ? a < 1 ? a : 1 : 0; }
#define PARTITA_TESTS(T)                                                   \
  PARTITA_INLINE bool isnan(T a) { return a != a; }                        \
  PARTITA_INLINE bool isinf(T a) { return __builtin_isinf(a); }            \
  PARTITA_INLINE bool isfinite(T a) { return __builtin_isfinite(a); }      \
  PARTITA_INLINE bool signbit(T a) { return __builtin_signbit(a); }
PARTITA_TESTS(float)
PARTITA_TESTS(double)
#define PARTITA_EXTREMES(T)                                        \
  PARTITA_INLINE T min(T a, T b) { return b < a ? b : a; }         \
  PARTITA_INLINE T max(T a, T b) { return a < b ? b : a; }
PARTITA_EXTREMES(int)
PARTITA_EXTREMES(unsigned)
PARTITA_EXTREMES(long)
PARTITA_EXTREMES(unsigned long)
PARTITA_EXTREMES(long long)
PARTITA_EXTREMES(unsigned long long)
PARTITA_INLINE float min(float a, float b) { return __builtin_fminf(a, b); }
PARTITA_INLINE float max(float a, float b) { return __builtin_fmaxf(a, b); }
PARTITA_INLINE double min(double a, double b) { return __builtin_fmin(a, b); }
PARTITA_INLINE double max(double a, double b) { return __builtin_fmax(a, b); }
PARTITA_INLINE int abs(int a) { return a < 0 ? -a : a; }
PARTITA_INLINE long long abs(long long a) { return a < 0 ? -a : a; }
PARTITA_INLINE long long llabs(long long a) { return a < 0 ? -a : a; }
PARTITA_INLINE float abs(float a) { return __builtin_fabsf(a); }
PARTITA_INLINE double abs(double a) { return __builtin_fabs(a); }
PARTITA_INLINE float __int2float_rn(int a) { return float(a); }
PARTITA_INLINE float __uint2float_rn(unsigned a) { return float(a); }
PARTITA_INLINE int __float2int_rn(float a) { return int(__builtin_rintf(a)); }
PARTITA_INLINE int __float2int_rz(float a) { return int(a); }

// Vectors, aligned as CUDA aligns them.
#define PARTITA_VECTORS(T, name, two, four)                                                      \
  struct __attribute__((aligned(two))) name##2 {                                                 \
    T x, y;                                                                                      \
  };                                                                                             \
  struct name##3 {                                                                               \
    T x, y, z;                                                                                   \
  };                                                                                             \
  struct __attribute__((aligned(four))) name##4 {                                                \
    T x, y, z, w;                                                                                \
  };                                                                                             \
  PARTITA_INLINE name##2 make_##name##2(T x, T y) { return {x, y}; }                             \
  PARTITA_INLINE name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                     \
  PARTITA_INLINE name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define uint3 partita_uint3
PARTITA_VECTORS(char, char, 2, 4)
PARTITA_VECTORS(unsigned char, uchar, 2, 4)
PARTITA_VECTORS(short, short, 4, 8)
PARTITA_VECTORS(unsigned short, ushort, 4, 8)
PARTITA_VECTORS(int, int, 8, 16)
PARTITA_VECTORS(unsigned, uint, 8, 16)
PARTITA_VECTORS(long long, longlong, 16, 16)
PARTITA_VECTORS(unsigned long long, ulonglong, 16, 16)
PARTITA_VECTORS(float, float, 8, 16)
PARTITA_VECTORS(double, double, 16, 16)
#undef uint3

// Calls a kernel: its pointers in order from `arguments`, and its numbers from `symbols`.
template <class T>
inline constexpr int partita_pointers = 0;
template <class T>
inline constexpr int partita_pointers<T*> = 1;
template <class T>
inline constexpr int partita_pointers<T* __restrict> = 1;
template <class T>
PARTITA_INLINE T partita_argument(void* const*& arguments, const long*& symbols) {
  if constexpr (partita_pointers<T> != 0)
    return (T)*arguments++;
  else
    return T(*symbols++);
}
template <class... P>
struct partita_call {  // its braces take the arguments in order
  __attribute__((always_inline, disable_sanitizer_instrumentation)) partita_call(void (*kernel)(P...), P... p) {
    kernel(p...);
  }
};
template <class... P>
__attribute__((always_inline, disable_sanitizer_instrumentation)) inline void partita_run(
    void (*kernel)(P...), void* const* arguments, const long* symbols) {
  partita_call<P...>{kernel, partita_argument<P>(arguments, symbols)...};
}
template <class... P>
constexpr int partita_count(void (*)(P...)) {
  return (partita_pointers<P> + ... + 0);
}
extern "C" void partita_launch(void (*thread)(void* const*, const long*), unsigned threads, unsigned long shared,
                               bool cooperates, const char* names, void* const* arguments, const long* symbols,
                               void* launch, long begin, long end);
#define PARTITA_LAUNCH(kernel, threads, shared, cooperates, names)                                                   \
  extern "C" __attribute__((disable_sanitizer_instrumentation)) void kernel##_thread(void* const* arguments,        \
                                                                                    const long* symbols) {         \
    partita_run(kernel, arguments, symbols);                                                                        \
  }                                                                                                                 \
  extern "C" __attribute__((disable_sanitizer_instrumentation)) void kernel##_blocks(                               \
      void* const* arguments, const long* symbols, char*, long begin, long end) {                                   \
    partita_launch(kernel##_thread, threads, (shared) + partita_static_shared(), cooperates, names, arguments,      \
                   symbols, arguments[partita_count(kernel)], begin, end);                                          \
  }
