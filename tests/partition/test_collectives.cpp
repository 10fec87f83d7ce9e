// Collectives run once, on the side of the graph that they belong to, whatever tags and budgets say.
#include <QtTest>

#include "core/fake/propagate.h"
#include "core/partition/cost.h"
#include "core/partition/partition.h"
#include "tests/support/fx.h"
#include "tests/support/result.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// A sum over ranks whose sine is differentiated, and a sum of the gradient.
std::unique_ptr<Graph> joint() {
  auto graph = fx("primals_1: <f32[64][1]>, tangents_1: <f32[64][1]>",
                  "mul: <f32[64][1]> = $mul.Tensor(primals_1, 2)\n"
                  "all_reduce: <f32[64][1]> = torch.ops._c10d_functional.all_reduce.default(mul, 'sum', '0')\n"
                  "wait_tensor: <f32[64][1]> = torch.ops._c10d_functional.wait_tensor.default(all_reduce)\n"
                  "sin: <f32[64][1]> = $sin(wait_tensor)\n"
                  "cos: <f32[64][1]> = $cos(wait_tensor)\n"
                  "mul_1: <f32[64][1]> = $mul.Tensor(tangents_1, cos)\n"
                  "all_reduce_1: <f32[64][1]> = torch.ops._c10d_functional.all_reduce.default(mul_1, 'sum', '0')\n"
                  "wait_tensor_1: <f32[64][1]> = torch.ops._c10d_functional.wait_tensor.default(all_reduce_1)\n"
                  "mul_2: <f32[64][1]> = $mul.Tensor(wait_tensor_1, 2)\n"
                  "return (sin, mul_2)");
  return graph;
}

std::string collectives(const Graph& graph) {
  std::string out;
  for (const Node* n : graph)
    if (n->op()->of_library("_c10d_functional")) out += n->name() + " ";
  return out;
}

}  // namespace

class TestPartitionCollectives : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void run_once_data() {
    QTest::addColumn<bool>("min_cut");
    QTest::addColumn<bool>("tagged");
    QTest::addColumn<double>("budget");
    QTest::newRow("default") << false << false << 1.0;
    QTest::newRow("default, tagged") << false << true << 1.0;
    QTest::newRow("min-cut") << true << false << 1.0;
    QTest::newRow("min-cut, tagged") << true << true << 1.0;
    QTest::newRow("min-cut without memory") << true << false << 0.0;
  }
  void run_once() {
    QFETCH(bool, min_cut);
    QFETCH(bool, tagged);
    QFETCH(double, budget);
    const auto graph = joint();
    if (tagged)
      for (Node* n : *graph)
        if (n->op()->is_call()) n->recompute = Recompute::MustRecompute;
    PartitionOptions how{.partitioner = min_cut ? Partitioner::MinCut : Partitioner::Default};
    how.memory_budget = budget;
    const auto p = partition(*graph, how);
    QVERIFY_RESULT(p);
    QCOMPARE(collectives(*p->forward), std::string("all_reduce wait_tensor "));
    QCOMPARE(collectives(*p->backward), std::string("all_reduce_1 wait_tensor_1 "));
    for (const std::string& name : p->recomputed) QVERIFY2(!name.starts_with("all_reduce"), name.c_str());
  }
};

QTEST_APPLESS_MAIN(TestPartitionCollectives)
#include "test_collectives.moc"
