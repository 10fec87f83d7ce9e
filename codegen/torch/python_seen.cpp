#include "codegen/torch/python_seen.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "codegen/torch/torch_worker.h"
#include "core/base/output.h"
#include "core/load/records.h"
#include "core/store/store.h"

namespace partita::torch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The file that a shell would start.
fs::path file_of(const std::string& program) {
  if (program.find('/') != program.npos) return program;
  const char* folders = std::getenv("PATH");
  std::istringstream in(folders ? folders : "");
  std::error_code ignored;
  for (std::string folder; std::getline(in, folder, ':');)
    if (fs::path file = fs::path(folder) / program; fs::is_regular_file(file, ignored)) return file;
  return program;
}

/// Changes when another Python is put in its place, or when packages are installed into its environment.
std::string stamp_of(const fs::path& file) {
  std::string out;
  for (const fs::path& part : {file, file.parent_path().parent_path() / "lib"}) {
    std::error_code failed;
    const auto time = fs::last_write_time(part, failed);
    if (!failed) out += fmt::format("{}.", time.time_since_epoch().count());
  }
  return out;
}

fs::path kept_file() {
  return fs::path(cache_folder()) / "pythons.json";
}

json kept() {
  std::ifstream in(kept_file());
  json all = json::parse(in, nullptr, false);
  return all.is_object() ? all : json::object();
}

}  // namespace

std::string cache_folder() {
  const fs::path store = StoreFile::default_file();
  return (store.empty() ? fs::temp_directory_path() / "partita-torch" : store.parent_path() / "torch").string();
}

PythonSeen python_seen(const Config& config) {
  PythonSeen seen{python_program(config), {}};
  const fs::path file = file_of(seen.program);
  const json all = kept();
  if (const auto found = all.find(file.string()); found != all.end() && text_field(*found, "stamp") == stamp_of(file))
    seen.what = text_field(*found, "what");
  return seen;
}

void remember_python(const std::string& program, const json& hello) {
  const fs::path file = file_of(program);
  std::string what = "torch " + text_field(hello, "torch");
  for (const char* part : {"devices", "compiler", "triton"})
    if (const std::string has = text_field(hello, part); !has.empty()) what += ", " + has;
  json all = kept();
  all[file.string()] = {{"stamp", stamp_of(file)}, {"what", what}};
  (void)write_file(kept_file().string(), all.dump(1, ' ', false, json::error_handler_t::replace));
}

}  // namespace partita::torch
