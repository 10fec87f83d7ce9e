// Compiles kernels to object code: they are shared among threads by their size, and each share is an LLVM module that
// is emitted, optimised by a few scalar passes, and generated. Also assembles text for libraries.
#include "codegen/cpu/jit.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "codegen/cpu/emit_llvm.h"
#include "codegen/host/link.h"
#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// `jit`: the code is linked into this process, else into a library.
std::unique_ptr<llvm::TargetMachine> target_machine(const Processor& processor, bool jit) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(processor.triple, error);
  CHECK(target, error);
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(processor.triple, processor.name, processor.features, options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default, jit));
}

/// Optimises a module. The emitter has already vectorised, hoisted and shared values; these passes move accumulators
/// out of memory and address arithmetic out of loops.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager rotate;
  rotate.addPass(llvm::LoopRotatePass());
  rotate.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotate), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

std::string generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, type), "no object emission");
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

void compile_share(std::span<const loops::Kernel> kernels, const std::vector<std::size_t>& share,
                   const std::vector<std::string>& symbols, const JitOptions& options, ObjectCode& out) {
  auto machine = target_machine(options.processor, options.prefix.empty());
  llvm::LLVMContext context;
  llvm::Module module("partita", context);
  module.setTargetTriple(options.processor.triple);
  module.setDataLayout(machine->createDataLayout());

  auto start = Clock::now();
  std::optional<llvm::DIBuilder> lines;
  if (options.mark_lines) {
    module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    lines.emplace(module);
    lines->createCompileUnit(llvm::dwarf::DW_LANG_C, lines->createFile("graph", ""), "partita", true, "", 0, "",
                             llvm::DICompileUnit::LineTablesOnly);
  }
  for (std::size_t i : share)
    emit_kernel(module, kernels[i], options.prefix + kernel_symbol(i), symbols, options.target,
                lines ? &*lines : nullptr);
  if (lines) lines->finalize();
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", options.processor.name);
    f.addFnAttr("target-features", options.processor.features);
    f.addFnAttr("prefer-vector-width", std::to_string(options.target.vector_bytes * 8));
    f.addFnAttr("min-legal-vector-width", std::to_string(options.target.vector_bytes * 8));
  }
  std::string broken;
  llvm::raw_string_ostream report(broken);
  CHECK(!llvm::verifyModule(module, &report), report.str());
  out.emit_ms = ms_since(start);

  start = Clock::now();
  optimise(module, *machine);
  out.optimise_ms = ms_since(start);
  if (options.keep_text) {
    llvm::raw_string_ostream text(out.ir);
    module.print(text, nullptr);
    // Code generation changes the module, so each kind of file gets its own copy.
    auto copy = llvm::CloneModule(module);
    out.assembly = generate(*copy, *machine, llvm::CodeGenFileType::AssemblyFile);
  }
  if (options.mark_lines) llvm::StripDebugInfo(module);
  start = Clock::now();
  out.objects.push_back(generate(module, *machine, llvm::CodeGenFileType::ObjectFile));
  out.generate_ms = ms_since(start);
}

}  // namespace

Result<ObjectCode> compile_kernels(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                                   const JitOptions& options) {
  for (const loops::Kernel& k : kernels) TRY_DO(check_kernel(k, cpu_emitter));
  ObjectCode out;
  if (kernels.empty()) return out;
  prepare_llvm();
  // Assign the largest kernels first, each to the thread with the least work.
  std::size_t count = std::clamp<std::size_t>(static_cast<std::size_t>(options.target.threads), 1, kernels.size());
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  auto work = [&](std::size_t i) { return kernels[i].scalars.nodes().size() + 20; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
  std::vector<std::vector<std::size_t>> shares(count);
  std::vector<std::size_t> load(count);
  for (std::size_t i : order) {
    auto least = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    shares[least].push_back(i);
    load[least] += work(i);
  }
  std::vector<ObjectCode> parts(count);
  std::vector<Status> done(count);
  const auto compile = [&](std::size_t t) {
    done[t] = catch_raised<void>([&]() -> Status {
      compile_share(kernels, shares[t], symbols, options, parts[t]);
      return {};
    });
  };
  {
    TRY_DO(check_threads(static_cast<int>(count)));
    std::vector<std::jthread> threads;
    for (std::size_t t = 1; t < count; ++t) threads.emplace_back(compile, t);
    compile(0);
  }
  for (Status& s : done) TRY_DO(std::move(s));
  for (ObjectCode& part : parts) {
    out.objects.push_back(std::move(part.objects[0]));
    out.ir += part.ir;
    out.assembly += part.assembly;
    out.emit_ms += part.emit_ms;
    out.optimise_ms += part.optimise_ms;
    out.generate_ms += part.generate_ms;
  }
  return out;
}

Result<std::string> assemble(const std::string& text) {
  prepare_llvm();
  const auto machine = target_machine(host_processor(), false);
  llvm::LLVMContext context;
  std::string errors;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* errors) {
        llvm::raw_string_ostream stream(*static_cast<std::string*>(errors));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
      },
      &errors);
  llvm::Module module("partita", context);
  module.setTargetTriple(host_processor().triple);
  module.setDataLayout(machine->createDataLayout());
  module.setModuleInlineAsm(text);
  std::string object = generate(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!errors.empty()) return Diagnostic{Fault::Internal, "codegen.assembly", errors};
  return object;
}

}  // namespace partita::codegen
