#include "app/standard_streams.h"

#include <cstdio>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/output.h"

namespace partita {
namespace {

std::string& kept_path() {
  static std::string path;
  return path;
}

}  // namespace

Result<std::string> StandardInput::keep() {
  if (folder_) return input_error("cli.input", "standard input can be read once; name a file for the other -");
  TRY(ScratchFolder made, ScratchFolder::make("stdin"));
  folder_.emplace(std::move(made));
  const std::string path = folder_->path() + "/stdin";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return input_error("cli.input", path + " cannot be written; free some room in TMPDIR");
  std::vector<char> buffer(1 << 20);
  bool kept = true;
  for (std::size_t n; kept && (n = std::fread(buffer.data(), 1, buffer.size(), stdin)) > 0;)
    kept = std::fwrite(buffer.data(), 1, n, file) == n;
  kept = std::fclose(file) == 0 && kept;
  if (std::ferror(stdin)) return input_error("cli.input", "standard input cannot be read");
  if (!kept) return input_error("cli.input", path + " cannot be written; free some room in TMPDIR");
  return kept_path() = path;
}

std::string remembered_path(const std::string& path) {
  return !path.empty() && path == kept_path() ? "-" : path;
}

CLI::Validator output_file() {
  return CLI::Validator(
      [](std::string& path) {
        const auto place = output_place(path);
        return place ? std::string() : place.error().line();
      },
      "");
}

CLI::Validator output_folder() {
  return CLI::Validator(
      [](std::string& path) {
        if (path == "-") return std::string("standard output is no folder");
        const Status fits = check_folder(path);
        return fits ? std::string() : fits.error().line();
      },
      "");
}

}  // namespace partita
