// The kernels of a program on a CUDA device. The device has a copy of each buffer that a kernel uses; who has written
// last has the values, and the other gets them when it needs them.
#include <algorithm>
#include <unordered_map>

#include "codegen/cuda/driver.h"
#include "core/base/whereabouts.h"

namespace partita::codegen {

struct CudaCode {
  struct Function {
    void* function = nullptr;
    int threads = 1;
    std::size_t shared_bytes = 0;
  };
  std::shared_ptr<CudaDevice> device;
  std::shared_ptr<void> module;
  std::unordered_map<std::string, Function> functions;
};

namespace {

class DeviceKernels final : public KernelDevice {
 public:
  explicit DeviceKernels(std::shared_ptr<const CudaCode> code) : code_(std::move(code)), device_(*code_->device) {}
  ~DeviceKernels() override {
    for (const Copy& copy : copies_) release(copy.address);
    release(workspace_);
    release(faults_);
  }
  DeviceKernels(const DeviceKernels&) = delete;
  DeviceKernels& operator=(const DeviceKernels&) = delete;

  Status begin(std::span<const Memory> buffers) override {
    copies_.resize(buffers.size());
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      Copy& copy = copies_[b];
      const bool keeps = copy.memory.fixed && buffers[b].fixed && copy.memory.host == buffers[b].host && copy.current;
      copy.memory = buffers[b];
      copy.current = keeps;
      copy.host_current = buffers[b].holds;
    }
    if (faults_ != 0) TRY_DO(device_.clear(faults_, fault_room_ * sizeof(DeviceFault)));
    return {};
  }

  Status run(const Kernel& kernel) override {
    std::vector<CudaDevice::Address> addresses;
    for (const int b : kernel.buffers) {
      Copy& copy = copies_[static_cast<std::size_t>(b)];
      TRY_DO(give_to_device(copy));
      addresses.push_back(copy.address);
    }
    if (kernel.workspace_bytes > workspace_room_) {
      release(workspace_);
      workspace_ = 0;
      TRY(workspace_, device_.allocate(kernel.workspace_bytes));
      workspace_room_ = kernel.workspace_bytes;
    }
    for (const auto& [offset, bytes] : kernel.workspace) addresses.push_back(workspace_ + offset);
    TRY_DO(reserve_faults(kernel.number + 1));
    CudaDevice::Address fault = faults_ + kernel.number * sizeof(DeviceFault);
    std::vector<std::int64_t> symbols(kernel.symbols.begin(), kernel.symbols.end());
    std::vector<void*> arguments;
    for (CudaDevice::Address& a : addresses) arguments.push_back(&a);
    for (std::int64_t& s : symbols) arguments.push_back(&s);
    arguments.push_back(&fault);
    for (const Launch& launch : kernel.launches) {
      const auto found = code_->functions.find(std::string(launch.symbol));
      if (found == code_->functions.end())
        return input_error("cuda.binary", fmt::format("the code has no function {}", launch.symbol));
      const CudaCode::Function& f = found->second;
      TRY_DO(
          device_.launch(f.function, launch.blocks, f.threads, f.shared_bytes, arguments, kernel.name, kernel.origins));
    }
    for (const int b : kernel.buffers)
      if (Copy& copy = copies_[static_cast<std::size_t>(b)]; copy.memory.written) copy.host_current = false;
    // Who watches for crashes wants to know in which kernel.
    return watched() ? device_.wait() : Status();
  }

  Status give_to_host(std::span<const int> buffers, bool host_writes) override {
    for (const int b : buffers) {
      if (b < 0) continue;
      Copy& copy = copies_[static_cast<std::size_t>(b)];
      if (!copy.host_current && copy.current)
        TRY_DO(device_.to_host(copy.memory.host, copy.address, copy.memory.bytes));
      copy.host_current = true;
      if (host_writes) copy.current = false;
    }
    return {};
  }

  Result<std::vector<Fault>> end(std::size_t kernels) override {
    std::vector<Fault> out(kernels);
    std::vector<DeviceFault> met(std::min(kernels, fault_room_));
    TRY_DO(device_.to_host(met.data(), faults_, met.size() * sizeof(DeviceFault)));
    for (std::size_t i = 0; i < met.size(); ++i) out[i] = {met[i].met != 0, met[i].which, met[i].position};
    return out;
  }

 private:
  /// As prelude.cuh has it.
  struct DeviceFault {
    std::uint32_t met = 0;
    std::int64_t which = 0, position = 0;
  };
  struct Copy {
    Memory memory;
    CudaDevice::Address address = 0;
    std::size_t room = 0;
    bool current = false;       ///< the device has the last values
    bool host_current = false;  ///< the host has them
  };

  void release(CudaDevice::Address address) {
    if (address != 0) device_.free(address);
  }

  Status give_to_device(Copy& copy) {
    if (copy.memory.bytes > copy.room || copy.address == 0) {
      release(copy.address);
      copy.address = 0;
      copy.current = false;
      TRY(copy.address, device_.allocate(copy.memory.bytes));
      copy.room = std::max<std::size_t>(copy.memory.bytes, 1);
    }
    if (!copy.current && copy.host_current)
      TRY_DO(device_.to_device(copy.address, copy.memory.host, copy.memory.bytes));
    copy.current = true;
    return {};
  }

  Status reserve_faults(std::size_t kernels) {
    if (kernels <= fault_room_) return {};
    const std::size_t room = std::max<std::size_t>(kernels * 2, 64);
    TRY(const CudaDevice::Address larger, device_.allocate(room * sizeof(DeviceFault)));
    TRY_DO(device_.clear(larger, room * sizeof(DeviceFault)));
    if (fault_room_ > 0) {  // what kernels have reported is kept
      std::vector<DeviceFault> met(fault_room_);
      TRY_DO(device_.to_host(met.data(), faults_, met.size() * sizeof(DeviceFault)));
      TRY_DO(device_.to_device(larger, met.data(), met.size() * sizeof(DeviceFault)));
      TRY_DO(device_.wait());
      release(faults_);
    }
    faults_ = larger;
    fault_room_ = room;
    return {};
  }

  std::shared_ptr<const CudaCode> code_;
  CudaDevice& device_;
  std::vector<Copy> copies_;  ///< by plan buffer
  CudaDevice::Address workspace_ = 0, faults_ = 0;
  std::size_t workspace_room_ = 0, fault_room_ = 0;
};

}  // namespace

Result<std::shared_ptr<CudaCode>> load_for(const std::shared_ptr<CudaDevice>& device,
                                           std::span<const CudaKernel> kernels, const std::string& cubin) {
  auto code = std::make_shared<CudaCode>();
  code->device = device;
  TRY(code->module, device->load(cubin));
  for (const CudaKernel& kernel : kernels)
    for (const CudaFunction& f : kernel.functions) {
      TRY(void* function, device->function(code->module.get(), f.name, f.shared_bytes));
      code->functions.emplace(f.name, CudaCode::Function{function, f.threads, f.shared_bytes});
    }
  return code;
}

Result<std::string> compile_for(const CudaDevice& device, std::span<const CudaKernel> kernels) {
  TRY(const CudaCompiler compiler, find_cuda_compiler());
  std::string text(cuda_prelude());
  for (const CudaKernel& k : kernels) text += "\n" + k.text;
  TRY(CudaBinary binary, compile_cuda(compiler, text, device.architecture()));
  return std::move(binary.cubin);
}

std::unique_ptr<KernelDevice> kernel_device(std::shared_ptr<const CudaCode> code) {
  return std::make_unique<DeviceKernels>(std::move(code));
}

}  // namespace partita::codegen
