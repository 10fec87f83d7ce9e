#include <QElapsedTimer>
#include <QtTest>
#include <cmath>
#include <thread>

#include "core/interp/aten_calls.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

using Row = std::vector<double>;

struct Case {
  const char* name;
  const char* parameters;
  const char* body;
  std::vector<Value> inputs;
  std::vector<Row> outputs;
  std::vector<Row> inputs_after = {};  ///< empty: unchanged
};

constexpr const char* vec = "x: <f32[3][1]>";

std::vector<Case> cases() {
  const auto x = [] { return f32({3}, {1, 2, 3}); };
  return {
      {"pointwise chain",
       vec,
       "a: <f32[3][1]> = $mul.Tensor(x, 2)\nb: <f32[3][1]> = $add.Tensor(a, x, alpha = 10)\nreturn (b,)",
       {x()},
       {{12, 24, 36}}},
      {"any byte but 0 is true",
       "x: <u8[3][1]>",
       "v: <b8[3][1]> = $view.dtype(x, torch.bool)\nf: <f32[3][1]> = $_to_copy(v, dtype = torch.float32)\nreturn (v, "
       "f)",
       {tensor(DType::UInt8, {3}, {0, 1, 6})},
       {{0, 1, 1}, {0, 1, 1}}},
      {"reductions and masks take any byte but 0 for true",
       "x: <u8[4][1]>",
       "v: <b8[4][1]> = $view.dtype(x, torch.bool)\ns: <i64[][]> = $sum(v)\nm: <b8[][]> = $amax(v)\n"
       "w: <f32[4][1]> = $arange(4, dtype = torch.float32, device = device(type='cpu'), pin_memory = False)\n"
       "p: <f32[4][1]> = $masked_scatter(w, v, w)\ne: <b8[4][1]> = $eq.Tensor(v, m)\nreturn (s, m, p, e)",
       {tensor(DType::UInt8, {4}, {6, 0, 1, 64})},
       {{3}, {1}, {0, 1, 1, 2}, {1, 0, 1, 1}}},
      {"bare output, no parentheses", vec, "a: <f32[3][1]> = $neg(x)\nreturn a", {x()}, {{-1, -2, -3}}},
      {"an input returned, a literal, None", vec, "return (x, 3, None)", {x()}, {{1, 2, 3}, {3}, {}}},
      {"many results",
       "x: <f32[4, 2][2, 1]>",
       "split = $split.Tensor(x, 2)\na: <f32[2, 2][2, 1]> = split[0]\nb: <f32[2, 2][2, 1]> = split[1]\nc: <f32[2, "
       "2][2, 1]> = $sub.Tensor(a, b)\nreturn (c,)",
       {f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
       {{-4, -4, -4, -4}}},
      {"a write reaches the caller",
       vec,
       "a: <f32[3][1]> = $add_.Tensor(x, 1)\nreturn (a,)",
       {x()},
       {{2, 3, 4}},
       {{2, 3, 4}}},
      {"a write through a view",
       "x: <f32[2, 2][2, 1]>",
       "v: <f32[2][2]> = $select.int(x, 1, 0)\nw: <f32[2][2]> = $mul_.Tensor(v, 10)\nreturn (x,)",
       {f32({2, 2}, {1, 2, 3, 4})},
       {{10, 2, 30, 4}},
       {{10, 2, 30, 4}}},
      {"a clone keeps the old value",
       vec,
       "c: <f32[3][1]> = $clone(x)\na: <f32[3][1]> = $zero_(x)\nreturn (c, x)",
       {x()},
       {{1, 2, 3}, {0, 0, 0}},
       {{0, 0, 0}}},
      {"a part of an expanded tensor replaced",
       "x: <f32[1][1]>",
       "e: <f32[4][0]> = $expand(x, [4])\nz: <f32[2][1]> = $full([2], 0.0, dtype = torch.float32)\n"
       "s: <f32[4][1]> = $slice_scatter(e, z, 0, 1, 3)\nreturn (s, e)",
       {f32({1}, {5})},
       {{5, 0, 0, 5}, {5, 5, 5, 5}}},
      {"copy_ epilogue",
       "x: <f32[3][1]>, y: <f32[3][1]>",
       "a: <f32[3][1]> = $add.Tensor(x, y)\nc: <f32[3][1]> = $copy_(x, a)\nreturn (a,)",
       {x(), f32({3}, {10, 10, 10})},
       {{11, 12, 13}},
       {{11, 12, 13}, {10, 10, 10}}},
      {"metadata in place",
       "x: <f32[2, 3][3, 1]>",
       "t: <f32[3, 2][1, 3]> = $t_(x)\ns: <f32[2][1]> = $sum.dim_IntList(x, [0])\nreturn (s,)",
       {f32({2, 3}, {1, 2, 3, 4, 5, 6})},
       {{6, 15}}},
      {"symbolic integers are computed",
       "s0: \"Sym(s0)\", x: <f32[s0][1]>",
       "n: \"Sym(2*s0)\" = s0 * 2\nm: \"Sym(2*s0 - 1)\" = n - 1\nq: \"Sym(s0)\" = n // 2\nf: <f32[2*s0][1]> = $cat([x, "
       "x])\nreturn (f, m, q)",
       {Value(std::int64_t{3}), x()},
       {{1, 2, 3, 1, 2, 3}, {5}, {3}}},
      {"Python's functions on integers",
       "s: \"Sym(s0)\", t: \"Sym(s1)\"",
       "a = _operator_abs(s)\nb = torch.sym_max(s, t)\nc = s ^ t\nd = _operator.lshift(t, 2)\ne = _operator.rshift(s, "
       "1)\nf = s % t\ng = t ** -1\n"
       "h = round(s)\ni = math_gcd(s, t)\nl = _operator.lt(s, t)\nj = torch.sym_ite(l, s, t)\nk = torch.sym_sum([s, t, "
       "1])\nreturn (a, b, c, "
       "d, e, f, g, h, i, j, k)",
       {Value(std::int64_t{-6}), Value(std::int64_t{4})},
       {{6}, {4}, {-2}, {16}, {-3}, {2}, {0.25}, {-6}, {2}, {-6}, {-1}}},
      {"Python's functions on floats",
       "n: <f64[][]>",
       "x: \"Sym(zf0)\" = n.item()\na = x // 0.1\nb = x % 0.1\nc = round(x, 1)\nd = round(x)\ne = math_floor(x)\n"
       "f = torch.sym_int(x)\ng = torch._sym_sqrt(x)\nh = -x\ni = abs(x)\nj = torch.sym_min(x, 2)\nreturn (a, b, c, d, "
       "e, f, "
       "g, h, i, j)",
       {tensor(DType::Float64, {}, {6.25})},
       {{62}, {std::fmod(6.25, 0.1)}, {6.2}, {6}, {6}, {6}, {2.5}, {-6.25}, {6.25}, {2}}},
      {"methods of Python's numbers",
       "n: <f64[][]>, s: \"Sym(s0)\"",
       "x: \"Sym(zf0)\" = n.item()\na = x.__round__()\nb = x.__ceil__()\nf = x.is_integer()\nh = s / 2\n"
       "g = h.is_integer()\nc = torch.sym_ite(f, 1, 0)\nd = torch.sym_ite(g, 1, 0)\ne = h.__int__()\n"
       "return (a, b, c, d, e)",
       {tensor(DType::Float64, {}, {6.25}), Value(std::int64_t{4})},
       {{6}, {7}, {0}, {1}, {2}}},
      {"methods of numbers that are written",
       "n: <f64[][]>",
       "a = 0.8214829564094543.__round__(3)\nb = -2.5.__ceil__()\nc = (-2.5).__ceil__()\nd = torch.scalar_tensor(a, "
       "dtype "
       "= torch.float64)\nreturn (a, b, c, d)",
       {tensor(DType::Float64, {}, {6.25})},
       {{0.821}, {-3}, {-2}, {0.821}}},
      {"numbers in the place of tensors",
       "n: <b8[][]>, x: <i64[2][1]>",
       "b: \"Sym(Eq(u0, 1))\" = n.item()\na = torch.div(7, 2, rounding_mode = 'trunc')\nc = torch.div(7, x)\n"
       "d = torch.tensor([b, 2])\ne = torch.full((2,), b)\nf = torch.broadcast_shapes((2, 1), (3,))\ng = f[1]\n"
       "h = torch._check_is_size(g)\nreturn (a, c, d, e, g)",
       {tensor(DType::Bool, {}, {1}), i64({2}, {2, 4})},
       {{3}, {3.5, 1.75}, {1, 2}, {1, 1}, {3}}},
      {"sizes of tensors",
       "x: <f32[s0][1]>",
       "s: \"Sym(s0)\" = $sym_size.int(x, 0)\nz: <f32[s0][1]> = $mul.Tensor(x, s)\nreturn (z,)",
       {x()},
       {{3, 6, 9}}},
  };
}

constexpr const char* cond_children =
    "\n    class true_graph_0(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
    "            s: <f32[2][1]> = $add.Tensor(x, 1)\n            return (s,)\n"
    "\n    class false_graph_0(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
    "            s: <f32[2][1]> = $neg(x)\n            return (s,)\n";

std::unique_ptr<Graph> cond_graph() {
  return fx(
      "p: <b8[][]>, x: <f32[2][1]>",
      "true_graph_0 = self.true_graph_0\nfalse_graph_0 = self.false_graph_0\n"
      "cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,))\ng: <f32[2][1]> = cond[0]\nreturn (g,)",
      cond_children);
}

}  // namespace

class TestInterpreter : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void values_data() {
    QTest::addColumn<int>("index");
    const auto all = cases();
    for (std::size_t i = 0; i < all.size(); ++i) QTest::newRow(all[i].name) << static_cast<int>(i);
  }
  void values() {
    QFETCH(int, index);
    const Case c = cases()[static_cast<std::size_t>(index)];
    std::vector<Row> before;
    for (const Value& v : c.inputs) before.push_back(elements(v));
    const auto graph = fx(c.parameters, c.body);
    const auto out = interpret(*graph, c.inputs);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(out->size(), c.outputs.size());
    for (std::size_t i = 0; i < out->size(); ++i) QCOMPARE(elements((*out)[i]), c.outputs[i]);
    for (std::size_t i = 0; i < before.size(); ++i)
      QCOMPARE(elements(c.inputs[i]), c.inputs_after.empty() ? before[i] : c.inputs_after[i]);
  }

  void cond_takes_the_right_branch() {
    const auto graph = cond_graph();
    for (const bool taken : {true, false}) {
      const auto out = interpret(*graph, {tensor(DType::Bool, {}, {taken ? 1.0 : 0.0}), f32({2}, {1, 2})});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE(elements((*out)[0]), taken ? (Row{2, 3}) : (Row{-1, -2}));
    }
  }

  void while_loop_runs_until_false() {
    const auto graph = fx("i: <i64[][]>, x: <f32[2][1]>",
                          "c = self.c\nb = self.b\nw = torch.ops.higher_order.while_loop(c, b, (i, x), ())\n"
                          "n: <i64[][]> = w[0]\ny: <f32[2][1]> = w[1]\nreturn (n, y)",
                          "\n    class c(torch.nn.Module):\n        def forward(self, i: <i64[][]>, x: <f32[2][1]>):\n"
                          "            lt: <b8[][]> = $lt.Scalar(i, 5)\n            return lt\n"
                          "\n    class b(torch.nn.Module):\n        def forward(self, i: <i64[][]>, x: <f32[2][1]>):\n"
                          "            n: <i64[][]> = $add.Tensor(i, 1)\n            y: <f32[2][1]> = $mul.Tensor(x, "
                          "2)\n            return (n, y)\n");
    const auto out = interpret(*graph, {i64({}, {2}), f32({2}, {1, 3})});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements((*out)[0]), Row{5});
    QCOMPARE(elements((*out)[1]), (Row{8, 24}));
  }

  // Of no steps too, so that a later write does not reach what the loop began with.
  void results_of_loops_have_their_own_memory() {
    const auto graph = fx("i: <i64[][]>, x: <f32[2][1]>",
                          "c = self.c\nb = self.b\nw = torch.ops.higher_order.while_loop(c, b, (i, x), ())\n"
                          "n: <i64[][]> = w[0]\ny: <f32[2][1]> = w[1]\nz: <f32[2][1]> = $add_.Tensor(y, 1)\n"
                          "return (n, y, x)",
                          "\n    class c(torch.nn.Module):\n        def forward(self, i: <i64[][]>, x: <f32[2][1]>):\n"
                          "            lt: <b8[][]> = $lt.Scalar(i, 5)\n            return lt\n"
                          "\n    class b(torch.nn.Module):\n        def forward(self, i: <i64[][]>, x: <f32[2][1]>):\n"
                          "            n: <i64[][]> = $add.Tensor(i, 1)\n            return (n, x)\n");
    for (const int begin : {3, 7}) {
      const auto out = interpret(*graph, {i64({}, {static_cast<double>(begin)}), f32({2}, {1, 3})});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE(elements((*out)[1]), (Row{2, 4}));
      QCOMPARE(elements((*out)[2]), (Row{1, 3}));
    }
  }

  void map_stacks_rows() {
    const auto graph =
        fx("xs: <f32[3, 2][2, 1]>, y: <f32[2][1]>",
           "b = self.b\nm = torch.ops.higher_order.map_impl(b, [xs], [y])\ng: <f32[3, 2][2, 1]> = m[0]\nreturn (g,)",
           "\n    class b(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>, y: <f32[2][1]>):\n"
           "            a: <f32[2][1]> = $add.Tensor(x, y)\n            return (a,)\n");
    const auto out = interpret(*graph, {f32({3, 2}, {1, 2, 3, 4, 5, 6}), f32({2}, {10, 20})});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements((*out)[0]), (Row{11, 22, 13, 24, 15, 26}));
  }

  void wrong_inputs_are_reported_data() {
    QTest::addColumn<int>("which");
    QTest::addColumn<QString>("message");
    QTest::newRow("count") << 0 << "the graph takes 2 inputs and got 1";
    QTest::newRow("dtype") << 1 << "input.1 (y) is float64; float32 is expected";
    QTest::newRow("rank") << 2 << "input.0 (x) has sizes [4, 1]; f32[s0][1]cpu is expected";
    QTest::newRow("two values of a symbol") << 3 << "input.1 (y) has sizes [3]; f32[s0][1]cpu is expected";
    QTest::newRow("no tensor") << 4 << "input.0 (x) is not a tensor; f32[s0][1]cpu is expected";
  }
  void wrong_inputs_are_reported() {
    QFETCH(int, which);
    QFETCH(QString, message);
    const Tensor v4 = f32({4}, {1, 2, 3, 4});
    const std::vector<std::vector<Value>> inputs = {{v4},
                                                    {v4, tensor(DType::Float64, {4}, {1, 2, 3, 4})},
                                                    {f32({4, 1}, {1, 2, 3, 4}), v4},
                                                    {v4, f32({3}, {1, 2, 3})},
                                                    {Value(std::int64_t{4}), v4}};
    const auto graph = fx("x: <f32[s0][1]>, y: <f32[s0][1]>", "a: <f32[s0][1]> = $add.Tensor(x, y)\nreturn (a,)");
    const auto out = interpret(*graph, inputs[static_cast<std::size_t>(which)]);
    QVERIFY(!out);
    QCOMPARE(QString::fromStdString(out.error().message), message);
    QCOMPARE(out.error().exit_code(), 2);
  }

  void errors_name_the_node_and_its_line() {
    const auto graph = fx(vec,
                          "# File: model.py:7 in forward, code: y = mystery(x)\na: <f32[3][1]> = "
                          "torch.ops.mystery.op.default(x)\nreturn (a,)");
    const auto out = interpret(*graph, {f32({3}, {1, 2, 3})});
    QVERIFY(!out);
    QCOMPARE(out.error().where.node, std::string("a"));
    QCOMPARE(out.error().where.origin, std::string("model.py:7 in forward"));
    QCOMPARE(out.error().exit_code(), 3);
  }

  void ill_fitting_inputs_touch_no_memory_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("call");
    QTest::addRow("a matrix times a number") << "x: <f32[2, 3][3, 1]>, y: <f32[][]>" << "$mv(x, y)";
    QTest::addRow("an index of other rank")
        << "x: <f32[2, 3, 4][12, 4, 1]>, i: <i64[2, 2][2, 1]>, y: <f32[2, 2][2, 1]>" << "$scatter_add(x, 0, i, y)";
    QTest::addRow("a target for each of other samples")
        << "g: <f32[][]>, x: <f32[2, 3][3, 1]>, t: <i64[50][1]>, w: <f32[][]>"
        << "$nll_loss_backward(g, x, t, None, 1, -100, w)";
  }
  void ill_fitting_inputs_touch_no_memory() {
    QFETCH(QString, parameters);
    QFETCH(QString, call);
    const auto graph = fx(parameters.toStdString(), "a = " + call.toStdString() + "\nreturn (a,)");
    const auto inputs = random_inputs(*graph, 1);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    const auto out = interpret(*graph, *inputs);
    QVERIFY(!out);
    QCOMPARE(out.error().exit_code(), 2);
    QCOMPARE(out.error().where.node, std::string("a"));
  }

  void missing_weights_are_reported() {
    const auto graph = fx(vec, "w = self.weight\na: <f32[3][1]> = $add.Tensor(x, w)\nreturn (a,)");
    const auto out = interpret(*graph, {f32({3}, {1, 2, 3})});
    QVERIFY(!out);
    QCOMPARE(out.error().code, std::string("interp.attribute"));
  }

  void values_are_freed_after_their_last_use() {
    // Each link of the chain holds 4 MB. Only the newest may be alive when the next is computed.
    std::string body = "a0: <f32[1048576][1]> = $neg(x)\n";
    for (int i = 1; i < 8; ++i)
      body += "a" + std::to_string(i) + ": <f32[1048576][1]> = $neg(a" + std::to_string(i - 1) + ")\n";
    const auto graph = fx("x: <f32[1048576][1]>", body + "return (a7,)");
    std::vector<std::weak_ptr<Storage>> seen;
    std::size_t most = 0;
    InterpOptions options;
    options.observer = [&](const Node&, const Value& v) -> Status {
      seen.push_back(v.get<Tensor>()->storage);
      most = std::max(
          most, static_cast<std::size_t>(std::ranges::count_if(seen, [](const auto& w) { return !w.expired(); })));
      return {};
    };
    std::vector<Value> inputs;
    inputs.emplace_back(*Tensor::zeros(DType::Float32, {1048576}));
    QVERIFY(interpret(*graph, std::move(inputs), options));
    QVERIFY2(most <= 2, std::to_string(most).c_str());
  }

  void double_precision_is_a_baseline() {
    const auto graph =
        fx("x: <f32[2][1]>",
           "a: <f32[2][1]> = $add.Tensor(x, 16777216)\nb: <f32[2][1]> = $sub.Tensor(a, 16777216)\n"
           "c: <f32[2][1]> = torch.ops.prims.convert_element_type.default(b, torch.float32)\nreturn (c,)");
    const Tensor x = f32({2}, {1, 3});
    InterpOptions options;
    QCOMPARE(elements((*interpret(*graph, {x}, options))[0]), (Row{0, 4}));
    options.float64 = true;
    const auto out = interpret(*graph, {x}, options);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE((*out)[0].get<Tensor>()->dtype, DType::Float64);
    QCOMPARE(elements((*out)[0]), (Row{1, 3}));
  }

  /// Later readers see the tensor as it is now, whichever operator gave it other sizes.
  void other_sizes_are_seen_by_later_readers() {
    for (const char* call : {"$resize_(x, [2, 1])", "torch.ops.prims.resize.default(x, [2, 1])"}) {
      const auto graph = fx("x: <f32[2][1]>", std::string("r = ") + call + "\na = $neg(x)\nreturn (a,)");
      const auto out = interpret(*graph, {f32({2}, {1, 3})});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE((*out)[0].get<Tensor>()->sizes, (Sizes{2, 1}));
    }
  }

  /// A view of another tensor stays what it is while a tensor beside it gets other sizes.
  void other_sizes_leave_views_alone() {
    const auto graph = fx("x: <f32[4][1]>, y: <f32[4][1]>",
                          "v = torch.ops.prims.as_strided.default(x, [2], [2], 0)\nr = $resize_(y, [2])\n"
                          "a = $neg(v)\nreturn (a,)");
    const auto out = interpret(*graph, {f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 0})});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements((*out)[0]), (Row{-1, -3}));
  }

  /// A view of the input is written, too; an input that nothing writes is not touched.
  void double_precision_writes_back_where_it_is_asked() {
    const auto graph = fx("x: <f32[2][1]>, y: <f32[2][1]>",
                          "v: <f32[][]> = $select.int(x, 0, 1)\nw: <f32[][]> = $add_.Tensor(v, 16777216)\n"
                          "u: <f32[][]> = $sub_.Tensor(v, 16777215)\na: <f32[2][1]> = $neg(y)\nreturn (a,)");
    const Tensor x = f32({2}, {1, 3}), y = f32({2}, {5, 7});
    InterpOptions options{.float64 = true};
    QVERIFY(interpret(*graph, {x, y}, options));
    QCOMPARE(elements(x), (Row{1, 3}));
    options.writes_back = true;
    QVERIFY(interpret(*graph, {x, y}, options));
    QCOMPARE(elements(x), (Row{1, 4}));
    QCOMPARE(elements(y), (Row{5, 7}));
    // Copies of inputs that share memory are apart: what is written to one would not be seen in the other.
    const auto shared = interpret(*graph, {x, x}, options);
    QVERIFY(!shared);
    QCOMPARE(shared.error().code, std::string("interp.shared"));
  }

  /// A backward gets from its forward what that computed in double.
  void double_precision_takes_inputs_in_double() {
    const auto graph = fx("x: <f32[2][1]>", "a: <f32[2][1]> = $add.Tensor(x, 16777216)\nreturn (a,)");
    const Tensor wide = *f32({2}, {1, 3}).to(DType::Float64);
    QVERIFY(!interpret(*graph, {wide}));
    InterpOptions options;
    options.float64 = true;
    const auto out = interpret(*graph, {wide}, options);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements((*out)[0]), (Row{16777217, 16777219}));
    QVERIFY(!interpret(*graph, {*wide.to(DType::Int64)}, options));
  }

  void double_precision_widens_no_half() {
    const auto graph = fx("x: <bf16[2][1]>", "s: <f32[2][1]> = $_softmax(x, 0, True)\nreturn (s,)");
    InterpOptions options;
    options.float64 = true;
    const auto out = interpret(*graph, {*f32({2}, {1, 1}).to(DType::BFloat16)}, options);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements((*out)[0]), (Row{0.5, 0.5}));
  }

  /// The baseline in double precision must draw the same random numbers as the run that it judges.
  void double_precision_draws_the_same() {
    const auto graph = fx("x: <f32[4][1]>",
                          "a: <f32[4][1]> = $rand([4], dtype=torch.float32)\nb: <f32[4][1]> = $randn_like(x)\n"
                          "c: <f32[4][1]> = $clone(x)\nd: <f32[4][1]> = $uniform_(c, 0.0, 2.0)\nreturn (a, b, c, d)");
    const Tensor x = f32({4}, {1, 2, 3, 4});
    InterpOptions options;
    const auto narrow = interpret(*graph, {x}, options);
    QVERIFY2(narrow, narrow ? "" : narrow.error().line().c_str());
    options.float64 = true;
    const auto wide = interpret(*graph, {x}, options);
    QVERIFY2(wide, wide ? "" : wide.error().line().c_str());
    for (std::size_t i = 0; i < narrow->size(); ++i) {
      QCOMPARE((*wide)[i].get<Tensor>()->dtype, DType::Float64);
      QCOMPARE(elements((*wide)[i]), elements((*narrow)[i]));
    }
    QCOMPARE(elements((*wide)[2]), elements((*wide)[3]));
  }

  /// What reads bits or takes no doubles keeps the graph's dtypes, and so its sizes.
  void double_precision_keeps_what_is_as_written() {
    const auto graph = fx(
        "x: <f32[2][1]>",
        "b: <i16[4][1]> = $view.dtype(x, torch.int16)\n"
        "q: <i8[2][1]> = torch.ops.quantized_decomposed.quantize_per_tensor.default(x, 2.0, 3, -128, 127, torch.int8)\n"
        "return (b, q)");
    const Tensor x = f32({2}, {1, -6});
    InterpOptions options;
    const auto narrow = interpret(*graph, {x}, options);
    QVERIFY2(narrow, narrow ? "" : narrow.error().line().c_str());
    options.float64 = true;
    const auto wide = interpret(*graph, {x}, options);
    QVERIFY2(wide, wide ? "" : wide.error().line().c_str());
    for (std::size_t i = 0; i < narrow->size(); ++i) QCOMPARE(elements((*wide)[i]), elements((*narrow)[i]));
  }

  void stops_on_request() {
    Progress progress;
    progress.stop = true;
    InterpOptions options;
    options.progress = &progress;
    const auto out = interpret(*fx(vec, "a: <f32[3][1]> = $neg(x)\nreturn (a,)"), {f32({3}, {1, 2, 3})}, options);
    QVERIFY(!out);
    QCOMPARE(out.error().fault, Fault::Cancelled);
  }

  void long_loops_hear_a_cancel_data() {
    QTest::addColumn<QString>("call");
    for (const char* call : {"$add.Tensor(x, 1)",
                             "$clone(t)",
                             "$sum(x)",
                             "$sum.dim_IntList(x, [0])",
                             "$prod(x)",
                             "$cumsum(x, 0)",
                             "$sort(x)",
                             "$_softmax(x, 1, False)",
                             "$mm(x, t)",
                             "$mv(x, v)",
                             "$mv(t, v)",
                             "$convolution(x3, x3, None, [1], "
                             "[0], [1], False, [0], 1)",
                             "$_adaptive_avg_pool2d(x3, [3, 3])",
                             "$_fft_c2c(z, [0], 0, True)",
                             "$tril_indices(64, 64)",
                             "$mvlgamma(x, 9)",
                             "$randn([64])",
                             "$index_select(x, 0, i)",
                             "$arange(64)",
                             "$special_hermite_polynomial_h(x, x)",
                             "$native_layer_norm(x, [64], None, None, 1e-05)"})
      QTest::newRow(call) << call;
  }
  /// Each loop asks when it begins, so the call that was under way gives no value.
  void long_loops_hear_a_cancel() {
    QFETCH(QString, call);
    const auto graph =
        fx("x: <f32[64, 64][64, 1]>, t: <f32[64, 64][1, 64]>, v: <f32[64][1]>, x3: <f32[1, 64, 64][4096, 64, 1]>, "
           "z: <c64[67][1]>, i: <i64[64][1]>",
           "a = " + call.toStdString() + "\nreturn (a,)");
    const auto inputs = random_inputs(*graph, 1);
    QVERIFY(inputs);
    Progress progress;
    progress.report = [&](double, std::string_view node) { progress.stop = node == "a"; };
    bool computed = false;
    InterpOptions options;
    options.progress = &progress;
    options.observer = [&](const Node& node, const Value&) -> Status {
      computed = computed || node.name() == "a";
      return {};
    };
    const auto out = interpret(*graph, *inputs, options);
    QVERIFY(!out);
    QVERIFY2(out.error().fault == Fault::Cancelled, out.error().line().c_str());
    QVERIFY(!computed);
  }

  void one_long_call_stops_soon() {
    // A minute of work in few loops.
    const auto graph = fx("x: <f32[4000][1]>", "a = $mvlgamma(x, 1000000)\nreturn (a,)");
    const auto inputs = random_inputs(*graph, 1);
    QVERIFY(inputs);
    Progress progress;
    InterpOptions options;
    options.progress = &progress;
    QElapsedTimer since_stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      since_stop.start();
      progress.stop = true;
    });
    const auto out = interpret(*graph, *inputs, options);
    stopper.join();
    QVERIFY(!out && out.error().fault == Fault::Cancelled);
    QVERIFY2(since_stop.elapsed() < 2000, std::to_string(since_stop.elapsed()).c_str());
  }

  void random_values_repeat_and_fit() {
    const auto graph = fx("x: <f32[2, 3][1, 2]>, i: <i64[50][1]>, v: <f32[1000][1]>", "return (x,)");
    const auto a = random_inputs(*graph, 7), b = random_inputs(*graph, 7), c = random_inputs(*graph, 8);
    QVERIFY(a && b && c);
    QCOMPARE(elements((*a)[0]), elements((*b)[0]));
    QVERIFY(elements((*a)[0]) != elements((*c)[0]));
    QCOMPARE((*a)[0].get<Tensor>()->strides, (Sizes{1, 2}));
    for (const double i : elements((*a)[1])) QVERIFY(i == 0 || i == 1);
    for (const double v : elements((*a)[2])) QVERIFY(v > 0);
  }

  // PyTorch gives a running sum row-major, however its argument lies.
  void running_sums_are_row_major() {
    const auto run = interpret(*fx("x: <f32[2, 3][1, 2]>", "a = $cumsum(x, 0)\nreturn (a,)"),
                               {f32({3, 2}, {1, 2, 3, 4, 5, 6}).view_as({2, 3}, {1, 2}, 0)});
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QCOMPARE((*run)[0].get<Tensor>()->strides, (Sizes{3, 1}));
    QCOMPARE(elements((*run)[0]), (Row{1, 3, 5, 3, 7, 11}));
  }

  void complex_views_of_other_numbers_are_refused() {
    const auto refused = [](const char* parameters, const std::string& line, Value input, const char* why) {
      const auto run = interpret(*fx(parameters, line + "\nc = $view_as_complex(s)\nreturn (c,)"), {std::move(input)});
      QVERIFY(!run);
      QVERIFY2(run.error().line().find(why) != std::string::npos, run.error().line().c_str());
    };
    refused("x: <f32[4][1]>", "s: <f32[2][1]> = $slice.Tensor(x, 0, 1, 3)", f32({4}, {1, 2, 3, 4}),
            "storage_offset divisible by 2");
    refused("x: <c64[2][1]>", "s: <c64[2][1]> = $exp(x)", tensor(DType::Complex64, {2}, {1, 2}),
            "half, float and double");
  }

  // The products within einsum are cast, not its arguments.
  void autocast_casts_the_parts_of_a_composite() {
    const auto graph = fx("x: <f32[2, 2][2, 1]>",
                          "enter = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n"
                          "a: <bf16[2, 2][2, 1]> = torch.functional.einsum('ij,kj->ik', x, x)\n"
                          "leave = torch.amp.autocast_mode._exit_autocast(enter)\n"
                          "b: <f32[2, 2][2, 1]> = torch.functional.einsum('ij,kj->ik', x, x)\nreturn (a, b)");
    const auto run = interpret(*graph, {f32({2, 2}, {1.001, 0, 0, 2})});
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QCOMPARE((*run)[0].get<Tensor>()->dtype, DType::BFloat16);
    QCOMPARE(elements((*run)[0]), (Row{1, 0, 0, 4}));
    QVERIFY(elements((*run)[1])[0] > 1.001);
  }

  void an_operator_runs_again_from_a_saved_state() {
    const auto run = interpret(
        *fx(vec,
            "a = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.native_dropout.default, x, 0.5, True)\n"
            "state: <u8[5056][1]> = a[0]\nparts = a[1]\nd: <f32[3][1]> = parts[0]\n"
            "later: <f32[3][1]> = $rand_like(x)\n"
            "b = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.native_dropout.default, x, 0.5, "
            "True)\n"
            "e: <f32[3][1]> = b[0]\n"
            "c = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.rand_like.default, x)\n"
            "last: <f32[3][1]> = $rand_like(x)\nreturn (d, e, later, c, last)"),
        {f32({3}, {1, 2, 3})});
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    const auto plain = interpret(*fx(vec,
                                     "a = $native_dropout(x, 0.5, True)\nd: <f32[3][1]> = a[0]\n"
                                     "later: <f32[3][1]> = $rand_like(x)\nlast: <f32[3][1]> = $rand_like(x)\n"
                                     "return (d, later, last)"),
                                 {f32({3}, {1, 2, 3})});
    const auto first = interpret(*fx(vec, "c: <f32[3][1]> = $rand_like(x)\nreturn (c,)"), {f32({3}, {1, 2, 3})});
    QVERIFY(plain && first);
    QCOMPARE(elements((*run)[0]), elements((*plain)[0]));
    QCOMPARE(elements((*run)[1]), elements((*plain)[0]));
    QCOMPARE(elements((*run)[2]), elements((*plain)[1]));
    QCOMPARE(elements((*run)[3]), elements((*first)[0]));
    QCOMPARE(elements((*run)[4]), elements((*plain)[2]));
  }

  /// PyTorch's logs print the state as u8[s21].
  void a_state_may_have_a_symbol_for_its_size() {
    const auto run =
        interpret(*fx(vec,
                      "a = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.rand_like.default, x)\n"
                      "state: <u8[s21][1]> = a[0]\nb: <f32[3][1]> = a[1]\n"
                      "c = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.rand_like.default, x)\n"
                      "return (b, c)"),
                  {f32({3}, {1, 2, 3})});
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QCOMPARE(elements((*run)[1]), elements((*run)[0]));
  }

  void arithmetic_is_told_apart_where_the_text_says_nothing() {
    const auto graph = fx(vec,
                          "y = $mul.Tensor(x, 2)\nn = torch.ops.aten.sym_numel.default(y)\nm = n / 2\nz = y - m\n"
                          "return (z,)");
    const auto changed = resolve_calls(*graph, false);
    QVERIFY2(bool(changed), changed ? "" : changed.error().line().c_str());
    QVERIFY(graph->find("m")->meta.sym());
    QCOMPARE(graph->find("z")->op()->name, std::string("aten.sub.Tensor"));
  }

  void a_state_that_is_not_the_cpu_s_is_refused() {
    const auto refusal_of = [](const std::vector<double>& state) {
      const auto size = std::ssize(state);
      const auto run = interpret(*fx(fmt::format("x: <f32[3][1]>, s: <u8[{}][1]>", size),
                                     "a = torch.ops.higher_order.run_with_rng_state(s, "
                                     "torch.ops.aten.rand_like.default, x)\nreturn (a,)"),
                                 {f32({3}, {1, 2, 3}), tensor(DType::UInt8, {size}, state)});
      return run ? Diagnostic() : run.error();
    };
    const Diagnostic other = refusal_of(std::vector<double>(16, 0));  // of a GPU's generator
    QVERIFY(other.fault == Fault::Unsupported);
    const Diagnostic broken = refusal_of(std::vector<double>(5056, 255));
    QVERIFY(broken.message.find("is no state of the CPU's generator") != std::string::npos);
  }
};

QTEST_GUILESS_MAIN(TestInterpreter)
#include "test_interpreter.moc"
