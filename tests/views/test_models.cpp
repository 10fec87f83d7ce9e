#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>

#include "core/ir/print.h"
#include "tests/views/graphs.h"
#include "views/code/code_document.h"
#include "views/code/fx_highlight.h"
#include "views/compare/compare_view.h"
#include "views/look/format.h"
#include "views/passes/graph_diff.h"
#include "views/session/artefact_tree.h"
#include "views/session/selection.h"
#include "views/table/table_model.h"
#include "views/window/command_palette.h"

using namespace partita;
using namespace partita::views;

class TestModels : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tree_holds_files_groups_documents() {
    ArtefactTree tree;
    QAbstractItemModelTester tester(&tree, QAbstractItemModelTester::FailureReportingMode::QtTest);
    tree.add_file("/a.log", "a.log");
    tree.add_document("/a.log", "0/0", "a#joint", "joint", "joint");
    tree.add_document("/a.log", "0/0", "a#forward", "forward", "forward");
    tree.add_document("/a.log", "", "a#text", "version", "text");
    tree.add_document("/a.log", "", "a#made", "post-grad", "made", "a#forward");
    tree.add_file("/a.log", "again");  // known already
    QCOMPARE(tree.rowCount(), 1);
    QModelIndex file = tree.index(0, 0);
    QCOMPARE(tree.rowCount(file), 2);
    QModelIndex group = tree.index(0, 0, file);
    QCOMPARE(group.data().toString(), QString("0/0"));
    QCOMPARE(tree.rowCount(group), 2);
    QModelIndex made = tree.find("a#made");
    QCOMPARE(made.parent().data(ArtefactTree::KeyRole).toString(), QString("a#forward"));
    QVERIFY(!tree.find("nothing").isValid());
    tree.add_file("/b.py", "b.py");
    tree.remove_file("/a.log");
    QCOMPARE(tree.rowCount(), 1);
    QCOMPARE(tree.index(0, 0).data().toString(), QString("b.py"));
  }

  void selection_walks_back_and_forth() {
    Selection selection;
    QSignalSpy changed(&selection, &Selection::changed);
    selection.select({"a", "x"});
    selection.select_node("y");
    selection.select_node("y");  // no change
    selection.select({"b", "z"});
    QCOMPARE(changed.count(), 3);
    selection.back();
    QCOMPARE(selection.spot(), (Spot{"a", "y"}));
    selection.back();
    QVERIFY(!selection.can_go_back());
    selection.forward();
    QCOMPARE(selection.spot().node, QString("y"));
    selection.select_node("w");  // what went forward is forgotten
    QVERIFY(!selection.can_go_forward());
    selection.back();
    QCOMPARE(selection.spot().node, QString("y"));
  }

  void table_sorts_and_copies() {
    TableModel model({"name", "error"});
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.set_rows({{"a", {Cell("a|b"), Cell("1.0e-6", 1e-6)}}, {"c", {Cell("c\td"), Cell("2.0e-3", 2e-3)}}});
    QCOMPARE(model.index(1, 1).data(TableModel::SortRole).toDouble(), 2e-3);
    QCOMPARE(model.index(0, 0).data(TableModel::NodeRole).toString(), QString("a"));
    std::vector<const Row*> rows{&model.rows()[1], &model.rows()[0]};
    QCOMPARE(as_tsv(model.columns(), rows), QString("name\terror\nc d\t2.0e-3\na|b\t1.0e-6\n"));
    QCOMPARE(as_markdown(model.columns(), rows),
             QString("| name | error |\n|---|---|\n| c\td | 2.0e-3 |\n| a\\|b | 1.0e-6 |\n"));
  }

  void report_is_worst_first() {
    Report report;
    Difference fine, off, shape;
    fine.name = "fine";
    fine.max_abs = 0.5;  // within tolerance all the same
    off.name = "off";
    off.values_agree = false;
    off.max_abs = 1e-3;
    off.wrong = 3;
    off.numel = 8;
    shape.name = "shape";
    shape.layout = {"dtype: float32 expected, float64 found"};
    report.rows = {fine, off, shape};
    std::vector<Row> rows = report_rows(report, {});
    QCOMPARE(rows[0].node, QString("shape"));
    QCOMPARE(rows[1].node, QString("off"));
    QCOMPARE(rows[2].node, QString("fine"));
    QCOMPARE(rows[1].cells[0].text, QString("differs"));
    QCOMPARE(rows[1].cells[5].text, QString("3 / 8"));
    QCOMPARE(rows[0].cells[7].text, QString("dtype: float32 expected, float64 found"));
  }

  void code_knows_where_nodes_are() {
    auto graph = tests::joint_graph(3);
    CodeDocument code(QString::fromStdString(print(*graph)), graph.get());
    int found = 0;
    for (const Node* node : *graph) found += code.line_of(QString::fromStdString(node->name())) >= 0;
    QCOMPARE(found, static_cast<int>(graph->size()));
    int line = code.line_of("gelu_1");
    QVERIFY(code.line(line).contains(QString("gelu_1:")));
    QCOMPARE(code.node_at(line), QString("gelu_1"));
    QCOMPARE(code.node_at(0), QString());
    QCOMPARE(code.find("GELU_1:", line), line);
    QCOMPARE(code.find("gelu_1:", line + 1), line);  // around the end
    QCOMPARE(code.find("no such text", 0), -1);
    CodeDocument plain("one\ntwo\n", nullptr);
    QCOMPARE(plain.line_count(), 2);
    QCOMPARE(plain.line(1).toString(), QString("two"));
  }

  void highlights_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("tokens");  // one letter a token
    QTest::newRow("statement") << "  relu: \"f32[2]\" = torch.ops.aten.relu.default(x)" << "NA";
    QTest::newRow("numbers") << "add = f(x, 1e-05, -2, None)" << "N##K";
    QTest::newRow("comment") << "    # File: a.py:3 in f, code: x = 'y'" << "C";
    QTest::newRow("deletion") << "t = g('s');  x = y = None" << "NSD";
    QTest::newRow("return") << "return (a, b)" << "K";
    QTest::newRow("unfinished") << "x = 'abc" << "NS";
  }
  void highlights() {
    QFETCH(QString, line);
    QFETCH(QString, tokens);
    QString seen;
    int end = 0;
    for (const TokenSpan& span : highlight_fx(line)) {
      QVERIFY(span.begin >= end && span.begin + span.length <= line.size());
      end = span.begin + span.length;
      seen += QString("PKS#CAND")[static_cast<int>(span.token)];
    }
    QCOMPARE(seen, tokens);
  }

  void diff_tells_what_a_pass_did() {
    auto before = tests::joint_graph(3);
    auto after = before->clone();
    Node* gelu = after->find("gelu_1");
    Node* relu = after->create(Op::torch("aten.relu.default"), {gelu}, {}, "relu", gelu->next());
    relu->meta = gelu->meta;
    after->find("add_1")->replace_input(gelu, relu);
    Node* dead = after->create(Op::torch("aten.neg.default"), {gelu}, {}, "neg", gelu->next());
    dead->meta = gelu->meta;
    after->erase(dead);
    GraphDiff d = diff(*before, *after, 1);
    QCOMPARE(d.added, 1);
    QCOMPARE(d.removed, 0);
    QCOMPARE(d.changed, 1);
    QCOMPARE(d.marks.at("relu"), Change::Added);
    QCOMPARE(d.marks.at("add_1"), Change::Changed);
    QStringList changes;
    for (const DiffLine& line : d.lines)
      if (line.change != Change::None)
        changes << QString("%1 %2").arg(static_cast<int>(line.change)).arg(QString::fromStdString(line.node));
    QCOMPARE(changes, (QStringList{"1 relu", "3 add_1", "2 add_1"}));
    GraphDiff back = diff(*after, *before, 0);
    QCOMPARE(back.removed, 1);
    QCOMPARE(diff(*before, *before).lines.size(), std::size_t{1});  // "# n unchanged statements"
  }

  void numbers_read_well() {
    QCOMPARE(bytes_text(0), QString("0 B"));
    QCOMPARE(bytes_text(1023), QString("1023 B"));
    QCOMPARE(bytes_text(10445), QString("10.2 KiB"));
    QCOMPARE(bytes_text(-2048), QString("-2.00 KiB"));
    QCOMPARE(bytes_text(3'565'158), QString("3.40 MiB"));
    QCOMPARE(seconds_text(0.00123), QString("1.23 ms"));
    QCOMPARE(seconds_text(0.81), QString("810 ms"));
    QCOMPARE(seconds_text(12.34), QString("12.3 s"));
    QCOMPARE(error_text(3.14e-6), QString("3.1e-6"));
    QCOMPARE(error_text(9.99e-6), QString("1.0e-5"));
    QCOMPARE(error_text(0), QString("0"));
    QCOMPARE(error_text(NAN), QString("nan"));
    QCOMPARE(count_text(1, "node"), QString("1 node"));
    QCOMPARE(count_text(2, "entry", "entries"), QString("2 entries"));
  }

  void palette_finds_by_letters() {
    QVERIFY(fuzzy_score("fit", "View: Fit the picture") > fuzzy_score("fit", "File: Quit the window"));
    QCOMPARE(fuzzy_score("xyz", "Open file"), -1);
    QVERIFY(fuzzy_score("of", "Open file") > 0);
  }
};

QTEST_MAIN(TestModels)
#include "test_models.moc"
