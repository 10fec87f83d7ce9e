#pragma once
#include <sys/types.h>

namespace partita {

/// Called in a fresh fork of `parent`: runs a program in a child of the fork, and ends as that child does. When the
/// parent's thread is gone, or on SIGTERM, it first kills the child and all that it started, whatever process groups
/// those are in. `words`: the program and its arguments up to a null; `not_found`: the exit code when it cannot be
/// started. Safe in a fork of a process with threads.
[[noreturn]] void supervise(pid_t parent, char* const* words, int not_found = 127);

/// Ends a supervisor, its child and what that started, and does not reap it. Errors are ignored.
void end_supervised(pid_t supervisor);

}  // namespace partita
