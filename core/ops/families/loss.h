#pragma once
#include "core/ops/record/record.h"

namespace partita {

enum class Reduction : std::int64_t { None = 0, Mean = 1, Sum = 2 };
/// The call's `reduction` argument.
Reduction reduction_of(const auto& call) {
  return static_cast<Reduction>(call.integer("reduction"));
}

}  // namespace partita
