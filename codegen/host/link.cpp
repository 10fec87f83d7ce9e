#include "codegen/host/link.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>

#include "codegen/host/elf_link.h"

namespace partita::codegen {
namespace {

std::string text_of(llvm::Error error) {
  return llvm::toString(std::move(error));
}

Diagnostic link_error(llvm::Error error) {
  return input_error("codegen.link", "machine code does not link: " + text_of(std::move(error)));
}

class OrcCode final : public LoadedCode {
 public:
  explicit OrcCode(std::unique_ptr<llvm::orc::LLJIT> jit) : jit_(std::move(jit)) {}
  Result<void*> find(const std::string& symbol) override {
    auto address = jit_->lookup(symbol);
    if (!address) return link_error(address.takeError());
    return address->toPtr<void*>();
  }
  llvm::orc::LLJIT& jit() { return *jit_; }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

}  // namespace

void prepare_llvm() {
  static const bool ready = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)ready;
}

Result<std::unique_ptr<LoadedCode>> link_code(std::span<const std::string> objects,
                                              std::span<const RuntimeFunction> more) {
  if (auto code = link_elf(objects, more)) return code;
  prepare_llvm();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return link_error(jit.takeError());
  auto code = std::make_unique<OrcCode>(std::move(*jit));
  llvm::orc::LLJIT& j = code->jit();
  auto& library = j.getMainJITDylib();
  auto generator = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(j.getDataLayout().getGlobalPrefix());
  if (!generator) return link_error(generator.takeError());
  library.addGenerator(std::move(*generator));
  llvm::orc::SymbolMap map;
  for (const auto functions : {runtime_functions(), more})
    for (const RuntimeFunction& f : functions)
      map[j.mangleAndIntern(f.symbol)] = {llvm::orc::ExecutorAddr::fromPtr(f.address),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  if (auto error = library.define(llvm::orc::absoluteSymbols(std::move(map)))) return link_error(std::move(error));
  for (const std::string& object : objects) {
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "partita");
    if (auto error = j.addObjectFile(std::move(buffer))) return link_error(std::move(error));
  }
  return std::unique_ptr<LoadedCode>(std::move(code));
}

Result<std::unique_ptr<LoadedCode>> link_kernels(const Program& program, std::span<const std::string> objects,
                                                 std::span<const RuntimeFunction> more) {
  TRY(auto code, link_code(objects, more));
  for (const ProgramKernel& kernel : program.kernels)
    for (const Phase& phase : kernel.entry.phases) TRY_DO(code->find(phase.symbol));
  return code;
}

}  // namespace partita::codegen
