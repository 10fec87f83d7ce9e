#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/load/session.h"

namespace partita {

/// One occurrence of a step of compiling, or an event without a length, as the answer of a cache.
struct CompileSpan {
  std::string name;   ///< "inductor_compile"
  std::string about;  ///< what else is said of it: "fn_name: _compile.compile_inner"
  std::int64_t thread = 0;
  double begin = 0;  ///< microseconds since 1970
  double seconds = 0;
  int parent = -1;       ///< index of the step that it is part of; -1: outermost
  bool ended = true;     ///< false: its end is not in the log, so that it lasts until that of its parent or of the log
  bool instant = false;  ///< an event without a length
};

/// The events of chromium_event records, in the order of their beginnings in the log.
std::vector<CompileSpan> compile_spans(const Artefact& chromium_events);

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
