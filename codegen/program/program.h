#pragma once
// What the CPU compiler makes of a plan: all that a run needs besides machine code and the values of constants, as
// plain data. An executor (executor.h) runs it with neither loops nor LLVM, in this process or from a store or a
// library.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cpu/kernel_shape.h"
#include "codegen/cuda/cuda_kernel.h"
#include "codegen/program/clamped_sum.h"
#include "core/schedule/plan.h"

namespace partita::codegen {

class CudaDevice;

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

/// A program, and the kernels that are to be compiled for it: function kernel_symbol(i) is of kernel i.
struct ProgramSource {
  Program program;
  std::vector<loops::Kernel> kernels;  ///< equal ones once
  std::vector<CudaKernel> cuda;        ///< the same in CUDA C++, for a plan of CUDA kernels
};
/// Takes a plan apart. The names in Plan::symbols are the program's symbols. Kernels are for Target::device; buffers
/// and calls must be on the CPU: of CUDA kernels it is the CPU that runs them (codegen/cuda/emulate.h). Errors:
/// codegen.device for a plan that needs another device, emit_cuda()'s.
/// A plan of CUDA kernels has kernels of our own for matrix products, convolutions and attention; products that a
/// library on `device` does are left as they are. If the CPU is to run the kernels (null), functions have the
/// emulation's names, and calls that would take it minutes are left as they are.
Result<ProgramSource> make_program(const schedule::Plan& plan, const std::shared_ptr<CudaDevice>& device = nullptr);

/// The program as bytes, for a store or a library. Errors (exit 3) name what has no such form.
Result<std::string> program_bytes(Program program);
/// Reads program_bytes(). Error codegen.program for other bytes: it never trusts a size or an index.
Result<Program> read_program(std::string_view bytes);

/// A graph with its sub graphs as bytes, without the places in the model that its nodes come from.
Result<std::string> graph_bytes(const Graph& graph);
/// Reads graph_bytes(). Error codegen.program for other bytes; what it gives is a graph by verify() (core/ir).
Result<std::unique_ptr<Graph>> read_graph(std::string_view bytes);

}  // namespace partita::codegen
