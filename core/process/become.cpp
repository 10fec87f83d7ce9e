#include "core/process/become.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace partita {

Diagnostic become(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  return input_error("process.start", fmt::format("{} cannot be started: {}", words[0], std::strerror(errno)));
}

}  // namespace partita
