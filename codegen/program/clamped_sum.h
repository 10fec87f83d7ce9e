#pragma once
#include <limits>
#include <optional>

namespace partita::loops {
struct Kernel;
}

namespace partita::codegen {

/// Elementwise work on floats that kernels of our own do in registers: min(max(x + added, low), high). NaN stays NaN.
struct ClampedSum {
  int added = -1;  ///< the buffer whose elements lie as those of x do; -1: nothing is added
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

/// The kernel as such work in place on its buffer 0; `added` is another one of its buffers. Nullopt if it does anything
/// else.
std::optional<ClampedSum> clamped_sum(const loops::Kernel& kernel);

}  // namespace partita::codegen
