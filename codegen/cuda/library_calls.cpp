#include "codegen/cuda/library_calls.h"

#include "core/base/config.h"

namespace partita::codegen {
namespace {

struct Row {
  LibraryRoutine routine;
  Prepared (*prepare)(const std::shared_ptr<CudaDevice>& device, const ExternContext& context, std::string& why_not);
};
constexpr Row rows[] = {
    {LibraryRoutine::Matmul, prepare_cublaslt},
    {LibraryRoutine::AddMatmul, prepare_cublaslt},
};

}  // namespace

Prepared prepare_on_device(const std::shared_ptr<CudaDevice>& device, const ExternContext& context,
                           std::string& why_not) {
  if (!config().cuda_libraries) return {};
  for (const Row& row : rows)
    if (row.routine == context.routine) return row.prepare(device, context, why_not);
  return {};
}

std::string device_libraries_text() {
  return config().cuda_libraries ? cublaslt_text() : std::string();
}

}  // namespace partita::codegen
