#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "core/load/session.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ListVerbOptions {
  std::string path;
  bool json = false;
};

struct Row {
  const Artefact* artefact;
  std::size_t nodes = 0, ops = 0, inputs = 0;
  std::map<std::string, std::size_t> kinds;
};

std::string origin_of(const Artefact& a) {
  return a.where.line > 0 ? a.where.file + ":" + std::to_string(a.where.line) : a.where.file;
}

/// Of a recorded graph: how often it ran, and whether inductor had it in a cache.
Json recorded_json(const Recorded& r) {
  Json out = {{"number", r.number},   {"cache", r.cache},      {"compile_seconds", r.compile_seconds},
              {"calls", r.calls},     {"seconds", r.seconds},  {"first_seconds", r.first_seconds},
              {"call", r.call},       {"why", r.why},          {"inputs", r.inputs},
              {"outputs", r.outputs}, {"left_out", r.left_out}};
  if (!r.error.empty()) out["error"] = r.error;
  return out;
}

/// A line for each recorded graph.
void print_recorded(const Loaded& loaded, int width) {
  std::string rows;
  for (const Artefact& a : loaded.artefacts) {
    if (!a.recorded || a.recorded->of_trace) continue;
    const Recorded& r = *a.recorded;
    std::string kept = r.inputs.empty()    ? r.outputs.empty() ? "none" : "outputs"
                       : r.outputs.empty() ? "inputs"
                                           : "inputs, outputs";
    if (r.call > 0) kept += fmt::format(" of call {}", r.call);
    if (r.why == "nan") kept += ", which has a NaN or an infinity";
    if (r.why == "exception") kept += ", before an exception";
    if (r.left_out > 0) kept += fmt::format("; {} left out", r.left_out);
    if (!r.error.empty()) kept += "; not compiled: " + r.error.substr(0, r.error.find('\n'));
    rows += fmt::format("{:<{}}  {:<8}  {:>6}  {:>10.2f}  {:>10.3f}  {:<6}  {}\n", without_control(a.id), width,
                        without_control(a.group), r.calls, r.compile_seconds, r.seconds,
                        without_control(r.cache.empty() ? "-" : r.cache), without_control(kept));
  }
  if (rows.empty()) return;
  std::printf("\n%s%s",
              fmt::format("{:<{}}  {:<8}  {:>6}  {:>10}  {:>10}  {:<6}  {}\n", "recorded", width, "compile", "calls",
                          "compiled s", "ran s", "cache", "values")
                  .c_str(),
              rows.c_str());
}

void print_json(const Loaded& loaded, const std::vector<Row>& rows, const std::vector<Diagnostic>& warnings) {
  Json graphs = Json::array(), texts = Json::array(), problems = Json::array();
  for (const Row& r : rows) {
    graphs.push_back({{"id", r.artefact->id},
                      {"kind", kind_name(r.artefact->kind)},
                      {"nodes", r.nodes},
                      {"ops", r.ops},
                      {"inputs", r.inputs},
                      {"origin", origin_of(*r.artefact)},
                      {"group", r.artefact->group},
                      {"title", r.artefact->title},
                      {"node_counts", r.kinds}});
    if (r.artefact->recorded) graphs.back()["recorded"] = recorded_json(*r.artefact->recorded);
  }
  for (const Artefact& a : loaded.artefacts)
    if (!a.is_graph())
      texts.push_back({{"id", a.id}, {"title", a.title}, {"group", a.group}, {"origin", origin_of(a)}});
  for (const Diagnostic& w : warnings) problems.push_back(w.line());
  Json document = {{"path", loaded.path}, {"graphs", graphs}, {"texts", texts}, {"warnings", problems}};
  std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_table(const Loaded& loaded, const std::vector<Row>& rows) {
  std::size_t width = 2;
  for (const Artefact& a : loaded.artefacts) width = std::max(width, std::min<std::size_t>(a.id.size(), 80));
  int w = static_cast<int>(width);
  std::printf("%-*s  %-9s  %6s  %6s  %6s  %s\n", w, "id", "kind", "nodes", "ops", "inputs", "origin");
  for (const Row& r : rows)
    std::printf("%-*s  %-9s  %6zu  %6zu  %6zu  %s\n", w, without_control(r.artefact->id).c_str(),
                std::string(kind_name(r.artefact->kind)).c_str(), r.nodes, r.ops, r.inputs,
                without_control(origin_of(*r.artefact)).c_str());
  for (const Artefact& a : loaded.artefacts)
    if (!a.is_graph())
      std::printf("%-*s  %-9s  %6s  %6s  %6s  %s\n", w, without_control(a.id).c_str(), "text", "-", "-", "-",
                  without_control(origin_of(a)).c_str());
  print_recorded(loaded, w);
}

Result<int> list(const ListVerbOptions& options) {
  TRY(Loaded loaded, load(options.path));
  std::vector<Row> rows;
  std::vector<Diagnostic> warnings = loaded.warnings;
  std::size_t unreadable = 0;
  for (const Artefact& a : loaded.artefacts) {
    if (!a.is_graph()) continue;
    auto graph = a.graph();
    if (!graph) {
      ++unreadable;
      warnings.push_back(std::move(graph).error());
      continue;
    }
    Row row{&a, (*graph)->size(), 0, 0, (*graph)->kind_counts()};
    row.inputs = (*graph)->placeholders().size();
    for (Node* node : **graph) row.ops += node->op()->is_call();
    rows.push_back(std::move(row));
  }
  if (rows.empty() && unreadable > 0) return warnings.back();
  if (options.json)
    print_json(loaded, rows, warnings);
  else
    print_table(loaded, rows);
  for (const Diagnostic& w : warnings)
    std::fprintf(stderr, "partita: %s: %s\n", w.severity == Severity::Note ? "note" : "warning", w.line().c_str());
  return 0;
}

Action add_list(CLI::App& app) {
  auto options = std::make_shared<ListVerbOptions>();
  app.add_option("path", options->path, "File or folder")->required();
  app.add_flag("--json", options->json, "One JSON document");
  return [options] { return list(*options); };
}

}  // namespace

extern const Command list_command = {"list", "Every graph in a file or folder: id, kind, nodes, ops, inputs, origin",
                                     add_list};

}  // namespace partita::cli
