// Comparisons of several sides. By nodes: the reference runs the program, and each of its graphs is compared before it
// runs, under the file's names. By results: each side runs the program, or has its results already.
#include "app/tasks/columns.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "app/tasks/file_names.h"
#include "app/tasks/plant.h"
#include "app/tasks/visited_run.h"
#include "codegen/torch/column.h"
#include "core/aot/run_compiled.h"
#include "core/base/assign.h"
#include "core/base/mapped.h"
#include "core/base/whereabouts.h"
#include "core/compare/per_node.h"
#include "core/interp/widen.h"
#include "core/store/code_store.h"
#include "core/store/store.h"

namespace partita {
namespace {

constexpr std::string_view results_graph = "results";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::vector<Report>> read_past(std::string_view ids) {
  const std::string file = StoreFile::default_file();
  if (file.empty()) return input_error("compare.past", "there is no store that holds comparisons of the past");
  TRY(StoreFile store, StoreFile::open(file));
  std::vector<Report> reports;
  for (const std::string& text : split(ids, '+')) {
    std::int64_t id = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
    if (text.empty() || parsed.ptr != text.data() + text.size())
      return input_error("cli.usage", fmt::format("past:{} takes numbers of checks; partita store list shows them as "
                                                  "checks/NUMBER",
                                                  ids));
    TRY(const std::string json, store.check_report(id));
    TRY(Report report, Report::from_json(json));
    if (std::ranges::none_of(report.rows, [](const Difference& d) { return d.found_statistics.has_value(); }))
      return input_error("compare.past",
                         fmt::format("checks/{} keeps no statistics; compare --against keeps them", id));
    reports.push_back(std::move(report));
  }
  return reports;
}

RunRequest request_of(const RunRequest& request, const CompareSide& side) {
  RunRequest own = request;
  if (own.worker && !side.plant.empty()) {
    own.worker->plant = side.plant;
    own.worker->on_graph = [watch = side.watch](const Graph& graph) { watch->see(graph); };
  }
  return own;
}

/// Does the side's configuration decide which graphs are made?
bool makes_other_graphs(const CompareSide& side) {
  const auto graphs = [](const Config& c) {
    return std::tie(c.partitioner, c.memory_budget, c.decompositions, c.functionalize_rng, c.freezing, c.device);
  };
  return graphs(side.config) != graphs(config());
}

bool has_nodes(const CompareSide& side) {
  if (side.kind == CompareSide::Kind::Past)
    return std::ranges::any_of(side.past, [](const Report& r) { return r.graph != results_graph; });
  return side.kind == CompareSide::Kind::Backend && !makes_other_graphs(side);
}

const Report* past_of(const CompareSide& side, std::string_view graph) {
  const auto found = std::ranges::find(side.past, graph, &Report::graph);
  return found == side.past.end() ? nullptr : &*found;
}

/// The interpreter in double, whose results are compared in the dtypes of the graph.
bool is_wide(const CompareSide& side) {
  const auto wide = find_backend("f64");
  return wide && side.backend == *wide;
}

Result<Tensor> rounded(const Tensor& wide, DType dtype) {
  if (wide.dtype == dtype || wide.dtype != widened(dtype)) return wide;
  TRY(Tensor narrow, Tensor::empty_strided(dtype, wide.sizes, wide.strides));
  narrow.copy_from(wide);
  return narrow;
}

/// The results of a run in double, in the dtypes that the graph's outputs have.
Result<std::vector<Value>> rounded(const Graph& graph, std::vector<Value> values) {
  const std::vector<Arg> outputs = graph.outputs();
  for (std::size_t i = 0; i < values.size() && i < outputs.size(); ++i) {
    const TensorMeta* meta = outputs[i].node() ? outputs[i].node()->meta.tensor() : nullptr;
    const auto* wide = values[i].get<Tensor>();
    if (!meta || !wide) continue;
    TRY(Tensor narrow, rounded(*wide, meta->dtype));
    values[i] = std::move(narrow);
  }
  return values;
}

/// Of runs with the same random numbers.
Runner runner_of(const CompareSide& side, const RunRequest& request, const std::shared_ptr<CodeStore>& store) {
  const auto generator = std::make_shared<Generator>();
  const auto communicator = communicator_of(request);
  if (!communicator)
    return [error = communicator.error()](const Graph&, std::vector<Value>) -> Result<std::vector<Value>> {
      return error;
    };
  const CompileFn compile = side.backend->make({.config = side.config,
                                                .progress = request.progress,
                                                .generator = generator,
                                                .communicator = *communicator,
                                                .store = store,
                                                .worker = request_of(request, side).worker,
                                                .shift = request.shift,
                                                .inference = !request.train});
  return [&backend = *side.backend, config = side.config, start = new_generator(request), compile, generator](
             const Graph& graph, std::vector<Value> inputs) {
    const ConfigScope scope(config);
    *generator = *start;
    return run_graph(graph, std::move(inputs), compile, backend.takes_any_graph());
  };
}

/// The same; a run in double gives the dtypes of the graph. Null for what is no backend.
Runner column_of(const CompareSide& side, const RunRequest& request, const std::shared_ptr<CodeStore>& store) {
  if (!side.backend) return nullptr;
  const Runner run = runner_of(side, request, store);
  if (!is_wide(side)) return run;
  return [run](const Graph& graph, std::vector<Value> inputs) -> Result<std::vector<Value>> {
    TRY(std::vector<Value> values, run(graph, std::move(inputs)));
    return rounded(graph, std::move(values));
  };
}

bool same_bits(const Value& a, const Value& b) {
  const auto first = statistics_of(a), second = statistics_of(b);
  return !first || !second || first->hash == second->hash;
}

/// PyTorch's columns are run twice, as atomic additions and the like make them give other bits. What a run fails with,
/// the comparison tells.
bool runs_twice(const CompareSide& side) {
  return side.backend && torch::is_column(side.backend->name);
}

/// The outputs in which two runs of a side gave other bits. Error: Fault::Cancelled.
Result<std::vector<std::string>> unsteady_outputs(const CompareSide& side, const Runner& run, const Graph& graph,
                                                  const std::vector<Value>& inputs) {
  std::vector<std::string> names;
  if (!runs_twice(side)) return names;
  std::vector<std::vector<Value>> found;
  for (int i = 0; i < 2; ++i) {
    TRY(std::vector<Value> own, copy_values(inputs));
    auto values = run(graph, std::move(own));
    if (!values && values.error().fault == Fault::Cancelled) return values.error();
    if (!values) return names;
    found.push_back(*std::move(values));
  }
  const std::vector<Arg> outputs = graph.outputs();
  for (std::size_t i = 0; i < std::min(found[0].size(), found[1].size()); ++i)
    if (!same_bits(found[0][i], found[1][i]))
      names.push_back(outputs[i].node() ? outputs[i].node()->name() : fmt::format("output {}", i));
  return names;
}

/// A graph of a run, "forward" or "backward", and its inputs.
using GraphVisitor = std::function<Status(const char* name, const Graph& graph, const std::vector<Value>& inputs)>;

/// Runs the program on the reference, so that the backward gets its numbers, and shows each graph before that. False
/// when the reference died.
Result<bool> visit_graphs(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                          const CompareSide& reference, const Runner& run, const GraphVisitor& visit) {
  bool died = false;
  TRY(const std::unique_ptr<Graph> file, artefact.graph());
  FileNames names(*file);
  const auto visited = [&](const char* name, bool backward) -> CompileFn {
    return [&, name, backward](const Graph& made) -> Result<CompiledFn> {
      const std::shared_ptr<const Graph> graph = backward ? names.backward(made) : names.forward(made);
      return CompiledFn([&, name, graph](std::vector<Value> inputs) -> Result<std::vector<Value>> {
        TRY_DO(visit(name, *graph, inputs));
        auto values = run(*graph, std::move(inputs));
        died = !values && is_death(values.error());
        return values;
      });
    };
  };
  RunOptions options = run_options(request, nullptr);
  adapt_options(*reference.backend, options.aot);
  options.forward = visited("forward", false);
  options.backward = visited("backward", true);
  const auto done = run_visited(artefact, io, request, options);
  if (!done && !died) return done.error();
  return !died;
}

/// Compares the nodes of graphs on several sides.
class NodeComparison {
 public:
  NodeComparison(const RunRequest& request, const CompareSide& reference, std::span<const CompareSide* const> sides,
                 const Tolerance& tolerance, const std::shared_ptr<CodeStore>& store)
      : sides_(sides), expected_{reference.name, column_of(reference, request, store)} {
    for (const CompareSide* side : sides) runs_.push_back(column_of(*side, request, store));
    how_ = {.tolerance = tolerance, .progress = request.progress, .own = true, .statistics = true};
    const Result<const Backend*> wide = find_backend("f64");
    CHECK(wide, "there is an interpreter in double");
    CompareSide exact;
    exact.backend = *wide;
    how_.baseline = runner_of(exact, request, store);
    how_.shifted = [request, exact, store](unsigned seed) {
      RunRequest own = request;
      own.shift = seed;
      return runner_of(exact, own, store);
    };
  }

  const Runner& reference() const { return expected_.run; }

  /// A report for each side that has one of `name`.
  Result<std::vector<Report>> operator()(std::string_view name, const Graph& graph,
                                         const std::vector<Value>& inputs) const {
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> unsteady;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      const Report* past = past_of(*sides_[i], name);
      if (!runs_[i] && !past) continue;
      columns.push_back({sides_[i]->name, runs_[i], past});
      TRY(unsteady.emplace_back(), unsteady_outputs(*sides_[i], runs_[i], graph, inputs));
    }
    TRY(std::vector<Report> made, compare_columns(graph, inputs, expected_, columns, how_));
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].graph = name;
      made[i].unsteady = std::move(unsteady[i]);
    }
    return made;
  }

 private:
  std::span<const CompareSide* const> sides_;
  Column expected_;
  std::vector<Runner> runs_;
  PerNodeOptions how_;
};

Result<std::vector<Report>> compare_nodes_of(const Artefact& artefact, const TensorFile& io, const RunRequest& asked,
                                             const CompareSide& reference, std::span<const CompareSide* const> sides,
                                             const Tolerance& tolerance, const std::shared_ptr<CodeStore>& store) {
  TRY(const RunRequest request, with_recorded_generator(asked, io));
  const NodeComparison compare(request, reference, sides, tolerance, store);
  std::vector<Report> reports;
  TRY_DO(visit_graphs(artefact, io, request, reference, compare.reference(),
                      [&](const char* name, const Graph& graph, const std::vector<Value>& inputs) -> Status {
                        TRY(std::vector<Report> made, compare(name, graph, inputs));
                        std::ranges::move(made, std::back_inserter(reports));
                        return {};
                      }));  // a death of the reference is in the reports
  return reports;
}

/// What a side's whole run of the program gives.
Result<TensorFile> results_of(const CompareSide& side, const Artefact& artefact, const TensorFile& io,
                              const RunRequest& request, const std::shared_ptr<CodeStore>& store) {
  if (side.kind == CompareSide::Kind::Results) return side.results;
  const ConfigScope scope(side.config);
  return run_artefact(artefact, io, request_of(request, side), *side.backend, store);
}

Result<std::vector<Report>> compare_results_of(const Artefact& artefact, const TensorFile& io,
                                               const RunRequest& request, const CompareSide& reference,
                                               std::span<const CompareSide* const> sides, const Tolerance& tolerance,
                                               const std::shared_ptr<CodeStore>& store) {
  // Rounds the results of a run in double as those beside it are.
  const auto round_like = [](TensorFile& wide, const TensorFile& like) -> Status {
    for (auto& [key, tensor] : wide.tensors)
      if (const Tensor* other = like.find(key)) TRY_DO(assign(tensor, rounded(tensor, other->dtype)));
    return {};
  };
  std::vector<Report> reports;
  ExactResults exact(artefact, io, request);
  auto expected = results_of(reference, artefact, io, request, store);
  if (!expected && !is_death(expected.error())) return expected.error();
  for (const CompareSide* side : sides) {
    Report& report = reports.emplace_back();
    report.expected_name = reference.name;
    report.found_name = side->name;
    report.graph = results_graph;
    if (!expected) {
      report.rows.push_back(row_of_death(expected.error()));
      continue;
    }
    if (side->kind == CompareSide::Kind::Past) {
      const Report* past = past_of(*side, results_graph);
      for (const auto& [key, tensor] : expected->tensors) {
        const auto statistics = statistics_of(Value(tensor));
        const auto row = past ? std::ranges::find(past->rows, key, &Difference::name) : decltype(past->rows.begin())();
        if (past && row != past->rows.end() && row->found_statistics && statistics)
          report.rows.push_back(compare_statistics(key, *statistics, *row->found_statistics, tolerance));
      }
      continue;
    }
    const auto begun = std::chrono::steady_clock::now();
    auto found = results_of(*side, artefact, io, request, store);
    if (side->backend) report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (!found && !is_death(found.error())) return found.error();
    if (!found) {
      report.rows.push_back(row_of_death(found.error()));
      continue;
    }
    if (runs_twice(*side)) {
      auto again = results_of(*side, artefact, io, request, store);
      if (!again && again.error().fault == Fault::Cancelled) return again.error();
      for (const auto& [key, tensor] : found->tensors)
        if (const Tensor* other = again ? again->find(key) : nullptr; other && !same_bits(Value(tensor), Value(*other)))
          report.unsteady.push_back(key);
    }
    if (is_wide(*side)) TRY_DO(round_like(*found, *expected));
    if (is_wide(reference)) TRY_DO(round_like(*expected, *found));
    // Files have no strides.
    Report compared = compare_results(*expected, *found, tolerance, reference.backend && side->backend);
    report.rows = std::move(compared.rows);
    report.left_out = std::move(compared.left_out);
    TRY_DO(side->name == "stored" ? exact.judge_stored(report.rows, *expected, *found, tolerance)
                                  : exact.judge(report.rows, *expected, *found, tolerance));
    for (Difference& d : report.rows) {
      if (const Tensor* t = expected->find(d.name)) d.expected_statistics = statistics_of(Value(*t));
      if (const Tensor* t = found->find(d.name)) d.found_statistics = statistics_of(Value(*t));
    }
  }
  return reports;
}

/// What is left of a column of the past.
SideValue kept_value(const std::string& name, const Report& past, const std::string& row) {
  SideValue out{name, {}, {}, "a comparison of the past keeps statistics, not values"};
  const auto found = std::ranges::find(past.rows, row, &Difference::name);
  if (found != past.rows.end()) out.statistics = found->found_statistics;
  return out;
}

/// The values of a node, or of a result of a graph, in the first graph that has it.
Result<std::vector<SideValue>> node_values(const Artefact& artefact, const TensorFile& io, const RunRequest& asked,
                                           std::span<const CompareSide* const> sides, const std::string& wanted,
                                           const std::string& row, const std::shared_ptr<CodeStore>& store) {
  TRY(const RunRequest request, with_recorded_generator(asked, io));
  const auto runs = mapped(sides, [&](const CompareSide* side) { return column_of(*side, request, store); });
  std::vector<SideValue> out;
  TRY_DO(visit_graphs(artefact, io, request, *sides[0], runs[0],
                      [&](const char* name, const Graph& graph, const std::vector<Value>& inputs) -> Status {
                        if (!out.empty() || (!wanted.empty() && wanted != name)) return {};
                        for (std::size_t i = 0; i < sides.size(); ++i) {
                          const CompareSide& side = *sides[i];
                          TRY_DO(step(request.progress, -1, side.name));
                          const Report* past = past_of(side, name);
                          if (!runs[i] || !has_nodes(side)) {
                            out.push_back(past ? kept_value(side.name, *past, row)
                                               : SideValue{side.name, {}, {}, "has results of the program only"});
                            continue;
                          }
                          auto value = value_of(graph, inputs, runs[i], row);
                          if (!value && value.error().fault == Fault::Cancelled) return value.error();
                          if (!value && value.error().code == "compare.name" && i == 0) return {};  // another graph
                          out.push_back(side_value(side.name, std::move(value)));
                        }
                        return {};
                      }));
  return out;
}

/// What compare_sides() takes.
struct AskedSides {
  RunRequest request;
  TensorFile io;
  CompareSide reference;
  std::vector<CompareSide> columns;
};

Result<AskedSides> asked_sides(const Artefact& artefact, const CompareRequest& asked, const std::string& plant,
                               const WorkerOptions& worker, const Progress& progress) {
  AskedSides out;
  out.request = window_request(asked.inputs, asked.train, progress);
  out.request.worker = worker;
  TRY(out.io, read_io(out.request, artefact));
  const auto side = [&](const std::string& word) -> Result<CompareSide> {
    const std::string text = word == kPlanted ? planted_side(plant) : with_recorded_options(word, artefact);
    TRY(CompareSide parsed, parse_side(text, out.io, asked.train));
    parsed.name = word;
    return parsed;
  };
  TRY(out.reference, side(asked.expected));
  for (const std::string& word : asked.found) TRY_DO(assign(out.columns.emplace_back(), side(word)));
  return out;
}

}  // namespace

std::string side_help() {
  return "a backend with rows of the configuration and a fault of its own, as cpu+fuse=false+plant=OP:wrong; stored: "
         "the results in --inputs; file:OUT: those of a run; past:NUMBER: the found side of an earlier comparison, by "
         "its "
         "statistics (checks/NUMBER of `partita store list`; past:1+2 for two graphs)";
}

Result<CompareSide> parse_side(const std::string& text, const TensorFile& io, bool train) {
  CompareSide side;
  side.name = text;
  const auto after = [&](std::string_view prefix) { return text.substr(prefix.size()); };
  if (text == "stored" || text.starts_with("file:")) {
    side.kind = CompareSide::Kind::Results;
    side.results = stored_results(io, train);
    if (text != "stored") {
      TRY(const TensorFile out, read_safetensors(after("file:")));
      side.results = stored_results(out, train);
    }
    TRY_DO(check_stored(side.results, text == "stored" ? "the --inputs file" : after("file:")));
    return side;
  }
  if (text.starts_with("past:")) {
    side.kind = CompareSide::Kind::Past;
    TRY(side.past, read_past(after("past:")));
    return side;
  }
  if (torch::is_column(text)) {  // what follows a + is inductor's
    TRY(side.backend, find_backend(text));
    return side;
  }
  const std::vector<std::string> parts = split(text, '+');
  TRY(side.backend, find_backend(parts[0]));
  for (const std::string& part : std::span(parts).subspan(1)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      return input_error("cli.usage", fmt::format("{}: {} is not of the form NAME=VALUE", text, part));
    const std::string name = part.substr(0, equals), value = part.substr(equals + 1);
    if (name == "plant") {
      TRY_DO(parse_plant(value));
      side.plant = value;
      side.watch = std::make_shared<PlantWatch>(value);
    } else {
      TRY_DO(set_value(side.config, name, value));
    }
  }
  const ConfigScope scope(side.config);
  TRY_DO(check_pass_names(configured_disabled()));
  return side;
}

Result<std::vector<Report>> compare_graph(const Graph& graph, const std::vector<Value>& inputs,
                                          const RunRequest& request, std::span<const CompareSide> sides,
                                          const Tolerance& tolerance) {
  std::vector<const CompareSide*> columns;
  for (const CompareSide& side : sides) {
    if (!side.backend)
      return input_error("cli.usage", fmt::format("{} has results, not every node's value; name backends", side.name));
    columns.push_back(&side);
  }
  const std::span<const CompareSide* const> found(columns.begin() + 1, columns.end());
  return NodeComparison(request, sides.front(), found, tolerance, std::make_shared<CodeStore>())({}, graph, inputs);
}

Result<std::vector<Report>> compare_sides(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                          const CompareSide& reference, std::span<const CompareSide> columns,
                                          const CompareOptions& options, const std::shared_ptr<CodeStore>& store) {
  if (reference.kind == CompareSide::Kind::Past)
    return input_error("cli.usage",
                       "a comparison of the past keeps statistics, not values, so it cannot be the reference");
  if (options.per_node && !has_nodes(reference))
    return input_error("cli.usage", fmt::format("--per-node needs the value of every node, which {} does not give; "
                                                "choose another reference",
                                                reference.name));
  std::vector<const CompareSide*> by_node, by_results;
  for (const CompareSide& side : columns) (options.per_node && has_nodes(side) ? by_node : by_results).push_back(&side);
  std::vector<Report> reports;
  if (!by_node.empty())
    TRY_DO(assign(reports, compare_nodes_of(artefact, io, request, reference, by_node, options.tolerance, store)));
  if (!by_results.empty()) {
    TRY(std::vector<Report> more,
        compare_results_of(artefact, io, request, reference, by_results, options.tolerance, store));
    std::ranges::move(more, std::back_inserter(reports));
  }
  for (const CompareSide& side : columns)
    if (side.kind == CompareSide::Kind::Past &&
        std::ranges::none_of(reports, [&](const Report& r) { return r.found_name == side.name && !r.rows.empty(); }))
      return input_error("compare.past", fmt::format("{} has nothing of this graph", side.name));
  return reports;
}

Result<std::vector<SideValue>> values_of_sides(const Artefact& artefact, const TensorFile& io,
                                               const RunRequest& request, const CompareSide& reference,
                                               std::span<const CompareSide> columns, const std::string& graph,
                                               const std::string& row, const std::shared_ptr<CodeStore>& store) {
  std::vector<const CompareSide*> sides{&reference};
  for (const CompareSide& side : columns) sides.push_back(&side);
  if (graph != results_graph && reference.kind == CompareSide::Kind::Backend) {
    TRY(std::vector<SideValue> values, node_values(artefact, io, request, sides, graph, row, store));
    if (!values.empty()) return values;
  }
  std::vector<SideValue> out;
  bool known = false;
  if (graph.empty() || graph == results_graph) {
    for (const CompareSide* side : sides) {
      if (side->kind == CompareSide::Kind::Past) {
        const Report* past = past_of(*side, results_graph);
        out.push_back(kept_value(side->name, past ? *past : Report(), row));
        continue;
      }
      auto results = results_of(*side, artefact, io, request, store);
      if (!results && !is_death(results.error())) return results.error();
      const Tensor* found = results ? results->find(row) : nullptr;
      known |= found != nullptr;
      out.push_back(!results ? side_value(side->name, results.error())
                    : found  ? side_value(side->name, Value(*found))
                             : SideValue{side->name, {}, {}, "has no such result"});
    }
  }
  if (known) return out;
  return input_error("compare.name",
                     fmt::format("{}: nothing of that name is compared{}; rows are nodes with a tensor, output.N and "
                                 "grad.NAME",
                                 row, graph.empty() ? "" : " in the " + graph));
}

Result<std::vector<Report>> asked_reports(const Artefact& artefact, const CompareRequest& asked,
                                          const std::string& plant, const WorkerOptions& worker,
                                          const Progress& progress) {
  TRY(const AskedSides sides, asked_sides(artefact, asked, plant, worker, progress));
  return compare_sides(artefact, sides.io, sides.request, sides.reference, sides.columns,
                       {asked.tolerance, asked.per_node}, std::make_shared<CodeStore>());
}

Result<std::vector<SideValue>> asked_values(const Artefact& artefact, const CompareRequest& asked,
                                            const std::string& plant, const WorkerOptions& worker,
                                            const std::string& graph, const std::string& row,
                                            const Progress& progress) {
  TRY(const AskedSides sides, asked_sides(artefact, asked, plant, worker, progress));
  return values_of_sides(artefact, sides.io, sides.request, sides.reference, sides.columns, graph, row,
                         std::make_shared<CodeStore>());
}

}  // namespace partita
