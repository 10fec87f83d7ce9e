// Operators that a folder of texts gives a meaning: found by name, inferred, run, replaced by their texts'
// calls, differentiated; and what their texts must not have. The figures are those of the formulas.
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "core/base/config.h"
#include "core/grad/joint.h"
#include "core/interp/interpreter.h"
#include "core/ir/structural_hash.h"
#include "core/load/operators.h"
#include "core/load/user_kernels.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/user_operator.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

const char *scale_add =
               "def forward(self, x: \"f32[1]\", w, scale = 2.0):\n"
               "    y = torch.sigmoid(x) * scale\n"
               "    return y + w\n",
           *own_backward =
               "def forward(self, grad, x, scale):\n"
               "    s = torch.sigmoid(x)\n"
               "    return (grad * scale * s * (1 - s), grad * 7, None)\n",
           *bump =
               "def forward(self, x):\n"
               "    copy = x.copy_(x + 1)\n"
               "    return ()\n";

class Folder {
 public:
  Folder& with(const std::string& file, const std::string& text) {
    QFile out(folder_.filePath(QString::fromStdString(file)));
    if (!out.open(QIODevice::WriteOnly)) qFatal("the file cannot be written");
    out.write(text.data(), static_cast<qint64>(text.size()));
    return *this;
  }
  /// The graph with the folder's meanings.
  std::unique_ptr<Graph> bind(std::unique_ptr<Graph> graph) const {
    Config own = config();
    own.operators = path();
    const ConfigScope scope(own);
    if (const Status done = give_meanings(*graph); !done) throw std::runtime_error(done.error().line());
    return graph;
  }
  std::string path() const { return folder_.path().toStdString(); }

 private:
  QTemporaryDir folder_;
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

class TestUserOperators : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void runs_by_its_text() {
    Folder folder;
    folder.with("mylib.scale_add.default.py", scale_add);
    // The overload may be left out; arguments go by name, and defaults are filled in.
    const auto graph = folder.bind(fx("x: <f32[2][1]>, w: <f32[2][1]>",
                                      "a = torch.ops.mylib.scale_add(x, w = w)\n"
                                      "b = torch.ops.mylib.scale_add.default(a, w, 3.0)\nreturn (b,)"));
    const Node* call = graph->find("a");
    QCOMPARE(QString::fromStdString(call->op()->name), "mylib.scale_add.default");
    QVERIFY(call->op()->meaning && !has_effect(*call));
    const Result<Meta> meta = infer(*call);
    QVERIFY2(meta, meta ? "" : meta.error().line().c_str());
    QCOMPARE(meta->tensor()->sizes.size(), std::size_t{1});
    for (const bool wide : {false, true}) {
      const auto out = interpret(*graph, {f32({2}, {0, 1}), f32({2}, {5, 6})}, {.float64 = wide});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      const double a = 2 * sigmoid(1) + 6;
      QVERIFY(std::abs(elements(out->at(0))[1] - (3 * sigmoid(a) + 6)) < (wide ? 1e-12 : 1e-5));
    }
  }

  /// Texts need not annotate what comes of a call: functions of Python find out what they read.
  void is_read_by_functions() {
    Folder folder;
    folder.with("mylib.scale_add.default.py", scale_add);
    const auto graph = folder.bind(
        fx("x: <f32[2][1]>", "a = torch.ops.mylib.scale_add(x, x)\nb = torch.relu(a)\nc = b.sum()\nreturn (c,)"));
    const auto out = interpret(*graph, {f32({2}, {-3, 1})});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QVERIFY(std::abs(elements(out->at(0))[0] - (2 * sigmoid(1) + 1)) < 1e-5);
  }

  void draws_if_its_text_does() {
    Folder folder;
    folder.with("mylib.noise.default.py", "def forward(self, x):\n    return x + torch.rand_like(x)\n")
        .with("mylib.drop.default.py", "def forward(self, x):\n    return torch.nn.functional.dropout(x, 0.5)\n");
    const auto graph = folder.bind(
        fx("x: <f32[2][1]>", "a = torch.ops.mylib.noise(x)\nb = torch.ops.mylib.drop.default(a)\nreturn (b,)"));
    for (const char* name : {"a", "b"}) QVERIFY2(draws(graph->find(name)->op()), name);
    const auto out = interpret(*graph, {f32({2}, {-3, 1})});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
  }

  void is_another_operator_with_another_text() {
    Folder one, same, other;
    one.with("mylib.scale_add.default.py", scale_add);
    same.with("mylib.scale_add.default.py", scale_add);
    other.with("mylib.scale_add.default.py", std::string(scale_add) + "\n");
    const auto graph = [] { return fx("x: <f32[2][1]>", "a = torch.ops.mylib.scale_add(x, x)\nreturn (a,)"); };
    const auto a = one.bind(graph()), b = same.bind(graph()), c = other.bind(graph());
    QCOMPARE(a->find("a")->op(), b->find("a")->op());
    QVERIFY(a->find("a")->op() != c->find("a")->op());
    QVERIFY(structural_hash(*a) == structural_hash(*b) && structural_hash(*a) != structural_hash(*c));
  }

  void writes_its_argument() {
    Folder folder;
    folder.with("mylib.bump.default.py", bump);
    const auto graph = folder.bind(fx("x: <f32[2][1]>", "a = torch.ops.mylib.bump.default(x)\nreturn (x,)"));
    QCOMPARE(written_by(*graph->find("a")), std::vector<Node*>{graph->find("x")});
    const auto out = interpret(*graph, {f32({2}, {1, 2})});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements(out->at(0)), (std::vector<double>{2, 3}));
    const auto functional = functionalize(*graph);
    QVERIFY2(functional, functional ? "" : functional.error().line().c_str());
    QCOMPARE(functional->meta.mutated_runtime_inputs().size() + functional->meta.mutated_in_graph().size(),
             std::size_t{1});
  }

  /// PyTorch's functional form of such a call, in both of its versions, and of a view of what is written.
  void writes_clones_data() {
    QTest::addColumn<QString>("keywords");
    QTest::addColumn<int>("changed");
    QTest::addRow("auto_functionalized") << "auto_functionalized(torch.ops.mylib.bump.default, x = x)" << 2;
    QTest::addRow("auto_functionalized_v2")
        << "auto_functionalized_v2(torch.ops.mylib.bump.default, _x_base_index = 0, _all_bases = [x])" << 2;
    QTest::addRow("a slice")
        << "auto_functionalized_v2(torch.ops.mylib.bump.default, _x_base_index = 0, _x_slice_dim = "
           "0, _x_slice_start = 1, _x_slice_end = 2, _all_bases = [x])"
        << 1;
  }

  void writes_clones() {
    QFETCH(QString, keywords);
    QFETCH(int, changed);
    Folder folder;
    folder.with("mylib.bump.default.py", bump);
    const auto graph = folder.bind(
        fx("x: <f32[2][1]>", "a = torch.ops.higher_order." + keywords.toStdString() + "\nb = a[1]\nreturn (b, x)"));
    const auto functional = functionalize(*graph);
    QVERIFY2(functional, functional ? "" : functional.error().line().c_str());
    for (const Graph* each : {graph.get(), functional->graph.get()}) {
      const auto out = interpret(*each, {f32({2}, {1, 2})});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE(elements(out->at(0)), (std::vector<double>{changed == 2 ? 2. : 1., 3}));
      QCOMPARE(elements(out->at(1)), (std::vector<double>{1, 2}));
    }
  }

  void is_differentiated_data() {
    QTest::addColumn<bool>("own");
    QTest::addRow("through the text") << false;
    QTest::addRow("by a backward of its own") << true;
  }

  void is_differentiated() {
    QFETCH(bool, own);
    Folder folder;
    folder.with("mylib.scale_add.default.py", scale_add);
    if (own) folder.with("mylib.scale_add.default.backward.py", own_backward);
    const auto graph =
        folder.bind(fx("x: <f32[2][1]>, w: <f32[2][1]>", "a = torch.ops.mylib.scale_add(x, w, 3.0)\nreturn (a,)"));
    FunctionalizeOptions options;
    options.requires_grad = {true, true};
    auto functional = functionalize(*graph, options);
    QVERIFY2(functional, functional ? "" : functional.error().line().c_str());
    const auto joint = make_joint(*std::move(functional));
    QVERIFY2(joint, joint ? "" : joint.error().line().c_str());
    bool kept = false;
    for (const Node* node : *joint->graph) kept |= node->op()->meaning != nullptr;
    QCOMPARE(kept, own);
    const auto out = interpret(*joint->graph, {f32({2}, {0, 1}), f32({2}, {5, 6}), f32({2}, {1, 10})});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QVERIFY(std::abs(elements(out->at(0))[1] - (3 * sigmoid(1) + 6)) < 1e-5);
    QVERIFY(std::abs(elements(out->at(1))[1] - 30 * sigmoid(1) * (1 - sigmoid(1))) < 1e-5);
    QVERIFY(std::abs(elements(out->at(2))[1] - (own ? 70 : 10)) < 1e-5);
  }

  void is_replaced_by_its_text() {
    Folder folder;
    folder.with("mylib.scale_add.default.py", scale_add)
        .with("mylib.twice.default.py",
              "def forward(self, x):\n    a = torch.ops.mylib.scale_add(x, x)\n    return (a, x.size(0) * a)\n");
    const auto graph = folder.bind(fx("x: <f32[2][1]>", "a = torch.ops.mylib.twice.default(x)\nb = a[1]\nreturn (b,)"));
    const Result<bool> placed = place_meanings(*graph);
    QVERIFY2(placed && *placed, placed ? "" : placed.error().line().c_str());
    for (const Node* node : *graph) QVERIFY(!node->op()->meaning && (!node->op()->is_call() || node->meta.known()));
    const auto files = meaning_files(*folder.bind(fx("x: <f32[2][1]>", "a = torch.ops.mylib.twice(x)\nreturn (a,)")));
    QCOMPARE(files.size(), std::size_t{2});
  }

  void refuses_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const char* file, const char* text, const char* says) {
      QTest::addRow("%s", name) << file << text << says;
    };
    row("no operator's name", "scale_add.py", scale_add, "is no operator's");
    row("no identifier", "my-lib.a.default.py", scale_add, "is no operator's");
    row("no forward", "mylib.a.default.backward.py", own_backward, "there is no mylib.a.default.py");
    row("one of Partita's", "aten.add.Tensor.py", scale_add, "knows aten.add.Tensor already");
    row("a circle", "mylib.a.default.py", "def forward(self, x):\n    return torch.ops.mylib.a(x)\n",
        "a circle of texts");
    row("no graph", "mylib.a.default.py", "hello", "");
    row("a view", "mylib.a.default.py", "def forward(self, x):\n    return x\n", "returns its argument x");
    row("no tensor", "mylib.a.default.py", "def forward(self, x):\n    return (x + 1, 3)\n", "returns 3");
    row("an attribute", "mylib.a.default.py", "def forward(self, x):\n    return x + self.w\n", "reads self.w");
    row("any number", "mylib.a.default.py", "def forward(self, *x):\n    return torch.cat(x)\n",
        "stands for any number");
  }

  void refuses() {
    QFETCH(QString, file);
    QFETCH(QString, text);
    QFETCH(QString, says);
    Folder folder;
    folder.with(file.toStdString(), text.toStdString());
    const auto table = read_operators(folder.path());
    QVERIFY(!table);
    QVERIFY2(QString::fromStdString(table.error().line()).contains(says), table.error().line().c_str());
    QVERIFY(table.error().line().find(file.toStdString()) != std::string::npos);
  }

  void refuses_calls_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("says");
    QTest::addRow("too few") << "def forward(self, x):\n    return x + 1\n"
                             << "2 positional arguments given, at most 1 taken";
    QTest::addRow("too many") << "def forward(self, x, y, z):\n    return x + y + z\n" << "argument 'z' is missing";
    QTest::addRow("no number") << "def forward(self, x, y: \"f32[1]\"):\n    return x.reshape(y)\n"
                               << "mylib.a.default.py";
    QTest::addRow("a view") << "def forward(self, x, y):\n    return (x[0] * 1, y.t())\n" << "returns a view";
    QTest::addRow("a write") << "def forward(self, x, y):\n    a = x.clone()\n    return a.add_(y)\n"
                             << "writes only by copy_";
  }

  void refuses_calls() {
    QFETCH(QString, text);
    QFETCH(QString, says);
    Folder folder;
    folder.with("mylib.a.default.py", text.toStdString());
    const auto graph = folder.bind(fx("x: <f32[2][1]>", "a = torch.ops.mylib.a(x, x)\nreturn (a,)"));
    const Result<Meta> meta = infer(*graph->find("a"));
    QVERIFY(!meta);
    QVERIFY2(QString::fromStdString(meta.error().line()).contains(says), meta.error().line().c_str());
  }

  /// A kernel of the user's gives new values of what it writes, by name; nobody else's calls change.
  void functionalises_kernels() {
    const auto graph =
        fx("x: <f32[4][1]>, out: <f32[4][1]>",
           "k = torch.ops.higher_order.triton_kernel_wrapper_mutation(kernel_idx = 0, constant_args_idx = 0, grid = "
           "[(1, 1, 1)], tma_descriptor_metadata = {}, kwargs = {'in_ptr': x, 'out_ptr': out, 'n': 4})\n"
           "a = $add.Tensor(out, 1)\nreturn (a,)");
    QCOMPARE(written_by(*graph->find("k")).size(), std::size_t{2});
    const auto functional = functionalize(*graph);
    QVERIFY2(functional, functional ? "" : functional.error().line().c_str());
    const std::string text = body(*functional->graph);
    QVERIFY2(text.find("tensors_to_clone = ['in_ptr', 'out_ptr']") != std::string::npos, text.c_str());
    QVERIFY2(text.find("['out_ptr']") != std::string::npos, text.c_str());
    QVERIFY2(text.find("mutation") == std::string::npos, text.c_str());
    const auto out = interpret(*graph, {f32({4}, {1, 2, 3, 4}), f32({4}, {1, 2, 3, 4})});
    QVERIFY(!out && out.error().fault == Fault::Unsupported);
    QVERIFY(out.error().line().find("whose code is not in the graph") != std::string::npos);
  }

  void finds_the_code_of_kernels() {
    const std::string table = "torch._higher_order_ops.triton_kernel_wrap.kernel_side_table.";
    const std::string first = "@triton.jit\ndef add_kernel_0(a, b):\n    tl.store(b, tl.load(a))\n",
                      second = "B = tl.constexpr(4)\n@triton.jit\ndef mul_1(a):\n    pass\n";
    const std::string text = "import triton\n" + table + "reset_table()\n\n" + first + table +
                             "add_kernel(add_kernel_0)\n" + second + table + "add_kernel(mul_1)\n" + table +
                             "constant_args={0: {}}\nclass Repro:\n";
    const std::vector<UserKernel> kernels = find_user_kernels(text);
    QCOMPARE(kernels.size(), std::size_t{2});
    QVERIFY(kernels[0].name == "add_kernel_0" && kernels[0].index == 0 && kernels[0].line == 4);
    QVERIFY(text.substr(kernels[0].begin, kernels[0].end - kernels[0].begin) == first);
    QVERIFY(kernels[1].name == "mul_1" && kernels[1].index == 1);
    QVERIFY(text.substr(kernels[1].begin, kernels[1].end - kernels[1].begin) == second);
    QVERIFY(find_user_kernels("kernel_side_table.").empty());
    QVERIFY(find_user_kernels(table + "reset_table()\n" + table + "add_kernel(").empty());
    QVERIFY(find_user_kernels(table + "reset_table()\n" + table + "add_kernel(none)\n").empty());
  }
};

QTEST_APPLESS_MAIN(TestUserOperators)
#include "test_user_operators.moc"
