#include "codegen/run_command.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/scratch.h"
#include "core/base/supervisor.h"

namespace partita::codegen {

Result<std::optional<int>> run_command(const std::vector<std::string>& words, const std::string& log,
                                       const char* code) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  constexpr int not_found = 213;  // no compiler's exit code
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return input_error(code, fmt::format("{} cannot be started: {}", words[0], std::strerror(errno)));
  if (child == 0) {
    const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (in < 0 || out < 0) ::_exit(not_found);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::setpgid(0, 0);  // a key that stops this process is not for it
    supervise(parent, argv.data(), not_found);
  }
  add_supervisor(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  remove_supervisor(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_found) return std::optional<int>();
  return std::optional(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace partita::codegen
