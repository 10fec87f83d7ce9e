#pragma once
// The one place that starts child processes.
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "core/base/descriptor.h"
#include "core/base/result.h"
#include "core/base/whereabouts.h"

namespace partita {

/// How a child process ended.
struct ProcessEnd {
  enum How : unsigned char {
    Exited,
    Signalled,
    OutOfMemory,  ///< or killed from elsewhere, as the kernel does when memory is short
    NotFound,     ///< there is no such program
    TimedOut,
    Cancelled
  } how = Exited;
  int code = 0;        ///< exit code or signal
  std::string output;  ///< of run_processes(): what it wrote to its stdout
  std::string errors;  ///< the end of its stderr
  std::string at;      ///< what a function noted last (core/base/whereabouts.h), and
  std::string node;    ///< the first node of that
  double seconds = 0;  ///< from its start on

  bool succeeded() const { return how == Exited && code == 0; }
  /// "signal 11 (Segmentation fault): LAST LINE OF STDERR"
  std::string text() const;
};

/// The last line of what a program printed; the summary of a sanitizer, if there is one.
std::string last_line(std::string_view text);

/// What a child process runs: a program, or a function of this one.
struct ProcessStart {
  /// A program, which PATH finds, and its arguments. What it starts ends with it, when it is killed, and with the
  /// thread that started it, however that ends. Its stdin is empty, and its stdout is its stderr.
  std::vector<std::string> words;
  bool outlives_thread = false;  ///< the program sees for itself when this process ends
  /// Without words: what a fork of this process runs before it exits with 0. No other thread may hold a lock that it
  /// needs, because a fork copies only one thread. std::bad_alloc makes it OutOfMemory.
  std::function<void()> body;
  bool crash_handlers = false;  ///< the fork keeps this process's handlers of crashes
  Whereabouts* at = nullptr;    ///< where the fork notes what it does, in memory that both map

  /// Descriptors of this process, and their numbers in the child.
  std::vector<std::pair<int, int>> descriptors;
  std::size_t memory_bytes = 0;  ///< limit of address space beyond this process's; 0: none
};

/// A file in memory for what a child process prints. Writes beyond its limit fail in the child.
class MemoryFile {
 public:
  /// Error process.start when the system gives none.
  static Result<MemoryFile> make(std::size_t most_bytes);

  int fd() const { return file_.get(); }
  /// What was written, or the end of it.
  std::string text(std::size_t most = std::string::npos) const;

 private:
  Descriptor file_;
};

/// A running child in a process group of its own: a key that stops this process does not reach it, but the signal does
/// (core/base/scratch.h). It leaves no core file. Killed and reaped with its owner.
class Process {
 public:
  /// Error process.start.
  static Result<Process> start(const ProcessStart& start);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  bool running() const { return pid_ > 0; }
  /// Since it was started.
  double seconds() const;
  /// Readable when the child has ended: for poll().
  int ended_fd() const { return ended_.get(); }
  /// The end of its stderr.
  std::string errors() const;
  /// Kills the child and what it started; it is still to be reaped.
  void kill();
  /// Waits for the end and reaps the child. Precondition: running().
  ProcessEnd wait();

 private:
  explicit Process(MemoryFile errors) : errors_(std::move(errors)) {}
  [[noreturn]] void run_program(const ProcessStart& start, char* const* argv, pid_t parent,
                                std::size_t address_space) const;
  [[noreturn]] void run_body(const ProcessStart& start, pid_t parent, std::size_t address_space) const;

  pid_t pid_ = 0;
  bool supervised_ = false;
  bool killed_ = false;
  std::chrono::steady_clock::time_point started_;
  Descriptor ended_;
  MemoryFile errors_;
};

}  // namespace partita
