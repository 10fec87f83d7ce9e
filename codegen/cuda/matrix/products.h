#pragma once
#include "codegen/cuda/matrix/matrix.h"

namespace partita::codegen {

// The kernels of routines; contracts as matrix_kernel().
std::optional<MatrixKernel> product_kernel(const ExternContext& context, const MatrixNames& names,
                                           std::string& why_not);  ///< mm, bmm
std::optional<MatrixKernel> added_product_kernel(const ExternContext& context, const MatrixNames& names,
                                                 std::string& why_not);  ///< addmm, baddbmm
std::optional<MatrixKernel> convolution_kernel(const ExternContext& context, const MatrixNames& names,
                                               std::string& why_not);
std::optional<MatrixKernel> convolution_backward_kernel(const ExternContext& context, const MatrixNames& names,
                                                        std::string& why_not);
std::optional<MatrixKernel> attention_kernel(const ExternContext& context, const MatrixNames& names,
                                             std::string& why_not);
std::optional<MatrixKernel> attention_backward_kernel(const ExternContext& context, const MatrixNames& names,
                                                      std::string& why_not);

}  // namespace partita::codegen
