#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace partita::testing {

/// The corpus beside the checkout: PARTITA_CORPUS, else ../shared/corpus, also from a worktree one level deeper. Empty
/// when absent; tests then QSKIP with no_corpus.
inline std::filesystem::path corpus() {
  if (const char* given = std::getenv("PARTITA_CORPUS")) return given;
  std::filesystem::path source = PARTITA_SOURCE_DIR;
  for (const char* candidate : {"../shared/corpus", "../../shared/corpus"})
    if (std::filesystem::exists(source / candidate / "README.md")) return source / candidate;
  return {};
}

inline constexpr const char* no_corpus =
    "no corpus beside the checkout (../shared/corpus); set PARTITA_CORPUS to run this";

}  // namespace partita::testing
