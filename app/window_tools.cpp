#include "app/window_tools.h"

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/node_measures.h"
#include "app/own_picture.h"
#include "app/report_drawing.h"
#include "app/tasks/columns.h"
#include "app/tasks/compilers.h"
#include "app/tasks/graphviz.h"
#include "app/tasks/kernels.h"
#include "app/tasks/minify_question.h"
#include "app/tasks/plant.h"
#include "app/tasks/queries.h"
#include "app/tasks/report.h"
#include "app/tasks/run_artefact.h"
#include "codegen/backends.h"
#include "core/aot/graph_io.h"
#include "core/base/output.h"
#include "core/base/scratch.h"
#include "core/compare/per_node.h"
#include "core/ir/print.h"
#include "core/load/file.h"
#include "core/process/run.h"
#include "core/store/code_store.h"
#include "core/store/store.h"
#include "views/look/format.h"

namespace partita {

using views::MinifyTool;
using views::text;
using views::WorkbenchTools;

namespace {

/// The name of the backend with a planted fault.
constexpr const char* kPlanted = "planted";
/// As parse_side() takes it.
std::string planted_side(const std::string& plant) {
  return fmt::format("{}+plant={}", default_compiler().name, plant);
}

/// Values from an IO file; without one from the archive or the dump, else random ones.
Result<std::vector<Value>> inputs_of(Graph& graph, const Artefact& artefact, const QString& path) {
  if (path.isEmpty() && artefact.companion && !artefact.companion->sample_inputs.empty() &&
      artefact.companion->sample_inputs.size() == graph.placeholders().size())
    return copy_values(artefact.companion->sample_inputs);
  TensorFile io;
  if (!path.isEmpty()) {
    TRY(io, read_inputs(path.toStdString()));
  }
  TRY(GraphInputs inputs, gather_inputs(graph, artefact.program.get(), io,
                                        path.isEmpty() ? std::optional<std::uint64_t>(0) : std::nullopt));
  return std::move(inputs.values);
}

/// The question of `partita minify`, put to this program in other processes. `plant`: the fault of the planted backend.
Result<MinifyTool> minify_tool(const views::MinifyRequest& request, const std::string& plant,
                               const std::string& program) {
  const bool planted = request.compiler == kPlanted;
  MinifyCheck check;
  check.check = (request.check + ":" + (planted ? text(default_compiler().name) : request.compiler)).toStdString();
  if (planted) check.plant = plant;
  TRY(MinifyQuestion question, minify_question(check));
  MinifyTool tool;
  tool.oracle = asked_elsewhere(question, check, program);
  tool.jobs = question.jobs;
  tool.functional = question.functional();
  tool.options = question.options;
  tool.words = repro_text(question, {});
  tool.memory = [question](const minify::Start& start) {
    return remembered_tries(std::make_shared<CodeStore>(), minify_session(start, question));
  };
  tool.culprit = [check, program](const minify::MinifyResult& reduced, const Progress& progress) {
    return culprit_elsewhere(check, program, reduced, &progress);
  };
  tool.report = [](const minify::MinifyResult& reduced, const minify::Culprit& culprit) {
    return minify_report(reduced, culprit);
  };
  return tool;
}

/// Runs as `partita run --compiler` does, and keeps what is printed.
Result<views::ProgramResult> run_named(const Artefact& artefact, const views::ProgramRequest& asked,
                                       const WorkerOptions& worker, const Progress& progress) {
  TRY(const Compiler* compiler, find_compiler(asked.compiler.toStdString()));
  RunRequest request;
  request.inputs = asked.inputs.toStdString();
  request.train = asked.train;
  request.worker = worker;
  if (asked.inputs.isEmpty()) request.random_weights = 0;
  TRY(const TensorFile io, read_io(request));
  views::ProgramResult result;
  CompilerSetup setup;
  setup.backend.progress = &progress;
  setup.draw_large = own_picture;
  if (!asked.folder.isEmpty()) setup.folder = asked.folder.toStdString();
  setup.print = [&result](std::string_view printed) { result.printed += printed; };
  setup.backend.on_sizes = [&result](const SizeCompilation& c) { result.printed += partita::text(c); };
  const auto times = setup.backend.times = std::make_shared<StageTimes>();
  const auto begun = std::chrono::steady_clock::now();
  TRY(result.results, run_with_compiler(artefact, io, request, *compiler, setup));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  result.stages = times->all();
  result.against_file =
      compare_results(stored_results(io, asked.train), result.results, tolerance_without_baseline(), false);
  result.against_file.expected_name = "the stored results";
  result.against_file.found_name = compiler->name;
  return result;
}

/// What `partita compare --against` is asked.
struct FlowComparison {
  RunRequest request;
  TensorFile io;
  CompareSide reference;
  std::vector<CompareSide> columns;
};

/// `plant`: the fault of the planted backend.
Result<FlowComparison> flow_comparison(const views::CompareRequest& asked, const std::string& plant,
                                       const std::string& program, const Progress& progress) {
  FlowComparison out;
  out.request.inputs = asked.inputs.toStdString();
  out.request.train = asked.train;
  out.request.worker = WorkerOptions{.program = program};
  out.request.progress = &progress;
  if (asked.inputs.isEmpty()) out.request.random_weights = 0;
  TRY(out.io, read_io(out.request));
  const auto side = [&](const QString& word) -> Result<CompareSide> {
    const bool planted = word == kPlanted;
    const std::string text = planted ? planted_side(plant) : word.toStdString();
    TRY(CompareSide parsed, parse_side(text, out.io, asked.train));
    parsed.name = word.toStdString();
    return parsed;
  };
  TRY(out.reference, side(asked.expected));
  for (const QString& word : asked.columns()) {
    TRY(out.columns.emplace_back(), side(word));
  }
  return out;
}

/// Runs `partita kernels` in a process of its own, since compiled code may crash, and takes over the times.
Status measure_elsewhere(const Artefact& artefact, const views::KernelRequest& asked, const std::string& program,
                         const Progress& progress, std::vector<PlannedGraph>& graphs) {
  TRY(const ScratchFolder folder, ScratchFolder::make("kernels"));
  std::string path = asked.path.toStdString();
  if (asked.id.isEmpty()) {  // it was made in the window
    TRY(const std::unique_ptr<Graph> graph, artefact.graph());
    path = folder.path() + "/graph.py";
    TRY_DO(write_file(path, print(*graph)));
  }
  std::vector<std::string> words = {program, "kernels", path, "--json"};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (!asked.id.isEmpty()) add({"--graph", asked.id.toStdString()});
  if (asked.inputs.isEmpty())
    add({"--random-weights", "0"});
  else
    add({"--inputs", asked.inputs.toStdString()});
  if (asked.train) add({"--train"});
  for (std::string& word : config_arguments(config(), ConfigPart::Given)) words.push_back(std::move(word));
  constexpr double seconds = 600;
  const auto answer = ask_program(std::move(words), {.seconds = seconds}, &progress);
  if (!answer && answer.error().fault == Fault::Cancelled) return answer.error();
  if (!answer) return unsupported("kernels.measure", "the kernels could not be measured: " + answer.error().message);
  const auto document = nlohmann::json::parse(*answer, nullptr, false);
  const Diagnostic other{Fault::Internal, "kernels.measure", "the measured kernels are not those that were planned"};
  if (!document.contains("graphs") || document["graphs"].size() != graphs.size()) return other;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    schedule::KernelReport& report = graphs[g].report;
    const auto& measured = document["graphs"][g];
    if (measured["steps"].size() != report.rows.size()) return other;
    const auto& limit = measured["limit"];
    report.limit = {limit["bytes_per_second"], limit["cached_bytes_per_second"], limit["operations_per_second"],
                    limit["half_operations_per_second"]};
    for (std::size_t s = 0; s < report.rows.size(); ++s) {
      const auto& step = measured["steps"][s];
      schedule::KernelRow& row = report.rows[s];
      if (step["name"] != row.name) return other;
      row.seconds = step["seconds"];
      row.library = step.value("library", std::string());
      row.why_not = step.value("why_no_library", std::string());
    }
  }
  return {};
}

/// Of the compiler for this machine.
Result<std::vector<std::shared_ptr<const views::KernelList>>> kernels_of(const Artefact& artefact,
                                                                         const views::KernelRequest& asked,
                                                                         const std::string& program,
                                                                         const Progress& progress) {
  RunRequest request;
  request.train = asked.train;
  request.progress = &progress;
  const Backend& backend = default_compiler();
  TRY(std::vector<PlannedGraph> graphs, plan_kernels(artefact, nullptr, request, backend));
  if (asked.measure) TRY_DO(measure_elsewhere(artefact, asked, program, progress, graphs));
  const auto forms = std::make_shared<const std::vector<KernelForm>>(backend.stages({}).forms);
  std::vector<std::shared_ptr<const views::KernelList>> lists;
  for (PlannedGraph& each : graphs) {
    const auto graph = std::make_shared<const PlannedGraph>(std::move(each));
    views::KernelList list;
    list.name = text(graph->report.graph);
    list.report = graph->report;
    list.graph = graph->planned.first;
    for (const KernelForm& form : *forms) list.forms << text(form.title);
    list.code = [graph, forms](int form, std::size_t step) {
      return (*forms)[static_cast<std::size_t>(form)].text(graph->planned.second, step);
    };
    lists.push_back(std::make_shared<const views::KernelList>(std::move(list)));
  }
  return lists;
}

Result<views::QuestionAnswer> answer_question(const QString& path, const Artefact& artefact, const QString& inputs,
                                              const QStringList& words, const Progress& progress) {
  const std::string question = words.value(0).toStdString();
  std::vector<std::string> arguments;
  for (const QString& word : words.mid(1)) arguments.push_back(word.toStdString());
  Loaded loaded;
  const auto query = std::ranges::find(queries(), question, &Query::name);
  if (query != queries().end() && !query->needs_graph) {
    TRY(loaded, load(path.toStdString(), &progress));
  }
  QuerySubject subject{loaded, artefact.is_graph() ? &artefact : nullptr, {}};
  subject.request.inputs = inputs.toStdString();
  if (inputs.isEmpty()) subject.request.random_weights = 0;
  subject.request.progress = &progress;
  TRY(const QueryAnswer found, answer(subject, question, arguments));
  views::QuestionAnswer out{text(found.text), {}};
  for (const std::string& column : found.columns) out.columns << text(column);
  for (const QueryRow& row : found.rows) {
    views::Row& shown = out.rows.emplace_back(text(row.node), std::vector<views::Cell>());
    for (const std::string& cell : row.cells) shown.cells.emplace_back(text(cell));
    if (row.cells.empty()) shown.cells.emplace_back(text(row.text));
    if (!found.columns.empty()) {
      out.artefacts << text(row.artefact);
      out.places.emplace_back(text(row.at.file), row.at.line);
    }
  }
  return out;
}

}  // namespace

Result<WorkbenchTools> program_tools(const std::string& plant, const std::string& program) {
  WorkbenchTools tools;
  // Compiled code runs in another process: its crash must not take the window along, and its hang must end on request.
  const auto add = [&](const QString& name, const Backend& backend, const std::string& fault, const QString& side) {
    const WorkerOptions worker{.program = program, .plant = fault};
    tools.backends.push_back({name,
                              [&backend, worker](const Progress& progress) {
                                return backend.make({.progress = &progress, .worker = worker});
                              },
                              backend.takes_any_graph, side});
  };
  for (const Backend& backend : backends()) add(text(backend.name), backend, {}, {});
  tools.doubted = text(default_compiler().name);
  if (!plant.empty()) {
    TRY_DO(parse_plant(plant));
    add(kPlanted, default_compiler(), plant, text(planted_side(plant)));
    tools.doubted = kPlanted;
  }
  tools.inputs = inputs_of;
  tools.compare = [plant, program](const Artefact& artefact, const views::CompareRequest& request,
                                   const Progress& progress) -> Result<std::vector<Report>> {
    TRY(const FlowComparison flow, flow_comparison(request, plant, program, progress));
    return compare_sides(artefact, flow.io, flow.request, flow.reference, flow.columns,
                         {request.tolerance, request.per_node}, std::make_shared<CodeStore>());
  };
  tools.values = [plant, program](const Artefact& artefact, const views::CompareRequest& request,
                                  const views::ComparedRow& row,
                                  const Progress& progress) -> Result<std::vector<SideValue>> {
    TRY(const FlowComparison flow, flow_comparison(request, plant, program, progress));
    return values_of_sides(artefact, flow.io, flow.request, flow.reference, flow.columns, row.graph, row.name,
                           std::make_shared<CodeStore>());
  };
  tools.measure = measure_nodes;
  tools.kernels = [program](const Artefact& artefact, const views::KernelRequest& asked, const Progress& progress) {
    return kernels_of(artefact, asked, program, progress);
  };
  for (const Query& q : queries()) {
    QStringList arguments;
    for (const std::string_view a : q.arguments) arguments << text(a);
    tools.questions.push_back({text(q.name), arguments, text(q.help)});
  }
  tools.ask = answer_question;
  tools.minifier = [plant, program](const views::MinifyRequest& request) {
    return minify_tool(request, plant, program);
  };
  for (const Compiler& c : compilers()) tools.compilers.push_back({text(c.name), text(c.description), c.writes_files});
  tools.plant = text(plant);
  tools.run = [worker = WorkerOptions{.program = program, .plant = plant}](
                  const Artefact& artefact, const views::ProgramRequest& request, const Progress& progress) {
    return run_named(artefact, request, worker, progress);
  };
  tools.report = [program](const QString& path, const QString& id, const QString& inputs, bool pdf,
                           const Progress& progress) -> Result<std::string> {
    ReportRequest request;
    request.run.path = path.toStdString();
    request.run.graph = id.toStdString();
    request.run.inputs = inputs.toStdString();
    request.run.worker = WorkerOptions{.program = program};
    request.run.progress = &progress;
    request.picture = report_graph;
    TRY(const ReportContent content, report_content(request));
    return pdf ? report_pdf(content) : Result<std::string>(report_page(content));
  };
  tools.store_file = StoreFile::default_file();
  tools.joint = [](const Graph& graph, const ExportedProgram* program) {
    return aot(graph, program, as_run(graph, {.snapshots = true}));
  };
  tools.graphviz = [](const Graph& graph, const std::string& format, const Progress& progress) {
    return draw_with_graphviz(graph, format, &progress);
  };
  return tools;
}

}  // namespace partita
