// Graphs of jobs of two ranks, interpreted and compiled: a thread for each rank, values that must be gloo's.
#include <QtTest>

#include "codegen/backends.h"
#include "core/fake/propagate.h"
#include "core/load/safetensors.h"
#include "tests/support/close.h"
#include "tests/support/corpus.h"
#include "tests/support/fx.h"
#include "tests/support/model_inputs.h"
#include "tests/support/ranks.h"
#include "tests/support/result.h"

using namespace partita;
using namespace partita::testing;

namespace {

constexpr std::size_t two = 2;

Result<std::vector<Value>> run_on(const char* backend, const Graph& graph, std::vector<Value> inputs,
                                  const std::shared_ptr<Communicator>& others) {
  TRY(const Backend* found, find_backend(backend));
  const CompileFn compile = found->make({.communicator = others});
  TRY(const CompiledFn run, compile(graph));
  return run(std::move(inputs));
}

/// The graphs of two ranks, which differ in the order of their calls.
std::vector<std::unique_ptr<Graph>> two_graphs(const std::string& first, const std::string& second) {
  std::vector<std::unique_ptr<Graph>> out;
  for (std::string text : {first, second}) {
    for (std::size_t at; (at = text.find("@")) != std::string::npos;)
      text.replace(at, 1, "torch.ops._c10d_functional.");
    out.push_back(fx("x: <f32[3][1]>", text));
    if (const auto done = propagate(*out.back()); !done) throw std::runtime_error(done.error().line());
  }
  return out;
}

}  // namespace

class TestRanks : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void as_gloo_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("backend");
    for (const char* backend : {"interp", "cpu"}) {
      for (const char* name : {"reduces", "gathers", "exchanges"})
        QTest::addRow("%s %s", name, backend) << name << "inference" << backend;
      for (const char* name : {"vocab_parallel", "weight_shards"})
        for (const char* kind : {"forward", "backward"})
          QTest::addRow("%s %s %s", name, kind, backend) << name << kind << backend;
    }
  }
  void as_gloo() {
    QFETCH(QString, name);
    QFETCH(QString, kind);
    QFETCH(QString, backend);
    if (corpus().empty()) QSKIP(no_corpus);
    std::vector<std::unique_ptr<Graph>> graphs;
    std::vector<TensorFile> files;
    for (std::size_t r = 0; r < two; ++r) {
      const auto base = corpus() / "ranks" / name.toStdString() / ("rank_" + std::to_string(r)) / kind.toStdString();
      auto graph = parse_fx_text(text_of(base.string() + ".py"));
      QVERIFY_RESULT(graph);
      QVERIFY_RESULT(propagate(**graph));
      auto file = read_safetensors(base.string() + ".safetensors");
      QVERIFY_RESULT(file);
      graphs.push_back(*std::move(graph));
      files.push_back(*std::move(file));
    }
    Meeting meeting(two);
    const auto results = run_ranks(meeting, two, [&](std::size_t r, const std::shared_ptr<Communicator>& others) {
      std::vector<Value> inputs;
      for (std::size_t i = 0; i < graphs[r]->placeholders().size(); ++i)
        inputs.push_back(*files[r].find("input." + std::to_string(i)));
      return run_on(backend.toUtf8(), *graphs[r], std::move(inputs), others);
    });
    for (std::size_t r = 0; r < two; ++r) {
      QVERIFY_RESULT(results[r]);
      for (std::size_t i = 0; i < results[r]->size(); ++i) {
        const Tensor* wanted = files[r].find("output." + std::to_string(i));
        if (!wanted) continue;
        const auto ours = elements((*results[r])[i]), theirs = elements(Value(*wanted));
        QCOMPARE(ours.size(), theirs.size());
        for (std::size_t k = 0; k < ours.size(); ++k)
          QVERIFY2(std::abs(ours[k] - theirs[k]) <= 1e-5 * (1 + std::abs(theirs[k])),
                   qPrintable(QString("rank %1 output %2: %3, not %4").arg(r).arg(i).arg(ours[k]).arg(theirs[k])));
      }
    }
  }

  void backends_data() {
    QTest::addColumn<QString>("backend");
    for (const char* backend : {"interp", "f64", "cpu"}) QTest::addRow("%s", backend) << backend;
  }
  /// A start does not wait: ranks that start collectives of two groups in two orders do not hang.
  void starts_in_two_orders_data() { backends_data(); }
  void starts_in_two_orders() {
    QFETCH(QString, backend);
    const char* waits = "\nwa = @wait_tensor.default(a)\nwb = @wait_tensor.default(b)\nreturn (wa, wb)";
    const auto graphs = two_graphs(
        std::string("y = $neg(x)\na = @all_reduce.default(x, 'sum', 'A')\nb = @all_reduce.default(y, 'max', 'B')") +
            waits,
        std::string("y = $neg(x)\nb = @all_reduce.default(y, 'max', 'B')\na = @all_reduce.default(x, 'sum', 'A')") +
            waits);
    Meeting meeting(two);
    const auto results = run_ranks(meeting, two, [&](std::size_t r, const std::shared_ptr<Communicator>& others) {
      return run_on(backend.toUtf8(), *graphs[r], {f32({3}, {1. + static_cast<double>(r), 2, 3})}, others);
    });
    for (const auto& result : results) {
      QVERIFY_RESULT(result);
      QCOMPARE(elements((*result)[0]), (std::vector<double>{3, 4, 6}));
      QCOMPARE(elements((*result)[1]), (std::vector<double>{-1, -2, -3}));
    }
    std::vector<std::string> of_rank[two];
    for (const std::string& s : meeting.started) of_rank[s[0] - '0'].push_back(s.substr(s.size() - 1));
    QCOMPARE(of_rank[0], (std::vector<std::string>{"A", "B"}));
    QCOMPARE(of_rank[1], (std::vector<std::string>{"B", "A"}));
  }

  void lists_data() { backends_data(); }
  void lists() {
    QFETCH(QString, backend);
    const std::string text =
        "y = $neg(x)\nboth = @all_gather_into_tensor_coalesced.default([x, y], 2, 'A')\na = both[0]\nb = both[1]\n"
        "wb = @wait_tensor.default(b)\nwa = @wait_tensor.default(a)\ns = $add.Tensor(wa, wb)\nreturn (s, wb)";
    const auto graphs = two_graphs(text, text);
    Meeting meeting(two);
    const auto results = run_ranks(meeting, two, [&](std::size_t r, const std::shared_ptr<Communicator>& others) {
      return run_on(backend.toUtf8(), *graphs[r], {f32({3}, {1, 2, static_cast<double>(r)})}, others);
    });
    for (const auto& result : results) {
      QVERIFY_RESULT(result);
      QCOMPARE(elements((*result)[0]), std::vector<double>(6));
      QCOMPARE(elements((*result)[1]), (std::vector<double>{-1, -2, 0, -1, -2, -1}));
    }
  }

  /// What is read or returned without a wait, or nobody reads: the result is whole, and memory that is used again is
  /// not overwritten.
  void results_without_a_wait_data() { backends_data(); }
  void results_without_a_wait() {
    QFETCH(QString, backend);
    const std::string text =
        "dead = @all_reduce.default(x, 'max', 'A')\na = @all_reduce.default(x, 'sum', 'A')\n"
        "s = $sin(x)\nr = $sort(s)\nq = r[0]\nb = $mul.Tensor(a, 2)\nc = @all_reduce.default(b, 'sum', 'A')\n"
        "return (b, c, q)";
    const auto graphs = two_graphs(text, text);
    Meeting meeting(two);
    const auto results = run_ranks(meeting, two, [&](std::size_t r, const std::shared_ptr<Communicator>& others) {
      return run_on(backend.toUtf8(), *graphs[r], {f32({3}, {0, 0, static_cast<double>(r)})}, others);
    });
    for (const auto& result : results) {
      QVERIFY_RESULT(result);
      QCOMPARE(elements((*result)[0]), (std::vector<double>{0, 0, 2}));
      QCOMPARE(elements((*result)[1]), (std::vector<double>{0, 0, 4}));
    }
    QCOMPARE(elements((*results[0])[2]), (std::vector<double>{0, 0, 0}));
    QCOMPARE(meeting.started.size(), std::size_t{6});
  }
};

QTEST_GUILESS_MAIN(TestRanks)
#include "test_ranks.moc"
