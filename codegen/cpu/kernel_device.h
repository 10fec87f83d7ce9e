#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace partita::codegen {

/// A processor with memory of its own that runs the kernels of one executable. It copies a buffer when a kernel, or a
/// call on the host, needs what the other has written.
class KernelDevice {
 public:
  virtual ~KernelDevice() = default;

  struct Memory {
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    bool holds = false;    ///< the host has its values when a run begins: an input or a constant
    bool fixed = false;    ///< it has the same values, at the same address, in every run
    bool written = false;  ///< by kernels or calls
  };
  /// A run begins. `buffers`: the plan's.
  virtual Status begin(std::span<const Memory> buffers) = 0;

  struct Launch {
    std::string_view symbol;
    std::int64_t blocks = 0;
  };
  struct Kernel {
    std::size_t number = 0;  ///< among the kernels of the executable
    std::string_view name;
    std::span<const std::string> origins;
    std::span<const Launch> launches;
    std::span<const int> buffers;
    std::span<const std::pair<std::size_t, std::size_t>> workspace;  ///< offset and bytes
    std::size_t workspace_bytes = 0;
    std::span<const std::int64_t> symbols;
  };
  virtual Status run(const Kernel& kernel) = 0;

  /// The host is about to read these buffers, and to write them if it is told so.
  virtual Status give_to_host(std::span<const int> buffers, bool host_writes) = 0;

  /// What a kernel reports, as runtime.h's KernelFault has it.
  struct Fault {
    bool met = false;
    std::int64_t which = 0, position = 0;
  };
  /// All kernels have ended. The faults of `kernels` kernels, by number.
  virtual Result<std::vector<Fault>> end(std::size_t kernels) = 0;
};

}  // namespace partita::codegen
