// The functional graph returns what the mutating graph returns, and the new values of what that graph wrote.
#include <QtTest>

#include "core/functionalize/functionalize.h"
#include "core/interp/interpreter.h"
#include "core/ops/record/record.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

Tensor copy(const Tensor& t) {
  return *t.clone();
}

bool writes(const Graph& graph) {
  for (const Node* node : graph)
    if (const Schema* schema = find_schema(node->op()); schema && schema->is_mutable) return true;
  return false;
}

}  // namespace

class TestFunctionalize : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void runs_the_same_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<int>("mutated");  // number of mutated inputs
    QTest::addRow("pure") << "a = $sin(x)\nreturn (a,)" << 0;
    QTest::addRow("an input") << "a = $add_.Tensor(x, 1)\nb = $mul.Tensor(a, y)\nreturn (b,)" << 1;
    QTest::addRow("two inputs") << "a = $mul_.Tensor(x, 2)\nb = $add_.Tensor(y, a)\nc = $neg(x)\nreturn (c,)" << 2;
    QTest::addRow("a view of an input") << "v = $select.int(x, 0, 1)\nw = $fill_.Scalar(v, 7)\nb = $neg(x)\nreturn (b,)"
                                        << 1;
    QTest::addRow("a view of a view") << "t = $t(x)\nv = $slice.Tensor(t, 0, 0, 2)\nw = $mul_.Tensor(v, 3)\n"
                                         "b = $exp(x)\nreturn (b,)"
                                      << 1;
    QTest::addRow("a view of an intermediate")
        << "a = $sin(x)\nv = $view(a, [6])\nw = $add_.Tensor(v, 1)\nreturn (a, w)" << 0;
    QTest::addRow("a write through the base is seen in the view")
        << "v = $view(x, [6])\na = $add_.Tensor(x, 1)\nb = $neg(v)\nreturn (b,)" << 1;
    QTest::addRow("another size") << "a = $resize_(x, [6])\nb = $neg(a)\nreturn (b,)" << 1;
    QTest::addRow("another memory, which is written through it")
        << "e = $empty.memory_format([0])\na = $set_.source_Tensor(e, x)\nv = $view(a, [6])\nw = $add_.Tensor(v, 1)\n"
           "b = $mul.Tensor(e, y)\nc = $neg(x)\nreturn (b, c)"
        << 1;
    QTest::addRow("copy") << "a = $cos(y)\nb = $copy_(x, a)\nreturn (a,)" << 1;
  }

  void runs_the_same() {
    QFETCH(QString, lines);
    QFETCH(int, mutated);
    const auto graph = fx("x: <f32[2, 3][3, 1]>, y: <f32[2, 3][3, 1]>", lines.toStdString());
    const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), y = f32({2, 3}, {0.5, -1, 2, 0.25, 3, -2});
    const std::vector<Value> written = {copy(x), copy(y)}, kept = {copy(x), copy(y)};
    const auto expected = interpret(*graph, written);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());

    const auto made = functionalize(*graph);
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    QVERIFY(!writes(*made->graph));
    const std::vector<std::size_t> inputs = made->meta.mutated_runtime_inputs();
    QCOMPARE(inputs.size(), static_cast<std::size_t>(mutated));
    const auto found = interpret(*made->graph, kept);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(elements(kept[0]), elements(x));
    QCOMPARE(elements(kept[1]), elements(y));
    for (std::size_t i = 0; i < inputs.size(); ++i) QCOMPARE(elements(found->at(i)), elements(written[inputs[i]]));
    for (std::size_t i = 0; i < expected->size(); ++i) {
      // An output that is a view of an intermediate is remade from its base, which then is an output too.
      const OutputType type = made->meta.outputs[i].type;
      if (type == OutputType::NonAlias) QCOMPARE(elements(found->at(inputs.size() + i)), elements(expected->at(i)));
    }
  }

  // log's result has no gaps, the written input has, and aten.copy keeps those of its argument.
  void calls_that_keep_gaps_see_those_of_a_written_input() {
    const auto graph =
        fx("x: <f32[3][2]>", "v = $unflatten.int(x, 0, [3])\na = $log_(x)\nc = $copy(v, a)\nreturn (c,)");
    const auto made = functionalize(*graph);
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    QCOMPARE(annotation(made->graph->outputs().back().node()->meta), std::string("f32[3][2]cpu"));
  }

  // The numbers of a run depend on every draw before them.
  void an_unused_draw_stays() {
    const auto graph =
        fx("x: <f32[2][1]>", "u = $rand_like(x)\ns = $sin(x)\nr = $rand_like(x)\nb = $add.Tensor(x, r)\nreturn (b,)");
    const auto made = functionalize(*graph);
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    std::vector<std::string> calls;
    for (const Node* node : *made->graph)
      if (node->op()->is_call()) calls.push_back(node->op()->name);
    QCOMPARE(calls, (std::vector<std::string>{"aten.rand_like.default", "aten.rand_like.default", "aten.add.Tensor"}));
  }

  void sizes_come_from_the_call_and_not_from_its_annotation() {
    const auto graph = fx("x: <f32[4][1]>", "r: <f32[3][1]> = $resize_(x, [2])\na = $neg(r)\nreturn (a,)");
    const auto made = functionalize(*graph);
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    const Node* neg = made->graph->outputs().back().node();
    QCOMPARE(annotation(neg->meta), std::string("f32[2][1]cpu"));
  }

  // A write to one row of an expanded tensor shows in all of them.
  void a_written_input_that_repeats_elements_is_refused() {
    const auto graph = fx("x: <f32[3, 1][0, 1]>", "n = $slice.Tensor(x, 0, 1, 2)\na = $neg_(n)\nreturn (a,)");
    const auto made = functionalize(*graph);
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("functionalize.mutation"));
  }

  /// resize_as_ with a format reads the same memory in other strides.
  void other_strides_of_the_same_sizes_are_refused() {
    const auto graph = fx("x: <f32[2, 3][1, 2]>, y: <f32[2, 3][3, 1]>",
                          "r = $resize_as_(x, y, memory_format = torch.contiguous_format)\nb = $neg(r)\nreturn (b,)");
    const auto made = functionalize(*graph);
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("functionalize.resize"));
  }

  /// Here x requires a gradient.
  void memory_that_autograd_would_miss_is_refused_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("code");
    const QString no_grad = "g = torch._C._set_grad_enabled(False)\n";
    QTest::newRow("PyTorch has no derivative") << "a = $set_.source_Tensor(y, x)\nb = $neg(a)\nreturn (b,)"
                                               << "functionalize.set";
    QTest::newRow("a gradient of another size")
        << no_grad + "a = $set_.source_Tensor(x, z)\nreturn (a,)" << "functionalize.set";
    QTest::newRow("it was saved for the backward")
        << "s = $sin(x)\n" + no_grad + "a = $set_.source_Tensor(x, y)\nreturn (s,)" << "functionalize.set";
    QTest::newRow("its first memory is written")
        << no_grad + "w = $add_.Tensor(y, 1)\na = $set_.source_Tensor(y, z)\nreturn (a,)" << "functionalize.set";
    QTest::newRow("a storage") << no_grad + "a = $set_.source_Storage(y, z)\nreturn (a,)" << "ops.unknown";
    QTest::newRow("freed memory is read")
        << "f = torch.ops.inductor.resize_storage_bytes_.default(y, 0)\nb = $neg(y)\nreturn (b,)"
        << "functionalize.storage";
    QTest::newRow("freed memory is returned")
        << "b = $neg(y)\nf = torch.ops.inductor.resize_storage_bytes_.default(b, 4)\nreturn (b,)"
        << "functionalize.storage";
  }

  void memory_that_autograd_would_miss_is_refused() {
    QFETCH(QString, lines);
    QFETCH(QString, code);
    const auto made = functionalize(*fx("x: <f32[2][1]>, y: <f32[2][1]>, z: <f32[3][1]>", lines.toStdString()),
                                    {.requires_grad = {true}});
    QVERIFY(!made);
    QCOMPARE(QString::fromStdString(made.error().code), code);
  }

  void a_sub_graph_may_not_free_its_operand() {
    const auto made = functionalize(
        *fx("x: <f32[2, 2][2, 1]>, y: <f32[2][1]>",
            "b = self.b\nc = torch.ops.higher_order.map_impl(b, [x], [y])\nr = c[0]\nreturn (r, y)",
            "    class b(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>, y: <f32[2][1]>):\n"
            "            m = $neg(y)\n            f = torch.ops.inductor.resize_storage_bytes_.default(y, 0)\n"
            "            return (m,)\n"));
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("functionalize.sub_graph"));
  }

  /// A library's operator of which only the name is known.
  void a_write_without_a_schema_is_refused() {
    const auto code = [](const std::string& call) {
      const auto made = functionalize(*fx("x: <f32[2][1]>", "a: <f32[2][1]> = torch.ops." + call + "\nreturn (x, a)"));
      return made ? std::string() : made.error().code;
    };
    QCOMPARE(code("mylib.twice_.default(x)"), std::string("functionalize.mutation"));
    QCOMPARE(code("mylib.twice.default(x)"), std::string());
  }

  // Eager PyTorch adds the new a to b; the functional variant would add the old one.
  void a_list_that_is_read_after_it_was_written_is_refused() {
    const auto graph = fx("a: <f32[2][1]>, b: <f32[2][1]>", "u = $_foreach_add_.List([a, b], [b, a])\nreturn (a, b)");
    const auto made = functionalize(*graph);
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("functionalize.mutation"));
    const auto run = interpret(*graph, {f32({2}, {1, 2}), f32({2}, {3, 4})});
    QVERIFY(!run);
    QCOMPARE(run.error().code, std::string("ops.foreach"));
  }

  // What a write makes has memory of its own, in which nobody has written between the elements.
  void what_lies_between_written_elements_is_refused() {
    for (const char* view : {"$as_strided_(a, [9], [1])", "$as_strided(a, [9], [1])"}) {
      const auto made =
          functionalize(*fx("x: <f32[2, 3][10, 2]>", std::string("a: <f32[2, 3][10, 2]> = $tril_(x)\nb = ") + view +
                                                         "\nc = $clone(b)\nreturn (c,)"));
      QVERIFY(!made);
      QVERIFY2(made.error().message.find("of a memory with gaps") != std::string::npos, made.error().message.c_str());
    }
  }

  void windows_are_written() {
    const auto windows = [](const std::string& size) {
      return fx("x: <f32[7, 2][2, 1]>", "a: <f32[7, 2][2, 1]> = $clone(x)\nw = $unfold(a, -2, " + size +
                                            ", 3)\nm = $mul_.Tensor(w, 10)\nreturn (a,)");
    };
    const auto graph = windows("2");
    const std::vector<Value> inputs = {f32({7, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})};
    const auto made = functionalize(*graph);
    QVERIFY2(bool(made), made ? "" : made.error().line().c_str());
    const std::vector<double> expected = {0, 10, 20, 30, 4, 5, 60, 70, 80, 90, 10, 11, 12, 13};
    QCOMPARE(elements((*interpret(*made->graph, inputs))[0]), expected);
    QCOMPARE(elements((*interpret(*graph, inputs))[0]), expected);
    const auto overlapping = functionalize(*windows("4"));
    QVERIFY(!overlapping);
    QVERIFY(overlapping.error().message.find("overlap") != std::string::npos);
  }

  // PyTorch's schema returns nothing, but graphs after Inductor's passes read the call's list.
  void a_list_that_was_written_is_read_as_a_result() {
    const auto graph = fx("a: <f32[2][1]>, b: <f32[2][1]>",
                          "u = $_foreach_add_.Scalar([a, b], 1)\nc: <f32[2][1]> = u[1]\nreturn (c,)");
    const std::vector<Value> inputs = {f32({2}, {1, 2}), f32({2}, {3, 4})};
    const auto made = functionalize(*graph);
    QVERIFY2(bool(made), made ? "" : made.error().line().c_str());
    const auto run = interpret(*made->graph, inputs);
    const auto eager = interpret(*graph, inputs);
    QVERIFY(run && eager);
    QCOMPARE(elements(run->back()), (std::vector<double>{4, 5}));
    QCOMPARE(elements(eager->back()), (std::vector<double>{4, 5}));
  }

  // The cast to the dtype of the wrong annotation would be dropped, and the result be another.
  void a_wrong_annotated_dtype_is_refused() {
    const auto graph =
        fx("x: <b8[3, 5][5, 1]>", "a: <bf16[3][1]> = $amin(x, [1])\nb = $to.dtype(a, torch.bfloat16)\nreturn (b,)");
    const auto made = functionalize(*graph);
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("functionalize.annotation"));
  }

  // torch.export writes that a batch norm keeps the strides of a 3-d image. It does not, so its transposed result is no
  // view of rows.
  void strides_of_the_annotation_are_inferred_again() {
    const auto graph =
        fx("x: <f32[2, 3, 4][12, 4, 1]>, m: <f32[4][1]>, v: <f32[4][1]>, w: <f32[5, 4][4, 1]>, b: <f32[5][1]>",
           "t: <f32[2, 4, 3][12, 1, 4]> = $transpose.int(x, 1, 2)\n"
           "n: <f32[2, 4, 3][12, 1, 4]> = $batch_norm(t, None, None, m, v, False, 0.1, 1e-05, False)\n"
           "r: <f32[2, 3, 4][12, 4, 1]> = $transpose.int(n, 1, 2)\nl = $linear(r, w, b)\nreturn (l,)");
    const auto made = functionalize(*graph);
    QVERIFY2(bool(made), made ? "" : made.error().line().c_str());
    const std::vector<Value> inputs = {f32({2, 3, 4}, std::vector<double>(24, 3)), f32({4}, {1, 1, 1, 1}),
                                       f32({4}, {4, 4, 4, 4}), f32({5, 4}, std::vector<double>(20, 1)),
                                       f32({5}, {0, 1, 2, 3, 4})};
    const auto run = interpret(*made->graph, inputs), eager = interpret(*graph, inputs);
    QVERIFY(run && eager);
    QCOMPARE(elements(run->back()), elements(eager->back()));
  }

  // Loops see what the steps before have written, a map's rows are their own, and what is carried is replaced anyway.
  void writes_in_sub_graphs_data() {
    QTest::addColumn<QString>("call");
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("refused");
    const QString scan = "torch.ops.higher_order.scan(b, [x], [xs], [y])",
                  map = "torch.ops.higher_order.map_impl(b, [xs], [x, y])";
    QTest::newRow("scan: what all steps read") << scan << "$add_.Tensor(y, r)" << "";
    QTest::newRow("scan: what is carried") << scan << "$add_.Tensor(x, r)" << "operand 0";
    QTest::newRow("scan: a row") << scan << "$add_.Tensor(r, x)" << "operand 1";
    QTest::newRow("map: what all rows read") << map << "$add_.Tensor(y, r)" << "operand 2";
    QTest::newRow("map: a row") << map << "$add_.Tensor(r, x)" << "";
    QTest::newRow("sizes") << scan << "$unsqueeze_(y, 0)" << "sizes or strides";
  }
  void writes_in_sub_graphs() {
    QFETCH(QString, call);
    QFETCH(QString, line);
    QFETCH(QString, refused);
    const bool map = call.contains("map_impl");
    const auto graph =
        fx("x: <f32[2][1]>, y: <f32[2][1]>, xs: <f32[3, 2][2, 1]>",
           "b = self.b\nc = " + call.toStdString() + "\ng = c[0]\nh = c[1]\nn = $neg(y)\nreturn (g, h, n, xs)",
           std::string("\n    class b(torch.nn.Module):\n        def forward(self, ") +
               (map ? "r: <f32[2][1]>, x: <f32[2][1]>" : "x: <f32[2][1]>, r: <f32[2][1]>") +
               ", y: <f32[2][1]>):\n            w = " + line.toStdString() +
               "\n            s = $mul.Tensor(x, r)\n            t = $mul.Tensor(y, r)\n"
               "            return (s, t)\n");
    const auto made = functionalize(*graph);
    if (!refused.isEmpty()) {
      QVERIFY(!made);
      QCOMPARE(made.error().code, std::string("functionalize.sub_graph"));
      QVERIFY2(QString::fromStdString(made.error().line()).contains(refused), made.error().line().c_str());
      return;
    }
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    for (const auto& [name, child] : made->graph->children) QVERIFY(!writes(*child));
    const auto inputs = [] {
      return std::vector<Value>{f32({2}, {1, 2}), f32({2}, {3, 4}), f32({3, 2}, {1, 2, 3, 4, 5, 6})};
    };
    const std::vector<Value> written = inputs();
    const auto expected = interpret(*graph, written), found = interpret(*made->graph, inputs());
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    const std::vector<std::size_t> mutated = made->meta.mutated_runtime_inputs();
    QCOMPARE(mutated, std::vector<std::size_t>{map ? 2U : 1U});
    QCOMPARE(elements(found->at(0)), elements(written[mutated[0]]));
    for (std::size_t i = 0; i < expected->size(); ++i) QCOMPARE(elements(found->at(i + 1)), elements(expected->at(i)));
  }

  void mutations_may_stay_in_the_graph() {
    const auto graph = fx("x: <f32[2][1]>", "a = $add_.Tensor(x, 1)\nb = $neg(a)\nreturn (b,)");
    const auto made = functionalize(*graph, {.keep_input_mutations = true});
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    QVERIFY(made->meta.mutated_runtime_inputs().empty());
    QCOMPARE(made->meta.mutated_in_graph(), std::vector<std::size_t>{0});
    const Tensor x = f32({2}, {1, 2});
    const auto found = interpret(*made->graph, {x});
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(elements(Value(x)), (std::vector<double>{2, 3}));
    QCOMPARE(elements(found->at(0)), (std::vector<double>{-2, -3}));
  }

  void running_statistics_are_outputs() {
    const char* parameters =
        "x: <f32[2, 1, 1, 2][2, 2, 2, 1]>, w: <f32[1][1]>, b: <f32[1][1]>, m: <f32[1][1]>, v: <f32[1][1]>";
    const auto graph = fx(parameters,
                          "r = torch.ops.aten._native_batch_norm_legit.default(x, w, b, m, v, True, 0.5, 1e-05)\n"
                          "y = r[0]\nreturn (y,)");
    const auto inputs = [] {
      return std::vector<Value>{f32({2, 1, 1, 2}, {1, 3, 5, 7}), f32({1}, {1}), f32({1}, {0}), f32({1}, {0}),
                                f32({1}, {1})};
    };
    const auto written = inputs();
    const auto expected = interpret(*graph, written);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    const auto made = functionalize(*graph);
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    QVERIFY(!writes(*made->graph));
    QCOMPARE(made->meta.mutated_runtime_inputs(), (std::vector<std::size_t>{3, 4}));
    const auto found = interpret(*made->graph, inputs());
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(elements(found->at(0)), (std::vector<double>{2}));  // half of the mean, 4
    QCOMPARE(elements(found->at(0)), elements(written[3]));
    QCOMPARE(elements(found->at(1)), elements(written[4]));
    QCOMPARE(elements(found->at(2)), elements(expected->at(0)));
  }

  void aliases_among_outputs_are_recorded() {
    const auto graph = fx("x: <f32[2, 3][3, 1]>",
                          "v = $view(x, [6])\na = $sin(x)\nb = $t(a)\nc = $view(a, [6])\nreturn (x, v, a, b, c)");
    // Views of intermediates are remade for autograd's sake; without autograd they are plain outputs.
    const auto plain = functionalize(*graph);
    QVERIFY2(plain, plain ? "" : plain.error().line().c_str());
    QCOMPARE(name_of(plain->meta.outputs[3].type), name_of(OutputType::NonAlias));
    const auto made = functionalize(*graph, {.requires_grad = {true}});
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    const auto& outputs = made->meta.outputs;
    QCOMPARE(outputs.size(), std::size_t{5});
    QCOMPARE(name_of(outputs[0].type), name_of(OutputType::IsInput));
    QCOMPARE(name_of(outputs[1].type), name_of(OutputType::AliasOfInput));
    QCOMPARE(*outputs[1].base_idx, std::size_t{0});
    QCOMPARE(name_of(outputs[2].type), name_of(OutputType::NonAlias));
    QCOMPARE(name_of(outputs[3].type), name_of(OutputType::AliasOfIntermediateBaseIsUserOutput));
    QCOMPARE(*outputs[3].base_idx, std::size_t{2});
    QCOMPARE(name_of(outputs[4].type), name_of(OutputType::AliasOfIntermediateBaseIsUserOutput));
  }
};

QTEST_GUILESS_MAIN(TestFunctionalize)
#include "test_functionalize.moc"
