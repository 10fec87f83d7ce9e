#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/loops/scalar.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace partita {

/// A routine that libraries, or kernels written for it, have for an operator.
enum class LibraryRoutine : unsigned char {
  None,
  Matmul,
  AddMatmul,
  Convolution,
  ConvolutionBackward,
  Attention,
  AttentionBackward,
  GroupedMatmul,
  Cumsum,
  Cumprod,
  Cummax,
  Cummin,
  Logcumsumexp,
};
/// In the order of the enumeration.
inline constexpr std::string_view library_routine_names[] = {
    "",
    "matmul",
    "add_matmul",
    "convolution",
    "convolution_backward",
    "attention",
    "attention_backward",
    "grouped_matmul",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "logcumsumexp",
};

}  // namespace partita

namespace partita::loops {

/// What loops and plans are made for. The defaults are a CPU of unknown properties; codegen provides the machine's own.
struct Target {
  DeviceType device = DeviceType::Cpu;
  int threads = 1;              ///< that kernels and libraries may use
  int vector_bytes = 32;        ///< of a register
  std::size_t cache_bytes = 0;  ///< of the last-level cache; 0: not known, nothing is written past it

  /// The library routines that exist. They also do pointwise work on a result, if it is their only one.
  std::vector<LibraryRoutine> routines;
  bool has(LibraryRoutine routine) const { return std::ranges::find(routines, routine) != routines.end(); }
  /// The dtypes of convolutions that the library computes best with channels innermost; may be empty.
  std::vector<DType> channels_last;
  bool pads_images = false;      ///< library convolutions read their image with zeros around it (ExternCall::around)
  bool narrow_matrices = false;  ///< library products take a right matrix of narrower elements (ExternCall::narrow)
  bool multiplies_bfloat16 = false;  ///< faster than floats
  std::size_t epilogue_inputs = 8;   ///< streams beside the call's result

  // Limits on what threads are used for.
  std::int64_t parallel_elements = 1 << 14;  ///< with fewer, a kernel is not worth waking threads
  std::int64_t few_rows =
      8;  ///< a reduction nest with fewer rows takes in no work that could run in parallel on its own ...
  std::int64_t little_work = 1 << 15;      ///< ... unless the nest has at most so many elements
  std::int64_t few_results = 16;           ///< a reduction to fewer results ...
  std::int64_t split_elements = 1 << 16;   ///< ... of at least so many elements is made in two steps
  std::int64_t few_columns = 16;           ///< a reduction of outer dims to fewer results ...
  std::int64_t few_channels = 16;          ///< or of images to fewer channels, the images first ...
  std::int64_t split_rows = 1 << 16;       ///< ... of at least so many elements is made in two steps
  std::int64_t split_results = 1;          ///< of which the first is to have so many results
  std::int64_t group_row = 16;             ///< of a GPU: a row of so many elements is reduced by a group of threads
  std::vector<ScalarOp> complex_ops = {};  ///< that kernels have code for of complex numbers; empty: they have none
  std::int64_t picked_elements = 0;  ///< of a result that is put together from parts: with no more, it is one loop
  bool atomic_sums = false;          ///< sums at computed indices may be made by several threads, in any order

  // Limits on what one kernel holds.
  std::int64_t block_columns = 128;         ///< for which a column-wise nest keeps running values
  std::int64_t scratch_elements = 1 << 16;  ///< of the longest row kept in scratch
  std::size_t kernel_streams = 32;          ///< definitions that one kernel reads and writes
  std::size_t value_streams = 24;           ///< definitions that one value is computed from; with more it is split

  // Limits up to which values are computed again instead of stored. An addition weighs 1.
  int repeated_weight = 4;         ///< of a value that several readers compute again
  std::size_t repeated_reads = 1;  ///< definitions read for such a value
  int broadcast_weight = 3;        ///< of a value repeated for each element of a larger tensor
  int row_weight = 8;              ///< a value of this weight that later passes read is kept in scratch
  int row_reads = 3;               ///< so is one that reads so many definitions
};

}  // namespace partita::loops
