// What a compiled graph keeps in the cache of whole graphs, and takes from it.
#include <algorithm>

#include "codegen/compiled_graph.h"
#include "codegen/cpu/jit.h"
#include "codegen/cuda/driver.h"
#include "codegen/stored_graph.h"
#include "core/store/code_store.h"

namespace partita {

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
    const auto runs_graphs = [](const auto& step) {
      const auto* call = std::get_if<schedule::ExternCall>(&step);
      return call && call->graph;
    };
    if (!options_.generator && std::ranges::any_of(entry.compiled.program->plan.steps, runs_graphs) && !own_generator_)
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
  keeps_symbols_ = stored->keeps_symbols;
  why_no_symbols_ = std::move(stored->why_not);
  fitting_ = std::move(stored->fitting);
  if (binder_) return true;
  const Status loaded = load(entries_.front(), {}, {});
  return loaded || unreadable(loaded.error());
}

bool CompiledGraph::link(Entry& entry) {
  codegen::CompiledProgram& compiled = entry.compiled;
  if (compiled.code || compiled.device_code || compiled.program->kernels.empty()) return true;
  const trace::Stage timed("link", options_.times.get());
  const auto bytes = options_.store->find(compiled.code_key);
  if (!bytes) return false;
  const Status linked = [&]() -> Status {
    TRY(const auto objects, codegen::unpack(*bytes));
    if (options_.device) {
      TRY(compiled.device_code, codegen::load_for(options_.device, compiled.program->kernels, objects));
    } else {
      TRY(compiled.code, codegen::link_kernels(*compiled.program, objects));
    }
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
  return payload_bytes(std::move(out));
}

}  // namespace partita
