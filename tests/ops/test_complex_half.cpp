// complex32: the calls that PyTorch has kernels for on a CPU. Expected values are PyTorch 2.13's.
#include <QtTest>
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/record/complex_half.h"
#include "core/ops/record/record.h"
#include "core/tensor/float8.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// One-dimensional, of these pairs.
Tensor complex_half(const std::vector<double>& parts) {
  Tensor t = tensor(DType::Float16, {static_cast<std::int64_t>(parts.size())}, parts);
  return Tensor{t.storage, DType::Complex32, {t.sizes[0] / 2}, {1}, 0};
}

/// The parts of complex numbers, else the elements.
QList<double> parts(const Value& v) {
  std::vector<double> out;
  if (const auto* t = v.get<Tensor>(); t && t->dtype == DType::Complex32) {
    const Tensor dense = *t->contiguous();
    out = elements(Tensor{dense.storage, DType::Float16, {2 * dense.numel()}, {1}, 2 * dense.offset});
  } else {
    out = elements(v);
  }
  return {out.begin(), out.end()};
}

}  // namespace

class TestComplexHalf : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void is_rounded_once_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<QList<double>>("expected");
    using L = QList<double>;
    // x = [1 + 2j, 2048 + 0.5j], y = [3 - 1j, 1 + 1j]
    QTest::newRow("a sum") << "aten.add.Tensor" << L{4, 1, 2048, 1.5};  // 2049 is between two halves
    QTest::newRow("a product") << "aten.mul.Tensor" << L{5, 5, 2048, 2048};
    QTest::newRow("a difference") << "aten.sub.Tensor" << L{-2, 3, 2047, -0.5};
    QTest::newRow("in place") << "aten.mul_.Tensor" << L{5, 5, 2048, 2048};
    QTest::newRow("equality") << "aten.eq.Tensor" << L{0, 0};
    QTest::newRow("a magnitude") << "aten.abs.default" << L{2.236328125, 2048};
    QTest::newRow("a conjugate") << "aten._conj.default" << L{1, -2, 2048, -0.5};
    QTest::newRow("a resolved conjugate") << "aten.conj_physical.default" << L{1, -2, 2048, -0.5};
    QTest::newRow("a copy") << "aten.clone.default" << L{1, 2, 2048, 0.5};
    QTest::newRow("zeros") << "aten.zeros_like.default" << L{0, 0, 0, 0};
    QTest::newRow("a size") << "aten.sym_size.int" << L{2};
    QTest::newRow("no kernel: a quotient") << "aten.div.Tensor" << L{};
    QTest::newRow("no kernel: an exponential") << "aten.exp.default" << L{};
    QTest::newRow("no kernel: a sum of all") << "aten.sum.default" << L{};
  }

  void is_rounded_once() {
    QFETCH(QString, op);
    QFETCH(QList<double>, expected);
    const Op* call = Op::torch(op.toStdString());
    const Schema* schema = find_schema(call);
    QVERIFY(schema);
    std::vector<Value> args = {complex_half({1, 2, 2048, 0.5})};
    if (schema->args.size() > 1 && schema->args[1].type == SchemaType::Tensor)
      args.emplace_back(complex_half({3, -1, 1, 1}));
    if (schema->args.size() > 1 && schema->args[1].name == "dim") args.emplace_back(std::int64_t{0});
    const auto found = evaluate(call, std::move(args), {});
    if (expected.isEmpty()) {
      QVERIFY(!found);
      QVERIFY2(found.error().message.find("complex32") != std::string::npos, found.error().line().c_str());
      return;
    }
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(parts(*found), expected);
  }

  /// A half and a complex number make complex32, though neither is.
  void of_a_half_and_a_number() {
    const auto found = evaluate(Op::torch("aten.mul.Tensor"),
                                {tensor(DType::Float16, {2}, {1, 2}), complex_half({0, 2}).view_as({}, {}, 0)}, {});
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(found->get<Tensor>()->dtype, DType::Complex32);
    QCOMPARE(parts(*found), (QList<double>{0, 2, 0, 4}));
  }

  /// 1 is 1 in every dtype that is not opaque, out of every other; only float8 and complex32 are not converted to each
  /// other.
  void each_dtype_converts_to_each() {
    std::vector<DType> dtypes;
#define V(name, ...) \
  if (!is_opaque(DType::name)) dtypes.push_back(DType::name);
    PARTITA_DTYPES(V)
#undef V
    QVERIFY(std::ranges::find(dtypes, DType::Float8E4M3FN) != dtypes.end());
    const Tensor one = tensor(DType::Float32, {2}, {1, 1});
    for (const DType from : dtypes)
      for (const DType to : dtypes) {
        const Result<Tensor> first = one.to(from);
        QVERIFY(first);
        const Result<Tensor> second = first->to(to);
        if ((is_float8(from) && to == DType::Complex32) || (from == DType::Complex32 && is_float8(to))) {
          QVERIFY(!second);
          continue;
        }
        QVERIFY2(second && second->dtype == to && second->item_as_double(0) == 1 && second->item_as_double(1) == 1,
                 fmt::format("{} to {}", torch_name(from), torch_name(to)).c_str());
      }
  }

  void converts() {
    const Tensor z = complex_half({1.5, -2, 0, 3});
    const Tensor wide = *z.to(DType::Complex128);
    QCOMPARE(wide.as<std::complex<double>>()[0], std::complex<double>(1.5, -2));
    QCOMPARE(parts(*wide.to(DType::Complex32)), parts(z));
    QCOMPARE(elements(*z.to(DType::Float32)), (std::vector<double>{1.5, 0}));
    QCOMPARE(elements(*z.to(DType::Bool)), (std::vector<double>{1, 1}));
    QVERIFY(!z.to(DType::Float8E4M3FN));
  }
};

QTEST_GUILESS_MAIN(TestComplexHalf)
#include "test_complex_half.moc"
