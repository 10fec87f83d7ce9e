// The two machines for CUDA kernels: a GPU, and the CPU in its place. Both emit the same text and have matrix kernels
// for calls; the GPU leaves calls to libraries first, the CPU evaluates those with too much work.
#include "codegen/cuda/cuda_machine.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include <fmt/format.h>

#include "codegen/cuda/cuda_forms.h"
#include "codegen/cuda/emulate.h"
#include "codegen/cuda/emulate_run.h"
#include "codegen/cuda/library_calls.h"
#include "codegen/cuda/matrix/matrix.h"
#include "codegen/host/link.h"
#include "codegen/program/kernel_cost.h"
#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/ir/place.h"
#include "core/ops/record/record.h"

namespace partita::codegen {
namespace {

/// A kernel's text without lines that say what it was made of, in which equal kernels differ.
std::string without_comments(std::string_view text) {
  std::string out;
  for (const std::string_view line : lines_of(text))
    if (!line.starts_with("//")) out.append(line).append("\n");
  return out;
}

class CudaKernels : public KernelSource {
 public:
  explicit CudaKernels(const schedule::Plan& plan) : hints_(plan.symbols) {
    for (const auto& [name, value] : hints_) symbols_.push_back(name);
  }

  Result<KernelEntry> add(const loops::Kernel& kernel) override {
    const auto [index, fresh] = number(kernel_text(kernel), kernel);
    if (fresh) {
      TRY(CudaKernel text, emit_cuda(kernel, kernel_symbol(index), symbols_));
      cuda_.push_back(std::move(text));
    }
    return entry(cuda_[index]);
  }

  /// Products, convolutions, attention and scans are kernels of our own.
  std::optional<CallKernel> add_call(const ExternContext& context) override {
    std::string why_not;
    MatrixNames names{"matrix", symbols_, hints_};
    std::optional<MatrixKernel> made = leaves(context) ? std::nullopt : matrix_kernel(context, names, why_not);
    if (!made || made->operations > most_operations()) return std::nullopt;
    const auto [index, fresh] = number(without_comments(made->kernel.text), made->shape);
    if (fresh) {
      names.symbol = kernel_symbol(index);
      made = matrix_kernel(context, names, why_not);
      cuda_.push_back(std::move(made->kernel));
    }
    return CallKernel{made->shape.name,         made->shape.origins, entry(cuda_[index]),
                      std::move(made->buffers), made->operations,    made->does_work};
  }

  const std::vector<CudaKernel>& cuda() const { return cuda_; }

 protected:
  virtual KernelEntry entry(const CudaKernel& kernel) const = 0;
  /// Is the call left to a library?
  virtual bool leaves(const ExternContext&) const { return false; }
  virtual double most_operations() const { return std::numeric_limits<double>::infinity(); }

 private:
  std::map<std::string, std::int64_t> hints_;
  std::vector<std::string> symbols_;
  std::vector<CudaKernel> cuda_;
};

class EmulatedKernels final : public CudaKernels {
 public:
  explicit EmulatedKernels(const schedule::Plan& plan) : CudaKernels(plan), threads_(plan.target.threads) {}
  std::string key() const override { return emulation_key(cuda()); }
  Result<ObjectCode> compile(bool keep_text) const override {
    return emulate_cuda(cuda(), kernels(), threads_, keep_text);
  }

 private:
  KernelEntry entry(const CudaKernel& kernel) const override { return emulated_entry(kernel); }
  double most_operations() const override { return 4e9; }  // about a minute's work

  int threads_;
};

class GpuKernels final : public CudaKernels {
 public:
  GpuKernels(const schedule::Plan& plan, std::shared_ptr<CudaDevice> device)
      : CudaKernels(plan), device_(std::move(device)) {}
  std::vector<schedule::ExternCall> parts(const ExternContext& context) const override {
    std::vector<schedule::ExternCall> all = parts_for_device(context);
    if (all.size() == 1 || context.call.epilogue ||
        !leaves({.call = all[0], .routine = context.routine, .elements = context.elements}))
      return {context.call};
    return all;
  }
  std::string key() const override {
    std::string key;
    for (const std::string& part : {device_->architecture().name, emulation_key(cuda())}) add_part(key, part);
    return key;
  }
  Result<ObjectCode> compile(bool) const override {
    ObjectCode code;
    TRY(code.objects, compile_for(*device_, cuda()));
    return code;
  }

 private:
  KernelEntry entry(const CudaKernel& kernel) const override { return cuda_entry(kernel); }
  /// A call of symbolic sizes is prepared for each set of them.
  bool leaves(const ExternContext& context) const override {
    std::string why_not;
    return prepare_on_device(device_, context, why_not).step || why_not == symbolic_sizes;
  }

  std::shared_ptr<CudaDevice> device_;
};

Result<Prepared> prepare_on_host(const ExternContext& context, std::string& why_not) {
  TRY(Prepared prepared, prepare_evaluation(context, why_not));
  if (why_not.empty()) why_not = "no CUDA kernel of our own, or one with more work than is emulated";
  return prepared;
}

class CudaMachine : public Machine {
 public:
  loops::Target target(int threads) const override {
    loops::Target target = cuda_target();
    target.threads = threads;
    return target;
  }
  void place(schedule::Plan& plan) const override {
    for (schedule::PlanBuffer& b : plan.buffers) b.device = {};
    for (auto& step : plan.steps)
      if (auto* call = std::get_if<schedule::ExternCall>(&step)) call->device = {};
  }
  std::vector<KernelForm> forms() const override { return cuda_kernel_forms(); }
  std::string_view kernel_name() const override { return "CUDA kernel"; }
  std::string text() const override { return "CUDA kernels\n"; }
  PrepareExtern prepare() const override { return prepare_on_host; }
};

class EmulatedCode final : public LoadedCode {
 public:
  explicit EmulatedCode(std::unique_ptr<LoadedCode> linked) : linked_(std::move(linked)) {}
  Result<void*> find(const std::string& symbol) override { return linked_->find(symbol); }
  std::unique_ptr<KernelWatch> watch() const override { return std::make_unique<EmulatedLaunch>(); }

 private:
  std::unique_ptr<LoadedCode> linked_;
};

class EmulatedMachine final : public CudaMachine {
 public:
  std::unique_ptr<KernelSource> source(const schedule::Plan& plan) const override {
    return std::make_unique<EmulatedKernels>(plan);
  }
  Result<std::shared_ptr<LoadedCode>> load(const Program& program,
                                           std::span<const std::string> objects) const override {
    TRY(auto linked, link_kernels(program, objects, emulation_functions()));
    return std::shared_ptr<LoadedCode>(std::make_shared<EmulatedCode>(std::move(linked)));
  }
};

class Gpu final : public CudaMachine {
 public:
  explicit Gpu(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}
  Result<std::shared_ptr<const Machine>> open() const override {
    if (device_) return shared_from_this();
    TRY(auto device, CudaDevice::of_process());
    return cuda_machine(std::move(device));
  }
  std::string text() const override {
    return CudaMachine::text() + fmt::format("device {}\n{}\n", device_->architecture().name, device_libraries_text());
  }
  Status check_graph(const Graph& graph) const override;
  std::unique_ptr<KernelSource> source(const schedule::Plan& plan) const override {
    return std::make_unique<GpuKernels>(plan, device_);
  }
  Result<std::shared_ptr<LoadedCode>> load(const Program& program,
                                           std::span<const std::string> objects) const override {
    return load_for(device_, program.kernels, objects);
  }
  std::unique_ptr<KernelDevice> device(bool records) const override { return kernel_device(device_, records); }

 private:
  std::shared_ptr<CudaDevice> device_;
};

/// PyTorch's checks of a device for a graph: a hint about TF32, and dtypes that older devices lack.
Status Gpu::check_graph(const Graph& graph) const {
  const CudaArchitecture& architecture = device_->architecture();
  const bool has_mma = architecture.name != "sm_75";
  bool multiplies = false;
  for (const Node* node : graph) {
    const TensorMeta* t = node->meta.tensor();
    if (!t) continue;
    if (!has_mma && (t->dtype == DType::BFloat16 || t->dtype == DType::Float16))
      return unsupported("cuda.dtype",
                         fmt::format("{} ({}) has no matrix instructions for {}", device_->name(), architecture.name,
                                     torch_name(t->dtype)),
                         place_of(*node));
    const OpRecord* record = node->op() ? find_record(node->op()) : nullptr;
    const auto routine = record ? record->library : LibraryRoutine::None;
    multiplies |=
        (routine == LibraryRoutine::Matmul || routine == LibraryRoutine::AddMatmul) && t->dtype == DType::Float32;
  }
  static std::atomic<bool> warned = false;
  if (multiplies && has_mma && !config().cuda_tf32 && !warned.exchange(true))
    fmt::print(stderr,
               "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled; --config "
               "cuda_tf32=true for better performance\n");
  return {};
}

}  // namespace

std::shared_ptr<const Machine> cuda_machine(std::shared_ptr<CudaDevice> device) {
  return std::make_shared<const Gpu>(std::move(device));
}

std::shared_ptr<const Machine> emulated_machine() {
  static const auto machine = std::make_shared<const EmulatedMachine>();
  return machine;
}

const std::vector<CudaKernel>& cuda_kernels(const ProgramSource& source) {
  return static_cast<const CudaKernels&>(*source.kernels).cuda();
}

Status place_on_device(std::vector<Value>& values) {
  TRY(const auto device, CudaDevice::of_process());
  return device->place(values);
}

}  // namespace partita::codegen
