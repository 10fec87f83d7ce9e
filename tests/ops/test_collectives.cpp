// Metas and refusals of collectives, the stand-in for other ranks with PyTorch 2.13's figures (FakeProcessGroup, rank 0
// of 2), and gradients as PyTorch's AOTAutograd traces them.
#include <QtTest>

#include "core/fake/propagate.h"
#include "core/grad/joint.h"
#include "core/interp/interpreter.h"
#include "core/ops/facts/effects.h"
#include "core/ops/facts/family.h"
#include "core/ops/record/fake_ranks.h"
#include "core/ops/record/record.h"
#include "tests/support/fx.h"
#include "tests/support/result.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

std::string c10d(std::string text) {
  for (std::size_t at; (at = text.find("@")) != std::string::npos;) text.replace(at, 1, "torch.ops._c10d_functional.");
  return text;
}

/// The type of `y` after propagation, or the complaint.
std::string type_of_y(const std::string& parameters, const std::string& line) {
  const auto graph = fx(parameters, c10d(line) + "\nreturn y");
  const auto done = propagate(*graph);
  return done ? annotation(graph->find("y")->meta) : done.error().message;
}

/// Of rank 0, with a stand-in for the others.
Result<std::vector<Value>> alone(const Graph& graph, std::vector<Value> inputs, std::int64_t size = 0) {
  FakeRanks others(size);
  InterpOptions how;
  how.communicator = &others;
  return interpret(graph, std::move(inputs), how);
}

const Tensor twelve = f32({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

/// The calls of the joint graph of a forward all of whose inputs require grad.
std::string joint_of(const std::string& parameters, const std::string& lines) {
  const auto graph = fx(parameters, c10d(lines));
  auto functional = functionalize(*graph, {.requires_grad = std::vector<bool>(graph->placeholders().size(), true)});
  if (!functional) return functional.error().message;
  const auto joint = make_joint(std::move(*functional));
  if (!joint) return joint.error().message;
  std::string out;
  for (const Node* n : *joint->graph) {
    if (!n->op()->is_call()) continue;
    std::string args;
    for (const Arg& a : n->args()) args += (args.empty() ? "" : ", ") + print(a);
    out += n->name() + " = " + std::string(n->op()->brief()) + "(" + args + ")\n";
  }
  return out;
}

}  // namespace

class TestCollectives : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void types_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("type");
    const auto row = [](const char* name, const char* parameters, const char* line, const char* type) {
      QTest::newRow(name) << parameters << line << type;
    };
    const char* x = "x: <f32[4, 3][1, 4]>";
    row("all_reduce", x, "y = @all_reduce.default(x, 'sum', '0')", "f32[4, 3][3, 1]cpu");
    row("broadcast", x, "y = @broadcast.default(x, 0, '0')", "f32[4, 3][1, 4]cpu");
    row("gather", x, "y = @all_gather_into_tensor.default(x, 2, '0')", "f32[8, 3][3, 1]cpu");
    row("gather of a number", "x: <f32[][]>", "y = @all_gather_into_tensor.default(x, 2, '0')", "f32[2][1]cpu");
    row("scatter", x, "y = @reduce_scatter_tensor.default(x, 'sum', 2, '0')", "f32[2, 3][3, 1]cpu");
    row("exchange", x, "y = @all_to_all_single.default(x, [1, 2], [3, 1], '0')", "f32[3, 3][3, 1]cpu");
    row("send", x, "y = @isend.default(x, 1, 0, '0')", "f32[0][1]cpu");
    row("receive", x, "y = @irecv.default(x, 1, 0, '0')", "f32[4, 3][1, 4]cpu");
    row("symbol", "s0: \"Sym(s0)\", x: <f32[s0, 3][3, 1]>", "y = @all_gather_into_tensor.default(x, 4, '0')",
        "f32[4*s0, 3][3, 1]cpu");
    row("in place", x, "y = @all_reduce_.default(x, 'sum', '0')", "f32[4, 3][1, 4]cpu");
    row("scatter of 4 among 3", x, "y = @reduce_scatter_tensor.default(x, 'sum', 3, '0')",
        "dim 0 of the input has size 4, which group_size 3 does not divide");
    row("splits that do not sum", x, "y = @all_to_all_single.default(x, [2, 2], [1, 1], '0')",
        "input_split_sizes sum to 2, but dim 0 of the input has size 4");
    row("splits for other ranks", x, "y = @all_to_all_single.default(x, [2, 1, 1], [2, 2], '0')",
        "input_split_sizes has 2 numbers and output_split_sizes 3; both need one for each rank");
    row("no group", x, "y = @all_gather_into_tensor.default(x, 0, '0')",
        "group_size is 0, but a group has at least one rank");
  }
  void types() {
    QFETCH(QString, parameters);
    QFETCH(QString, line);
    QFETCH(QString, type);
    const QString found = QString::fromStdString(type_of_y(parameters.toStdString(), line.toStdString()));
    QVERIFY2(found.contains(type), qPrintable(found));
  }

  void stand_in_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QList<double>>("values");
    const QList<double> all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    QTest::newRow("all_reduce") << "y = @all_reduce.default(x, 'sum', '0')" << all;
    QTest::newRow("receive") << "y = @irecv.default(x, 1, 0, '0')" << all;
    QTest::newRow("send") << "y = @isend.default(x, 1, 0, '0')" << QList<double>();
    QTest::newRow("gather") << "y = @all_gather_into_tensor.default(x, 2, '0')" << all + all;
    QTest::newRow("scatter") << "y = @reduce_scatter_tensor.default(x, 'sum', 2, '0')" << all.first(6);
    QTest::newRow("exchange") << "y = @all_to_all_single.default(x, [3, 2], [1, 3], '0')"
                              << all.first(9) + all.first(6);
    QTest::newRow("older") << "y = torch.ops.c10d_functional.all_gather_into_tensor.default(x, '', [0, 1], 2)"
                           << all + all;
    QTest::newRow("older exchange")
        << "y = torch.ops.c10d_functional.all_to_all_single.default(x, None, None, '', [0, 1], 2)"
        << all.first(6) + all.first(6);
    QTest::newRow("dim to dim") << "y = torch.ops._dtensor.shard_dim_alltoall.default(x, 1, 0, '0')"
                                << QList<double>{1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12};
  }
  void stand_in() {
    QFETCH(QString, line);
    QFETCH(QList<double>, values);
    const auto graph =
        fx("x: <f32[4, 3][3, 1]>", c10d(line.toStdString()) + c10d("\nz = @wait_tensor.default(y)\nreturn z"));
    const auto found = alone(*graph, {twelve}, 2);
    QVERIFY_RESULT(found);
    const auto numbers = elements((*found)[0]);
    QCOMPARE(QList<double>(numbers.begin(), numbers.end()), values);
  }

  void nobody_answers() {
    const auto graph = fx("x: <f32[4, 3][3, 1]>", c10d("y = @all_reduce.default(x, 'sum', '0')\nreturn y"));
    const auto found = interpret(*graph, {twelve});
    QVERIFY(!found);
    QCOMPARE(found.error().fault, Fault::Unsupported);
    QVERIFY(found.error().message.find("--ranks fake") != std::string::npos);
    QVERIFY(!alone(*fx("x: <f32[4, 3][3, 1]>", c10d("y = @all_reduce.default(x, 'total', '0')\nreturn y")), {twelve}));
    // A group of two ranks in a job of four.
    QVERIFY(!alone(*fx("x: <f32[4, 3][3, 1]>", c10d("y = @all_gather_into_tensor.default(x, 2, '0')\nreturn y")),
                   {twelve}, 4));
  }

  /// They write into the argument, which must have the result's sizes.
  void in_place_and_out() {
    const Tensor x = *twelve.clone(), out = f32({8, 3}, std::vector<double>(24));
    const auto graph = fx("x: <f32[4, 3][3, 1]>, out: <f32[8, 3][3, 1]>",
                          c10d("a = @all_reduce_.default(x, 'sum', '0')\nwa = @wait_tensor.default(a)\n"
                               "b = @all_gather_into_tensor_out.default(x, 2, '0', out = out)\n"
                               "wb = @wait_tensor.default(b)\nreturn (wa, wb)"));
    const auto found = alone(*graph, {x, out});
    QVERIFY_RESULT(found);
    QCOMPARE((*found)[0].get<Tensor>()->storage, x.storage);
    QCOMPARE(out.item_as_double(12), 1.0);
    const auto functional = functionalize(*graph, {});
    QVERIFY_RESULT(functional);
    const std::string text = body(*functional->graph);
    QVERIFY2(text.find("_c10d_functional.all_reduce.default(") != std::string::npos, text.c_str());
    QVERIFY2(text.find("_c10d_functional.all_gather_into_tensor.default(") != std::string::npos, text.c_str());
    QVERIFY(!alone(*graph, {x, f32({6, 3}, std::vector<double>(18))}));
  }

  void gradients_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("backward");
    QTest::newRow("sum") << "y = @all_reduce.default(x, 'sum', '0')"
                         << "all_reduce_1 = all_reduce(tangents_1, 'sum', '0')\nwait_tensor_1 = wait_tensor(";
    QTest::newRow("gather") << "y = @all_gather_into_tensor.default(x, 2, '0')"
                            << "reduce_scatter_tensor = reduce_scatter_tensor(tangents_1, 'sum', 2, '0')\n";
    QTest::newRow("gather of the autograd library")
        << "y = torch.ops._c10d_functional_autograd.all_gather_into_tensor.default(x, 2, '0')"
        << "reduce_scatter_tensor = reduce_scatter_tensor(tangents_1, 'sum', 2, '0')\n";
    QTest::newRow("scatter") << "y = @reduce_scatter_tensor.default(x, 'sum', 2, '0')"
                             << "all_gather_into_tensor = all_gather_into_tensor(tangents_1, 2, '0')\n";
    QTest::newRow("exchange") << "y = @all_to_all_single.default(x, [1, 2], [3, 1], '0')"
                              << "all_to_all_single_1 = all_to_all_single(tangents_1, [3, 1], [1, 2], '0')\n";
    QTest::newRow("maximum") << "y = @all_reduce.default(x, 'max', '0')"
                             << "all_reduce backward only supports 'sum' reduction, got 'max'";
  }
  void gradients() {
    QFETCH(QString, line);
    QFETCH(QString, backward);
    const QString found = QString::fromStdString(
        joint_of("x: <f32[4, 3][3, 1]>", line.toStdString() + "\nz = @wait_tensor.default(y)\nreturn z"));
    QVERIFY2(found.contains(backward), qPrintable(found));
  }

  /// A result that nobody reads sends zeros back, as all ranks must send as much.
  void gradients_of_a_list() {
    const std::string found =
        joint_of("x: <f32[4, 3][3, 1]>, w: <f32[2][1]>",
                 "both = @all_reduce_coalesced.default([x, w], 'sum', '0')\ny = both[0]\nz = @wait_tensor.default(y)\n"
                 "return z");
    QVERIFY2(found.find("all_reduce_coalesced([tangents_1, zeros], 'sum', '0')") != std::string::npos, found.c_str());
    QVERIFY2(found.find("wait_tensor_2 = wait_tensor(") != std::string::npos, found.c_str());
  }

  void are_kept_and_named() {
    const auto graph =
        fx("x: <f32[4, 3][3, 1]>", c10d("a = @all_reduce.default(x, 'sum', '0')\nb = @isend.default(x, 1, 0, '0')\n"
                                        "c = @wait_tensor.default(a)\nreturn x"));
    for (const char* name : {"a", "b", "c"}) {
      const Node* node = graph->find(name);
      QVERIFY(has_effect(*node) && family_of(node->op()) == Family::Collective);
    }
    graph->eliminate_dead(has_effect);
    QVERIFY(graph->find("a") && graph->find("b") && graph->find("c"));
    QVERIFY(family_of(Op::torch("c10d.allreduce_.default")) == Family::Collective);
  }
};

QTEST_APPLESS_MAIN(TestCollectives)
#include "test_collectives.moc"
