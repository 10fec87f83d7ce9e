// Sizes that only values decide have other names in annotations than we give them.
#include <QtTest>

#include "core/fake/renaming.h"

using namespace partita;

namespace {

SymExpr u(int n) {
  return SymExpr::symbol("u" + std::to_string(n));
}

/// A vector with this size.
Meta vector_of(SymExpr size) {
  TensorMeta meta;
  meta.sizes = {size};
  meta.strides = {1};
  return meta;
}

}  // namespace

class TestRenaming : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sizes_that_differ_in_names_only_are_the_same_data() {
    QTest::addColumn<QList<SymExpr>>("sizes");  // ours and the annotation's, in turn
    QTest::addColumn<bool>("same");
    const auto row = [](const char* name, QList<SymExpr> sizes, bool same) {
      QTest::newRow(name) << std::move(sizes) << same;
    };
    row("a symbol", {u(1), u(7)}, true);
    row("a symbol, met again", {u(1), u(7), u(1), u(7)}, true);
    row("a symbol that was another", {u(1), u(7), u(1), u(8)}, false);
    row("a symbol in a sum", {u(1) + 1, u(7) + 1}, true);
    row("a symbol in a sum, then alone", {u(1) + 1, u(7) + 1, u(1), u(7)}, true);
    row("a symbol in a sum, then another alone", {u(1) + 1, u(7) + 1, u(1), u(8)}, false);
    row("a symbol alone, then in a sum", {u(1), u(7), u(1) + 1, u(7) + 1}, true);
    row("sums of other numbers", {u(1) + 1, u(7) + 2}, false);
    row("a multiple", {u(1) * 2, u(7) * 2}, true);
    row("sums of two symbols, met before", {u(1), u(7), u(2), u(8), u(1) + u(2), u(7) + u(8)}, true);
    row("a number", {SymExpr(3), SymExpr(3)}, true);
    row("other numbers", {SymExpr(3), SymExpr(4)}, false);
  }
  void sizes_that_differ_in_names_only_are_the_same() {
    QFETCH(QList<SymExpr>, sizes);
    QFETCH(bool, same);
    const ShapeEnv shapes;
    UnbackedRenaming renaming(shapes);
    bool all = true;
    for (int i = 0; i < sizes.size(); i += 2) all = renaming.same(vector_of(sizes[i]), vector_of(sizes[i + 1])) && all;
    QCOMPARE(all, same);
  }
};

QTEST_GUILESS_MAIN(TestRenaming)
#include "test_renaming.moc"
