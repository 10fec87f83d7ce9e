#include "core/process/run.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>

namespace partita {
namespace {

constexpr int poll_milliseconds = 50;  // until a cancellation is noticed
constexpr std::size_t most_output = std::size_t{1} << 30;

using Page = std::unique_ptr<Whereabouts, void (*)(Whereabouts*)>;

/// A page that a fork shares with this process. Error process.start.
Result<Page> shared_page() {
  void* page = ::mmap(nullptr, sizeof(Whereabouts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return input_error("process.start", fmt::format("no memory to watch a child process: {}", std::strerror(errno)));
  return Page(static_cast<Whereabouts*>(page), [](Whereabouts* mapped) { ::munmap(mapped, sizeof *mapped); });
}

/// A work that runs.
struct Running {
  std::size_t index;
  MemoryFile output;
  Page at;
  Process process;
};

Result<Running> start(std::size_t index, const ProcessWork& work, const ProcessLimits& limits) {
  TRY(MemoryFile output, MemoryFile::make(most_output));
  Page at(nullptr, nullptr);  // programs have none
  ProcessStart start;
  start.memory_bytes = limits.memory_bytes;
  if (work.body) {
    start.body = [&work, out = output.fd()] { work.body(out); };
    TRY(at, shared_page());
    start.at = at.get();
  } else {
    start.words = work.words;
    start.descriptors = {{output.fd(), STDOUT_FILENO}};
    if (work.errors_in_output) start.descriptors.emplace_back(output.fd(), STDERR_FILENO);
    for (const auto& [descriptor, number] : work.descriptors) start.descriptors.emplace_back(descriptor->get(), number);
  }
  TRY(Process process, Process::start(start));
  return Running{index, std::move(output), std::move(at), std::move(process)};
}

ProcessEnd end_of(Running& running) {
  ProcessEnd end = running.process.wait();
  end.output = running.output.text();
  if (running.at) {
    end.at = text_of(*running.at);
    end.node = node_of(*running.at);
  }
  return end;
}

/// The end of a process that has ended, is late or is not wanted any more; nullopt while it runs on.
std::optional<ProcessEnd> end_now(Running& running, bool ended, bool cancelled, const ProcessLimits& limits) {
  const bool late = limits.seconds > 0 && running.process.seconds() > limits.seconds;
  if (!ended && !late && !cancelled) return std::nullopt;
  if (!ended) running.process.kill();
  ProcessEnd end = end_of(running);
  if (!ended) end.how = cancelled ? ProcessEnd::Cancelled : ProcessEnd::TimedOut;
  return end;
}

}  // namespace

Result<std::vector<ProcessEnd>> run_processes(std::span<const ProcessWork> works, int jobs, const ProcessLimits& limits,
                                              const Progress* progress) {
  std::vector<ProcessEnd> ends(works.size());
  std::vector<Running> running;
  std::size_t next = 0;
  while (next < works.size() || !running.empty()) {
    const bool cancelled = progress && progress->cancelled();
    for (; cancelled && next < works.size(); ++next) ends[next].how = ProcessEnd::Cancelled;
    for (; next < works.size() && running.size() < static_cast<std::size_t>(std::max(jobs, 1)); ++next) {
      TRY(Running started, start(next, works[next], limits));
      running.push_back(std::move(started));
    }
    std::vector<pollfd> fds;
    for (const Running& r : running) fds.push_back({r.process.ended_fd(), POLLIN, 0});
    ::poll(fds.data(), fds.size(), poll_milliseconds);
    std::vector<Running> still;
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (auto end = end_now(running[i], fds[i].revents != 0, cancelled, limits))
        ends[running[i].index] = *std::move(end);
      else
        still.push_back(std::move(running[i]));
    }
    running = std::move(still);
  }
  return ends;
}

Result<ProcessEnd> run_program(std::vector<std::string> words, const ProcessLimits& limits, const Progress* progress) {
  const ProcessWork work{.words = std::move(words), .body = {}, .errors_in_output = true};
  TRY(std::vector<ProcessEnd> ends, run_processes({&work, 1}, 1, limits, progress));
  if (ends[0].how == ProcessEnd::Cancelled) return stopped_on_request();
  return std::move(ends[0]);
}

Result<std::string> ask_program(std::vector<std::string> words, const ProcessLimits& limits, const Progress* progress) {
  const ProcessWork work{.words = std::move(words), .body = {}};
  TRY(std::vector<ProcessEnd> ends, run_processes({&work, 1}, 1, limits, progress));
  if (ends[0].how == ProcessEnd::Cancelled) return stopped_on_request();
  if (!ends[0].succeeded()) return input_error("process.failed", fmt::format("{}: {}", work.words[0], ends[0].text()));
  return std::move(ends[0].output);
}

}  // namespace partita
