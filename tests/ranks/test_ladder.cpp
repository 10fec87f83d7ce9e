// Collectives of ranks, matched by their graphs.
#include <QtTest>

#include "core/fake/propagate.h"
#include "core/ranks/ladder.h"
#include "tests/support/fx.h"

using namespace partita;

namespace {

/// A graph that starts these all_reduces ("sum 0": a sum in group "0"), each waited for after a call of its own.
std::unique_ptr<Graph> graph_of(const std::vector<std::string>& reductions, const std::string& sizes = "4, 2") {
  std::string lines, value = "x";
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const std::string& r = reductions[i];
    const std::string op = r.substr(0, r.find(' ')), group = r.substr(r.find(' ') + 1), n = std::to_string(i);
    lines +=
        "a" + n + " = torch.ops._c10d_functional.all_reduce.default(" + value + ", '" + op + "', '" + group + "')\n";
    lines += "s" + n + " = $sin(x)\n";
    lines += "w" + n + " = torch.ops._c10d_functional.wait_tensor.default(a" + n + ")\n";
    value = "w" + n;
  }
  auto graph = testing::fx("x: \"f32[" + sizes + "]\"", lines + "return (" + value + ",)");
  if (!propagate(*graph)) qFatal("no metas");
  return graph;
}

/// "0 1: all_reduce(sum, f32[4, 2]) starts 0,-1: rank 1 never starts it"
QString told(const Ladder& ladder) {
  QString out;
  for (const Rung& rung : ladder.rungs) {
    QStringList starts;
    for (const int s : rung.starts) starts << QString::number(s);
    out += QString("%1 %2: %3 starts %4: %5\n")
               .arg(QString::fromStdString(rung.group))
               .arg(rung.number)
               .arg(QString::fromStdString(rung.text), starts.join(","), QString::fromStdString(rung.wrong));
  }
  return out;
}

}  // namespace

class TestLadder : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void collectives_meet_by_their_number_in_the_group_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QStringList>("lists");  // by rank, reductions with commas between
    QTest::addColumn<QString>("expected");
    QTest::newRow("equal")
        << 2 << QStringList{"sum 0,avg 0", "sum 0,avg 0"}
        << "0 1: all_reduce(sum, f32[4, 2]) starts 0,0: \n0 2: all_reduce(avg, f32[4, 2]) starts 1,1: \n";
    QTest::newRow("one more") << 2 << QStringList{"sum 0", "sum 0,sum 0"}
                              << "0 1: all_reduce(sum, f32[4, 2]) starts 0,0: \n"
                                 "0 2: all_reduce(sum, f32[4, 2]) starts -1,1: rank 0 never starts it\n";
    QTest::newRow("another reduction") << 2 << QStringList{"sum 0", "max 0"}
                                       << "0 1: all_reduce(sum, f32[4, 2]) starts 0,0: the reductions differ\n";
    QTest::newRow("groups in other orders")
        << 2 << QStringList{"sum a,sum b", "sum b,sum a"}
        << "a 1: all_reduce(sum, f32[4, 2]) starts 0,1: \nb 1: all_reduce(sum, f32[4, 2]) starts 1,0: \n";
    QTest::newRow("three of four") << 4 << QStringList{"sum 0", "", "sum 0", ""}
                                   << "0 1: all_reduce(sum, f32[4, 2]) starts 0,-1,0,-1: ranks 1, 3 never start it\n";
  }
  void collectives_meet_by_their_number_in_the_group() {
    QFETCH(int, ranks);
    QFETCH(QStringList, lists);
    QFETCH(QString, expected);
    Job job{.ranks = ranks, .groups = {{"a", {0, 1}}, {"b", {0, 1}}}};
    std::vector<std::unique_ptr<Graph>> graphs;
    std::vector<const Graph*> given;
    for (const QString& list : lists) {
      std::vector<std::string> reductions;
      for (const QString& r : list.split(',', Qt::SkipEmptyParts)) reductions.push_back(r.toStdString());
      graphs.push_back(graph_of(reductions));
      given.push_back(graphs.back().get());
    }
    const auto ladder = make_ladder(job, given);
    QVERIFY2(ladder, ladder ? "" : ladder.error().line().c_str());
    QCOMPARE(told(*ladder), expected);
  }

  void what_runs_meanwhile_is_told() {
    const auto graph = graph_of({"sum 0"});
    const auto found = collectives_of(*graph);
    QVERIFY(found);
    QCOMPARE((*found)->size(), 1u);
    const GraphCollective& sum = (*found)->front();
    QCOMPARE(std::string(sum.wait->name()), "w0");
    QCOMPARE(sum.between.size(), 1u);
    QCOMPARE(std::string(sum.between[0]->name()), "s0");
  }

  void calls_without_an_overload_count() {
    const auto graph = parse_fx_text(R"(class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu"):
        x = L_x_
        tensor: "f32[4][1]cpu" = torch.ops._c10d_functional.all_reduce(x, 'sum', '0')
        y: "f32[4][1]cpu" = torch.ops._c10d_functional.wait_tensor(tensor)
        return (y,)
)");
    QVERIFY(graph);
    const auto found = collectives_of(**graph);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE((*found)->size(), 1u);
    QCOMPARE((*found)->front().call.reduce_op, "sum");
    QVERIFY((*found)->front().wait);
  }

  void groups_that_nobody_knows_are_refused() {
    const auto graph = graph_of({"sum tp"});
    const Graph* const given[] = {graph.get(), graph.get()};
    const auto ladder = make_ladder({.ranks = 2, .groups = {}}, given);
    QVERIFY(!ladder);
    QCOMPARE(ladder.error().code, "ranks.group");
    QVERIFY(ladder.error().message.find("'tp'") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TestLadder)
#include "test_ladder.moc"
