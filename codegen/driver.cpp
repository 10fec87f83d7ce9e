#include "codegen/driver.h"

#include <algorithm>
#include <list>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "codegen/cpu/executor.h"
#include "codegen/cpu/host.h"
#include "codegen/save_args.h"
#include "codegen/worker.h"
#include "core/aot/pipeline.h"
#include "core/base/hash.h"
#include "core/base/verification.h"
#include "core/base/whereabouts.h"
#include "core/interp/symbols.h"
#include "core/ir/place.h"
#include "core/load/trace_writer.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "core/store/code_store.h"

namespace partita {
namespace {

Status run_passes_until(Graph& graph, const BackendOptions& options, int stop_after) {
  const TimeStage timed(options.times.get(), "post_grad_passes");
  PassContext context;
  context.threads = options.config.threads;
  context.fold_limit_bytes = options.config.fold_limit;
  context.frozen = options.config.freezing;
  now_at("running the passes");
  const auto& disabled = options.config.disable_passes;
  const auto passed =
      post_grad_passes(graph, context, {.disabled = {disabled.begin(), disabled.end()}, .stop_after = stop_after});
  return passed ? Status() : Status(passed.error());
}

Result<schedule::Plan> make_plan(const Graph& graph, const std::map<std::string, std::int64_t>& sizes,
                                 const BackendOptions& options, bool symbolic = false) {
  const TimeStage timed(options.times.get(), "plan");
  return schedule::make_plan(graph, {.sizes = sizes,
                                     .target = codegen::host_target(options.config.threads),
                                     .fuse = options.config.fuse,
                                     .symbolic = symbolic});
}

bool has_symbols(const Meta& meta) {
  if (const SymExpr* e = meta.sym()) return !e->is_int();
  const TensorMeta* t = meta.tensor();
  return t && (!concrete(t->sizes) || !concrete(t->strides));
}

class CompiledGraph {
 public:
  CompiledGraph(const Graph& graph, const BackendOptions& options) : graph_(graph.clone()), options_(options) {}

  /// Runs the first `stop_after` passes, -1: all, and compiles unless sizes are symbols.
  Status prepare(int stop_after) {
    stop_after_ = stop_after;
    trace::artifact("before_post_grad_graph", *graph_);
    {
      const trace::Stage timed("post_grad_passes");
      TRY_DO(run_passes_until(*graph_, options_, stop_after));
    }
    trace::artifact("inductor_post_grad_graph", *graph_);
    int index = 0;
    for (const Node* node : graph_->placeholders()) {
      has_symbols_ |= partita::has_symbols(node->meta);
      if (options_.fixed_parameters && options_.config.pack_parameters &&
          (node->note.starts_with("ParamAOTInput") || node->note.starts_with("BufferAOTInput")))
        fixed_.insert(index);
      ++index;
    }
    if (has_symbols_) return {};
    return compile({});
  }

  bool has_symbols() const { return has_symbols_; }

  Result<std::vector<Value>> run(const std::vector<Value>& inputs) {
    std::map<std::string, std::int64_t> sizes;
    if (has_symbols_) {
      TRY(const SymbolMap symbols, bind_symbols(*graph_, inputs));
      sizes = symbols.all();
    }
    auto found = std::ranges::find(instances_, sizes, &Instance::sizes);
    if (found == instances_.end()) {
      TRY_DO(compile(sizes));
      found = std::prev(instances_.end());
      // Each holds its own packed weights.
      if (instances_.size() > (fixed_.empty() ? most_instances : most_instances / 4)) instances_.pop_front();
    } else {
      instances_.splice(instances_.end(), instances_, found);
    }
    return found->executable->run(inputs);
  }

 private:
  static constexpr std::size_t most_instances = 16, most_variants = 8;

  /// A plan for all sizes for which its guards hold.
  struct Variant {
    codegen::CompiledProgram compiled;
    std::optional<schedule::Plan> plan;  ///< with verification: the whole plan
  };
  /// What runs for one set of sizes.
  struct Instance {
    std::map<std::string, std::int64_t> sizes;
    std::unique_ptr<codegen::Executable> executable;
  };

  /// Adds an instance for these sizes.
  Status compile(const std::map<std::string, std::int64_t>& sizes) {
    now_at("planning kernels");
    SizeCompilation told{.graph = graph_->name, .sizes = sizes};
    if (has_symbols_ && keeps_symbols_) {
      Status done = compile_symbolic(sizes, told);
      if (done || done.error().fault != Fault::Unsupported) return done;
      told.symbolic = false;
      told.why_not = done.error().message;
    }
    TRY(const schedule::Plan plan, make_plan(*graph_, sizes, options_));
    if (has_symbols_ && options_.on_sizes) options_.on_sizes(told);
    TRY(const codegen::CompiledProgram compiled, generate(plan, told));
    return add(compiled, {}, sizes);
  }

  /// Error of Fault::Unsupported when a plan cannot keep the sizes symbolic.
  Status compile_symbolic(const std::map<std::string, std::int64_t>& sizes, SizeCompilation& told) {
    for (const auto& [symbol, value] : sizes)
      if (value < 2)
        return unsupported("backend.symbolic",
                           symbol + " is " + std::to_string(value) + ", and 0 and 1 get code of their own");
    // Compiled code checks nothing while it runs, so that sizes that do not fit together are refused here.
    if (auto fit = schedule::specialise(*graph_, sizes); !fit) return std::move(fit).error();
    auto fits = variants_.begin();
    for (; fits != variants_.end(); ++fits) {
      const Guard* broken = schedule::broken_guard(fits->compiled.program->plan.guards, sizes);
      if (!broken) break;
      told.broken.push_back(*broken);
    }
    if (fits == variants_.end()) {
      auto made = make_plan(*graph_, sizes, options_, true);
      keeps_symbols_ = static_cast<bool>(made);
      TRY(schedule::Plan plan, std::move(made));
      plan.symbols = sizes;  // whose names kernels take
      told.guards = plan.guards;
      if (options_.on_sizes) options_.on_sizes(told);
      TRY(codegen::CompiledProgram compiled, generate(plan, told));
      variants_.push_back({std::move(compiled), std::nullopt});
      if (verification()) variants_.back().plan = std::move(plan);
      if (variants_.size() > most_variants) variants_.pop_front();
      fits = std::prev(variants_.end());
    }
    if (fits->plan)
      if (auto verified = schedule::instantiate(*fits->plan, sizes); !verified) return std::move(verified).error();
    return add(fits->compiled, sizes, sizes);
  }

  /// Makes a plan's code. The trace says what was made, for what and why.
  Result<codegen::CompiledProgram> generate(const schedule::Plan& plan, const SizeCompilation& told) {
    trace::Compilation part(traced_, generated_++ > 0);
    if (trace::on()) {
      std::vector<std::string> reasons;
      for (const Guard& g : told.broken) reasons.push_back(fmt::format("{}  # {}", g.condition.str(), g.reason));
      if (!reasons.empty()) trace::artifact("recompile_reasons", nlohmann::ordered_json(reasons));
      trace::guards(*graph_, told.guards);
      trace::output_code(graph_->name, print(plan));
    }
    const trace::Stage timed("code_gen");
    auto made = codegen::compile_program(plan, cpu_options());
    if (!made) part.failed(made.error());
    if (const codegen::CompileTimes took = made ? made->times : codegen::CompileTimes(); options_.times) {
      options_.times->add("llvm_emit", took.emit_ms);
      options_.times->add("llvm_optimise", took.optimise_ms);
      options_.times->add("llvm_generate", took.generate_ms);
      options_.times->add("link", took.link_ms);
      options_.times->add("program", took.total_ms - took.compile_ms - took.link_ms);
    }
    return made;
  }

  codegen::CpuOptions cpu_options() const {
    codegen::CpuOptions cpu;
    const auto trace_cache = [](const char* name, const char* what, const std::string& about) {
      trace::artifact(name, nlohmann::ordered_json{{"cache_state", name + sizeof "fx_graph_cache"}, {what, about}});
    };
    if (!options_.store || options_.config.force_disable_caches) {
      trace_cache("fx_graph_cache_bypass", "cache_bypass_reason",
                  options_.store ? "force_disable_caches" : "there is no store");
    } else {
      const std::shared_ptr<CodeStore> store = options_.store;
      cpu.configuration = code_key(options_.config);
      cpu.load_code = [store, trace_cache](const std::string& key) {
        auto found = store->find(key);
        if (trace::on()) trace_cache(found ? "fx_graph_cache_hit" : "fx_graph_cache_miss", "key", content_hash(key));
        return found;
      };
      cpu.store_code = [store, name = graph_->name](const std::string& key, const std::string& code) {
        store->put(key, code, name);
      };
    }
    return cpu;
  }

  /// Adds an instance. `symbols`: of the program, `sizes`: of the graph.
  Status add(const codegen::CompiledProgram& compiled, const std::map<std::string, std::int64_t>& symbols,
             const std::map<std::string, std::int64_t>& sizes) {
    codegen::ExecutorOptions how;
    how.generator = options_.generator;
    how.fixed_inputs = fixed_;
    how.compile_sub_graph = [options = options_, stop_after = stop_after_](
                                const Graph& graph, std::shared_ptr<Generator> generator) -> Result<CompiledFn> {
      BackendOptions own = options;
      own.generator = std::move(generator);
      auto compiled_graph = std::make_shared<CompiledGraph>(graph, own);
      TRY_DO(compiled_graph->prepare(stop_after));
      if (compiled_graph->has_symbols())
        return unsupported("backend.symbolic", "a size that is known only at run time");
      return CompiledFn([compiled_graph](std::vector<Value> inputs) { return compiled_graph->run(inputs); });
    };
    const TimeStage timed(options_.times.get(), "prepare_calls");
    TRY(auto executable, codegen::load_program(compiled.program, symbols, compiled.code, graph_->attributes, how));
    instances_.push_back({sizes, std::move(executable)});
    return {};
  }

  std::unique_ptr<Graph> graph_;
  BackendOptions options_;
  int stop_after_ = -1;
  bool has_symbols_ = false;
  bool keeps_symbols_ = true;  ///< false once a plan could not
  std::set<int> fixed_;
  std::list<Variant> variants_;    // the latest last
  std::list<Instance> instances_;  // the last used last
  trace::CompileId traced_ = trace::current();
  int generated_ = 0;  ///< so often was code made
};

/// Compiles with only the first `stop_after` passes; -1: all.
CompileFn compiler(const BackendOptions& options, int stop_after) {
  return [options, stop_after](const Graph& graph) {
    return trace::compiled([&]() -> Result<CompiledFn> {
      trace::input(graph, "aot_inference_graph");
      const trace::Stage timed("inductor_compile");
      auto compiled = std::make_shared<CompiledGraph>(graph, options);
      TRY_DO(compiled->prepare(stop_after));
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

CompileFn cpu_compiler(const BackendOptions& options) {
  if (!options.config.save_args.empty()) {
    BackendOptions inner = options;
    inner.config.save_args.clear();
    return saving_args(cpu_compiler(inner), options.config.save_args);
  }
  if (options.worker) return compile_in_worker("cpu", options);
  return compiler(options, -1);
}

StagedCompiler cpu_stages(const BackendOptions& options) {
  StagedCompiler staged;
  for (const Pass& p : passes_of(PassStage::PostGrad)) staged.passes.emplace_back(p.name);
  staged.with_passes = [options](int stop_after) { return compiler(options, stop_after); };
  staged.plan = [options](const Graph& graph) { return planned(graph, options); };
  staged.run_plan = [](const schedule::Plan& plan, const std::map<std::string, Tensor>& constants,
                       const std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    TRY(const auto compiled, codegen::compile_cpu(plan, constants, {}));
    return compiled->run(inputs);
  };
  return staged;
}

}  // namespace partita
