#pragma once

#include "core/base/config.h"
#include "core/tensor/dtype.h"

namespace partita::codegen {

/// What multiplies matrices on a device.
enum class MatrixUnit : unsigned char {
  Scalar,  ///< fma of each thread, in the dtype, or in single precision for half types
  Tensor,  ///< mma instructions of a warp, with sums in single precision
};
/// Half types go to the tensor cores. Single precision does with `cuda_tf32` only, which rounds its factors to 11 bits.
inline MatrixUnit matrix_unit(DType dtype, const Config& config = partita::config()) {
  const bool rounded = dtype == DType::Float32 && config.cuda_tf32;
  return rounded || dtype == DType::Float16 || dtype == DType::BFloat16 ? MatrixUnit::Tensor : MatrixUnit::Scalar;
}

}  // namespace partita::codegen
