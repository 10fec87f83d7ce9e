#include "codegen/cuda/matrix/matrix.h"

#include "codegen/cuda/matrix/products.h"
#include "codegen/cuda/rows/rows.h"
#include "core/base/mapped.h"

namespace partita::codegen {
namespace {

struct MatrixRow {
  LibraryRoutine routine;
  std::optional<MatrixKernel> (*make)(const ExternContext& context, const MatrixNames& names, std::string& why_not);
};
constexpr MatrixRow matrix_rows[] = {
    {LibraryRoutine::Matmul, product_kernel},
    {LibraryRoutine::AddMatmul, added_product_kernel},
    {LibraryRoutine::Convolution, convolution_kernel},
    {LibraryRoutine::ConvolutionBackward, convolution_backward_kernel},
    {LibraryRoutine::Attention, attention_kernel},
    {LibraryRoutine::AttentionBackward, attention_backward_kernel},
    {LibraryRoutine::Cumsum, scan_kernel},
    {LibraryRoutine::Cumprod, scan_kernel},
    {LibraryRoutine::Cummax, scan_kernel},
    {LibraryRoutine::Cummin, scan_kernel},
    {LibraryRoutine::Logcumsumexp, scan_kernel},
};

}  // namespace

std::optional<MatrixKernel> matrix_kernel(const ExternContext& context, const MatrixNames& names,
                                          std::string& why_not) {
  for (const MatrixRow& row : matrix_rows)
    if (row.routine == context.routine) return row.make(context, names, why_not);
  return std::nullopt;
}

std::vector<LibraryRoutine> matrix_routines() {
  return mapped(matrix_rows, &MatrixRow::routine);
}

}  // namespace partita::codegen
