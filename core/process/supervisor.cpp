#include "core/process/supervisor.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace partita {
namespace {

/// Ends this process as its child ended.
[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  ::signal(signal, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

/// Kills the direct children. Returns whether there may be any.
bool kill_children() {
  // The path of this thread's list, which the kernel keeps; without it, the process group.
  const int fd = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    ::kill(0, SIGKILL);
    return true;
  }
  std::array<char, 4096> text;
  pid_t child = 0;
  bool any = false;
  for (ssize_t n; (n = ::read(fd, text.data(), text.size())) > 0;)
    for (const char* c = text.data(); c != text.data() + n; ++c) {
      if (*c >= '0' && *c <= '9') {
        child = child * 10 + (*c - '0');
      } else if (child > 0) {
        any = true;
        ::kill(child, SIGKILL);
        child = 0;
      }
    }
  ::close(fd);
  return any;
}

/// The children of what is killed become this process's, which is their reaper, until none is left.
[[noreturn]] void end_all() {
  while (kill_children())
    while (::waitpid(-1, nullptr, 0) < 0 && errno == EINTR) {
    }
  ::signal(SIGTERM, SIG_DFL);
  end_as(SIGKILL);
}

}  // namespace

void supervise(pid_t parent, char* const* words, const SuperviseOptions& options) {
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGTERM);
  ::sigaddset(&watched, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  ::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!options.outlives_thread) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const pid_t child = ::_Fork();
  if (child == 0) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int s = 1; s < NSIG; ++s) ::signal(s, SIG_DFL);
    ::execvp(words[0], words);
    ::_exit(options.not_found);
  }
  if (child < 0) ::_exit(options.not_found);
  // The child's streams end with it, and leases and locks of the parent's files with the parent.
  ::close_range(0, ~0U, 0);
  if (::getppid() != parent) end_all();
  for (;;) {
    const int signal = ::sigwaitinfo(&watched, nullptr);
    if (signal == SIGTERM) end_all();
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == child) end_as(status);
  }
}

void end_supervised(pid_t supervisor) {
  ::kill(supervisor, SIGTERM);
  siginfo_t info;
  while (::waitid(P_PID, static_cast<id_t>(supervisor), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
}

}  // namespace partita
