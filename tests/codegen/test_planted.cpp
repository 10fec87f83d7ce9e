// A wrong operation planted in compiled code must be found: the comparison node by node names the node that it was
// emitted for.
#include <fstream>
#include <sstream>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "core/compare/per_node.h"
#include "tests/schedule/plan_test.h"
#include "tests/support/corpus.h"

namespace partita {
namespace {

using loops::Kernel;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;

void renumber(std::vector<loops::Stmt>& body, const std::vector<Scalar>& now) {
  const auto moved = [&](Scalar& s) {
    if (s.id >= 0) s = now[static_cast<std::size_t>(s.id)];
  };
  for (loops::Stmt& stmt : body) {
    if (auto* store = std::get_if<loops::Store>(&stmt)) {
      moved(store->index);
      moved(store->value);
    } else if (auto* reduce = std::get_if<loops::Reduce>(&stmt)) {
      moved(reduce->value);
    } else {
      renumber(std::get<loops::Loop>(stmt).body, now);
    }
  }
}

/// Replaces every `right` operation of the kernel by `wrong`, as an emitter with a wrong row would compile it.
void miscompile(Kernel& kernel, ScalarOp right, ScalarOp wrong) {
  const loops::ScalarBuilder old = std::move(kernel.scalars);
  kernel.scalars = {};
  loops::ScalarBuilder& b = kernel.scalars;
  std::vector<Scalar> now;
  for (const ScalarNode& n : old.nodes()) {
    const auto arg = [&](int i) { return n.args[i].id < 0 ? Scalar() : now[static_cast<std::size_t>(n.args[i].id)]; };
    if (n.op == ScalarOp::Const)
      now.push_back(is_floating(n.dtype) ? b.constant(n.dtype, n.real) : b.constant_int(n.dtype, n.integer));
    else if (n.op == ScalarOp::Input)
      now.push_back(b.input(n.slot, n.dtype));
    else if (n.op == ScalarOp::Index)
      now.push_back(b.index(n.index));
    else if (n.op == ScalarOp::Load)
      now.push_back(n.args[0].id < 0 ? b.load(n.slot, n.index, n.dtype) : b.load_at(n.slot, arg(0), n.dtype, n.index));
    else if (n.op == ScalarOp::Where)
      now.push_back(b.where(arg(0), arg(1), arg(2)));
    else if (n.op == ScalarOp::Cast)
      now.push_back(b.cast(arg(0), n.dtype));
    else if (n.op == ScalarOp::Bitcast)
      now.push_back(b.bitcast(arg(0), n.dtype));
    else
      now.push_back(b.make(n.op == right ? wrong : n.op, arg(0), arg(1), arg(2)));
  }
  renumber(kernel.body, now);
}

bool has(const Kernel& kernel, const std::string& origin, ScalarOp op) {
  return std::ranges::find(kernel.origins, origin) != kernel.origins.end() &&
         std::ranges::any_of(kernel.scalars.nodes(), [&](const ScalarNode& n) { return n.op == op; });
}

struct Planted {
  std::string node;
  ScalarOp right = ScalarOp::Add, wrong = ScalarOp::Add;
  int kernels = 0;  ///< number of miscompiled kernels
};

/// The compiler of the command line, except for the kernels of `planted->node`.
Runner compiler(Planted* planted = nullptr) {
  return [planted](const Graph& graph, std::vector<Value> inputs) -> Result<std::vector<Value>> {
    TRY(schedule::Plan plan, schedule::make_plan(graph, {{}, codegen::host_target(2)}));
    if (planted)
      for (Kernel& kernel : plan.kernels)
        if (has(kernel, planted->node, planted->right)) {
          miscompile(kernel, planted->right, planted->wrong);
          ++planted->kernels;
        }
    TRY(const auto compiled, codegen::compile_plan(*codegen::cpu_machine(), plan, graph.attributes));
    return compiled->run(inputs);
  };
}

Runner interpreter(bool float64 = false) {
  return [float64](const Graph& graph, std::vector<Value> inputs) {
    InterpOptions options;
    options.threads = 2;
    options.float64 = float64;
    return interpret(graph, std::move(inputs), options);
  };
}

}  // namespace

class PlantedBug : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void is_named_data() {
    QTest::addColumn<QString>("path");
    QTest::addColumn<QString>("node");
    QTest::addColumn<int>("right");
    QTest::addColumn<int>("wrong");
    const auto row = [](const char* path, const char* node, ScalarOp right, ScalarOp wrong) {
      QTest::addRow("%s %s", path, node) << path << node << static_cast<int>(right) << static_cast<int>(wrong);
    };
    row("gpt2/graphs/inductor_decomp/forward.py", "tanh_1", ScalarOp::Tanh, ScalarOp::Atan);
    row("resnet/graphs/inductor_decomp/forward.py", "rsqrt_1", ScalarOp::Rsqrt, ScalarOp::Sqrt);
  }

  void is_named() {
    QFETCH(QString, path);
    QFETCH(QString, node);
    QFETCH(int, right);
    QFETCH(int, wrong);
    const auto corpus = testing::corpus();
    if (corpus.empty()) QSKIP(testing::no_corpus);
    std::ifstream in(corpus / "models" / path.toStdString());
    std::stringstream text;
    text << in.rdbuf();
    const auto graph = testing::parse(text.str());
    const auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    QVERIFY2(graph->find(node.toStdString()), qPrintable(node));
    const auto inputs = testing::random_inputs(*graph, 1, 8);

    PerNodeOptions options;
    options.tolerance = {1e-3, 1e-3};
    options.baseline = interpreter(true);
    const auto sound = compare_nodes(*graph, inputs, interpreter(), compiler(), options);
    QVERIFY2(sound, sound ? "" : sound.error().line().c_str());
    QVERIFY2(sound->ok(), sound->ok() ? "" : sound->first_bad()->name.c_str());

    Planted bug{node.toStdString(), static_cast<ScalarOp>(right), static_cast<ScalarOp>(wrong)};
    const auto report = compare_nodes(*graph, inputs, interpreter(), compiler(&bug), options);
    QVERIFY2(report, report ? "" : report.error().line().c_str());
    QVERIFY(bug.kernels > 0);
    QVERIFY(!report->ok());
    QCOMPARE(report->first_bad()->name, bug.node);
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::PlantedBug)
#include "test_planted.moc"
