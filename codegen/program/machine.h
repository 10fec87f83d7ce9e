#pragma once
// What a backend that compiles kernels is to the rest of codegen: a class derived from Machine, and a row of
// codegen/backends.cpp. docs/adding-a-backend.md has the steps.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/program/extern.h"
#include "codegen/program/kernel_code.h"
#include "codegen/program/kernel_device.h"
#include "codegen/program/program.h"
#include "core/aot/staged_compiler.h"

namespace partita::codegen {

/// A call that a kernel of the machine does.
struct CallKernel {
  std::string name;
  std::vector<std::string> origins;  ///< graph nodes
  KernelEntry entry;
  std::vector<int> buffers;  ///< the plan's, in the order of the pointers
  double operations = 0;     ///< of a run
  bool does_work = false;    ///< the call's epilogue, too
};

/// The kernels of one program as its machine compiles them. make_program() adds them.
class KernelSource {
 public:
  virtual ~KernelSource() = default;

  /// Adds a kernel, equal ones once. Errors name what has no code.
  virtual Result<KernelEntry> add(const loops::Kernel& kernel) = 0;
  /// Adds a kernel for a call; nullopt: it stays a call.
  virtual std::optional<CallKernel> add_call(const ExternContext&) { return std::nullopt; }
  /// The call, in parts where only some of it is done by a library of the machine.
  virtual std::vector<schedule::ExternCall> parts(const ExternContext& context) const { return {context.call}; }

  /// What the code is stored by: all that decides it.
  virtual std::string key() const = 0;
  /// The functions of kernel i are named by kernel_symbol(i). `keep_text`: fill ObjectCode::ir and assembly.
  virtual Result<ObjectCode> compile(bool keep_text) const = 0;

  /// Those of loop IR as they were given; for those of calls, their buffers, name and origins.
  const std::vector<loops::Kernel>& kernels() const { return kernels_; }

 protected:
  /// The number of the kernel that has this text, and whether it is new.
  std::pair<std::size_t, bool> number(const std::string& text, const loops::Kernel& kernel) {
    const auto [found, fresh] = known_.emplace(text, kernels_.size());
    if (fresh) kernels_.push_back(kernel);
    return {found->second, fresh};
  }

 private:
  std::vector<loops::Kernel> kernels_;
  std::unordered_map<std::string, std::size_t> known_;
};

/// A program, and the kernels that are to be compiled for it: function kernel_symbol(i) is of kernel i.
struct ProgramSource {
  Program program;
  std::unique_ptr<KernelSource> kernels;
  std::vector<std::size_t> plan_steps = {};  ///< by step of the program: the plan's that it comes from
};

/// What kernels are made for, and what runs them.
class Machine : public std::enable_shared_from_this<Machine> {
 public:
  virtual ~Machine() = default;

  /// What plans are made for. `threads`: of the host.
  virtual loops::Target target(int threads) const = 0;
  /// Puts the memory and the calls of a plan where its program has them.
  virtual void place(schedule::Plan&) const {}
  /// The error of a kernel that has no code, before a plan for all sizes is taken.
  virtual Status check_kernel(const loops::Kernel&) const { return {}; }
  /// Bytes that a thread needs beside the buffers that a kernel is given, which executables keep; sizes must be
  /// numbers.
  virtual std::size_t scratch_bytes(const loops::Kernel&) const { return 0; }
  /// Texts of a step's code.
  virtual std::vector<KernelForm> forms() const = 0;
  /// What does a call that became a kernel.
  virtual std::string_view kernel_name() const { return "kernel"; }

  /// The same with its device open, which the functions below need. The error says what is missing.
  virtual Result<std::shared_ptr<const Machine>> open() const { return shared_from_this(); }

  /// What decides code beside graphs, settings and the host, in lines.
  virtual std::string text() const { return {}; }
  /// Refuses graphs that this device cannot run.
  virtual Status check_graph(const Graph&) const { return {}; }
  virtual std::unique_ptr<KernelSource> source(const schedule::Plan& plan) const = 0;
  /// Error when the objects lack a function of the program.
  virtual Result<std::shared_ptr<LoadedCode>> load(const Program& program,
                                                   std::span<const std::string> objects) const = 0;
  /// What prepares calls that run on the host.
  virtual PrepareExtern prepare() const = 0;
  /// For one executable; null: kernels run on the host. `records`: its runs may be recorded, and done at once later.
  virtual std::unique_ptr<KernelDevice> device(bool /*records*/) const { return nullptr; }
  /// Null: calls share no weights.
  virtual std::shared_ptr<SharedWeights> shared_weights() const { return nullptr; }
};

/// Takes a plan apart. The names in Plan::symbols are the program's symbols. Buffers and calls must be on the CPU:
/// Machine::place() puts them there. Errors: codegen.device for a plan that needs another device,
/// KernelSource::add()'s.
Result<ProgramSource> make_program(const Machine& machine, const schedule::Plan& plan);

}  // namespace partita::codegen
