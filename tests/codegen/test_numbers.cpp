// Numbers that are inputs or are read from a tensor: random arithmetic on integers of either sign gives what Python
// gives, and a number that is known only at run time is what it then is.
#include <QRegularExpression>
#include <QtTest>
#include <random>

#include <fmt/format.h>

#include "codegen/backends.h"
#include "core/aot/run_program.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/run_options.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

constexpr std::int64_t rows = 4, columns = 5;

struct Integer {
  std::string name;
  std::int64_t value = 0;
};

/// A program and what Python computes.
struct Program {
  std::string parameters, lines;
  std::vector<std::int64_t> inputs;
  std::vector<double> sums;        ///< x * a + b
  std::vector<double> slice;       ///< x[:, a:b]
  std::int64_t number = 0;         ///< a
  bool less = false, any = false;  ///< a < b, and (a < b) | (b == 0)
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

double element(std::int64_t i) {
  return static_cast<double>(i) - 7;
}

/// The part of [0, columns) that a slice takes.
std::pair<std::int64_t, std::int64_t> bounds_of(std::int64_t start, std::int64_t end) {
  const auto wrapped = [](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + columns : v, 0, columns); };
  return {wrapped(start), std::max(wrapped(start), wrapped(end))};
}

class Maker {
 public:
  Maker(unsigned seed, bool from_tensors) : random_(seed), from_tensors_(from_tensors) {}

  Program make() {
    for (int i = 0; i < 2; ++i) {
      const std::string name = fmt::format("n{}", i);
      out_.inputs.push_back(pick(-9, 9));
      known_.push_back({name, out_.inputs.back()});
      out_.parameters += from_tensors_ ? fmt::format("t{}: <i64[][]>, ", i) : fmt::format("{}: 'Sym(s{})', ", name, i);
      if (from_tensors_) out_.lines += fmt::format("{} = $item(t{})\n", name, i);
    }
    out_.parameters += fmt::format("x: <f32[{}, {}][{}, 1]>", rows, columns, columns);
    while (known_.size() < 8) step();
    const Integer a = known_.back(), b = known_[known_.size() - 2];
    out_.lines +=
        fmt::format("y = $mul.Tensor(x, {0})\nz = $add.Tensor(y, {1})\nl = {0} < {1}\ne = {1} == 0\n", a.name, b.name);
    out_.lines += "o = l | e\n";
    for (std::int64_t i = 0; i < rows * columns; ++i)
      out_.sums.push_back(element(i) * static_cast<double>(a.value) + static_cast<double>(b.value));
    out_.number = a.value;
    out_.less = a.value < b.value;
    out_.any = out_.less || b.value == 0;
    if (!from_tensors_) {
      out_.lines += fmt::format("v = $slice.Tensor(x, 1, {}, {})\n", a.name, b.name);
      const auto [start, end] = bounds_of(a.value, b.value);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = start; j < end; ++j) out_.slice.push_back(element(i * columns + j));
    }
    out_.lines += fmt::format("return (z, {}, l, o{})", a.name, from_tensors_ ? "" : ", v");
    return out_;
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  Integer operand() {
    if (pick(0, 3) == 0) {
      const std::int64_t constant = pick(-4, 4);
      return {fmt::format("{}", constant), constant};
    }
    return known_[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(known_.size()) - 1))];
  }

  void step() {
    const Integer a = known_[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(known_.size()) - 1))];
    const Integer b = operand();
    const auto add = [&](const std::string& text, std::int64_t value) {
      if (std::abs(value) > 1000) return;
      const std::string name = fmt::format("n{}", known_.size());
      out_.lines += name + " = " + text + "\n";
      known_.push_back({name, value});
    };
    switch (pick(0, 7)) {
      case 0:
        return add(a.name + " + " + b.name, a.value + b.value);
      case 1:
        return add(a.name + " - " + b.name, a.value - b.value);
      case 2:
        return add(a.name + " * " + b.name, a.value * b.value);
      case 3:
        if (b.value != 0) add(a.name + " // " + b.name, floor_div(a.value, b.value));
        return;
      case 4:
        if (b.value != 0) add(a.name + " % " + b.name, a.value - floor_div(a.value, b.value) * b.value);
        return;
      case 5:
        return add(fmt::format("torch.sym_max({}, {})", a.name, b.name), std::max(a.value, b.value));
      case 6:
        return add(fmt::format("torch.sym_min({}, {})", a.name, b.name), std::min(a.value, b.value));
      default:
        return add("-" + a.name, -a.value);
    }
  }

  std::mt19937 random_;
  const bool from_tensors_;
  std::vector<Integer> known_;
  Program out_;
};

}  // namespace

class TestNumbers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// As compiled with the number in its place.
  void numbers_of_run_time_are_read_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<double>("number");
    const char* const rows[] = {
        "y = $dropout(x, p, True)",
        "y = torch.nn.functional.dropout(x, p, True, False)",
        "y = torch.nn.functional.dropout(x, p, False, False)",
        "m = $native_dropout(x, p, True)\ny = m[0]",
        "y = torch._C._nn.scaled_dot_product_attention(x, x, x, dropout_p = p)",
        "y = $leaky_relu(x, p)",
        "y = $add.Tensor(x, x, alpha = p)",
        "y = $pow.Tensor_Scalar(x, p)",
        "y = $clamp(x, p)",
        "y = $constant_pad_nd(x, [1, 1], p)",
        "y = $full([3], p)",
        "y = $masked_fill.Scalar(x, b, p)",
    };
    for (const char* const row : rows)
      for (const double number : {0.5, 0.0, 1.0}) QTest::addRow("%s, p = %g", row, number) << row << number;
  }
  void numbers_of_run_time_are_read() {
    QFETCH(QString, lines);
    QFETCH(double, number);
    TensorFile io;
    io.tensors["input.0"] = f32({1, 2, 3, 4}, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4});
    io.tensors["input.1"] = tensor(DType::Float64, {}, {number});
    io.tensors["input.2"] = tensor(DType::Bool, {4}, {1, 0, 0, 1});
    const auto run = [&](const QString& text) {
      const auto graph =
          fx("x: <f32[1, 2, 3, 4][24, 12, 4, 1]>, t: <f64[][]>, b: <b8[4][1]>", text.toStdString() + "\nreturn (y,)");
      return run_program(artefact_of(*graph), io, run_options(default_compiler()));
    };
    const auto symbolic = run("p = t.item()\n" + lines);
    const auto literal =
        run(QString(lines).replace(QRegularExpression("\\bp\\b(?! =)"), QString::number(number, 'f', 1)));
    VERIFY_DONE(symbolic);
    VERIFY_DONE(literal);
    const std::vector<double> found = elements(symbolic->tensors.at("output.0"));
    const std::vector<double> wanted = elements(literal->tensors.at("output.0"));
    QCOMPARE(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      QVERIFY(std::abs(found[i] - wanted[i]) <= 1e-4 * std::abs(wanted[i]) + 1e-6);
  }

  /// As with an integer that is known.
  void integers_are_of_either_sign_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<int>("number");
    const char* const rows[] = {
        "y = $view(x, [n, 5])",
        "y = $expand(x, [4, n])",
        "y = $constant_pad_nd(x, [n, 3], 0.5)",
        "y = $slice.Tensor(x, 1, n)",
        "y = $slice.Tensor(x, 1, 0, n)",
        "y = $slice.Tensor(x, 0, -4, n, 2)",
        "y = $roll(x, [n], [1])",
        "y = $select.int(x, 1, n)",
        "y = $triu(x, n)",
        "y = $diagonal(x, n)",
        "y = $arange.start_step(5, -5, n)",
        "m = torch.sym_max(n, 1)\ny = $new_zeros(x, [m, 2])",
        "m = n & 6\nk = n | 1\nz = $mul.Tensor(x, m)\ny = $add.Tensor(z, k)",
        "m = n ** -2\ny = $mul.Tensor(x, m)",
    };
    for (const char* const row : rows)
      for (const int number : {-3, -1, 0, 1, 4}) QTest::addRow("%s, n = %d", row, number) << row << number;
  }
  void integers_are_of_either_sign() {
    QFETCH(QString, lines);
    QFETCH(int, number);
    std::vector<double> x;
    for (std::int64_t i = 0; i < rows * columns; ++i) x.push_back(element(i));
    const auto run = [&](const std::string& first, const QString& text) {
      TensorFile io;
      if (!first.empty()) io.tensors["input.0"] = i64({}, {static_cast<double>(number)});
      io.tensors[first.empty() ? "input.0" : "input.1"] = f32({rows, columns}, x);
      const auto graph = fx(first + "x: <f32[4, 5][5, 1]>", text.toStdString() + "\nreturn (y,)");
      return run_program(artefact_of(*graph), io, run_options(default_compiler()));
    };
    const auto symbolic = run("n: 'Sym(s7)', ", lines);
    const auto literal = run("", QString("n = torch.sym_max(%1, %1)\n").arg(number) + lines);
    QVERIFY2(bool(symbolic) == bool(literal),
             symbolic ? "only the integer is refused" : symbolic.error().line().c_str());
    if (!literal) {
      QVERIFY2(symbolic.error().fault == Fault::Input, symbolic.error().line().c_str());
      return;
    }
    const Tensor &found = symbolic->tensors.at("output.0"), &wanted = literal->tensors.at("output.0");
    QVERIFY(found.sizes == wanted.sizes && found.dtype == wanted.dtype);
    QCOMPARE(elements(found), elements(wanted));
  }

  void python_is_followed_data() {
    QTest::addColumn<unsigned>("seed");
    QTest::addColumn<bool>("from_tensors");
    for (unsigned seed = 0; seed < 40; ++seed)
      for (const bool from_tensors : {false, true})
        QTest::addRow("%u%s", seed, from_tensors ? " from tensors" : "") << seed << from_tensors;
  }
  void python_is_followed() {
    QFETCH(unsigned, seed);
    QFETCH(bool, from_tensors);
    const Program program = Maker(seed, from_tensors).make();
    std::vector<double> x;
    for (std::int64_t i = 0; i < rows * columns; ++i) x.push_back(element(i));
    TensorFile io;
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
      io.tensors[fmt::format("input.{}", i)] = i64({}, {static_cast<double>(program.inputs[i])});
    io.tensors[fmt::format("input.{}", program.inputs.size())] = f32({rows, columns}, x);
    const Artefact artefact = artefact_of(*fx(program.parameters, program.lines));
    const auto compiled = run_program(artefact, io, run_options(default_compiler()));
    const auto interpreted = run_as_it_is(artefact, io, {}, compile_to_interpreter);
    for (const auto* out : {&interpreted, &compiled}) {
      const std::string of = fmt::format("{} of\n{}", out == &compiled ? "compiled" : "interpreted", program.lines);
      QVERIFY2(*out, (*out ? "" : out->error().line() + "\n" + of).c_str());
      const auto is = [&](const char* key, DType dtype, const std::vector<double>& wanted) {
        const auto found = (*out)->tensors.find(key);
        return found != (*out)->tensors.end() && found->second.dtype == dtype && elements(found->second) == wanted;
      };
      QVERIFY2(is("output.0", DType::Float32, program.sums), of.c_str());
      QVERIFY2(is("output.1", DType::Int64, {static_cast<double>(program.number)}), of.c_str());
      QVERIFY2(is("output.2", DType::Bool, {program.less ? 1.0 : 0.0}), of.c_str());
      QVERIFY2(is("output.3", DType::Bool, {program.any ? 1.0 : 0.0}), of.c_str());
      if (!from_tensors) QVERIFY2(is("output.4", DType::Float32, program.slice), of.c_str());
    }
  }
};

QTEST_GUILESS_MAIN(TestNumbers)
#include "test_numbers.moc"
