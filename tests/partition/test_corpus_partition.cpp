// PyTorch's joint graphs of the corpus, partitioned: never more saved bytes than PyTorch's, and nothing expensive
// recomputed.
#include <QtTest>
#include <chrono>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/ir/verify.h"
#include "core/load/fx_text.h"
#include "core/partition/cost.h"
#include "core/partition/read_cut.h"
#include "tests/support/corpus.h"

using namespace partita;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::unique_ptr<Graph> load_graph(const fs::path& path) {
  auto graph = parse_fx_text(read(path), path.string());
  if (!graph) qFatal("%s", graph.error().line().c_str());
  return std::move(*graph);
}

std::string structure_of(const Graph& g) {
  std::string out;
  for (const Diagnostic& d : verify(g)) out += d.line() + "\n";
  return out;
}

/// Sets symbols to the sizes that the example inputs had.
void set_hints(Graph& graph, const nlohmann::json& facts) {
  std::map<std::string, nlohmann::json> shapes;
  for (const auto& t : facts["tensors"]) shapes[t["key"]] = t["shape"];
  for (const auto& input : facts["joint_inputs"]) {
    Node* node = graph.find(input["name"].get<std::string>());
    auto shape = shapes.find(input["target"].get<std::string>());
    if (!node || !node->meta.tensor() || shape == shapes.end()) continue;
    const SymList& sizes = node->meta.tensor()->sizes;
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d].kind() == SymKind::Symbol) graph.shapes->set_hint(sizes[d].name(), shape->second[d]);
  }
}

/// "+name" for what only our partition has, "-name" for what only PyTorch's has; "order" when only the order differs.
std::string difference(const std::vector<std::string>& ours, const std::vector<std::string>& theirs) {
  std::string out;
  for (const std::string& n : ours)
    if (std::find(theirs.begin(), theirs.end(), n) == theirs.end()) out += " +" + n;
  for (const std::string& n : theirs)
    if (std::find(ours.begin(), ours.end(), n) == ours.end()) out += " -" + n;
  if (out.empty() && ours != theirs) out = "order";
  return out;
}

}  // namespace

class CorpusPartitionTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    if (testing::corpus().empty()) QSKIP(testing::no_corpus);
  }

  void models_data() {
    QTest::addColumn<QString>("joint");
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("section");
    fs::path models = testing::corpus() / "models";
    if (!fs::exists(models)) return;
    for (const auto& entry : fs::directory_iterator(models)) {
      if (!fs::exists(entry.path() / "graphs" / "joint.py")) continue;
      std::string name = entry.path().filename().string();
      for (auto [section, file] :
           {std::pair("no_decomp", "graphs/joint.py"), std::pair("inductor_decomp", "graphs/inductor_decomp/joint.py")})
        if (fs::exists(entry.path() / file))
          QTest::newRow((name + "." + section).c_str())
              << QString::fromStdString((entry.path() / file).string()) << QString::fromStdString(name) << section;
    }
  }

  void models() {
    QFETCH(QString, joint);
    QFETCH(QString, model);
    QFETCH(QString, section);
    auto graph = load_graph(joint.toStdString());
    auto facts = nlohmann::json::parse(read(testing::corpus() / "models" / model.toStdString() / "case.json"));
    const auto& expected = facts["partition"][section.toStdString()];

    set_hints(*graph, facts);

    auto cut = partition(*graph);
    QVERIFY2(cut, cut ? "" : cut.error().line().c_str());
    QCOMPARE(structure_of(*cut->forward), std::string());
    QCOMPARE(structure_of(*cut->backward), std::string());
    auto theirs = expected["min_cut"]["saved_activation_bytes"].get<std::int64_t>();
    auto theirs_all = expected["min_cut"]["saved_bytes_with_inputs"].get<std::int64_t>();
    qInfo("min-cut %lld of %lld bytes, with inputs %lld of %lld, %zu recomputed (%lld operations)",
          static_cast<long long>(cut->activation_bytes), static_cast<long long>(theirs),
          static_cast<long long>(cut->activation_bytes + cut->input_bytes), static_cast<long long>(theirs_all),
          cut->recomputed.size(), static_cast<long long>(cut->recomputed_operations.as_int()));
    QVERIFY(cut->activation_bytes <= theirs);
    QVERIFY(cut->activation_bytes + cut->input_bytes <= theirs_all);
    QCOMPARE(cut->forward_outputs, expected["min_cut"]["num_fwd_outputs"].get<std::size_t>());
    for (const std::string& name : cut->recomputed) {
      CostClass c = cost_class(*cut->backward->find(name));
      QVERIFY2(!c.expensive && !c.random && !c.side_effect, name.c_str());
    }

    // PyTorch's own cut, from the graphs beside the joint one. A view of an input is no memory of its own there.
    const fs::path folder = fs::path(joint.toStdString()).parent_path();
    const auto forward = load_graph(folder / "forward.py"), backward = load_graph(folder / "backward.py");
    set_hints(*forward, facts);
    const auto pytorch = read_cut(*forward, *backward);
    QVERIFY2(pytorch, pytorch ? "" : pytorch.error().line().c_str());
    QCOMPARE(pytorch->forward_outputs, expected["min_cut"]["num_fwd_outputs"].get<std::size_t>());
    QCOMPARE(pytorch->activation_bytes + pytorch->input_bytes, theirs_all);
    QVERIFY(pytorch->activation_bytes <= theirs);
    QCOMPARE(pytorch->forward->outputs().size(), pytorch->forward_outputs + pytorch->saved.size());
    for (const CutDifference& d : compare_cuts(*pytorch, *cut)) {
      QVERIFY2(d.theirs || d.ours, d.name.c_str());
      QVERIFY2(!d.why.empty(), d.name.c_str());
    }

    auto eager = partition(*graph, {.partitioner = Partitioner::Default});
    QVERIFY2(eager, eager ? "" : eager.error().line().c_str());
    std::vector<std::string> names, expected_names;
    for (const SavedValue& s : eager->saved) names.push_back(s.name);
    for (const auto& s : expected["default"]["saved_list"]) expected_names.push_back(s[0].get<std::string>());
    QCOMPARE(QString::fromStdString(difference(names, expected_names)), QString());
    QCOMPARE(eager->forward->size(), expected["default"]["forward_nodes"].get<std::size_t>());
    QCOMPARE(eager->backward->size(), expected["default"]["backward_nodes"].get<std::size_t>());
    QCOMPARE(eager->activation_bytes, expected["default"]["saved_activation_bytes"].get<std::int64_t>());
  }

  void big_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("milliseconds");
    QTest::newRow("gpt12") << "gpt12" << 500;
    QTest::newRow("gpt12_nodecomp") << "gpt12_nodecomp" << 500;
    QTest::newRow("gpt24") << "gpt24" << 1500;
    QTest::newRow("swin30") << "swin30" << 3000;
    QTest::newRow("gpt48") << "gpt48" << 3000;
  }

  void big() {
    QFETCH(QString, name);
    QFETCH(int, milliseconds);
    fs::path folder = testing::corpus() / "big" / name.toStdString();
    if (!fs::exists(folder / "joint.py")) QSKIP("not in this corpus");
    auto graph = load_graph(folder / "joint.py");
    auto sizes = nlohmann::json::parse(read(testing::corpus() / "big" / "sizes.json"))[name.toStdString()];
    auto start = std::chrono::steady_clock::now();
    auto cut = partition(*graph);
    auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
    QVERIFY2(cut, cut ? "" : cut.error().line().c_str());
    qInfo("%zu nodes, %lld ms, min-cut %lld bytes", graph->size(), static_cast<long long>(took),
          static_cast<long long>(cut->activation_bytes));
    if (sizes.contains("min_cut")) {
      QVERIFY(cut->activation_bytes <= sizes["min_cut"]["saved_activation_bytes"].get<std::int64_t>());
      QVERIFY(cut->activation_bytes + cut->input_bytes <=
              sizes["min_cut"]["saved_bytes_with_inputs"].get<std::int64_t>());
    }
    // Generous, because tests also run under sanitizers and beside other programs.
    QVERIFY(took < 20 * milliseconds);
  }
};

QTEST_GUILESS_MAIN(CorpusPartitionTest)
#include "test_corpus_partition.moc"
