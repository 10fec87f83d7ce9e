#pragma once
// Work that may crash, hang or eat all memory, in processes of its own.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"

namespace partita::minify {

struct ChildLimits {
  double seconds = 60;           ///< by the clock; then the child is killed
  std::size_t memory_bytes = 0;  ///< of address space beyond what the caller has; 0: no limit
};

struct ChildEnd {
  enum How : unsigned char { Answered, Exited, Signalled, TimedOut, OutOfMemory, Cancelled } how = Answered;
  int code = 0;        ///< of Exited and Signalled
  std::string answer;  ///< of Answered
  std::string errors;  ///< the end of what it wrote to stderr
  double seconds = 0;
};

/// Runs each work in a fork of this process, `jobs` at a time, and gives their ends in order. A work's string comes
/// back as the answer. The caller must have no thread that holds a lock the work needs: fork copies one thread only.
Result<std::vector<ChildEnd>> run_children(std::span<const std::function<std::string()>> works, int jobs,
                                           const ChildLimits& limits, const Progress* progress = nullptr);

/// Runs a shell command in a process group of its own; stdout and stderr together become `answer`. Exited always, but
/// for signals, timeouts and cancellation.
Result<ChildEnd> run_command(const std::string& command, const ChildLimits& limits, const Progress* progress = nullptr);

}  // namespace partita::minify
