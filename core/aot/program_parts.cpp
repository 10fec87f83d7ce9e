#include "core/aot/program_parts.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/aot/freezing.h"
#include "core/base/raise.h"
#include "core/ir/print.h"
#include "core/load/fx_text.h"
#include "core/load/trace_writer.h"

namespace partita {
namespace {

/// The forward or backward anew, for sizes that stored code does not take.
GraphSource again(const Graph& graph, const std::shared_ptr<const ExportedProgram>& program, AotOptions how,
                  bool backward) {
  if (!how.freezing) how.values.clear();
  return [graph = std::shared_ptr<const Graph>(graph.clone()), program, how,
          backward]() -> Result<std::unique_ptr<Graph>> {
    TRY(AotGraphs made, aot(*graph, program.get(), how));
    return std::move(backward ? made.partition.backward : made.partition.forward);
  };
}

/// Constants whose values the key has.
std::map<std::string, Tensor> given_constants(const Graph& graph, const ExportedProgram* program,
                                              const AotOptions& how) {
  std::map<std::string, Tensor> given = graph.attributes;
  if (how.freezing && !how.train)
    for (auto& [name, value] : freezable(program, how.values, bind_inputs(graph, program, how)))
      given.emplace("frozen " + name, std::move(value));
  return given;
}

bool holds(const std::vector<Guard>& guards, const ShapeEnv& shapes) {
  return std::ranges::all_of(guards, [&](const Guard& g) { return shapes.hint(g.condition).value_or(1) != 0; });
}

/// Nullopt when an entry, or one of its graphs, is not there or cannot be used. Where AOTAutograd's graphs are those of
/// other sizes by their guards, the entry is another, and `key` becomes its key.
std::optional<ProgramParts> load_parts(const Graph& graph, const std::shared_ptr<const ExportedProgram>& program,
                                       const AotOptions& how, const GraphCache& cache, KeyParts& key) {
  const auto payload = find_entry(*cache.store, autograd_cache, key, graph.name);
  if (!payload) return std::nullopt;
  auto entry = read_aot_entry(*payload);
  auto wrappers = entry ? read_wrappers(entry->wrappers) : Result<Wrappers>(Wrappers());
  if (!entry || !wrappers) {
    warn_unreadable(autograd_cache, graph.name, entry ? wrappers.error() : entry.error());
    return std::nullopt;
  }
  if (!holds(entry->guards, *graph.shapes)) {
    std::string sizes;
    for (const auto& [name, size] : graph.shapes->hints()) sizes += fmt::format("{} = {}\n", name, size);
    if (key.back().first == "sizes") return std::nullopt;
    key.emplace_back("sizes", std::move(sizes));
    return load_parts(graph, program, how, cache, key);
  }
  ProgramParts parts{.summary = std::move(entry->summary), .wrappers = *std::move(wrappers)};
  auto forward_constants = constants_of(entry->forward_constants, given_constants(graph, program.get(), how));
  auto backward_constants = constants_of(entry->backward_constants, graph.attributes);
  if (!forward_constants || !backward_constants) return std::nullopt;
  if (!entry->constants.empty()) {
    auto constants = parse_fx_text(entry->constants);
    auto attributes = constants_of(entry->constants_constants, graph.attributes);
    const auto beyond = [&](std::size_t i) { return i >= parts.summary.inputs; };
    if (!constants || !attributes || std::ranges::any_of(entry->constant_inputs, beyond)) return std::nullopt;
    (*constants)->attributes = *std::move(attributes);
    parts.constants = ConstantsGraph{*std::move(constants), std::move(entry->constant_inputs)};
  }
  auto forward = cache.load(entry->forward, *std::move(forward_constants), again(graph, program, how, false));
  if (!forward) return std::nullopt;
  parts.forward = *std::move(forward);
  if (entry->backward) {
    auto backward = cache.load(*entry->backward, *std::move(backward_constants), again(graph, program, how, true));
    if (!backward) return std::nullopt;
    parts.backward = [backward = *std::move(backward)]() -> Result<CompiledFn> { return backward; };
  }
  return parts;
}

/// Keeps what was made of the graph; a reason why not is a bypass.
Status save_parts(const Graph& graph, const ExportedProgram* program, const AotOptions& how, const ProgramParts& parts,
                  const GraphCache& cache, const KeyParts& key) {
  const Partition& made = parts.graphs->partition;
  AotEntry entry{.summary = parts.summary,
                 .guards = made.forward->shapes->guards(),
                 .wrappers = to_json(parts.wrappers).dump(),
                 .forward = cache.key(*made.forward)};
  if (made.backward) entry.backward = cache.key(*made.backward);
  const auto keep = [&]() -> Result<std::string> {
    TRY(entry.forward_constants, store_constants(made.forward->attributes, given_constants(graph, program, how)));
    if (parts.constants) {
      entry.constants = print(*parts.constants->graph);
      entry.constant_inputs = parts.constants->inputs;
      TRY(entry.constants_constants, store_constants(parts.constants->graph->attributes, graph.attributes));
    }
    if (made.backward) {
      TRY(entry.backward_constants, store_constants(made.backward->attributes, graph.attributes));
    }
    return payload_bytes(std::move(entry));
  };
  auto bytes = keep();
  if (!bytes) return bypass(autograd_cache, graph.name, bytes.error().message, cache.config);
  put_entry(*cache.store, autograd_cache, key, *std::move(bytes), graph.name);
  return {};
}

Result<ProgramParts> compile_parts(const Graph& graph, const std::shared_ptr<const ExportedProgram>& program,
                                   const AotOptions& how, const RunOptions& options) {
  TRY(AotGraphs graphs, aot(graph, program.get(), how));
  ProgramParts parts;
  parts.graphs = std::make_shared<AotGraphs>(std::move(graphs));
  parts.summary = AotSummary::of(*parts.graphs);
  parts.constants = parts.graphs->constants;
  if (options.joint && parts.graphs->joint) TRY_DO(options.joint(*parts.graphs->joint));
  TRY(parts.forward, options.forward(*parts.graphs->partition.forward));
  TRY(parts.wrappers, catch_raised<Wrappers>([&] { return wrap_graphs(*parts.graphs, options.lazy_backward); }));
  if (parts.graphs->partition.backward)
    parts.backward = [graphs = parts.graphs, compile = options.backward]() {
      return compile(*graphs->partition.backward);
    };
  // Compiled code refers to its graph.
  parts.forward = [graphs = parts.graphs, run = std::move(parts.forward)](std::vector<Value> inputs) {
    return run(std::move(inputs));
  };
  return parts;
}

}  // namespace

Result<ProgramParts> make_parts(const Graph& graph, const std::shared_ptr<const ExportedProgram>& program,
                                const AotOptions& how, const RunOptions& options) {
  const GraphCache* cache = options.joint ? nullptr : options.cache.get();
  if (!cache) return compile_parts(graph, program, how, options);
  if (const auto reason = why_not_cached(graph, how)) {
    TRY_DO(bypass(autograd_cache, graph.name, *reason, cache->config));
    return compile_parts(graph, program, how, options);
  }
  KeyParts key = autograd_key(graph, program.get(), how, options.lazy_backward, *cache);
  auto found = load_parts(graph, program, how, *cache, key);
  cache_log().add({autograd_cache, found ? CacheOutcome::Hit : CacheOutcome::Miss, graph.name, key_of(key), {}});
  if (found) return *std::move(found);
  TRY(ProgramParts parts, compile_parts(graph, program, how, options));
  TRY_DO(save_parts(graph, program.get(), how, parts, *cache, key));
  return parts;
}

}  // namespace partita
