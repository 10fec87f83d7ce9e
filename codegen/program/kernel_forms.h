#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/program/executable.h"
#include "core/aot/staged_compiler.h"

namespace partita::codegen {

/// The kernel that a step of the plan runs: its own, or the work after a call; nullopt for a call alone.
Result<std::optional<loops::Kernel>> kernel_of_step(const schedule::Plan& plan, std::size_t step);

using KernelText = Result<std::optional<loops::LinkedText>>;
/// A form of the kernel that a step runs.
KernelForm kernel_form(std::string name, std::string title,
                       std::function<KernelText(const schedule::Plan& plan, const loops::Kernel& kernel)> text);
/// Loop IR, with which all forms begin.
KernelForm loops_form();

/// See StagedCompiler::scratch.
Result<StagedCompiler::Scratch> scratch_of(const Machine& machine, const StagedCompiler::Planned& planned,
                                           const std::set<int>& fixed_inputs);
/// See StagedCompiler::measure. Kernels on a device are timed by its events.
Result<StagedCompiler::Measured> measure(const Machine& machine, const StagedCompiler::Planned& planned,
                                         const CompileOptions& options, const std::vector<Value>& inputs,
                                         double seconds);

}  // namespace partita::codegen
