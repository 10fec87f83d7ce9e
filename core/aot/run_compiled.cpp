#include "core/aot/run_compiled.h"

#include "core/aot/wrapper.h"
#include "core/base/raise.h"
#include "core/fake/propagate.h"
#include "core/functionalize/stage_rules.h"
#include "core/load/trace_writer.h"
#include "core/tensor/generator.h"

namespace partita {

bool can_write_inputs(const Graph& graph) {
  for (const Node* p : graph.placeholders())
    if (const TensorMeta* t = p->meta.tensor(); t && is_complex(t->dtype)) return false;
  return true;
}

Result<std::vector<Value>> run_compiled(const Graph& graph, std::vector<Value> inputs, const CompileFn& compile) {
  if (is_joint(graph)) {
    TRY(const CompiledFn run, compile(graph));
    return run(std::move(inputs));
  }
  AotGraphs graphs;
  const auto make = [&]() -> Result<CompiledFn> {
    AotOptions how = as_run(graph, {.train = false});
    how.split_constants = false;  // the compiled graph takes the inputs alone
    TRY(graphs, aot(graph, nullptr, how));
    return compile(*graphs.partition.forward);
  };
  TRY(const CompiledFn run, trace::compiled(make));
  TRY(const Wrappers wrappers, catch_raised<Wrappers>([&] { return wrap_graphs(graphs); }));
  return post_compile(wrappers, boxed(run), nullptr, std::make_shared<PhiloxState>(Generator::default_seed))(inputs);
}

Result<std::vector<Value>> run_graph(const Graph& graph, std::vector<Value> inputs, const CompileFn& compile,
                                     bool takes_any_graph) {
  const auto run_as_it_is = [&](const Graph& as_it_is) -> Result<std::vector<Value>> {
    TRY(const CompiledFn run, compile(as_it_is));
    return run(std::move(inputs));
  };
  if (takes_any_graph || verify(graph, Stage::Functional).empty()) return run_as_it_is(graph);
  // Text lacks the metas of tuples.
  const std::unique_ptr<Graph> known = graph.clone();
  if (const auto inferred = propagate(*known); inferred && verify(*known, Stage::Functional).empty())
    return run_as_it_is(*known);
  return run_compiled(graph, std::move(inputs), compile);
}

}  // namespace partita
