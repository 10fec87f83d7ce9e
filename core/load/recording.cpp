// The folder that `partita record` writes: session.json, graphs/, trace/, and the same below rank_N/ and process_N/.
// codegen/python/partita/record/README.md describes it.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/natural_order.h"
#include "core/load/records.h"
#include "core/load/sources.h"

namespace partita {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* session_name = "session.json";
constexpr std::string_view format_begins = "\"format\": \"partita-recording-";
constexpr std::string_view known_format = "partita-recording-1";
constexpr std::size_t most_recorded = 20'000, most_processes = 4096;

double real_field(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

const Json& list_field(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto it = object.find(key);
  return it != object.end() && it->is_array() ? *it : none;
}

/// May it be a part of torch:inductor+KEY=VALUE?
bool is_word(std::string_view text) {
  return !text.empty() && text.size() < 200 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
}

/// The path of a file that session.json names, as "graphs/000.forward.py"; nullopt when it is none of that folder's
/// own, or not there.
std::optional<std::string> file_in(const std::string& folder, std::string_view below, const std::string& named) {
  if (!named.starts_with(below) || named.size() <= below.size() + 1 || named[below.size()] != '/') return std::nullopt;
  const std::string name = named.substr(below.size() + 1);
  if (name.find('/') != name.npos || name.find('\0') != name.npos || name.starts_with(".")) return std::nullopt;
  const fs::path path = fs::path(folder) / below / name;
  std::error_code error;
  if (fs::is_symlink(fs::path(folder) / below, error) ||
      fs::symlink_status(path, error).type() != fs::file_type::regular)
    return std::nullopt;
  return path.string();
}

/// The names of the inputs of a graph's text, "a,b,c,"; empty when it has no forward(). In a trace each is a line with
/// a comment.
std::string input_names(std::string_view text) {
  constexpr std::string_view head = "def forward(";
  std::string out;
  bool quoted = false, annotated = false;
  const std::size_t begin = text.find(head);
  for (std::size_t i = begin == text.npos ? begin : begin + head.size(); i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted || std::isspace(static_cast<unsigned char>(c))) continue;
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size() - 1);
    } else if (c == ')') {
      if (!out.ends_with(',')) out += ',';
      return out;
    } else if (c == ':') {
      annotated = true;
    } else if (c == ',') {
      annotated = false;
      if (!out.ends_with(',')) out += c;
    } else if (!annotated) {
      out += c;
    }
  }
  return {};
}

class RecordingReader {
 public:
  RecordingReader(std::string folder, std::string prefix, std::vector<FilePart>& parts, Loading& loading)
      : folder_(std::move(folder)), prefix_(std::move(prefix)), parts_(parts), loading_(loading) {}

  Status read() {
    const std::string path = (fs::path(folder_) / session_name).string();
    TRY(const auto bytes, FileBytes::open(path));
    const Json session = Json::parse(bytes->text(), nullptr, false);
    if (!session.is_object() || text_field(session, "format") != known_format)
      return input_error("load.recording",
                         session.is_object() ? fmt::format("a recording of the form '{}', and only {} is known",
                                                           text_field(session, "format").substr(0, 40), known_format)
                                             : "not JSON; is it cut short?",
                         {.file = path});
    for (const Json& row : list_field(session, "graphs")) {
      if (!row.is_object() || loading_.out.artefacts.size() > most_recorded) break;
      TRY_DO(read_graph(row));
    }
    const std::size_t first_of_trace = loading_.out.artefacts.size();
    TRY_DO(read_trace(session));
    attach(first_of_trace);
    Artefact text = Artefact::of_text(bytes);
    text.id = join_id(prefix_, "session");
    text.title = "what was recorded";
    text.group = folder_;
    add_part(text.id, [&] { loading_.add(std::move(text)); });
    return {};
  }

 private:
  void warn(const std::string& what) {
    Diagnostic d = input_error("load.recording", what, {.file = (fs::path(folder_) / session_name).string()});
    d.severity = Severity::Warning;
    loading_.out.warnings.push_back(std::move(d));
  }

  void add_part(const std::string& prefix, const auto& add) {
    FilePart part{prefix, loading_.out.artefacts.size()};
    add();
    part.end = loading_.out.artefacts.size();
    parts_.push_back(std::move(part));
  }

  std::string value_file(const Json& call, const char* side) {
    const std::string named = text_field(call, side);
    if (named.empty()) return {};
    const auto path = file_in(folder_, "graphs", named);
    if (!path) warn(fmt::format("{} is not there", named.substr(0, 100)));
    return path.value_or("");
  }

  Recorded read_call(const Json& row, const Json& call) {
    Recorded out;
    out.number = int_field(row, "id");
    out.cache = text_field(row, "cache");
    out.error = text_field(row, "error");
    if (const auto options = row.find("options"); options != row.end() && options->is_object())
      for (const auto& [name, value] : options->items()) {
        std::string text = value.is_string() ? value.get<std::string>() : value.is_null() ? "none" : value.dump();
        if (is_word(name) && is_word(text) && !value.is_structured()) out.options[name] = std::move(text);
      }
    out.calls = int_field(row, "calls");
    out.seconds = real_field(row, "seconds");
    out.first_seconds = real_field(row, "first_seconds");
    out.compile_seconds = real_field(row, "compile_seconds");
    out.call = int_field(call, "call");
    out.why = text_field(call, "why");
    out.left_out = int_field(call, "left_out");
    out.inputs = value_file(call, "inputs");
    out.outputs = value_file(call, "outputs");
    return out;
  }

  /// An artefact for each call of the graph whose values were kept; one where there is none.
  Status read_graph(const Json& row) {
    const auto path = file_in(folder_, "graphs", text_field(row, "file"));
    if (!path) {
      warn(fmt::format("the text of graph {} is not there", int_field(row, "id")));
      return {};
    }
    const std::string stem = fs::path(*path).stem().string(), id = join_id(prefix_, stem);
    std::vector<Recorded> calls;
    for (const Json& call : list_field(row, "recorded"))
      if (call.is_object() && calls.size() < most_recorded) calls.push_back(read_call(row, call));
    if (calls.empty()) calls.push_back(read_call(row, Json::object()));
    Loaded own;
    Loading apart{own, loading_.progress};
    if (const Status loaded = load_file(*path, id, false, apart); !loaded) {
      if (loaded.error().fault == Fault::Cancelled) return loaded;
      loading_.out.warnings.push_back(loaded.error());
      return {};
    }
    std::ranges::move(own.warnings, std::back_inserter(loading_.out.warnings));
    const std::string compilation = text_field(row, "compile_id");
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Recorded& call = calls[i];
      const std::string suffix = i == 0 ? "" : fmt::format(".call{}", call.call);
      add_part(id + suffix, [&] {
        for (Artefact a : own.artefacts) {
          if (i > 0 && !a.is_graph()) continue;
          if (a.is_graph()) {
            a.recorded = std::make_shared<Recorded>(call);
            a.title = title_of(a, compilation, call);
          }
          a.id += suffix;
          a.group = compilation;
          loading_.add(std::move(a));
        }
      });
    }
    return {};
  }

  static std::string title_of(const Artefact& a, const std::string& compilation, const Recorded& call) {
    std::string out = fmt::format("recorded {} graph", kind_name(a.kind));
    if (!compilation.empty()) out += " of " + compilation;
    return call.call > 0 ? out + fmt::format(", call {} of {}", call.call, call.calls) : out;
  }

  Status read_trace(const Json& session) {
    const std::string named = text_field(session, "trace");
    if (named.empty()) return {};
    const auto path = file_in(folder_, "trace", named);
    if (!path) {
      const std::string theirs = text_field(session, "trace_of_user");
      warn(fmt::format("the trace {} is not there{}", named.substr(0, 100),
                       theirs.empty() ? "" : fmt::format("; the program wrote it to {}", theirs.substr(0, 300))));
      return {};
    }
    const std::string prefix = join_id(prefix_, fs::path(*path).stem().string());
    Status loaded;
    add_part(prefix, [&] { loaded = load_file(*path, prefix, false, loading_); });
    if (loaded || loaded.error().fault == Fault::Cancelled) return loaded;
    loading_.out.warnings.push_back(loaded.error());
    return {};
  }

  /// Gives the trace's graphs the values of a recorded graph that is compiled of the same inputs: the trace has each
  /// forward and backward as inductor got it and after its passes.
  void attach(std::size_t first_of_trace) {
    const auto key = [](const Artefact& a) -> std::string {
      const auto text = a.text();
      const std::string names = text ? input_names(*text) : "";
      return names.empty() ? "" : a.group + "\n" + names;
    };
    std::map<std::string, std::shared_ptr<const Recorded>> known;
    auto& artefacts = loading_.out.artefacts;
    for (std::size_t i = 0; i < first_of_trace; ++i) {
      const Artefact& a = artefacts[i];
      if (!a.recorded || a.recorded->of_trace || !a.where.file.starts_with(folder_)) continue;
      if (std::string k = key(a); !k.empty()) known.emplace(std::move(k), a.recorded);
    }
    for (std::size_t i = first_of_trace; i < artefacts.size(); ++i) {
      Artefact& a = artefacts[i];
      const bool may_fit = a.kind == ArtefactKind::Forward || a.kind == ArtefactKind::Backward ||
                           a.kind == ArtefactKind::Inference || a.kind == ArtefactKind::PostGrad ||
                           a.kind == ArtefactKind::Dynamo;
      const auto it = may_fit ? known.find(key(a)) : known.end();
      if (it == known.end() || it->first.empty()) continue;
      auto fitted = std::make_shared<Recorded>(*it->second);
      fitted->of_trace = true;
      a.recorded = std::move(fitted);
    }
  }

  const std::string folder_, prefix_;
  std::vector<FilePart>& parts_;
  Loading& loading_;
};

/// The folders of the other processes: rank_0, process_2, ...
std::vector<std::string> processes_of(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if ((name.starts_with("rank_") || name.starts_with("process_")) && !it->is_symlink(error) &&
        it->is_directory(error) && out.size() < most_processes && is_recording(it->path().string()))
      out.push_back(name);
  }
  std::ranges::sort(out, naturally_before);
  return out;
}

}  // namespace

bool is_recording(const std::string& folder) {
  const fs::path path = fs::path(folder) / session_name;
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) return false;
  const auto head = read_head(path.string());
  return head && head->find(format_begins) != head->npos;
}

Status load_recording(const std::string& folder, Loading& loading) {
  std::vector<FilePart> parts;
  TRY_DO(RecordingReader(folder, "", parts, loading).read());
  for (const std::string& name : processes_of(folder)) {
    const Status read = RecordingReader((fs::path(folder) / name).string(), name, parts, loading).read();
    if (read) continue;
    if (read.error().fault == Fault::Cancelled) return read;
    loading.out.warnings.push_back(read.error());
  }
  shorten_ids(parts, loading.out.artefacts);
  return {};
}

}  // namespace partita
