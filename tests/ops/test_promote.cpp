// Type promotion, broadcasting and output strides, compared with PyTorch 2.13's.
#include <QTest>

#include "core/ops/record/promote.h"

using namespace partita;

namespace {

using Rank = Operand::Rank;
const Schema schema;
FakeCall no_call() {
  static ShapeEnv shapes;
  return FakeCall(schema, {}, shapes);
}

TensorMeta meta(SymList sizes, SymList strides) {
  TensorMeta m;
  m.sizes = std::move(sizes);
  m.strides = std::move(strides);
  return m;
}

QString text(const SymList& list) {
  QStringList out;
  for (const SymExpr& e : list) out << QString::fromStdString(e.str());
  return out.join(",");
}

}  // namespace

class Promote : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void result_types();
  void promotion_kinds();
  void broadcasting();
  void strides_data();
  void strides();
};

void Promote::result_types() {
  struct Row {
    Operand a, b;
    DType expected;
  };
  const Row rows[] = {
      {{DType::Int32, Rank::Tensor}, {DType::Int64, Rank::Number}, DType::Int32},
      {{DType::Int32, Rank::Tensor}, {DType::Float32, Rank::Number}, DType::Float32},
      {{DType::BFloat16, Rank::Tensor}, {DType::Float32, Rank::Number}, DType::BFloat16},
      {{DType::BFloat16, Rank::Tensor}, {DType::Float32, Rank::Tensor}, DType::Float32},
      {{DType::BFloat16, Rank::Tensor}, {DType::Float16, Rank::Tensor}, DType::Float32},
      {{DType::Float32, Rank::Tensor}, {DType::Float64, Rank::ZeroDim}, DType::Float32},
      {{DType::Int64, Rank::Tensor}, {DType::Float64, Rank::ZeroDim}, DType::Float64},
      {{DType::Int8, Rank::ZeroDim}, {DType::Int64, Rank::Number}, DType::Int8},
      {{DType::Bool, Rank::Tensor}, {DType::Int64, Rank::Number}, DType::Int64},
      {{DType::UInt8, Rank::Tensor}, {DType::Int8, Rank::Tensor}, DType::Int16},
      {{DType::Float64, Rank::Tensor}, {DType::Complex64, Rank::Number}, DType::Complex128},
      {{DType::Float64, Rank::ZeroDim}, {DType::Complex64, Rank::Tensor}, DType::Complex64},
      {{DType::Int64, Rank::Tensor}, {DType::Complex64, Rank::Number}, DType::Complex64},
  };
  for (const Row& row : rows) {
    const Operand both[] = {row.a, row.b}, swapped[] = {row.b, row.a};
    QCOMPARE(torch_name(result_type(both)), torch_name(row.expected));
    QCOMPARE(torch_name(result_type(swapped)), torch_name(row.expected));
  }
}

void Promote::promotion_kinds() {
  const Operand half[] = {{DType::Float16, Rank::Tensor}}, whole[] = {{DType::Int32, Rank::Tensor}},
                flag[] = {{DType::Bool, Rank::Tensor}}, complex[] = {{DType::Complex128, Rank::Tensor}};
  struct Row {
    Promotion kind;
    std::span<const Operand> operands;
    DType compute, result;
  };
  const Row rows[] = {
      {Promotion::Default, half, DType::Float32, DType::Float16},
      {Promotion::Default, whole, DType::Int32, DType::Int32},
      {Promotion::IntToFloat, whole, DType::Float32, DType::Float32},
      {Promotion::IntToFloat, half, DType::Float32, DType::Float16},
      {Promotion::AlwaysBool, half, DType::Float32, DType::Bool},
      {Promotion::ComplexToFloat, complex, DType::Complex128, DType::Float64},
      {Promotion::BoolToLong, flag, DType::Int64, DType::Int64},
      {Promotion::BoolToLong, whole, DType::Int32, DType::Int32},
  };
  for (const Row& row : rows) {
    Promoted p = promote(row.kind, row.operands);
    QCOMPARE(torch_name(p.compute), torch_name(row.compute));
    QCOMPARE(torch_name(p.result), torch_name(row.result));
  }
}

void Promote::broadcasting() {
  FakeCall call = no_call();
  const SymList fits[] = {{4, 1, 3}, {2, 1}, {}};
  QCOMPARE(text(broadcast(call, fits)), QString("4,2,3"));
  const SymList clash[] = {{4, 3}, {2, 3}};
  try {
    broadcast(call, clash);
    QFAIL("sizes 4 and 2 broadcast");
  } catch (Raise& raised) {
    QCOMPARE(raised.diagnostic.message,
             std::string("The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 0"));
  }
}

void Promote::strides_data() {
  QTest::addColumn<int>("row");
  for (int i = 0; i < 8; ++i) QTest::addRow("%d", i) << i;
}

void Promote::strides() {
  // Sizes of the result, the operands, and PyTorch's (a + b).stride() or (-a).stride().
  struct Row {
    SymList sizes;
    std::vector<TensorMeta> operands;
    QString expected;
  };
  const Row rows[] = {
      {{2, 3}, {meta({2, 3}, {3, 1}), meta({3}, {1})}, "3,1"},
      {{2, 3}, {meta({2, 3}, {1, 2})}, "1,2"},
      {{2, 3}, {meta({2, 3}, {1, 2}), meta({2, 3}, {3, 1})}, "1,2"},
      {{2, 3}, {meta({2, 3}, {3, 1}), meta({2, 3}, {1, 2})}, "3,1"},
      {{2, 3}, {meta({2, 3}, {0, 1})}, "3,1"},
      {{2, 1}, {meta({2, 1}, {0, 1})}, "1,1"},
      {{2, 4, 3, 5}, {meta({2, 4, 3, 5}, {60, 1, 20, 4}), meta({4, 1, 1}, {1, 1, 1})}, "60,1,20,4"},
      {{4, 3}, {meta({4, 3}, {6, 2})}, "3,1"},
  };
  QFETCH(int, row);
  std::vector<const TensorMeta*> operands;
  for (const TensorMeta& m : rows[row].operands) operands.push_back(&m);
  QCOMPARE(text(elementwise_strides(no_call(), rows[row].sizes, operands)), rows[row].expected);
}

QTEST_APPLESS_MAIN(Promote)
#include "test_promote.moc"
