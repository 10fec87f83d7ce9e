#include "codegen/driver.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <span>

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
#include "core/interp/interpreter.h"
#include "core/interp/symbols.h"
#include "core/ir/place.h"
#include "core/load/trace_writer.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "core/schedule/split.h"
#include "core/store/code_store.h"

namespace partita {
namespace {

Status run_passes_until(Graph& graph, const BackendOptions& options, int stop_after) {
  const trace::Stage timed("post_grad_passes", options.times.get());
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
  const trace::Stage timed("plan", options.times.get());
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

using SizeSet = std::map<std::string, std::int64_t>;

class CompiledGraph {
 public:
  CompiledGraph(std::unique_ptr<Graph> graph, const BackendOptions& options)
      : graph_(std::move(graph)), options_(options) {}

  /// Runs the first `stop_after` passes, -1: all, and compiles unless sizes are symbols.
  Status prepare(int stop_after) {
    stop_after_ = stop_after;
    trace::artifact("before_post_grad_graph", *graph_);
    TRY_DO(run_passes_until(*graph_, options_, stop_after));
    trace::artifact("inductor_post_grad_graph", *graph_);
    return prepare_passed();
  }

  /// Do the inputs give all symbols of the graph, and are they sizes?
  bool knows_sizes() const {
    if (parts_) return parts_->after->knows_sizes();
    return std::ranges::all_of(*graph_, [&](const Node* node) {
      const auto known = [&](SymExpr e) {
        return e.is_int() || std::ranges::all_of(e.symbols(), [&](const std::string& s) {
                 return s.starts_with("s") && binder_ && std::ranges::binary_search(binder_->names(), s);
               });
      };
      const TensorMeta* t = node->meta.tensor();
      return (!node->meta.sym() || known(*node->meta.sym())) &&
             (!t || (std::ranges::all_of(t->sizes, known) && std::ranges::all_of(t->strides, known)));
    });
  }

  Result<std::vector<Value>> run(const std::vector<Value>& inputs) {
    const std::lock_guard lock(mutex_);
    if (own_generator_) *own_generator_ = Generator();
    if (parts_) return run_parts(inputs);
    if (!binder_) return run(instances_.back(), inputs);
    TRY(const std::span<const std::int64_t> sizes, binder_->bind(inputs));
    auto found = std::prev(instances_.end());
    if (instances_.empty() || !std::ranges::equal(found->sizes, sizes)) {
      found = std::ranges::find_if(instances_, [&](const Instance& i) { return std::ranges::equal(i.sizes, sizes); });
      if (found != instances_.end()) {
        instances_.splice(instances_.end(), instances_, found);
      } else {
        TRY_DO(instantiate(sizes));
      }
    }
    return run(instances_.back(), inputs);
  }

 private:
  static constexpr std::size_t most_instances = 16;
  static constexpr const char* small = "0 and 1 get code of their own";

  /// Code, and the sizes that it is for.
  struct Entry {
    int number = 1;
    bool symbolic = false;
    SizeSet fixed;  ///< sizes that it has as numbers; others are at least 2
    std::vector<Guard> guards;
    codegen::CompiledProgram compiled;
    std::optional<schedule::Plan> plan;  ///< of symbolic code with verification: the whole plan
  };
  /// What runs for one set of sizes.
  struct Instance {
    std::vector<std::int64_t> sizes;  ///< as the binder has them
    const Entry* entry = nullptr;     ///< null: it is interpreted
    std::unique_ptr<codegen::Executable> executable;
  };
  /// A graph with sizes that only its own values decide: a part before the call that makes one, and a part after it,
  /// which has symbols for them.
  struct Parts {
    schedule::SplitGraph split;
    std::unique_ptr<CompiledGraph> before, after;
  };

  Status prepare_passed() {
    if (!options_.generator && !graph_->children.empty()) own_generator_ = std::make_shared<Generator>();
    if (auto split = schedule::split_at_values(*graph_)) return prepare_parts(*std::move(split));
    bool has_symbols = false;
    int index = 0;
    for (const Node* node : graph_->placeholders()) {
      has_symbols |= partita::has_symbols(node->meta);
      if (options_.fixed_parameters && options_.config.pack_parameters &&
          (node->note.starts_with("ParamAOTInput") || node->note.starts_with("BufferAOTInput")))
        fixed_.insert(index);
      ++index;
    }
    if (has_symbols) {
      binder_.emplace(*graph_);
      return {};
    }
    now_at("planning kernels");
    TRY(const schedule::Plan plan, make_plan(*graph_, {}, options_));
    TRY(const Entry* entry, add_entry(plan, {.graph = graph_->name, .kind = SizeCompilation::Kind::Fixed}));
    return load(*entry, {}, {});
  }

  Status prepare_parts(schedule::SplitGraph split) {
    parts_ = std::make_unique<Parts>();
    if (!options_.generator) own_generator_ = std::make_shared<Generator>();
    BackendOptions own = options_;
    own.generator = generator();
    const auto prepared = [&](std::unique_ptr<Graph> graph) -> Result<std::unique_ptr<CompiledGraph>> {
      auto part = std::make_unique<CompiledGraph>(std::move(graph), own);
      part->stop_after_ = stop_after_;
      TRY_DO(part->prepare_passed());
      return part;
    };
    if (split.before) {
      TRY(parts_->before, prepared(std::move(split.before)));
    }
    TRY(parts_->after, prepared(std::move(split.after)));
    parts_->after->interprets_ = true;
    parts_->split = std::move(split);
    return {};
  }

  Result<std::vector<Value>> run_parts(const std::vector<Value>& inputs) {
    std::vector<Value> pool = inputs;
    const auto taken = [&](const std::vector<std::size_t>& which) {
      std::vector<Value> values;
      for (const std::size_t i : which) values.push_back(pool[i]);
      return values;
    };
    if (parts_->before) {
      TRY(std::vector<Value> made, parts_->before->run(taken(parts_->split.before_inputs)));
      std::ranges::move(made, std::back_inserter(pool));
    }
    TRY(std::vector<Value> decided, interpreted(*parts_->split.call, taken(parts_->split.call_inputs)));
    std::ranges::move(decided, std::back_inserter(pool));
    return parts_->after->run(taken(parts_->split.after_inputs));
  }

  std::shared_ptr<Generator> generator() const { return options_.generator ? options_.generator : own_generator_; }

  Result<std::vector<Value>> interpreted(const Graph& graph, std::vector<Value> inputs) const {
    InterpOptions how;
    how.threads = options_.config.threads;
    how.generator = generator();
    how.progress = options_.progress;
    return interpret(graph, std::move(inputs), how);
  }

  Result<std::vector<Value>> run(const Instance& instance, const std::vector<Value>& inputs) const {
    return instance.entry ? instance.executable->run(inputs) : interpreted(*graph_, inputs);
  }

  /// Adds what runs for these sizes as the last instance.
  Status instantiate(std::span<const std::int64_t> values) {
    now_at("planning kernels");
    const SizeSet sizes = binder_->named(values);
    Result<const Entry*> entry = entry_for(sizes);
    if (!entry && interprets_ && entry.error().fault == Fault::Unsupported) {
      SizeCompilation told{.graph = graph_->name, .number = 0, .sizes = sizes};
      told.why_not = entry.error().message;
      tell_interpreted(std::move(told));
      entry = nullptr;
    }
    if (!entry) return std::move(entry).error();
    const std::vector<std::int64_t> own(values.begin(), values.end());
    if (!*entry)
      instances_.push_back({own, nullptr, nullptr});
    else
      TRY_DO(load(**entry, sizes, own));
    if (instances_.size() <= most_instances) return {};
    // Code for sizes of its own is not made again.
    const auto old = std::ranges::find_if(instances_, [](const Instance& i) { return !i.entry || i.entry->symbolic; });
    if (old != std::prev(instances_.end())) instances_.erase(old);
    return {};
  }

  void tell_interpreted(SizeCompilation told) {
    told.kind = SizeCompilation::Kind::Interpreted;
    if (!std::exchange(told_interpreted_, true) && options_.on_sizes) options_.on_sizes(told);
  }

  /// The code for these sizes, made if there is none; null when there may be no more code.
  Result<const Entry*> entry_for(const SizeSet& sizes) {
    // Compiled code checks nothing while it runs, so that sizes that do not fit together are refused here.
    if (auto fit = schedule::specialise(*graph_, sizes); !fit) return std::move(fit).error();
    SizeCompilation told{.graph = graph_->name, .number = static_cast<int>(entries_.size()) + 1, .sizes = sizes};
    for (const Entry& entry : entries_) {
      const std::vector<Guard> broken = broken_guards(entry, sizes);
      if (broken.empty()) return &entry;
      told.tried.push_back({entry.number, {}});
      for (const Guard& guard : broken) told.tried.back().broken.push_back({guard, advice_for(guard, *graph_)});
    }
    if (static_cast<int>(entries_.size()) >= options_.config.recompile_limit) {
      told.why_not = fmt::format("it was compiled {} times (recompile_limit)", entries_.size());
      tell_interpreted(std::move(told));
      return nullptr;
    }
    return compile(sizes, std::move(told));
  }

  /// All that these sizes break of what code is for.
  static std::vector<Guard> broken_guards(const Entry& entry, const SizeSet& sizes) {
    std::vector<Guard> out = schedule::broken_guards(entry.guards, sizes);
    for (const auto& [symbol, value] : sizes)
      if (value < 2 && !entry.fixed.contains(symbol)) out.push_back({sym_le(2, SymExpr::symbol(symbol)), small});
    return out;
  }

  static Guard equal(const std::string& symbol, std::int64_t value, std::string reason) {
    return {sym_eq(SymExpr::symbol(symbol), value), std::move(reason)};
  }

  Result<const Entry*> compile(const SizeSet& sizes, SizeCompilation told) {
    SizeSet rest;
    for (const auto& [symbol, value] : sizes) {
      (value < 2 ? told.fixed : rest).emplace(symbol, value);
      if (value < 2) told.guards.push_back(equal(symbol, value, small));
    }
    if (rest.empty()) told.why_not = small;
    while (keeps_symbols_ && !rest.empty()) {
      Result<schedule::Plan> plan = symbolic_plan(told.fixed, rest);
      if (!plan && plan.error().fault != Fault::Unsupported) return std::move(plan).error();
      if (!plan) {
        why_no_symbols_ = plan.error().message;
        keeps_symbols_ = !told.fixed.empty();
        break;
      }
      // A symbol that the plan needs as a number anyway is one from the start: kernels then know it, too.
      const std::size_t before = rest.size();
      for (const Guard& guard : plan->guards)
        if (const auto symbol = fixed_by(guard, rest)) {
          told.guards.push_back(guard);
          told.fixed.insert(rest.extract(*symbol));
        }
      if (rest.size() == before) {
        told.guards.insert(told.guards.end(), plan->guards.begin(), plan->guards.end());
        return add_entry(*plan, told);
      }
      if (rest.empty()) told.why_not = told.guards.back().reason;
    }
    if (!rest.empty()) told.why_not = why_no_symbols_;
    told.kind = SizeCompilation::Kind::Fixed;
    told.fixed = sizes;
    for (const auto& [symbol, value] : rest) told.guards.push_back(equal(symbol, value, told.why_not));
    TRY(const schedule::Plan plan, make_plan(*graph_, sizes, options_));
    return add_entry(plan, told);
  }

  /// The symbol that can have no other value where the guard holds: the guard is linear in it alone.
  static std::optional<std::string> fixed_by(const Guard& guard, const SizeSet& sizes) {
    const std::vector<std::string> symbols = guard.condition.symbols();
    if (guard.condition.kind() != SymKind::Eq || symbols.size() != 1 || !sizes.contains(symbols[0]))
      return std::nullopt;
    const SymExpr s = SymExpr::symbol(symbols[0]), e = guard.condition.args()[0] - guard.condition.args()[1];
    const auto next = [&](const std::string&) { return std::optional(s + 1); };
    const SymExpr slope = e.substitute(next) - e;
    return slope.is_int() && !slope.is(0) ? std::optional(symbols[0]) : std::nullopt;
  }

  /// A plan for all sizes of the symbols in `rest`, of which these decide. `fixed`: those that are numbers.
  Result<schedule::Plan> symbolic_plan(const SizeSet& fixed, const SizeSet& rest) const {
    if (fixed.empty()) return make_plan(*graph_, rest, options_, true);
    TRY(const auto graph, schedule::fix_symbols(*graph_, fixed));
    return make_plan(*graph, rest, options_, true);
  }

  Result<const Entry*> add_entry(const schedule::Plan& given, const SizeCompilation& told) {
    if (binder_ && options_.on_sizes) options_.on_sizes(told);
    Entry entry{.number = told.number,
                .symbolic = told.kind == SizeCompilation::Kind::Symbolic,
                .fixed = told.fixed,
                .guards = told.guards};
    schedule::Plan plan = given;
    if (entry.symbolic)  // kernels take the symbols' names
      for (const auto& [symbol, value] : told.sizes)
        if (!told.fixed.contains(symbol)) plan.symbols.emplace(symbol, value);
    TRY(entry.compiled, generate(plan, told));
    if (entry.symbolic && verification()) entry.plan = std::move(plan);
    entries_.push_back(std::move(entry));
    return &entries_.back();
  }

  /// Makes a plan's code. The trace says what was made, for what and why.
  Result<codegen::CompiledProgram> generate(const schedule::Plan& plan, const SizeCompilation& told) {
    trace::Compilation part(traced_, told.number > 1);
    if (trace::on()) {
      std::vector<std::string> reasons;
      for (const SizeCompilation::Tried& tried : told.tried)
        for (const SizeCompilation::Broken& b : tried.broken)
          reasons.push_back(fmt::format("{}/{}: {}  # {}; {}", traced_.frame.value_or(0), tried.number - 1,
                                        b.guard.condition.str(), b.guard.reason, b.advice));
      if (told.number > 1) trace::artifact("recompile_reasons", nlohmann::ordered_json(reasons));
      std::vector<Guard> guards = told.guards;
      for (const auto& [symbol, value] : told.fixed)
        guards.push_back({sym_eq(SymExpr::symbol(symbol), value), told.why_not});
      trace::guards(*graph_, guards);
      trace::output_code(graph_->name, print(plan));
    }
    const trace::Stage timed("code_gen");
    auto made = codegen::compile_program(plan, cpu_options());
    if (!made) part.failed(made.error());
    const codegen::CompileTimes took = made ? made->times : codegen::CompileTimes();
    for (const auto& [stage, ms] : {std::pair("llvm_emit", took.emit_ms),
                                    {"llvm_optimise", took.optimise_ms},
                                    {"llvm_generate", took.generate_ms},
                                    {"link", took.link_ms},
                                    {"program", took.total_ms - took.compile_ms - took.link_ms}})
      trace::add_time(stage, ms, options_.times.get());
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

  /// Adds an instance as the last.
  Status load(const Entry& entry, const SizeSet& sizes, std::vector<std::int64_t> values) {
    if (entry.plan)
      if (auto verified = schedule::instantiate(*entry.plan, sizes); !verified) return std::move(verified).error();
    codegen::ExecutorOptions how;
    how.generator = generator();
    how.fixed_inputs = fixed_;
    how.packed = packed_;
    how.compile_sub_graph = [this](const Graph& graph, std::shared_ptr<Generator> generator) {
      return compile_sub_graph(graph, std::move(generator));
    };
    const trace::Stage timed("prepare_calls", options_.times.get());
    const codegen::CompiledProgram& compiled = entry.compiled;
    TRY(auto executable, codegen::load_program(compiled.program, entry.symbolic ? sizes : SizeSet(), compiled.code,
                                               graph_->attributes, how));
    instances_.push_back({std::move(values), &entry, std::move(executable)});
    return {};
  }

  /// Instances of one program share its sub graphs.
  Result<CompiledFn> compile_sub_graph(const Graph& graph, std::shared_ptr<Generator> generator) {
    CompiledFn& known = sub_graphs_[&graph];
    if (known) return known;
    BackendOptions own = options_;
    own.generator = std::move(generator);
    auto compiled = std::make_shared<CompiledGraph>(graph.clone(), own);
    TRY_DO(compiled->prepare(stop_after_));
    if (!compiled->knows_sizes()) return unsupported("backend.symbolic", "a size that is known only at run time");
    known = [compiled](std::vector<Value> inputs) { return compiled->run(inputs); };
    return known;
  }

  std::mutex mutex_;
  std::unique_ptr<Graph> graph_;
  BackendOptions options_;
  int stop_after_ = -1;
  std::shared_ptr<Generator> own_generator_;  ///< for several executables that draw; null: there is one of its own
  std::optional<SymbolBinder> binder_;        ///< of a graph with symbols
  bool keeps_symbols_ = true;                 ///< false once a plan could not
  std::string why_no_symbols_;
  bool interprets_ = false;  ///< what is not supported
  bool told_interpreted_ = false;
  std::set<int> fixed_;
  const std::shared_ptr<codegen::PackedWeights> packed_ = codegen::packed_weights();
  std::list<Entry> entries_;
  std::list<Instance> instances_;  ///< the last used last
  std::map<const Graph*, CompiledFn> sub_graphs_;
  std::unique_ptr<Parts> parts_;
  trace::CompileId traced_ = trace::current();
};

/// Compiles with only the first `stop_after` passes; -1: all.
CompileFn compiler(const BackendOptions& options, int stop_after) {
  return [options, stop_after](const Graph& graph) {
    return trace::compiled([&]() -> Result<CompiledFn> {
      trace::input(graph, "aot_inference_graph");
      const trace::Stage timed("inductor_compile");
      auto compiled = std::make_shared<CompiledGraph>(graph.clone(), options);
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
