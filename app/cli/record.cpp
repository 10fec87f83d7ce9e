// The verb record: runs a program as it is, with Python files on its PYTHONPATH that record what PyTorch compiles in it
// (codegen/python/partita/record). What the program does and how it ends is not changed.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "codegen/torch/python_files.h"
#include "core/base/output.h"
#include "core/base/scratch.h"
#include "core/load/file.h"
#include "core/process/foreground.h"

namespace partita::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct RecordVerbOptions {
  std::string folder, values = "inputs,outputs", limit = "1G", per_graph = "64M";
  std::int64_t calls = 1;
  bool until_nan = false, until_exception = false, profile = false;
  std::vector<std::string> graphs, program;
};

using Variables = std::vector<std::pair<std::string, std::string>>;  ///< of an environment, with their values

constexpr const char* variable = "PARTITA_RECORD";

void say(const std::string& text) {
  fmt::print(stderr, "partita: record: {}\n", without_control(text));
}

/// "64M" -> 64 * 2^20; nullopt for what is no size.
std::optional<std::uint64_t> bytes_of(std::string text) {
  constexpr std::string_view units = "KMGT";
  if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.pop_back();
  if (!text.empty() && text.back() == 'i') text.pop_back();
  std::uint64_t scale = 1;
  if (!text.empty())
    if (const std::size_t unit = units.find(static_cast<char>(std::toupper(text.back()))); unit != units.npos) {
      scale = std::uint64_t{1} << (10 * (unit + 1));
      text.pop_back();
    }
  constexpr std::size_t most_digits = 7;  // times 2^40 is below 2^64
  if (text.empty() || text.size() > (scale == 1 ? 2 * most_digits : most_digits) ||
      text.find_first_not_of("0123456789") != text.npos)
    return std::nullopt;
  return std::stoull(text) * scale;
}

std::string is_size(const std::string& text) {
  return bytes_of(text) ? std::string() : "takes a size as 64M, 1G or a number of bytes, and got '" + text + "'";
}

std::string is_values(const std::string& text) {
  for (const char* good : {"inputs,outputs", "outputs,inputs", "inputs", "outputs", "none"})
    if (text == good) return {};
  return "takes inputs,outputs, one of them, or none, and got '" + text + "'";
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

/// The folder that is asked for, or the first of recording, recording_2, ... that is not there. Error record.folder
/// when something is in it.
Result<std::string> folder_for(const std::string& asked) {
  std::error_code error;
  const fs::path base = fs::absolute(asked.empty() ? "recording" : asked, error);
  const auto is_free = [&](const fs::path& path) {
    return !fs::exists(fs::symlink_status(path, error)) || (fs::is_directory(path, error) && fs::is_empty(path, error));
  };
  if (is_free(base)) return base.string();
  if (!asked.empty())
    return input_error("record.folder", "has something in it already; give -o a new folder", {.file = asked});
  for (int n = 2;; ++n)
    if (fs::path path = fmt::format("{}_{}", base.string(), n); is_free(path)) return path.string();
}

Status write_json(const fs::path& path, const Json& json) {
  return write_file(path.string(), json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

/// What the files of the recorder are given, with the folder and what its processes share.
Json settings_of(const RecordVerbOptions& o, const std::string& folder, const std::string& home) {
  return {{"dir", folder},
          {"inputs", o.values.find("inputs") != std::string::npos},
          {"outputs", o.values.find("outputs") != std::string::npos},
          {"limit", *bytes_of(o.limit)},
          {"per_graph", *bytes_of(o.per_graph)},
          {"calls", o.calls},
          {"until_nan", o.until_nan},
          {"until_exception", o.until_exception},
          {"graphs", o.graphs},
          {"own_trace", !is_set("TORCH_TRACE")},
          {"home", home}};
}

/// Makes the folder and the session.json that stands until a process has compiled something, and writes the recorder's
/// files. Errors of writing.
Result<Variables> prepare(const RecordVerbOptions& o, const std::string& folder, const std::string& home) {
  TRY_DO(make_folder(folder));
  TRY_DO(write_json(fs::path(folder) / "session.json",
                    {{"format", "partita-recording-1"}, {"command", o.program}, {"graphs", Json::array()}}));
  for (const auto& [name, text] : torch::recorder_files()) {
    const fs::path path = name.starts_with("site/") ? fs::path(home) / name : fs::path(home) / "_partita_record" / name;
    TRY_DO(make_folder(path.parent_path().string()));
    TRY_DO(write_file(path.string(), text));
  }
  const std::string site = (fs::path(home) / "site").string();
  Variables out = {{"PYTHONPATH", is_set("PYTHONPATH") ? site + ":" + std::getenv("PYTHONPATH") : site},
                   {variable, settings_of(o, folder, home).dump(-1, ' ', false, Json::error_handler_t::replace)}};
  if (is_set("TORCH_TRACE"))
    say(fmt::format("TORCH_TRACE is set: the trace goes to {} and from there into the recording",
                    std::getenv("TORCH_TRACE")));
  else
    out.emplace_back("TORCH_TRACE", (fs::path(folder) / "trace").string());
  if (!is_set("INDUCTOR_PROVENANCE")) out.emplace_back("INDUCTOR_PROVENANCE", "1");
  if (o.profile) out.emplace_back("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1");
  return out;
}

Json read_session(const fs::path& folder) {
  const auto bytes = FileBytes::open((folder / "session.json").string());
  Json json = bytes ? Json::parse((*bytes)->text(), nullptr, false) : Json();
  return json.is_object() ? json : Json::object();
}

std::int64_t number_in(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_number_integer() ? object[key].get<std::int64_t>()
                                                                                       : 0;
}

/// What came of it: graphs, bytes, values beyond limits, in the folder and those of other processes.
struct Counted {
  std::size_t graphs = 0, processes = 0;
  std::int64_t bytes = 0, left_out = 0;

  void add(const Json& session) {
    const Json none = Json::array();
    const Json& rows = session.contains("graphs") && session["graphs"].is_array() ? session["graphs"] : none;
    if (rows.empty()) return;
    ++processes;
    graphs += rows.size();
    bytes += number_in(session, "bytes");
    for (const Json& row : rows)
      if (row.is_object() && row.contains("recorded") && row["recorded"].is_array())
        for (const Json& call : row["recorded"]) left_out += number_in(call, "left_out");
  }
};

std::string size_text(std::int64_t bytes) {
  constexpr double kilo = 1e3, mega = 1e6;
  const auto n = static_cast<double>(bytes);
  return n < mega ? fmt::format("{:.1f} kB", n / kilo) : fmt::format("{:.1f} MB", n / mega);
}

/// Completes session.json, and says what was recorded, or why nothing was.
void conclude(const RecordVerbOptions& o, const std::string& folder, const std::string& home, ForegroundEnd end) {
  Json session = read_session(folder), ranks = Json::array();
  Counted counted;
  counted.add(session);
  std::error_code error;
  std::vector<std::string> others;
  for (fs::directory_iterator it(folder, error), done; !error && it != done; it.increment(error))
    if (const std::string name = it->path().filename().string();
        name.starts_with("rank_") || name.starts_with("process_"))
      others.push_back(name);
  std::ranges::sort(others);
  for (const std::string& name : others) {
    counted.add(read_session(fs::path(folder) / name));
    ranks.push_back(name);
  }
  if (counted.graphs == 0) {
    const bool told =
        fs::exists(fs::path(home) / "told.old", error) || fs::exists(fs::path(home) / "told.failed", error);
    const bool has_torch = fs::exists(fs::path(home) / "torch", error);
    if (!told)
      say(has_torch ? "nothing was recorded: torch.compile compiled nothing in this program"
                    : "nothing was recorded: no Python of this program imported PyTorch");
    fs::remove(fs::path(folder) / "session.json", error);
    fs::remove(fs::path(folder) / "graphs", error);
    fs::remove(fs::path(folder) / "trace", error);
    fs::remove(folder, error);  // if it is empty now
    return;
  }
  session["command"] = o.program;
  session["end"] = {{end.signalled ? "signal" : "exit_code", end.code}};
  session["ranks"] = ranks;
  if (const Status written = write_json(fs::path(folder) / "session.json", session); !written)
    say(written.error().line());
  const std::string shown = fs::path(folder).lexically_proximate(fs::current_path(error)).string();
  std::string text = fmt::format("{} graph{}", counted.graphs, counted.graphs == 1 ? "" : "s");
  if (counted.processes > 1) text += fmt::format(" of {} processes", counted.processes);
  text += fmt::format(" and {} of values are in {}", size_text(counted.bytes), shown);
  if (counted.left_out > 0)
    text += fmt::format("; {} values are beyond --limit {} or --per-graph {}", counted.left_out, o.limit, o.per_graph);
  say(text + fmt::format("; look with partita open {0}, check with partita compare {0}", shown));
}

Result<int> run(const RecordVerbOptions& o) {
  TRY(const std::string folder, folder_for(o.folder));
  std::optional<ScratchFolder> home;
  const auto prepared = [&]() -> Result<Variables> {
    TRY(ScratchFolder made, ScratchFolder::make("record"));
    home.emplace(std::move(made));
    return prepare(o, folder, home->path());
  }();
  if (!prepared) say(fmt::format("nothing is recorded; the program runs all the same: {}", prepared.error().line()));
  const auto end = run_in_foreground(o.program, prepared ? *prepared : Variables());
  constexpr int not_started = 127;  // as shells say it
  if (!end) say(end.error().message);
  if (prepared) conclude(o, folder, home->path(), end ? *end : ForegroundEnd{false, not_started});
  home.reset();
  if (!end) return not_started;
  if (end->signalled) end_by(end->code);
  return end->code;
}

}  // namespace

extern const Command record_command = {
    "record", "Run a Python program and record what PyTorch compiles in it", [](CLI::App& app) -> Action {
      auto o = std::make_shared<RecordVerbOptions>();
      app.add_option("-o,--output", o->folder, "the folder to write; without it, recording, recording_2, ...");
      app.add_option("--values", o->values,
                     "inputs,outputs, one of them, or none: of which calls' sides to keep values")
          ->check(is_values)
          ->capture_default_str();
      app.add_option("--limit", o->limit,
                     "bytes of values in all; beyond it only sizes, extremes, mean, number of NaNs and a hash are kept")
          ->check(is_size)
          ->capture_default_str();
      app.add_option("--per-graph", o->per_graph, "the same for one call of a graph")
          ->check(is_size)
          ->capture_default_str();
      app.add_option("--calls", o->calls, "of each graph, how many first calls to keep values of")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str();
      app.add_flag(
          "--until-nan", o->until_nan,
          "also the first call with a NaN or an infinity in its outputs; then no more (each call's outputs are "
          "looked at, and inputs stay in memory until its end)");
      app.add_flag("--until-exception", o->until_exception,
                   "also the last call of each graph before an exception (each call's inputs are copied)");
      app.add_option("--graph", o->graphs, "values of this compilation alone, as 3/1; may be repeated")
          ->expected(1)
          ->take_all();
      app.add_flag("--profile", o->profile, "have inductor name each C++ kernel to torch.profiler");
      app.add_option("program", o->program, "the program and its arguments, behind --")->required();
      app.footer(
          "partita record -- python train.py --epochs 1\n"
          "The program is not changed: its streams, its results and its exit code, or the signal that ends it, are its "
          "own, also when nothing can be recorded. Ranks of torchrun get a folder each.");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
