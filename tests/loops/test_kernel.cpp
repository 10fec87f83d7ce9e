#include <QtTest>
#include <numeric>

#include "core/loops/execute.h"
#include "tests/loops/mapped_kernels.h"

namespace partita::loops {
namespace {

/// out[i] = sum over j of x[4 i + j]
Kernel row_sums() {
  Kernel k;
  k.name = "row_sums";
  k.buffers = {{"x", DType::Float32, 12, Buffer::Role::Input}, {"out", DType::Float32, 3, Buffer::Role::Output}};
  k.accumulators = {{ScalarOp::Add, DType::Float32, 0}};
  SymExpr i = SymExpr::symbol("i0"), j = SymExpr::symbol("i1");
  Loop inner{"i1", 4, Mapping::Serial, true, {0}, {Reduce{0, k.scalars.load(0, i * 4 + j, DType::Float32)}}};
  Loop outer{"i0", 3, Mapping::Thread, false, {}, {inner, Store{1, i, {}, k.scalars.input(0, DType::Float32)}}};
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
             "  for i0 in 3 thread:\n"
             "    a0: f32 = 0\n"
             "    for i1 in 4 vector:\n"
             "      a0 = Add(a0, x[4*i0 + i1])\n"
             "    out[i0] = a0\n");
  }

  /// x squared 60 times: every value is used twice, so there are 2^60 paths to the first.
  void values_are_checked_once() {
    Kernel k = row_sums();
    k.accumulators.clear();
    Scalar x = k.scalars.load(0, SymExpr::symbol("i0"), DType::Float32);
    for (int i = 0; i < 60; ++i) x = k.scalars.Mul(x, x);
    k.body = {Loop{"i0", 3, Mapping::Thread, true, {}, {Store{1, SymExpr::symbol("i0"), {}, x}}}};
    QCOMPARE(verify(k), std::vector<std::string>());
    QVERIFY(print(k).size() < 10'000);
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
    k.body = {Loop{"i0",
                   4,
                   Mapping::Serial,
                   false,
                   {},
                   {Store{2, 1, at, k.scalars.load_at(1, at, DType::Float32), Accumulate::Plain}}}};
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
    for (const char* fault : {"", "store to x, an input", "store to out uses i1 outside of its loop",
                              "store to out uses accumulator a0, which is not complete",
                              "reduction to a0 outside of its loop", "loop variable i0 is used twice",
                              "thread loop i0 is neither outermost nor a group's", "store to unknown buffer 7",
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
      Loop around{"i9", 2, Mapping::Serial, false, {}, {outer}};
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

  void prints_how_threads_work_together() {
    QCOMPARE(QString::fromStdString(print(testing::reversed_rows(3, 2))),
             "kernel reversed_rows(in x: f32[12], shared scratch row: f32[4], out out: f32[12], out sum: f32[3])\n"
             "  for i0 in 3 block:\n"
             "    for i1 in 2 thread:\n"
             "      for i2 in 2 unroll:\n"
             "        row[2*i1 + i2] = x[4*i0 + 2*i1 + i2]\n"
             "    barrier\n"
             "    a0: f32 = 0\n"
             "    for i3 in 4 thread:\n"
             "      t1 = row[-i3 + 3]\n"
             "      out[4*i0 + i3] = t1\n"
             "      a0 = Add(a0, t1)\n"
             "    sum[i0] = a0\n");
    QVERIFY(QString::fromStdString(print(testing::counts(4, 2))).contains("    atomic out[at[i0]] += 1\n"));
  }

  void threads_work_together() {
    QCOMPARE(verify(testing::reversed(6)), std::vector<std::string>());
    QCOMPARE(verify(testing::reversed_rows(3, 2)), std::vector<std::string>());
    QCOMPARE(verify(testing::counts(6, 2)), std::vector<std::string>());
    float x[12], t[6], out[12], sum[3];
    std::iota(x, x + 12, 0.0f);
    void* twelve[] = {x, out, sum};
    QVERIFY(execute(testing::reversed_rows(3, 2), twelve));
    QCOMPARE(out[0], 3.0f);
    QCOMPARE(out[11], 8.0f);
    QCOMPARE(sum[1], 22.0f);
    void* six[] = {x, t, out};
    QVERIFY(execute(testing::reversed(6), six));
    QCOMPARE(out[0], 10.0f);
    QCOMPARE(out[5], 0.0f);
    std::int64_t at[] = {0, 1, 1, 0, 1, 1}, counted[2] = {};
    void* counting[] = {at, counted};
    QVERIFY(execute(testing::counts(6, 2), counting));
    QCOMPARE(counted[0], 2);
    QCOMPARE(counted[1], 4);
  }

  /// Each is a kernel that is right for threads except for one fault. The text is the executor's error; empty where it
  /// cannot notice, because it runs loops in one order.
  void planted_faults_data() {
    QTest::addColumn<QString>("verifier");
    QTest::addColumn<QString>("executor");
    QTest::newRow("no barrier") << "no barrier between loop i0 and loop i1, which both use t" << "loops.race";
    QTest::newRow("stored while it is read")
        << "no barrier between loop i0 and loop i1, which both use t" << "loops.race";
    QTest::newRow("no barrier in a group")
        << "no barrier between loop i1 and loop i3, which both use row" << "loops.race";
    QTest::newRow("no barrier at the end of a turn")
        << "no barrier between loop i3 and loop i1, which both use row" << "loops.race";
    QTest::newRow("one thread of a group stores for all")
        << "no barrier between a store and loop i1, which both use row" << "loops.race";
    QTest::newRow("plain sums") << "store to out adds in thread loop i0, but not atomically" << "loops.race";
    QTest::newRow("all store to one element") << "" << "loops.race";
    QTest::newRow("atomic sums beside loads")
        << "no barrier between loop i0 and loop i1, which both use out" << "loops.race";
    QTest::newRow("lanes read one another's stores") << "" << "loops.race";
    QTest::newRow("scratch of a thread for a group") << "scratch row is used beyond its scope" << "loops.scratch";
    QTest::newRow("shared scratch without a group")
        << "scratch t is shared, but outside of block loops" << "loops.scratch";
    QTest::newRow("scratch of a thread for all threads") << "scratch t is used beyond its scope" << "loops.scratch";
    QTest::newRow("a barrier that some threads reach") << "a barrier within loop i1" << "";
    QTest::newRow("a barrier of all threads in a loop") << "a barrier within loop i9" << "";
    QTest::newRow("threads that are no group reduce")
        << "thread loop i0 reduces, but its threads are not a group" << "";
    QTest::newRow("groups within groups") << "block loop i0 is neither outermost nor a group's" << "";
    QTest::newRow("unrolled how often") << "loop i2 is unrolled n times, which is not a number" << "";
    QTest::newRow("shared output") << "out is shared but not scratch" << "";
  }
  void planted_faults() {
    QFETCH(QString, verifier);
    QFETCH(QString, executor);
    const QString fault = QTest::currentDataTag();
    Kernel k = testing::reversed(6);
    const auto loop = [](Stmt& s) -> Loop& { return std::get<Loop>(s); };
    const auto store = [](Stmt& s) -> Store& { return std::get<Store>(s); };
    if (fault == "no barrier") k.body.erase(k.body.begin() + 1);
    if (fault == "stored while it is read") {
      k.body.erase(k.body.begin() + 1);
      std::swap(store(loop(k.body[0]).body[0]), store(loop(k.body[1]).body[0]));
      store(loop(k.body[0]).body[0]).element = SymExpr::symbol("i0");
      store(loop(k.body[1]).body[0]).element = SymExpr::symbol("i1");
      Scalar& read = store(loop(k.body[0]).body[0]).value;
      read = k.scalars.load(1, SymExpr(5) - SymExpr::symbol("i0"), DType::Float32);
      store(loop(k.body[1]).body[0]).value = k.scalars.load(0, SymExpr::symbol("i1"), DType::Float32);
    }
    if (fault.contains("group") && !fault.contains("no group") && !fault.contains("without"))
      k = testing::reversed_rows(3, 2);
    if (fault.contains("turn") || fault.contains("some threads") || fault.contains("unrolled"))
      k = testing::reversed_rows(3, 2);
    if (fault == "no barrier in a group") loop(k.body[0]).body.erase(loop(k.body[0]).body.begin() + 1);
    if (fault == "no barrier at the end of a turn") {
      Loop& group = loop(k.body[0]);
      Loop turns{"i9", 2, Mapping::Serial, false, {}, {group.body[0], group.body[1], group.body[2]}};
      group.body = {turns};
    }
    if (fault.startsWith("one thread of a group")) {
      Loop& group = loop(k.body[0]);
      const Store one{1, 3, {}, k.scalars.constant(DType::Float32, 1)};
      group.body.insert(group.body.begin(), one);
    }
    if (fault == "plain sums" || fault == "atomic sums beside loads") k = testing::counts(6, 2);
    if (fault == "plain sums") store(loop(k.body[0]).body[0]).accumulate = Accumulate::Plain;
    if (fault == "atomic sums beside loads") {
      k.buffers.push_back({"seen", DType::Int64, 6, Buffer::Role::Output});
      const Scalar seen = k.scalars.load(1, 0, DType::Int64);
      k.body.push_back(Loop{"i1", 6, Mapping::Thread, false, {}, {Store{2, SymExpr::symbol("i1"), {}, seen}}});
    }
    if (fault == "all store to one element") store(loop(k.body[2]).body[0]).element = 0;
    if (fault.startsWith("lanes")) {
      Store chained{1, SymExpr::symbol("i0") + 1, {}, k.scalars.load(1, SymExpr::symbol("i0"), DType::Float32)};
      k.body = {Loop{"i0", 5, Mapping::Serial, true, {}, {chained}}};
    }
    if (fault == "scratch of a thread for a group") k.buffers[1].scope = Buffer::Scope::Thread;
    if (fault.contains("without a group") || fault == "scratch of a thread for all threads") {
      k.buffers[1].role = Buffer::Role::Scratch;
      if (fault.startsWith("shared")) k.buffers[1].scope = Buffer::Scope::Block;
    }
    if (fault == "a barrier that some threads reach") loop(loop(k.body[0]).body[0]).body.push_back(Barrier{});
    if (fault == "a barrier of all threads in a loop")
      k.body = {Loop{"i9", 2, Mapping::Serial, false, {}, {Barrier{}}}};
    if (fault == "threads that are no group reduce") {
      k.accumulators = {{ScalarOp::Add, DType::Float32, 0}};
      loop(k.body[0]).accumulators = {0};
    }
    if (fault == "groups within groups") k.body = {Loop{"i9", 2, Mapping::Block, false, {}, {k.body[0]}}};
    if (fault == "unrolled how often") loop(loop(loop(k.body[0]).body[0]).body[0]).extent = SymExpr::symbol("n");
    if (fault == "shared output") k.buffers[2].scope = Buffer::Scope::Block;

    const std::vector<std::string> broken = verify(k);
    if (verifier.isEmpty())
      QVERIFY2(broken.empty(), broken.empty() ? "" : broken[0].c_str());
    else
      QVERIFY2(std::ranges::find(broken, verifier.toStdString()) != broken.end(), fmt::format("{}", broken).c_str());
    if (executor.isEmpty()) return;
    std::int64_t memory[4][12] = {};
    void* buffers[] = {memory[0], memory[1], memory[2], memory[3]};
    const Status done = execute(k, buffers);
    QVERIFY(!done);
    QCOMPARE(QString::fromStdString(done.error().code), executor);
  }
};

}  // namespace partita::loops

QTEST_MAIN(partita::loops::TestKernel)
#include "test_kernel.moc"
