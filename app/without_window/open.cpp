// What the command line without Qt does where others use it: it hands the words to a program with a window, or says
// what to install.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "app/cli/command.h"
#include "app/own_picture.h"
#include "app/report_drawing.h"
#include "app/version.h"
#include "core/process/foreground.h"
#include "core/process/run.h"

namespace partita {
namespace {

constexpr const char* without_window = ", without a window";

/// What a program answers to --version; empty when it is not this program in some version.
std::string version_of(const std::string& program) {
  const auto answer = ask_program({program, "--version"}, {.seconds = 10});
  return answer && answer->starts_with("partita ") ? *answer : std::string();
}

/// The first program named partita on PATH that has a window, and its version. Scripts are passed over: the wheel's
/// starts this program.
std::pair<std::string, std::string> program_with_window() {
  namespace fs = std::filesystem;
  const char* path = std::getenv("PATH");
  std::error_code none;
  const fs::path own = fs::canonical("/proc/self/exe", none);
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (folder.empty() || folder[0] != '/') continue;
    const fs::path found = fs::canonical(fs::path(folder) / "partita", none);
    if (none || found == own || ::access(found.c_str(), X_OK) != 0) continue;
    char magic[4] = {};
    std::ifstream(found, std::ios::binary).read(magic, 4);
    if (std::memcmp(magic, "\177ELF", 4) != 0) continue;
    const std::string said = version_of(found);
    if (!said.empty() && said.find(without_window) == said.npos) return {found, said.substr(said.find(' ') + 1)};
  }
  return {};
}

std::vector<std::string> words_of_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

Diagnostic has_no_window(std::string_view what) {
  return unsupported("window.none", fmt::format("{} needs the program with a window; install Partita's package for the "
                                                "desktop, which puts `partita` on PATH",
                                                what));
}

/// Does not return where there is a program with a window.
Result<int> hand_on() {
  const auto [program, said] = program_with_window();
  std::vector<std::string> words = words_of_process();
  if (program.empty() || words.empty()) return has_no_window("this");
  const std::string_view other = std::string_view(said).substr(0, said.find(' '));
  if (other != version())
    fmt::print(stderr, "partita: the window is {}, version {}; this is {}\n", program, other, version());
  words[0] = program;
  return become(std::move(words));
}

}  // namespace

namespace cli {

const char* const about_window = without_window;

Result<int> open_window() {
  return hand_on();
}

extern const Command open_command = {"open", "The window, of the program on PATH that has one",
                                     [](CLI::App& app) -> Action {
                                       app.fallthrough(false);
                                       app.allow_extras();
                                       return [] { return hand_on(); };
                                     }};

}  // namespace cli

Result<std::string> report_pdf(const ReportContent&) {
  return has_no_window("a PDF");
}

Result<std::string> own_picture(const Graph&, const std::string& format) {
  return has_no_window(fmt::format("a picture of so many nodes as {}", format));
}

}  // namespace partita
