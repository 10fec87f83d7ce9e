#include <QElapsedTimer>
#include <QtTest>

#include "core/base/config.h"
#include "core/sym/float_symbol.h"
#include "core/sym/solve.h"
#include "core/sym/sym_expr.h"

using namespace partita;

namespace {

SymExpr parsed(const char* text) {
  Result<SymExpr> e = SymExpr::parse(text);
  if (!e) qFatal("%s", e.error().message.c_str());
  return *e;
}

}  // namespace

class SymExprTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void canonical_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("printed");
    QTest::newRow("sum is sorted") << "s77 + s17" << "s17 + s77";
    QTest::newRow("like terms") << "s0 + 2*s0 - 3*s0 + 4" << "4";
    QTest::newRow("product expands") << "(s0 + 1)*(s0 - 1)" << "s0**2 - 1";
    QTest::newRow("coefficient first") << "s70*32" << "32*s70";
    QTest::newRow("floor division keeps its parentheses") << "((s17 + s77)//2)" << "((s17 + s77)//2)";
    QTest::newRow("floor division cancels") << "(6*s0)//3" << "2*s0";
    QTest::newRow("floor division splits whole terms") << "(4*s0 + 7)//4" << "s0 + 1";
    QTest::newRow("nested floor division") << "((s0//2)//3)" << "(s0//6)";
    QTest::newRow("modulo of a multiple") << "(6*s0) % 3" << "0";
    QTest::newRow("modulo drops multiples") << "(6*s0 + s1) % 3" << "Mod(s1, 3)";
    QTest::newRow("max is sorted, deduplicated") << "Max(u1, 1, u0, u1)" << "Max(1, u0, u1)";
    QTest::newRow("a symbol may be negative") << "Max(0, s0)" << "Max(0, s0)";
    QTest::newRow("and its multiples") << "Max(2*s0, 3*s0)" << "Max(2*s0, 3*s0)";
    QTest::newRow("and what divides") << "((s0//s1)//s2)" << "(((s0//s1))//s2)";
    QTest::newRow("its square is not") << "Max(0, s0**2)" << "s0**2";
    QTest::newRow("nor its remainder") << "Max(0, s0 % 3)" << "Mod(s0, 3)";
    QTest::newRow("a negative power is no integer") << "2**(-1)" << "0.5";
    QTest::newRow("floor division cancels a common factor") << "(5*s0)//25" << "(s0//5)";
    QTest::newRow("floats as sympy prints them") << "1e-07*ToFloat(s0)" << "1.0e-7*ToFloat(s0)";
    QTest::newRow("whole floats") << "ToFloat(s0) - 1.0" << "ToFloat(s0) - 1.0";
    QTest::newRow("a negated product with a float") << "-(0.25*ToFloat(s0))" << "-0.25*ToFloat(s0)";
    QTest::newRow("a product with zero") << "-(0.0*ToFloat(s0))" << "-0.0*ToFloat(s0)";
    QTest::newRow("a float is multiplied") << "2*(0.25*ToFloat(s0))" << "0.5*ToFloat(s0)";
    QTest::newRow("floats become one") << "0.5*(0.25*ToFloat(s0))*4*s1" << "0.5*s1*ToFloat(s0)";
    QTest::newRow("products with floats are added") << "0.25*ToFloat(s0) + 0.25*ToFloat(s0)" << "0.5*ToFloat(s0)";
    QTest::newRow("and cancel") << "1 - (-0.25)*ToFloat(s0) - 0.25*ToFloat(s0)" << "1";
    QTest::newRow("power of floats") << "FloatPow(ToFloat(s0), 0.5)" << "FloatPow(ToFloat(s0), 0.5)";
    QTest::newRow("max folds numbers") << "Max(1, u0, 7)" << "Max(7, u0)";
    QTest::newRow("powers") << "s38*s38*s38" << "s38**3";
    QTest::newRow("negative floor division rounds down") << "-7//2" << "-4";
    QTest::newRow("negative modulo has the divisor's sign") << "-7 % 3" << "2";
    QTest::newRow("comparison folds by difference") << "s0 + 1 < s0 + 2" << "1";
    QTest::newRow("greater turns round") << "u0 >= 0" << "0 <= u0";
    QTest::newRow("srepr") << "Add(Mul(Integer(2), Symbol('s17', positive=True, integer=True)), Integer(2))"
                           << "2*s17 + 2";
    QTest::newRow("srepr floor division") << "FloorDiv(Symbol('s0', integer=True), Integer(2))" << "(s0//2)";
    QTest::newRow("true division") << "IntTrueDiv(s77, s17)" << "IntTrueDiv(s77, s17)";
    QTest::newRow("unknown call kept") << "CeilToInt(IntTrueDiv(s0, 2))" << "CeilToInt(IntTrueDiv(s0, 2))";
    QTest::newRow("negative coefficient") << "-s0 + s1" << "-s0 + s1";
    QTest::newRow("terms by monomial, the constant last")
        << "4 - 5*s96 + s96**2 + 2*s7*s96" << "2*s7*s96 + s96**2 - 5*s96 + 4";
    QTest::newRow("symbols before functions") << "(s7//2)*s96*3" << "3*s96*((s7//2))";
    QTest::newRow("names as text") << "s75 + s100" << "s100 + s75";
    QTest::newRow("cases") << "Piecewise((1, Eq(u0, 1)), (0, True))" << "Piecewise((1, Eq(1, u0)), (0, True))";
    QTest::newRow("cases within cases") << "Piecewise((1, u0 < 3), (2, u0 < 5), (s0, True))"
                                        << "Piecewise((1, u0 < 3), (2, u0 < 5), (s0, True))";
    QTest::newRow("srepr cases") << "Piecewise(ExprCondPair(Integer(2), Eq(Symbol('u0'), Integer(1))), "
                                    "ExprCondPair(Integer(3), true))"
                                 << "Piecewise((2, Eq(1, u0)), (3, True))";
    QTest::newRow("rounding of an integer") << "TruncToInt(s0) + FloorToInt(2.5)" << "s0 + 2";
    QTest::newRow("functions of numbers") << "Abs(-3) + BitwiseFn_bitwise_xor(6, 3)" << "8";
    QTest::newRow("not") << "Not(Eq(s0, s1))" << "Ne(s0, s1)";
  }
  void canonical() {
    QFETCH(QString, text);
    QFETCH(QString, printed);
    SymExpr e = parsed(text.toUtf8().constData());
    QCOMPARE(QString::fromStdString(e.str()), printed);
    QVERIFY2(parsed(e.str().c_str()) == e, "what is printed reads back as the same node");
    const auto same = [](const std::string& name) { return std::optional(SymExpr::symbol(name)); };
    QVERIFY2(e.substitute(same) == e, "and so does what is made again of its parts");
    QVERIFY2((e - e).symbols().empty(), "and it cancels itself");
  }

  // Max(1, size) in a contiguous stride.
  void sizesAreAtLeastOne_data() {
    QTest::addColumn<QString>("size");
    QTest::addColumn<QString>("printed");
    QTest::newRow("a size") << "s0" << "s0";
    QTest::newRow("less 1 it may be 0") << "s0 - 1" << "Max(1, s0 - 1)";
    QTest::newRow("a polynomial that grows") << "14*s0 - 6" << "14*s0 - 6";
    QTest::newRow("of two sizes less 1 nothing is known") << "s0 + s1 - 1" << "Max(1, s0 + s1 - 1)";
    QTest::newRow("a quotient of sizes may be 0") << "(s0//2)" << "Max(1, (s0//2))";
    QTest::newRow("a quotient and 1") << "(s0//2) + 1" << "((s0//2)) + 1";
    QTest::newRow("an unbacked size may be 0") << "u0" << "Max(1, u0)";
    QTest::newRow("the smaller of two sizes") << "Min(s0, s1)" << "Min(s0, s1)";
  }
  void sizesAreAtLeastOne() {
    QFETCH(QString, size);
    QFETCH(QString, printed);
    const SymList strides = contiguous_strides(SymList{2, parsed(size.toUtf8().constData())});
    QCOMPARE(QString::fromStdString(strides[0].str()), printed);
  }

  void integersAreExact() {
    const auto value = [](const std::string& name) {
      return std::optional<std::int64_t>(name == "s0" ? (std::int64_t{1} << 60) + 1 : -3);
    };
    QCOMPARE(*parsed("s0 + 1").evaluate_integer(value), (std::int64_t{1} << 60) + 2);
    QCOMPARE(*parsed("Max(s0, u0)").evaluate_integer(value), (std::int64_t{1} << 60) + 1);
    QCOMPARE(*parsed("s0 % 2").evaluate_integer(value), std::int64_t{1});
    QCOMPARE(*parsed("(u0//2)").evaluate_integer(value), std::int64_t{-2});
    QCOMPARE(*parsed("Eq(s0, 1152921504606846976)").evaluate_integer(value), std::int64_t{0});
    QCOMPARE(*parsed("TruncToInt(IntTrueDiv(u0, 2))").evaluate_integer(value), std::int64_t{-1});
    QCOMPARE(*parsed("BitwiseFn_bitwise_and(s0, 6)").evaluate_integer(value), std::int64_t{0});
    QCOMPARE(parsed("s0*s0").evaluate_integer(value), std::nullopt);
  }

  void floatsHave15Digits() {
    QCOMPARE(QString::fromStdString(SymExpr::real(1.1920928955078125e-07).str()), QString("1.19209289550781e-7"));
    QCOMPARE(QString::fromStdString(SymExpr::real(1e22).str()), QString("1.0e+22"));
  }

  void extremesAreComputed() {
    QVERIFY(parsed("1**9223372036854775807").is(1));
    QVERIFY(parsed("(-1)**9223372036854775807").is(-1));
    QVERIFY(parsed("(-9223372036854775807 - 1) % (-1)").is(0));
    QVERIFY(parsed("9223372036854775807 > -1").is(1));
    QVERIFY(parsed("(-7) % 3").is(2));
    QVERIFY(parsed("7 % (-3)").is(-2));
  }

  // Files may hold what is longer than any expression of a model. Both took quadratic time or more.
  void longSumsAndProducts() {
    constexpr int n = 100'000;
    std::string sum, product;
    for (int i = 0; i < n; ++i) sum += (i ? " + s" : "s") + std::to_string(i);
    for (int i = 0; i < n; ++i) product += (i ? "*s" : "s") + std::to_string(i % 1000);
    QElapsedTimer timer;
    timer.start();
    const SymExpr total = parsed(sum.c_str());
    QCOMPARE(total.args().size(), std::size_t(n));
    QCOMPARE(total.str().size(), sum.size());
    QCOMPARE(parsed(product.c_str()).args().size(), std::size_t(1000));
    QVERIFY2(timer.elapsed() < 60'000, "seconds, also without optimisation");
  }

  // Two chains that differ only in their innermost operand were compared in exponential time.
  void deepTermsAreOrdered() {
    std::string x = "s0", y = "s1";
    for (int i = 0; i < 100; ++i) x += " % s2", y += " % s2";
    QVERIFY(parsed((x + " + " + y).c_str()) == parsed((y + " + " + x).c_str()));
  }

  void equalIsSameNode() {
    SymExpr a = SymExpr::symbol("s0"), b = SymExpr::symbol("s1");
    QVERIFY((a + b) * 2 == b * 2 + a * 2);
    QVERIFY(a * b == b * a);
    QVERIFY(a - a == SymExpr(0));
    QVERIFY(!(a == b));
  }

  void evaluates() {
    auto value = [](const std::string& name) -> std::optional<std::int64_t> {
      if (name == "s0") return 7;
      if (name == "s1") return 3;
      return std::nullopt;
    };
    QCOMPARE(*parsed("s0//s1 + s0 % s1").evaluate(value), 3.0);
    QCOMPARE(*parsed("Max(s0, 2*s1) - Min(s0, s1)").evaluate(value), 4.0);
    QCOMPARE(*parsed("IntTrueDiv(s0, 2)").evaluate(value), 3.5);
    QCOMPARE(*parsed("Piecewise((s0, s1 < 3), (Abs(-s0), s1 < 4), (0, True))").evaluate(value), 7.0);
    QCOMPARE(*parsed("OpaqueUnaryFn_sin(ToFloat(s1))").evaluate(value), std::sin(3.0));
    QCOMPARE(*parsed("RoundDecimal(IntTrueDiv(s1, 16), 3)").evaluate(value), 0.188);
    QCOMPARE(*parsed("BitwiseFn_bitwise_and(s0, s1) + RShift(s0, 1) + LShift(s1, 2)").evaluate(value), 18.0);
    const auto tenth = [](const std::string&) { return std::optional(float_bits(0.1)); };
    QCOMPARE(*parsed("zuf0 * 3").evaluate(tenth), 0.1 * 3);
    QVERIFY(!parsed("s0 + u0").evaluate(value));
  }

  void refuses_data() {
    QTest::addColumn<QString>("text");
    QTest::newRow("empty") << "";
    QTest::newRow("dangling") << "s0 +";
    QTest::newRow("zero divisor") << "s0 // 0";
    QTest::newRow("unclosed") << "Max(s0, 1";
    QTest::newRow("trailing") << "s0 s1";
    QTest::newRow("sum beyond 64 bits") << "9223372036854775807 + 1";
    QTest::newRow("product beyond 64 bits") << "4611686018427387904*4";
    QTest::newRow("coefficient beyond 64 bits") << "s0*4611686018427387904*4";
    QTest::newRow("power beyond 64 bits") << "2**9223372036854775807";
    QTest::newRow("negation beyond 64 bits") << "-(0 - 9223372036854775807 - 1)";
    QTest::newRow("zero divisor that is computed") << "Mod(s0, 1 - 1) + s0 // (2 - 2)";
    QTest::newRow("exponent beyond 64 bits") << "s0**9223372036854775807*s0";
    QTest::newRow("deep chain") << "s0" + QString(" % s1").repeated(5000);
    QTest::newRow("deep") << QString(5000, '(') + "1" + QString(5000, ')');
  }
  void tooManyTerms_data() {
    QTest::addColumn<QString>("text");
    QString product = "1";
    for (int i = 0; i < 40; ++i) product += QString("*(s%1 + s%2)").arg(2 * i).arg(2 * i + 1);
    QTest::newRow("product of sums") << product;
    QString sum = "s0";
    for (int i = 1; i < 10; ++i) sum += QString(" + s%1").arg(i);
    QTest::newRow("powers of a sum") << "((" + sum + ")**8)**8";
    QTest::newRow("many small ones") << "Max(" + QString("u0*(u1 + u2 + u3), ").repeated(10) +
                                            ("(" + sum + ")**4, ").repeated(100) + "1)";
  }
  void tooManyTerms() {
    QFETCH(QString, text);
    QElapsedTimer timer;
    timer.start();
    const Result<SymExpr> e = SymExpr::parse(text.toStdString());
    QVERIFY(!e);
    QCOMPARE(QString::fromStdString(e.error().code), QString("sym.too_large"));
    const QString message = QString::fromStdString(e.error().message);
    QVERIFY(message.contains("1000000") && message.contains("--graph-limit"));
    QVERIFY(timer.elapsed() < 30'000);
  }

  void theLimitIsRaised() {
    QString product = "1";
    for (int i = 0; i < 10; ++i) product += QString("*(s%1 + s%2)").arg(2 * i).arg(2 * i + 1);
    std::optional<ConfigScope> patch(std::in_place, *patched_config({{"graph_limit", "10k"}}));
    QVERIFY(!SymExpr::parse(product.toStdString()));
    patch.reset();
    QVERIFY(SymExpr::parse(product.toStdString()));
  }

  void refuses() {
    QFETCH(QString, text);
    Result<SymExpr> e = SymExpr::parse(text.toStdString());
    QVERIFY(!e);
    QCOMPARE(e.error().exit_code(), 2);
  }

  void sums_of_one_symbol_are_solved() {
    const SymExpr s = SymExpr::symbol("s0"), t = SymExpr::symbol("s1");
    const auto value = [](SymExpr e, std::int64_t at) {
      const auto solved = solve(e, at);
      return solved && solved->symbol == "s0" ? solved->value : std::nullopt;
    };
    QCOMPARE(value(s, 7), std::optional<std::int64_t>(7));
    QCOMPARE(value(2 * s + 3, 9), std::optional<std::int64_t>(3));
    QCOMPARE(value(1 - s, -4), std::optional<std::int64_t>(5));
    QVERIFY(solve(2 * s, 9) && !solve(2 * s, 9)->value);
    for (SymExpr e : {SymExpr(3), s * s, s + t, s * t, sym_floordiv(s, 2), sym_max(s, t)}) QVERIFY(!solve(e, 4));
    QVERIFY(!solve(s - 2, INT64_MAX));
    QVERIFY(!solve(-s, INT64_MIN));
  }
};

QTEST_APPLESS_MAIN(SymExprTest)
#include "test_sym_expr.moc"
