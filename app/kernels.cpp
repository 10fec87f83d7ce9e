#include "app/kernels.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "codegen/compiled_graph.h"
#include "codegen/cpu/host.h"
#include "core/aot/aot.h"
#include "core/base/hash.h"
#include "core/base/scratch.h"
#include "core/interp/random_values.h"
#include "core/interp/symbols.h"
#include "core/schedule/specialise.h"
#include "core/store/code_store.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;
using schedule::KernelReport;
using schedule::KernelRow;

constexpr double measured_seconds = 0.5;  // of each graph

/// The graph for these values of its symbols, else for their hints; the graph itself when it has none.
Result<std::unique_ptr<Graph>> concrete(const Graph& graph, const std::map<std::string, std::int64_t>& sizes) {
  for (const Node* node : graph)
    if (has_symbols(node->meta)) return schedule::specialise(graph, sizes);
  return graph.clone();
}

Result<PlannedGraph> planned(const Graph& graph, const StagedCompiler& compiler, const std::string& name,
                             const std::map<std::string, std::int64_t>& sizes) {
  TRY(const std::unique_ptr<Graph> numbers, concrete(graph, sizes));
  PlannedGraph out;
  TRY(out.planned, compiler.plan(*numbers));
  out.report = schedule::kernel_report(out.planned.second, name);
  return out;
}

/// Plans and measures each graph that it is asked to compile, when it runs.
CompileFn measuring(const StagedCompiler& compiler, const schedule::MachineLimit& limit, const std::string& name,
                    const Progress* progress, std::vector<PlannedGraph>& out) {
  return [&, limit, name, progress](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn(
        [&, limit, name, progress, graph = &graph](std::vector<Value> inputs) -> Result<std::vector<Value>> {
          TRY_DO(step(progress, -1, "kernels of the " + name));
          TRY(const SymbolMap sizes, bind_symbols(*graph, inputs));
          TRY(PlannedGraph made, planned(*graph, compiler, name, sizes.all()));
          TRY(StagedCompiler::Measured measured, compiler.measure(made.planned, inputs, measured_seconds));
          for (std::size_t s = 0; s < made.report.rows.size(); ++s) {
            KernelRow& row = made.report.rows[s];
            row.seconds = measured.steps[s].seconds;
            row.library = measured.steps[s].library;
            row.why_not = measured.steps[s].why_not;
            if (row.kind == KernelRow::Kind::Library && row.library == "interpreter")
              row.kind = KernelRow::Kind::Evaluation;
          }
          made.report.limit = limit;
          out.push_back(std::move(made));
          return std::move(measured.results);
        });
  };
}

/// `amount` a second, the best of several rounds: other programs only take away.
Result<double> probe(const StagedCompiler& compiler, int rounds, const char* text, double amount) {
  Artefact artefact = Artefact::of_string(text);
  artefact.kind = ArtefactKind::Graph;
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  TRY(const StagedCompiler::Planned planned, compiler.plan(*graph));
  TRY(const std::vector<Value> inputs, random_inputs(*graph, 0));
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    TRY(const StagedCompiler::Measured measured, compiler.measure(planned, inputs, 0.01));
    double seconds = 0;
    for (const StepMeasure& step : measured.steps) seconds += step.seconds;
    best = std::max(best, amount / seconds);
  }
  return best;
}

Json node_json(const Graph& graph, const std::string& name) {
  Json out = {{"name", name}};
  const Node* node = graph.find(name);
  if (!node || !node->origin || node->origin->of_user().file.empty()) return out;
  const StackFrame& frame = node->origin->of_user();
  out["file"] = frame.file;
  out["line"] = frame.line;
  out["code"] = frame.code;
  return out;
}

}  // namespace

Result<std::vector<PlannedGraph>> plan_kernels(const Artefact& artefact, const TensorFile* io,
                                               const RunRequest& request, const Backend& backend) {
  if (!backend.stages)
    return unsupported("backend.stages", fmt::format("{} has no kernels; choose a compiler", backend.name));
  const StagedCompiler compiler = backend.stages({.progress = request.progress, .fixed_parameters = !request.train});
  std::vector<PlannedGraph> out;
  if (!io) {
    TRY(const std::unique_ptr<Graph> graph, artefact.graph());
    TRY(const AotGraphs made, aot(*graph, artefact.program.get(), as_run(*graph, {.train = request.train})));
    TRY_DO(step(request.progress, -1, "kernels"));
    TRY(PlannedGraph forward, planned(*made.partition.forward, compiler, "forward", {}));
    out.push_back(std::move(forward));
    if (made.partition.backward) {
      TRY(PlannedGraph backward, planned(*made.partition.backward, compiler, "backward", {}));
      out.push_back(std::move(backward));
    }
    return out;
  }
  if (!compiler.measure)
    return unsupported("backend.measure", fmt::format("{} cannot time its steps; leave out --inputs", backend.name));
  TRY(const schedule::MachineLimit limit, machine_limit(backend));
  RunOptions options = run_options(request, measuring(compiler, limit, "forward", request.progress, out));
  options.backward = measuring(compiler, limit, "backward", request.progress, out);
  TRY_DO(run_program(artefact, *io, options));
  return out;
}

Result<schedule::MachineLimit> machine_limit(const Backend& backend) {
  const codegen::Processor& host = codegen::host_processor();
  const std::string key = content_hash(
      fmt::format("machine limit\n{}\n{} threads\n{}\n{}\n", backend.name, config().threads, host.name, host.features));
  CodeStore store;
  schedule::MachineLimit best;
  const auto parse = [](std::string_view text, double& to) {
    return std::from_chars(text.data(), text.data() + text.size(), to).ec == std::errc();
  };
  if (const auto kept = store.find(key))
    if (const std::size_t space = kept->find(' ');
        space == std::string::npos || !parse(std::string_view(*kept).substr(0, space), best.bytes_per_second) ||
        !parse(std::string_view(*kept).substr(space + 1), best.operations_per_second))
      best = {};
  // A busy machine shows less than it can: each use looks whether there is more. The calls are short, so that some are
  // not interrupted.
  const int rounds = best.bytes_per_second > 0 ? 2 : 6;
  const StagedCompiler compiler = backend.stages({});
  TRY(const double bytes, probe(compiler, rounds, R"(class Copy(torch.nn.Module):
    def forward(self, a: "f32[1048576]"):
        neg: "f32[1048576]" = torch.ops.aten.neg.default(a)
        return (neg,)
)",
                                2.0 * 4 * 1048576));
  TRY(const double operations, probe(compiler, rounds, R"(class Product(torch.nn.Module):
    def forward(self, a: "f32[256, 256]", b: "f32[256, 256]"):
        mm: "f32[256, 256]" = torch.ops.aten.mm.default(a, b)
        return (mm,)
)",
                                     2.0 * 256 * 256 * 256));
  const bool better = bytes > best.bytes_per_second || operations > best.operations_per_second;
  best = {std::max(bytes, best.bytes_per_second), std::max(operations, best.operations_per_second)};
  if (better)
    store.put(key, fmt::format("{} {}", best.bytes_per_second, best.operations_per_second), "machine limit", "limit");
  return best;
}

Json kernels_json(const PlannedGraph& graph) {
  const KernelReport& report = graph.report;
  Json steps = Json::array(), buffers = Json::array();
  for (std::size_t s = 0; s < report.rows.size(); ++s) {
    const KernelRow& row = report.rows[s];
    Json nodes = Json::array(), apart = Json::array();
    for (const std::string& origin : row.origins) nodes.push_back(node_json(*graph.planned.first, origin));
    for (const KernelRow::Neighbour& n : row.apart)
      apart.push_back({{"step", n.step}, {"reads", n.reads}, {"why", n.why}});
    Json out = {{"step", s},
                {"kind", name(row.kind)},
                {"name", row.name},
                {"nodes", nodes},
                {"read_bytes", row.read},
                {"written_bytes", row.written},
                {"operations", row.operations},
                {"reads", row.reads},
                {"writes", row.writes},
                {"apart", apart}};
    if (row.seconds) out["seconds"] = *row.seconds;
    if (const auto share = report.share(row)) out["share_of_limit"] = *share;
    if (!row.library.empty()) out["library"] = row.library;
    if (!row.why_not.empty()) out["why_no_library"] = row.why_not;
    steps.push_back(std::move(out));
  }
  for (const schedule::BufferRow& b : report.buffers) {
    Json out = {{"buffer", b.buffer}, {"kind", name(b.kind)}, {"node", b.node}, {"bytes", b.bytes}};
    if (b.kind == schedule::PlanBuffer::Kind::Temporary) out["offset"] = b.offset;
    if (b.used) {
      out["first_step"] = b.first;
      out["last_step"] = b.last;
    }
    buffers.push_back(std::move(out));
  }
  Json out = {{"graph", report.graph},
              {"arena_bytes", report.arena_bytes},
              {"live_bytes", report.live},
              {"steps", steps},
              {"buffers", buffers}};
  if (const auto peak = report.peak()) out["peak"] = {{"step", *peak}, {"bytes", report.live[*peak]}};
  if (report.limit)
    out["limit"] = {{"bytes_per_second", report.limit->bytes_per_second},
                    {"operations_per_second", report.limit->operations_per_second}};
  return out;
}

Json inductor_json(const InductorCode& code) {
  Json kernels = Json::array();
  for (const InductorKernel& k : code.kernels) {
    Json frames = Json::array();
    for (const StackFrame& f : k.frames)
      frames.push_back({{"file", f.file}, {"line", f.line}, {"function", f.function}, {"code", f.code}});
    kernels.push_back({{"name", k.name},
                       {"language", k.language},
                       {"call_line", k.call},
                       {"first_line", k.begin},
                       {"last_line", k.end},
                       {"link", name(k.link)},
                       {"nodes", k.nodes},
                       {"sources", k.sources},
                       {"missed", k.missed},
                       {"frames", frames}});
  }
  Json out = {{"code", code.code->id}, {"kernels", kernels}, {"found", code.found}, {"missed", code.missed}};
  if (code.post_grad) out["post_grad"] = code.post_grad->id;
  if (code.pre_grad) out["pre_grad"] = code.pre_grad->id;
  return out;
}

}  // namespace partita
