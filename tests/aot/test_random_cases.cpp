// The corpus' AOT cases whose numbers depend on a generator that was not recorded. As the corpus' README asks, this
// compares their statistics, and the numbers of equal seeds with one another.
#include <QtTest>
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/interp/interpreter.h"
#include "core/load/fx_text.h"
#include "core/load/safetensors.h"
#include "tests/support/corpus.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Moments {
  double mean = 0, variance = 0, count = 0;
};
Moments moments(const Value& v) {
  Moments m;
  const std::vector<double> x = elements(v);
  m.count = static_cast<double>(x.size());
  for (double e : x) m.mean += e / m.count;
  for (double e : x) m.variance += (e - m.mean) * (e - m.mean) / m.count;
  return m;
}

Result<std::vector<Value>> run(const Graph& graph, const Tensor& input, std::uint64_t seed) {
  TRY(const Tensor own, input.clone());
  InterpOptions options;
  options.generator = std::make_shared<Generator>(seed);
  return interpret(graph, {own}, options);
}

}  // namespace

class TestRandomCases : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void statistics_data() {
    QTest::addColumn<QString>("name");
    QTest::newRow("rand_dropout") << "rand_dropout";
    QTest::newRow("rand_inplace_noise") << "rand_inplace_noise";
  }
  void statistics() {
    if (corpus().empty()) QSKIP(no_corpus);
    QFETCH(QString, name);
    const auto folder = corpus() / "aot" / name.toStdString();
    std::ifstream file(folder / "forward.py");
    std::stringstream text;
    text << file.rdbuf();
    const auto graph = parse_fx_text(text.str());
    QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
    const auto io = read_safetensors((folder / "io.safetensors").string());
    QVERIFY2(io, io ? "" : io.error().line().c_str());

    const auto a = run(**graph, io->tensors.at("in.0"), 1), again = run(**graph, io->tensors.at("in.0"), 1),
               b = run(**graph, io->tensors.at("in.0"), 2);
    QVERIFY2(a && again && b, a ? "" : a.error().line().c_str());
    for (std::size_t i = 0; io->tensors.contains("out." + std::to_string(i)); ++i) {
      const Tensor& expected = io->tensors.at("out." + std::to_string(i));
      QVERIFY((*a)[i].get<Tensor>()->sizes == expected.sizes);
      QCOMPARE(elements((*a)[i]), elements((*again)[i]));
      QVERIFY(elements((*a)[i]) != elements((*b)[i]));
      const Moments x = moments(expected), y = moments((*a)[i]);
      QVERIFY(std::abs(x.mean - y.mean) < 6 * std::sqrt((x.variance + y.variance) / x.count));
    }
  }
};

QTEST_GUILESS_MAIN(TestRandomCases)
#include "test_random_cases.moc"
