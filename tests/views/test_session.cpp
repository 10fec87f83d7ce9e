// What the window keeps of a user's work: inputs, pins and their undo, notes, the way through selections, jobs,
// layouts.
#include <QDir>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <set>
#include <sstream>

#include "app/window_tools.h"
#include "core/ir/print.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/aot/aot_controller.h"
#include "views/inspector/inspector.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestSession : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  const QString sample_ = PARTITA_SOURCE_DIR "/resources/samples/mlp/program.pt2";
  QString write(const QString& name, const Graph& graph) {
    QString path = folder_.filePath(name);
    std::ofstream(path.toStdString()) << print(graph);
    return path;
  }

 private Q_SLOTS:
  void initTestCase() {
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder_.path());
    QCoreApplication::setOrganizationName("partita-test");
  }

  void the_joint_graph_of_an_archive_keeps_its_inputs() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(given);
    Workbench bench(*std::move(given));
    bench.window().show();
    bench.open(sample_);
    QVERIFY(wait_shown(bench));
    const QString io = bench.inputs();
    QVERIFY(io.endsWith("io.safetensors"));
    const std::shared_ptr<const Program> program = bench.current()->artefact.program;
    bench.get<AotController>().make_joint();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.current()->cut; }, 30000));
    for (const QString& path : {io, QString()}) {
      auto copy = bench.current()->graph->clone();
      const auto values = bench.tools().inputs(*copy, bench.current()->artefact, path);
      QVERIFY2(values, values ? "" : values.error().line().c_str());
      const Tensor *weight = values->front().get<Tensor>(), *tangent = values->back().get<Tensor>();
      QCOMPARE(weight->item_as_double(0), program->tensor_of(program->inputs[0].name)->item_as_double(0));
      QCOMPARE(tangent->item_as_double(0), 1.0);  // of the loss
    }
    QCOMPARE(bench.inputs(), io);
    QVERIFY2(bench.window().windowTitle().contains("mlp/program.pt2  ›  exported program  ›  joint, made here"),
             qPrintable(bench.window().windowTitle()));
  }

  void titles_tell_ranks_and_compilations_apart() {
    QDir(folder_.path()).mkpath("ranks");
    for (const char* rank : {"0", "1"}) {
      std::ofstream log(
          folder_.filePath(QString("ranks/dedicated_log_torch_trace_rank_%1_x.log").arg(rank)).toStdString());
      for (const char* frame : {"0", "1"}) {
        log << "V1121 07:58:09.531000 7 a.py:1] {\"dynamo_output_graph\": {}, \"frame_id\": " << frame
            << ", \"frame_compile_id\": 0, \"rank\": " << rank << ", \"has_payload\": \"\"}\n";
        std::istringstream lines(print(*tests::joint_graph(1)));
        for (std::string line; std::getline(lines, line);) log << "\t" << line << "\n";
      }
    }
    Workbench bench(tools());
    bench.window().show();
    const QString folder = folder_.filePath("ranks");
    bench.open(folder);
    QVERIFY(wait_shown(bench));
    std::set<QString> titles, groups;
    for (const auto& [key, document] : bench.documents()) {
      bench.show(key);
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
      titles.insert(bench.window().windowTitle());
    }
    QCOMPARE(titles.size(), std::size_t{4});
    QVERIFY2(titles.begin()->endsWith("/ranks  ›  rank_0_x/0/0  ›  dynamo_output_graph - Partita"),
             qPrintable(*titles.begin()));
    const QModelIndex file = bench.tree().index(0, 0, {});
    for (int row = 0; row < bench.tree().rowCount(file); ++row)
      groups.insert(bench.tree().index(row, 0, file).data().toString());
    QCOMPARE(groups, (std::set<QString>{"rank_0_x/0/0", "rank_0_x/1/0", "rank_1_x/0/0", "rank_1_x/1/0"}));
    // A log by itself, and what is made of a graph, say the compilation too.
    bench.open(folder_.filePath("ranks/dedicated_log_torch_trace_rank_1_x.log"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY2(bench.window().windowTitle().contains("ranks/rank_1_x.log  ›  "),
             qPrintable(bench.window().windowTitle()));
    QVERIFY(bench.window().windowTitle().contains("/0  ›  dynamo_output_graph"));
  }

  void the_user_s_line_comes_before_the_library_s() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(sample_);
    QVERIFY(wait_shown(bench));
    const Graph& graph = *bench.current()->graph;
    QStringList from, library;
    for (const Node* node : graph)
      for (const NodeAccount::Row& row : account_of(*bench.current(), *node, nullptr).rows) {
        if (row.label == "from") from << row.html;
        if (row.label == "in the library") library << row.html;
      }
    QVERIFY(!from.isEmpty() && from.size() > library.size());
    for (const QString& line : from) QVERIFY2(line.startsWith("zoo.py:"), qPrintable(line));
    QVERIFY(!library.isEmpty());
    for (const QString& line : library) QVERIFY2(!line.startsWith("zoo.py:"), qPrintable(line));
  }
};

QTEST_MAIN(TestSession)
#include "test_session.moc"
