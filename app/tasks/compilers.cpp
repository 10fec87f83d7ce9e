// The table of PyTorch's debugging compilers. Each row sets how the flow makes the graphs and what compiles them; in
// the place of torch.jit's script compiler ours compiles graphs whose overloads were stripped and chosen again.
#include "app/tasks/compilers.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/tasks/graphviz.h"
#include "core/aot/dump_folder.h"
#include "core/aot/ts_graph.h"
#include "core/base/check.h"
#include "core/base/mapped.h"
#include "core/base/output.h"
#include "core/compare/per_node.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/ir/fx_dot.h"
#include "core/ir/print.h"
#include "core/ir/verify.h"
#include "core/passes/run_passes.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

/// aot_function with one compiler for both graphs, which are AOTAutograd's own: no passes and no layouts of ours.
void both(RunOptions& options, const CompileFn& compile, Partitioner partitioner = Partitioner::Default) {
  options.forward = options.backward = compile;
  options.aot.partition.partitioner = partitioner;
  options.aot.passes = false;
  options.aot.choose_layouts = false;
}

CompileFn backend(const char* name, const CompilerSetup& setup) {
  const auto found = find_backend(name);
  CHECK(found, "a backend of our own table");
  return (*found)->make(setup.backend);
}

void print_compile(const CompilerSetup& setup, RunOptions& options) {
  both(options, [setup, run = backend("interp", setup)](const Graph& graph) {
    setup.print(plain_code(graph) + "\n");
    return run(graph);
  });
}

/// Draws into NAME.svg, or into NAME when it has an extension; .dot and .raw are Graphviz source.
Status draw(const Graph& graph, const CompilerSetup& setup) {
  fs::path file = fs::path(setup.folder) / setup.name;
  if (file.extension().empty()) file += ".svg";
  const std::string format = file.extension().string().substr(1);
  const std::string dot = to_fx_dot(graph);
  if (format == "dot" || format == "raw") return write_file(file.string(), dot);
  const bool large = setup.draw_large && !fits_graphviz(graph);
  TRY(const std::string picture,
      large ? setup.draw_large(graph, format) : run_graphviz(graph, dot, format, setup.backend.progress));
  return write_file(file.string(), picture);
}

void draw_graph_compile(const CompilerSetup& setup, RunOptions& options) {
  both(options, [setup, run = backend("interp", setup)](const Graph& graph) -> Result<CompiledFn> {
    setup.print(plain_code(graph) + "\n");
    TRY_DO(draw(graph, setup));
    return run(graph);
  });
}

/// Compiles the graph as PyTorch's script compiler would get it. AOT has removed mutation, except of inputs, which the
/// script compiler keeps too. torch.jit.freeze folds what the module holds, batch norms into convolutions too: the
/// graph's attributes, among which parameters are if `freezing` is configured.
Result<CompiledFn> compile_script(const Graph& graph, const CompilerSetup& setup, bool optimised) {
  const std::shared_ptr<Graph> script(graph.clone());
  if (auto known = propagate(*script); !known) return std::move(known).error();
  if (optimised && setup.backend.fixed_parameters) {
    PassContext context;
    context.frozen = true;
    const auto frozen = run_passes(*script, passes_of(Stage::Freezing), context);
    if (!frozen) return frozen.error();
  }
  strip_overloads(*script);
  if (optimised) canonicalize_for_script(*script);
  if (const std::vector<Diagnostic> wrong = verify(*script); !wrong.empty()) return wrong.front();
  TRY_DO(choose_overloads(*script));
  TRY(const CompiledFn run, default_compiler().make(setup.backend)(*script));
  if (!optimised) return CompiledFn([script, run](std::vector<Value> inputs) { return run(std::move(inputs)); });
  // The first call runs twice: first on copies, to see that the graph runs.
  const auto tried = std::make_shared<std::once_flag>();
  return CompiledFn([script, run, tried](std::vector<Value> inputs) -> Result<std::vector<Value>> {
    Status smoke;
    std::call_once(*tried, [&] {
      auto copies = copy_values(inputs);
      auto done = copies ? run(*std::move(copies)) : Result<std::vector<Value>>(copies.error());
      if (!done) smoke = std::move(done).error();
    });
    if (!smoke) return std::move(smoke).error();
    return run(std::move(inputs));
  });
}

CompileFn script_compiler(const CompilerSetup& setup, bool optimised) {
  return [setup, optimised](const Graph& graph) { return compile_script(graph, setup, optimised); };
}

void simple_ts_compile(const CompilerSetup& setup, RunOptions& options) {
  both(options, script_compiler(setup, false));
}

void memory_efficient_fusion(const CompilerSetup& setup, RunOptions& options) {
  options.aot.decompositions = Decompositions::Functorch;
  both(options, script_compiler(setup, true), Partitioner::MinCut);
}

/// What debug_compile prints: a script to minify the graph with functorch.
std::string banner(const Graph& graph) {
  std::string inputs;
  for (const Node* node : graph.placeholders()) {
    const TensorMeta* t = node->meta.tensor();
    if (!t) continue;
    inputs += fmt::format("{}(torch.Size([{}]), torch.{})", inputs.empty() ? "" : ", ",
                          fmt::join(mapped(t->sizes, &SymExpr::str), ", "), torch_name(t->dtype));
  }
  const std::string line(62, '#');
  return fmt::format(
      "\n{0}\n# To minimize FX graph, copy and paste the below and run it  #\n{0}\n\nimport torch\nimport torch.fx as "
      "fx\n"
      "from functorch.compile import minifier, check_nvfuser_subprocess, check_nvfuser_correctness_subprocess\n\n"
      "inps = [{1}]\n"
      "inps = [torch.ones(shape, dtype=dtype, device='cuda') for (shape, dtype) in inps]\nfrom foo import FxModule\n"
      "mod = FxModule().cuda()\n\nwith torch.jit.fuser(\"fuser2\"):\n"
      "  # check_nvfuser_subprocess can be replaced with check_nvfuser_correctness_subprocess\n"
      "  minifier(fx.symbolic_trace(mod), inps, check_nvfuser_subprocess)\n\n",
      line, inputs);
}

void debug_compile(const CompilerSetup& setup, RunOptions& options) {
  both(options, [setup](const Graph& graph) -> Result<CompiledFn> {
    TRY_DO(write_module_folder(graph, (fs::path(setup.folder) / "foo").string()));
    setup.print(banner(graph));
    return compile_script(graph, setup, true);
  });
}

/// The dumps of one program. The joint graph's example inputs are only known when the backward runs.
struct Dump {
  CompilerSetup setup;
  int index = 0;  ///< of this program's graphs
  std::unique_ptr<Graph> joint;
  std::vector<Value> forward_inputs;

  Status write(const Graph& graph, const char* type, const std::vector<Value>* inputs) const {
    return dump_graph(graph, setup.folder, setup.name, type, index, inputs);
  }
  /// To be called before a graph runs: dumps its inputs, and those of the joint graph once the tangents are known.
  Status write_inputs(const Graph& graph, bool backward, const std::vector<Value>& inputs) {
    if (!setup.dump_example_inputs) return {};
    TRY_DO(write(graph, backward ? "backward" : "forward", &inputs));
    if (!backward) {
      TRY(forward_inputs, copy_values(inputs));
      return {};
    }
    std::vector<Value> all = forward_inputs;
    const std::size_t tangents = joint ? joint->placeholders().size() - all.size() : 0;
    if (!joint || tangents > inputs.size()) return {};
    all.insert(all.end(), inputs.end() - static_cast<std::ptrdiff_t>(tangents), inputs.end());
    return write(*joint, "joint", &all);
  }
};

/// PyTorch's graph_index: the graphs that this process dumps under one name are numbered, and a backward ends a number.
class DumpIndex {
 public:
  static int of(const std::string& key) {
    std::lock_guard lock(mutex_);
    return next_[key];
  }
  static void advance(const std::string& key) {
    std::lock_guard lock(mutex_);
    ++next_[key];
  }

 private:
  static inline std::mutex mutex_;
  static inline std::map<std::string, int> next_;
};

void graph_dumper_aot(const CompilerSetup& setup, RunOptions& options) {
  const auto dump = std::make_shared<Dump>();
  dump->setup = setup;
  const std::string key = setup.folder + '\n' + setup.name;
  dump->index = DumpIndex::of(key);
  both(options, nullptr);
  options.aot.decompositions = Decompositions::Functorch;
  options.joint = [dump](const Graph& joint) {
    dump->joint = joint.clone();
    return dump->write(joint, "joint", nullptr);
  };
  const auto side = [dump, key, run = backend("interp", setup)](bool backward) -> CompileFn {
    return [=](const Graph& graph) -> Result<CompiledFn> {
      TRY_DO(dump->write(graph, backward ? "backward" : "forward", nullptr));
      if (backward) DumpIndex::advance(key);
      TRY(const CompiledFn compiled, run(graph));
      return CompiledFn([=, &graph](std::vector<Value> inputs) -> Result<std::vector<Value>> {
        TRY_DO(dump->write_inputs(graph, backward, inputs));
        return compiled(std::move(inputs));
      });
    };
  };
  options.forward = side(false);
  options.backward = side(true);
}

void compiled(const CompilerSetup& setup, RunOptions& options) {
  both(options, default_compiler().make(setup.backend), Partitioner::MinCut);
  options.aot.passes = true;
  options.aot.choose_layouts.reset();
}

constexpr Compiler table[] = {
    {"partita", "our own: compiled for this machine", false, compiled},
    {"nop", "the graph as it is, interpreted", false,
     [](const CompilerSetup& setup, RunOptions& options) { both(options, backend("interp", setup)); }},
    {"print_compile", "nop that prints each graph's code", false, print_compile},
    {"draw_graph_compile", "print_compile that draws each graph into one file, the last one stays", true,
     draw_graph_compile},
    {"debug_nop", "nop that compares every value with its node's meta", false,
     [](const CompilerSetup& setup, RunOptions& options) { both(options, backend("debug", setup)); }},
    {"ts_compile", "without overloads, canonical, optimised, compiled, run once to see that it runs", false,
     [](const CompilerSetup& setup, RunOptions& options) { both(options, script_compiler(setup, true)); }},
    {"simple_ts_compile", "without overloads, compiled", false, simple_ts_compile},
    {"nnc_jit", "aot_function with simple_ts_compile", false, simple_ts_compile},
    {"memory_efficient_fusion", "min-cut, the default decompositions, ts_compile", false, memory_efficient_fusion},
    {"debug_compile", "writes the module folder foo, prints a script to minify it, then ts_compile", true,
     debug_compile},
    {"graph_dumper_aot", "nop that writes joint, forward and backward as folders PyTorch loads", true,
     graph_dumper_aot},
};

}  // namespace

std::span<const Compiler> compilers() {
  return table;
}

Result<const Compiler*> find_compiler(std::string_view name) {
  const auto* found = std::ranges::find(table, name, &Compiler::name);
  if (found != std::end(table)) return found;
  return input_error("compiler.unknown", fmt::format("no compiler {}; there are {}", name,
                                                     fmt::join(mapped(table, &Compiler::name), ", ")));
}

Result<TensorFile> run_with_compiler(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                     const Compiler& compiler, CompilerSetup setup) {
  setup.backend.config = config();
  if (!setup.backend.progress) setup.backend.progress = request.progress;
  setup.backend.worker = request.worker;
  setup.backend.fixed_parameters = !request.train;
  TRY(const RunRequest recorded, with_recorded_generator(request, io));
  setup.backend.generator = new_generator(recorded);
  TRY(setup.backend.communicator, communicator_of(request));
  RunOptions options = run_options(request, nullptr);
  compiler.set_up(setup, options);
  const auto row = find_config_row("partitioner");
  CHECK(row);
  if ((*row)->given(config())) options.aot.partition.partitioner = configured_partitioner();
  return run_program(artefact, io, options);
}

Result<CompilerRun> run_compiler(const Artefact& artefact, const CompilerRequest& asked, const WorkerOptions& worker,
                                 Result<std::string> (*draw_large)(const Graph& graph, const std::string& format),
                                 const Progress& progress) {
  TRY(const Compiler* compiler, find_compiler(asked.compiler));
  RunRequest request = window_request(asked.inputs, asked.train, progress);
  request.worker = worker;
  TRY(const TensorFile io, read_io(request, artefact));
  CompilerRun run;
  CompilerSetup setup;
  setup.draw_large = draw_large;
  if (!asked.folder.empty()) setup.folder = asked.folder;
  setup.print = [&run](std::string_view printed) { run.printed += printed; };
  setup.backend.on_sizes = [&run](const SizeCompilation& c) { run.printed += text(c); };
  const auto times = setup.backend.times = std::make_shared<StageTimes>();
  const auto begun = std::chrono::steady_clock::now();
  TRY(run.results, run_with_compiler(artefact, io, request, *compiler, setup));
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  run.stages = times->all();
  run.against_file = compare_results(stored_results(io, asked.train), run.results, tolerance_without_baseline(), false);
  run.against_file.expected_name = "the stored results";
  run.against_file.found_name = compiler->name;
  return run;
}

}  // namespace partita
