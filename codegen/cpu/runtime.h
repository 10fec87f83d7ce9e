#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "core/loops/scalar.h"

namespace partita::codegen {

/// What a kernel met that ends the run: the first report stays. A kernel goes on after it, on values in range.
struct KernelFault {
  static constexpr std::int64_t zero_division = -1;

  std::atomic<bool> met = false;
  std::int64_t which = 0;     ///< place in ScalarBuilder::bounds(), or zero_division
  std::int64_t position = 0;  ///< the one out of bounds
};
/// void(KernelFault*, which, position), called by compiled code.
inline constexpr const char* report_fault_symbol = "partita_report_fault";

/// A C++ function that compiled code calls for one element: what has no vector form.
struct RuntimeFunction {
  std::string symbol;
  void* address = nullptr;
};

/// "partita_Lgamma_f32": T (T...) as scalar_ops.def defines it.
std::string runtime_symbol(loops::ScalarOp op, DType dtype);
/// Every row of scalar_ops.def for each dtype it exists for, and the report of a fault.
std::span<const RuntimeFunction> runtime_functions();

}  // namespace partita::codegen
