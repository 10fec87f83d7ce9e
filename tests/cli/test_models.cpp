// The models of the corpus through the command line: the programs interpreted and compiled, with gradients where
// PyTorch's are recorded, and PyTorch's own graphs under the debug interpreter. All folders of the corpus are run.
// Under sanitizers programs in core ATen are compiled only, which the interpreters run in other builds.
#include <QtTest>
#include <algorithm>

#include "core/compare/compare.h"
#include "core/interp/debug_interpreter.h"
#include "core/load/safetensors.h"
#include "tests/support/corpus.h"
#include "tests/support/model_inputs.h"

using namespace partita;
using namespace partita::testing;

namespace {

namespace fs = std::filesystem;

constexpr const char* core = "program.core.pt2";
#ifdef PARTITA_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

std::vector<fs::path> folders() {
  std::vector<fs::path> found;
  for (const char* group : {"models", "extra"})
    for (const auto& entry : fs::directory_iterator(corpus() / group))
      if (fs::exists(entry.path() / "program.pt2") && fs::exists(entry.path() / "io.safetensors"))
        found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// Does the program draw random numbers? Its recorded values then come from PyTorch's generator.
bool is_random(const fs::path& folder) {
  return text_of(folder / "exported.py").find("torch.ops.aten.rand") != std::string::npos;
}

QString row_name(const fs::path& path) {
  return QString::fromStdString(fs::relative(path, corpus()).string());
}

/// Why the backend refuses a model's programs, as listed in refused.tsv; empty if it does not.
QString refusal(const QString& folder, const QString& backend) {
  const QString rows = QString::fromStdString(text_of(PARTITA_SOURCE_DIR "/tests/cli/refused.tsv"));
  for (const QString& line : rows.split('\n', Qt::SkipEmptyParts)) {
    const QStringList cells = line.split('\t');
    if (cells.size() == 5 && cells[0] == folder && cells[1] == "program" && (cells[2] == "*" || cells[2] == backend))
      return cells[4];
  }
  return {};
}

struct Run {
  int code = -1;
  QString error;
};

Run partita_run(const QStringList& arguments) {
  QProcess process;
  auto environment = QProcessEnvironment::systemEnvironment();
  environment.insert("PARTITA_STORE", QDir::temp().filePath("partita_test_models.sqlite"));
  process.setProcessEnvironment(environment);
  process.start(PARTITA_BINARY, QStringList{"run"} + arguments);
  if (!process.waitForFinished(200'000)) process.kill();
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
          QString::fromUtf8(process.readAllStandardError())};
}

std::vector<fs::path> graphs_of_models() {
  std::vector<fs::path> graphs;
  for (const fs::path& folder : folders()) {
    if (!fs::exists(folder / "graphs")) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "graphs"))
      if (entry.path().extension() == ".py") graphs.push_back(entry.path());
  }
  std::ranges::sort(graphs);
  return graphs;
}

bool is_result(const std::string& key) {
  return key.starts_with("output.") || key.starts_with("grad.") || key.starts_with("buffer_after.");
}

}  // namespace

class TestModels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    if (corpus().empty()) QSKIP(no_corpus);
  }

  void programs_data() {
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("program");
    QTest::addColumn<QString>("backend");
    for (const fs::path& folder : folders())
      for (const char* program : {"program.pt2", core})
        for (const char* backend : {"interp", "cpu", "debug"})
          if (fs::exists(folder / program) && !(sanitized && program == core && backend != std::string_view("cpu")))
            QTest::addRow("%s %s %s", qPrintable(row_name(folder)), program, backend)
                << QString::fromStdString(folder.string()) << program << backend;
  }
  void programs() {
    QFETCH(QString, folder);
    QFETCH(QString, program);
    QFETCH(QString, backend);
    const fs::path path = folder.toStdString();
    if (is_random(path)) QSKIP("random numbers");
    const auto io = read_safetensors((path / "io.safetensors").string());
    QVERIFY2(io, io ? "" : io.error().line().c_str());
    // Under debug the program runs unchanged, so that its own annotations are checked.
    const bool train = backend != "debug" &&
                       std::ranges::any_of(io->tensors, [](auto& entry) { return entry.first.starts_with("grad."); });
    QTemporaryDir work;
    const QString out = work.filePath("out.safetensors");
    QStringList arguments{
        folder + "/" + program, "--inputs", folder + "/io.safetensors", "--backend", backend, "-o", out};
    if (train) arguments << "--train";
    const Run run = partita_run(arguments);
    if (const QString reason = refusal(row_name(path), backend); !reason.isEmpty()) {
      QVERIFY2(run.code == 3, qPrintable("not refused (" + reason + "): take it off refused.tsv"));
      return;
    }
    QVERIFY2(run.code == 0, qPrintable(run.error));
    const auto found = read_safetensors(out.toStdString());
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    for (const auto& [key, expected] : io->tensors) {
      if (!is_result(key) || (!train && key.starts_with("grad."))) continue;
      const Tensor* value = found->find(key);
      QVERIFY2(value, key.c_str());
      const Difference d = compare_values(key, Value(expected), Value(*value), {1e-3, 1e-4}, false);
      QVERIFY2(d.ok(), qPrintable(QString("%1: %2 of %3 elements differ").arg(key.c_str()).arg(d.wrong).arg(d.numel)));
    }
  }

  void graphs_data() {
    QTest::addColumn<QString>("graph");
    for (const fs::path& graph : graphs_of_models())
      if (!above_autograd(graph))
        QTest::addRow("%s", qPrintable(row_name(graph))) << QString::fromStdString(graph.string());
  }
  /// In PyTorch's own graphs, every value must match its annotation.
  void graphs() {
    QFETCH(QString, graph);
    const fs::path path = graph.toStdString();
    const auto parsed = with_sizes(path);
    QVERIFY2(parsed, parsed ? "" : parsed.error().line().c_str());
    const auto inputs = model_inputs(path, **parsed);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    const auto run = debug_interpret(**parsed, *inputs);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    for (const MetaMismatch& m : run->mismatches)
      QFAIL(qPrintable(QString::fromStdString(m.node + ": " + m.message())));
  }

  void dynamic_text_data() {
    QTest::addColumn<QString>("graph");
    for (const fs::path& graph : graphs_of_models()) {
      const std::string text = text_of(graph);
      if (text.find("\"Sym(s") == std::string::npos || graph.parent_path().filename() != "graphs") continue;
      if (graph.stem() == "forward" || graph.stem() == "core" || above_autograd(graph))
        QTest::addRow("%s", qPrintable(row_name(graph))) << QString::fromStdString(graph.string());
    }
  }
  /// Sizes come from the recorded inputs, which are only the user's. Random weights may come before them.
  void dynamic_text() {
    QFETCH(QString, graph);
    const fs::path folder = fs::path(graph.toStdString()).parent_path().parent_path();
    for (const char* backend : {"interp", "cpu"}) {
      const Run run = partita_run({graph, "--backend", backend, "--random-weights", "1", "--inputs",
                                   QString::fromStdString((folder / "io.safetensors").string())});
      QVERIFY2(run.code == 0, qPrintable(run.error));
    }
  }
};

QTEST_GUILESS_MAIN(TestModels)
#include "test_models.moc"
