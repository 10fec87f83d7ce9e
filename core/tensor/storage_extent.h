#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace partita {

/// The bytes from the first to the last element that sizes and strides reach. Error tensor.size when elements or bytes
/// exceed 64 bits, or a size or stride is negative.
Result<std::size_t> byte_extent(DType dtype, std::span<const std::int64_t> sizes,
                                std::span<const std::int64_t> strides);

}  // namespace partita
