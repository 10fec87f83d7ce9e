// Joint graphs made from dynamo's graphs and from archives, compared with those PyTorch made of the same models.
#include <QtTest>
#include <algorithm>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "core/grad/joint.h"
#include "core/ir/verify.h"
#include "core/load/session.h"
#include "tests/support/corpus.h"

using namespace partita;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<Graph> load_graph(const fs::path& path) {
  auto loaded = load(path.string());
  if (!loaded) qFatal("%s", loaded.error().line().c_str());
  auto graph = loaded->artefacts.at(0).graph();
  if (!graph) qFatal("%s", graph.error().line().c_str());
  return std::move(*graph);
}

nlohmann::json case_of(const fs::path& model) {
  std::ifstream in(model / "case.json");
  return nlohmann::json::parse(in);
}

/// One "aten.mm.default f32[8, 4][4, 1]cpu" per call.
std::vector<std::string> calls(const Graph& graph) {
  std::vector<std::string> out;
  for (Node* n : graph)
    if (n->op()->is_call()) out.push_back(n->op()->name + " " + (n->meta.tuple() ? "" : annotation(n->meta)));
  return out;
}

/// What one list has more often than the other, "+2 aten.t.default ...", at most twelve entries.
std::string difference(std::vector<std::string> ours, const std::vector<std::string>& theirs) {
  std::map<std::string, int> count;
  for (const auto& s : ours) ++count[s];
  for (const auto& s : theirs) --count[s];
  std::string out;
  int rows = 0;
  for (const auto& [s, n] : count)
    if (n != 0 && ++rows <= 12) out += (n > 0 ? "+" : "") + std::to_string(n) + " " + s + "\n";
  return out;
}

}  // namespace

class CorpusJointTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    if (testing::corpus().empty()) QSKIP(testing::no_corpus);
  }

  void dynamo_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<bool>("in_order");
    for (auto [model, in_order] : {std::pair("mlp", true), std::pair("gpt2", true), std::pair("resnet", true)})
      QTest::newRow(model) << model << in_order;
  }

  void dynamo() {
    QFETCH(QString, model);
    QFETCH(bool, in_order);
    fs::path folder = testing::corpus() / "models" / model.toStdString();
    auto graph = load_graph(folder / "graphs" / "dynamo.py");
    auto theirs = load_graph(folder / "graphs" / "joint.py");
    FunctionalizeOptions options;
    const nlohmann::json facts = case_of(folder);
    for (const auto& input : facts["joint_inputs"]) options.requires_grad.push_back(input["kind"] == "param");
    auto functional = functionalize(*graph, options);
    QVERIFY2(functional, functional ? "" : functional.error().line().c_str());
    auto joint = make_joint(std::move(*functional));
    QVERIFY2(joint, joint ? "" : joint.error().line().c_str());
    std::string broken;
    for (const Diagnostic& d : verify(*joint->graph)) broken += d.line() + "\n";
    QCOMPARE(QString::fromStdString(broken), QString());
    // A `detach` of a result keeps its meta. All metas and operators are compared with PyTorch's.
    std::string differs = difference(calls(*joint->graph), calls(*theirs));
    QVERIFY2(differs.empty(), differs.c_str());
    if (in_order) QVERIFY(calls(*joint->graph) == calls(*theirs));
    QCOMPARE(joint->graph->outputs().size(), theirs->outputs().size());
    for (std::size_t i = 0; i < theirs->outputs().size(); ++i)
      QCOMPARE(joint->graph->outputs()[i].is_none(), theirs->outputs()[i].is_none());
  }
};

QTEST_GUILESS_MAIN(CorpusJointTest)
#include "test_corpus_joint.moc"
