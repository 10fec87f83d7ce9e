#pragma once
// Removes what must not outlive the process: temporary files and folders, and process groups of children.
#include <string>
#include <string_view>

#include <sys/types.h>

#include "core/base/result.h"

namespace partita {

/// A file or folder that goes when a signal ends the process while this lives.
class RemovedOnSignal {
 public:
  explicit RemovedOnSignal(const std::string& path);
  ~RemovedOnSignal();
  RemovedOnSignal(RemovedOnSignal&& other) noexcept;
  RemovedOnSignal& operator=(RemovedOnSignal&&) = delete;

 private:
  char* path_;  ///< signal handlers read it
};

/// A folder of this user under TMPDIR that is removed with its owner, or when a signal ends the process.
class ScratchFolder {
 public:
  /// Makes $TMPDIR/partita-PURPOSE-XXXXXX. Error scratch.folder when it cannot be created, or when its path has
  /// characters with a meaning to a shell.
  static Result<ScratchFolder> make(std::string_view purpose);
  ~ScratchFolder();
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path);
  std::string path_;
  RemovedOnSignal removed_;
};

/// Process groups that a signal which ends this process kills first: leaders are children of this process.
void add_child_group(pid_t leader);
void remove_child_group(pid_t leader);
/// Children in supervise(), which such a signal asks to end, and waits for.
void add_supervisor(pid_t child);
void remove_supervisor(pid_t child);

/// From here on SIGINT, SIGTERM and SIGHUP kill the child groups, remove the scratch folders, say so in one line and
/// end the process by the same signal. Forks of this process are ended by them at once.
void clean_up_on_signals();
/// Gives a fork that becomes another program the handling of signals that this process had before
/// clean_up_on_signals(): under nohup, SIGHUP is ignored. May be called in a signal handler.
void restore_signals();
/// Ends the process at once: kills the child groups and removes the scratch folders, but waits for no thread.
[[noreturn]] void end_now(int exit_code);

}  // namespace partita
