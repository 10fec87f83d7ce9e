// The graphs of the corpus' jobs, interpreted on all ranks together, give what gloo gave them.
#include <QtTest>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/interp/interpreter.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"
#include "core/ranks/run_together.h"
#include "tests/support/corpus.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

namespace fs = std::filesystem;

/// The values of a graph's placeholders; of objects that are no tensors, their text.
Result<std::vector<Value>> inputs_of(const Graph& graph, const TensorFile& io) {
  std::vector<Value> out;
  for (std::size_t i = 0; i < graph.placeholders().size(); ++i) {
    const Tensor* given = io.find(fmt::format("input.{}", i));
    if (!given) {
      out.emplace_back(std::string("an object"));
      continue;
    }
    // Files hold row-major copies; a transposed input is laid out again.
    Tensor t = *given;
    if (const TensorMeta* meta = graph.placeholders()[i]->meta.tensor(); meta && meta->strides_known) {
      Sizes strides;
      for (const SymExpr& e : meta->strides) strides.push_back(e.as_int());
      TRY(t, Tensor::empty_strided(given->dtype, given->sizes, strides));
      t.copy_from(*given);
    }
    out.emplace_back(t);
  }
  return out;
}

struct Rank {
  std::unique_ptr<Graph> graph;
  TensorFile io;
  std::vector<Value> outputs;
};

std::vector<Rank> read(const fs::path& folder, const std::string& kind, int ranks) {
  std::vector<Rank> out;
  for (int r = 0; r < ranks; ++r) {
    const std::string stem = (folder / fmt::format("rank_{}", r) / kind).string();
    auto loaded = load(stem + ".py");
    auto io = read_safetensors(stem + ".safetensors");
    if (!loaded || !io) throw std::runtime_error(stem);
    auto graph = (*(*loaded).pick(""))->graph();
    if (!graph) throw std::runtime_error(graph.error().line());
    out.push_back({*std::move(graph), *std::move(io), {}});
  }
  return out;
}

TogetherRun run(const Job& job, std::vector<Rank>& ranks) {
  TogetherOptions options;
  options.computing = 2;
  auto done = run_together(
      job,
      [&](int rank, Communicator& others, const Progress& progress) -> Status {
        Rank& own = ranks[static_cast<std::size_t>(rank)];
        TRY(std::vector<Value> inputs, inputs_of(*own.graph, own.io));
        TRY(own.outputs, interpret(*own.graph, std::move(inputs), {.progress = &progress, .communicator = &others}));
        return {};
      },
      options);
  if (!done) throw std::runtime_error(done.error().line());
  return *std::move(done);
}

}  // namespace

class TestGloo : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void corpus_jobs_data();
  void corpus_jobs();
  void many_ranks();
  void tells_the_line();
};

void TestGloo::corpus_jobs_data() {
  QTest::addColumn<QString>("folder");
  QTest::addColumn<QString>("kind");
  if (corpus().empty()) QSKIP(no_corpus);
  for (const auto& entry : fs::directory_iterator(corpus() / "ranks"))
    for (const char* kind : {"inference", "forward", "backward"})
      if (fs::exists(entry.path() / "rank_0" / (std::string(kind) + ".py")))
        QTest::newRow((entry.path().filename().string() + " " + kind).c_str())
            << QString::fromStdString(entry.path().string()) << kind;
}

void TestGloo::corpus_jobs() {
  QFETCH(QString, folder);
  QFETCH(QString, kind);
  constexpr int count = 2;
  std::vector<Rank> ranks = read(folder.toStdString(), kind.toStdString(), count);
  const TogetherRun done = run({.ranks = count}, ranks);
  QVERIFY2(!done.failure, done.failure ? done.failure->line().c_str() : "");
  int compared = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t i = 0; i < ranks[r].outputs.size(); ++i) {
      const Tensor* expected = ranks[r].io.find(fmt::format("output.{}", i));
      const auto* found = ranks[r].outputs[i].get<Tensor>();
      QCOMPARE(found != nullptr, expected != nullptr);
      if (!found) continue;
      const auto x = elements(Value(*expected)), y = elements(Value(*found));
      QCOMPARE(y.size(), x.size());
      for (std::size_t k = 0; k < x.size(); ++k)
        QVERIFY2(std::abs(x[k] - y[k]) <= 1e-5 + 1e-4 * std::abs(x[k]),
                 fmt::format("rank {} output.{}[{}]: {} expected, {} found", r, i, k, x[k], y[k]).c_str());
      ++compared;
    }
  QVERIFY(compared > 0);
}

// 64 ranks of a graph with a reduction in each layer, with one copy of it.
void TestGloo::many_ranks() {
  constexpr int count = 64, layers = 40;
  std::string lines, x = "x";
  for (int i = 0; i < layers; ++i) {
    lines += fmt::format("m{0}: <f32[8, 8][8, 1]> = $mm({1}, w)\n", i, x);
    lines +=
        fmt::format("r{0}: <f32[8, 8][8, 1]> = torch.ops._c10d_functional.all_reduce.default(m{0}, 'avg', '0')\n", i);
    lines += fmt::format("v{0}: <f32[8, 8][8, 1]> = torch.ops._c10d_functional.wait_tensor.default(r{0})\n", i);
    x = fmt::format("v{}", i);
  }
  const std::unique_ptr<Graph> graph = fx("x: <f32[8, 8][8, 1]>, w: <f32[8, 8][8, 1]>", lines + "return (" + x + ",)");
  std::vector<double> identity(64);
  for (std::size_t i = 0; i < 8; ++i) identity[i * 9] = 1;
  std::vector<std::vector<double>> found(count);
  TogetherOptions options;
  options.computing = 2;
  const auto done = run_together(
      {.ranks = count},
      [&](int rank, Communicator& others, const Progress&) -> Status {
        std::vector<Value> inputs{Value(f32({8, 8}, std::vector<double>(64, rank))), Value(f32({8, 8}, identity))};
        TRY(const std::vector<Value> out, interpret(*graph, std::move(inputs), {.communicator = &others}));
        found[static_cast<std::size_t>(rank)] = elements(out[0]);
        return {};
      },
      options);
  QVERIFY(done && !done->failure);
  for (const auto& values : found) QCOMPARE(values, std::vector<double>(64, 31.5));
}

void TestGloo::tells_the_line() {
  const auto graph = [](const char* op) {
    return fx("x: <f32[2][1]>",
              fmt::format("# File: /home/me/model.py:7 in forward, code: y = all_reduce(x)\n"
                          "r: <f32[2][1]> = torch.ops._c10d_functional.all_reduce.default(x, '{}', '0')\n"
                          "v: <f32[2][1]> = torch.ops._c10d_functional.wait_tensor.default(r)\n"
                          "return (v,)",
                          op));
  };
  const std::unique_ptr<Graph> sum = graph("sum"), greatest = graph("max");
  const auto done = run_together({.ranks = 3}, [&](int rank, Communicator& others, const Progress&) -> Status {
    const auto out = interpret(rank == 1 ? *greatest : *sum, {Value(f32({2}, {1, 2}))}, {.communicator = &others});
    return out ? Status() : Status(out.error());
  });
  QVERIFY(done && done->failure);
  QCOMPARE(done->failure->where.node, std::string("r"));
  QVERIFY2(done->failure->message.find("all_reduce(max, f32[2]) on rank 1") != std::string::npos,
           done->failure->message.c_str());
}

QTEST_APPLESS_MAIN(TestGloo)
#include "test_gloo.moc"
