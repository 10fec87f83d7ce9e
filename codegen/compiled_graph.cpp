// A graph that runs for any sizes: finds or makes code whose guards the sizes keep, first for all sizes, else for these
// alone. Cuts the graph where values decide sizes; what cannot have code is interpreted.
#include "codegen/compiled_graph.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/aot/pipeline.h"
#include "core/base/assign.h"
#include "core/base/config.h"
#include "core/base/whereabouts.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/ir/symbols_of.h"
#include "core/ops/facts/effects.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "core/store/code_store.h"
#include "core/sym/float_symbol.h"

namespace partita {

Status run_passes_until(Graph& graph, const BackendOptions& options, int stop_after) {
  const trace::Stage timed(row_of(Stage::PostGradPasses).name, options.times.get());
  const ConfigScope scope(options.config);  // passes read it
  PassContext context;
  now_at("running the passes");
  const auto passed = post_grad_passes(graph, context, {.stop_after = stop_after});
  return passed ? Status() : Status(passed.error());
}

Result<schedule::Plan> make_plan(const Graph& graph, const SizeSet& sizes, const BackendOptions& options,
                                 bool symbolic) {
  const trace::Stage timed("plan", options.times.get());
  const ConfigScope scope(options.config);  // targets read it
  TRY(schedule::Plan plan, schedule::make_plan(graph, {.sizes = sizes,
                                                       .target = options.machine->target(options.config.threads),
                                                       .fuse = options.config.fuse,
                                                       .symbolic = symbolic}));
  options.machine->place(plan);
  return plan;
}

/// Is it a size that code for all sizes does not take?
bool is_small(const std::string& symbol, std::int64_t value) {
  return value < 2 && !is_float_symbol(symbol);
}

bool has_symbols(const Meta& meta) {
  if (const SymExpr* e = meta.sym()) return !e->is_int();
  const TensorMeta* t = meta.tensor();
  return t && (!concrete(t->sizes) || !concrete(t->strides));
}

std::set<int> fixed_inputs(const Graph& graph, const BackendOptions& options) {
  std::set<int> fixed;
  if (!options.fixed_parameters || !options.config.pack_parameters) return fixed;
  for (int index = 0; const Node* node : graph.placeholders()) {
    if (node->note.starts_with("ParamAOTInput") || node->note.starts_with("BufferAOTInput")) fixed.insert(index);
    ++index;
  }
  return fixed;
}

Status CompiledGraph::prepare(int stop_after, KeyParts key) {
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

bool CompiledGraph::knows_sizes() const {
  if (!graph_) return knew_sizes_;
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

Result<std::vector<Value>> CompiledGraph::run(const std::vector<Value>& inputs, std::span<const Tensor> into) {
  const std::lock_guard lock(mutex_);
  if (own_generator_) *own_generator_ = Generator();
  if (!binder_) return parts_ ? run_parts(inputs, into) : run(instances_.back(), inputs, into);
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
  return run(instances_.back(), inputs, into);
}

std::optional<std::string> CompiledGraph::unknown_symbol() const {
  for (const Node* node : *graph_)
    for (const std::string& s : symbols_of(node->meta))
      if (!is_unbacked(s) && !std::ranges::binary_search(binder_->names(), s)) return s;
  return std::nullopt;
}

Status CompiledGraph::need_graph() {
  if (graph_) return {};
  const trace::Compilation part(traced_);
  TRY(graph_, source_());
  if (!passed_) {
    trace::artifact(row_of(Stage::PostGradPasses).before, *graph_);
    TRY_DO(run_passes_until(*graph_, options_, stop_after_));
    trace::artifact(row_of(Stage::PostGradPasses).after, *graph_);
    keep_guards();
  }
  for (const auto& [name, tensor] : graph_->attributes) constants_.insert_or_assign(name, tensor);
  return {};
}

void CompiledGraph::keep_guards() {
  guards_.clear();
  const auto is_named = [names = SymbolBinder(*graph_).names()](const std::string& symbol) {
    return std::ranges::binary_search(names, symbol);
  };
  for (Guard& guard : graph_->shapes->guards())
    if (std::ranges::all_of(guard.condition.symbols(), is_named)) guards_.push_back(std::move(guard));
}

void CompiledGraph::sign(const Graph& graph) {
  binder_.reset();
  fixed_ = fixed_inputs(graph, options_);
  for (const Node* node : graph.placeholders())
    if (!binder_ && partita::has_symbols(node->meta)) binder_.emplace(graph);
}

Status CompiledGraph::prepare_passed() {
  if (!options_.generator && !graph_->children.empty()) own_generator_ = std::make_shared<Generator>();
  if (auto split = schedule::split_at_values(*graph_)) {
    if (!guards_.empty()) sign(*graph_);
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

Status CompiledGraph::prepare_parts(schedule::SplitGraph split) {
  parts_ = std::make_unique<Parts>();
  if (!options_.generator) own_generator_ = std::make_shared<Generator>();
  BackendOptions own = options_;
  own.generator = generator();
  const auto prepared = [&](std::unique_ptr<Graph> graph) -> Result<std::unique_ptr<CompiledGraph>> {
    KeyParts key = key_.empty() ? KeyParts() : cache_key(*graph, own);
    if (!key.empty()) key.emplace_back("passes", "done");
    auto part = std::make_unique<CompiledGraph>(std::move(graph), own);
    part->stop_after_ = stop_after_;
    part->key_ = std::move(key);
    part->given_ = given_;
    TRY_DO(part->prepare_passed());
    return part;
  };
  if (split.before) TRY_DO(assign(parts_->before, prepared(std::move(split.before))));
  TRY(parts_->after, prepared(std::move(split.after)));
  parts_->after->interprets_ = true;
  parts_->split = std::move(split);
  return save();
}

Result<std::vector<Value>> CompiledGraph::run_parts(const std::vector<Value>& inputs, std::span<const Tensor> into) {
  std::vector<Value> pool = inputs;
  const auto taken = [&](const std::vector<std::size_t>& which) -> Result<std::vector<Value>> {
    std::vector<Value> values;
    for (const std::size_t i : which) {
      if (i >= pool.size()) return damaged_entry();
      values.push_back(pool[i]);
    }
    return values;
  };
  if (parts_->before) {
    TRY(std::vector<Value> given, taken(parts_->split.before_inputs));
    TRY(std::vector<Value> made, parts_->before->run(given));
    std::ranges::move(made, std::back_inserter(pool));
  }
  TRY(std::vector<Value> given, taken(parts_->split.call_inputs));
  TRY(std::vector<Value> decided, interpreted(*parts_->split.call, std::move(given)));
  std::ranges::move(decided, std::back_inserter(pool));
  TRY(given, taken(parts_->split.after_inputs));
  return parts_->after->run(given, into);
}

Result<std::vector<Value>> CompiledGraph::interpreted(const Graph& graph, std::vector<Value> inputs) const {
  InterpOptions how;
  how.threads = options_.config.threads;
  how.generator = generator();
  how.progress = options_.progress;
  how.communicator = options_.communicator.get();
  return interpret(graph, std::move(inputs), how);
}

Result<std::vector<Value>> CompiledGraph::run(const Instance& instance, const std::vector<Value>& inputs,
                                              std::span<const Tensor> into) {
  if (instance.other) return instance.other->run(inputs, into);
  if (instance.before_passes) return interpreted(*instance.before_passes, inputs);
  if (parts_) return run_parts(inputs, into);
  return instance.entry ? instance.executable->run(inputs, into) : interpreted(*graph_, inputs);
}

Status CompiledGraph::instantiate(std::span<const std::int64_t> values) {
  now_at("planning kernels");
  const SizeSet sizes = binder_->named(values);
  const std::vector<std::int64_t> own(values.begin(), values.end());
  // What is stored may come from passes that met other sizes; its code has its own guards.
  const bool has_code = std::ranges::any_of(entries_, [&](const Entry& e) { return broken_guards(e, sizes).empty(); });
  if (!has_code && !parts_) TRY_DO(need_graph());
  if (const std::vector<Guard> broken = schedule::broken_guards(guards_, sizes); !broken.empty() && !has_code)
    return instantiate_other(own, sizes, broken);
  if (parts_) {
    if (instances_.size() == most_instances) instances_.pop_front();
    instances_.push_back({own});
    return {};
  }
  Result<const Entry*> entry = entry_for(sizes);
  if (!entry && interprets_ && entry.error().fault == Fault::Unsupported) {
    SizeCompilation report{.graph = name_, .number = 0, .sizes = sizes};
    report.why_not = entry.error().message;
    report_interpreted(std::move(report));
    entry = nullptr;
  }
  if (!entry) return std::move(entry).error();
  if (!*entry)
    instances_.push_back({own});
  else
    TRY_DO(load(**entry, sizes, own));
  if (instances_.size() <= most_instances) return {};
  // Code for sizes of its own is not made again.
  const auto old = std::ranges::find_if(instances_, [](const Instance& i) { return !i.entry || i.entry->symbolic; });
  if (old != std::prev(instances_.end())) instances_.erase(old);
  return {};
}

Status CompiledGraph::instantiate_other(const std::vector<std::int64_t>& values, const SizeSet& sizes,
                                        const std::vector<Guard>& broken) {
  const auto add = [&](Instance instance) {
    if (instances_.size() == most_instances) instances_.pop_front();
    instances_.push_back(std::move(instance));
  };
  TRY(std::shared_ptr<const Graph> written, source_());
  const std::size_t made = entries_.size() + others_.size();
  SizeCompilation report{.graph = name_,
                         .number = static_cast<int>(made) + 1,
                         .sizes = sizes,
                         .fixed = sizes,
                         .kind = SizeCompilation::Kind::Fixed,
                         .why_not = "the passes took other sizes for granted: " + broken[0].reason};
  SizeCompilation::Tried& tried = report.tried.emplace_back();
  for (const Guard& guard : broken) tried.broken.push_back({guard, advice_for(guard, *written)});
  std::unique_ptr<CompiledGraph>& other = others_[sizes];
  if (!other) {
    const auto drop = [&](std::string why_not) -> Status {
      others_.erase(sizes);
      report.why_not = std::move(why_not);
      report.fixed.clear();
      report_interpreted(std::move(report));
      add({.sizes = values, .before_passes = std::move(written)});
      return {};
    };
    if (static_cast<int>(made) >= options_.config.recompile_limit)
      return drop(fmt::format("it was compiled {} times (recompile_limit)", made));
    const auto fixed = [&]() -> Result<std::unique_ptr<Graph>> {
      TRY(std::unique_ptr<Graph> graph, schedule::specialise(*written, sizes));
      TRY_DO(settle_annotations(*graph));  // strides, too, may follow from other sizes
      return graph;
    };
    auto compiled = std::make_unique<CompiledGraph>(name_, fixed, written->attributes, options_);
    const Status prepared = compiled->prepare(stop_after_, {});
    if (!prepared && prepared.error().fault != Fault::Unsupported) {
      others_.erase(sizes);
      return prepared;
    }
    if (!prepared) return drop(prepared.error().message);
    compiled->source_ = nullptr;
    other = std::move(compiled);
    if (options_.on_sizes) options_.on_sizes(report);
  }
  add({.sizes = values, .other = other.get()});
  return {};
}

void CompiledGraph::report_interpreted(SizeCompilation report) {
  report.kind = SizeCompilation::Kind::Interpreted;
  if (!std::exchange(reported_interpreted_, true) && options_.on_sizes) options_.on_sizes(report);
}

Result<const CompiledGraph::Entry*> CompiledGraph::entry_for(const SizeSet& sizes) {
  // Compiled code checks nothing while it runs, so that sizes that do not fit together are refused here.
  bool changed = false;
  if (std::ranges::find(fitting_, sizes) == fitting_.end()) {
    TRY_DO(need_graph());
    if (const auto symbol = unknown_symbol()) {
      report_interpreted({.graph = name_,
                          .number = static_cast<int>(entries_.size()) + 1,
                          .sizes = sizes,
                          .why_not = fmt::format("no input tells {}, of which sizes are made", *symbol)});
      return nullptr;
    }
    const bool keeps = schedule::broken_guards(guards_, sizes).empty();
    if (keeps)
      if (auto fit = schedule::specialise(*graph_, sizes); !fit) return std::move(fit).error();
    // What passes decompose was checked for sizes from 2 on only.
    if (source_ &&
        (!keeps || std::ranges::any_of(sizes, [](const auto& size) { return is_small(size.first, size.second); }))) {
      TRY(const std::unique_ptr<Graph> written, source_());
      if (auto fit = schedule::specialise(*written, sizes); !fit && fit.error().fault != Fault::Unsupported)
        return std::move(fit).error();
    }
    changed = fitting_.size() < most_instances;
    if (changed) fitting_.push_back(sizes);
  }
  SizeCompilation report{.graph = name_, .number = static_cast<int>(entries_.size()) + 1, .sizes = sizes};
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const std::vector<Guard> broken = broken_guards(*entry, sizes);
    if (broken.empty() && link(*entry)) {
      report_stored(*entry, report);
      if (changed) TRY_DO(save());
      return &*entry;
    }
    if (broken.empty()) {  // the store has its code no more
      entry = entries_.erase(entry);
      continue;
    }
    report.tried.push_back({entry->number, {}});
    for (const Guard& guard : broken)
      report.tried.back().broken.push_back({guard, advice_for(guard, graph_ ? *graph_ : *signature_)});
    ++entry;
  }
  TRY_DO(need_graph());
  if (static_cast<int>(entries_.size()) >= options_.config.recompile_limit) {
    report.why_not = fmt::format("it was compiled {} times (recompile_limit)", entries_.size());
    report_interpreted(std::move(report));
    return nullptr;
  }
  TRY(const Entry* made, compile(sizes, std::move(report)));
  TRY_DO(save());
  return made;
}

void CompiledGraph::report_stored(Entry& entry, SizeCompilation report) {
  if (std::exchange(entry.reported, true) || !options_.on_sizes) return;
  report.number = entry.number;
  report.kind = entry.symbolic ? SizeCompilation::Kind::Symbolic : SizeCompilation::Kind::Fixed;
  report.guards = entry.guards;
  report.fixed = entry.fixed;
  if (!entry.symbolic) report.why_not = entry.guards.empty() ? why_no_symbols_ : entry.guards.back().reason;
  options_.on_sizes(report);
}

std::vector<Guard> CompiledGraph::broken_guards(const Entry& entry, const SizeSet& sizes) {
  std::vector<Guard> out = schedule::broken_guards(entry.guards, sizes);
  for (const auto& [symbol, value] : sizes)
    if (is_small(symbol, value) && !entry.fixed.contains(symbol))
      out.push_back({sym_le(2, SymExpr::symbol(symbol)), small});
  return out;
}

Guard CompiledGraph::equal(const std::string& symbol, std::int64_t value, std::string reason) {
  return {sym_eq(SymExpr::symbol(symbol), symbol_value(symbol, value)), std::move(reason)};
}

Result<const CompiledGraph::Entry*> CompiledGraph::compile(const SizeSet& sizes, SizeCompilation report) {
  SizeSet rest;
  for (const auto& [symbol, value] : sizes) {
    (is_small(symbol, value) ? report.fixed : rest).emplace(symbol, value);
    if (is_small(symbol, value)) report.guards.push_back(equal(symbol, value, small));
  }
  if (rest.empty()) report.why_not = small;
  while (keeps_symbols_ && !rest.empty()) {
    Result<schedule::Plan> plan = symbolic_plan(report.fixed, rest);
    if (!plan && plan.error().fault != Fault::Unsupported) return std::move(plan).error();
    if (!plan) {
      why_no_symbols_ = plan.error().message;
      keeps_symbols_ = !report.fixed.empty();
      break;
    }
    // A symbol that the plan needs as a number anyway is one from the start: kernels then know it, too.
    const std::size_t before = rest.size();
    for (const Guard& guard : plan->guards)
      if (const auto symbol = fixed_by(guard, rest)) {
        report.guards.push_back(guard);
        report.fixed.insert(rest.extract(*symbol));
      }
    if (rest.size() == before) {
      report.guards.insert(report.guards.end(), plan->guards.begin(), plan->guards.end());
      report.guards.insert(report.guards.end(), guards_.begin(), guards_.end());
      return add_entry(*plan, report);
    }
    if (rest.empty()) report.why_not = report.guards.back().reason;
  }
  if (!rest.empty()) report.why_not = why_no_symbols_;
  report.kind = SizeCompilation::Kind::Fixed;
  report.fixed = sizes;
  for (const auto& [symbol, value] : rest) report.guards.push_back(equal(symbol, value, report.why_not));
  TRY(const schedule::Plan plan, make_plan(*graph_, sizes, options_));
  return add_entry(plan, report);
}

std::optional<std::string> CompiledGraph::fixed_by(const Guard& guard, const SizeSet& sizes) {
  const std::vector<std::string> symbols = guard.condition.symbols();
  if (guard.condition.kind() != SymKind::Eq || symbols.size() != 1 || !sizes.contains(symbols[0])) return std::nullopt;
  const SymExpr s = SymExpr::symbol(symbols[0]), e = guard.condition.args()[0] - guard.condition.args()[1];
  const auto next = [&](const std::string&) { return std::optional(s + 1); };
  const SymExpr slope = e.substitute(next) - e;
  return slope.is_int() && !slope.is(0) ? std::optional(symbols[0]) : std::nullopt;
}

Result<schedule::Plan> CompiledGraph::symbolic_plan(const SizeSet& fixed, const SizeSet& rest) const {
  std::unique_ptr<Graph> some_fixed;
  if (!fixed.empty()) TRY_DO(assign(some_fixed, schedule::fix_symbols(*graph_, fixed)));
  TRY(schedule::Plan plan, make_plan(some_fixed ? *some_fixed : *graph_, rest, options_, true));
  // Kernels may hold expressions of sizes that have no code.
  for (const loops::Kernel& kernel : plan.kernels) TRY_DO(options_.machine->check_kernel(kernel));
  return plan;
}

Result<const CompiledGraph::Entry*> CompiledGraph::add_entry(const schedule::Plan& given,
                                                             const SizeCompilation& report) {
  if (binder_ && options_.on_sizes) options_.on_sizes(report);
  Entry entry{.number = report.number,
              .symbolic = report.kind == SizeCompilation::Kind::Symbolic,
              .fixed = report.fixed,
              .guards = report.guards};
  schedule::Plan plan = given;
  if (entry.symbolic)  // kernels take the symbols' names
    for (const auto& [symbol, value] : report.sizes)
      if (!report.fixed.contains(symbol)) plan.symbols.emplace(symbol, value);
  TRY(entry.compiled, generate(plan, report));
  entry.compiled.objects.clear();
  if (entry.symbolic && config().verify) entry.plan = std::move(plan);
  entries_.push_back(std::move(entry));
  return &entries_.back();
}

Result<codegen::CompiledProgram> CompiledGraph::generate(const schedule::Plan& plan, const SizeCompilation& report) {
  trace::Compilation part(traced_, report.number > 1);
  if (trace::on()) {
    std::vector<std::string> reasons;
    for (const SizeCompilation::Tried& tried : report.tried)
      for (const SizeCompilation::Broken& b : tried.broken)
        reasons.push_back(fmt::format("{}/{}: {}  # {}; {}", traced_.frame.value_or(0), tried.number - 1,
                                      b.guard.condition.str(), b.guard.reason, b.advice));
    if (report.number > 1) trace::artifact("recompile_reasons", nlohmann::ordered_json(reasons));
    std::vector<Guard> guards = report.guards;
    for (const auto& [symbol, value] : report.fixed) guards.push_back(equal(symbol, value, report.why_not));
    trace::guards(*graph_, guards);
    trace::output_code(name_, print(plan));
  }
  const trace::Stage timed("code_gen");
  const ConfigScope scope(options_.config);  // matrix kernels read it
  auto made = codegen::compile_program(*options_.machine, plan, compile_options());
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

codegen::CompileOptions CompiledGraph::compile_options() const {
  codegen::CompileOptions how;
  if (const auto store = options_.store; store && !options_.config.force_disable_caches) {
    how.configuration = code_key(options_.config);
    how.load_code = [store](const std::string& key) { return store->find(key); };
    how.store_code = [store, name = name_](const std::string& key, const std::string& code) {
      store->put(key, code, name);
    };
  }
  return how;
}

Status CompiledGraph::load(const Entry& entry, const SizeSet& sizes, std::vector<std::int64_t> values) {
  if (entry.plan)
    if (auto verified = schedule::instantiate(*entry.plan, sizes); !verified) return std::move(verified).error();
  codegen::ExecutorOptions how;
  how.generator = generator();
  how.communicator = options_.communicator;
  if (how.communicator) how.starts_collective = starts_collective;
  how.fixed_inputs = fixed_;
  how.packed = packed_;
  how.prepare = options_.machine->prepare();
  how.device = options_.machine->device(options_.config.cuda_graphs);
  how.compile_sub_graph = [this](const Graph& graph, std::shared_ptr<Generator> generator) {
    return compile_sub_graph(graph, std::move(generator));
  };
  const trace::Stage timed("prepare_calls", options_.times.get());
  const ConfigScope scope(options_.config);  // calls on a device read it
  const codegen::CompiledProgram& compiled = entry.compiled;
  TRY(auto executable,
      codegen::load_program(compiled.program, entry.symbolic ? sizes : SizeSet(), compiled.code, constants_, how));
  instances_.push_back({std::move(values), &entry, std::move(executable)});
  return {};
}

Result<CompiledFn> CompiledGraph::compile_sub_graph(const Graph& graph, std::shared_ptr<Generator> generator) {
  CompiledFn& known = sub_graphs_[&graph];
  if (known) return known;
  BackendOptions own = options_;
  own.generator = std::move(generator);
  const auto source = [&graph]() -> Result<std::unique_ptr<Graph>> { return graph.clone(); };
  auto compiled = std::make_shared<CompiledGraph>(graph.name, source, graph.attributes, own);
  KeyParts key;
  // As another process has it, which takes it from the entry of the graph around it.
  if (const auto bytes = codegen::graph_bytes(graph); bytes && !key_.empty()) {
    TRY(const std::unique_ptr<Graph> as_stored, codegen::read_graph(*bytes));
    key = cache_key(*as_stored, own);
  }
  TRY_DO(compiled->prepare(stop_after_, std::move(key)));
  if (!compiled->knows_sizes()) return unsupported("backend.symbolic", "a size that is known only at run time");
  known = [compiled](std::vector<Value> inputs) { return compiled->run(inputs); };
  return known;
}

}  // namespace partita
