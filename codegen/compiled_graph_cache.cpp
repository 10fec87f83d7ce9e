// What a compiled graph keeps in the cache of whole graphs, and takes from it.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/compiled_graph.h"
#include "codegen/host/processor.h"
#include "codegen/stored_graph.h"
#include "core/aot/graph_key.h"
#include "core/base/check.h"
#include "core/schedule/instantiate.h"
#include "core/store/code_store.h"

namespace partita {

std::string compiler_text(const BackendOptions& options) {
  const codegen::Processor& host = codegen::host_processor();
  const loops::Target target = options.machine->target(options.config.threads);
  std::string text = fmt::format("processor {}\nfeatures {}\ntriple {}\n{} threads, {} bytes of cache\n", host.name,
                                 host.features, host.triple, target.threads, target.cache_bytes);
  for (LibraryRoutine routine : target.routines) text += fmt::format("routine {}\n", int(routine));
  for (DType dtype : target.channels_last) text += fmt::format("channels last for {}\n", short_name(dtype));
  const ConfigScope scope(options.config);
  text += options.machine->text();
  return text + fmt::format("fixed parameters {}\n", options.fixed_parameters);
}

KeyParts cache_key(const Graph& graph, const BackendOptions& options) {
  KeyParts parts = graph_parts(graph);
  for (auto& part : common_parts(options.config)) parts.push_back(std::move(part));
  parts.emplace_back("compiler", compiler_text(options));
  return parts;
}

bool CompiledGraph::prepare_stored(GraphEntry entry) {
  key_ = std::move(entry.parts);
  return take(entry.payload);
}

bool CompiledGraph::take(std::string_view payload) {
  auto stored = read_stored_graph(payload);
  const auto unreadable = [&](const Diagnostic& why) {
    warn_unreadable(fxgraph_cache, name_, why);
    entries_.clear();
    sub_graphs_.clear();  // they are known by the graphs in the entries
    return false;
  };
  if (!stored) return unreadable(stored.error());
  if (stored->split) {
    if (!take_parts(*std::move(stored->split))) return false;
    signature_ = signature(stored->name, stored->placeholders);
    guards_ = std::move(stored->guards);
    if (!guards_.empty()) sign(*signature_);
    name_ = std::move(stored->name);
    knew_sizes_ = stored->knows_sizes;
    return true;
  }
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
    entry.reported = false;
    const auto runs_graphs = [](const auto& step) {
      const auto* call = std::get_if<schedule::ExternCall>(&step);
      return call && call->graph;
    };
    if (!options_.generator && !own_generator_ && std::ranges::any_of(entry.compiled.program->plan.steps, runs_graphs))
      own_generator_ = std::make_shared<Generator>();
  }
  signature_ = signature(stored->name, stored->placeholders);
  sign(*signature_);
  if (!binder_ && (entries_.size() != 1 || !link(entries_.front()))) {
    entries_.clear();
    return false;
  }
  name_ = std::move(stored->name);
  constants_ = *std::move(constants);
  guards_ = std::move(stored->guards);
  knew_sizes_ = stored->knows_sizes;
  keeps_symbols_ = stored->keeps_symbols;
  why_no_symbols_ = std::move(stored->why_not);
  fitting_ = std::move(stored->fitting);
  if (binder_) return true;
  const Status loaded = load(entries_.front(), {}, {});
  return loaded || unreadable(loaded.error());
}

bool CompiledGraph::take_parts(StoredGraph::Split stored) {
  auto call = codegen::read_graph(stored.call);
  if (!call) {
    warn_unreadable(fxgraph_cache, name_, call.error());
    return false;
  }
  auto parts = std::make_unique<Parts>();
  if (!options_.generator) own_generator_ = std::make_shared<Generator>();
  BackendOptions own = options_;
  own.generator = generator();
  const auto taken = [&](std::unique_ptr<CompiledGraph>& part, const std::string& key, bool is_after) {
    auto entry = find_entry(*options_.store, fxgraph_cache, key, name_);
    const auto source = [this, is_after]() -> Result<std::unique_ptr<Graph>> {
      TRY_DO(need_graph());
      const auto is_cut = [](const Instance& i) { return !i.other && !i.before_passes; };
      const auto breaks = [this](const Instance& i) {
        return !schedule::broken_guards(guards_, binder_->named(i.sizes)).empty();
      };
      if (binder_ ? std::ranges::any_of(instances_, [&](const Instance& i) { return is_cut(i) && breaks(i); })
                  : !guards_.empty())
        return unsupported(
            "cache.sizes",
            "the stored code was made for other sizes; --config force_disable_caches=true goes on without it");
      auto again = schedule::split_at_values(*graph_);
      CHECK(again, "a stored graph was cut, and is not now");
      return std::move(is_after ? again->after : again->before);
    };
    part = std::make_unique<CompiledGraph>("", source, given_, own);
    part->stop_after_ = stop_after_;
    part->passed_ = true;
    part->interprets_ = is_after;
    const bool hit = entry && part->prepare_stored(*std::move(entry));
    cache_log().add({fxgraph_cache, hit ? CacheOutcome::Hit : CacheOutcome::Miss, part->name(), key, {}});
    return hit;
  };
  if (!stored.before.empty() && !taken(parts->before, stored.before, false)) return false;
  if (!taken(parts->after, stored.after, true)) return false;
  parts->split = {.before = {},
                  .call = *std::move(call),
                  .after = {},
                  .before_inputs = std::move(stored.before_inputs),
                  .call_inputs = std::move(stored.call_inputs),
                  .after_inputs = std::move(stored.after_inputs)};
  parts_ = std::move(parts);
  return true;
}

bool CompiledGraph::link(Entry& entry) {
  codegen::CompiledProgram& compiled = entry.compiled;
  if (compiled.code || compiled.program->kernels.empty()) return true;
  const trace::Stage timed("link", options_.times.get());
  const auto bytes = options_.store->find(compiled.code_key);
  if (!bytes) return false;
  const Status linked = [&]() -> Status {
    TRY(const auto objects, codegen::unpack(*bytes));
    TRY(compiled.code, options_.machine->load(*compiled.program, objects));
    return {};
  }();
  if (!linked) warn_unreadable(fxgraph_cache, name_, linked.error());
  return bool(linked);
}

Status CompiledGraph::save() {
  if (key_.empty()) return {};
  auto bytes = stored();
  if (bytes) {
    put_entry(*options_.store, fxgraph_cache, key_, *std::move(bytes), name_);
    return {};
  }
  return not_kept(bytes.error().message);
}

Status CompiledGraph::not_kept(const std::string& why) {
  if (key_.empty()) return {};
  key_.clear();
  given_.clear();
  return bypass(fxgraph_cache, name_, why, options_.config);
}

Result<std::string> CompiledGraph::stored() const {
  StoredGraph out{.name = name_,
                  .placeholders = placeholders_of(graph_ ? *graph_ : *signature_),
                  .split = {},
                  .knows_sizes = knows_sizes(),
                  .keeps_symbols = keeps_symbols_,
                  .why_not = why_no_symbols_,
                  .variants = {},
                  .fitting = fitting_,
                  .guards = guards_,
                  .constants = {}};
  if (parts_) {
    const auto key = [](const std::unique_ptr<CompiledGraph>& part) { return part ? key_of(part->key_) : ""; };
    const schedule::SplitGraph& split = parts_->split;
    TRY(std::string call, codegen::graph_bytes(*split.call));
    out.split = StoredGraph::Split{std::move(call),     key(parts_->before), key(parts_->after),
                                   split.before_inputs, split.call_inputs,   split.after_inputs};
  }
  std::map<std::string, Tensor> needed;
  for (const Entry& e : entries_) {
    TRY(std::string program, codegen::program_bytes(*e.compiled.program));
    out.variants.push_back({e.symbolic, e.fixed, e.guards, std::move(program), e.compiled.code_key});
    for (const schedule::PlanBuffer& b : e.compiled.program->plan.buffers)
      if (b.kind == schedule::PlanBuffer::Kind::Constant) needed.emplace(b.attribute, constants_.at(b.attribute));
  }
  TRY(out.constants, store_constants(needed, given_));
  return payload_bytes(std::move(out));
}

}  // namespace partita
