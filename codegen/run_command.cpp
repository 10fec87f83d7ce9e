#include "codegen/run_command.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/scratch.h"

namespace partita::codegen {

Result<std::optional<int>> run_command(const std::vector<std::string>& words, const std::string& log,
                                       const char* code) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  // In a group of its own, which a signal that ends this process kills first.
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  ::posix_spawnattr_setpgroup(&how, 0);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &files, &how, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  if (error == ENOENT) return std::optional<int>();
  if (error != 0) return input_error(code, fmt::format("{} cannot be started: {}", words[0], std::strerror(error)));
  int status = 0;
  add_child_group(child);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  remove_child_group(child);
  return std::optional(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace partita::codegen
