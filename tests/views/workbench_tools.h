#pragma once
// A window whose backends are the interpreter, right and with a fault planted in gelu.
#include <QTest>

#include "app/node_measures.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/ops/record.h"
#include "views/code/code_controller.h"
#include "views/graph/graph_controller.h"
#include "views/window/workbench.h"

namespace partita::tests {

using namespace partita::views;

inline CompileFn interpreter(double planted) {
  return [planted](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&graph, planted](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      InterpOptions options;
      if (planted != 0)
        options.evaluate = [planted](const Node& node, std::vector<Value> args, ValueKwargs kwargs,
                                     const EvalContext& context) -> Result<Value> {
          TRY(Value value, partita::evaluate(node.op(), std::move(args), std::move(kwargs), context, &node));
          if (node.op()->name == "aten.gelu.default")
            value.get<Tensor>()->as<float>()[5] += static_cast<float>(planted);
          return value;
        };
      return interpret(graph, std::move(inputs), options);
    });
  };
}

inline WorkbenchTools tools() {
  WorkbenchTools t;
  t.backends.push_back({"interp", [](const Progress&) { return interpreter(0); }});
  t.doubted = "broken";
  t.backends.push_back({"broken", [](const Progress&) { return interpreter(0.25); }});
  t.inputs = [](Graph& graph, const Artefact&, const QString&) { return random_inputs(graph, 0); };
  t.measure = measure_nodes;
  return t;
}

inline GraphView* picture(Workbench& bench) {
  return bench.get<GraphController>().view();
}
// The code beside the picture, and the page of plain texts.
inline CodeView* code(Workbench& bench) {
  return bench.get<CodeController>().view();
}
inline CodeView* texts(Workbench& bench) {
  return bench.get<TextController>().view();
}

inline bool wait_shown(Workbench& bench, int ms = 30000) {
  return QTest::qWaitFor([&] { return bench.jobs().idle() && bench.current() && bench.current()->code; }, ms);
}

}  // namespace partita::tests
