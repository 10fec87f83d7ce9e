#include <QtTest>

#include "core/ir/print.h"

using namespace partita;

class PrintTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void arguments_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("row");
    const char* expected[] = {"None",
                              "True",
                              "-3",
                              "1e-05",
                              "1.0",
                              "0.7071067811865476",
                              "inf",
                              "nan",
                              "quoted",
                              "1j",
                              "(1+2j)",
                              "[1, None]",
                              "(2,)",
                              "torch.float32",
                              "device(type='cuda', index=1)",
                              "slice(None, 3, None)",
                              "torch.channels_last",
                              "1e+16",
                              "123456789.0",
                              "3.4028234663852886e+38"};
    for (int i = 0; i < static_cast<int>(std::size(expected)); ++i) QTest::newRow(expected[i]) << expected[i] << i;
  }
  void arguments() {
    QFETCH(QString, text);
    QFETCH(int, row);
    const Arg args[] = {Arg(),
                        true,
                        -3,
                        1e-5,
                        1.0,
                        0.7071067811865476,
                        HUGE_VAL,
                        std::nan(""),
                        "it's",
                        std::complex<double>(0, 1),
                        std::complex<double>(1, 2),
                        Arg::list({1, Arg()}),
                        Arg::tuple({2}),
                        DType::Float32,
                        Device{DeviceType::Cuda, 1},
                        ArgSlice{{Arg(), 3, Arg()}},
                        MemoryFormat::ChannelsLast,
                        1e16,
                        123456789.0,
                        3.4028234663852886e+38};
    if (row == 8) text = "\"it's\"";
    QCOMPARE(QString::fromStdString(print(args[row])), text);
  }

  void graphAsFxWritesIt() {
    Graph g;
    Node* x = g.placeholder("l_x_", TensorMeta::contiguous(DType::Float32, {SymExpr(8), SymExpr::symbol("s77")}));
    x->target = "L_x_";
    Node* n = g.placeholder("n", Meta(SymExpr::symbol("s77")));
    Node* mul = g.create(Op::get(OpKind::Function, "_operator.mul"), {n, Arg(2)});
    mul->meta = Meta(SymExpr::symbol("s77") * 2);
    auto origin = std::make_shared<Origin>();
    origin->file = "zoo.py";
    origin->line = 41;
    origin->function = "forward";
    origin->code = "h = x.view(-1)";
    Node* view = g.create(Op::get(OpKind::Method, "view"), {x, Arg(-1)});
    view->origin = origin;
    Node* add = g.create(Op::torch("aten.add.Tensor"), {view, mul}, {{"alpha", Arg(2)}});
    add->origin = origin;
    g.set_output(Arg::tuple({add}));
    const char* expected =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[8, s77][s77, 1]cpu\", n: \"Sym(s77)\"):\n"
        "        l_x_ = L_x_\n"
        "\n"
        "        mul: \"Sym(2*s77)\" = n * 2;  n = None\n"
        "\n"
        "        # File: zoo.py:41 in forward, code: h = x.view(-1)\n"
        "        view = l_x_.view(-1);  l_x_ = None\n"
        "        add = torch.ops.aten.add.Tensor(view, mul, alpha = 2);  view = mul = None\n"
        "        return (add,)\n";
    QCOMPARE(QString::fromStdString(print(g)), QString(expected));
  }

  void jointForm() {
    Graph g("inner_f");
    g.form = GraphForm::Joint;
    Node* p = g.placeholder("primals_1", TensorMeta::contiguous(DType::Float32, {SymExpr(2)}));
    g.placeholder("tangents_1", TensorMeta::contiguous(DType::Float32, {SymExpr(2)}));
    g.set_output(Arg::list({p, Arg()}));
    QCOMPARE(
        QString::fromStdString(print(g)),
        QString("class inner_f(torch.nn.Module):\n"
                "    def forward(self, primals, tangents):\n"
                "        primals_1: \"f32[2][1]cpu\"; tangents_1: \"f32[2][1]cpu\"; \n"
                "\n"
                "        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)\n"
                "        return pytree.tree_unflatten([primals_1, None], self._out_spec)\n"));
  }
};

QTEST_APPLESS_MAIN(PrintTest)
#include "test_print.moc"
