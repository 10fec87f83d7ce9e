#include <QtTest>

#include "core/sym/shape_env.h"

using namespace partita;

class ShapeEnvTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void rangesDecide() {
    ShapeEnv env;
    SymExpr s = SymExpr::symbol("s0"), u = SymExpr::symbol("u0");
    env.set_range("s0", {2, 16});
    env.set_range("u0", {0, INT64_MAX});
    QCOMPARE(env.statically(sym_eq(s, 1)), std::optional(false));
    QCOMPARE(env.statically(sym_le(s * 2, 32)), std::optional(true));
    QCOMPARE(env.statically(sym_le(0, u)), std::optional(true));
    QCOMPARE(env.statically(sym_eq(u, 0)), std::nullopt);
    QCOMPARE(env.statically(sym_lt(s - 17, 0)), std::optional(true));
    QCOMPARE(env.statically(sym_lt(s - 16, 0)), std::nullopt);
    // Ranges without an upper end.
    const SymExpr open = SymExpr::symbol("s1");
    QCOMPARE(env.statically(sym_eq(1, open)), std::optional(false));
    QCOMPARE(env.statically(sym_le(open, open * 4)), std::optional(true));
    QCOMPARE(env.statically(sym_lt(open * 4, open)), std::optional(false));
    QCOMPARE(env.statically(sym_lt(open, open * open)), std::optional(true));  // open is at least 2
    QCOMPARE(env.statically(sym_lt(open * open, open * 2)), std::optional(false));
    QCOMPARE(env.statically(sym_lt(open * open, open * 3)), std::nullopt);
    QCOMPARE(env.statically(sym_eq(sym_mod(open, open * s), 0)), std::optional(false));  // the smaller is what remains
    QCOMPARE(env.statically(sym_eq(sym_mod(1, open), 1)), std::optional(true));
    QCOMPARE(env.statically(sym_eq(sym_mod(open, s), 0)), std::nullopt);
    QCOMPARE(env.statically(sym_eq(sym_mod(u, u * s), 0)), std::nullopt);  // u may be 0
    QCOMPARE(env.statically(sym_eq(open, u)), std::nullopt);
    QCOMPARE(env.statically(sym_lt(u - open, 0)), std::nullopt);
    QVERIFY(env.guards().empty());
  }

  void integersHaveNoSign() {
    ShapeEnv env;
    const SymExpr n = SymExpr::symbol("s0"), size = SymExpr::symbol("s1"), u = SymExpr::symbol("u0"),
                  f = SymExpr::symbol("zuf0");
    env.set_range("s0", {INT64_MIN, INT64_MAX});
    for (const SymExpr e : {n, u, f, n + size, n * size, sym_floordiv(n, 2), sym_pow(n, 3)}) {
      QCOMPARE(env.statically(sym_le(0, e)), std::nullopt);
      QCOMPARE(env.statically(sym_eq(e, 0)), std::nullopt);
    }
    QVERIFY(env.simplified(sym_max(n, 0)) == sym_max(n, 0));
    QVERIFY(env.simplified(sym_min(n, 1)) == sym_min(n, 1));
    QVERIFY(env.simplified(sym_max(size, 0)) == size);
    QVERIFY(env.simplified(sym_min(size, 1)) == SymExpr(1));
    QVERIFY(env.simplified(sym_max(sym_mod(n, 4), -1)) == sym_mod(n, 4));
    QVERIFY(env.simplified(sym_max(sym_max(n, size), 2)) == sym_max(n, size));
    QVERIFY(env.simplified(n * sym_max(size, 1) + 1) == n * size + 1);
  }

  void hintsDecideWithGuard() {
    ShapeEnv env;
    SymExpr s = SymExpr::symbol("s0"), t = SymExpr::symbol("s1");
    env.set_hint("s0", 4);
    env.set_hint("s1", 4);
    Result<bool> equal = env.evaluate(sym_eq(s, t), "broadcast");
    QVERIFY(equal && *equal);
    QVERIFY(*env.evaluate(sym_eq(s, t), "again"));
    QCOMPARE(env.guards().size(), std::size_t{1});
    QCOMPARE(env.guards()[0].condition.str(), std::string("Eq(s0, s1)"));
    QVERIFY(!*env.evaluate(sym_lt(s, t), "order"));
    QCOMPARE(env.guards()[1].condition.str(), std::string("s1 <= s0"));
  }

  void assertionsDecide() {
    ShapeEnv env;
    const SymExpr u = env.new_unbacked(INT64_MIN), v = env.new_unbacked(INT64_MIN), s = SymExpr::symbol("s0");
    QCOMPARE(env.statically(sym_le(-10, u)), std::nullopt);
    env.assume(sym_le(-10, u));
    QCOMPARE(env.statically(sym_le(-10, u)), std::optional(true));
    QCOMPARE(env.statically(sym_lt(u, -10)), std::optional(false));
    QCOMPARE(env.statically(sym_lt(-10, u)), std::nullopt);
    env.assume(sym_not(sym_le(u, -1)));
    QCOMPARE(env.ranges().at(u.name()).low, std::int64_t{0});
    // Of a sum with another symbol, and what follows from it.
    env.assume(sym_le(u + v, s));
    QCOMPARE(env.statically(sym_le(u + v, s + 2)), std::optional(true));
    QCOMPARE(env.statically(sym_lt(s, u + v)), std::optional(false));
    QCOMPARE(env.statically(sym_le(u + v, s - 1)), std::nullopt);
    env.assume(sym_eq(v, s - 1));
    QCOMPARE(env.statically(sym_eq(v, s - 1)), std::optional(true));
    // Of a backed size alone nothing is learned; guards tell what was found.
    env.assume(sym_le(s, 5));
    QCOMPARE(env.statically(sym_le(s, 5)), std::nullopt);
    // 0 < f does not mean 1 <= f.
    const SymExpr f = env.new_unbacked_float();
    env.assume(sym_lt(0, f));
    QCOMPARE(env.statically(sym_le(1, f)), std::nullopt);
  }

  void unbackedIsRefused() {
    ShapeEnv env;
    SymExpr u = env.new_unbacked();
    Result<bool> known = env.evaluate(sym_eq(u, 3), "size");
    QVERIFY(!known);
    QCOMPARE(known.error().code, std::string("sym.data_dependent"));
    QVERIFY(!(env.new_unbacked() == u));
  }
};

QTEST_APPLESS_MAIN(ShapeEnvTest)
#include "test_shape_env.moc"
