#include "core/process/foreground.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/scratch.h"

namespace partita {
namespace {

constexpr std::array passed_on = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH};

volatile sig_atomic_t program = 0;

/// The terminal sends its signals to the whole process group, in which the program is.
void pass_on(int signal, siginfo_t* from, void*) {
  const int error = errno;
  if (from->si_code != SI_KERNEL && program > 0) ::kill(program, signal);
  errno = error;
}

/// Signals are passed on while this lives, from begin() on: those that come before wait until there is a program.
class PassedOn {
 public:
  PassedOn() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : passed_on) sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, &mask_before_);
    struct sigaction action = {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < passed_on.size(); ++i) ::sigaction(passed_on[i], &action, &before_[i]);
  }
  ~PassedOn() {
    program = 0;
    for (std::size_t i = 0; i < passed_on.size(); ++i) ::sigaction(passed_on[i], &before_[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  PassedOn(const PassedOn&) = delete;
  PassedOn& operator=(const PassedOn&) = delete;

  void begin(pid_t pid) const {
    program = pid;
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  /// In a fork, before it runs a program.
  void undo() const {
    for (std::size_t i = 0; i < passed_on.size(); ++i) ::sigaction(passed_on[i], &before_[i], nullptr);
    restore_signals();
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

 private:
  std::array<struct sigaction, passed_on.size()> before_ = {};
  sigset_t mask_before_ = {};
};

/// "NAME=VALUE" of this process's environment with the changes.
std::vector<std::string> merged(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool changed = false;
    for (const auto& [key, value] : changes) changed |= key == name;
    if (!changed) out.emplace_back(text);
  }
  for (const auto& [key, value] : changes) out.push_back(key + "=" + value);
  return out;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

Diagnostic not_started(const std::string& name, int error) {
  return input_error("process.start", fmt::format("{} cannot be started: {}", name, std::strerror(error)));
}

}  // namespace

Result<ForegroundEnd> run_in_foreground(const std::vector<std::string>& words,
                                        const std::vector<std::pair<std::string, std::string>>& environment) {
  const std::vector<std::string> variables = merged(environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  int ends[2];  // closed when the program has begun; else the error comes through it
  if (::pipe2(ends, O_CLOEXEC) != 0) return not_started(words[0], errno);
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  std::fflush(nullptr);
  const PassedOn signals;
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return not_started(words[0], errno);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    signals.undo();
    ::execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    (void)!::write(writing.get(), &error, sizeof error);
    ::_exit(0);
  }
  signals.begin(pid);
  writing = Descriptor();
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(reading.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return not_started(words[0], errno);
  if (got == sizeof error) return not_started(words[0], error);
  return WIFSIGNALED(status) ? ForegroundEnd{true, WTERMSIG(status)} : ForegroundEnd{false, WEXITSTATUS(status)};
}

void end_by(int signal) {
  const rlimit no_core{0, 0};  // the program has left one, if one is wanted
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(signal, SIG_DFL);
  sigset_t unblocked;
  sigemptyset(&unblocked);
  sigaddset(&unblocked, signal);
  ::sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
  ::raise(signal);
  constexpr int shells_base = 128;
  std::_Exit(shells_base + signal);
}

Diagnostic become(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  return not_started(words[0], errno);
}

}  // namespace partita
