#pragma once
#include <sys/types.h>

namespace partita {

struct SuperviseOptions {
  int not_found = 127;           ///< the exit code when the program cannot be started
  bool outlives_thread = false;  ///< it ends by itself when `parent` is gone
};

/// Called in a fresh fork of `parent`: runs a program in a child of the fork, and ends as that child does. When the
/// parent's thread is gone, or on SIGTERM, it first kills the child and all that it started, whatever process groups
/// those are in. `words`: the program and its arguments up to a null. Safe in a fork of a process with threads.
[[noreturn]] void supervise(pid_t parent, char* const* words, const SuperviseOptions& options);

/// Ends a supervisor, its child and what that started, and does not reap it. Errors are ignored.
void end_supervised(pid_t supervisor);

}  // namespace partita
