#pragma once
// A prepared program as it runs: what executor.cpp makes of it, and plan_executable.cpp runs.
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/program/executable.h"
#include "codegen/program/extern.h"
#include "codegen/program/kernel_code.h"
#include "codegen/program/kernel_device.h"
#include "codegen/program/kernel_entry.h"
#include "core/schedule/plan.h"

namespace partita::codegen {

/// One function of a kernel, and how to call it.
struct PhaseStep {
  void* function = nullptr;  ///< as LoadedCode::find() gives it
  std::int64_t iterations = 0;
  std::int64_t alignment = 1;
  int parts = 1;    ///< threads worth using
  int threads = 0;  ///< as Phase has them
  std::size_t shared_bytes = 0;

  /// In this process.
  void run(void* const* arguments, const std::int64_t* symbols, std::byte* scratch, std::int64_t begin,
           std::int64_t end) const {
    reinterpret_cast<PhaseFunction>(function)(arguments, symbols, scratch, begin, end);
  }
};

struct KernelStep {
  std::string name;
  std::vector<PhaseStep> phases;
  std::vector<void*> arguments;
  std::vector<int> buffers;                                    ///< plan buffers of the first arguments
  std::vector<std::pair<std::size_t, std::size_t>> workspace;  ///< offset and bytes of the next ones
  std::size_t workspace_bytes = 0;
  std::size_t fault = 0;  ///< the argument after these; a KernelWatch's follows it
  std::vector<loops::Bound> bounds;
  std::vector<std::string> origins;
};

struct InputView {
  TensorMeta meta;
  Sizes sizes, strides;
  int buffer = -1;                   ///< -1: it is not read
  bool written = false;              ///< the graph mutates it
  std::shared_ptr<Storage> staging;  ///< holds copies of tensors with other strides; allocated when needed
};

struct OutputView {
  std::optional<ConcreteView> view;
  Value value;     ///< a literal
  int input = -1;  ///< the input that is handed on; -1: none
};

class PlanExecutable final : public Executable {
 public:
  Result<std::vector<Value>> run(const std::vector<Value>& inputs, std::span<const Tensor> into) override;

  std::shared_ptr<LoadedCode> code;
  std::vector<std::int64_t> symbols;  ///< values, in the order of the program's
  std::vector<schedule::PlanBuffer> buffers;
  std::vector<std::int64_t> elements;
  std::vector<Tensor> constants;  ///< kept, because `base` points into them
  std::vector<std::byte*> base;   ///< address of each plan buffer; inputs and outputs change from run to run
  std::vector<std::shared_ptr<Storage>> output_memory;  ///< by plan buffer: memory of the last run's results
  std::shared_ptr<Storage> arena, scratch, workspace;
  std::size_t arena_bytes = 0;
  std::size_t scratch_bytes = 0;  ///< bytes of one thread
  std::vector<InputView> inputs_;
  std::vector<OutputView> outputs;
  struct Step {
    int kernel = -1, external = -1;  ///< index into kernels or calls; neither: the call before it does its work
    std::vector<int> finishes = {};  ///< plan buffers that it reads and that a collective before it fills
  };
  std::vector<Step> steps;
  std::vector<KernelStep> kernels;
  std::vector<std::unique_ptr<ExternStep>> calls;
  int threads = 1;
  std::shared_ptr<KernelDevice> device;  ///< null: the kernels run in this process
  std::vector<bool> written;             ///< by plan buffer
  std::vector<bool> fixed;               ///< by plan buffer: it has the same values in every run
  struct CallBuffers {
    std::vector<int> read, written;
    bool on_device = false;  ///< the device does the call
  };
  std::vector<CallBuffers> call_buffers;  ///< by call
  std::vector<bool> on_host;              ///< by plan buffer: a call on the host reads or writes it
  std::shared_ptr<Generator> generator;
  std::unique_ptr<PendingResults> pending;  ///< null: there are no other ranks, or a device runs the kernels
  std::vector<int> pending_outputs;         ///< buffers of outputs that a collective fills
  bool draws_anew = false;                  ///< the executable has its own generator, and something draws from it

 private:
  void write_back(const std::vector<Value>& values);
  /// The memory among `into` that a plan buffer of results may lie in; null: it needs memory of its own.
  const Tensor* given_memory(std::size_t buffer, std::span<const Tensor> into) const;
  /// Where the values of a plan buffer are while a run lasts.
  struct Held {
    std::shared_ptr<Storage> storage;
    std::shared_ptr<RemoteMemory> remote;  ///< on the device, which has no host memory for it; else null
    std::size_t offset = 0;                ///< in bytes: where the buffer begins
  };
  Status bind_inputs(const std::vector<Value>& values, std::vector<Held>& held);
  Status run_kernel(KernelStep& step);
  Result<bool> begin_on_device(const std::vector<Held>& held);
  Status run_on_device(std::size_t kernel);
  Status call_beside_device(std::size_t call);
  Status end_on_device(std::vector<Held>& held, const std::vector<std::size_t>& timed);
  void note(const Step& step) const;

  std::mutex mutex_;
};

/// The error that a kernel's fault is.
Diagnostic diagnostic(const KernelFault& fault, const KernelStep& step);

}  // namespace partita::codegen
