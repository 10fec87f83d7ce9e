#pragma once
// Calls by NVIDIA's libraries, which are looked for at run time: matrix products by cuBLASLt, convolutions by cuDNN.
#include <memory>
#include <string>
#include <vector>

#include "codegen/cuda/driver.h"
#include "codegen/program/extern.h"
#include "core/base/check.h"

namespace partita::codegen {

/// A call whose buffers are addresses on a device.
class DeviceStep : public ExternStep {
 public:
  /// Puts the work into a stream of the device, the same each time.
  virtual Status run_in(void* stream, std::byte* const* buffers) = 0;
  Status run(std::byte* const*) final { CHECK(false, "a call of a device on the host"); }
};

/// Why prepare_on_device() leaves a call to the time when its sizes are known.
inline constexpr std::string_view symbolic_sizes = "symbolic sizes";
/// Prepares a call by the library that has its routine. Without a step, and without a reason, for other routines,
/// where the library is not found, and without the setting cuda_libraries; `why_not` says what it does not take.
Prepared prepare_on_device(const std::shared_ptr<CudaDevice>& device, const ExternContext& context,
                           std::string& why_not);
/// A call in the parts that libraries take and leave: the gradient of a convolution's bias is apart from the others,
/// since cudnnConvolutionBackwardBias knows no bfloat16. A kernel of ours sums it.
std::vector<schedule::ExternCall> parts_for_device(const ExternContext& context);
/// "cuBLASLt 13.0.2 in FILE", a line for each library that is found, for the key of stored code; empty: there is none,
/// or they are not to be used.
std::string device_libraries_text();

/// mm, bmm, addmm and baddbmm of floating point. The libraries' own functions have prepare_on_device()'s contract.
Prepared prepare_cublaslt(const std::shared_ptr<CudaDevice>& device, const ExternContext& context,
                          std::string& why_not);
std::string cublaslt_text();
/// convolution, and convolution_backward without the bias's gradient.
Prepared prepare_cudnn(const std::shared_ptr<CudaDevice>& device, const ExternContext& context, std::string& why_not);
std::string cudnn_text();

}  // namespace partita::codegen
