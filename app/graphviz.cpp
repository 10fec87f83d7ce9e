#include "app/graphviz.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/ir/dot.h"

extern char** environ;

namespace partita {
namespace {

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_read() {
    if (read >= 0) ::close(read);
    read = -1;
  }
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
};

std::size_t total_nodes(const Graph& graph) {
  std::size_t n = graph.size();
  for (const auto& [target, child] : graph.children) n += total_nodes(*child);
  return n;
}

}  // namespace

Result<std::string> run_graphviz(const std::string& dot, const std::string& format, std::chrono::seconds limit,
                                 const Progress* progress) {
  Pipe in, out;
  if (in.read < 0 || out.read < 0)
    return input_error("graphviz.failed", fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write, 1);
  std::string option = "-T" + format;
  char program[] = "dot";
  char* arguments[] = {program, option.data(), nullptr};
  pid_t child = 0;
  int spawned = ::posix_spawnp(&child, "dot", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0)
    return unsupported("graphviz.missing",
                       fmt::format("cannot start dot: {}; install graphviz", std::strerror(spawned)));
  in.close_read();
  out.close_write();
  ::fcntl(in.write, F_SETFL, O_NONBLOCK);
  // Writing to a child that ended early must give an error, not a signal.
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);

  auto deadline = std::chrono::steady_clock::now() + limit;
  std::string result;
  std::size_t sent = 0;
  bool timed_out = false, cancelled = false;
  for (;;) {
    if (progress && progress->cancelled()) {
      cancelled = true;
      break;
    }
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) {
      timed_out = true;
      break;
    }
    pollfd wait[] = {{out.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
    int wait_ms = static_cast<int>(std::min<std::int64_t>(left, 100));  // then looks whether to stop
    if (::poll(wait, in.write >= 0 ? 2 : 1, wait_ms) < 0 && errno != EINTR) break;
    if (in.write >= 0 && wait[1].revents) {
      ssize_t n = ::write(in.write, dot.data() + sent, dot.size() - sent);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if (sent == dot.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) in.close_write();
    }
    if (wait[0].revents) {
      char buffer[1 << 16];
      ssize_t n = ::read(out.read, buffer, sizeof buffer);
      if (n == 0 || (n < 0 && errno != EINTR)) break;
      if (n > 0) result.append(buffer, static_cast<std::size_t>(n));
    }
  }
  ::sigaction(SIGPIPE, &before, nullptr);
  if (timed_out || cancelled) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (cancelled) return stopped_on_request();
  if (timed_out)
    return unsupported("graphviz.time_limit",
                       fmt::format("dot took over {} s; use --format dot or the window", limit.count()));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return unsupported("graphviz.failed", "dot failed; use --format dot or the window");
  return result;
}

Status check_graphviz_size(const Graph& graph) {
  if (std::size_t n = total_nodes(graph); n > max_graphviz_nodes)
    return unsupported(
        "graphviz.size",
        fmt::format("graph {} has {} nodes and Graphviz draws at most {}; use --format dot or the window's own picture",
                    graph.name, n, max_graphviz_nodes));
  return {};
}

Result<std::string> draw_with_graphviz(const Graph& graph, const std::string& format, const Progress* progress) {
  constexpr std::chrono::seconds limit{60};
  if (format == "dot") return to_dot(graph);
  if (format != "svg" && format != "png" && format != "pdf")
    return input_error("graphviz.format",
                       fmt::format("unknown format '{}'; svg, png, pdf and dot are written", format));
  TRY_DO(check_graphviz_size(graph));
  return run_graphviz(to_dot(graph), format, limit, progress);
}

}  // namespace partita
