#pragma once
// Runs the user's own program as a shell would.
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace partita {

/// How a program ended: its exit code, or the signal that ended it.
struct ForegroundEnd {
  bool signalled = false;
  int code = 0;
};

/// Runs a program, which PATH finds, to its end. It has this process's streams, terminal, process group and limits, and
/// the environment of this process with `environment` on top; it is killed when this process is. Signals that are sent
/// to this process meanwhile are passed on to it; those of the terminal reach it anyway. Error process.start.
Result<ForegroundEnd> run_in_foreground(const std::vector<std::string>& words,
                                        const std::vector<std::pair<std::string, std::string>>& environment);

/// Ends this process by the signal, as a program that a shell started itself.
[[noreturn]] void end_by(int signal);

/// Turns this process into a program, with its words (the first is its path). Returns only when it cannot: error
/// process.start.
Diagnostic become(std::vector<std::string> words);

}  // namespace partita
