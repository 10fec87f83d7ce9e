#include "codegen/cpu/cpu_machine.h"

#include <fmt/format.h>

#include "codegen/cpu/extern/onednn.h"
#include "codegen/cpu/jit.h"
#include "codegen/cpu/llvm_forms.h"
#include "codegen/host/link.h"
#include "codegen/program/kernel_cost.h"
#include "core/base/hash.h"

namespace partita::codegen {
namespace {

class CpuKernels final : public KernelSource {
 public:
  explicit CpuKernels(const schedule::Plan& plan) : target_(plan.target) {
    for (const auto& [name, value] : plan.symbols) symbols_.push_back(name);
  }
  Result<KernelEntry> add(const loops::Kernel& kernel) override {
    return kernel_entry(kernel, kernel_symbol(number(kernel_text(kernel), kernel).first));
  }
  std::string key() const override { return code_key(kernels(), symbols_, target_); }
  Result<ObjectCode> compile(bool keep_text) const override {
    return compile_kernels(kernels(), symbols_, {.target = target_, .keep_text = keep_text});
  }

 private:
  loops::Target target_;
  std::vector<std::string> symbols_;
};

class Cpu final : public Machine {
 public:
  loops::Target target(int threads) const override { return host_target(threads); }
  Status check_kernel(const loops::Kernel& kernel) const override { return codegen::check_kernel(kernel, cpu_emitter); }
  std::size_t scratch_bytes(const loops::Kernel& kernel) const override {
    return kernel_entry(kernel, "").scratch_bytes([](const SymExpr& e) { return e.is_int() ? e.as_int() : 0; });
  }
  std::vector<KernelForm> forms() const override { return cpu_kernel_forms(); }
  std::unique_ptr<KernelSource> source(const schedule::Plan& plan) const override {
    return std::make_unique<CpuKernels>(plan);
  }
  Result<std::shared_ptr<LoadedCode>> load(const Program& program,
                                           std::span<const std::string> objects) const override {
    TRY(std::shared_ptr<LoadedCode> code, link_kernels(program, objects));
    return code;
  }
  PrepareExtern prepare() const override { return prepare_extern; }
  std::shared_ptr<SharedWeights> shared_weights() const override { return std::make_shared<PackedWeights>(); }
};

}  // namespace

std::shared_ptr<const Machine> cpu_machine() {
  static const auto machine = std::make_shared<const Cpu>();
  return machine;
}

std::string code_key(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                     const loops::Target& target) {
  const Processor& host = host_processor();
  std::string text;
  for (const std::string& part : {host.name, host.features, host.triple, std::string(PARTITA_EMITTER_HASH)})
    add_part(text, part);
  text += fmt::format("{} {} {}\n", int(target.device), target.vector_bytes, symbols.size());
  for (const std::string& symbol : symbols) add_part(text, symbol);
  for (const loops::Kernel& k : kernels) add_part(text, kernel_text(k));  // a kernel of an empty result has no text
  return content_hash(text);
}

}  // namespace partita::codegen
