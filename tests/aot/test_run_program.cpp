// Values and gradients of programs that run by the interpreter.
#include <QtTest>

#include "core/aot/run_program.h"
#include "core/interp/interpreter.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

class TestRunProgram : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rows_chosen_by_values_have_gradients_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<std::vector<double>>("expected");
    QTest::newRow("mean") << "r = $mean(y)" << std::vector<double>{.25, .25, 0, 0, .25, .25};
    QTest::newRow("var") << "v = $var.correction(y, [0], correction = 1)\nr = $sum(v)"
                         << std::vector<double>{-3, -5, 0, 0, 3, 5};
    QTest::newRow("nll_loss") << "t = $index.Tensor(i, [m])\nr = $nll_loss_nd(y, t)"
                              << std::vector<double>{0, -.5, 0, 0, -.5, 0};
  }
  void rows_chosen_by_values_have_gradients() {
    QFETCH(QString, lines);
    QFETCH(std::vector<double>, expected);
    TensorFile io;
    io.tensors["input.0"] = f32({3, 2}, {1, 2, 3, 5, 4, 7});
    io.tensors["input.0"].requires_grad = true;
    io.tensors["input.1"] = tensor(DType::Bool, {3}, {1, 0, 1});
    io.tensors["input.2"] = i64({3}, {1, 0, 0});
    const auto graph = fx("x: <f32[3, 2][2, 1]>, m: <b8[3][1]>, i: <i64[3][1]>",
                          "y = $index.Tensor(x, [m])\n" + lines.toStdString() + "\nreturn (r,)");
    RunOptions options;
    options.forward = options.backward = compile_to_interpreter;
    const auto out = run_program(artefact_of(*graph), io, options);
    VERIFY_DONE(out);
    QCOMPARE(elements(Value(out->tensors.at("grad.input.0"))), expected);
  }

  // Eager PyTorch's result is a view of its operand, so that a write to one shows in the other, or is an error.
  void results_that_show_operands_are_not_written_data() {
    QTest::addColumn<QString>("returned");
    QTest::addColumn<QString>("write");
    QTest::addColumn<bool>("refused");
    QTest::newRow("the operand") << "x" << "w = $add_.Tensor(z, 1)" << true;
    QTest::newRow("the result") << "x" << "w = $add_.Tensor(b, 1)" << true;
    QTest::newRow("a view of it") << "x.view(2)" << "v = $view(z, [2])\nw = $add.out(v, v, out = v)" << true;
    QTest::newRow("a copy") << "x.clone()" << "w = $add_.Tensor(z, 1)" << false;
    QTest::newRow("other memory") << "x" << "c = $clone(z)\nw = $add_.Tensor(c, 1)" << false;
  }
  void results_that_show_operands_are_not_written() {
    QFETCH(QString, returned);
    QFETCH(QString, write);
    QFETCH(bool, refused);
    const auto graph =
        fx("x: <f32[2][1]>",
           "z = $mul.Tensor(x, 2)\nf = self.f\ng = self.g\n"
           "a = torch.ops.higher_order.autograd_function_apply(f, g, z)\nb = a[0]\n" +
               write.toStdString() + "\nreturn (b,)",
           "    class f(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n            y = " +
               returned.toStdString() + "\n            return ((y,), ())\n" +
               "    class g(torch.nn.Module):\n        def forward(self, d: <f32[2][1]>):\n"
               "            e = -d\n            return (e,)\n");
    TensorFile io;
    (io.tensors["input.0"] = f32({2}, {1, 2})).requires_grad = true;
    io.tensors["tangent.0"] = f32({2}, {1, 1});
    const auto out =
        run_program(artefact_of(*graph), io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    QCOMPARE(out ? std::string() : out.error().code, std::string(refused ? "functionalize.autograd_function" : ""));
    if (!refused) QCOMPARE(elements(Value(out->tensors.at("grad.input.0"))), (std::vector<double>{-2, -2}));
  }

  // As eager PyTorch does it, a backward may write to the gradient that it is given; who else has it would see that.
  void a_backward_writes_to_its_gradient_data() {
    QTest::addColumn<QString>("after");
    QTest::addColumn<QString>("backward");
    QTest::addColumn<std::vector<double>>("expected");  // empty: refused
    const QString scaled = "e = d.mul_(x)\n            return (d,)";
    QTest::newRow("a tangent") << "r = $add.Tensor(b, 0)" << scaled << std::vector<double>{2, 12};
    QTest::newRow("a gradient") << "r = $mul.Tensor(b, 2)" << scaled << std::vector<double>{4, 24};
    QTest::newRow("a view of it") << "r = $view(b, [1, 2])"
                                  << "v = d.view(-1)\n            e = v[0].zero_()\n            return (d,)"
                                  << std::vector<double>{0, 6};
    QTest::newRow("another value's") << "r = $add.Tensor(b, z)" << scaled << std::vector<double>{};
    QTest::newRow("a value of the forward")
        << "p = self.f\nh = self.h\nc = torch.ops.higher_order.autograd_function_apply(p, h, b)\nr = c[0]" << scaled
        << std::vector<double>{};
    QTest::newRow("a saved value") << "r = $add.Tensor(b, 0)" << "e = x.mul_(d)\n            return (d,)"
                                   << std::vector<double>{};
  }
  void a_backward_writes_to_its_gradient() {
    QFETCH(QString, after);
    QFETCH(QString, backward);
    QFETCH(std::vector<double>, expected);
    const auto graph =
        fx("x: <f32[2][1]>",
           "z = $mul.Tensor(x, 2)\nf = self.f\ng = self.g\n"
           "a = torch.ops.higher_order.autograd_function_apply(f, g, z)\nb = a[0]\n" +
               after.toStdString() + "\nreturn (r,)",
           "    class f(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n            y = x * 1\n"
           "            return ((y,), (x,))\n"
           "    class g(torch.nn.Module):\n        def forward(self, d: <f32[2][1]>, x: <f32[2][1]>):\n            " +
               backward.toStdString() +
               "\n    class h(torch.nn.Module):\n        def forward(self, d: <f32[2][1]>, x: <f32[2][1]>):\n"
               "            return (x,)\n");
    TensorFile io;
    (io.tensors["input.0"] = f32({2}, {0.5, 1})).requires_grad = true;
    io.tensors["tangent.0"] = f32(after.contains("view") ? Sizes{1, 2} : Sizes{2}, {1, 3});
    const auto out =
        run_program(artefact_of(*graph), io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    QCOMPARE(out ? std::string() : out.error().code, std::string(expected.empty() ? "grad.custom_backward" : ""));
    if (!expected.empty()) QCOMPARE(elements(Value(out->tensors.at("grad.input.0"))), expected);
  }

  // nested_compile_region, with and without a name, and a module that is called within the graph.
  void sub_graphs_are_inlined_data() {
    QTest::addColumn<QString>("calls");
    const QString invoke = "f = self.f\ng = self.g\na = torch.ops.higher_order.invoke_subgraph(g, %1, x, x)\nb = a[0]";
    QTest::newRow("a region") << invoke.arg("None");
    QTest::newRow("a region with a name") << invoke.arg("'g'");
    QTest::newRow("strict_mode") << "g = self.g\na = torch.ops.higher_order.strict_mode(g, (x, x))\nb = a[0]";
    QTest::newRow("hints_wrapper")
        << "g = self.g\na = torch.ops.higher_order.hints_wrapper(g, (x, x), {}, hints = {'outer': True})\nb = a[0]";
    QTest::newRow("a module") << "c = self.f(x)\nb = $mul.Tensor(c, x)";
  }
  void sub_graphs_are_inlined() {
    QFETCH(QString, calls);
    const auto graph = fx("x: <f32[2][1]>", calls.toStdString() + "\nreturn (b,)",
                          "    class f(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
                          "            y = x * 3\n            return y\n"
                          "    class g(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>, z: <f32[2][1]>):\n"
                          "            y = x * 3\n            r = y * z\n            return (r,)\n");
    TensorFile io;
    (io.tensors["input.0"] = f32({2}, {1, 2})).requires_grad = true;
    io.tensors["tangent.0"] = f32({2}, {1, 1});
    const auto as_it_is = run_as_it_is(artefact_of(*graph), io, {}, compile_to_interpreter);
    VERIFY_DONE(as_it_is);
    QCOMPARE(elements(Value(as_it_is->tensors.at("output.0"))), (std::vector<double>{3, 12}));
    const auto out =
        run_program(artefact_of(*graph), io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(out);
    QCOMPARE(elements(Value(out->tensors.at("output.0"))), (std::vector<double>{3, 12}));
    QCOMPARE(elements(Value(out->tensors.at("grad.input.0"))), (std::vector<double>{6, 12}));
  }

  // What no dynamo writes must not be trusted.
  void broken_autograd_functions_are_refused_data() {
    QTest::addColumn<QString>("call");
    QTest::addColumn<QString>("body");
    const QString apply = "f = self.f\na = torch.ops.higher_order.autograd_function_apply(f";
    QTest::newRow("no backward") << apply + ")" << "((x,), ())";
    QTest::newRow("no results") << apply + ", f, x)" << "(([],), ())";
    QTest::newRow("no tuples") << apply + ", f, x)" << "(x,)";
    QTest::newRow("too much is saved") << apply + ", f, x)" << "((x,), (x, x, x))";
    QTest::newRow("the call within") << "a = torch.ops.partita.custom_backward(x)" << "(x,)";
  }
  void broken_autograd_functions_are_refused() {
    QFETCH(QString, call);
    QFETCH(QString, body);
    const auto graph = fx("x: <f32[2][1]>", call.toStdString() + "\nb = a[0]\nreturn (b,)",
                          "    class f(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
                          "            return " +
                              body.toStdString() + "\n");
    TensorFile io;
    (io.tensors["input.0"] = f32({2}, {1, 2})).requires_grad = true;
    const auto out =
        run_program(artefact_of(*graph), io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    QVERIFY(!out);
    QVERIFY(out.error().fault != Fault::Internal);
  }

  void label_smoothing_knows_symbolic_classes() {
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 4, 0, 3, 1});
    io.tensors["input.1"] = i64({2}, {2, 0});
    io.tensors["input.2"] = f32({2, 3}, {.5, .25, .25, 0, 1, 0});
    const auto losses = [&](const std::string& n, const std::string& k) {
      const std::string rows = "<f32[" + n + ", " + k + "][" + k + ", 1]>";
      const auto graph = fx("x: " + rows + ", i: <i64[" + n + "][1]>, p: " + rows,
                            "a = $cross_entropy_loss(x, i, None, 1, -100, 0.3)\n"
                            "b = $cross_entropy_loss(x, p, None, 0, -100, 0.3)\nc = $cat([$unsqueeze(a, 0), b])\n"
                            "return (c,)");
      const auto out =
          run_program(artefact_of(*graph), io, {.aot = {.train = false}, .forward = compile_to_interpreter});
      if (!out) throw std::runtime_error(out.error().line());
      return elements(Value(out->tensors.at("output.0")));
    };
    const std::vector<double> fixed = losses("2", "3"), symbolic = losses("s0", "s1");
    for (std::size_t i = 0; i < 3; ++i) QVERIFY(std::abs(fixed.at(i) - symbolic.at(i)) < 1e-6);
  }

  void conjugated_views_follow_writes_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<std::vector<double>>("expected");
    const std::vector<double> squared = {-3, -4, -7, -24};  // of 1 + 2i and 3 + 4i, conjugated
    QTest::newRow("read afterwards") << "o = $_conj(x)\ns = $square_(x)" << squared;
    QTest::newRow("by a method") << "y = x * 1\no = y.conj()\ns = y.square_()" << squared;
    QTest::newRow("an attribute") << "y = x.unsqueeze(1)\no = y.mH\ns = y.square_()" << squared;
    QTest::newRow("a composite") << "y = $unsqueeze(x, 1)\no = $adjoint(y)\ns = $square_(y)" << squared;
    QTest::newRow("written itself") << "m = $_conj(x)\ns = $square_(m)\no = $_conj(x)" << squared;
    QTest::newRow("chunks") << "c = $chunk(r, 2)\nd = c[0]\ne = $neg_(d)\no = $_conj(x)"
                            << std::vector<double>{-1, 2, 3, -4};
    QTest::newRow("an out argument") << "y = $unsqueeze(x, 1)\no = $mH(y)\ns = $mul.out(y, y, out = y)" << squared;
    QTest::newRow("read before") << "m = $_conj(x)\no = $neg(m)\ns = $square_(x)" << std::vector<double>{-1, 2, -3, 4};
  }
  void conjugated_views_follow_writes() {
    QFETCH(QString, lines);
    QFETCH(std::vector<double>, expected);
    TensorFile io;
    io.tensors["input.0"] = f32({2, 2}, {1, 2, 3, 4});
    const auto graph = fx("r: <f32[2, 2][2, 1]>", "x = $view_as_complex(r)\n" + lines.toStdString() +
                                                      "\nv = $resolve_conj(o)\nw = $view_as_real(v)\nreturn (w,)");
    const auto out = run_as_it_is(artefact_of(*graph), io, {}, compile_to_interpreter);
    VERIFY_DONE(out);
    QCOMPARE(elements(Value(out->tensors.at("output.0"))), expected);
  }
};

QTEST_GUILESS_MAIN(TestRunProgram)
#include "test_run_program.moc"
