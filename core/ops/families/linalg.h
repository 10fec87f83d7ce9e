#pragma once
// What the operators of linear algebra share: batches of column-major matrices.
#include "core/ops/kernels/outputs.h"
#include "core/ops/record.h"

namespace partita {

/// Dense, batch dimensions row-major, each matrix column by column: how LAPACK leaves its results.
TensorMeta column_major(const TensorMeta& like, SymList sizes);
/// All but the last `count` sizes.
SymList leading(const SymList& sizes, std::size_t count);
SymList with_batch(SymList batch, std::initializer_list<SymExpr> sizes);
TensorMeta int32_like(const TensorMeta& like, SymList sizes);
SymExpr rows_of(const TensorMeta& t);
SymExpr columns_of(const TensorMeta& t);
SymExpr smaller(SymExpr a, SymExpr b);
/// Fails unless `t` is a matrix or a batch of them.
void check_matrix(const TensorMeta& t, const char* what);
void check_square(FakeCall& c, const TensorMeta& t, const char* what);
/// Raises unless a matrix and the right-hand side are of one dtype.
void check_same_dtype(const TensorMeta& a, const TensorMeta& b, const char* what);
/// Fails unless there is a row of pivots for each of the matrices, as many as they have rows.
void check_pivot_sizes(FakeCall& c, const TensorMeta& matrices, const TensorMeta& pivots, const char* what);
/// The common batch of two batches of matrices.
SymList common_batch(FakeCall& c, const TensorMeta& a, const TensorMeta& b);

/// Matrices in memory that LAPACK may write to, the batch flattened.
struct Matrices {
  Tensor values;  ///< column-major
  std::int64_t count = 0, rows = 0, columns = 0;

  /// A copy of `t`, its batch expanded to `batch`.
  Matrices(const Tensor& t, const Sizes& batch);
  explicit Matrices(const Tensor& t);
  /// Zeros.
  Matrices(DType dtype, const Sizes& batch, std::int64_t rows, std::int64_t columns);

  template <class T>
  T* at(std::int64_t i) const {
    return values.as<T>() + i * rows * columns;
  }
  int leading_dimension() const { return static_cast<int>(rows > 1 ? rows : 1); }
};
/// Writes matrices, or the elements of a dense row-major tensor, into an output of as many elements.
void store(const Tensor& out, const Matrices& m);
void store(const Tensor& out, const Tensor& values);
/// The gradient of the i-th result, None where none flows.
Arg gradient_or_none(const GradCall& c, std::size_t i);
Sizes batch_of(const Tensor& t, std::size_t matrix_dims = 2);
/// A row-major copy of `t`, whose last `kept` dimensions stay and whose others are expanded to `batch`.
Tensor expand_batch(const Tensor& t, const Sizes& batch, std::size_t kept);
Sizes common_batch(const Tensor& a, const Tensor& b);

void register_lu(OpTable& t);
void register_solve(OpTable& t);
void register_eigen(OpTable& t);
void register_qr(OpTable& t);
void register_lstsq(OpTable& t);
void register_matrix_exp(OpTable& t);
void register_triangular(OpTable& t);
void register_spectral(OpTable& t);
void register_distance(OpTable& t);
void register_linalg_composites(OpTable& t);

}  // namespace partita
