#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/program/extern.h"
#include "core/base/result.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {

/// A processor with memory of its own that runs the kernels of one executable. It copies a buffer when a kernel, or a
/// call on the host, needs what the other has written.
class KernelDevice {
 public:
  virtual ~KernelDevice() = default;

  struct Memory {
    std::byte* host = nullptr;  ///< null: the host has no memory for it
    std::size_t bytes = 0;
    bool holds = false;    ///< it has its values when a run begins: an input or a constant
    bool fixed = false;    ///< it has the same values, at the same address, in every run
    bool written = false;  ///< by kernels or calls
    bool result = false;   ///< it outlives the run
    /// An input whose values are on the device, `offset` bytes from the memory's begin; null: the host has them.
    /// Aligned to 16 bytes if it is written.
    std::shared_ptr<RemoteMemory> remote = {};
    std::size_t offset = 0;
    std::optional<std::size_t> in_arena = {};  ///< where a temporary lies in the memory that temporaries share
  };
  struct Run {
    std::span<const Memory> buffers;  ///< the plan's
    std::size_t arena_bytes = 0;
    bool timed = false;  ///< seconds() will be asked for
  };
  /// A run begins. True: all of it was done at once, by a recording of an earlier run, and only end() is left.
  virtual Result<bool> begin(const Run& run) = 0;
  /// Its runs must not be recorded, for this reason.
  virtual void never_record(std::string why) = 0;

  struct Launch {
    void* function = nullptr;  ///< as its LoadedCode has it
    std::int64_t blocks = 0;
    int threads = 1;
    std::size_t shared_bytes = 0;
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

  /// A call of a library that the device has; without a step where it has none, and `why_not` says why.
  virtual Prepared prepare(const ExternContext& context, std::string& why_not) = 0;
  /// Runs a step of prepare(). `name`: of the call, for errors.
  virtual Status call(ExternStep& step, std::span<const int> read, std::span<const int> wrote,
                      const std::string& name) = 0;

  /// The host is about to read these buffers, and to write them if it is told so.
  virtual Status give_to_host(std::span<const int> buffers, bool host_writes) = 0;
  /// The values of a result for which the host has no memory.
  virtual Result<std::shared_ptr<Storage>> result(int buffer) = 0;

  /// What a kernel reports, as KernelFault has it.
  struct Fault {
    bool met = false;
    std::int64_t which = 0, position = 0;
  };
  /// All kernels have ended. The faults of `kernels` kernels, by number.
  virtual Result<std::vector<Fault>> end(std::size_t kernels) = 0;
  /// After end() of a timed run: the seconds that each run() and call() took on the device, in order.
  virtual Result<std::vector<double>> seconds() = 0;
};

}  // namespace partita::codegen
