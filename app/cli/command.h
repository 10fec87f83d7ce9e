#pragma once
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/result.h"

namespace partita::cli {

/// Runs a verb once its options are parsed. Returns the exit code, or the diagnostic that main prints as one line.
using Action = std::function<Result<int>()>;

/// A verb of the command line. `add` declares options on `app` and returns the action that reads them; the options live
/// in a struct that the action holds by shared_ptr. app/cli/VERB.cpp defines `extern const Command VERB_command`; CMake
/// makes the table from the file names, so adding a verb is adding its file.
struct Command {
  const char* name;
  const char* summary;
  Action (*add)(CLI::App& app);
};

/// All verbs, sorted by name.
std::vector<const Command*> commands();

/// Without a verb: opens an empty window.
Result<int> open_window();
extern const char* const about_window;  ///< "" or ", without a window": what --version says of open_window()

/// Text of a file as a part of a line: control characters become '?'.
inline std::string without_control(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

/// The same of a text of several lines, without newlines at its end.
inline std::string printable_lines(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = '?';
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace partita::cli
