// What the window keeps of a user's work: inputs, pins and their undo, notes, the way through selections, jobs,
// layouts.
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

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
