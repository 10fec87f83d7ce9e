// Compares compiled with interpreted results of operators that index, and of inputs that end a run: indices and pivots
// out of range, views past their memory, integers divided by zero.
#include <QtTest>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "core/interp/interpreter.h"
#include "core/schedule/make_plan.h"
#include "tests/schedule/plan_test.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Case {
  const char* name;
  const char* parameters;
  const char* lines;
  std::vector<Value> inputs;
  const char* error = nullptr;  ///< part of the message; null: the run succeeds
  const char* node = "r";
  bool loops = true;  ///< it has a loop lowering, so that no call remains
};

std::vector<double> counting(std::int64_t n) {
  std::vector<double> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<double>(i) - 2.5);
  return v;
}
/// 0, 1, ... n-1, 0, ...; the element `at` is `odd`.
std::vector<double> indices(std::int64_t count, std::int64_t n, std::int64_t at = -1, double odd = 0) {
  std::vector<double> v;
  for (std::int64_t i = 0; i < count; ++i) v.push_back(i == at ? odd : static_cast<double>(i % n));
  return v;
}

constexpr const char* x_and_i = "x: <f32[5, 7][7, 1]>, i: <i64[100][1]>";
constexpr const char* take = "r: <f32[100, 7][7, 1]> = $index.Tensor(x, [i])\nreturn (r,)";
constexpr const char* select = "r: <f32[100, 7][7, 1]> = $index_select(x, 0, i)\nreturn (r,)";
constexpr const char* embed = "r: <f32[100, 7][7, 1]> = $embedding(x, i)\nreturn (r,)";
constexpr const char* fused =
    "s: <f32[5, 7][7, 1]> = $sin(x)\nr: <f32[100, 7][7, 1]> = $index.Tensor(s, [i])\n"
    "t: <f32[100][1]> = $sum.dim_IntList(r, [1])\nreturn (t,)";
constexpr const char* x_and_column = "x: <f32[5, 100][100, 1]>, i: <i64[1, 100][100, 1]>";
constexpr const char* gather = "r: <f32[1, 100][100, 1]> = $gather(x, 0, i)\nreturn (r,)";
constexpr const char* scatter = "x: <f32[5, 100][100, 1]>, i: <i64[1, 100][100, 1]>, v: <f32[1, 100][100, 1]>";
constexpr const char* scattered = "r: <f32[5, 100][100, 1]> = $scatter.src(x, 0, i, v)\nreturn (r,)";
constexpr const char* added = "r: <f32[5, 100][100, 1]> = $scatter_add(x, 0, i, v)\nreturn (r,)";
constexpr const char* put = "x: <f32[5, 7][7, 1]>, i: <i64[100][1]>, v: <f32[100, 7][7, 1]>";
constexpr const char* put_line = "r: <f32[5, 7][7, 1]> = $index_put(x, [i], v, True)\nreturn (r,)";
constexpr const char* rows_line = "r: <f32[5, 7][7, 1]> = $embedding_dense_backward(v, i, 5, 2, False)\nreturn (r,)";
constexpr const char* loss = "x: <f32[100, 5][5, 1]>, i: <i64[100][1]>";
constexpr const char* loss_line =
    "r = $nll_loss_forward(x, i, None, 1, -100)\na: <f32[][]> = r[0]\nb: <f32[][]> = r[1]\nreturn (a, b)";
constexpr const char* pool =
    "g: <f32[1, 2, 2, 2][8, 4, 2, 1]>, x: <f32[1, 2, 4, 4][32, 16, 4, 1]>, i: <i64[1, 2, 2, 2][8, 4, 2, 1]>";
constexpr const char* pool_line =
    "r: <f32[1, 2, 4, 4][32, 16, 4, 1]> = $max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], "
    "False, i)\nreturn (r,)";
constexpr const char* pooled =
    "r = $max_pool2d_with_indices(x, [2, 2])\na: <f32[1, 2, 2, 2][8, 4, 2, 1]> = r[0]\n"
    "b: <i64[1, 2, 2, 2][8, 4, 2, 1]> = r[1]\nreturn (a, b)";
constexpr const char* whole = "a: <i64[100][1]>, b: <i64[100][1]>";
constexpr const char* floored = "r: <i64[100][1]> = $div.Tensor_mode(a, b, rounding_mode = 'floor')\nreturn (r,)";
constexpr const char* rest = "r: <i64[100][1]> = $remainder.Tensor(a, b)\nreturn (r,)";
constexpr const char* rest_summed = "r: <i64[100][1]> = $remainder.Tensor(a, b)\nt: <i64[][]> = $sum(r)\nreturn (t,)";

// Both loops over a row divide: the sum in longer vectors than what follows it.
constexpr const char* rows = "a: <i64[4, 100][100, 1]>, b: <i64[4, 100][100, 1]>";
constexpr const char* rest_of_rows =
    "r: <i64[4, 100][100, 1]> = $remainder.Tensor(a, b)\nt: <i64[4, 1][1, 1]> = $sum.dim_IntList(r, [1], True)\n"
    "d: <i64[4, 100][100, 1]> = $sub.Tensor(r, t)\ne: <i64[4, 100][100, 1]> = $mul.Tensor(d, d)\n"
    "f: <i64[4, 100][100, 1]> = $add.Tensor(e, r)\ng: <i64[4, 100][100, 1]> = $mul.Tensor(f, d)\n"
    "h: <i64[4, 100][100, 1]> = $add.Tensor(g, r)\ni: <i64[4, 100][100, 1]> = $mul.Tensor(h, d)\n"
    "j: <i64[4, 100][100, 1]> = $add.Tensor(i, r)\nk: <i64[4, 100][100, 1]> = $mul.Tensor(j, d)\n"
    "l: <i64[4, 100][100, 1]> = $add.Tensor(k, d)\nreturn (l,)";

constexpr const char* window = "r: <f32[3, 4][8, 2]> = $as_strided(x, [3, 4], [8, 2], 5)\nreturn (r,)";
constexpr const char* past = "r: <f32[3, 4][8, 3]> = $as_strided(x, [3, 4], [8, 3], 10)\nreturn (r,)";
constexpr const char* past_by_far = "r: <f32[3, 1000][1000, 1]> = $as_strided(x, [3, 1000], [1000, 1])\nreturn (r,)";
constexpr const char* lu = "a: <f32[2, 2][1, 2]>, p: <i32[2][1]>, b: <f32[2, 1][1, 1]>";
constexpr const char* lu_line = "r: <f32[2, 1][1, 2]> = $linalg_lu_solve(a, p, b)\nreturn (r,)";
constexpr const char* ldl_line = "r: <f32[2, 1][1, 2]> = $linalg_ldl_solve(a, p, b)\nreturn (r,)";
constexpr const char* unpack_line =
    "r = $lu_unpack(a, p)\nx: <f32[2, 2][2, 1]> = r[0]\ny: <f32[2, 2][2, 1]> = r[1]\n"
    "z: <f32[2, 2][2, 1]> = r[2]\nreturn (x, y, z)";

std::vector<Case> cases() {
  const Tensor x = f32({5, 7}, counting(35)), wide = f32({5, 100}, counting(500)), v = f32({100, 7}, counting(700));
  const Tensor row = f32({1, 100}, counting(100)), good = i64({100}, indices(100, 5)),
               bad = i64({100}, indices(100, 5, 97, 5));
  const Tensor below = i64({100}, indices(100, 5, 3, -6)), last = i64({100}, indices(100, 5, 50, -5));
  const Tensor good_row = i64({1, 100}, indices(100, 5)), bad_row = i64({1, 100}, indices(100, 5, 0, -1));
  const Tensor log = f32({100, 5}, counting(500)), ignored = i64({100}, indices(100, 5, 4, -100));
  const Tensor g = f32({1, 2, 2, 2}, counting(8)), plane = f32({1, 2, 4, 4}, counting(32));
  const Tensor cells = i64({1, 2, 2, 2}, {5, 7, 13, 15, 0, 2, 8, 10}),
               off = i64({1, 2, 2, 2}, {5, 7, 13, 15, 0, 2, 8, 16});
  const Tensor n = i64({100}, counting(100)), ones = i64({100}, std::vector<double>(100, 3)),
               zero = i64({100}, indices(100, 1, -1));
  const Tensor many = i64({4, 100}, counting(400)), fours = i64({4, 100}, std::vector<double>(400, 4));
  const Tensor factors = f32({2, 2}, {2, 0.5, 0.5, 3}), b = f32({2, 1}, {1, 2});
  auto pivots = [](double first, double second) { return *f32({2}, {first, second}).to(DType::Int32); };
  constexpr const char *low = "must all be greater or equal to 1",
                       *high = "must all be smaller or equal to LU.size(-2)",
                       *blocks = "pivots must be rows of LD, from 1", *between = "must be between 1 and LU.size(-2)";
  return {
      {"lu_solve", lu, lu_line, {factors, pivots(2, 2), b}, nullptr, "r", false},
      {"lu_solve with a pivot below", lu, lu_line, {factors, pivots(1, 0), b}, low, "r", false},
      {"lu_solve with a pivot above", lu, lu_line, {factors, pivots(70000, 2), b}, high, "r", false},
      {"ldl_solve", lu, ldl_line, {factors, pivots(1, 2), b}, nullptr, "r", false},
      {"ldl_solve with a block", lu, ldl_line, {factors, pivots(-2, -2), b}, nullptr, "r", false},
      {"ldl_solve with a pivot above", lu, ldl_line, {factors, pivots(1, 70000), b}, blocks, "r", false},
      {"ldl_solve with half a block", lu, ldl_line, {factors, pivots(1, -2), b}, blocks, "r", false},
      {"lu_unpack", lu, unpack_line, {factors, pivots(2, 2), b}, nullptr, "r", false},
      {"lu_unpack with a pivot above", lu, unpack_line, {factors, pivots(3, 2), b}, between, "r", false},
      {"as_strided", "x: <f32[5, 7][7, 1]>", window, {x}},
      {"as_strided past its tensor",
       "x: <f32[5, 7][7, 1]>",
       past,
       {x},
       "requiring a storage size of 144 are out of bounds for storage of size 140",
       "r",
       false},
      {"as_strided past its tensor by far",
       "x: <f32[5, 7][7, 1]>",
       past_by_far,
       {x},
       "are out of bounds for storage of size 140",
       "r",
       false},
      {"index", x_and_i, take, {x, good}},
      {"index from the end", x_and_i, take, {x, last}},
      {"index above", x_and_i, take, {x, bad}, "index 5 is out of bounds for dimension 0 with size 5"},
      {"index below", x_and_i, take, {x, below}, "index -6 is out of bounds for dimension 0 with size 5"},
      {"index in a fused kernel", x_and_i, fused, {x, bad}, "index 5 is out of bounds for dimension 0 with size 5"},
      {"index_select", x_and_i, select, {x, good}},
      {"index_select above", x_and_i, select, {x, bad}, "index 5 is out of bounds for dimension 0 with size 5"},
      {"index_select below", x_and_i, select, {x, last}, "index -5 is out of bounds for dimension 0 with size 5"},
      {"embedding", x_and_i, embed, {x, good}},
      {"embedding above", x_and_i, embed, {x, bad}, "index 5 is out of bounds for dimension 0 with size 5"},
      {"gather", x_and_column, gather, {wide, good_row}},
      {"gather below", x_and_column, gather, {wide, bad_row}, "index -1 is out of bounds for dimension 0 with size 5"},
      {"scatter", scatter, scattered, {wide, good_row, row}},
      {"scatter below",
       scatter,
       scattered,
       {wide, bad_row, row},
       "index -1 is out of bounds for dimension 0 with size 5"},
      {"scatter_add", scatter, added, {wide, good_row, row}},
      {"scatter_add below",
       scatter,
       added,
       {wide, bad_row, row},
       "index -1 is out of bounds for dimension 0 with size 5"},
      {"index_put", put, put_line, {x, last, v}},
      {"index_put above", put, put_line, {x, bad, v}, "index 5 is out of bounds for dimension 0 with size 5"},
      {"embedding backward", put, rows_line, {x, good, v}},
      {"embedding backward above", put, rows_line, {x, bad, v}, "index 5 is out of bounds for dimension 0 with size 5"},
      {"loss", loss, loss_line, {log, good}},
      {"loss of an ignored class", loss, loss_line, {log, ignored}},
      {"loss of no class", loss, loss_line, {log, bad}, "Target 5 is out of bounds."},
      {"pool", pool, pooled, {g, plane, cells}},
      {"pool backward", pool, pool_line, {g, plane, cells}},
      {"pool backward outside", pool, pool_line, {g, plane, off}, "index 16 is out of bounds for a plane with size 16"},
      {"floor division", whole, floored, {n, ones}},
      {"floor division by zero", whole, floored, {n, zero}, "ZeroDivisionError"},
      {"remainder", whole, rest, {n, ones}},
      {"remainder by zero", whole, rest, {n, i64({100}, indices(100, 5))}, "ZeroDivisionError"},
      {"rows of remainders", rows, rest_of_rows, {many, fours}},
      {"rows of remainders by zero", rows, rest_of_rows, {many, i64({4, 100}, indices(400, 7))}, "ZeroDivisionError"},
      {"sum of remainders by zero", whole, rest_summed, {n, i64({100}, indices(100, 5))}, "ZeroDivisionError"},
  };
}

}  // namespace

class TestFaults : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void compiled_is_interpreted_data() {
    QTest::addColumn<int>("row");
    int row = 0;
    for (const Case& c : cases()) QTest::addRow("%s", c.name) << row++;
  }

  void compiled_is_interpreted() {
    QFETCH(int, row);
    const Case c = cases()[static_cast<std::size_t>(row)];
    const auto graph = fx(c.parameters, c.lines);
    const auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    const auto plan = schedule::make_plan(*graph, {{}, codegen::host_target(2)});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    for (const auto& step : plan->steps)
      QVERIFY2(!c.loops || std::holds_alternative<schedule::KernelCall>(step), "it has a loop lowering");
    const auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, graph->attributes);
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    const auto expected = interpret(*graph, copies(c.inputs));
    const auto found = (*compiled)->run(c.inputs);
    if (c.error) {
      QVERIFY(!expected);
      QVERIFY(!found);
      QCOMPARE(found.error().code, expected.error().code);
      QCOMPARE(found.error().exit_code(), 2);
      const QString line = QString::fromStdString(found.error().line());
      QVERIFY2(line.contains(c.error), qPrintable(line));
      QVERIFY2(QString::fromStdString(found.error().where.node).contains(c.node), qPrintable(line));
      // A fault does not persist: the next run succeeds.
      QVERIFY(!(*compiled)->run(c.inputs));
      return;
    }
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(found->size(), expected->size());
    for (std::size_t i = 0; i < found->size(); ++i) QVERIFY(difference((*found)[i], (*expected)[i]) < 1e-5);
  }
};

QTEST_GUILESS_MAIN(TestFaults)
#include "test_faults.moc"
