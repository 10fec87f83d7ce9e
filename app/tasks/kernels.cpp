// Plans of the forward and backward that `run` makes, with their memory step by step. They are measured while the
// program runs; what the machine can do is measured by copies and products of matrices.
#include "app/tasks/kernels.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/tasks/config_values.h"
#include "codegen/backends.h"
#include "codegen/compiled_graph.h"
#include "codegen/cpu/cpu_target.h"
#include "core/aot/aot.h"
#include "core/base/assign.h"
#include "core/base/hash.h"
#include "core/base/mapped.h"
#include "core/base/output.h"
#include "core/base/scratch.h"
#include "core/interp/random_values.h"
#include "core/interp/symbols.h"
#include "core/ir/print.h"
#include "core/partition/cost.h"
#include "core/process/run.h"
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
CompileFn measuring(const StagedCompiler& compiler, const std::string& name, const Progress* progress,
                    std::vector<PlannedGraph>& out) {
  return [&, name, progress](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&, name, progress, graph = &graph](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      TRY_DO(step(progress, -1, "kernels of the " + name));
      TRY(const SymbolMap sizes, bind_symbols(*graph, inputs));
      TRY(PlannedGraph made, planned(*graph, compiler, name, sizes.all()));
      TRY(StagedCompiler::Measured measured, compiler.measure(made.planned, inputs, measured_seconds));
      for (std::size_t s = 0; s < made.report.rows.size(); ++s) {
        KernelRow& row = made.report.rows[s];
        row.seconds = measured.steps[s].seconds;
        row.library = measured.steps[s].library;
        row.why_not = measured.steps[s].why_not;
        // What the plan could not know: a library may refuse a call, and a device has others than the plan's target.
        const bool evaluated = row.library == "interpreter" || row.library == "compiled sub graphs";
        if (row.kind != KernelRow::Kind::Kernel)
          row.kind = evaluated ? KernelRow::Kind::Evaluation : KernelRow::Kind::Library;
      }
      out.push_back(std::move(made));
      return std::move(measured.results);
    });
  };
}

/// `amount` a second of the graph, the best of several rounds, now and whenever it was measured before.
Result<double> probe(const Backend& backend, const std::string& text, double amount) {
  const codegen::Processor& host = codegen::host_processor();
  std::string parts;
  for (const std::string& part : {std::string("machine limit"), std::string(backend.name),
                                  std::to_string(config().threads), host.name, host.features, text})
    add_part(parts, part);
  const std::string key = content_hash(parts);
  CodeStore store;
  double kept = 0;
  if (const auto entry = store.find(key);
      entry && std::from_chars(entry->data(), entry->data() + entry->size(), kept).ec != std::errc())
    kept = 0;
  Artefact artefact = Artefact::of_string(text);
  artefact.kind = ArtefactKind::Graph;
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  const StagedCompiler compiler = backend.stages({});
  TRY(const StagedCompiler::Planned planned, compiler.plan(*graph));
  TRY(const std::vector<Value> inputs, random_inputs(*graph, 0));
  double best = kept;
  // The calls are short, so that some are not interrupted.
  for (int round = 0; round < (kept > 0 ? 2 : 6); ++round) {
    TRY(const StagedCompiler::Measured measured, compiler.measure(planned, inputs, 0.01));
    double seconds = 0;
    for (const StepMeasure& step : measured.steps) seconds += step.seconds;
    best = std::max(best, amount / seconds);
  }
  if (best > kept) store.put(key, fmt::format("{}", best), "machine limit", "limit");
  return best;
}

/// Bytes read and written in a second by a copy of so many floats.
Result<double> copied(const Backend& backend, std::size_t elements) {
  const std::string text = fmt::format(R"(class Copy(torch.nn.Module):
    def forward(self, a: "f32[{0}]"):
        neg: "f32[{0}]" = torch.ops.aten.neg.default(a)
        return (neg,)
)",
                                       elements);
  return probe(backend, text, 2.0 * 4 * static_cast<double>(elements));
}

/// Operations in a second of a product of matrices, of so many rows that packing the right one costs little.
Result<double> multiplied(const Backend& backend, const std::string& dtype) {
  constexpr int rows = 2048, n = 512;
  const std::string text = fmt::format(R"(class Product(torch.nn.Module):
    def forward(self, a: "{0}[{1}, {2}]", b: "{0}[{2}, {2}]"):
        mm: "{0}[{1}, {2}]" = torch.ops.aten.mm.default(a, b)
        return (mm,)
)",
                                       dtype, rows, n);
  return probe(backend, text, 2.0 * rows * n * n);
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

Result<AotGraphs> graphs_for(const Artefact& artefact, const Graph& graph, const RunRequest& request,
                             const Backend& backend) {
  AotOptions how{.train = request.train};
  adapt_options(backend, how);
  return aot(graph, artefact.program.get(), as_run(graph, artefact, how));
}

Result<std::vector<PlannedGraph>> planned(const Partition& cut, const StagedCompiler& compiler,
                                          const Progress* progress) {
  TRY_DO(step(progress, -1, "kernels"));
  std::vector<PlannedGraph> out;
  TRY(out.emplace_back(), planned(*cut.forward, compiler, "forward", {}));
  if (cut.backward) TRY_DO(assign(out.emplace_back(), planned(*cut.backward, compiler, "backward", {})));
  return out;
}

/// The buffer that output `i` of a plan lies in; -1: it is a number or a literal.
int buffer_of_output(const schedule::Plan& plan, std::size_t i) {
  const auto* view = std::get_if<schedule::PlanView>(&plan.outputs[i]);
  return view ? view->buffer : -1;
}

/// Where the graph's values are. `offset`: of its first step; `end`: the last step of all. `read_by`: for buffers that
/// the forward saves, the last step of the backward that reads them.
void add_rows(const PlannedGraph& graph, std::size_t offset, std::size_t end, const std::map<int, std::size_t>& read_by,
              StepMemory& out) {
  using Kind = StepMemory::Kind;
  for (const schedule::KernelRow& row : graph.report.rows) out.steps.emplace_back(graph.report.graph, row.name);
  const Kind returned = graph.report.graph == "backward" ? Kind::Gradient : Kind::Result;
  for (const schedule::BufferRow& b : graph.report.buffers) {
    const auto saved = read_by.find(b.buffer);
    const bool output = b.kind == schedule::PlanBuffer::Kind::Output, is_saved = output && saved != read_by.end();
    if (output) out.held[is_saved ? Kind::Saved : returned] += b.bytes;
    if (!b.used) continue;
    if (b.kind == schedule::PlanBuffer::Kind::Temporary)
      out.rows.push_back({Kind::Temporary, b.node, b.bytes, offset + b.first, offset + b.last});
    else if (output)
      out.rows.push_back(
          {is_saved ? Kind::Saved : returned, b.node, b.bytes, offset + b.first, is_saved ? saved->second : end});
  }
  out.held[Kind::Temporary] += graph.report.arena_bytes;
}

/// The inputs of a step, and what the program computes of its weights once and holds beside them: the forward's last
/// inputs.
void add_inputs(const PlannedGraph& forward, const std::optional<ConstantsGraph>& constants, StepMemory& out) {
  const std::size_t all = forward.planned.second.inputs.size(),
                    given = all - (constants ? constants->graph->outputs().size() : 0);
  std::set<std::size_t> counted;
  for (const schedule::BufferRow& b : forward.report.buffers) {
    if (b.kind != schedule::PlanBuffer::Kind::Input) continue;
    const auto input =
        static_cast<std::size_t>(forward.planned.second.buffers[static_cast<std::size_t>(b.buffer)].index);
    (input < given ? out.inputs : out.held[StepMemory::Kind::Constant]) += b.bytes;
    counted.insert(input);
  }
  if (!constants) return;
  const std::vector<Node*> weights = constants->graph->placeholders();
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (counted.insert(constants->inputs[i]).second) out.inputs += static_cast<double>(bytes_of(*weights[i]));
}

/// Constants that passes computed, which the program holds beside those of its source.
void add_constants(const Graph& source, std::span<const Graph* const> graphs, StepMemory& out) {
  std::set<const Storage*> counted;
  for (const auto& [name, tensor] : source.attributes) counted.insert(tensor.storage.get());
  for (const Graph* graph : graphs)
    for (const auto& [name, tensor] : graph->attributes)
      if (tensor.storage && counted.insert(tensor.storage.get()).second)
        out.held[StepMemory::Kind::Constant] += static_cast<double>(tensor.storage->bytes());
}

/// What kernels of all graphs keep, and what one call takes at most.
Status add_scratch(const std::vector<PlannedGraph>& graphs, const StagedCompiler& compiler, StepMemory& out) {
  if (!compiler.scratch) return {};
  std::size_t kept = 0, taken = 0;
  for (const PlannedGraph& graph : graphs) {
    TRY(const StagedCompiler::Scratch scratch, compiler.scratch(graph.planned));
    kept += scratch.kernels;
    taken = std::max(taken, scratch.calls);
  }
  out.held[StepMemory::Kind::Scratch] = static_cast<double>(kept + taken);
  return {};
}

/// For the forward's buffers that it saves, the last step of the backward that reads them.
std::map<int, std::size_t> last_reads(const Partition& cut, const PlannedGraph& of_forward,
                                      const PlannedGraph& of_backward) {
  const std::size_t begin = of_forward.report.rows.size();
  const schedule::Plan &forward = of_forward.planned.second, &backward = of_backward.planned.second;
  std::map<int, std::size_t> read_by;
  // The forward returns saved tensors and then saved numbers, the backward takes the numbers first.
  for (std::size_t i = 0; i + cut.saved_symbols < cut.saved.size(); ++i) {
    const int buffer = buffer_of_output(forward, cut.forward_outputs + i);
    if (buffer < 0) continue;
    std::size_t& last = read_by.try_emplace(buffer, begin > 0 ? begin - 1 : 0).first->second;
    for (const schedule::BufferRow& b : of_backward.report.buffers)
      if (b.used && b.kind == schedule::PlanBuffer::Kind::Input &&
          backward.buffers[static_cast<std::size_t>(b.buffer)].index == static_cast<int>(cut.saved_symbols + i))
        last = std::max(last, begin + b.last);
  }
  // What the program returns, too, stays.
  for (std::size_t i = 0; i < cut.forward_outputs; ++i) read_by.erase(buffer_of_output(forward, i));
  return read_by;
}

/// `source`: the graph that the cut was made of.
Result<StepMemory> memory_of(const Partition& cut, const std::optional<ConstantsGraph>& constants, const Graph& source,
                             const Backend& backend, const Progress* progress) {
  const StagedCompiler compiler = backend.stages({.progress = progress, .fixed_parameters = !cut.backward});
  TRY(const std::vector<PlannedGraph> graphs, planned(cut, compiler, progress));
  const std::size_t begin = graphs[0].report.rows.size(),
                    all = begin + (graphs.size() > 1 ? graphs[1].report.rows.size() : 0), end = all > 0 ? all - 1 : 0;
  StepMemory out;
  const bool trains = graphs.size() > 1;
  add_rows(graphs[0], 0, end, trains ? last_reads(cut, graphs[0], graphs[1]) : std::map<int, std::size_t>(), out);
  TRY_DO(add_scratch(graphs, compiler, out));
  add_inputs(graphs[0], constants, out);
  auto made = mapped(graphs, [](const PlannedGraph& graph) { return std::as_const(graph.planned.first).get(); });
  if (constants) made.push_back(constants->graph.get());
  add_constants(source, made, out);
  if (trains) {
    add_rows(graphs[1], begin, end, {}, out);
    for (const schedule::BufferRow& b : graphs[1].report.buffers)
      if (const auto& buffer = graphs[1].planned.second.buffers[static_cast<std::size_t>(b.buffer)];
          b.kind == schedule::PlanBuffer::Kind::Input && buffer.index >= static_cast<int>(cut.saved.size()))
        out.held[StepMemory::Kind::Tangent] += b.bytes;
  }
  return out;
}

/// Runs `partita kernels` in a process of its own, since compiled code may crash, and takes over the times.
Status measure_elsewhere(const Artefact& artefact, const KernelRequest& asked, const std::string& program,
                         const Progress& progress, std::vector<PlannedGraph>& graphs) {
  TRY(const ScratchFolder folder, ScratchFolder::make("kernels"));
  std::string path = asked.path;
  if (asked.id.empty()) {  // it was made in the window
    TRY(const std::unique_ptr<Graph> graph, artefact.graph());
    path = folder.path() + "/graph.py";
    TRY_DO(write_file(path, print(*graph)));
  }
  std::vector<std::string> words = {program, "kernels", path, "--json"};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (!asked.id.empty()) add({"--graph", asked.id});
  if (asked.inputs.empty())
    add({"--random-weights", "0"});
  else
    add({"--inputs", asked.inputs});
  if (asked.train) add({"--train"});
  constexpr double seconds = 600;
  const auto answer = ask_program(with_configuration(std::move(words)), {.seconds = seconds}, &progress);
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

}  // namespace

std::string_view name(StepMemory::Kind kind) {
  static constexpr std::string_view names[] = {"temporary", "saved",   "result",  "gradient",
                                               "tangent",   "scratch", "constant"};
  return names[static_cast<std::size_t>(kind)];
}

double StepMemory::held_bytes() const {
  double bytes = 0;
  for (const auto& [kind, each] : held) bytes += each;
  return bytes;
}

double StepMemory::live(std::size_t step) const {
  double bytes = 0;
  for (const Row& row : rows)
    if (row.first <= step && step <= row.last) bytes += row.bytes;
  return bytes;
}

std::size_t StepMemory::peak() const {
  std::size_t most = 0;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (live(s) > live(most)) most = s;
  return most;
}

std::string held_text(const StepMemory& memory) {
  static constexpr std::string_view said[] = {"for temporaries", "saved for the backward",
                                              "of results",      "of gradients",
                                              "of tangents",     "that kernels and libraries take for themselves",
                                              "computed once"};
  std::vector<std::string> parts;
  for (const auto& [kind, bytes] : memory.held)
    if (bytes > 0) parts.push_back(fmt::format("{:.0f} {}", bytes, said[static_cast<std::size_t>(kind)]));
  return fmt::format("{:.0f} bytes: {}; beside them {:.0f} of inputs and weights", memory.held_bytes(),
                     fmt::join(parts, ", "), memory.inputs);
}

Json memory_json(const StepMemory& memory) {
  Json held = Json::object(), live = Json::array();
  for (const auto& [kind, bytes] : memory.held) held[name(kind)] = bytes;
  for (std::size_t s = 0; s < memory.steps.size(); ++s)
    live.push_back({{"graph", memory.steps[s].first}, {"step", memory.steps[s].second}, {"bytes", memory.live(s)}});
  return {{"peak_bytes", memory.held_bytes()}, {"held", held}, {"input_bytes", memory.inputs}, {"in_use", live}};
}

Result<StepMemory> step_memory(const Partition& cut, const Backend& backend, const Progress* progress) {
  return memory_of(cut, std::nullopt, *cut.forward, backend, progress);
}

Result<StepMemory> step_memory(const Artefact& artefact, const Graph& graph, const PartitionOptions& cut,
                               const Backend& backend, const Progress& progress) {
  AotOptions how{.partition = cut};
  adapt_options(backend, how);
  TRY(const AotGraphs made, aot(graph, artefact.program.get(), as_run(graph, artefact, how)));
  return memory_of(made.partition, made.constants, graph, backend, &progress);
}

Result<StepMemory> step_memory(const Artefact& artefact, const RunRequest& request, const Backend& backend) {
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  TRY(const AotGraphs made, graphs_for(artefact, *graph, request, backend));
  return memory_of(made.partition, made.constants, *graph, backend, request.progress);
}

Result<std::vector<PlannedGraph>> plan_kernels(const Artefact& artefact, const TensorFile* io,
                                               const RunRequest& request, const Backend& backend) {
  if (!backend.machine)
    return unsupported("backend.stages", fmt::format("{} has no kernels; choose a compiler", backend.name));
  const StagedCompiler compiler = backend.stages({.progress = request.progress, .fixed_parameters = !request.train});
  std::vector<PlannedGraph> out;
  if (!io) {
    TRY(const std::unique_ptr<Graph> graph, artefact.graph());
    TRY(const AotGraphs made, graphs_for(artefact, *graph, request, backend));
    TRY(out, planned(made.partition, compiler, request.progress));
    return out;
  }
  if (!compiler.measure)
    return unsupported("backend.measure", fmt::format("{} cannot time its steps; leave out --inputs", backend.name));
  RunOptions options = run_options(request, measuring(compiler, "forward", request.progress, out));
  options.backward = measuring(compiler, "backward", request.progress, out);
  adapt_options(backend, options.aot);
  TRY_DO(run_program(artefact, *io, options));
  const auto half = [](const PlannedGraph& each) { return std::ranges::any_of(each.report.rows, &KernelRow::half); };
  TRY(const schedule::MachineLimit limit, machine_limit(backend, std::ranges::any_of(out, half)));
  for (PlannedGraph& each : out) each.report.limit = limit;
  return out;
}

Result<schedule::MachineLimit> machine_limit(const Backend& backend, bool half) {
  // Twice the last-level cache is copied, but a virtual machine may name that of all its host.
  constexpr std::size_t least = 1 << 20, most = 1 << 23, cached = 1 << 16;
  const std::size_t beyond = codegen::host_target().cache_bytes / sizeof(float);
  schedule::MachineLimit limit;
  TRY(limit.bytes_per_second, copied(backend, std::clamp(beyond, least, most)));
  TRY(limit.cached_bytes_per_second, copied(backend, cached));
  TRY(limit.operations_per_second, multiplied(backend, "f32"));
  if (half) TRY_DO(assign(limit.half_operations_per_second, multiplied(backend, "bf16")));
  limit.cached_bytes_per_second = std::max(limit.cached_bytes_per_second, limit.bytes_per_second);
  return limit;
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
                    {"cached_bytes_per_second", report.limit->cached_bytes_per_second},
                    {"operations_per_second", report.limit->operations_per_second},
                    {"half_operations_per_second", report.limit->half_operations_per_second}};
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

Result<std::vector<PlannedGraph>> asked_kernels(const Artefact& artefact, const KernelRequest& asked,
                                                const std::string& program, const Progress& progress) {
  RunRequest request;
  request.train = asked.train;
  request.progress = &progress;
  TRY(std::vector<PlannedGraph> graphs, plan_kernels(artefact, nullptr, request, default_compiler()));
  if (asked.measure) TRY_DO(measure_elsewhere(artefact, asked, program, progress, graphs));
  return graphs;
}

}  // namespace partita
