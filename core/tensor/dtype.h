#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

namespace partita {

/// bfloat16 and float16 as they are stored. Arithmetic on them is done in float.
struct BFloat16 {
  std::uint16_t bits;
};
struct Half {
  std::uint16_t bits;
};
/// A bool as it is stored. A file, or a view of another dtype, may leave any byte there, which C++ may not read as
/// bool; every byte other than 0 counts as true.
struct StoredBool {
  std::uint8_t byte = 0;
  StoredBool() = default;
  constexpr StoredBool(bool v) : byte(v) {}
  constexpr operator bool() const { return byte != 0; }
};
/// The type in which a stored T is computed with, and the type in which a T is stored.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, StoredBool>, bool, T>;
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, StoredBool, T>;
/// Integers and bool.
template <class T>
inline constexpr bool is_integral_type = std::is_integral_v<T> || std::is_same_v<T, StoredBool>;
float to_float(BFloat16 v);
float to_float(Half v);
BFloat16 to_bfloat16(float v);  ///< round to nearest even, NaN stays NaN
Half to_half(float v);          ///< round to nearest even, overflow to infinity

/// Columns: name, short form in annotations, torch name, storage type, bytes, code in .pt2 archives, safetensors name.
/// Within a category, rows are in the order of the type promotion lattice: the later dtype wins; those behind
/// complex128 take no part in it. The code is -1, and the safetensors name empty, where these formats have no such
/// dtype.
#define PARTITA_DTYPES(V)                                                                \
  V(Bool, "b8", "bool", ::partita::StoredBool, 1, 12, "BOOL")                            \
  V(UInt8, "u8", "uint8", std::uint8_t, 1, 1, "U8")                                      \
  V(Int8, "i8", "int8", std::int8_t, 1, 2, "I8")                                         \
  V(UInt16, "u16", "uint16", std::uint16_t, 2, 28, "U16")                                \
  V(Int16, "i16", "int16", std::int16_t, 2, 3, "I16")                                    \
  V(UInt32, "u32", "uint32", std::uint32_t, 4, 34, "U32")                                \
  V(Int32, "i32", "int32", std::int32_t, 4, 4, "I32")                                    \
  V(UInt64, "u64", "uint64", std::uint64_t, 8, 35, "U64")                                \
  V(Int64, "i64", "int64", std::int64_t, 8, 5, "I64")                                    \
  V(Float8E4M3FN, "f8e4m3fn", "float8_e4m3fn", std::uint8_t, 1, 29, "F8_E4M3")           \
  V(Float8E5M2, "f8e5m2", "float8_e5m2", std::uint8_t, 1, 30, "F8_E5M2")                 \
  V(Float16, "f16", "float16", ::partita::Half, 2, 6, "F16")                             \
  V(BFloat16, "bf16", "bfloat16", ::partita::BFloat16, 2, 13, "BF16")                    \
  V(Float32, "f32", "float32", float, 4, 7, "F32")                                       \
  V(Float64, "f64", "float64", double, 8, 8, "F64")                                      \
  V(Complex32, "c32", "complex32", std::uint32_t, 4, 9, "")                              \
  V(Complex64, "c64", "complex64", std::complex<float>, 8, 10, "C64")                    \
  V(Complex128, "c128", "complex128", std::complex<double>, 16, 11, "")                  \
  V(Float8E4M3FNUZ, "f8e4m3fnuz", "float8_e4m3fnuz", std::uint8_t, 1, 31, "F8_E4M3FNUZ") \
  V(Float8E5M2FNUZ, "f8e5m2fnuz", "float8_e5m2fnuz", std::uint8_t, 1, 32, "F8_E5M2FNUZ") \
  V(Float8E8M0FNU, "f8e8m0fnu", "float8_e8m0fnu", std::uint8_t, 1, 33, "F8_E8M0")        \
  V(Float4E2M1FNx2, "f4e2m1fnx2", "float4_e2m1fn_x2", std::uint8_t, 1, -1, "")           \
  V(UInt1, "u1", "uint1", std::uint8_t, 1, -1, "")                                       \
  V(UInt2, "u2", "uint2", std::uint8_t, 1, -1, "")                                       \
  V(UInt3, "u3", "uint3", std::uint8_t, 1, -1, "")                                       \
  V(UInt4, "u4", "uint4", std::uint8_t, 1, -1, "")                                       \
  V(UInt5, "u5", "uint5", std::uint8_t, 1, -1, "")                                       \
  V(UInt6, "u6", "uint6", std::uint8_t, 1, -1, "")                                       \
  V(UInt7, "u7", "uint7", std::uint8_t, 1, -1, "")                                       \
  V(Int1, "i1", "int1", std::uint8_t, 1, -1, "")                                         \
  V(Int2, "i2", "int2", std::uint8_t, 1, -1, "")                                         \
  V(Int3, "i3", "int3", std::uint8_t, 1, -1, "")                                         \
  V(Int4, "i4", "int4", std::uint8_t, 1, -1, "")                                         \
  V(Int5, "i5", "int5", std::uint8_t, 1, -1, "")                                         \
  V(Int6, "i6", "int6", std::uint8_t, 1, -1, "")                                         \
  V(Int7, "i7", "int7", std::uint8_t, 1, -1, "")                                         \
  V(Bits1x8, "b1x8", "bits1x8", std::uint8_t, 1, -1, "")                                 \
  V(Bits2x4, "b2x4", "bits2x4", std::uint8_t, 1, -1, "")                                 \
  V(Bits4x2, "b4x2", "bits4x2", std::uint8_t, 1, -1, "")                                 \
  V(Bits8, "b8x1", "bits8", std::uint8_t, 1, -1, "")                                     \
  V(Bits16, "b16x1", "bits16", std::uint16_t, 2, -1, "")

enum class DType : std::uint8_t {
#define V(name, ...) name,
  PARTITA_DTYPES(V)
#undef V
};

std::size_t itemsize(DType t);               ///< bytes of one element
std::string_view short_name(DType t);        ///< "f32"
std::string_view torch_name(DType t);        ///< "float32"; Python writes torch.float32
std::string_view safetensors_name(DType t);  ///< "F32"; empty for complex
/// The other way round; nullopt for a name that no dtype has.
std::optional<DType> dtype_from_short(std::string_view name);
std::optional<DType> dtype_from_torch(
    std::string_view name);  ///< also float, double, half, long, int, short, cfloat, ...
std::optional<DType> dtype_from_safetensors(std::string_view name);
std::optional<DType> dtype_from_pt2(int code);

bool is_floating(DType t);  ///< includes half types and float8
/// False for float8, complex32 and opaque dtypes: they may be stored, viewed and read, but not computed.
bool has_arithmetic(DType t);
/// Several numbers packed into a byte, or bits without a meaning of their own. PyTorch too only stores them, copies
/// them and views them as bytes.
bool is_opaque(DType t);
bool is_complex(DType t);
bool is_integral(DType t);  ///< false for bool
bool is_signed(DType t);
DType real_of(DType t);     ///< complex64 -> float32; itself otherwise
DType complex_of(DType t);  ///< float32 -> complex64; itself for complex
/// PyTorch's opmath, in which arithmetic is done: float32 for half types, t itself otherwise.
DType opmath_dtype(DType t);
/// torch.promote_types: the common dtype of two tensors of the same rank category.
DType promote(DType a, DType b);

/// Calls f.template operator()<T>() with the storage type of t. CHECKs that t has_arithmetic().
template <class F>
decltype(auto) dispatch(DType t, F&& f);

}  // namespace partita

template <>
struct std::numeric_limits<partita::StoredBool> : std::numeric_limits<bool> {};

#include "core/tensor/dtype_dispatch.h"
