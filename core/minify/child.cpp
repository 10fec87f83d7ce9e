#include "core/minify/child.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/mapped_file.h"
#include "core/base/scratch.h"
#include "core/base/supervisor.h"
#include "core/base/whereabouts.h"
#include "core/base/write_all.h"

namespace partita::minify {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int exit_out_of_memory = 86;  // exit code of a child that ran out of memory; Partita uses it for nothing else
constexpr std::size_t kept_errors = 8192;
constexpr int poll_milliseconds = 50;  // delay until a cancellation is noticed

Diagnostic system_error(const char* what) {
  return Diagnostic{Fault::Internal, "minify.child", fmt::format("{} failed: {}", what, std::strerror(errno))};
}

/// The read end of a pipe, and the text read so far.
struct Stream {
  int fd = -1;
  std::string text;

  /// Returns false at the end of the pipe.
  bool read_some() {
    char buffer[65536];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    text.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }
  void close() {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

std::size_t address_space() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0;
  in >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// One running child and its output.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill();
    answer_.close();
    errors_.close();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    forget();
    if (at_) ::munmap(at_, sizeof *at_);
  }

  /// Starts a child that runs `body`, which does not return. `body` gets the write end of the answer's pipe.
  /// `supervised`: the body is supervise().
  template <class Body>
  Status start(const Body& body, bool supervised) {
    supervised_ = supervised;
    int answer[2], errors[2];
    if (::pipe2(answer, O_CLOEXEC) != 0) return system_error("pipe");
    if (::pipe2(errors, O_CLOEXEC) != 0) return system_error("pipe");
    std::fflush(nullptr);
    void* page = ::mmap(nullptr, sizeof(Whereabouts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return system_error("mmap");
    at_ = static_cast<Whereabouts*>(page);
    started_ = Clock::now();
    TRY(std::unique_lock files, copy_mapped_files());
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    files.unlock();
    if (pid_ < 0) return system_error("fork");
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child dies with its parent
      if (::getppid() != parent) ::_exit(0);
      ::dup2(errors[1], STDERR_FILENO);
      // Handlers that the parent installed (a test, a crash reporter) must not run here.
      for (const int s : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT, SIGHUP}) ::signal(s, SIG_DFL);
      write_whereabouts_to(at_);
      body(answer[1]);
      ::_exit(0);
    }
    if (supervised_)
      add_supervisor(pid_);
    else
      add_child_group(pid_);
    ::setpgid(pid_, pid_);  // both set it, as either may run first
    ::close(answer[1]);
    ::close(errors[1]);
    answer_.fd = answer[0];
    errors_.fd = errors[0];
    return {};
  }

  bool running() const { return pid_ > 0; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  void kill() const {
    if (pid_ <= 0) return;
    if (supervised_) end_supervised(pid_);
    if (::kill(-pid_, SIGKILL) != 0) ::kill(pid_, SIGKILL);
  }
  void watch(std::vector<pollfd>& out) const {
    for (const Stream* s : {&answer_, &errors_})
      if (s->fd >= 0) out.push_back({s->fd, POLLIN, 0});
  }
  /// Reads the available output, and closes a pipe at its end.
  void read(const pollfd& ready) {
    for (Stream* s : {&answer_, &errors_})
      if (s->fd == ready.fd && ready.revents != 0 && !s->read_some()) s->close();
    if (errors_.text.size() > 2 * kept_errors) errors_.text.erase(0, errors_.text.size() - kept_errors);
  }
  bool silent() const { return answer_.fd < 0 && errors_.fd < 0; }

  /// Waits for a child that closed its pipes or was killed.
  ChildEnd reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ChildEnd end;
    end.seconds = seconds();
    forget();
    pid_ = 0;
    end.answer = std::move(answer_.text);
    end.at = text_of(*at_);
    end.node = node_of(*at_);
    end.errors = std::move(errors_.text);
    if (end.errors.size() > kept_errors) end.errors.erase(0, end.errors.size() - kept_errors);
    if (WIFSIGNALED(status)) {
      // A SIGKILL from elsewhere comes from the kernel when memory is short.
      end.how = WTERMSIG(status) == SIGKILL ? ChildEnd::OutOfMemory : ChildEnd::Signalled;
      end.code = WTERMSIG(status);
    } else {
      end.how = WEXITSTATUS(status) == exit_out_of_memory ? ChildEnd::OutOfMemory : ChildEnd::Exited;
      end.code = WEXITSTATUS(status);
    }
    return end;
  }

 private:
  void forget() const {
    if (supervised_)
      remove_supervisor(pid_);
    else
      remove_child_group(pid_);
  }

  pid_t pid_ = 0;
  bool supervised_ = false;
  Clock::time_point started_;
  Stream answer_, errors_;
  Whereabouts* at_ = nullptr;  ///< the child writes it
};

/// Reads from the children, kills those that are late, and calls `ended` for each that ended.
template <class Ended>
void wait_some(std::span<const std::unique_ptr<Child>> children, const ChildLimits& limits, bool cancelled,
               const Ended& ended) {
  std::vector<pollfd> fds;
  for (const auto& c : children)
    if (c && c->running()) c->watch(fds);
  ::poll(fds.data(), fds.size(), poll_milliseconds);
  for (std::size_t i = 0; i < children.size(); ++i) {
    Child* c = children[i].get();
    if (!c || !c->running()) continue;
    for (const pollfd& fd : fds) c->read(fd);
    const bool late = limits.seconds > 0 && c->seconds() > limits.seconds;
    if (!c->silent() && !late && !cancelled) continue;
    const bool killed = !c->silent();
    if (killed) c->kill();
    ChildEnd end = c->reap();
    if (killed) end.how = cancelled ? ChildEnd::Cancelled : ChildEnd::TimedOut;
    ended(i, std::move(end));
  }
}

void limit_memory(const ChildLimits& limits) {
  if (limits.memory_bytes == 0) return;
  const rlim_t bytes = address_space() + limits.memory_bytes;
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

/// Runs `count` children, `jobs` at a time. `body` runs in the child with its number and the answer's pipe.
template <class Body>
Result<std::vector<ChildEnd>> run_all(std::size_t count, int jobs, const ChildLimits& limits, const Progress* progress,
                                      bool supervised, const Body& body) {
  std::vector<ChildEnd> ends(count);
  std::vector<std::unique_ptr<Child>> children(count);
  std::size_t next = 0, running = 0;
  while (next < count || running > 0) {
    const bool cancelled = progress && progress->cancelled();
    for (; next < count && running < static_cast<std::size_t>(std::max(jobs, 1)); ++next) {
      if (cancelled) {
        ends[next].how = ChildEnd::Cancelled;
        continue;
      }
      children[next] = std::make_unique<Child>();
      const auto run = [&](int out) {
        limit_memory(limits);
        body(next, out);
      };
      TRY_DO(children[next]->start(run, supervised));
      ++running;
    }
    if (running == 0) break;
    wait_some(children, limits, cancelled, [&](std::size_t i, ChildEnd end) {
      ends[i] = std::move(end);
      --running;
    });
  }
  return ends;
}

}  // namespace

Result<std::vector<ChildEnd>> run_children(std::span<const std::function<std::string()>> works, int jobs,
                                           const ChildLimits& limits, const Progress* progress) {
  TRY(auto ends, run_all(works.size(), jobs, limits, progress, false, [&](std::size_t i, int out) {
        const rlimit no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        try {
          const std::string text = works[i]() + "\n";
          write_all(out, text.data(), text.size());
        } catch (const std::bad_alloc&) {
          ::_exit(exit_out_of_memory);
        }
      }));
  for (ChildEnd& end : ends) {
    if (end.how != ChildEnd::Exited || end.code != 0 || !end.answer.ends_with('\n')) continue;
    end.how = ChildEnd::Answered;
    end.answer.pop_back();
  }
  return ends;
}

Result<std::vector<ChildEnd>> run_commands(std::span<const std::string> commands, int jobs, const ChildLimits& limits,
                                           const Progress* progress) {
  const pid_t parent = ::getpid();
  return run_all(commands.size(), jobs, limits, progress, true, [&](std::size_t i, int out) {
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    char shell[] = "/bin/sh", option[] = "-c";
    char* const words[] = {shell, option, const_cast<char*>(commands[i].c_str()), nullptr};
    supervise(parent, words);
  });
}

}  // namespace partita::minify
