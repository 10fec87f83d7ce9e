#pragma once
#include "core/base/check.h"
#include "core/tensor/dtype.h"

namespace partita {

decltype(auto) dispatch(DType t, auto&& f) {
  switch (t) {
    case DType::Bool:
      return f.template operator()<StoredBool>();
    case DType::UInt8:
      return f.template operator()<std::uint8_t>();
    case DType::Int8:
      return f.template operator()<std::int8_t>();
    case DType::UInt16:
      return f.template operator()<std::uint16_t>();
    case DType::Int16:
      return f.template operator()<std::int16_t>();
    case DType::UInt32:
      return f.template operator()<std::uint32_t>();
    case DType::Int32:
      return f.template operator()<std::int32_t>();
    case DType::UInt64:
      return f.template operator()<std::uint64_t>();
    case DType::Int64:
      return f.template operator()<std::int64_t>();
    case DType::Float16:
      return f.template operator()<Half>();
    case DType::BFloat16:
      return f.template operator()<BFloat16>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    case DType::Complex64:
      return f.template operator()<std::complex<float>>();
    case DType::Complex128:
      return f.template operator()<std::complex<double>>();
    default:
      break;
  }
  CHECK(false, "no arithmetic for " + std::string(torch_name(t)));
}

}  // namespace partita
