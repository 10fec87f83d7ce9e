// The verb compare: one backend against another (--backends), or a table of columns against a reference (--against).
// Prints the reports and keeps them in the store; app/tasks/columns.cpp computes the columns.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/progress_line.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/tasks/columns.h"
#include "app/tasks/config_values.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/locate.h"
#include "app/tasks/plant.h"
#include "app/tasks/rank_runs.h"
#include "app/tasks/run_artefact.h"
#include "codegen/backends.h"
#include "core/base/assign.h"
#include "core/base/whereabouts.h"
#include "core/compare/per_node.h"
#include "core/store/code_store.h"

namespace partita::cli {
namespace {

struct CompareVerbOptions {
  RunRequest request;
  std::string backends = "interp,cpu";
  double rtol = 1e-4, atol = 1e-5;
  std::string reference = "interp";
  std::vector<std::string> against;
  std::string values;
  std::size_t elements = 10;
  bool per_node = false, json = false, all = false, statistics = false;
  bool sides_given = false;  ///< --backends was
  bool many = false;         ///< several recorded graphs are compared
};

constexpr const char* stored_name = "stored";

/// One side of a comparison: a backend, or (null) the results in the IO file.
Result<const Backend*> backend_or_stored(const std::string& name) {
  if (name == stored_name) return nullptr;
  return find_backend(name);
}

Result<std::pair<const Backend*, const Backend*>> parse_backends(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos || text.find(',', comma + 1) != std::string::npos)
    return input_error("cli.usage",
                       fmt::format("--backends takes two names, A,B, and got {}; --reference A --against B --against C "
                                   "compares more",
                                   text));
  TRY(const Backend* a, backend_or_stored(text.substr(0, comma)));
  TRY(const Backend* b, backend_or_stored(text.substr(comma + 1)));
  if (!a && !b) return input_error("cli.usage", "--backends stored,stored compares the file with itself");
  return std::pair(a, b);
}

/// A's values, B's against them, and both against those that the file holds.
Result<std::vector<Report>> compare_pair(const CompareVerbOptions& o, const Artefact& artefact, const TensorFile& io,
                                         const std::shared_ptr<CodeStore>& store) {
  TRY(const auto pair, parse_backends(o.backends));
  const auto [a, b] = pair;
  const Tolerance tolerance{o.rtol, o.atol};
  if (o.per_node && (!a || !b))
    return input_error("cli.usage", "--per-node takes two backends: a file holds results, not every node's value");
  if (o.per_node) {
    const CompareSide reference{.name = std::string(a->name), .backend = a},
        side{.name = std::string(b->name), .backend = b};
    return compare_sides(artefact, io, o.request, reference, std::span(&side, 1), {tolerance, true}, store);
  }
  std::vector<Report> reports;
  const TensorFile stored = stored_results(io, o.request.train);
  if (!a || !b) TRY_DO(check_stored(stored, "the --inputs file"));
  const auto add = [&](std::string_view expected_name, std::string_view name, Report report) {
    reports.push_back(std::move(report));
    reports.back().expected_name = expected_name;
    reports.back().found_name = name;
  };
  const std::string_view a_name = a ? a->name : stored_name, b_name = b ? b->name : stored_name;
  ExactResults exact(artefact, io, o.request);
  const auto judged = [&](const TensorFile& expected, const TensorFile& found, bool strides) -> Result<Report> {
    Report report = compare_results(expected, found, tolerance, strides);
    TRY_DO(b ? exact.judge(report.rows, expected, found, tolerance)
             : exact.judge_stored(report.rows, expected, found, tolerance));
    return report;
  };
  std::vector<TensorFile> found;
  for (const Backend* side : {a, b}) {
    auto results = side ? run_artefact(artefact, io, o.request, *side, store) : stored;
    if (!results && is_death(results.error())) {
      add(a_name, side->name, Report{.rows = {row_of_death(results.error())}});
      break;
    }
    if (!results) return std::move(results).error();
    found.push_back(*std::move(results));
    if (!stored.tensors.empty() && a && b) {
      TRY(Report report, judged(stored, found.back(), false));
      add("the stored results", side->name, std::move(report));
    }
  }
  // Strides are compared when both sides are backends.
  if (found.size() == 2) {
    TRY(Report report, judged(found[0], found[1], a && b));
    add(a_name, b_name, std::move(report));
  }
  return reports;
}

/// What --reference and --against name.
struct Sides {
  CompareSide reference;
  std::vector<CompareSide> columns;
};
Result<Sides> parse_sides(const CompareVerbOptions& o, const Artefact& artefact, const TensorFile& io) {
  const auto parse = [&](const std::string& text) {
    return parse_side(with_recorded_options(text, artefact), io, o.request.train);
  };
  Sides sides;
  TRY(sides.reference, parse(o.reference));
  for (const std::string& text : o.against) TRY_DO(assign(sides.columns.emplace_back(), parse(text)));
  return sides;
}

/// One table for the reports of each graph, which follow each other.
std::string tables(std::span<const Report> reports, const CompareVerbOptions& o) {
  std::string text;
  for (std::size_t begin = 0; begin < reports.size();) {
    std::size_t end = begin + 1;
    while (end < reports.size() && reports[end].graph == reports[begin].graph) ++end;
    text += table_text(reports.subspan(begin, end - begin), o.all, o.statistics);
    begin = end;
  }
  return text;
}

/// The values of one row in all columns, as text and as JSON.
Result<std::pair<std::string, std::string>> row_values(const CompareVerbOptions& o, const Artefact& artefact,
                                                       const TensorFile& io, const Sides& sides,
                                                       const std::shared_ptr<CodeStore>& store) {
  const std::size_t colon = o.values.find(':');
  const std::string graph = colon == std::string::npos ? (o.per_node ? "" : "results") : o.values.substr(0, colon);
  const std::string row = colon == std::string::npos ? o.values : o.values.substr(colon + 1);
  TRY(const std::vector<SideValue> values,
      values_of_sides(artefact, io, o.request, sides.reference, sides.columns, graph, row, store));
  const Tolerance tolerance{o.rtol, o.atol};
  if (!o.json) {
    TRY(std::string text, values_text(values, tolerance, o.elements));
    return std::pair(fmt::format("values of {}\n{}", o.values, text), std::string());
  }
  TRY(nlohmann::ordered_json json, values_json(values, tolerance, o.elements));
  json["row"] = o.values;
  return std::pair(std::string(), json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

/// All ranks of a folder, on each side together.
Result<int> compare_all_ranks(CompareVerbOptions o) {
  if (!o.values.empty() || o.statistics || (o.request.train && o.per_node))
    return input_error("cli.usage",
                       "compare --ranks compares each rank's graph; --values and --statistics, and --train with "
                       "--per-node, are for one graph");
  ProgressLine line;
  o.request.progress = &line.progress();
  std::vector<std::string> sides{o.reference};
  sides.insert(sides.end(), o.against.begin(), o.against.end());
  if (o.against.empty()) {
    TRY_DO(parse_backends(o.backends));
    const std::size_t comma = o.backends.find(',');
    sides = {o.backends.substr(0, comma), o.backends.substr(comma + 1)};
  }
  TRY(const RankFolder folder, read_rank_folder(o.request.path, o.request.graph, o.request.inputs, o.request.progress));
  if (o.request.train) TRY_DO(check_trainable(folder));
  const auto compare = o.per_node ? compare_nodes_of_ranks : compare_ranks;
  TRY(const std::vector<RanksComparison> comparisons, compare(folder, o.request, sides, {o.rtol, o.atol}));
  line.clear();
  bool ok = true;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RanksComparison& c : comparisons) {
    ok &= c.ok();
    if (o.json)
      json.push_back(to_json(folder, c));
    else
      fmt::print("{}", text(folder, c));
  }
  if (o.json)
    fmt::print("{}\n",
               nlohmann::ordered_json{
                   {"ok", ok}, {"config", config_json(config(), ConfigPart::Differs)}, {"comparisons", std::move(json)}}
                   .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return ok ? 0 : 1;
}

/// The comparison of one graph, with values of a row as text and as JSON.
struct Compared {
  std::vector<Report> reports;
  std::pair<std::string, std::string> values;
};

Result<Compared> compare_graph(const CompareVerbOptions& o, const Artefact& artefact,
                               const std::shared_ptr<CodeStore>& store) {
  TRY(const TensorFile io, read_io(o.request, artefact));
  Compared out;
  std::vector<std::shared_ptr<PlantWatch>> planted{o.request.plant};
  if (o.against.empty()) {
    TRY(out.reports, compare_pair(o, artefact, io, store));
  } else {
    TRY(const Sides sides, parse_sides(o, artefact, io));
    planted.push_back(sides.reference.watch);
    for (const CompareSide& side : sides.columns) planted.push_back(side.watch);
    TRY(out.reports,
        compare_sides(artefact, io, o.request, sides.reference, sides.columns, {{o.rtol, o.atol}, o.per_node}, store));
    if (!o.values.empty()) TRY_DO(assign(out.values, row_values(o, artefact, io, sides, store)));
  }
  for (const auto& plant : planted)
    if (plant) TRY_DO(plant->met());
  return out;
}

/// Prints the reports and keeps them in the store. `left_out`: recorded graphs that were not compared, with the reason.
int show(const CompareVerbOptions& o, const std::vector<std::pair<std::string, Compared>>& compared,
         const std::vector<std::pair<std::string, std::string>>& left_out, CodeStore& store) {
  bool ok = true;
  std::string text, json, values;
  for (const auto& [id, one] : compared) {
    if (o.many) text += fmt::format("{}\n", id);
    if (!o.against.empty()) text += tables(one.reports, o);
    for (Report r : one.reports) {
      ok &= r.ok();
      if (o.against.empty()) text += r.text();
      store.add(CheckRow{remembered_path(o.request.path), id, "compare", r.ok(), r.json()});
      if (o.many) r.graph = r.graph.empty() ? id : id + ":" + r.graph;
      json += (json.empty() ? "" : ",\n") + r.json();
    }
    text += one.values.first;
    if (!one.values.second.empty()) values = ", \"values\": " + one.values.second;
  }
  nlohmann::ordered_json missed = nlohmann::ordered_json::array();
  for (const auto& [id, one] : compared)
    for (const std::string& reason : not_compared(one.reports)) {
      text += fmt::format("{}: {}\n", id, reason);
      missed.push_back({{"graph", id}, {"reason", reason}});
    }
  for (const auto& [id, reason] : left_out) {
    text += fmt::format("{}: left out: {}\n", id, reason);
    missed.push_back({{"graph", id}, {"reason", reason}});
  }
  if (o.many)
    text += fmt::format(
        "{} graphs compared, {} differ{}\n", compared.size(),
        std::ranges::count_if(compared,
                              [](const auto& one) { return !std::ranges::all_of(one.second.reports, &Report::ok); }),
        left_out.empty() ? "" : fmt::format(", {} left out", left_out.size()));
  text += note_on_stand_in(o.request.ranks);
  const std::string stand_in = name_of_stand_in(o.request.ranks);
  const std::string with_ranks = stand_in.empty() ? "" : fmt::format(", \"ranks\": \"{}\"", stand_in);
  const std::string with_missed =
      missed.empty() ? ""
                     : fmt::format(", \"left_out\": {}",
                                   missed.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  fmt::print("{}", o.json ? fmt::format("{{\"ok\": {}, \"config\": {}, \"reports\": [{}]{}{}{}}}\n", ok,
                                        config_json(config(), ConfigPart::Differs).dump(), json, with_missed,
                                        with_ranks, values)
                          : text);
  return ok ? 0 : 1;
}

/// Of a recording it is asked whether what the program got is right.
CompareVerbOptions with_default_sides(CompareVerbOptions o, const Artefact& artefact) {
  if (!o.sides_given && o.against.empty() && !o.per_node && o.request.inputs.empty() && artefact.recorded &&
      !artefact.recorded->outputs.empty())
    o.backends = "interp,stored";
  return o;
}

/// The recorded graphs whose inputs were kept, unless one is named, or values for one are given.
std::vector<const Artefact*> recorded_graphs(const Loaded& loaded, const RunRequest& request) {
  std::vector<const Artefact*> out;
  for (const Artefact& a : loaded.artefacts)
    if (request.graph.empty() && request.inputs.empty() && a.recorded && !a.recorded->of_trace &&
        !a.recorded->inputs.empty())
      out.push_back(&a);
  return out;
}

/// All recorded graphs, one after another. The error of one does not end the others.
Result<int> compare_recorded(const CompareVerbOptions& o, const std::vector<const Artefact*>& graphs,
                             ProgressLine& line) {
  if (!o.values.empty()) return input_error("cli.usage", "--values is for one graph; name it with --graph");
  const auto store = std::make_shared<CodeStore>();
  std::vector<std::pair<std::string, Compared>> compared;
  std::vector<std::pair<std::string, std::string>> left_out;
  for (const Artefact* artefact : graphs) {
    TRY_DO(step(o.request.progress,
                static_cast<double>(compared.size() + left_out.size()) / static_cast<double>(graphs.size()),
                artefact->id));
    auto one = compare_graph(o, *artefact, store);
    if (one)
      compared.emplace_back(artefact->id, *std::move(one));
    else if (one.error().fault == Fault::Cancelled || one.error().code == "cli.usage" ||
             one.error().code == "torch.start" || one.error().code == "backend.unknown")
      return one.error();
    else
      left_out.emplace_back(artefact->id, one.error().message);
  }
  line.clear();
  if (compared.empty())
    return input_error("compare.nothing", fmt::format("{}: no graph was compared: {}: {}", o.request.path,
                                                      left_out[0].first, left_out[0].second));
  return show(o, compared, left_out, *store);
}

Result<int> run(CompareVerbOptions o) {
  if (o.request.ranks.kind == OtherRanks::Kind::All) return compare_all_ranks(std::move(o));
  ProgressLine line;
  o.request.progress = &line.progress();
  TRY(const Loaded loaded, load(o.request.path, o.request.progress));
  const std::vector<const Artefact*> recorded = recorded_graphs(loaded, o.request);
  o.many = recorded.size() > 1;
  if (o.many) return compare_recorded(with_default_sides(o, *recorded[0]), recorded, line);
  TRY(const Artefact of_rank, recorded.size() == 1 ? Result<Artefact>(*recorded[0])
                                                   : pick_of_rank(loaded, o.request.graph, o.request.ranks.size));
  o = with_default_sides(o, of_rank);
  const auto store = std::make_shared<CodeStore>();
  TRY(Compared compared, compare_graph(o, of_rank, store));
  line.clear();
  std::vector<std::pair<std::string, Compared>> all;
  all.emplace_back(of_rank.id, std::move(compared));
  return show(o, all, {}, *store);
}

}  // namespace

extern const Command compare_command = {
    "compare", "Compare backends, stored results and earlier runs with one another", [](CLI::App& app) -> Action {
      auto o = std::make_shared<CompareVerbOptions>();
      add_run_options(app, o->request);
      add_ranks_option(app, o->request.ranks);
      add_worker_options(app, o->request);
      auto* backends =
          app.add_option("--backends", o->backends,
                         "A,B: compares B with A; stored stands for the results in --inputs, or in a recording, where "
                         "interp,stored is the default")
              ->capture_default_str();
      auto* against =
          app.add_option("--against", o->against,
                         "a column of a table of any number: " + side_help() + ". Given once for each column")
              ->excludes(backends)
              ->expected(1)
              ->take_all();
      app.add_option("--reference", o->reference, "what all columns are compared with")
          ->needs(against)
          ->capture_default_str();
      app.add_flag("--all", o->all, "also rows that agree in all columns")->needs(against);
      app.add_flag("--statistics", o->statistics, "norm, NaNs, infinities, histogram and cosine of each row")
          ->needs(against);
      auto* values = app.add_option("--values", o->values,
                                    "also a row's values in all columns side by side, the elements that differ most "
                                    "first: NODE, output.N or grad.NAME, or GRAPH:ROW as backward:output.0")
                         ->needs(against);
      app.add_option("--elements", o->elements, "how many of them")->needs(values)->capture_default_str();
      const auto tolerance = [](const std::string& text) {
        double value = 0;
        const bool holds = CLI::detail::lexical_cast(text, value) && value >= 0 && std::isfinite(value);
        return holds ? std::string() : "takes a number from 0 up, and got '" + text + "'";
      };
      app.add_option("--rtol", o->rtol)->check(tolerance)->capture_default_str();
      app.add_option("--atol", o->atol)->check(tolerance)->capture_default_str();
      app.add_flag("--per-node", o->per_node,
                   "every node's value, not only results, where the backward is given what the reference's forward "
                   "saved; rounding is told from error by a run in double");
      app.add_flag("--json", o->json, "one JSON document");
      app.footer(
          "Of a folder of `partita record`, all graphs are compared whose values it has, unless --graph names one.");
      return [o, backends] {
        o->sides_given = backends->count() > 0;
        return run(*o);
      };
    }};

}  // namespace partita::cli
