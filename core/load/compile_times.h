#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/load/session.h"

namespace partita {

/// A step of compiling, with all its occurrences within the same outer step.
struct CompileStep {
  std::string name;  ///< "inductor_compile"
  int depth = 0;     ///< 0: outermost
  std::int64_t count = 0;
  double seconds = 0;       ///< with the steps in it
  double self_seconds = 0;  ///< without them
};

/// Where a compilation's time went, by the chromium_event records of a log: outer steps before those in them. A step
/// that has no end in the log is left out.
std::vector<CompileStep> compile_steps(const Artefact& chromium_events);

}  // namespace partita
