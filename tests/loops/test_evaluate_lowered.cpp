// Definitions are evaluated as the loops that are made of them: what operators without an evaluation of their own give.
#include <QtTest>

#include "core/loops/evaluate_lowered.h"
#include "tests/support/values.h"

namespace partita::loops {
namespace {

using partita::testing::elements;
using partita::testing::f32;
using partita::testing::i64;
using Values = std::vector<double>;

/// What a tensor made of one in memory has as elements.
template <class Make>
Result<Values> made_of(const Tensor& x, Make make) {
  Lowering g;
  const LoweredTensor in = g.memory(x.dtype, {x.sizes.begin(), x.sizes.end()});
  const LoweredTensor result = make(g, in);
  Sizes sizes;
  for (SymExpr s : result.sizes) sizes.push_back(s.as_int());
  const Tensor out = *Tensor::zeros(result.dtype, sizes);
  TRY_DO(evaluate(g, {{in.id, x}}, {{result}}, {{out}}));
  return elements(out);
}

}  // namespace

class TestEvaluateLowered : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// The memory is a transposed view with an offset.
  void reads_memory_by_its_strides() {
    const Tensor x = f32({7}, {9, 0, 1, 2, 3, 4, 5}).view_as({2, 3}, {1, 2}, 1);
    const auto same = made_of(x, [](Lowering& g, const LoweredTensor& t) { return g.reshape(t, {6}); });
    QCOMPARE(*same, (Values{0, 2, 4, 1, 3, 5}));
  }

  /// Remainders and extremes of indices are no multiples of a variable.
  void computes_indices() {
    const auto wrapped = made_of(f32({3}, {1, 2, 3}), [](Lowering& g, const LoweredTensor& t) {
      return g.map(t.dtype, {7}, [t](Body& body, const Index& i) {
        const Scalar last = body.read(t, {sym_min(i[0], 2)});
        return body.b.Add(body.b.Mul(body.read(t, {body.math.mod(i[0], 3)}), body.b.constant(t.dtype, 10)), last);
      });
    });
    QCOMPARE(*wrapped, (Values{11, 22, 33, 13, 23, 33, 13}));
  }

  /// In single precision the ones would be lost beside 2^24.
  void sums_in_double() {
    Values terms(1001, 1);
    terms[0] = 0x1p24;
    const auto sum = made_of(f32({1001}, terms),
                             [](Lowering& g, const LoweredTensor& t) { return g.reduce(t, ScalarOp::Add, {true}); });
    QCOMPARE(*sum, (Values{0x1p24 + 1000}));
  }

  void reduces_some_dimensions() {
    const Tensor x = f32({2, 3}, {1, 5, 3, 4, 2, 6});
    const auto over = [&](std::vector<bool> reduced) {
      return *made_of(x, [&](Lowering& g, const LoweredTensor& t) { return g.reduce(t, ScalarOp::Max, reduced); });
    };
    QCOMPARE(over({false, true}), (Values{5, 6}));
    QCOMPARE(over({true, false}), (Values{4, 5, 6}));
  }

  /// The last of several writes to an element stays, and additions are added.
  void writes_in_order() {
    const auto put = [](bool adds) {
      return *made_of(i64({5}, {0, 1, 0, 2, 0}), [&](Lowering& g, const LoweredTensor& at) {
        const Definition::Write zero{{3},
                                     [](Body& body, const Index&) { return body.b.constant(DType::Int64, 0); },
                                     [](Body&, const Index& i) { return i; }};
        const Definition::Write each{
            {5},
            [](Body& body, const Index& i) { return body.scalar(i[0] + 1); },
            [at](Body& body, const Index& i) { return Index{body.indirect(body.read(at, i), 3)}; },
            adds,
            true};
        return g.writes(DType::Int64, {3}, {zero, each});
      });
    };
    QCOMPARE(put(false), (Values{5, 2, 4}));
    QCOMPARE(put(true), (Values{9, 2, 4}));
  }

  void checks_indices() {
    const auto taken = made_of(i64({3}, {0, 2, 3}), [](Lowering& g, const LoweredTensor& at) {
      return g.map(DType::Int64, {3}, [at](Body& body, const Index& i) {
        const Scalar position =
            body.b.within(body.read(at, i), {"", "index {} is out of bounds for dimension 0 with size {}", 3, false});
        return body.read(at, {body.indirect(position, 3)});
      });
    });
    QVERIFY(!taken);
    QCOMPARE(taken.error().message, std::string("index 3 is out of bounds for dimension 0 with size 3"));
  }

  void nothing_is_made_of_nothing() {
    const auto none =
        made_of(f32({0, 4}, {}), [](Lowering& g, const LoweredTensor& t) { return g.cast(t, DType::Int64); });
    QCOMPARE(*none, Values());
  }
};

}  // namespace partita::loops

QTEST_MAIN(partita::loops::TestEvaluateLowered)
#include "test_evaluate_lowered.moc"
