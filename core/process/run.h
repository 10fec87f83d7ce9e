#pragma once
// Runs programs and functions in child processes to their end.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/process/process.h"

namespace partita {

struct ProcessLimits {
  double seconds = 0;            ///< wall time; then the child is killed; 0: no limit
  std::size_t memory_bytes = 0;  ///< as in ProcessStart
};

/// A program, or a function, whose output is what it writes to `out` and who must not need a lock that another thread
/// holds (see ProcessStart).
struct ProcessWork {
  std::vector<std::string> words;
  std::function<void(int out)> body;
  bool errors_in_output = false;  ///< of a program
  /// Descriptors that a program gets, and their numbers there.
  std::vector<std::pair<std::shared_ptr<const Descriptor>, int>> descriptors = {};
};

/// Runs each work in a process of its own, `jobs` at a time, and returns their ends in order. Error process.start.
Result<std::vector<ProcessEnd>> run_processes(std::span<const ProcessWork> works, int jobs, const ProcessLimits& limits,
                                              const Progress* progress = nullptr);

/// Runs a program; `output` is what it wrote to stdout and stderr together. Errors: process.start; Fault::Cancelled.
Result<ProcessEnd> run_program(std::vector<std::string> words, const ProcessLimits& limits = {},
                               const Progress* progress = nullptr);

/// Runs a program that answers on stdout. Errors: process.start; Fault::Cancelled; process.failed says how it ended
/// when that was not with exit code 0.
Result<std::string> ask_program(std::vector<std::string> words, const ProcessLimits& limits = {},
                                const Progress* progress = nullptr);

}  // namespace partita
