#pragma once
// Programs that run by the interpreter.
#include <QtTest>
#include <memory>
#include <vector>

#include "core/aot/run_compiled.h"
#include "core/interp/interpreter.h"
#include "core/load/session.h"

/// Fails with the reason when a Result is an error.
#define VERIFY_DONE(result) QVERIFY2(result, (result) ? "" : (result).error().line().c_str())

namespace partita::testing {

inline Result<CompiledFn> compile_to_interpreter(const Graph& graph) {
  const std::shared_ptr<Graph> own = graph.clone();
  return CompiledFn([own](std::vector<Value> inputs) { return interpret(*own, std::move(inputs)); });
}

inline Artefact artefact_of(const Graph& graph) {
  Artefact artefact = Artefact::of_graph(std::shared_ptr<const Graph>(graph.clone()));
  artefact.kind = ArtefactKind::Dynamo;
  return artefact;
}

}  // namespace partita::testing
