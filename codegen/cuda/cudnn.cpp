#include "codegen/cuda/cudnn.h"

#include <fmt/format.h>

#include "codegen/cuda/library_calls.h"

namespace partita::codegen {

const Cudnn* cudnn() {
  return open_cuda_library<Cudnn>("libcudnn.so", {".9", ".8"});
}

std::string version_text(const Cudnn& api) {
  const std::size_t v = api.version();  // 90100 is 9.1.0, and 8907 is 8.9.7
  const std::size_t major = v >= 90000 ? 10000 : 1000;
  return fmt::format("cuDNN {}.{}.{}", v / major, v % major / 100, v % 100);
}

Status checked(const Cudnn& api, int error, const char* call) {
  if (error == 0) return {};
  return Diagnostic{Fault::Internal, "cuda.library",
                    fmt::format("{} of {}: {}", call, api.path, api.error_string(error))};
}

Result<std::shared_ptr<CudnnHandle>> CudnnHandle::make(const std::shared_ptr<CudaDevice>& device, const Cudnn& api) {
  std::shared_ptr<CudnnHandle> out(new CudnnHandle(device, api));
  const auto entered = device->enter();
  void* handle = nullptr;
  TRY_DO(checked(api, api.create(&handle), "cudnnCreate"));
  out->handle = handle;
  return out;
}

CudnnHandle::~CudnnHandle() {
  const auto entered = device->enter();
  if (handle) api.destroy(handle);
}

Result<std::shared_ptr<RemoteMemory>> CudnnHandle::workspace(std::size_t bytes) {
  const auto entered = device->enter();
  if (bytes > workspace_bytes_ || !workspace_) {
    // Calls that were prepared before keep the smaller one: their addresses may be in a recording.
    TRY(workspace_, device->block(bytes));
    workspace_bytes_ = bytes;
  }
  return workspace_;
}

std::string cudnn_text() {
  const Cudnn* api = cudnn();
  return api ? fmt::format("{} in {}", version_text(*api), api->path) : std::string();
}

}  // namespace partita::codegen
