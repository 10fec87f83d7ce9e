#pragma once
// Products of matrices of float, the right one packed in panels of columns. As attention_kernel.h, this header brings
// no code of its own.
#include <cstdint>

#include "codegen/cpu/extern/register_work.h"

namespace partita::codegen {

/// out[rows, columns] = left[rows, depth] right[depth, columns] + added. Distances of rows are in elements; columns are
/// adjacent.
struct ProductProblem {
  std::int64_t columns = 0, depth = 0;
  const float* left = nullptr;
  const void* packed = nullptr;  ///< the right matrix
  const float* added = nullptr;  ///< null: nothing is added
  float* out = nullptr;
  std::int64_t left_row = 0, added_row = 0, out_row = 0;  ///< added_row 0: one row is added to all
  RegisterWork work = {};                                 ///< on the results
  /// So many products are added up in a row, then the sums of these rows: one long sum has more rounding errors. A
  /// multiple of 4.
  std::int64_t in_a_row = 64;
};

/// Elements that kernels widen to floats.
enum class NarrowType : std::uint8_t { BFloat16, Float16, Int8 };

/// What one instruction set has for them.
struct NarrowKernel {
  void (*widen)(NarrowType type, const void* from, std::int64_t n, float* to);
  void (*narrow)(NarrowType type, const float* from, std::int64_t n, void* to);  ///< to the nearest, of ties the even
  /// ProductKernel's `pack` and `run` for a right matrix of such elements, which is packed as it is.
  void (*pack)(NarrowType type, const void* right, std::int64_t row, std::int64_t column, std::int64_t depth,
               std::int64_t columns, std::int64_t first, std::int64_t last, void* packed);
  void (*run)(NarrowType type, const ProductProblem& problem, std::int64_t first_row, std::int64_t last_row,
              std::int64_t first, std::int64_t last);
};

/// What one instruction set has. An element of the result does not depend on the rows and panels of a call.
struct ProductKernel {
  const char* name;
  std::int64_t panel_columns;  ///< of all panels but the last
  bool beats_library;          ///< is it faster than oneDNN's products even if it packs in every run?
  std::int64_t (*packed_elements)(std::int64_t depth, std::int64_t columns);
  /// Where the packed matrix has an element; as many as a vector has, from a multiple of them on, are adjacent.
  std::int64_t (*place)(std::int64_t depth, std::int64_t columns, std::int64_t row, std::int64_t column);
  /// Packs panels [first, last) of the matrix at `right`, whose strides are `row` and `column`.
  void (*pack)(const float* right, std::int64_t row, std::int64_t column, std::int64_t depth, std::int64_t columns,
               std::int64_t first, std::int64_t last, float* packed);
  /// to[t * to_row + j] = from[t + j * column] for t < depth and j < columns.
  void (*transpose)(const float* from, std::int64_t column, std::int64_t depth, std::int64_t columns, float* to,
                    std::int64_t to_row);
  /// Computes rows [first_row, last_row) of the columns of panels [first, last).
  void (*run)(const ProductProblem& problem, std::int64_t first_row, std::int64_t last_row, std::int64_t first,
              std::int64_t last);
  const NarrowKernel* narrow;
};

#ifdef __x86_64__
extern const NarrowKernel narrow_avx2, narrow_avx512;
extern const ProductKernel product_avx2;    ///< AVX2 and FMA
extern const ProductKernel product_avx512;  ///< AVX-512 F, BW, DQ and VL
#endif

}  // namespace partita::codegen
