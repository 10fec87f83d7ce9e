// Nodes of two graphs are matched by what they do, not by their names.
#include <QTest>

#include "core/diff/match_nodes.h"
#include "tests/support/fx.h"

using namespace partita;
using partita::testing::fx;

namespace {

/// The name in `b` of what matches the node of this name in `a`; empty: nothing does.
std::string in_b(const NodeMatch& match, const Graph& a, const char* name) {
  const Node* found = match.in_b(a.find(name));
  return found ? found->name() : std::string();
}

}  // namespace

class TestMatchNodes : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void namesAndSizesDoNotCount() {
    const auto a = fx("x: <f32[4][1]>, y: <f32[4][1]>",
                      "s: <f32[4][1]> = $sin(x)\nc: <f32[4][1]> = $cos(y)\nm: <f32[4][1]> = $mul.Tensor(s, c)\n"
                      "return (m,)");
    const auto b = fx("c: <f32[8][1]>, m: <f32[8][1]>",
                      "y: <f32[8][1]> = $sin(c)\nx: <f32[8][1]> = $cos(m)\ns: <f32[8][1]> = $mul.Tensor(y, x)\n"
                      "return (s,)");
    const NodeMatch match(*a, *b);
    QCOMPARE(in_b(match, *a, "s"), "y");
    QCOMPARE(in_b(match, *a, "c"), "x");
    QCOMPARE(in_b(match, *a, "m"), "s");
    QCOMPARE(in_b(match, *a, "x"), "c");
    QCOMPARE(in_b(match, *a, "y"), "m");
  }

  void anotherOperatorInTheSamePlaceIsAPair() {
    const auto a = fx("x: <f32[4][1]>",
                      "s: <f32[4][1]> = $sin(x)\nr: <f32[4][1]> = $relu(s)\n"
                      "e: <f32[4][1]> = $exp(r)\nreturn (e,)");
    const auto b = fx("x: <f32[4][1]>",
                      "s: <f32[4][1]> = $sin(x)\nr: <f32[4][1]> = $sigmoid(s)\n"
                      "e: <f32[4][1]> = $exp(r)\nreturn (e,)");
    const NodeMatch match(*a, *b);
    QCOMPARE(in_b(match, *a, "r"), "r");
    QCOMPARE(in_b(match, *a, "e"), "e");
  }

  void aRemovedLayerLeavesTheOthersMatched() {
    // Three equal layers against two, of which the second has another line: it is the third of the others.
    const char* line = "# File: model.py:{} in forward, code: {}\n";
    const auto layers = [&](std::initializer_list<int> lines) {
      std::string text, before = "x";
      for (const int n : lines) {
        text += fmt::format(fmt::runtime(line), n, fmt::format("layer {}", n));
        text += fmt::format("r{0}: <f32[4][1]> = $relu({1})\n", n, before);
        before = fmt::format("r{}", n);
      }
      return fx("x: <f32[4][1]>", text + "return (" + before + ",)");
    };
    const auto a = layers({1, 2, 3}), b = layers({1, 3});
    const NodeMatch match(*a, *b);
    QCOMPARE(in_b(match, *a, "r1"), "r1");
    QCOMPARE(in_b(match, *a, "r2"), "");
    QCOMPARE(in_b(match, *a, "r3"), "r3");
    QVERIFY(match.in_a(b->find("r3")) == a->find("r3"));
  }

  void equalCallsInOneLineKeepTheirOrder() {
    const auto a = fx("x: <f32[4][1]>",
                      "a: <f32[4][1]> = $relu(x)\nb: <f32[4][1]> = $relu(a)\n"
                      "c: <f32[4][1]> = $relu(b)\nreturn (c,)");
    const auto b = a->clone();
    const NodeMatch match(*a, *b);
    for (const char* name : {"a", "b", "c"}) QCOMPARE(in_b(match, *a, name), name);
  }
};

QTEST_GUILESS_MAIN(TestMatchNodes)
#include "test_match_nodes.moc"
