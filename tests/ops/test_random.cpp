// Random operators, compared with literal numbers of PyTorch 2.13 after torch.manual_seed(0). Where PyTorch is
// installed, tests/torch/draws_as_torch.py compares far more.
#include <QTest>

#include "core/ops/record/record.h"
#include "core/tensor/philox.h"

using namespace partita;

namespace {

Tensor vector(const std::vector<double>& values, DType dtype = DType::Float32) {
  Tensor t = *Tensor::empty(DType::Float64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.as<double>());
  return *t.to(dtype);
}
Tensor four(DType dtype = DType::Float32) {
  return vector({0, 0, 0, 0}, dtype);
}
Value size(std::int64_t n) {
  return ValueList{Value(n)};
}
Value whole(std::int64_t i) {
  return Value(i);
}

using Kwargs = std::vector<std::pair<std::string, Value>>;
struct Row {
  const char* op;
  std::vector<Value> args;
  Kwargs kwargs;
  std::vector<double> values;  ///< the first elements of the (first) result, as float32 where that is its dtype
};

const Tensor weights = vector({1, 2, 3, 4, 5, 6, 7, 8});
const Kwargs f64 = {{"dtype", DType::Float64}}, bf16 = {{"dtype", DType::BFloat16}};

const Row rows[] = {
    {"aten.rand.default", {size(4)}, {}, {0.49625658988952637, 0.7682217955589294, 0.08847743272781372}},
    {"aten.rand.default", {size(4)}, f64, {0.9700530018065531, 0.707819864399788, 0.45938294312745087}},
    {"aten.randn.default", {size(4)}, {}, {1.5409960746765137, -0.293428897857666, -2.1787893772125244}},
    {"aten.randn.default", {size(20)}, {}, {-1.1258398294448853, -1.152360200881958, -0.2505785822868347}},
    {"aten.randn.default", {size(20)}, f64, {-2.310411800234176, -0.3732508612577643, -1.0608166785462863}},
    {"aten.randn.default", {size(20)}, bf16, {-1.125, -1.15625, -0.25, -0.43359375}},
    {"aten.randint.default", {whole(10), size(4)}, {}, {4, 9, 3, 0}},
    {"aten.randint.default", {whole(std::int64_t{1} << 40), size(2)}, {}, {741280623151, 506137267392}},
    {"aten.randperm.default", {whole(6)}, {}, {2, 5, 3, 0}},
    {"aten.uniform_.default", {four(), 0.1, 0.7}, {}, {0.39775392413139343, 0.5609330534934998, 0.15308645367622375}},
    {"aten.exponential_.default", {four(), 1.3}, {}, {2.6987123489379883, 0.9464498162269592, 0.4731108546257019}},
    {"aten.cauchy_.default", {four(), 1.3, 2.7}, {}, {29.913869857788086, 3.3648715019226074, 0.9535917639732361}},
    {"aten.log_normal_.default", {four(), 0.3, 0.7}, {}, {3.969726800918579, 1.0992188453674316, 0.29371288418769836}},
    {"aten.geometric_.default", {four(), 0.3}, {}, {1, 1, 3, 1}},
    {"aten.random_.from", {four(DType::Int16), whole(-3), Value()}, {}, {16324, 7078, 23558, 15378}},
    {"aten.random_.from", {four(DType::Int64), whole(-3), whole(9)}, {}, {5, 0, 2, -3}},
    {"aten.multinomial.default", {weights, whole(4)}, {}, {6, 7, 2, 4}},
    {"aten.multinomial.default", {weights, whole(4), true}, {}, {7, 6, 5, 7}},
    {"aten.poisson.default", {vector({0.5, 5, 50, 500})}, {}, {2, 6, 49, 490}},
    {"aten.native_dropout.default", {vector({1, 2, 3, 4}), 0.5, true}, {}, {0, 0, 6, 0}},
};

Result<Value> run(const char* op, std::vector<Value> args, Kwargs kwargs, Generator& generator) {
  return evaluate(Op::torch(op), std::move(args), std::move(kwargs), {.generator = &generator});
}

}  // namespace

class TestRandom : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void draws_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < std::size(rows); ++i) QTest::addRow("%s %zu", rows[i].op, i) << static_cast<int>(i);
  }
  void draws() {
    QFETCH(int, index);
    const Row& row = rows[index];
    Generator generator(0);
    const Result<Value> result = run(row.op, row.args, row.kwargs, generator);
    QVERIFY2(result, result ? "" : result.error().message.c_str());
    const auto* list = result->get<ValueList>();
    const Tensor& found = *(list ? (*list)[0] : *result).get<Tensor>();
    for (std::size_t i = 0; i < row.values.size(); ++i)
      QCOMPARE(found.item_as_double(static_cast<std::int64_t>(i)), row.values[i]);
  }

  void philox_of_random123() {  // kat_vectors of Random123
    using Block = std::array<std::uint32_t, 4>;
    QVERIFY((philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    QVERIFY((philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    QVERIFY((philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
             Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  }

  /// torch.rand on a CUDA device after torch.cuda.manual_seed(0).
  void philox_rand_of_cuda() {
    const auto draw = [](std::int64_t n, std::int64_t seed, std::int64_t offset, DType dtype) {
      const auto number = [](std::int64_t i) {
        Tensor t = *Tensor::zeros(DType::Int64, {});
        *t.as<std::int64_t>() = i;
        return t;
      };
      return evaluate(Op::torch("rngprims.philox_rand.default"),
                      {size(n), number(seed), number(offset), Value(), Device{}, dtype}, {});
    };
    const auto found = draw(10, 0, 0, DType::Float32);
    QVERIFY(found);
    const ValueList& results = *found->get<ValueList>();
    const double expected[] = {0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203, 0.2290, 0.9096};
    for (int i = 0; i < 10; ++i) QVERIFY(std::abs(results[0].get<Tensor>()->item_as_double(i) - expected[i]) < 0.00006);
    QCOMPARE(results[1].get<Tensor>()->item_as_double(), 4.0);
    const auto wide = draw(2, 42, 0, DType::Float64);
    QVERIFY(wide);
    QCOMPARE((*wide->get<ValueList>())[0].get<Tensor>()->item_as_double(1), 0.12624985156592777);
    // A thread draws four numbers from one block, one for each turn through all threads.
    const std::int64_t threads = 132 * 2048;
    const auto turns = draw(5 * threads, 0, 8, DType::Float32);
    QVERIFY(turns);
    const Tensor& many = *(*turns->get<ValueList>())[0].get<Tensor>();
    for (std::int64_t turn = 0; turn < 5; ++turn) {
      const auto block = philox4x32({turn < 4 ? 2u : 3u, 0, 7, 0}, {0, 0});
      QCOMPARE(many.item_as_double(turn * threads + 7),
               double(static_cast<float>(block[static_cast<std::size_t>(turn % 4)]) * 0x1p-32f + 0x1p-33f));
    }
    QCOMPARE((*turns->get<ValueList>())[1].get<Tensor>()->item_as_double(), 8.0);
    QVERIFY(!draw(1, 0, 3, DType::Float32));
    QVERIFY(!draw(1, 0, 0, DType::Int64));
  }

  void high_bits_of_the_seed_are_ignored() {  // PyTorch ignores them too
    Generator a(7), b((std::uint64_t{1} << 40) + 7);
    QCOMPARE(a.random64(), b.random64());
  }

  /// The calls of one run share a generator; a call outside of a run begins anew.
  void calls_of_a_run_share_a_generator() {
    Generator generator(0);
    const Result<Value> first = run("aten.rand.default", {size(2)}, {}, generator),
                        second = run("aten.rand.default", {size(1)}, {}, generator);
    QVERIFY(first && second);
    QCOMPARE(second->get<Tensor>()->item_as_double(), 0.08847743272781372);
    const Result<Value> alone = evaluate(Op::torch("aten.rand.default"), {size(1)}, {}),
                        again = evaluate(Op::torch("aten.rand.default"), {size(1)}, {});
    QVERIFY(alone && again);
    QCOMPARE(alone->get<Tensor>()->item_as_double(), again->get<Tensor>()->item_as_double());
  }

  void refuses_in_pytorchs_words_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<double>("a");
    QTest::addColumn<double>("b");
    QTest::addColumn<QString>("message");
    QTest::newRow("uniform") << "uniform_" << 2.0 << 1.0
                             << "uniform_ expects to return a [from, to) range, but found from=2 > to=1";
    QTest::newRow("normal") << "normal_" << 0.0 << -1.0 << "normal expects std >= 0.0, but found std -1";
    QTest::newRow("log_normal") << "log_normal_" << 0.0 << -1.0 << "log_normal_ expects std > 0.0, but found std=-1";
    QTest::newRow("cauchy") << "cauchy_" << 0.0 << 0.0 << "cauchy_ expects sigma > 0.0, but found sigma=0";
  }
  void refuses_in_pytorchs_words() {
    QFETCH(QString, op);
    QFETCH(double, a);
    QFETCH(double, b);
    QFETCH(QString, message);
    const Result<Value> result = evaluate(Op::torch("aten." + op.toStdString() + ".default"), {four(), a, b}, {});
    QVERIFY(!result);
    QCOMPARE(QString::fromStdString(result.error().message), message);
    QVERIFY(!evaluate(Op::torch("aten." + op.toStdString() + ".default"), {four(DType::Int64), a, a + 1}, {}));
  }
};

QTEST_APPLESS_MAIN(TestRandom)
#include "test_random.moc"
