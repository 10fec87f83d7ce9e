// PyTorch's structured log, as compilations write it: tests/cli/trace.py looks at those of the verbs.
#include <QTemporaryDir>
#include <QtTest>
#include <set>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "codegen/backends.h"
#include "core/aot/run_compiled.h"
#include "core/interp/random_values.h"
#include "core/load/session.h"
#include "core/load/trace_writer.h"
#include "core/schedule/specialise.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::testing;

class TestTrace : public QObject {
  Q_OBJECT

  QTemporaryDir dir_;

  std::string folder() const { return dir_.path().toStdString(); }

  /// What the reader finds; without a warning, or the test fails.
  Loaded read() const {
    auto loaded = load(folder());
    if (!loaded) qFatal("%s", loaded.error().line().c_str());
    for (const Diagnostic& w : loaded->warnings) qFatal("%s", w.line().c_str());
    return *std::move(loaded);
  }

  const Artefact* find(const Loaded& loaded, const std::string& end) const {
    for (const Artefact& a : loaded.artefacts)
      if (a.id.ends_with(end)) return &a;
    return nullptr;
  }
  QString text(const Loaded& loaded, const std::string& end) const {
    const Artefact* a = find(loaded, end);
    return a ? QString::fromStdString(*a->text()) : "no " + QString::fromStdString(end);
  }

 private Q_SLOTS:
  void initTestCase() { qputenv("TORCH_TRACE", dir_.path().toUtf8()); }

  void further_sizes_are_further_compilations_with_reasons() {
    const auto graph =
        fx("s0: 'Sym(s0)', x: <f32[s0, 8][8, 1]>", "y = $sin(x)\ns = $sum.dim_IntList(y, [0])\nreturn (s,)");
    if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
    graph->shapes->set_hint("s0", 4);
    const auto run = default_compiler().make({})(*graph);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    for (const std::int64_t size : {4, 7, 1}) {
      const auto special = schedule::specialise(*graph, {{"s0", size}});
      QVERIFY(special);
      const auto inputs = random_inputs(**special, 3);
      QVERIFY(inputs && (*run)(*inputs));
    }
    const Loaded loaded = read();
    QVERIFY(find(loaded, "0_0.inductor_post_grad_graph"));
    QCOMPARE(text(loaded, "0_0.dynamo_guards").count("check_tensor(x, torch.float32, device=cpu, size=[s0, 8])"), 1);
    QVERIFY2(text(loaded, "0_0.inductor_output_code").contains("Sin(b1_x"),
             qPrintable(text(loaded, "inductor_output_code")));
    QVERIFY2(text(loaded, "0_1.recompile_reasons").contains("2 <= s0  # 0 and 1 get code of their own"),
             qPrintable(text(loaded, "recompile_reasons")));
    QVERIFY(text(loaded, "0_1.compilation_metrics").contains("\"cache_size\": 1"));
    QVERIFY(!find(loaded, "0_2.inductor_output_code"));
    QFile log(QString::fromStdString(trace::file()));
    QVERIFY(log.open(QIODevice::ReadOnly));
    const QByteArray records = log.readAll();
    QVERIFY(records.contains("describe_tensor") && records.contains("L['x']"));
    QVERIFY(records.contains("\"size\": 128}"));  // bytes of the storage, for 4 rows
    // What was written can be compiled again.
    const auto again = find(loaded, "0_0.inductor_post_grad_graph")->graph();
    QVERIFY2(again, again ? "" : again.error().line().c_str());
  }

  void a_refused_graph_is_a_failure() {
    const auto graph = fx("x: <f32[2][1]>, y: <f32[3][1]>", "z = $mul.Tensor(x, y)\nreturn (z,)");
    QVERIFY(!run_compiled(*graph, {}, default_compiler().make({})));
    const QString metrics = text(read(), "1_0.compilation_metrics");
    QVERIFY2(metrics.contains("\"fail_type\": \"") && metrics.contains("\"has_guarded_code\": false"),
             qPrintable(metrics));
  }

  void threads_and_processes_write_whole_records() {
    const std::string long_text(100'000, 'x');
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const trace::Compilation part;
          trace::artifact(("of_thread_" + std::to_string(t)).c_str(),
                          "line\n\n" + long_text + std::to_string(i) + "\n");
        }
      });
    const pid_t child = ::fork();
    if (child == 0) {
      trace::artifact("of_child", std::string("text"));
      ::_exit(0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    for (std::thread& t : threads) t.join();
    QCOMPARE(status, 0);
    const Loaded loaded = read();
    std::set<std::string> files, texts;
    for (const Artefact& a : loaded.artefacts) {
      files.insert(a.where.file);
      if (a.id.find("of_thread_") != std::string::npos) texts.insert(a.id);
    }
    QCOMPARE(texts.size(), std::size_t{400});
    QCOMPARE(files.size(), std::size_t{2});  // this process's and its child's
    QVERIFY(find(loaded, "of_child"));
    QVERIFY(text(loaded, ".of_thread_3").startsWith("line\n\nx"));
  }
};

QTEST_GUILESS_MAIN(TestTrace)
#include "test_trace.moc"
