// Inputs that share memory: which become one, and what is refused.
#include <QtTest>

#include "core/aot/shared_inputs.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// Elements `from`, from + 1, ... of a memory of six.
GraphInputs two_views(std::int64_t from, std::int64_t other) {
  const Tensor whole = f32({6}, {1, 2, 3, 4, 5, 6});
  GraphInputs inputs;
  inputs.values = {whole.view_as({4}, {1}, from), whole.view_as({2}, {1}, other)};
  inputs.keys = {"input.0", "input.1"};
  inputs.memory = {"storage.0", "storage.0"};
  return inputs;
}

std::unique_ptr<Graph> writing() {
  return fx("x: <f32[4][1]>, y: <f32[2][1]>", "a = $mul_.Tensor(x, 2)\nb = $neg(y)\nreturn (b,)");
}

}  // namespace

class TestSharedInputs : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void overlapping_ones_become_views_of_their_memory() {
    const auto graph = writing();
    GraphInputs inputs = two_views(0, 3);
    const auto shared = separate_inputs(*graph, inputs, true);
    QVERIFY2(shared, shared ? "" : shared.error().line().c_str());
    QCOMPARE(graph->placeholders().size(), std::size_t{1});
    QCOMPARE(inputs.keys, std::vector<std::string>{"storage.0"});
    QCOMPARE(inputs.values[0].get<Tensor>()->numel(), 6);
    QCOMPARE(shared->at, (std::vector<std::size_t>{0, 0}));
    QVERIFY(shared->is_base[0]);
    QCOMPARE(shared->caller.keys, (std::vector<std::string>{"input.0", "input.1"}));
  }

  void others_stay() {
    const auto apart = writing();
    GraphInputs inputs = two_views(0, 4);
    QVERIFY(separate_inputs(*apart, inputs, true));
    QCOMPARE(apart->placeholders().size(), std::size_t{2});
    // Nothing is written.
    const auto pure = fx("x: <f32[4][1]>, y: <f32[2][1]>", "a = $mul.Tensor(x, 2)\nb = $neg(y)\nreturn (a, b)");
    inputs = two_views(0, 3);
    QVERIFY(separate_inputs(*pure, inputs, true));
    QCOMPARE(pure->placeholders().size(), std::size_t{2});
    const std::vector<Node*> p = pure->placeholders();
    QVERIFY(p[0]->meta.tensor()->storage_id >= 0);
    QCOMPARE(p[0]->meta.tensor()->storage_id, p[1]->meta.tensor()->storage_id);
  }

  void the_same_tensor_is_one_input() {
    const auto graph = fx("x: <f32[4][1]>, y: <f32[4][1]>", "a = $add.Tensor(x, y)\nreturn (a,)");
    GraphInputs inputs;
    const Tensor x = f32({4}, {1, 2, 3, 4});
    inputs.values = {x, x};
    inputs.keys = {"input.0", "input.1"};
    inputs.memory = {"", "input.0"};
    const auto shared = separate_inputs(*graph, inputs, false);
    QVERIFY2(shared, shared ? "" : shared.error().line().c_str());
    QCOMPARE(graph->placeholders().size(), std::size_t{1});
    QCOMPARE(shared->at, (std::vector<std::size_t>{0, 0}));
    QVERIFY(!shared->is_base[0]);
  }

  void two_dtypes_in_a_written_memory_are_refused() {
    const auto graph = fx("x: <f32[4][1]>, y: <i32[2][1]>", "a = $mul_.Tensor(x, 2)\nb = $neg(y)\nreturn (b,)");
    GraphInputs inputs = two_views(0, 3);
    Tensor y = *inputs.values[1].get<Tensor>();
    y.dtype = DType::Int32;
    inputs.values[1] = y;
    const auto shared = separate_inputs(*graph, inputs, true);
    QVERIFY(!shared);
    QCOMPARE(shared.error().code, std::string("aot.shared"));
  }
};

QTEST_GUILESS_MAIN(TestSharedInputs)
#include "test_shared_inputs.moc"
