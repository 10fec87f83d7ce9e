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

  void bounds() {
    IndexMath m;
    SymExpr i = m.variable("i", 6);
    QVERIFY(m.bounds(SymExpr(3) - i * 2) == std::make_pair(std::int64_t{-7}, std::int64_t{3}));
    QVERIFY(m.bounds(sym_max(i - 2, 0)) == std::make_pair(std::int64_t{0}, std::int64_t{3}));
  }

  void factors() {
    IndexMath m;
    SymExpr i = m.variable("i", 6), j = m.variable("j", 4);
    QCOMPARE(m.factor(i * 12 + j * 2 + 5, i), std::optional<std::int64_t>(12));
    QCOMPARE(m.factor(j, i), std::optional<std::int64_t>(0));
    QCOMPARE(m.factor(sym_mod(i, 4), i), std::optional<std::int64_t>());
  }
};

}  // namespace partita::loops

QTEST_MAIN(partita::loops::TestIndex)
#include "test_index.moc"
