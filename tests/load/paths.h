#pragma once
#include <QtTest>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/load/session.h"

namespace partita::testing {

/// What PyTorch left beside graphs.
inline const std::filesystem::path left = std::filesystem::path(PARTITA_SOURCE_DIR) / "tests/load/left";

/// A file or folder that has to be readable.
inline Loaded opened(const std::filesystem::path& path) {
  auto loaded = load(path.string());
  if (!loaded) qFatal("%s", loaded.error().line().c_str());
  return *std::move(loaded);
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Regular files below a folder whose name ends with `suffix`, sorted.
inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, const std::string& suffix) {
  std::vector<std::filesystem::path> out;
  if (!std::filesystem::exists(folder)) return out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace partita::testing
