#pragma once
// Runs work that may crash, hang or use up memory in processes of its own.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"

namespace partita::minify {

struct ChildLimits {
  double seconds = 60;           ///< wall time; then the child is killed
  std::size_t memory_bytes = 0;  ///< limit of address space beyond the caller's; 0: no limit
};

struct ChildEnd {
  enum How : unsigned char { Answered, Exited, Signalled, TimedOut, OutOfMemory, Cancelled } how = Answered;
  int code = 0;        ///< of Exited and Signalled
  std::string answer;  ///< of Answered
  std::string errors;  ///< the end of its stderr
  std::string at;      ///< of a child of run_children(): what it noted last (core/base/whereabouts.h), and
  std::string node;    ///< the first node of that
  double seconds = 0;
};

/// Runs each work in a fork of this process, `jobs` at a time, and returns their ends in order. The string that a work
/// returns is the answer. The caller must not have a thread that holds a lock the work needs, because fork copies only
/// one thread.
Result<std::vector<ChildEnd>> run_children(std::span<const std::function<std::string()>> works, int jobs,
                                           const ChildLimits& limits, const Progress* progress = nullptr);

/// Runs each shell command in a process group of its own, `jobs` at a time, and returns their ends in order. stdout and
/// stderr together become `answer`. The end is Exited, except for signals, timeouts and cancellation. What a command
/// started ends with it when its time is over, and with this process, however that ends.
Result<std::vector<ChildEnd>> run_commands(std::span<const std::string> commands, int jobs, const ChildLimits& limits,
                                           const Progress* progress = nullptr);

}  // namespace partita::minify
