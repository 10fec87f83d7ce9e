// Compiles CUDA text as C++ for this machine. Two passes of ours give it what C++ lacks: one places __shared__
// variables in the memory of a block, the other calls a check before each access to memory that threads share.
#include "codegen/cuda/emulate_compiler.h"

#include <chrono>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>

#include <clang/Basic/Diagnostic.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/PrecompiledPreamble.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <clang/Serialization/PCHContainerOperations.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include "codegen/cuda/emulate_access.h"
#include "core/base/mapped.h"

namespace partita::codegen {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* prelude_file = "prelude.cuh";
constexpr const char* shared_note = "partita_shared";

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The line in the kernel's text, not in the prelude; 0: unknown.
unsigned line_of(const llvm::Instruction& i) {
  for (const llvm::DILocation* at = i.getDebugLoc(); at; at = at->getInlinedAt())
    if (!at->getFilename().ends_with(prelude_file)) return at->getLine();
  return 0;
}

/// Places the variables that are declared __shared__, by their annotation, in the block's memory: those of functions
/// from its beginning on, and then the one that is extern.
class PlaceShared : public llvm::PassInfoMixin<PlaceShared> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager&) {
    const llvm::DataLayout& layout = module.getDataLayout();
    auto* memory = llvm::cast<llvm::Function>(
        module.getOrInsertFunction("partita_shared", llvm::PointerType::get(module.getContext(), 0)).getCallee());
    memory->setDoesNotAccessMemory();
    memory->setDoesNotThrow();
    memory->addFnAttr(llvm::Attribute::NonLazyBind);
    memory->addFnAttr(llvm::Attribute::WillReturn);
    std::uint64_t end = 0;
    for (llvm::Function& f : module)
      for (llvm::AllocaInst* variable : shared_variables(f)) {
        const std::uint64_t align = std::max<std::uint64_t>(variable->getAlign().value(), 16);
        const std::uint64_t bytes = *variable->getAllocationSize(layout);
        end = (end + align - 1) / align * align;
        replace(*variable, end, *memory, f);
        end += bytes;
      }
    end = (end + 127) / 128 * 128;
    for (llvm::GlobalVariable& global : module.globals())
      if (global.isDeclaration()) replace_dynamic(global, end, *memory);
    if (llvm::Function* size = module.getFunction("partita_static_shared"))
      for (llvm::User* call : llvm::make_early_inc_range(size->users())) {
        call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), end));
        llvm::cast<llvm::Instruction>(call)->eraseFromParent();
      }
    return llvm::PreservedAnalyses::none();
  }

 private:
  static std::vector<llvm::AllocaInst*> shared_variables(llvm::Function& f) {
    std::vector<llvm::AllocaInst*> out;
    for (llvm::BasicBlock& block : f)
      for (llvm::Instruction& i : llvm::make_early_inc_range(block)) {
        auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
        if (!call || call->getIntrinsicID() != llvm::Intrinsic::var_annotation) continue;
        auto* note = llvm::dyn_cast<llvm::GlobalVariable>(call->getArgOperand(1)->stripPointerCasts());
        auto* text = note ? llvm::dyn_cast<llvm::ConstantDataSequential>(note->getInitializer()) : nullptr;
        auto* variable = llvm::dyn_cast<llvm::AllocaInst>(call->getArgOperand(0)->stripPointerCasts());
        if (!variable || !text || !text->isCString() || text->getAsCString() != shared_note) continue;
        out.push_back(variable);
        call->eraseFromParent();
      }
    return out;
  }

  static llvm::Value* address(llvm::IRBuilder<>& at, std::uint64_t offset, llvm::Function& memory) {
    return at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), at.CreateCall(&memory), offset);
  }

  static void replace(llvm::AllocaInst& variable, std::uint64_t offset, llvm::Function& memory, llvm::Function& f) {
    for (llvm::User* user : llvm::make_early_inc_range(variable.users()))
      if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(user); call && call->isLifetimeStartOrEnd())
        call->eraseFromParent();
    llvm::IRBuilder<> at(&*f.getEntryBlock().getFirstInsertionPt());
    variable.replaceAllUsesWith(address(at, offset, memory));
    variable.eraseFromParent();
  }

  static void replace_dynamic(llvm::GlobalVariable& global, std::uint64_t offset, llvm::Function& memory) {
    llvm::convertUsersOfConstantsToInstructions({&global});
    for (llvm::Use& use : llvm::make_early_inc_range(global.uses())) {
      auto* user = llvm::dyn_cast<llvm::Instruction>(use.getUser());
      if (!user) continue;
      llvm::IRBuilder<> at(&*user->getFunction()->getEntryBlock().getFirstInsertionPt());
      use.set(address(at, offset, memory));
    }
  }
};

/// Calls partita_access before each access that is not to the thread's own variables, and tells waits their lines.
class CheckAccesses : public llvm::PassInfoMixin<CheckAccesses> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager&) {
    llvm::Type* word = llvm::Type::getInt64Ty(module.getContext());
    check_ = module.getOrInsertFunction(access_symbol, llvm::Type::getVoidTy(module.getContext()),
                                        llvm::PointerType::get(module.getContext(), 0), word, word);
    llvm::cast<llvm::Function>(check_.getCallee())->addFnAttr(llvm::Attribute::NonLazyBind);
    for (llvm::Function& f : module) {
      if (f.isDeclaration() || f.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation)) continue;
      std::vector<llvm::Instruction*> all;
      for (llvm::BasicBlock& block : f)
        for (llvm::Instruction& i : block) all.push_back(&i);
      for (llvm::Instruction* i : all) check(*i, module.getDataLayout());
    }
    return llvm::PreservedAnalyses::none();
  }

 private:
  void check(llvm::Instruction& i, const llvm::DataLayout& layout) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
      access(i, load->getPointerOperand(), layout.getTypeStoreSize(load->getType()), load->getAlign(),
             load->isAtomic() ? access_atomic : 0);
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
      access(i, store->getPointerOperand(), layout.getTypeStoreSize(store->getValueOperand()->getType()),
             store->getAlign(), access_write | (store->isAtomic() ? access_atomic : 0));
    } else if (auto* both = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) {
      access(i, both->getPointerOperand(), layout.getTypeStoreSize(both->getType()), both->getAlign(),
             access_write | access_atomic);
    } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
      access(i, exchange->getPointerOperand(), layout.getTypeStoreSize(exchange->getNewValOperand()->getType()),
             exchange->getAlign(), access_write | access_atomic);
    } else if (auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&i)) {
      call(i, memory->getRawDest(), memory->getLength(), memory->getDestAlign().valueOrOne(), access_write);
      if (auto* transfer = llvm::dyn_cast<llvm::MemTransferInst>(memory))
        call(i, transfer->getRawSource(), memory->getLength(), transfer->getSourceAlign().valueOrOne(), 0);
    } else if (auto* waiting = llvm::dyn_cast<llvm::CallInst>(&i)) {
      const llvm::Function* g = waiting->getCalledFunction();
      if (!g || !g->getName().starts_with("partita_wait_")) return;
      const unsigned last = waiting->arg_size() - 1;
      waiting->setArgOperand(last, llvm::ConstantInt::get(waiting->getArgOperand(last)->getType(), line_of(i)));
    }
  }

  void access(llvm::Instruction& i, llvm::Value* at, std::uint64_t bytes, llvm::Align align, std::uint64_t how) {
    call(i, at, llvm::ConstantInt::get(llvm::Type::getInt64Ty(i.getContext()), bytes), align, how);
  }

  void call(llvm::Instruction& i, llvm::Value* at, llvm::Value* bytes, llvm::Align align, std::uint64_t how) {
    const llvm::Value* object = llvm::getUnderlyingObject(at, 0);
    if (llvm::isa<llvm::AllocaInst>(object)) return;
    if (auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object); global && global->isConstant()) return;
    if (auto* made = llvm::dyn_cast<llvm::CallInst>(object))
      if (const llvm::Function* g = made->getCalledFunction();
          g && g->getName().starts_with("partita_") && g->getName() != "partita_shared")
        return;  // what the emulation itself keeps
    llvm::IRBuilder<> before(&i);
    how |= std::uint64_t{llvm::Log2(align)} << access_align_shift | std::uint64_t{line_of(i)} << access_line_shift;
    before.CreateCall(check_, {at, before.CreateZExtOrTrunc(bytes, before.getInt64Ty()), before.getInt64(how)});
  }

  llvm::FunctionCallee check_;
};

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  passes.addPass(PlaceShared());
  passes.addPass(builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O1));
  passes.addPass(CheckAccesses());
  passes.run(module, modules);
  llvm::StripDebugInfo(module);
}

std::string generate(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  passes.run(module);
  return {bytes.data(), bytes.size()};
}

std::shared_ptr<clang::CompilerInvocation> invocation(const EmulationUnit& unit, const std::string& triple,
                                                      clang::DiagnosticsEngine& diagnostics) {
  std::istringstream options(
      "-x c++ -std=c++17 -O1 -ffp-contract=off -fno-plt -nostdsysteminc -nobuiltininc -fno-rounding-math -w "
      "-ferror-limit 5 -mrelocation-model pic -pic-level 2 -disable-llvm-passes -debug-info-kind=line-tables-only "
      "-dwarf-version=4 -fgnuc-version=4.2.1 -fno-threadsafe-statics -mframe-pointer=none");
  std::vector<std::string> words = {"-triple", triple, "-target-cpu", std::string(unit.processor)};
  words.insert(words.end(), std::istream_iterator<std::string>(options), std::istream_iterator<std::string>());
  std::istringstream features{std::string(unit.features)};
  for (std::string f; std::getline(features, f, ',');) {
    words.emplace_back("-target-feature");
    words.push_back(f);
  }
  words.emplace_back("main.cu");
  const auto arguments = mapped(words, &std::string::c_str);
  auto made = std::make_shared<clang::CompilerInvocation>();
  clang::CompilerInvocation::CreateFromArgs(*made, arguments, diagnostics);
  return made;
}

void compile(EmulationUnit& unit) {
  static const bool ready = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)ready;
  auto start = Clock::now();
  const std::string triple = llvm::sys::getProcessTriple();
  llvm::raw_string_ostream errors(unit.errors);
  errors.SetUnbuffered();
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::TextDiagnosticPrinter printer(errors, options.get());
  auto diagnostics = llvm::makeIntrusiveRefCnt<clang::DiagnosticsEngine>(
      llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), options, &printer, false);
  diagnostics->setIgnoreAllWarnings(true);
  const auto how = invocation(unit, triple, *diagnostics);

  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->setCurrentWorkingDirectory("/");
  files->addFile(std::string("/") + prelude_file, 0, llvm::MemoryBuffer::getMemBufferCopy(unit.prelude, prelude_file));
  const std::string text = std::string("#include \"") + prelude_file + "\"\n" + std::string(unit.text);
  const auto main = llvm::MemoryBuffer::getMemBuffer(text, "main.cu");
  const auto containers = std::make_shared<clang::PCHContainerOperations>();
  // The parsed prelude, which all units of the process use.
  static std::mutex lock;
  static std::optional<clang::PrecompiledPreamble> parsed;
  const clang::PreambleBounds bounds = clang::ComputePreambleBounds(how->getLangOpts(), *main, 1);
  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> system = files;
  {
    const std::lock_guard guard(lock);
    if (!parsed || !parsed->CanReuse(*how, *main, bounds, *system)) {
      clang::PreambleCallbacks callbacks;
      auto built = clang::PrecompiledPreamble::Build(*how, main.get(), bounds, *diagnostics, system, containers, true,
                                                     "", callbacks);
      if (built) parsed.emplace(std::move(*built));
      if (!built || diagnostics->hasErrorOccurred()) {
        if (unit.errors.empty()) unit.errors = "the prelude does not compile: " + built.getError().message();
        return;
      }
    }
    parsed->AddImplicitPreamble(*how, system, main.get());
  }
  how->getPreprocessorOpts().addRemappedFile("main.cu", main.get());
  how->getPreprocessorOpts().RetainRemappedFileBuffers = true;

  clang::CompilerInstance instance(containers);
  instance.setInvocation(how);
  instance.setDiagnostics(diagnostics.get());
  instance.createFileManager(system);
  llvm::LLVMContext context;
  clang::EmitLLVMOnlyAction action(&context);
  const bool compiled = instance.ExecuteAction(action);
  const std::unique_ptr<llvm::Module> module = action.takeModule();
  if (!compiled || !module) {
    if (unit.errors.empty()) unit.errors = "Clang made no code";
    return;
  }
  unit.parse_ms = ms_since(start);

  start = Clock::now();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  const std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, unit.processor, unit.features, {}, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Less));
  optimise(*module, *machine);
  unit.optimise_ms = ms_since(start);
  if (unit.keep_text) {
    llvm::raw_string_ostream ir(unit.ir);
    module->print(ir, nullptr);
  }
  start = Clock::now();
  unit.object = generate(*module, *machine);
  unit.generate_ms = ms_since(start);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void partita_compile_emulation(EmulationUnit& unit) {
  compile(unit);
}

}  // namespace partita::codegen
