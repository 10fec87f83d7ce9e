#pragma once
// What the operators of linear algebra share: batches of column-major matrices.
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/record.h"

namespace partita {

/// The meta of dense matrices as LAPACK returns them: batch dimensions are row-major, each matrix is column-major.
TensorMeta column_major(const TensorMeta& like, SymList sizes);
/// All but the last `count` sizes.
SymList leading(const SymList& sizes, std::size_t count);
SymList with_batch(SymList batch, std::initializer_list<SymExpr> sizes);
TensorMeta int32_like(const TensorMeta& like, SymList sizes);
SymExpr rows_of(const TensorMeta& t);
SymExpr columns_of(const TensorMeta& t);
SymExpr smaller(SymExpr a, SymExpr b);
/// Fails unless `t` is a matrix or a batch of matrices.
void check_matrix(const TensorMeta& t, const char* what);
void check_square(FakeCall& c, const TensorMeta& t, const char* what);
/// Fails unless the matrix and the right-hand side have the same dtype.
void check_same_dtype(const TensorMeta& a, const TensorMeta& b, const char* what);
/// Fails unless there is a row of pivots for each matrix, with as many pivots as the matrix has rows.
void check_pivot_sizes(FakeCall& c, const TensorMeta& matrices, const TensorMeta& pivots, const char* what);
/// Whether B is one vector for each matrix: it has one dimension less than A, and the sizes of A's batch and rows.
bool are_vectors(const FakeCall& c, const SymList& a, const SymList& b);
/// The batch sizes to which two batches of matrices broadcast.
SymList common_batch(FakeCall& c, const TensorMeta& a, const TensorMeta& b);

/// Matrices in memory that LAPACK may overwrite, with a flat batch.
struct Matrices {
  Tensor values;  ///< column-major
  std::int64_t count = 0, rows = 0, columns = 0;

  /// A copy of `t` whose batch is expanded to `batch`.
  Matrices(const Tensor& t, const Sizes& batch);
  explicit Matrices(const Tensor& t);
  /// Matrices of zeros.
  Matrices(DType dtype, const Sizes& batch, std::int64_t rows, std::int64_t columns);

  template <class T>
  T* at(std::int64_t i) const {
    return values.as<T>() + i * rows * columns;
  }
  int leading_dimension() const { return static_cast<int>(rows > 1 ? rows : 1); }
};
Sizes batch_of(const Tensor& t, std::size_t matrix_dims = 2);  ///< the sizes before the last ones
/// A row-major copy of `t`. Its last `kept` dimensions stay; the others are expanded to `batch`.
Tensor expand_batch(const Tensor& t, const Sizes& batch, std::size_t kept);
Sizes common_batch(const Tensor& a, const Tensor& b);
/// A view with the last two dimensions swapped.
Tensor transposed(const Tensor& t);

}  // namespace partita
