// Forks a child, sets its descriptors and limits, and tells by its status how it ended. Programs run below a supervisor
// (supervisor.cpp), functions directly. What sets up the child must be safe in a signal handler.
#include "core/process/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/base/check.h"
#include "core/base/mapped_file.h"
#include "core/base/scratch.h"
#include "core/process/supervisor.h"

namespace partita {
namespace {

// Exit codes that no program uses.
constexpr int out_of_memory = 86, not_found = 213;
constexpr std::size_t most_errors = 16 << 20, kept_errors = 8192, most_descriptors = 8;

Diagnostic not_started(std::string_view what) {
  return input_error("process.start", fmt::format("{} cannot be started: {}", what, std::strerror(errno)));
}

std::size_t address_space() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0;
  in >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// These run in a fork of a process that may have threads, so they call only what POSIX allows in a signal handler.

void set_limits(const ProcessStart& start, std::size_t address_space) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (start.memory_bytes == 0) return;
  const rlim_t bytes = address_space + start.memory_bytes;
  const rlimit memory{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &memory);
}

/// Gives the child its descriptors. They are first put out of the way of each other.
void set_descriptors(const ProcessStart& start, int errors) {
  constexpr int high = 64;
  std::array<int, most_descriptors> copies{};
  for (std::size_t i = 0; i < start.descriptors.size(); ++i)
    copies[i] = ::fcntl(start.descriptors[i].first, F_DUPFD_CLOEXEC, high);
  ::dup2(errors, STDERR_FILENO);
  for (std::size_t i = 0; i < start.descriptors.size(); ++i) ::dup2(copies[i], start.descriptors[i].second);
}

}  // namespace

std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  // Sanitizers sum up what they found before their last line.
  if (const std::size_t summary = text.rfind("SUMMARY: "); summary != text.npos)
    return std::string(text.substr(summary, text.find('\n', summary) - summary));
  return std::string(text.substr(text.find_last_of('\n') + 1));
}

std::string ProcessEnd::text() const {
  switch (how) {
    case NotFound:
      return "there is no such program";
    case TimedOut:
      return fmt::format("still running after {:.3g} s", seconds);
    case Cancelled:
      return "stopped on request";
    case Exited:
    case Signalled:
    case OutOfMemory:
      break;
  }
  std::string out = how == OutOfMemory && code != SIGKILL ? "out of memory"
                    : how == Exited                       ? fmt::format("exit code {}", code)
                                                          : fmt::format("signal {} ({})", code, ::strsignal(code));
  if (how == OutOfMemory && code == SIGKILL) out += ", as when memory is short";
  if (const std::string line = last_line(errors); !line.empty()) out += ": " + line;
  return out;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      supervised_(other.supervised_),
      killed_(other.killed_),
      started_(other.started_),
      ended_(std::move(other.ended_)),
      errors_(std::move(other.errors_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(supervised_, other.supervised_);
  std::swap(killed_, other.killed_);
  std::swap(started_, other.started_);
  std::swap(ended_, other.ended_);
  std::swap(errors_, other.errors_);
  return *this;
}

Process::~Process() {
  if (!running()) return;
  kill();
  wait();
}

void Process::run_program(const ProcessStart& start, char* const* argv, pid_t parent, std::size_t space) const {
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int errors = errors_.fd();
  ::dup2(errors, STDOUT_FILENO);
  ::dup2(in, STDIN_FILENO);
  set_descriptors(start, errors);
  set_limits(start, space);
  supervise(parent, argv, {.not_found = not_found, .outlives_thread = start.outlives_thread});
}

void Process::run_body(const ProcessStart& start, pid_t parent, std::size_t space) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it dies with its parent
  if (::getppid() != parent) ::_exit(0);
  set_descriptors(start, errors_.fd());
  set_limits(start, space);
  // Handlers that the parent installed (a test, a crash reporter) must not run here.
  if (!start.crash_handlers)
    for (const int s : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::signal(s, SIG_DFL);
  for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::signal(s, SIG_DFL);
  write_whereabouts_to(start.at);
  try {
    start.body();
  } catch (const std::bad_alloc&) {
    ::_exit(out_of_memory);
  }
  // Destructors are skipped, because they would clean up what belongs to the parent.
  ::_exit(0);
}

Result<Process> Process::start(const ProcessStart& start) {
  const bool program = !start.words.empty();
  CHECK(program != static_cast<bool>(start.body), "a process runs a program or a function");
  CHECK(start.descriptors.size() <= most_descriptors, "too many descriptors for a process");
  const std::string_view name = program ? std::string_view(start.words[0]) : "a child process";
  TRY(MemoryFile errors, MemoryFile::make(most_errors));
  Process process(std::move(errors));
  const std::size_t space = start.memory_bytes ? address_space() : 0;
  std::unique_lock<std::mutex> files;
  if (!program) {
    std::fflush(nullptr);  // text left in the buffers would be written by both processes
    TRY(files, copy_mapped_files());
  }
  std::vector<char*> argv;
  for (const std::string& word : start.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  process.started_ = std::chrono::steady_clock::now();
  process.supervised_ = program;
  process.pid_ = ::fork();
  if (files.owns_lock()) files.unlock();
  if (process.pid_ < 0) {
    process.pid_ = 0;
    return not_started(name);
  }
  if (process.pid_ == 0) {
    ::setpgid(0, 0);
    if (program) process.run_program(start, argv.data(), parent, space);
    process.run_body(start, parent, space);
  }
  ::setpgid(process.pid_, process.pid_);  // both set it, as either may run first
  if (program)
    add_supervisor(process.pid_);
  else
    add_child_group(process.pid_);
  // The header of glibc 2.36 declares pidfd_open() without C linkage.
  process.ended_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process.pid_, 0)));
  if (process.ended_.get() < 0) return not_started(name);
  return process;
}

double Process::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

std::string Process::errors() const {
  return errors_.text(kept_errors);
}

void Process::kill() {
  if (!running()) return;
  killed_ = true;
  if (supervised_) end_supervised(pid_);
  if (::kill(-pid_, SIGKILL) != 0) ::kill(pid_, SIGKILL);
}

ProcessEnd Process::wait() {
  CHECK(running(), "no process to wait for");
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (supervised_)
    remove_supervisor(pid_);
  else
    remove_child_group(pid_);
  pid_ = 0;
  ProcessEnd end;
  end.seconds = seconds();
  end.errors = errors();
  if (WIFSIGNALED(status)) {
    end.code = WTERMSIG(status);
    end.how = end.code == SIGKILL && !killed_ ? ProcessEnd::OutOfMemory : ProcessEnd::Signalled;
  } else {
    end.code = WEXITSTATUS(status);
    if (end.code == out_of_memory && !supervised_) end.how = ProcessEnd::OutOfMemory;
    if (end.code == not_found && supervised_) end.how = ProcessEnd::NotFound;
  }
  return end;
}

Result<MemoryFile> MemoryFile::make(std::size_t most_bytes) {
  MemoryFile out;
  out.file_ = Descriptor(::memfd_create("partita-output", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Only the pages that are written take memory.
  if (out.fd() < 0 || ::ftruncate(out.fd(), static_cast<off_t>(most_bytes)) != 0 ||
      ::fcntl(out.fd(), F_ADD_SEALS, F_SEAL_GROW) != 0)
    return input_error("process.start", fmt::format("no memory for a child's output: {}", std::strerror(errno)));
  return out;
}

std::string MemoryFile::text(std::size_t most) const {
  // Parent and child share the offset, which is the end of what was written.
  const off_t end = ::lseek(fd(), 0, SEEK_CUR);
  std::string text(std::min(most, static_cast<std::size_t>(std::max<off_t>(end, 0))), '\0');
  std::size_t read = 0;
  while (read < text.size()) {
    const ssize_t n = ::pread(fd(), text.data() + read, text.size() - read,
                              end - static_cast<off_t>(text.size()) + static_cast<off_t>(read));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    read += static_cast<std::size_t>(n);
  }
  text.resize(read);
  return text;
}

}  // namespace partita
