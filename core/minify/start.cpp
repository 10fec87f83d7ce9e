#include "core/minify/start.h"

#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/base/assign.h"
#include "core/fake/propagate.h"
#include "core/functionalize/stage_rules.h"

namespace partita::minify {

Result<Start> make_start(const Artefact& artefact, const TensorFile& io, std::uint64_t seed, bool functional) {
  TRY(std::unique_ptr<Graph> graph, artefact.graph());
  Start start;
  start.id = artefact.id;
  const auto& dumped = artefact.companion ? artefact.companion->sample_inputs : std::vector<Value>();
  if (io.tensors.empty() && !dumped.empty() && dumped.size() == graph->placeholders().size()) {
    start.inputs = dumped;
  } else {
    TensorFile recorded;
    if (io.tensors.empty() && artefact.recorded) TRY_DO(assign(recorded, own_inputs(artefact)));
    const TensorFile& given = recorded.tensors.empty() ? io : recorded;
    TRY(GraphInputs inputs, gather_inputs(*graph, artefact.program.get(), given, seed));
    start.inputs = std::move(inputs.values);
  }
  if (functional) {
    // Text lacks the metas of tuples. A meta that cannot be inferred is reported when the graph is compiled.
    if (auto inferred = propagate(*graph); inferred && verify(*graph, Stage::Functional).empty()) {
      start.graph = std::move(graph);
      return start;
    }
    AotOptions how = as_run(*graph, {.train = false});
    how.split_constants = false;  // a repro takes the inputs alone
    TRY(AotGraphs graphs, aot(*graph, artefact.program.get(), how));
    graph = std::move(graphs.partition.forward);
    if (graph->placeholders().size() != start.inputs.size())
      return unsupported("minify.inputs",
                         "the functional form of this graph takes different inputs; give the "
                         "functional graph (partita aot writes it)",
                         Where{.graph = graph->name});
  }
  start.graph = std::move(graph);
  return start;
}

}  // namespace partita::minify
