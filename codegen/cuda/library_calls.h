#pragma once
// Matrix products by NVIDIA's cuBLASLt, which is looked for at run time.
#include <memory>
#include <string>

#include "codegen/cpu/extern/extern.h"
#include "codegen/cuda/driver.h"
#include "core/base/check.h"

namespace partita::codegen {

/// A call whose buffers are addresses on a device.
class DeviceStep : public ExternStep {
 public:
  /// Puts the work into a stream of the device, the same each time.
  virtual Status run_in(void* stream, std::byte* const* buffers) = 0;
  Status run(std::byte* const*) final { CHECK(false, "a call of a device on the host"); }
};

/// Why prepare_cublaslt() leaves a product to the time when its sizes are known.
inline constexpr std::string_view symbolic_sizes = "symbolic sizes";
/// Prepares mm, bmm, addmm or baddbmm of floating point. Without a step, and without a reason, for other routines,
/// where there is no cuBLASLt, and without the setting cuda_libraries; `why_not` says what it does not take.
Prepared prepare_cublaslt(const std::shared_ptr<CudaDevice>& device, const ExternContext& context,
                          std::string& why_not);
/// "cuBLASLt 13.0.2 in FILE", for the key of stored code; empty: there is none, or it is not to be used.
std::string cublaslt_text();

}  // namespace partita::codegen
