// Corpus cases: each graph of a case is reported by its kind, and a wrong graph of any kind is found.
#include <QtTest>
#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/compare/op_cases.h"
#include "tests/support/corpus.h"

using namespace partita;
using namespace partita::testing;

namespace {

namespace fs = std::filesystem;

/// Checks a copy of a case file in whose text `to` replaces every `from`.
Result<std::vector<CaseResult>> check_changed(const fs::path& original, const std::string& from,
                                              const std::string& to) {
  QTemporaryDir folder;
  std::ifstream in(original);
  std::ostringstream text;
  text << in.rdbuf();
  std::string changed = text.str();
  for (std::size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size())
    changed.replace(at, from.size(), to);
  const fs::path copy = fs::path(folder.path().toStdString()) / original.filename();
  std::ofstream(copy) << changed;
  fs::copy_file(fs::path(original).replace_extension(".safetensors"), fs::path(copy).replace_extension(".safetensors"));
  return check_cases(copy.string());
}

std::size_t count(const std::vector<CaseResult>& results, const std::string& kind, Outcome outcome) {
  std::size_t n = 0;
  for (const CaseResult& r : results) n += r.kind == kind && r.outcome == outcome;
  return n;
}

}  // namespace

class TestOpCases : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    if (corpus().empty()) QSKIP(no_corpus);
  }

  void every_graph_of_a_case_counts() {
    const auto add = check_cases((corpus() / "ops/add.default.json").string());
    QVERIFY2(add, add ? "" : add.error().line().c_str());
    QVERIFY(count(*add, "graph", Outcome::Passed) > 10);
    QVERIFY(count(*add, "symbolic_graph", Outcome::Passed) > 0);
    // layer_norm is not decomposed before dispatch.
    const auto norm = check_cases((corpus() / "ops/nn.functional.layer_norm.default.json").string());
    QVERIFY2(norm, norm ? "" : norm.error().line().c_str());
    QVERIFY(count(*norm, "pre_dispatch_graph", Outcome::Passed) > 0);
    for (const auto* results : {&*add, &*norm})
      for (const CaseResult& r : *results)
        QVERIFY2(r.outcome != Outcome::Failed, (r.file + " " + r.kind + ": " + r.message).c_str());
  }

  void a_wrong_value_fails_the_graphs_that_are_run() {
    const auto results = check_changed(corpus() / "ops/sin.default.json", "aten.sin.default", "aten.cos.default");
    QVERIFY2(results, results ? "" : results.error().line().c_str());
    for (const CaseResult& r : *results) QVERIFY(!r.by_double);
    // Our run in double is as wrong: it excuses nothing that rounding does not explain.
    const auto told = [](const CaseResult& r) { return r.message.find("rounding explains") != std::string::npos; };
    QVERIFY(std::ranges::any_of(*results, told));
    QCOMPARE(count(*results, "graph", Outcome::Passed), std::size_t{0});
  }

  void a_cancelling_sum_is_judged_in_double() {
    const auto results = check_cases((corpus() / "ops/nn.functional.conv3d.default.json").string(), {.train = true});
    QVERIFY2(results, results ? "" : results.error().line().c_str());
    QVERIFY(std::ranges::any_of(*results, &CaseResult::by_double));
    for (const CaseResult& r : *results) QVERIFY2(r.outcome == Outcome::Passed, r.message.c_str());
  }

  void a_wrong_symbolic_annotation_is_found() {
    const auto results =
        check_changed(corpus() / "ops/add.default.json", "add: \\\"f32[s75, s96]", "add: \\\"f32[s96, s75]");
    QVERIFY2(results, results ? "" : results.error().line().c_str());
    QVERIFY(count(*results, "symbolic_graph", Outcome::Failed) > 0);
    QCOMPARE(count(*results, "graph", Outcome::Failed), std::size_t{0});
  }
};

QTEST_GUILESS_MAIN(TestOpCases)
#include "test_op_cases.moc"
