#include "core/tensor/dtype.h"

#include <array>
#include <bit>
#include <cmath>

#include "core/tensor/float8.h"

namespace partita {
namespace {

struct Row {
  DType type;
  std::string_view brief, torch, safetensors;
  std::size_t bytes;
  int code;
};

constexpr Row rows[] = {
#define V(name, brief, torch, storage, bytes, code, safetensors) {DType::name, brief, torch, safetensors, bytes, code},
    PARTITA_DTYPES(V)
#undef V
};

const Row& row(DType t) {
  return rows[static_cast<std::size_t>(t)];
}

template <class Match>
std::optional<DType> find(Match match) {
  for (const Row& r : rows)
    if (match(r)) return r.type;
  return std::nullopt;
}

}  // namespace

float to_float(BFloat16 v) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16);
}

BFloat16 to_bfloat16(float v) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(v);
  if (std::isnan(v)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

float to_float(Half v) {
  std::uint32_t sign = static_cast<std::uint32_t>(v.bits & 0x8000) << 16;
  int exponent = (v.bits >> 10) & 0x1f;
  std::uint32_t fraction = v.bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | static_cast<std::uint32_t>(exponent + 112) << 23 | fraction << 13);
  float magnitude = std::ldexp(static_cast<float>(fraction), -24);
  return sign ? -magnitude : magnitude;
}

Half to_half(float v) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(v);
  std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(v)) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  float a = std::fabs(v);
  if (a >= 65520.0f) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (a < 6.103515625e-05f)  // subnormal; nearbyint rounds to even in the default mode
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(a, 24))))};
  std::uint32_t magnitude = bits & 0x7fffffff;
  magnitude += 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<std::uint16_t>(sign | ((magnitude - (112u << 23)) >> 13))};
}

std::size_t itemsize(DType t) {
  return row(t).bytes;
}
std::string_view short_name(DType t) {
  return row(t).brief;
}
std::string_view torch_name(DType t) {
  return row(t).torch;
}
std::string_view safetensors_name(DType t) {
  return row(t).safetensors;
}

std::optional<DType> dtype_from_short(std::string_view name) {
  return find([&](const Row& r) { return r.brief == name; });
}

std::optional<DType> dtype_from_torch(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> aliases[] = {
      {"half", "float16"}, {"float", "float32"},   {"double", "float64"},   {"short", "int16"},       {"int", "int32"},
      {"long", "int64"},   {"chalf", "complex32"}, {"cfloat", "complex64"}, {"cdouble", "complex128"}};
  for (auto& [alias, full] : aliases)
    if (alias == name) name = full;
  return find([&](const Row& r) { return r.torch == name; });
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  return find([&](const Row& r) { return !r.safetensors.empty() && r.safetensors == name; });
}

std::optional<DType> dtype_from_pt2(int code) {
  return find([&](const Row& r) { return r.code == code && code >= 0; });
}

bool is_floating(DType t) {
  return is_float8(t) || t == DType::Float4E2M1FNx2 || (t >= DType::Float16 && t <= DType::Float64);
}
bool has_arithmetic(DType t) {
  return !is_float8(t) && !is_opaque(t) && t != DType::Complex32;
}
bool is_opaque(DType t) {
  return t >= DType::Float4E2M1FNx2;
}
bool is_complex(DType t) {
  return t >= DType::Complex32 && t <= DType::Complex128;
}
bool is_integral(DType t) {
  return t > DType::Bool && t <= DType::Int64;
}

bool is_signed(DType t) {
  return !(t == DType::Bool || t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64);
}

DType real_of(DType t) {
  switch (t) {
    case DType::Complex32:
      return DType::Float16;
    case DType::Complex64:
      return DType::Float32;
    case DType::Complex128:
      return DType::Float64;
    default:
      return t;
  }
}

DType complex_of(DType t) {
  switch (t) {
    case DType::Float16:
      return DType::Complex32;
    case DType::Float64:
      return DType::Complex128;
    default:
      return is_complex(t) ? t : DType::Complex64;
  }
}

DType opmath_dtype(DType t) {
  return t == DType::Float16 || t == DType::BFloat16 ? DType::Float32 : t;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    DType ra = real_of(a), rb = real_of(b);
    if (!is_floating(ra)) ra = rb;
    if (!is_floating(rb)) rb = ra;
    return complex_of(promote(ra, rb) == DType::BFloat16 ? DType::Float32 : promote(ra, rb));
  }
  if (is_floating(a) && is_floating(b)) {
    if (itemsize(a) == itemsize(b)) return DType::Float32;  // f16 with bf16, and the two float8
    return itemsize(a) > itemsize(b) ? a : b;
  }
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_signed(a) == is_signed(b)) return itemsize(a) > itemsize(b) ? a : b;
  DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (itemsize(s) > itemsize(u)) return s;
  static constexpr std::array wider = {DType::Int16, DType::Int32, DType::Int64};
  for (DType t : wider)
    if (itemsize(t) > itemsize(u)) return t;
  return DType::Float32;  // uint64 with a signed type, as torch.promote_types
}

}  // namespace partita
