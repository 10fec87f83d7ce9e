#include "core/base/scratch.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"

namespace partita {
namespace {

/// Entries that a signal handler may read while threads add and remove them. An entry for which there is no place is
/// not cleaned up on signals; the limits are far above what one process uses.
template <class T, std::size_t n>
class SignalSafeSet {
 public:
  void add(T value) {
    for (std::atomic<T>& slot : slots_)
      if (T empty{}; slot.compare_exchange_strong(empty, value)) return;
  }
  /// Takes out the first entry that `matches`; T() when there is none.
  T remove(auto matches) {
    for (std::atomic<T>& slot : slots_)
      if (T value = slot.load(); value != T{} && matches(value) && slot.compare_exchange_strong(value, T{}))
        return value;
    return T{};
  }
  const std::array<std::atomic<T>, n>& slots() const { return slots_; }

 private:
  std::array<std::atomic<T>, n> slots_{};
};

SignalSafeSet<char*, 64> temporary;  // files and folders
SignalSafeSet<pid_t, 256> groups, supervisors;
std::atomic<pid_t> owner = 0;

/// How signals were handled before this process said otherwise.
struct Handling {
  int signal;
  struct sigaction action;
};
Handling handled_at_start[] = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}, {SIGXFSZ, {}}};

/// These call only functions that POSIX allows in a signal handler; files are removed by rm(1).
void end_supervisors() {
  for (const std::atomic<pid_t>& supervisor : supervisors.slots())
    if (const pid_t child = supervisor.load()) ::kill(child, SIGTERM);
  constexpr timespec step = {0, 10'000'000};
  int steps = 200;
  for (const std::atomic<pid_t>& supervisor : supervisors.slots())
    if (const pid_t child = supervisor.load())
      while (::waitpid(child, nullptr, WNOHANG) == 0 && steps-- > 0) ::nanosleep(&step, nullptr);
}

void remove_what_is_left() {
  end_supervisors();
  for (const std::atomic<pid_t>& group : groups.slots())
    if (const pid_t leader = group.load()) ::kill(-leader, SIGKILL);
  for (const std::atomic<char*>& entry : temporary.slots()) {
    const char* path = entry.load();
    if (!path) continue;
    const pid_t child = ::_Fork();
    if (child == 0) {
      ::execl("/bin/rm", "rm", "-rf", "--", path, static_cast<char*>(nullptr));
      ::_exit(127);
    }
    if (child > 0) ::waitpid(child, nullptr, 0);
  }
}

/// A signal handler, as the function above.
void end_by_signal(int signal) {
  std::signal(signal, SIG_DFL);
  if (::getpid() == owner) {
    remove_what_is_left();
    constexpr std::string_view message = "partita: stopped by a signal\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, message.data(), message.size());
  }
  sigset_t unblock;
  sigemptyset(&unblock);
  sigaddset(&unblock, signal);
  ::raise(signal);
  ::pthread_sigmask(SIG_UNBLOCK, &unblock, nullptr);
}

Diagnostic not_made(std::string_view why) {
  return input_error("scratch.folder",
                     fmt::format("no temporary folder can be made ({}); set TMPDIR to a folder that can "
                                 "be written",
                                 why));
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make(std::string_view purpose) {
  std::error_code failed;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(failed);
  if (failed) return not_made(failed.message());
  std::string path = (parent / fmt::format("partita-{}-XXXXXX", purpose)).string();
  // The path becomes part of shell commands that users write, so it may hold only characters without a meaning to a
  // shell.
  if (shell_word(path) != path) return not_made("TMPDIR has characters that a shell does not take as a name");
  if (!::mkdtemp(path.data())) return not_made(std::strerror(errno));
  return ScratchFolder(std::move(path));
}

RemovedOnSignal::RemovedOnSignal(const std::string& path) : path_(::strdup(path.c_str())) {
  if (path_) temporary.add(path_);
}

RemovedOnSignal::RemovedOnSignal(RemovedOnSignal&& other) noexcept : path_(std::exchange(other.path_, nullptr)) {}

RemovedOnSignal::~RemovedOnSignal() {
  if (path_) temporary.remove([&](const char* entry) { return path_ == entry; });
  std::free(path_);
}

ScratchFolder::ScratchFolder(std::string path) : path_(std::move(path)), removed_(path_) {}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), removed_(std::move(other.removed_)) {}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void add_child_group(pid_t leader) {
  groups.add(leader);
}

void remove_child_group(pid_t leader) {
  groups.remove([&](pid_t entry) { return entry == leader; });
}

void add_supervisor(pid_t child) {
  supervisors.add(child);
}

void remove_supervisor(pid_t child) {
  supervisors.remove([&](pid_t entry) { return entry == child; });
}

void end_now(int exit_code) {
  std::fflush(nullptr);
  remove_what_is_left();
  ::_exit(exit_code);
}

void clean_up_on_signals() {
  owner = ::getpid();
  for (auto& [signal, handling] : handled_at_start) ::sigaction(signal, nullptr, &handling);
  struct sigaction action = {};
  action.sa_handler = end_by_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

void restore_signals() {
  for (const auto& [signal, handling] : handled_at_start) ::sigaction(signal, &handling, nullptr);
}

}  // namespace partita
