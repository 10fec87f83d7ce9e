#include "core/process/workers.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/check.h"
#include "core/base/descriptor.h"
#include "core/process/process.h"

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
  Process process;
  Descriptor socket;
  bool busy = false;
  Task task;
  Clock::time_point heard;
  std::string buffer;
};

class Pool {
 public:
  explicit Pool(const Workers& workers) : workers_(workers) {
    for (std::size_t i = 0; i < workers.items; ++i) waiting_.push_back({i, 0});
  }
  Status run() {
    while (true) {
      TRY_DO(hand_out());
      std::vector<pollfd> fds;
      for (const Child& child : children_)
        if (child.busy) fds.push_back({child.socket.get(), POLLIN, 0});
      if (fds.empty()) return {};
      ::poll(fds.data(), fds.size(), 1000);
      for (const pollfd& fd : fds) {
        std::size_t c = 0;
        while (children_[c].socket.get() != fd.fd) ++c;
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
    write_all(child.socket.get(), &child.task, sizeof child.task);
  }

  Result<Child> start() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return input_error("process.start", fmt::format("a child process cannot be started: {}", strerror(errno)));
    Descriptor socket(ends[0]);
    const Descriptor theirs(ends[1]);
    ProcessStart start;
    start.crash_handlers = true;  // a sanitizer's says more than the signal
    start.body = [&] {
      ::close(ends[0]);
      for (const Child& other : children_) ::close(other.socket.get());
      child_main(ends[1], workers_);
    };
    TRY(Process process, Process::start(start));
    return Child{.process = std::move(process), .socket = std::move(socket)};
  }

  /// Receives what the child has sent. Gives the child up when it has died or was silent for too long.
  void listen(std::size_t index, bool readable) {
    Child& child = children_[index];
    if (!readable) {
      const std::chrono::duration<double> silent = Clock::now() - child.heard;
      if (silent.count() > workers_.step_seconds)
        lose(index, fmt::format("still running after {:.0f} s", workers_.step_seconds));
      return;
    }
    char bytes[65536];
    const ssize_t n = ::read(child.socket.get(), bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return lose(index, {});
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

  /// Gives up a child that has ended, or that is ended now because it is `late`.
  void lose(std::size_t index, const std::string& late) {
    Child child = std::move(children_[index]);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(index));
    if (!late.empty()) child.process.kill();
    const ProcessEnd end = child.process.wait();
    const std::string how = late.empty() ? end.text() : late;
    const auto from = workers_.died(child.task.item, how);
    if (!from) return;
    CHECK(*from > child.task.from,
          fmt::format("item {} would begin at step {} again: {}", child.task.item, *from, how));
    waiting_.push_front({child.task.item, *from});
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
