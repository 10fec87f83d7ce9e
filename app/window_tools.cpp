#include "app/window_tools.h"

#include "app/own_picture.h"
#include "app/report_drawing.h"
#include "app/tasks/columns.h"
#include "app/tasks/compilers.h"
#include "app/tasks/graphviz.h"
#include "app/tasks/kernels.h"
#include "app/tasks/locate.h"
#include "app/tasks/minify_question.h"
#include "app/tasks/node_measures.h"
#include "app/tasks/plant.h"
#include "app/tasks/queries.h"
#include "app/tasks/report.h"
#include "app/tasks/run_artefact.h"
#include "codegen/backends.h"
#include "codegen/torch/python_seen.h"
#include "core/aot/graph_io.h"
#include "core/load/file.h"
#include "core/store/store.h"
#include "views/look/format.h"

namespace partita {

using views::text;
using views::WorkbenchTools;

namespace {

/// Values from an IO file; without one from the archive or the dump, else random ones.
Result<std::vector<Value>> inputs_of(Graph& graph, const Artefact& artefact, const QString& path) {
  if (path.isEmpty() && artefact.companion && !artefact.companion->sample_inputs.empty() &&
      artefact.companion->sample_inputs.size() == graph.placeholders().size())
    return copy_values(artefact.companion->sample_inputs);
  TensorFile io;
  if (!path.isEmpty()) {
    TRY(io, read_inputs(path.toStdString()));
  } else if (artefact.recorded) {
    TRY(io, own_inputs(artefact));
  }
  TRY(GraphInputs inputs, gather_inputs(graph, artefact.program.get(), io,
                                        path.isEmpty() ? std::optional<std::uint64_t>(0) : std::nullopt));
  return std::move(inputs.values);
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
                              backend.takes_any_graph(), side});
  };
  for (const Backend& backend : backends()) add(text(backend.name), backend, {}, {});
  tools.suspect = text(default_compiler().name);
  if (!plant.empty()) {
    TRY_DO(parse_plant(plant));
    add(kPlanted, default_compiler(), plant, text(planted_side(plant)));
    tools.suspect = kPlanted;
  }
  tools.inputs = inputs_of;
  const WorkerOptions worker{.program = program};
  tools.compare = [plant, worker](const Artefact& artefact, const CompareRequest& asked, const Progress& progress) {
    return asked_reports(artefact, asked, plant, worker, progress);
  };
  tools.values = [plant, worker](const Artefact& artefact, const CompareRequest& asked, const std::string& graph,
                                 const std::string& row, const Progress& progress) {
    return asked_values(artefact, asked, plant, worker, graph, row, progress);
  };
  tools.measure = measure_nodes;
  tools.kernels = [program](const Artefact& artefact, const KernelRequest& asked, const Progress& progress) {
    return asked_kernels(artefact, asked, program, progress);
  };
  tools.step_bytes = [](const Artefact& artefact, const Graph& graph, const PartitionOptions& cut,
                        const Progress& progress) -> Result<double> {
    TRY(const StepMemory memory, step_memory(artefact, graph, cut, default_compiler(), progress));
    return memory.held_bytes();
  };
  tools.kernel_forms = std::make_shared<const std::vector<KernelForm>>(default_compiler().stages({}).forms);
  tools.locate = asked_locate;
  tools.python = [] {
    const torch::PythonSeen seen = torch::python_seen(config());
    return views::Environment{seen.what.empty() ? QObject::tr("PyTorch not started") : text(seen.what),
                              QObject::tr("PyTorch runs in %1").arg(text(seen.program))};
  };
  tools.questions = queries();
  tools.ask = ask;
  tools.minifier = [plant, program](const Artefact& artefact, const MinifyRequest& asked) {
    return minify_tool(artefact, asked, plant, program);
  };
  tools.compilers = compilers();
  tools.plant = text(plant);
  tools.run = [worker = WorkerOptions{.program = program, .plant = plant}](
                  const Artefact& artefact, const CompilerRequest& request, const Progress& progress) {
    return run_compiler(artefact, request, worker, own_picture, progress);
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
  tools.joint = [](const Graph& graph, const Artefact& artefact) -> Result<AotGraphs> {
    TRY_DO(check_not_cut(graph, artefact));
    return aot(graph, artefact.program.get(), as_run(graph, artefact, {.snapshots = true}));
  };
  tools.graphviz = [](const Graph& graph, const std::string& format, const Progress& progress) {
    return draw_with_graphviz(graph, format, &progress);
  };
  return tools;
}

}  // namespace partita
