#include "core/diff/diff.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/progress_line.h"
#include "app/tasks/profile_queries.h"
#include "core/base/assign.h"
#include "core/base/number_text.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DiffVerbOptions {
  std::vector<std::string> paths, profiles;
  bool all = false, json = false;
};

/// A, B, ... Z, 27, 28, ...
std::string letter(std::size_t run) {
  return run < 26 ? std::string(1, static_cast<char>('A' + run)) : fmt::format("{}", run + 1);
}

/// "A C: 12 (gelu), B: 11": runs with the same together.
std::string cells_text(const std::vector<DiffCell>& cells) {
  std::string out;
  for (const DiffGroup& group : groups_of(cells)) {
    std::string letters, text = group.cell->text.empty() ? "-" : group.cell->text;
    for (const std::size_t run : group.runs) letters += (letters.empty() ? "" : " ") + letter(run);
    if (!group.cell->node.empty()) text += fmt::format(" ({})", group.cell->node);
    out += fmt::format("\n      {}: {}", letters, without_control(text));
  }
  return out;
}

void print_text(const Diff& diff, bool all) {
  constexpr std::ptrdiff_t most_rows = 20;  // of an aspect
  for (std::size_t run = 0; run < diff.runs.size(); ++run) {
    const Run& r = diff.runs[run];
    std::size_t graphs = 0;
    for (const Compilation& c : r.compilations) graphs += c.graphs().size();
    const auto compilations = std::ranges::count_if(r.compilations, [](const auto& c) { return !c.graphs().empty(); });
    fmt::print("{}  {}: {}, {}\n", letter(run), without_control(r.name), count_text(compilations, "compilation"),
               count_text(graphs, "graph"));
  }
  for (auto row = diff.rows.begin(); row != diff.rows.end();) {
    const auto end = std::find_if(row, diff.rows.end(), [&](const DiffRow& r) { return r.aspect != row->aspect; });
    const auto own = std::find_if(row, end, [](const DiffRow& r) { return r.follows; });
    const auto count = std::distance(row, own), follow = std::distance(own, end);
    fmt::print("\n{}:{}{}\n", aspect_name(row->aspect),
               count > 0 ? fmt::format(" {} {}", count, row->aspect == DiffAspect::RunTime ? "rows" : "differ") : "",
               follow > 0 ? fmt::format("{} {} follow from other differences", count > 0 ? "," : "", follow) : "");
    const auto shown = all ? end : row + std::min<std::ptrdiff_t>(count, most_rows);
    for (auto at = row; at != shown; ++at) {
      std::string graphs = at->graphs.empty() ? "" : "  in " + at->graphs.front();
      if (at->graphs.size() > 1) graphs += fmt::format(" and {} more", at->graphs.size() - 1);
      fmt::print("  {}{}{}{}{}\n", at->compilation.empty() ? "" : at->compilation + "  ", without_control(at->what),
                 graphs, at->where.empty() ? "" : "  " + without_control(at->where), cells_text(at->cells));
    }
    if (!all && count > most_rows) fmt::print("  and {} more; --all prints them\n", count - most_rows);
    row = end;
  }
  fmt::print("{}{}\n", diff.rows.empty() ? "" : "\n",
             diff.differs() ? fmt::format("differs in {} respects",
                                          std::ranges::count_if(
                                              diff.rows, [](const DiffRow& r) { return r.differs() && !r.follows; }))
                            : fmt::format("no difference in {} graphs", diff.matched_graphs));
}

void print_json(const Diff& diff) {
  Json runs = Json::array(), rows = Json::array(), warnings = Json::array(), counts = Json::object();
  for (const Run& r : diff.runs) {
    Json compilations = Json::array();
    for (const Compilation& c : r.compilations)
      compilations.push_back({{"id", c.key}, {"code", c.code}, {"graphs", c.graphs().size()}});
    runs.push_back({{"name", r.name}, {"path", r.path}, {"compilations", compilations}});
  }
  for (const DiffRow& r : diff.rows) {
    Json cells = Json::array();
    for (const DiffCell& c : r.cells) {
      cells.push_back({{"text", c.text}});
      if (c.artefact) cells.back()["graph"] = c.artefact->id;
      if (!c.node.empty()) cells.back()["node"] = c.node;
    }
    rows.push_back({{"aspect", aspect_name(r.aspect)}, {"compilation", r.compilation}, {"what", r.what}});
    Json& row = rows.back();
    row["cells"] = cells;
    row["graphs"] = r.graphs;
    if (!r.where.empty()) row["where"] = r.where;
    row["follows"] = r.follows;
    if (!r.follows) counts[std::string(aspect_name(r.aspect))] = counts.value(aspect_name(r.aspect), 0) + 1;
  }
  for (const Diagnostic& w : diff.warnings) warnings.push_back(w.line());
  const Json document = {{"differs", diff.differs()},
                         {"matched_graphs", diff.matched_graphs},
                         {"counts", counts},
                         {"runs", runs},
                         {"rows", rows},
                         {"warnings", warnings}};
  fmt::print("{}\n", document.dump(1, ' ', false, Json::error_handler_t::replace));
}

Result<int> run(const DiffVerbOptions& o) {
  ProgressLine line;
  std::vector<std::string> paths = o.paths;
  if (paths.size() == 1 && o.profiles.size() > 1) paths.resize(o.profiles.size(), paths.front());
  if (!o.profiles.empty() && o.profiles.size() != paths.size())
    return input_error("cli.usage", fmt::format("there are {} logs and {} profiles; give --profile once for each log",
                                                paths.size(), o.profiles.size()));
  std::vector<Loaded> loaded;
  std::vector<const Loaded*> opened;
  for (const std::string& path : paths) TRY_DO(assign(loaded.emplace_back(), load(path, &line.progress())));
  for (const Loaded& l : loaded) opened.push_back(&l);
  TRY(Diff found, diff(opened, &line.progress()));
  for (const Loaded& l : loaded)
    for (const Diagnostic& w : l.warnings) found.warnings.push_back(w);
  std::vector<ProfiledLog> profiled_logs;
  for (std::size_t i = 0; i < o.profiles.size(); ++i) {
    TRY(profiled_logs.emplace_back(), profiled(loaded[i], o.profiles[i], &line.progress()));
    for (const std::string& note : profiled_logs.back().notes)
      found.warnings.push_back(input_error("diff.profile", note, {.file = o.profiles[i]}));
  }
  if (!profiled_logs.empty()) add_run_times(found, profiled_logs);
  if (o.json)
    print_json(found);
  else
    print_text(found, o.all);
  for (const Diagnostic& w : found.warnings)
    fmt::print(stderr, "partita: {}: {}\n", w.severity == Severity::Note ? "note" : "warning", w.line());
  return found.differs() ? 1 : 0;
}

}  // namespace

extern const Command diff_command = {
    "diff", "What differs between whole compilations: files, folders, logs, ranks", [](CLI::App& app) -> Action {
      auto o = std::make_shared<DiffVerbOptions>();
      app.add_option("paths", o->paths, "Two or more files or folders; or one folder, whose logs are compared")
          ->required();
      app.add_option(
             "--profile", o->profiles,
             "what export_chrome_trace of torch.profiler wrote of a run, once for each log, in their order: run "
             "times; with one log, profiles of several runs of it")
          ->expected(1)
          ->take_all();
      app.add_flag("--all", o->all, "also what follows from other differences, and more than 20 of a kind");
      app.add_flag("--json", o->json, "one JSON document");
      app.footer("Exit code 1 when something differs; compile and run times are told, but do not count.");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
