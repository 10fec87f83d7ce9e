#include "core/base/workers.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/check.h"
#include "core/base/mapped_file.h"
#include "core/base/write_all.h"

namespace partita {
namespace {

using Clock = std::chrono::steady_clock;

struct Task {
  std::uint64_t item = 0, from = 0;
};

/// A child sends this header and then `length` bytes.
struct Header {
  enum class Kind : std::uint64_t { Message, Done };
  Kind kind = Kind::Message;
  std::uint64_t length = 0;
};

bool read_all(int fd, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::read(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

[[noreturn]] void child_main(int socket, const Workers& workers) {
  Task task;
  while (read_all(socket, &task, sizeof task)) {
    workers.work(task.item, task.from, [socket](std::string_view message) {
      const Header header{Header::Kind::Message, message.size()};
      // A failed write means that the parent is gone, so the child ends.
      if (!write_all(socket, &header, sizeof header) || !write_all(socket, message.data(), message.size())) _exit(0);
    });
    const Header done{Header::Kind::Done, 0};
    if (!write_all(socket, &done, sizeof done)) break;
  }
  // Destructors are skipped, because they would clean up what belongs to the parent.
  _exit(0);
}

/// A child process and the part of its messages that has arrived.
struct Child {
  pid_t pid = -1;
  int socket = -1;
  std::FILE* errors = nullptr;  ///< its stderr
  bool busy = false;
  Task task;
  Clock::time_point heard;
  std::string buffer;
};

std::string last_line(std::FILE* file) {
  std::string text(4096, '\0');
  std::fseek(file, 0, SEEK_END);
  const long end = std::ftell(file);
  std::fseek(file, std::max(0L, end - static_cast<long>(text.size())), SEEK_SET);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  while (text.ends_with('\n')) text.pop_back();
  // Sanitizers sum up what they found before their last line.
  if (const std::size_t summary = text.rfind("SUMMARY: "); summary != std::string::npos)
    return text.substr(summary, text.find('\n', summary) - summary);
  return text.substr(text.find_last_of('\n') + 1);
}

class Pool {
 public:
  explicit Pool(const Workers& workers) : workers_(workers) {
    for (std::size_t i = 0; i < workers.items; ++i) waiting_.push_back({i, 0});
  }
  ~Pool() {
    for (Child& child : children_) end(child, SIGKILL);
  }

  Status run() {
    while (true) {
      TRY_DO(hand_out());
      std::vector<pollfd> fds;
      for (const Child& child : children_)
        if (child.busy) fds.push_back({child.socket, POLLIN, 0});
      if (fds.empty()) return {};
      ::poll(fds.data(), fds.size(), 1000);
      for (const pollfd& fd : fds) {
        std::size_t c = 0;
        while (children_[c].socket != fd.fd) ++c;
        listen(c, fd.revents != 0);
      }
    }
  }

 private:
  Status hand_out() {
    for (Child& child : children_)
      if (!child.busy && !waiting_.empty()) give(child);
    while (!waiting_.empty() && children_.size() < std::max(1u, workers_.jobs)) {
      TRY(Child child, start());
      give(child);
      children_.push_back(std::move(child));
    }
    return {};
  }

  void give(Child& child) {
    child.task = waiting_.front();
    waiting_.pop_front();
    child.busy = true;
    child.heard = Clock::now();
    // If the child has died, this write fails and listen() notices the death.
    write_all(child.socket, &child.task, sizeof child.task);
  }

  Result<Child> start() {
    auto failed = [](const char* what) {
      return input_error("workers.fork", fmt::format("cannot start a child process: {}: {}", what, strerror(errno)));
    };
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed("socketpair");
    Child child;
    child.errors = std::tmpfile();
    if (!child.errors) return failed("tmpfile");
    // Text left in the stdio buffers would be written by both processes.
    std::fflush(nullptr);
    TRY(std::unique_lock files, copy_mapped_files());
    const pid_t parent = ::getpid();
    child.pid = ::fork();
    files.unlock();
    if (child.pid < 0) return failed("fork");
    if (child.pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child dies with its parent
      if (::getppid() != parent) ::_exit(0);
      ::dup2(::fileno(child.errors), STDERR_FILENO);
      ::close(ends[0]);
      for (const Child& other : children_) ::close(other.socket);
      child_main(ends[1], workers_);
    }
    ::close(ends[1]);
    child.socket = ends[0];
    return child;
  }

  /// Receives what the child has sent. Gives the child up when it has died or was silent for too long.
  void listen(std::size_t index, bool readable) {
    Child& child = children_[index];
    if (!readable) {
      const std::chrono::duration<double> silent = Clock::now() - child.heard;
      if (silent.count() > workers_.step_seconds)
        lose(index, fmt::format("still running after {:.0f} s", workers_.step_seconds), SIGKILL);
      return;
    }
    char bytes[65536];
    const ssize_t n = ::read(child.socket, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return lose(index, "", 0);
    child.heard = Clock::now();
    child.buffer.append(bytes, static_cast<std::size_t>(n));
    Header header;
    std::size_t at = 0;
    while (child.buffer.size() - at >= sizeof header) {
      std::memcpy(&header, child.buffer.data() + at, sizeof header);
      if (child.buffer.size() - at - sizeof header < header.length) break;
      at += sizeof header;
      if (header.kind == Header::Kind::Done)
        child.busy = false;
      else
        workers_.receive(child.task.item, std::string_view(child.buffer).substr(at, header.length));
      at += header.length;
    }
    child.buffer.erase(0, at);
  }

  void lose(std::size_t index, std::string how, int signal) {
    Child child = std::move(children_[index]);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(index));
    const std::string said = last_line(child.errors);
    const int status = end(child, signal);
    if (how.empty())
      how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : fmt::format("exit code {}", WEXITSTATUS(status));
    if (!said.empty()) how += ": " + said;
    const auto from = workers_.died(child.task.item, how);
    if (!from) return;
    CHECK(*from > child.task.from,
          fmt::format("item {} would begin at step {} again: {}", child.task.item, *from, how));
    waiting_.push_front({child.task.item, *from});
  }

  static int end(Child& child, int signal) {
    if (signal) ::kill(child.pid, signal);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    ::close(child.socket);
    std::fclose(child.errors);
    return status;
  }

  const Workers& workers_;
  std::deque<Task> waiting_;
  std::vector<Child> children_;
};

}  // namespace

Status run_workers(const Workers& workers) {
  return Pool(workers).run();
}

}  // namespace partita
