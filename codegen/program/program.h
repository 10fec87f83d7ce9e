#pragma once
// What a compiler makes of a plan: all that a run needs besides the kernels' code and the values of constants, as plain
// data. An executor (executor.h) runs it with neither loops nor LLVM, in this process or from a store or a library.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/program/clamped_sum.h"
#include "codegen/program/extern.h"
#include "codegen/program/kernel_entry.h"
#include "core/schedule/plan.h"

namespace partita::codegen {

/// How to call a kernel whose machine code is elsewhere.
struct ProgramKernel {
  /// A share of a run's scalar operations: so many for each of the iterations of all these loops.
  struct Work {
    double operations = 0;
    SymList extents;  ///< one that depends on an outer loop has no value
  };
  std::string name;
  KernelEntry entry;  ///< its functions; equal kernels have the same
  std::vector<loops::Bound> bounds;
  std::vector<std::string> origins;  ///< graph nodes
  std::vector<Work> work;
  std::optional<ClampedSum> simple;  ///< what it does, if that is no more
};

/// The routine that libraries have for a call; None without one.
LibraryRoutine routine_of(const schedule::ExternCall& call);
/// What the plan tells of a call; both outlive it.
ExternContext context_of(const schedule::Plan& plan, const schedule::ExternCall& call);

/// What else an executor knows of a call of a library.
struct ProgramCall {
  LibraryRoutine routine = LibraryRoutine::None;  ///< the routine that libraries have for it
  bool draws = false;                             ///< it takes random numbers
  bool has_work = false;                          ///< the next step is a kernel of the work on its result
};

struct Program {
  /// Without kernels, and without work on the results of calls: that is a KernelCall of its own. KernelCall::kernel is
  /// an index into `kernels`. With symbols it is a plan for all sizes that keep its guards.
  schedule::Plan plan;
  std::vector<ProgramKernel> kernels;
  std::vector<ProgramCall> calls;    ///< by extern call, in the order of the steps
  std::vector<bool> written;         ///< by plan buffer: a step writes it
  std::vector<std::string> symbols;  ///< whose values kernels take, in order
};

/// The program as bytes, for a store or a library. Errors (exit 3) name what has no such form.
Result<std::string> program_bytes(Program program);
/// Reads program_bytes(). Error codegen.program for other bytes: it never trusts a size or an index.
Result<Program> read_program(std::string_view bytes);

/// A graph with its sub graphs as bytes, without the places in the model that its nodes come from.
Result<std::string> graph_bytes(const Graph& graph);
/// Reads graph_bytes(). Error codegen.program for other bytes; what it gives is a graph by verify() (core/ir).
Result<std::unique_ptr<Graph>> read_graph(std::string_view bytes);

}  // namespace partita::codegen
