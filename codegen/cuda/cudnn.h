#pragma once
// NVIDIA's cuDNN, versions 8 and 9, by the functions that both have.
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "codegen/cuda/driver.h"
#include "codegen/cuda/open_library.h"
#include "core/base/result.h"

namespace partita::codegen {

/// The parts of cudnn.h that are used. A function returns 0, or an error for error_string.
struct Cudnn {
  /// An algorithm that the library offers: cudnnConvolutionFwdAlgoPerf_t and its like.
  struct Found {
    int algorithm = 0;
    int status = 0;
    float milliseconds = 0;
    std::size_t workspace_bytes = 0;
    int deterministic = 0;
    int math = 0;
    int reserved[3] = {};
  };
  /// A convolution, or one of its gradients: `out` = alpha * routine(a, b) + beta * `out`.
  struct Routine {
    LibraryFunctions& library;
    std::string name;  ///< "BackwardData"
    int (*most)(void* handle, int* algorithms) = library.find("cudnnGetConvolution" + name + "AlgorithmMaxCount");
    int (*algorithms)(void* handle, void* a, void* b, void* convolution, void* out, int most, int* count,
                      Found* found) = library.find("cudnnGetConvolution" + name + "Algorithm_v7");
    int (*workspace)(void* handle, void* a, void* b, void* convolution, void* out, int algorithm,
                     std::size_t* bytes) = library.find("cudnnGetConvolution" + name + "WorkspaceSize");
    int (*run)(void* handle, const void* alpha, void* a_layout, const void* a, void* b_layout, const void* b,
               void* convolution, int algorithm, void* workspace, std::size_t workspace_bytes, const void* beta,
               void* out_layout, void* out) = library.find("cudnnConvolution" + name);
  };
  LibraryFunctions library;
  std::size_t (*version)() = library.find("cudnnGetVersion");
  const char* (*error_string)(int error) = library.find("cudnnGetErrorString");
  int (*create)(void** handle) = library.find("cudnnCreate");
  int (*destroy)(void* handle) = library.find("cudnnDestroy");
  int (*set_stream)(void* handle, void* stream) = library.find("cudnnSetStream");
  int (*tensor_create)(void** tensor) = library.find("cudnnCreateTensorDescriptor");
  int (*tensor_destroy)(void* tensor) = library.find("cudnnDestroyTensorDescriptor");
  int (*tensor_set)(void* tensor, int type, int dimensions, const int* sizes,
                    const int* strides) = library.find("cudnnSetTensorNdDescriptor");
  int (*filter_create)(void** filter) = library.find("cudnnCreateFilterDescriptor");
  int (*filter_destroy)(void* filter) = library.find("cudnnDestroyFilterDescriptor");
  int (*filter_set)(void* filter, int type, int format, int dimensions,
                    const int* sizes) = library.find("cudnnSetFilterNdDescriptor");
  int (*convolution_create)(void** convolution) = library.find("cudnnCreateConvolutionDescriptor");
  int (*convolution_destroy)(void* convolution) = library.find("cudnnDestroyConvolutionDescriptor");
  int (*convolution_set)(void* convolution, int dimensions, const int* padding, const int* stride, const int* dilation,
                         int mode, int compute_type) = library.find("cudnnSetConvolutionNdDescriptor");
  int (*set_groups)(void* convolution, int groups) = library.find("cudnnSetConvolutionGroupCount");
  int (*set_math)(void* convolution, int math) = library.find("cudnnSetConvolutionMathType");
  int (*add)(void* handle, const void* alpha, void* a_layout, const void* a, const void* beta, void* out_layout,
             void* out) = library.find("cudnnAddTensor");
  Routine forward{library, "Forward"};           ///< of an image and a filter
  Routine to_image{library, "BackwardData"};     ///< of a filter and the gradient of forward's result
  Routine to_filter{library, "BackwardFilter"};  ///< of an image and that gradient
  std::string path;
};

/// Null: there is none.
const Cudnn* cudnn();
std::string version_text(const Cudnn& api);  ///< "cuDNN 9.1.0"
/// Error cuda.library with the library's words. `call` is the function's name.
Status checked(const Cudnn& api, int error, const char* call);

/// What the calls of a device share. They run in one stream, one after another, and so may share memory.
class CudnnHandle {
 public:
  /// Errors: checked()'s.
  static Result<std::shared_ptr<CudnnHandle>> make(const std::shared_ptr<CudaDevice>& device, const Cudnn& api);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  /// Memory of at least so many bytes, which other calls use, too. Errors are those of CudaDevice::block.
  Result<std::shared_ptr<RemoteMemory>> workspace(std::size_t bytes);

  const std::shared_ptr<CudaDevice> device;
  const Cudnn& api;
  void* handle = nullptr;
  /// The algorithm that was found to be, and its math, by the kind of convolution.
  std::map<std::string, std::pair<int, int>> fastest;

 private:
  CudnnHandle(std::shared_ptr<CudaDevice> d, const Cudnn& a) : device(std::move(d)), api(a) {}
  std::shared_ptr<RemoteMemory> workspace_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace partita::codegen
