#include <QtTest>

#include "core/fake/propagate.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::testing;

namespace {

std::string meta_of(const Graph& graph, const char* node) {
  return annotation(graph.find(node)->meta);
}

}  // namespace

class TestPropagate : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_node_gets_its_meta() {
    const auto graph = fx("x: <f32[4, 3][3, 1]>, w: <bf16[5, 3][3, 1]>",
                          "t = $t(w)\nc = $_to_copy(t, dtype = torch.float32)\nm = $mm(x, c)\np = $gt.Scalar(m, 0)\n"
                          "s = $sum.dim_IntList(m, [1], True)\nreturn (p, s)");
    const auto computed = propagate(*graph);
    QVERIFY2(computed, computed ? "" : computed.error().line().c_str());
    QCOMPARE(*computed, std::size_t{5});
    QCOMPARE(meta_of(*graph, "t"), std::string("bf16[3, 5][1, 3]cpu"));
    QCOMPARE(meta_of(*graph, "m"), std::string("f32[4, 5][5, 1]cpu"));
    QCOMPARE(meta_of(*graph, "p"), std::string("b8[4, 5][5, 1]cpu"));
    QCOMPARE(meta_of(*graph, "s"), std::string("f32[4, 1][1, 1]cpu"));
  }

  void annotations_that_contradict_calls_are_told() {
    for (const char* said : {"f32[3, 3][3, 1]", "f32[2][1]", "i64[2, 3][3, 1]"}) {
      const auto graph = fx("x: <f32[2, 3][3, 1]>", std::string("y: <") + said + "> = $mul.Tensor(x, 2)\nreturn (y,)");
      const Status settled = settle_annotations(*graph);
      QVERIFY(!settled);
      QCOMPARE(settled.error().code, std::string("fake.annotation"));
    }
    const auto graph = fx("x: <f32[2, 3][3, 1]>", "y: <f32[2, 3][9, 1]> = $mul.Tensor(x, 2)\nreturn (y,)");
    QVERIFY(settle_annotations(*graph));
    QCOMPARE(meta_of(*graph, "y"), std::string("f32[2, 3][3, 1]cpu"));
  }

  void annotations_are_compared_by_what_is_known_of_sizes() {
    const auto differences = [](const std::string& said) {
      const auto graph = fx("x: <f32[s0, s1][s1, 1]>", "y: <f32[" + said + "]> = $mul.Tensor(x, 2)\nreturn (y,)");
      return check_metas(*graph).differences.size() + (settle_annotations(*graph) ? 0 : 1);
    };
    QCOMPARE(differences("s0, s1][Max(1, s1), 1"), std::size_t{0});
    QCOMPARE(differences("Max(0, Min(s0, s0 + 2)), s1][1*Max(1, s1), 1"), std::size_t{0});
    QCOMPARE(differences("s0, s1][Max(s0, s1), 1"), std::size_t{1});
  }

  void sizes_stay_symbolic_under_guards() {
    const auto graph = fx("n: \"Sym(s0)\", m: \"Sym(s1)\", x: <f32[s0, 4][4, 1]>, y: <f32[s1, 4][4, 1]>",
                          "a = $add.Tensor(x, y)\nc = $cat([a, x])\nreturn (c,)");
    graph->shapes->set_hint("s0", 3);
    graph->shapes->set_hint("s1", 3);
    const auto computed = propagate(*graph);
    QVERIFY2(computed, computed ? "" : computed.error().line().c_str());
    QVERIFY(meta_of(*graph, "a").starts_with("f32[s"));
    QVERIFY(meta_of(*graph, "c").starts_with("f32[2*s") || meta_of(*graph, "c").starts_with("f32[s"));
    // The sum needs equal sizes. Only the hints tell that they are equal, so there must be a guard.
    QVERIFY(!graph->shapes->guards().empty());
    const SymExpr equal = sym_eq(SymExpr::symbol("s0"), SymExpr::symbol("s1"));
    const auto again = graph->shapes->evaluate(equal, "test");
    QVERIFY(again && *again);
  }

  void selections_by_one_mask_have_one_size() {
    const auto sizes = [](const std::string& between, const std::string& second = "$index.Tensor(y, [m])") {
      const auto graph = fx("x: <f32[6, 4][4, 1]>, y: <i64[6][1]>, m: <b8[6][1]>",
                            "a = $index.Tensor(x, [m])\n" + between + "b = " + second + "\nreturn (a, b)");
      const auto computed = propagate(*graph);
      if (!computed) throw std::runtime_error(computed.error().line());
      return std::pair(graph->find("a")->meta.tensor()->sizes[0], graph->find("b")->meta.tensor()->sizes[0]);
    };
    const auto same = [](const std::pair<SymExpr, SymExpr>& s) { return s.first == s.second; };
    QVERIFY(same(sizes("")));
    QVERIFY(same(sizes("", "$nonzero(m)")));
    QVERIFY(sizes("c: <f32[s0, 4][4, 1]> = $index.Tensor(x, [m])\n").second.str().starts_with("u"));
    QVERIFY(!same(sizes("n = $logical_not_(m)\n")));
    QVERIFY(!same(sizes("v = $view(m, [6])\nn = $logical_not_(v)\n")));
    QVERIFY(!same(sizes("n = $logical_not(m)\n", "$nonzero(n)")));
  }

  void math_functions_have_their_names_in_texts() {
    const auto graph = fx("n: \"Sym(s0)\"", "f = torch.sym_float(n)\nh = f * 0.6\nk = math_trunc(h)\nreturn (k,)");
    graph->shapes->set_hint("s0", 5);
    const auto computed = propagate(*graph);
    QVERIFY2(computed, computed ? "" : computed.error().line().c_str());
    QCOMPARE(meta_of(*graph, "k"), std::string("Sym(TruncToInt(0.6*ToFloat(s0)))"));
  }

  void chunks_of_one_row_keep_the_padded_dimension() {
    const auto graph = fx("x: <f32[2, s0, s1][s0*s1, s1, 1]>", "c = $_chunk_cat([x, x], 1, 5)\nreturn (c,)");
    graph->shapes->set_hint("s0", 3);
    graph->shapes->set_hint("s1", 4);
    const auto computed = propagate(*graph);
    QVERIFY2(computed, computed ? "" : computed.error().line().c_str());
    QVERIFY(meta_of(*graph, "c").starts_with("f32[2, 5*(((s0 + 4)//5)), 2*s1]"));
  }

  void an_allocation_that_may_be_empty_has_strides_of_at_least_one() {
    const auto graph = fx("x: <f32[s0, s1][s1, 1]>",
                          "a = $slice.Tensor(x, 1, 0, -1)\nb = $slice.Tensor(x, 1, 1)\nc = $sub.Tensor(b, a)\n"
                          "return (c,)");
    graph->shapes->set_hint("s0", 3);
    graph->shapes->set_hint("s1", 5);
    const auto computed = propagate(*graph);
    QVERIFY2(computed, computed ? "" : computed.error().line().c_str());
    QCOMPARE(meta_of(*graph, "a"), std::string("f32[s0, s1 - 1][s1, 1]cpu"));
    QCOMPARE(meta_of(*graph, "c"), std::string("f32[s0, s1 - 1][Max(1, s1 - 1), 1]cpu"));
  }

  void a_slice_by_a_number_read_at_run_time_has_a_size_of_its_own() {
    const auto graph = fx("x: <f32[s0, 4][4, 1]>, i: <i64[][]>",
                          "n = $_local_scalar_dense(i)\nb = $slice.Tensor(x, 0, 0, n)\nc = $stack([b, b], 1)\n"
                          "return (c,)");
    graph->shapes->set_hint("s0", 3);
    const auto computed = propagate(*graph);
    QVERIFY2(computed, computed ? "" : computed.error().line().c_str());
    QCOMPARE(meta_of(*graph, "b"), std::string("f32[u1, 4][4, 1]cpu"));
    QCOMPARE(meta_of(*graph, "c"), std::string("f32[u1, 2, 4][8, 4, 1]cpu"));
  }

  void sizes_that_do_not_fit_are_reported() {
    const auto graph = fx("x: <f32[2, 3][3, 1]>, y: <f32[4, 5][5, 1]>", "m = $mm(x, y)\nreturn (m,)");
    const auto computed = propagate(*graph);
    QVERIFY(!computed);
    QCOMPARE(computed.error().where.node, std::string("m"));
    QCOMPARE(computed.error().exit_code(), 2);
  }

  void an_unknown_operator_keeps_its_annotation() {
    const auto annotated =
        fx("x: <f32[2][1]>", "a: <f32[7][1]> = torch.ops.mine.op.default(x)\nb = $neg(a)\nreturn (b,)");
    const auto computed = propagate(*annotated);
    QVERIFY2(computed, computed ? "" : computed.error().line().c_str());
    QCOMPARE(meta_of(*annotated, "b"), std::string("f32[7][1]cpu"));

    const auto bare = fx("x: <f32[2][1]>", "a = torch.ops.mine.op.default(x)\nreturn (a,)");
    const auto failed = propagate(*bare);
    QVERIFY(!failed);
    QCOMPARE(failed.error().code, std::string("ops.unknown"));
    QCOMPARE(failed.error().exit_code(), 3);
    QCOMPARE(failed.error().where.node, std::string("a"));
  }

  void wrong_annotations_are_listed() {
    const auto graph =
        fx("x: <f32[4, 3][3, 1]>", "a: <f32[4, 3][1, 4]> = $neg(x)\nb: <f32[4, 3][1, 4]> = $neg(a)\nreturn (b,)");
    const MetaCheck check = check_metas(*graph);
    QCOMPARE(check.checked, std::size_t{2});
    QCOMPARE(check.differences.size(), std::size_t{1});
    QCOMPARE(check.differences[0].node, std::string("a"));
    QCOMPARE(check.differences[0].annotated, std::string("f32[4, 3][1, 4]cpu"));
    QCOMPARE(check.differences[0].inferred, std::string("f32[4, 3][3, 1]cpu"));
  }
};

QTEST_GUILESS_MAIN(TestPropagate)
#include "test_propagate.moc"
