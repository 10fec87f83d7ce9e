#include "codegen/compiler.h"

#include "codegen/compiled_graph.h"
#include "codegen/program/kernel_forms.h"
#include "codegen/program/machine.h"
#include "codegen/save_args.h"
#include "codegen/worker.h"
#include "core/aot/pipeline.h"
#include "core/base/build_id.h"
#include "core/base/check.h"
#include "core/ir/place.h"

namespace partita {
namespace {

bool caches(const BackendOptions& options) {
  return options.store && !options.config.force_disable_caches && !build_id().empty();
}

BackendOptions with_machine(const Backend& backend, BackendOptions options) {
  if (!options.machine) options.machine = backend.machine();
  return options;
}

/// The options, with their machine's device open.
Result<BackendOptions> opened(BackendOptions options) {
  TRY(options.machine, options.machine->open());
  return options;
}

/// The graph must outlive the result.
Result<std::shared_ptr<CompiledGraph>> compiled_graph(const Graph& graph, const BackendOptions& options,
                                                      int stop_after) {
  const auto source = [&graph]() -> Result<std::unique_ptr<Graph>> { return graph.clone(); };
  auto made = std::make_shared<CompiledGraph>(graph.name, source, graph.attributes, options);
  const bool cached = stop_after < 0 && caches(options);
  TRY_DO(made->prepare(stop_after, cached ? cache_key(graph, options) : KeyParts()));
  return made;
}

/// compiled_graph() on the options' machine, as the trace tells it.
Result<std::shared_ptr<CompiledGraph>> compile_on_machine(const Graph& graph, const BackendOptions& options,
                                                          int stop_after) {
  trace::input(graph, "aot_inference_graph");
  const trace::Stage timed("inductor_compile");
  TRY(const BackendOptions own, opened(options));
  {
    const ConfigScope scope(own.config);  // checks read it
    TRY_DO(own.machine->check_graph(graph));
  }
  return compiled_graph(graph, own, stop_after);
}

/// Compiles with only the first `stop_after` passes; -1: all.
CompileFn compiler_until(const BackendOptions& options, int stop_after) {
  return [options, stop_after](const Graph& graph) {
    return trace::compiled([&]() -> Result<CompiledFn> {
      TRY(const auto compiled, compile_on_machine(graph, options, stop_after));
      return CompiledFn([compiled](std::vector<Value> inputs) { return compiled->run(inputs); });
    });
  };
}

Result<StagedCompiler::Planned> planned(const Graph& graph, const BackendOptions& options) {
  std::unique_ptr<Graph> passed = graph.clone();
  TRY_DO(run_passes_until(*passed, options, -1));
  for (const Node* node : passed->placeholders())
    if (has_symbols(node->meta))
      return unsupported("backend.symbolic", "a plan is made for concrete sizes; this graph has symbolic ones",
                         place_of(*node));
  TRY(schedule::Plan plan, make_plan(*passed, {}, options));
  return StagedCompiler::Planned(std::move(passed), std::move(plan));
}

}  // namespace

CompileFn compiler(const Backend& backend, const BackendOptions& options) {
  if (!options.config.save_args.empty()) {
    BackendOptions inner = options;
    inner.config.save_args.clear();
    return saving_args(compiler(backend, inner), options.config.save_args);
  }
  if (options.worker) return compile_in_worker(std::string(backend.name), options);
  return compiler_until(with_machine(backend, options), -1);
}

Result<std::shared_ptr<CompiledGraph>> compile_graph(const Backend& backend, const Graph& graph,
                                                     const BackendOptions& options) {
  CHECK(!options.worker, "a graph in another process");
  return compile_on_machine(graph, with_machine(backend, options), -1);
}

std::shared_ptr<const GraphCache> compiler_cache(const Backend& backend, const BackendOptions& given) {
  if (given.worker || !caches(given) || !given.config.save_args.empty()) return nullptr;
  const auto found = opened(with_machine(backend, given));
  if (!found) return nullptr;  // the compiler says why
  const BackendOptions& options = *found;
  return std::make_shared<GraphCache>(GraphCache{
      .store = options.store,
      .config = options.config,
      .compiler = compiler_text(options),
      .key = [options](const Graph& graph) { return key_of(cache_key(graph, options)); },
      .load = [options](const std::string& key, std::map<std::string, Tensor> constants,
                        GraphSource source) -> std::optional<CompiledFn> {
        auto entry = find_entry(*options.store, fxgraph_cache, key, "a compiled graph");
        auto made = std::make_shared<CompiledGraph>("", std::move(source), std::move(constants), options);
        const bool hit = entry && made->prepare_stored(*std::move(entry));
        cache_log().add({fxgraph_cache, hit ? CacheOutcome::Hit : CacheOutcome::Miss, made->name(), key, {}});
        if (!hit) return std::nullopt;
        return [made](std::vector<Value> inputs) { return made->run(inputs); };
      }});
}

StagedCompiler compiler_stages(const Backend& backend, const BackendOptions& given) {
  const BackendOptions options = with_machine(backend, given);
  StagedCompiler staged;
  for (const Pass& p : passes_of(Stage::PostGradPasses)) staged.passes.emplace_back(p.name);
  staged.with_passes = [options](int stop_after) { return compiler_until(options, stop_after); };
  staged.plan = [options](const Graph& graph) { return planned(graph, options); };
  staged.run_plan = [options](const schedule::Plan& plan, const std::map<std::string, Tensor>& constants,
                              const std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    TRY(const BackendOptions own, opened(options));
    const ConfigScope scope(own.config);
    TRY(const auto compiled, codegen::compile_plan(*own.machine, plan, constants));
    return compiled->run(inputs);
  };
  staged.forms = options.machine->forms();
  staged.measure = [options](const StagedCompiler::Planned& planned, const std::vector<Value>& inputs,
                             double seconds) -> Result<StagedCompiler::Measured> {
    TRY(const BackendOptions own, opened(options));
    const ConfigScope scope(own.config);
    return codegen::measure(*own.machine, planned, {.fixed_inputs = fixed_inputs(*planned.first, own)}, inputs,
                            seconds);
  };
  staged.scratch = [options](const StagedCompiler::Planned& planned) -> Result<StagedCompiler::Scratch> {
    TRY(const BackendOptions own, opened(options));
    const ConfigScope scope(own.config);
    return codegen::scratch_of(*own.machine, planned, fixed_inputs(*planned.first, own));
  };
  return staged;
}

}  // namespace partita
