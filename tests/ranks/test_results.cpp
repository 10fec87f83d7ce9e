// What the members of a group get from each kind of collective.
#include <QtTest>

#include "core/base/raise.h"
#include "core/ranks/exchange.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

using Kind = Collective::Kind;

Exchange exchange(Collective c, const std::vector<Tensor>& inputs) {
  Exchange e;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    e.members.push_back(static_cast<int>(i));
    c.inputs = {inputs[i]};
    e.parts.emplace_back(c);
  }
  return e;
}

std::vector<double> reduced(const char* op, DType dtype, const std::vector<std::vector<double>>& values) {
  std::vector<Tensor> inputs;
  for (const auto& v : values) inputs.push_back(tensor(dtype, {static_cast<std::int64_t>(v.size())}, v));
  return elements(Value(results(exchange({.kind = Kind::AllReduce, .reduce_op = op}, inputs))[0][0]));
}

using Doubles = std::vector<double>;

}  // namespace

class TestResults : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void reductions();
  void halves_are_rounded_once();
  void what_has_no_meaning();
  void moves();
  void splits();
};

void TestResults::reductions() {
  QCOMPARE(reduced("sum", DType::Int8, {{100, 1}, {100, 2}}), (Doubles{-56, 3}));  // wraps
  QCOMPARE(reduced("avg", DType::Float32, {{1, 2}, {2, 4}}), (Doubles{1.5, 3}));
  QCOMPARE(reduced("product", DType::Int64, {{3, -2}, {5, 4}}), (Doubles{15, -8}));
  QCOMPARE(reduced("min", DType::Float64, {{3, -2}, {5, -4}}), (Doubles{3, -4}));
  QCOMPARE(reduced("max", DType::BFloat16, {{3, -2}, {5, -4}}), (Doubles{5, -2}));
  QCOMPARE(reduced("band", DType::Int32, {{6, 7}, {3, 4}}), (Doubles{2, 4}));
  QCOMPARE(reduced("bor", DType::Bool, {{0, 1, 0}, {0, 0, 1}}), (Doubles{0, 1, 1}));
  QCOMPARE(reduced("bxor", DType::UInt8, {{6, 7}, {3, 4}}), (Doubles{5, 3}));
  QCOMPARE(reduced("sum", DType::Bool, {{0, 1}, {0, 1}}), (Doubles{0, 1}));
  const Doubles nan = reduced("max", DType::Float32, {{NAN, 1}, {1, NAN}});
  QVERIFY(std::isnan(nan[0]) && std::isnan(nan[1]));
}

// 256 + 1 + 1 in bfloat16: rounded at each step it stays 256.
void TestResults::halves_are_rounded_once() {
  QCOMPARE(reduced("sum", DType::BFloat16, {{256}, {1}, {1}}), (Doubles{258}));
}

void TestResults::what_has_no_meaning() {
  const auto refused = [](const char* op, DType dtype) {
    const auto r = catch_raised<int>([&]() -> Result<int> {
      reduced(op, dtype, {{1}, {2}});
      return 0;
    });
    return r ? std::string() : fmt::format("{} {}", r.error().exit_code(), r.error().message);
  };
  QCOMPARE(refused("premul_sum", DType::Float32), std::string("3 not supported: the reduction premul_sum among ranks"));
  QCOMPARE(refused("avg", DType::Int64), std::string("3 not supported: the reduction avg of int64"));
  QCOMPARE(refused("band", DType::Float32), std::string("3 not supported: the reduction band of float32"));
  QCOMPARE(refused("max", DType::Complex64), std::string("3 not supported: the reduction max of complex64"));
}

void TestResults::moves() {
  const Tensor a = f32({2, 2}, {1, 2, 3, 4}), b = f32({2, 2}, {5, 6, 7, 8});
  const auto gathered = results(exchange({.kind = Kind::AllGather, .group_size = 2}, {a, b}));
  QCOMPARE(gathered[1][0].sizes, (Sizes{4, 2}));
  QCOMPARE(elements(Value(gathered[1][0])), (Doubles{1, 2, 3, 4, 5, 6, 7, 8}));
  const auto scattered = results(exchange({.kind = Kind::ReduceScatter, .reduce_op = "sum"}, {a, b}));
  QCOMPARE(elements(Value(scattered[0][0])), (Doubles{6, 8}));
  QCOMPARE(elements(Value(scattered[1][0])), (Doubles{10, 12}));
  const auto sent = results(exchange({.kind = Kind::Broadcast, .root = 1}, {a, b}));
  QCOMPARE(elements(Value(sent[0][0])), elements(Value(b)));
}

void TestResults::splits() {
  // Rank 0 keeps one row and sends two, rank 1 sends none and keeps one.
  Exchange e = exchange({.kind = Kind::AllToAll}, {f32({3, 1}, {1, 2, 3}), f32({1, 1}, {4})});
  e.parts[0]->input_splits = {1, 2};
  e.parts[0]->output_splits = {1, 0};
  e.parts[0]->outputs = {*Tensor::zeros(DType::Float32, {1, 1})};
  e.parts[1]->input_splits = {0, 1};
  e.parts[1]->output_splits = {2, 1};
  e.parts[1]->outputs = {*Tensor::zeros(DType::Float32, {3, 1})};
  QCOMPARE(mismatch(e), std::string());
  const auto out = results(e);
  QCOMPARE(elements(Value(out[0][0])), (Doubles{1}));
  QCOMPARE(elements(Value(out[1][0])), (Doubles{2, 3, 4}));
  e.parts[1]->output_splits = {1, 2};
  QCOMPARE(mismatch(e), std::string("the split sizes differ: rank 0 sends 2 rows to rank 1, which takes 1"));
  e.parts[1]->output_splits = {2, 2};
  QCOMPARE(mismatch(e), std::string("the split sizes of a call do not sum to its rows"));
}

QTEST_APPLESS_MAIN(TestResults)
#include "test_results.moc"
