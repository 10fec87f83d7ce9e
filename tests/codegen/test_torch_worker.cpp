// The process that runs PyTorch, whatever it answers: a result, or one error. A Python file stands for it here, so this
// needs no PyTorch; test_torch_columns.cpp does.
#include <QElapsedTimer>
#include <QtTest>
#include <thread>

#include "codegen/backends.h"
#include "core/base/whereabouts.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

BackendOptions fake(const QString& mode) {
  BackendOptions options;
  options.config.python = PARTITA_SOURCE_DIR "/tests/codegen/python/fake_python.py";
  options.config.python_import = {mode.toStdString()};
  return options;
}

/// y = -x, which the fake Python does not compute.
Result<std::vector<Value>> run(const BackendOptions& options, const char* name = "torch:eager") {
  static const std::unique_ptr<Graph> graph = fx("x: <f32[2][1]>", "a: <f32[2][1]> = $neg(x)\nreturn (a,)");
  TRY(const Backend* backend, find_backend(name));
  TRY(const CompiledFn call, backend->make(options)(*graph));
  return call({f32({2}, {1, 2})});
}

}  // namespace

class TestTorchWorker : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_answer_is_a_result_or_one_error_data() {
    QTest::addColumn<QString>("error");
    const auto row = [](const char* mode, const char* error) { QTest::newRow(mode) << error; };
    for (const char* mode : {"right", "in pieces"}) row(mode, "");
    for (const char* mode :
         {"no JSON", "a list", "no status", "a number as status", "an unknown status", "no values", "too many values",
          "a storage too far", "a tensor beyond its storage", "a negative stride", "an unknown dtype", "sizes of text",
          "more memory than there is", "memory without an end", "negative memory", "no answer", "half an answer"})
      row(mode, "process.message: ");
    row("an exception", "torch.exception.E: torch:eager: E: no");
    row("an exception of numbers", "torch.exception: torch:eager: ");
    row("a refusal", "torch.refused: torch:eager: not today");
    row("a death", "process.died: torch:eager ended: signal 6 (Aborted): terminate called while running (a)");
    row("no memory", "process.died: torch:eager ended: out of memory while running (a)");
    row("the process ends", "torch.start: the process that runs PyTorch has ended");
    row("old", "torch.start: this torch is too old; --config python=PATH");
    row("odd hello", "torch.start: ");
    row("hello without JSON", "torch.start: ");
    row("no hello", "torch.start: ");
  }
  void every_answer_is_a_result_or_one_error() {
    QFETCH(QString, error);
    for (int i = 0; i < 2; ++i) {  // after each, another try is made alike
      const auto found = run(fake(QTest::currentDataTag()));
      const QString text = found ? "" : QString::fromStdString(found.error().code + ": " + found.error().message);
      QVERIFY2(error.isEmpty() ? text.isEmpty() : text.startsWith(error), qPrintable(text));
      if (found) QCOMPARE(elements((*found)[0]), (std::vector<double>{5, 6}));
    }
  }

  void what_an_exception_names_is_a_node_of_the_graph() {
    const auto found = run(fake("an exception"));
    QVERIFY(!found);
    QCOMPARE(found.error().where.node, std::string("a"));
  }

  void a_hang_ends_by_its_limit_or_on_request() {
    BackendOptions options = fake("late");
    options.config.python_seconds = 0.3;
    const auto late = run(options);
    QVERIFY(!late && is_death(late.error()));
    QVERIFY2(late.error().message.find("still running after 0.3") != std::string::npos, late.error().message.c_str());
    Progress progress;
    BackendOptions patient = fake("late");
    patient.progress = &progress;
    QElapsedTimer since_stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      since_stop.start();
      progress.stop = true;
    });
    const auto stopped = run(patient);
    QVERIFY(!stopped);
    QCOMPARE(stopped.error().fault, Fault::Cancelled);
    QVERIFY2(since_stop.elapsed() < 1000, qPrintable(QString::number(since_stop.elapsed())));
  }

  void a_python_that_is_not_there() {
    BackendOptions options;
    options.config.python = "/nonexistent/python";
    const auto found = run(options);
    QVERIFY(!found);
    QCOMPARE(found.error().code, std::string("torch.start"));
    QVERIFY2(found.error().message.find("/nonexistent/python") != std::string::npos, found.error().message.c_str());
  }

  void names_data() {
    QTest::addColumn<bool>("good");
    for (const char* name : {"torch:eager", "torch:inductor+cpp.simdlen=1+max_fusion_size=2", "torch:eager@cuda:0",
                             "torch:folder/backend.py:compile"})
      QTest::newRow(name) << true;
    for (const char* name : {"torch:", "torch:@cpu", "torch:eager@", "torch:inductor+", "torch:inductor+fast",
                             "torch:inductor+=1", "torch", "tensor:eager"})
      QTest::newRow(name) << false;
  }
  void names() {
    QFETCH(bool, good);
    const auto found = find_backend(QTest::currentDataTag());
    QCOMPARE(bool(found), good);
    if (!good) QCOMPARE(found.error().code, std::string("backend.unknown"));
  }
};

QTEST_APPLESS_MAIN(TestTorchWorker)
#include "test_torch_worker.moc"
