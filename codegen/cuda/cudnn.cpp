#include "codegen/cuda/cudnn.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "codegen/cuda/library_calls.h"

namespace partita::codegen {

void Cudnn::find_in(LibraryFunctions& library) {
  library.find("cudnnGetVersion", version);
  library.find("cudnnGetErrorString", error_string);
  library.find("cudnnCreate", create);
  library.find("cudnnDestroy", destroy);
  library.find("cudnnSetStream", set_stream);
  library.find("cudnnCreateTensorDescriptor", tensor_create);
  library.find("cudnnDestroyTensorDescriptor", tensor_destroy);
  library.find("cudnnSetTensorNdDescriptor", tensor_set);
  library.find("cudnnCreateFilterDescriptor", filter_create);
  library.find("cudnnDestroyFilterDescriptor", filter_destroy);
  library.find("cudnnSetFilterNdDescriptor", filter_set);
  library.find("cudnnCreateConvolutionDescriptor", convolution_create);
  library.find("cudnnDestroyConvolutionDescriptor", convolution_destroy);
  library.find("cudnnSetConvolutionNdDescriptor", convolution_set);
  library.find("cudnnSetConvolutionGroupCount", set_groups);
  library.find("cudnnSetConvolutionMathType", set_math);
  library.find("cudnnAddTensor", add);
  library.find("cudnnGetConvolutionForwardAlgorithmMaxCount", forward.most);
  library.find("cudnnGetConvolutionForwardAlgorithm_v7", forward.algorithms);
  library.find("cudnnGetConvolutionForwardWorkspaceSize", forward.workspace);
  library.find("cudnnConvolutionForward", forward.run);
  library.find("cudnnGetConvolutionBackwardDataAlgorithmMaxCount", to_image.most);
  library.find("cudnnGetConvolutionBackwardDataAlgorithm_v7", to_image.algorithms);
  library.find("cudnnGetConvolutionBackwardDataWorkspaceSize", to_image.workspace);
  library.find("cudnnConvolutionBackwardData", to_image.run);
  library.find("cudnnGetConvolutionBackwardFilterAlgorithmMaxCount", to_filter.most);
  library.find("cudnnGetConvolutionBackwardFilterAlgorithm_v7", to_filter.algorithms);
  library.find("cudnnGetConvolutionBackwardFilterWorkspaceSize", to_filter.workspace);
  library.find("cudnnConvolutionBackwardFilter", to_filter.run);
}

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
