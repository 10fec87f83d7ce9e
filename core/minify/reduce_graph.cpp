#include "core/minify/reduce_graph.h"

#include "core/minify/search.h"

namespace partita::minify {

Result<MinifyResult> reduce(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, const Oracle& oracle,
                            const ReduceOptions& options) {
  if (inputs.size() != graph->placeholders().size())
    return input_error("minify.inputs", "the number of given inputs differs from what the graph takes",
                       Where{.graph = graph->name});
  const auto base = std::make_shared<Base>(graph, std::move(inputs), 0, options.threads, oracle.call_unknown);
  Kept items;
  for (std::size_t i = 0; i < base->removables().size(); ++i)
    if (!oracle.cut_first || !oracle.cut_first(*base->removables()[i].node)) items.push_back(i);
  Candidate start;
  start.graph = graph;
  start.base = base;
  start.calls = count_calls(*graph);
  if (items.size() < base->removables().size()) {
    auto kept = keep(base, items, true);
    if (!kept)
      return unsupported("minify.cut", "calls that draw random numbers cannot be replaced by inputs in this graph",
                         Where{.graph = graph->name});
    start = std::move(*kept);
  }
  ReduceOptions how = options;
  std::optional<Search> search;
  bool confirmed = false;
  for (const bool patient : {false, true}) {
    search.emplace(oracle, how, patient);
    TRY_DO(search->begin(start));
    TRY_DO(cut(*search, base, items));
    if (how.simplify) TRY_DO(simplify(*search));
    search->strategy("once more");
    TRY(confirmed, search->confirm());
    if (confirmed || search->failure().what != "timeout") break;
    how.memory = {};  // answers from short time limits are not reliable
  }
  if (!confirmed)
    return Diagnostic{Fault::Differs, "minify.unsteady",
                      "the smallest graph did not fail when it was tried again; the failure comes and goes",
                      Where{.graph = graph->name}};
  MinifyResult out;
  out.graph = search->best().graph;
  TRY(out.inputs, search->best().inputs());
  search->report(out);
  for (const Node* node : out.graph->placeholders())
    if (base->made_up().contains(node->name())) out.made_up.push_back(node->name());
  return out;
}

}  // namespace partita::minify
