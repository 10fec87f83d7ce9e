#pragma once
#include <span>
#include <string>

#include "codegen/program/kernel_entry.h"
#include "core/loops/scalar.h"

namespace partita::codegen {

/// Compiled code calls void(KernelFault*, which, position).
inline constexpr const char* report_fault_symbol = "partita_report_fault";

/// A C++ function that compiled code calls for one element of an operation without vector form.
struct RuntimeFunction {
  std::string symbol;
  void* address = nullptr;
};

/// "partita_Lgamma_f32": a function T (T...) as scalar_ops.def defines it.
std::string runtime_symbol(loops::ScalarOp op, DType dtype);
/// The functions of all rows of scalar_ops.def for the dtypes that they exist for, and the report of a fault.
std::span<const RuntimeFunction> runtime_functions();

}  // namespace partita::codegen
