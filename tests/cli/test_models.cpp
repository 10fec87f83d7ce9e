// The models of the corpus through the command line: the programs interpreted and compiled, with gradients where
// PyTorch's are recorded, and PyTorch's own graphs under the debug interpreter. All folders of the corpus are run.
#include <QtTest>
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/compare/compare.h"
#include "core/interp/debug_interpreter.h"
#include "core/interp/random_values.h"
#include "core/load/fx_text.h"
#include "core/load/safetensors.h"
#include "tests/support/corpus.h"

using namespace partita;
using namespace partita::testing;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders() {
  std::vector<fs::path> found;
  for (const char* group : {"models", "extra"})
    for (const auto& entry : fs::directory_iterator(corpus() / group))
      if (fs::exists(entry.path() / "program.pt2") && fs::exists(entry.path() / "io.safetensors"))
        found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Does the program draw random numbers? Its recorded values then come from PyTorch's generator.
bool is_random(const fs::path& folder) {
  return text_of(folder / "exported.py").find("torch.ops.aten.rand") != std::string::npos;
}

QString row_name(const fs::path& path) {
  return QString::fromStdString(fs::relative(path, corpus()).string());
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

/// Graphs before autograd. Their strides depend on the grad mode in which they were traced: attention uses another
/// kernel when its mask requires grad.
bool above_autograd(const fs::path& graph) {
  const std::string stem = graph.stem().string();
  return stem == "dynamo" || stem == "exported" || stem.starts_with("pre_grad");
}

/// The graph, with an example value for each symbol.
Result<std::unique_ptr<Graph>> with_sizes(const fs::path& path) {
  TRY(std::unique_ptr<Graph> graph, parse_fx_text(text_of(path)));
  choose_sizes(*graph);
  for (const Node* n : *graph)  // constants, which text does not hold
    if (n->is(Op::get_attr()) && !graph->child(n->target)) {
      TRY(const Value made_up, random_value(n->meta, *graph->shapes, 1));
      if (const Tensor* t = made_up.get<Tensor>()) graph->attributes.emplace(n->target, *t);
    }
  return graph;
}

/// The value with the strides of `meta`, because PyTorch's compiler changes layouts between its graphs.
Value laid_out(const Value& value, const Meta& meta) {
  const Tensor* t = value.get<Tensor>();
  const TensorMeta* wanted = meta.tensor();
  if (!t || !wanted || !wanted->strides_known) return value;
  Sizes strides;
  for (SymExpr s : wanted->strides) {
    if (!s.is_int()) return value;
    strides.push_back(s.as_int());
  }
  const auto out = Tensor::empty_strided(t->dtype, t->sizes, strides);
  if (!out) return value;
  out->copy_from(*t);
  return *out;
}

/// Values by name returned by another graph of the folder, if it returns everything that `graph` takes except tangents.
std::map<std::string, Value> from_forward(const fs::path& path, const Graph& graph) {
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    if (entry.path() == path || entry.path().extension() != ".py" || above_autograd(entry.path())) continue;
    const auto forward = with_sizes(entry.path());
    if (!forward) continue;
    const std::vector<Arg> returned = (*forward)->outputs();
    std::set<std::string> names;
    for (const Arg& a : returned)
      if (a.node()) names.insert(a.node()->name());
    const bool all = std::ranges::all_of(graph.placeholders(), [&](const Node* p) {
      return p->name().starts_with("tangents_") || names.contains(p->name());
    });
    if (!all) continue;
    const auto inputs = random_inputs(**forward, 1);
    if (!inputs) continue;
    const auto outputs = interpret(**forward, *inputs);
    if (!outputs) continue;
    std::map<std::string, Value> values;
    for (std::size_t i = 0; i < returned.size(); ++i)
      if (returned[i].node()) values[returned[i].node()->name()] = (*outputs)[i];
    return values;
  }
  return {};
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
      for (const char* program : {"program.pt2", "program.core.pt2"})
        for (const char* backend : {"interp", "cpu", "debug"})
          if (fs::exists(folder / program))
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
    if (run.code == 3) QSKIP(qPrintable(run.error.trimmed()));
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
  /// In PyTorch's own graphs, every value must match its annotation. Inputs are random; those of a backward are the
  /// values that the forward beside it returns under their names.
  void graphs() {
    QFETCH(QString, graph);
    const fs::path path = graph.toStdString();
    const auto parsed = with_sizes(path);
    QVERIFY2(parsed, parsed ? "" : parsed.error().line().c_str());
    auto inputs = random_inputs(**parsed, 1);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    const std::vector<Node*> placeholders = (*parsed)->placeholders();
    const auto saved = from_forward(path, **parsed);
    for (std::size_t i = 0; i < placeholders.size(); ++i)
      if (auto it = saved.find(placeholders[i]->name()); it != saved.end())
        (*inputs)[i] = laid_out(it->second, placeholders[i]->meta);
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
