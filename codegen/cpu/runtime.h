#pragma once
#include <span>
#include <string>

#include "core/loops/scalar.h"

namespace partita::codegen {

/// A C++ function that compiled code calls for one element: what has no vector form.
struct RuntimeFunction {
  std::string symbol;
  void* address = nullptr;
};

/// "partita_Lgamma_f32": T (T...) as scalar_ops.def defines it.
std::string runtime_symbol(loops::ScalarOp op, DType dtype);
/// Every row of scalar_ops.def for each dtype it exists for.
std::span<const RuntimeFunction> runtime_functions();

}  // namespace partita::codegen
