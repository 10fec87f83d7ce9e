#include "codegen/cuda/library_calls.h"

#include "codegen/cuda/matrix/convolution_window.h"
#include "core/base/config.h"

namespace partita::codegen {
namespace {

struct LibraryRow {
  LibraryRoutine routine;
  Prepared (*prepare)(const std::shared_ptr<CudaDevice>& device, const ExternContext& context, std::string& why_not);
};
constexpr LibraryRow library_rows[] = {
    {LibraryRoutine::Matmul, prepare_cublaslt},
    {LibraryRoutine::AddMatmul, prepare_cublaslt},
    {LibraryRoutine::Convolution, prepare_cudnn},
    {LibraryRoutine::ConvolutionBackward, prepare_cudnn},
};

}  // namespace

Prepared prepare_on_device(const std::shared_ptr<CudaDevice>& device, const ExternContext& context,
                           std::string& why_not) {
  if (!config().cuda_libraries) return {};
  for (const LibraryRow& row : library_rows)
    if (row.routine == context.routine) return row.prepare(device, context, why_not);
  return {};
}

std::vector<schedule::ExternCall> parts_for_device(const ExternContext& context) {
  const bool sums = context.routine == LibraryRoutine::ConvolutionBackward && wants_gradient(context, 2);
  if (!sums || (!wants_gradient(context, 0) && !wants_gradient(context, 1))) return {context.call};
  std::vector<schedule::ExternCall> parts(2, context.call);
  for (std::size_t part = 0; part < 2; ++part) {
    std::vector<Arg> mask;
    for (std::size_t i = 0; i < 3; ++i) {
      const bool here = wants_gradient(context, i) && (part == 1) == (i == 2);
      mask.emplace_back(here);
      if (!here && i < parts[part].results.size()) parts[part].results[i].buffer = -1;
    }
    parts[part].args[gradient_mask] = Arg::list(std::move(mask));
  }
  return parts;
}

std::string device_libraries_text() {
  std::string text;
  if (!config().cuda_libraries) return text;
  for (const std::string& library : {cublaslt_text(), cudnn_text()})
    if (!library.empty()) text += (text.empty() ? "" : "\n") + library;
  return text;
}

}  // namespace partita::codegen
