#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace partita {

/// Bytes from the first to the last element that sizes and strides reach. Error tensor.size when the elements or the
/// bytes are no 64-bit number, or a size or stride is negative.
Result<std::size_t> byte_extent(DType dtype, std::span<const std::int64_t> sizes,
                                std::span<const std::int64_t> strides);

}  // namespace partita
