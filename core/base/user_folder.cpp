#include "core/base/user_folder.h"

#include <cstdlib>
#include <filesystem>

namespace partita {

namespace fs = std::filesystem;

std::string user_folder(const char* name, const char* fallback) {
  if (const char* given = std::getenv(name); given && fs::path(given).is_absolute()) return given;
  const char* home = std::getenv("HOME");
  return home && fs::path(home).is_absolute() ? (fs::path(home) / fallback).string() : std::string();
}

}  // namespace partita
