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
#include "codegen/cpu/jit.h"
#include "codegen/save_args.h"
#include "codegen/stored_graph.h"
#include "codegen/worker.h"
#include "core/aot/autograd_cache.h"
#include "core/aot/graph_key.h"
#include "core/aot/pipeline.h"
#include "core/base/build_id.h"
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

/// What decides code besides the graph and the configuration: this machine, and the options.
std::string compiler_text(const BackendOptions& options) {
  const codegen::Processor& host = codegen::host_processor();
  const loops::Target target = codegen::host_target(options.config.threads);
  std::string text = fmt::format("processor {}\nfeatures {}\ntriple {}\n{} threads, {} bytes of cache\n", host.name,
                                 host.features, host.triple, target.threads, target.cache_bytes);
  for (LibraryRoutine routine : target.routines) text += fmt::format("routine {}\n", int(routine));
  for (DType dtype : target.channels_last) text += fmt::format("channels last for {}\n", short_name(dtype));
  return text + fmt::format("fixed parameters {}\n", options.fixed_parameters);
}

KeyParts cache_key(const Graph& graph, const BackendOptions& options) {
  KeyParts parts = graph_parts(graph);
  for (auto& part : common_parts(options.config)) parts.push_back(std::move(part));
  parts.emplace_back("compiler", compiler_text(options));
  return parts;
}

bool caches(const BackendOptions& options) {
  return options.store && !options.config.force_disable_caches && !build_id().empty();
}

class CompiledGraph {
 public:
  /// `source` makes the graph, when it is needed; `given`: its attributes.
  CompiledGraph(std::string name, GraphSource source, std::map<std::string, Tensor> given,
                const BackendOptions& options)
      : name_(std::move(name)), source_(std::move(source)), given_(std::move(given)), options_(options) {}
  /// Of a graph after the passes.
  CompiledGraph(std::unique_ptr<Graph> graph, const BackendOptions& options)
      : name_(graph->name), constants_(graph->attributes), graph_(std::move(graph)), options_(options) {}

  const std::string& name() const { return name_; }

  /// Runs the first `stop_after` passes, -1: all, and compiles unless sizes are symbols. `key`: of the graph in the
  /// cache, in which it is looked for first; empty: it is not.
  Status prepare(int stop_after, KeyParts key) {
    stop_after_ = stop_after;
    key_ = std::move(key);
    if (key_.empty()) given_.clear();
    if (!key_.empty()) {
      const auto payload = find_entry(*options_.store, fxgraph_cache, key_, name_);
      const bool hit = payload && take(*payload);
      cache_log().add({fxgraph_cache, hit ? CacheOutcome::Hit : CacheOutcome::Miss, name_, key_of(key_), {}});
      if (hit) return {};
    }
    TRY_DO(need_graph());
    return prepare_passed();
  }

  /// Prepares what the cache has; false when it cannot be used.
  bool prepare_stored(GraphEntry entry) {
    key_ = std::move(entry.parts);
    return take(entry.payload);
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
    bool told = true;                    ///< false: it comes from the cache, and on_sizes was not called for it
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

  /// Makes the graph and runs the passes on it, unless that was done.
  Status need_graph() {
    if (graph_) return {};
    const trace::Compilation part(traced_);
    TRY(graph_, source_());
    trace::artifact("before_post_grad_graph", *graph_);
    TRY_DO(run_passes_until(*graph_, options_, stop_after_));
    trace::artifact("inductor_post_grad_graph", *graph_);
    for (const auto& [name, tensor] : graph_->attributes) constants_.insert_or_assign(name, tensor);
    return {};
  }

  /// Finds out what has to be known of the inputs, from the placeholders of a graph that outlives this.
  void sign(const Graph& graph) {
    binder_.reset();
    fixed_.clear();
    int index = 0;
    for (const Node* node : graph.placeholders()) {
      if (!binder_ && partita::has_symbols(node->meta)) binder_.emplace(graph);
      if (options_.fixed_parameters && options_.config.pack_parameters &&
          (node->note.starts_with("ParamAOTInput") || node->note.starts_with("BufferAOTInput")))
        fixed_.insert(index);
      ++index;
    }
  }

  /// Takes a stored entry. False, after a warning, for what cannot be used.
  bool take(std::string_view payload) {
    auto stored = read_stored_graph(payload);
    const auto unreadable = [&](const Diagnostic& why) {
      warn_unreadable(fxgraph_cache, name_, why);
      entries_.clear();
      return false;
    };
    if (!stored) return unreadable(stored.error());
    auto constants = constants_of(stored->constants, given_);
    if (!constants) return false;
    for (StoredGraph::Variant& v : stored->variants) {
      auto program = codegen::read_program(v.program);
      if (!program) return unreadable(program.error());
      Entry& entry = entries_.emplace_back(Entry{.number = static_cast<int>(entries_.size()) + 1,
                                                 .symbolic = v.symbolic,
                                                 .fixed = std::move(v.fixed),
                                                 .guards = std::move(v.guards)});
      entry.compiled.program = std::make_shared<codegen::Program>(*std::move(program));
      entry.compiled.code_key = std::move(v.code);
      entry.told = false;
    }
    signature_ = signature(stored->name, stored->placeholders);
    sign(*signature_);
    if (!binder_ && (entries_.size() != 1 || !link(entries_.front()))) {
      entries_.clear();
      return false;
    }
    name_ = std::move(stored->name);
    constants_ = *std::move(constants);
    keeps_symbols_ = stored->keeps_symbols;
    why_no_symbols_ = std::move(stored->why_not);
    fitting_ = std::move(stored->fitting);
    if (binder_) return true;
    const Status loaded = load(entries_.front(), {}, {});
    return loaded || unreadable(loaded.error());
  }

  /// Loads the machine code of a stored entry; false when the store has it no more, or it cannot be used.
  bool link(Entry& entry) {
    codegen::CompiledProgram& compiled = entry.compiled;
    if (compiled.code || compiled.program->kernels.empty()) return true;
    const trace::Stage timed("link", options_.times.get());
    const auto bytes = options_.store->find(compiled.code_key);
    if (!bytes) return false;
    const auto objects = codegen::unpack(*bytes);
    auto code = objects ? codegen::LoadedCode::link(*objects) : objects.error();
    if (!code) warn_unreadable(fxgraph_cache, name_, code.error());
    if (code) compiled.code = *std::move(code);
    return compiled.code != nullptr;
  }

  /// Keeps all code in the cache. What cannot be kept is a bypass.
  Status save() {
    if (key_.empty()) return {};
    auto bytes = stored();
    if (bytes) {
      put_entry(*options_.store, fxgraph_cache, key_, *std::move(bytes), name_);
      return {};
    }
    return not_kept(bytes.error().message);
  }

  Status not_kept(const std::string& why) {
    if (key_.empty()) return {};
    key_.clear();
    given_.clear();
    return bypass(fxgraph_cache, name_, why, options_.config);
  }

  Result<std::string> stored() const {
    StoredGraph out{.name = name_,
                    .placeholders = placeholders_of(graph_ ? *graph_ : *signature_),
                    .keeps_symbols = keeps_symbols_,
                    .why_not = why_no_symbols_,
                    .variants = {},
                    .fitting = fitting_,
                    .constants = {}};
    std::map<std::string, Tensor> needed;
    for (const Entry& e : entries_) {
      TRY(std::string program, codegen::program_bytes(*e.compiled.program));
      out.variants.push_back({e.symbolic, e.fixed, e.guards, std::move(program), e.compiled.code_key});
      for (const schedule::PlanBuffer& b : e.compiled.program->plan.buffers)
        if (b.kind == schedule::PlanBuffer::Kind::Constant) needed.emplace(b.attribute, constants_.at(b.attribute));
    }
    TRY(out.constants, store_constants(needed, given_));
    return to_bytes(std::move(out));
  }

  Status prepare_passed() {
    if (!options_.generator && !graph_->children.empty()) own_generator_ = std::make_shared<Generator>();
    if (auto split = schedule::split_at_values(*graph_)) {
      TRY_DO(not_kept("a size that only values decide"));
      return prepare_parts(*std::move(split));
    }
    sign(*graph_);
    if (binder_) return {};
    now_at("planning kernels");
    TRY(const schedule::Plan plan, make_plan(*graph_, {}, options_));
    TRY(const Entry* entry, add_entry(plan, {.graph = name_, .kind = SizeCompilation::Kind::Fixed}));
    TRY_DO(load(*entry, {}, {}));
    return save();
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
      SizeCompilation told{.graph = name_, .number = 0, .sizes = sizes};
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
    bool changed = false;
    if (std::ranges::find(fitting_, sizes) == fitting_.end()) {
      TRY_DO(need_graph());
      if (auto fit = schedule::specialise(*graph_, sizes); !fit) return std::move(fit).error();
      changed = fitting_.size() < most_instances;
      if (changed) fitting_.push_back(sizes);
    }
    SizeCompilation told{.graph = name_, .number = static_cast<int>(entries_.size()) + 1, .sizes = sizes};
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const std::vector<Guard> broken = broken_guards(*entry, sizes);
      if (broken.empty() && link(*entry)) {
        tell_stored(*entry, told);
        if (changed) TRY_DO(save());
        return &*entry;
      }
      if (broken.empty()) {  // the store has its code no more
        entry = entries_.erase(entry);
        continue;
      }
      told.tried.push_back({entry->number, {}});
      for (const Guard& guard : broken)
        told.tried.back().broken.push_back({guard, advice_for(guard, graph_ ? *graph_ : *signature_)});
      ++entry;
    }
    TRY_DO(need_graph());
    if (static_cast<int>(entries_.size()) >= options_.config.recompile_limit) {
      told.why_not = fmt::format("it was compiled {} times (recompile_limit)", entries_.size());
      tell_interpreted(std::move(told));
      return nullptr;
    }
    TRY(const Entry* made, compile(sizes, std::move(told)));
    TRY_DO(save());
    return made;
  }

  /// Tells, at its first use, what code is for that comes from the cache.
  void tell_stored(Entry& entry, SizeCompilation told) {
    if (std::exchange(entry.told, true) || !options_.on_sizes) return;
    told.number = entry.number;
    told.kind = entry.symbolic ? SizeCompilation::Kind::Symbolic : SizeCompilation::Kind::Fixed;
    told.guards = entry.guards;
    told.fixed = entry.fixed;
    if (!entry.symbolic) told.why_not = entry.guards.empty() ? why_no_symbols_ : entry.guards.back().reason;
    options_.on_sizes(told);
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
    entry.compiled.objects.clear();
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
      trace::output_code(name_, print(plan));
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
    if (const auto store = options_.store; store && !options_.config.force_disable_caches) {
      cpu.configuration = code_key(options_.config);
      cpu.load_code = [store](const std::string& key) { return store->find(key); };
      cpu.store_code = [store, name = name_](const std::string& key, const std::string& code) {
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
    TRY(auto executable,
        codegen::load_program(compiled.program, entry.symbolic ? sizes : SizeSet(), compiled.code, constants_, how));
    instances_.push_back({std::move(values), &entry, std::move(executable)});
    return {};
  }

  /// Instances of one program share its sub graphs.
  Result<CompiledFn> compile_sub_graph(const Graph& graph, std::shared_ptr<Generator> generator) {
    CompiledFn& known = sub_graphs_[&graph];
    if (known) return known;
    BackendOptions own = options_;
    own.generator = std::move(generator);
    const auto source = [&graph]() -> Result<std::unique_ptr<Graph>> { return graph.clone(); };
    auto compiled = std::make_shared<CompiledGraph>(graph.name, source, graph.attributes, own);
    TRY_DO(compiled->prepare(stop_after_, {}));
    if (!compiled->knows_sizes()) return unsupported("backend.symbolic", "a size that is known only at run time");
    known = [compiled](std::vector<Value> inputs) { return compiled->run(inputs); };
    return known;
  }

  std::mutex mutex_;
  std::string name_;
  GraphSource source_;
  std::map<std::string, Tensor> given_;      ///< attributes before the passes
  std::map<std::string, Tensor> constants_;  ///< and after them
  KeyParts key_;                             ///< in the cache; empty: it is not kept there
  std::unique_ptr<Graph> graph_;             ///< after the passes; null until it is needed
  std::unique_ptr<Graph> signature_;         ///< the placeholders of a stored graph
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
  std::vector<SizeSet> fitting_;  ///< sizes that inference takes
  std::list<Entry> entries_;
  std::list<Instance> instances_;  ///< the last used last
  std::map<const Graph*, CompiledFn> sub_graphs_;
  std::unique_ptr<Parts> parts_;
  trace::CompileId traced_ = trace::current();
};

/// The graph must outlive the result.
Result<std::shared_ptr<CompiledGraph>> compiled_graph(const Graph& graph, const BackendOptions& options,
                                                      int stop_after) {
  const auto source = [&graph]() -> Result<std::unique_ptr<Graph>> { return graph.clone(); };
  auto made = std::make_shared<CompiledGraph>(graph.name, source, graph.attributes, options);
  bool cached = stop_after < 0 && caches(options);
  if (cached && options.config.freezing && options.fixed_parameters) {
    TRY_DO(bypass(fxgraph_cache, graph.name, "Skipping graph with frozen constants", options.config));
    cached = false;
  }
  TRY_DO(made->prepare(stop_after, cached ? cache_key(graph, options) : KeyParts()));
  return made;
}

/// Compiles with only the first `stop_after` passes; -1: all.
CompileFn compiler(const BackendOptions& options, int stop_after) {
  return [options, stop_after](const Graph& graph) {
    return trace::compiled([&]() -> Result<CompiledFn> {
      trace::input(graph, "aot_inference_graph");
      const trace::Stage timed("inductor_compile");
      TRY(const auto compiled, compiled_graph(graph, options, stop_after));
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

std::shared_ptr<const GraphCache> cpu_cache(const BackendOptions& options) {
  if (options.worker || !caches(options) || !options.config.save_args.empty()) return nullptr;
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
