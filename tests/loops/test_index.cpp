#include <QtTest>

#include "core/loops/index.h"

namespace partita::loops {

class TestIndex : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void simplifies_data() {
    QTest::addColumn<QString>("found");
    QTest::addColumn<QString>("expected");
    IndexMath m;
    SymExpr i = m.variable("i", 6), j = m.variable("j", 4), k = m.variable("k", 24);
    auto row = [&](const char* name, SymExpr found, const char* expected) {
      QTest::newRow(name) << QString::fromStdString(found.str()) << expected;
    };
    row("quotient of a row", m.floordiv(i * 4 + j, 4), "i");
    row("remainder of a row", m.mod(i * 4 + j, 4), "j");
    row("digits join", m.simplify(m.floordiv(k, 4) * 4 + m.mod(k, 4)), "k");
    row("digits join, scaled", m.simplify(m.floordiv(k, 4) * 40 + m.mod(k, 4) * 10), "10*k");
    row("middle digits join", m.simplify(m.mod(m.floordiv(k, 2), 3) * 2 + m.mod(k, 2)), "Mod(k, 6)");
    row("quotient of a quotient", m.floordiv(m.floordiv(k, 2), 3), "(k//6)");
    row("remainder of a remainder", m.mod(m.mod(k, 12), 4), "Mod(k, 4)");
    row("quotient by a negative number", m.floordiv(-4 * i, -4), "i");
    row("remainder by a negative number", m.mod(-4 * i - j, -4), "-j");
    row("in range", m.mod(j, 4), "j");
    row("beyond range", m.floordiv(j, 4), "0");
    row("common factor", m.floordiv(k * 6 + 3, 12), "(k//2)");
    row("constant split", m.floordiv(j + 8, 4), "2");
    row("not joined", m.simplify(m.floordiv(k, 4) * 3 + m.mod(k, 4)), "3*((k//4)) + Mod(k, 4)");
  }
  void simplifies() {
    QFETCH(QString, found);
    QFETCH(QString, expected);
    QCOMPARE(found, expected);
  }

  void a_reshape_and_back_gives_the_same_index() {
    IndexMath m;
    Index at{m.variable("a", 3), m.variable("b", 4), m.variable("c", 5)};
    QVERIFY(m.delinearize(m.linear(at, {3, 4, 5}), {3, 4, 5}) == at);
    Index flat = m.delinearize(m.linear(at, {3, 4, 5}), {12, 5});
    QVERIFY(m.delinearize(m.linear(flat, {12, 5}), {3, 4, 5}) == at);
  }

  void proves_ranges() {
    IndexMath m;
    SymExpr i = m.variable("i", 6);
    QVERIFY(m.within(sym_max(i - 2, 0), 4) && !m.within(sym_max(i - 2, 0), 3));
    QVERIFY(m.non_negative(SymExpr(7) + i - i * 2) && !m.non_negative(i - 1));
    const SymExpr n = SymExpr::symbol("s0");
    SymExpr j = m.variable("j", n), k = m.variable("k", n * 3 - 1);
    QVERIFY(m.within(j, n) && m.within(j + 1, n * 2) && m.within(j * 6 + i, n * 6) && m.within(k, n * 3));
    QVERIFY(!m.within(j + 1, n) && !m.within(k, n * 2) && !m.within(j - 1, n));
    QVERIFY(m.within(sym_min(j + 5, n - 1), n));
    QVERIFY(m.within(m.floordiv(m.variable("l", n * 4), n), 4));
    // Windows of 3 that fit into n.
    const SymExpr w = m.variable("w", sym_floordiv(n, 3));
    QVERIFY(m.within(w * 3 + 2, n) && !m.within(w * 3 + 3, n) && !m.within(w * 4, n));
  }

  void sizes_are_symbols_data() {
    QTest::addColumn<QString>("found");
    QTest::addColumn<QString>("expected");
    IndexMath m;
    const SymExpr n = SymExpr::symbol("s0"), w = SymExpr::symbol("s1");
    const SymExpr i = m.variable("i", n), j = m.variable("j", w), k = m.variable("k", n * w),
                  o = m.variable("o", n + 1);
    auto row = [&](const char* name, SymExpr found, SymExpr expected) {
      QTest::newRow(name) << QString::fromStdString(found.str()) << QString::fromStdString(expected.str());
    };
    row("quotient of a row", m.floordiv(i * w + j, w), i);
    row("remainder of a row", m.mod(i * w + j, w), j);
    row("digits join", m.simplify(m.floordiv(k, w) * w + m.mod(k, w)), k);
    row("digits join, scaled", m.simplify(m.floordiv(k, w) * w * n * 2 + m.mod(k, w) * n * 2), k * n * 2);
    row("digits of a sum join", m.simplify(m.floordiv(k, n + 1) * (n + 1) + m.mod(k, n + 1)), k);
    row("a row of a sum", m.floordiv(j * (n + 1) + o, n + 1), j);
    row("its remainder", m.mod(j * (n + 1) + o, n + 1), o);
    row("quotient of a quotient", m.floordiv(m.floordiv(k, w), n), 0);
    row("remainder of a remainder", m.mod(m.mod(k, w * 4), w), m.mod(k, w));
    row("common factor", m.floordiv(k * w + j, w * 4), m.floordiv(k, 4));
    row("a number and a size", m.floordiv(i * 4 + m.variable("q", 4), 4), i);
    row("two sizes at once", m.mod((i * w + j) * 4 + m.variable("q", 4), w * 4), j * 4 + SymExpr::symbol("q"));
    row("not known", m.floordiv(i + j, w), sym_floordiv(i + j, w));
  }
  void sizes_are_symbols() { simplifies(); }

  /// What is proved or simplified must hold for every size.
  void symbolic_results_hold_for_numbers() {
    const SymExpr n = SymExpr::symbol("s0"), w = SymExpr::symbol("s1");
    const SymList shapes[] = {{n, w}, {n * w}, {w, n}, {n, w, 1}, {n * 2, w * 3}, {n + 1, w}, {w, n + 1}, {6, n, w}};
    for (const SymList& from : shapes)
      for (const SymList& to : shapes) {
        IndexMath m;
        const Index at = m.variables("v", from);
        const Index found = m.delinearize(m.linear(at, from), to);
        for (const auto& [s0, s1] : {std::pair{2, 2}, {2, 3}, {5, 2}, {4, 6}}) {
          auto number = [&](SymExpr e, std::int64_t position) {
            std::int64_t rest = position;
            std::map<std::string, std::int64_t> values{{"s0", s0}, {"s1", s1}};
            for (std::size_t d = from.size(); d-- > 0;) {
              const auto size = static_cast<std::int64_t>(*from[d].evaluate(
                  [&](const std::string& s) { return std::optional<std::int64_t>(s == "s0" ? s0 : s1); }));
              values["v" + std::to_string(d)] = d == 0 ? rest : rest % size;
              rest /= size;
            }
            return static_cast<std::int64_t>(
                *e.evaluate([&](const std::string& s) { return std::optional(values.at(s)); }));
          };
          std::int64_t count = 1, kept = 1;
          for (SymExpr s : from) count *= number(s, 0);
          for (SymExpr s : to) kept *= number(s, 0);
          if (count != kept) continue;
          for (std::int64_t position = 0; position < count; ++position) {
            std::int64_t expected = position;
            for (std::size_t d = to.size(); d-- > 0;) {
              const std::int64_t size = number(to[d], 0);
              QCOMPARE(number(found[d], position), d == 0 ? expected : expected % size);
              expected /= size;
            }
          }
        }
      }
  }

  void factors() {
    IndexMath m;
    SymExpr i = m.variable("i", 6), j = m.variable("j", 4);
    QVERIFY(m.factor(i * 12 + j * 2 + 5, i) == std::optional<SymExpr>(12));
    QVERIFY(m.factor(j, i) == std::optional<SymExpr>(0));
    QVERIFY(m.factor(sym_mod(i, 4), i) == std::optional<SymExpr>());
  }
};

}  // namespace partita::loops

QTEST_MAIN(partita::loops::TestIndex)
#include "test_index.moc"
