#include <QtTest>
#include <numeric>

#include "core/loops/execute.h"

namespace partita::loops {
namespace {

/// out[i] = sum over j of x[4 i + j]
Kernel row_sums() {
  Kernel k;
  k.name = "row_sums";
  k.buffers = {{"x", DType::Float32, 12, Buffer::Role::Input}, {"out", DType::Float32, 3, Buffer::Role::Output}};
  k.accumulators = {{ScalarOp::Add, DType::Float32, 0}};
  SymExpr i = SymExpr::symbol("i0"), j = SymExpr::symbol("i1");
  Loop inner{"i1", 4, false, true, {0}, {Reduce{0, k.scalars.load(0, i * 4 + j, DType::Float32)}}};
  Loop outer{"i0", 3, true, false, {}, {inner, Store{1, i, {}, k.scalars.input(0, DType::Float32), false}}};
  k.body = {outer};
  return k;
}

}  // namespace

class TestKernel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void prints() {
    QCOMPARE(QString::fromStdString(print(row_sums())),
             "kernel row_sums(in x: f32[12], out out: f32[3])\n"
             "  for i0 in 3 parallel:\n"
             "    a0: f32 = 0\n"
             "    for i1 in 4 vector:\n"
             "      a0 = Add(a0, x[4*i0 + i1])\n"
             "    out[i0] = a0\n");
  }

  void runs() {
    float x[12], out[3];
    std::iota(x, x + 12, 0.0f);
    void* buffers[] = {x, out};
    QVERIFY(execute(row_sums(), buffers));
    QCOMPARE(out[0], 6.0f);
    QCOMPARE(out[2], 38.0f);
  }

  void gathers_and_scatters() {
    Kernel k;
    k.buffers = {{"at", DType::Int64, 4, Buffer::Role::Input},
                 {"x", DType::Float32, 4, Buffer::Role::Input},
                 {"out", DType::Float32, 5, Buffer::Role::Output}};
    SymExpr i = SymExpr::symbol("i0");
    Scalar at = k.scalars.load(0, i, DType::Int64);
    k.body = {Loop{"i0", 4, false, false, {}, {Store{2, 1, at, k.scalars.load_at(1, at, DType::Float32), true}}}};
    QVERIFY(verify(k).empty());
    std::int64_t places[] = {0, 3, 3, 1};
    float x[] = {1, 2, 4, 8}, out[5] = {};
    void* buffers[] = {places, x, out};
    QVERIFY(execute(k, buffers));
    QCOMPARE(out[0], 0.0f);
    QCOMPARE(out[1], 1.0f);
    QCOMPARE(out[2], 2.0f);
    QCOMPARE(out[4], 16.0f);
  }

  void verifier_data() {
    QTest::addColumn<QString>("expected");
    for (const char* fault :
         {"", "store to x, an input", "store to out uses i1 outside of its loop",
          "store to out uses accumulator a0, which is not complete", "reduction to a0 outside of its loop",
          "loop variable i0 is used twice", "loop i0 is parallel but not outermost", "store to unknown buffer 7",
          "x is streamed but not an output", "reduction to a0 loads from x, which is streamed"})
      QTest::newRow(fault) << fault;
  }
  void verifier() {
    QFETCH(QString, expected);
    Kernel k = row_sums();
    Loop& outer = std::get<Loop>(k.body[0]);
    Loop& inner = std::get<Loop>(outer.body[0]);
    Store& store = std::get<Store>(outer.body[1]);
    if (expected.startsWith("store to x")) store.buffer = 0;
    if (expected.startsWith("store to out uses i1")) store.element = SymExpr::symbol("i1");
    if (expected.contains("not complete")) std::swap(outer.body[0], outer.body[1]);
    if (expected.contains("outside of its loop") && expected.startsWith("reduction")) inner.accumulators.clear();
    if (expected.contains("twice")) inner.var = "i0";
    if (expected.contains("outermost")) {
      Loop around{"i9", 2, false, false, {}, {outer}};
      k.body = {around};
    }
    if (expected.contains("unknown buffer")) store.buffer = 7;
    if (expected.contains("streamed")) k.buffers[0].streamed = true;
    auto broken = verify(k);
    if (expected.isEmpty()) {
      QVERIFY(broken.empty());
      return;
    }
    QVERIFY(!broken.empty());
    QVERIFY2(std::ranges::find(broken, expected.toStdString()) != broken.end(), broken[0].c_str());
  }
};

}  // namespace partita::loops

QTEST_MAIN(partita::loops::TestKernel)
#include "test_kernel.moc"
