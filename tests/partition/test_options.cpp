// Pins and the memory budget on a joint graph small enough to reason about.
#include <QtTest>

#include "core/fake/propagate.h"
#include "core/partition/cost.h"
#include "core/partition/partition.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// out = exp(sin(x @ w)). Without options, the forward saves the product, and the backward recomputes sin and exp,
/// which is cheap.
std::unique_ptr<Graph> joint() {
  return fx("primals_1: <f32[64, 64][64, 1]>, primals_2: <f32[64, 64][64, 1]>, tangents_1: <f32[64, 64][64, 1]>",
            "mm: <f32[64, 64][64, 1]> = $mm(primals_1, primals_2)\n"
            "sin: <f32[64, 64][64, 1]> = $sin(mm)\n"
            "exp: <f32[64, 64][64, 1]> = $exp(sin)\n"
            "mul: <f32[64, 64][64, 1]> = $mul.Tensor(tangents_1, exp)\n"
            "cos: <f32[64, 64][64, 1]> = $cos(mm)\n"
            "mul_1: <f32[64, 64][64, 1]> = $mul.Tensor(mul, cos)\n"
            "t: <f32[64, 64][1, 64]> = $t(primals_2)\n"
            "mm_1: <f32[64, 64][64, 1]> = $mm(mul_1, t)\n"
            "t_1: <f32[64, 64][1, 64]> = $t(primals_1)\n"
            "mm_2: <f32[64, 64][64, 1]> = $mm(t_1, mul_1)\n"
            "return (exp, mm_1, mm_2)");
}

bool saves(const Partition& p, const std::string& name) {
  return std::ranges::any_of(p.saved, [&](const SavedValue& v) { return v.name == name; });
}
bool recomputes(const Partition& p, const std::string& name) {
  return std::ranges::find(p.recomputed, name) != p.recomputed.end();
}

}  // namespace

class TestPartitionOptions : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_saved_value_is_saved() {
    const auto graph = joint();
    const auto p = partition(*graph, {.save = {"cos"}});
    QVERIFY2(p, p ? "" : p.error().line().c_str());
    QVERIFY(saves(*p, "cos"));
    QVERIFY(!recomputes(*p, "cos"));
    QVERIFY(p->forward->find("cos"));
    QVERIFY(p->backward->find("cos")->is_placeholder());
  }

  /// What only recomputed calls read is saved for them.
  void recomputed_calls_have_what_they_read() {
    const auto graph = fx("primals_1: <f32[3][1]>, primals_2: <f32[3][1]>, tangents_1: <f32[3][1]>",
                          "add: <f32[3][1]> = $add.Tensor(primals_1, primals_2)\n"
                          "sin: <f32[3][1]> = $sin(add)\n"
                          "neg: <f32[3][1]> = $neg(tangents_1)\n"
                          "mul: <f32[3][1]> = $mul.Tensor(neg, sin)\n"
                          "return (sin, mul, mul)");
    for (const char* name : {"add", "sin"}) graph->find(name)->recompute = Recompute::MustRecompute;
    for (const Partitioner partitioner : {Partitioner::Default, Partitioner::MinCut}) {
      const auto p = partition(*graph, {.partitioner = partitioner});
      QVERIFY2(p, p ? "" : p.error().line().c_str());
      QVERIFY(saves(*p, "primals_1") && saves(*p, "primals_2") && p->saved.size() == 2);
      QVERIFY(recomputes(*p, "add") && recomputes(*p, "sin"));
    }
  }

  // Without a tag the backward computes sin again. PREFER_SAVE yields to a pin and to a budget, MUST_SAVE to none.
  void a_preference_is_kept_unless_overridden() {
    const auto graph =
        fx("primals_1: <f32[64, 64][64, 1]>, primals_2: <f32[64, 64][64, 1]>, tangents_1: <f32[64, 64][64, 1]>",
           "mm: <f32[64, 64][64, 1]> = $mm(primals_1, primals_2)\n"
           "sin: <f32[64, 64][64, 1]> = $sin(mm)\n"
           "neg: <f32[64, 64][64, 1]> = $neg(sin)\n"
           "mul: <f32[64, 64][64, 1]> = $mul.Tensor(tangents_1, sin)\n"
           "cos: <f32[64, 64][64, 1]> = $cos(mm)\n"
           "mul_1: <f32[64, 64][64, 1]> = $mul.Tensor(mul, cos)\n"
           "t: <f32[64, 64][1, 64]> = $t(primals_2)\n"
           "mm_1: <f32[64, 64][64, 1]> = $mm(mul_1, t)\n"
           "return (neg, mm_1, None)");
    for (const Recompute tag : {Recompute::Unspecified, Recompute::PreferSave, Recompute::MustSave}) {
      graph->find("sin")->recompute = tag;
      const auto usual = partition(*graph, {});
      QVERIFY2(usual, usual ? "" : usual.error().line().c_str());
      QCOMPARE(saves(*usual, "sin"), tag != Recompute::Unspecified);
      const auto least = partition(*graph, {.memory_budget = 0});
      QVERIFY2(least, least ? "" : least.error().line().c_str());
      QCOMPARE(saves(*least, "sin"), tag == Recompute::MustSave);
    }
    graph->find("sin")->recompute = Recompute::PreferSave;
    const auto pinned = partition(*graph, {.recompute = {"sin"}});
    QVERIFY2(pinned, pinned ? "" : pinned.error().line().c_str());
    QVERIFY(!saves(*pinned, "sin"));
  }

  // An operator of another library, printed without an overload, may print or send.
  void an_unread_call_of_another_library_stays_in_the_forward() {
    const auto graph = fx("primals_1: <f32[4][1]>, tangents_1: <f32[4][1]>",
                          "sin: <f32[4][1]> = $sin(primals_1)\n"
                          "emit = torch.ops.corpus.emit(sin, 'mid')\n"
                          "cos: <f32[4][1]> = $cos(primals_1)\n"
                          "mul: <f32[4][1]> = $mul.Tensor(tangents_1, cos)\n"
                          "return (sin, mul)");
    for (const Partitioner partitioner : {Partitioner::Default, Partitioner::MinCut}) {
      const auto p = partition(*graph, {.partitioner = partitioner});
      QVERIFY2(p, p ? "" : p.error().line().c_str());
      QVERIFY(p->forward->find("emit"));
      QVERIFY(!p->backward->find("emit"));
    }
  }

  void a_recomputed_value_is_not_saved() {
    const auto graph = joint();
    const auto before = partition(*graph);
    QVERIFY2(before, before ? "" : before.error().line().c_str());
    const auto kept = std::ranges::find_if(before->saved, [](const SavedValue& v) { return !v.is_input; });
    QVERIFY(kept != before->saved.end());
    const auto p = partition(*graph, {.recompute = {kept->name}});
    QVERIFY2(p, p ? "" : p.error().line().c_str());
    QVERIFY(!saves(*p, kept->name));
    QVERIFY(p->backward->find(kept->name) && !p->backward->find(kept->name)->is_placeholder());
  }

  /// A draw that nothing reads changes what later draws give. It runs once, in the forward.
  void unused_draws_are_kept() {
    const auto graph = fx("primals_1: <f32[4][1]>, tangents_1: <f32[4][1]>",
                          "unread: <f32[4][1]> = $rand_like(primals_1)\n"
                          "noise: <f32[4][1]> = $rand_like(primals_1)\n"
                          "y: <f32[4][1]> = $mul.Tensor(primals_1, noise)\n"
                          "late: <f32[4][1]> = $rand_like(primals_1)\n"
                          "dx: <f32[4][1]> = $mul.Tensor(tangents_1, noise)\n"
                          "dz: <f32[4][1]> = $mul.Tensor(dx, late)\n"
                          "return (y, dz)");
    for (const Partitioner partitioner : {Partitioner::Default, Partitioner::MinCut}) {
      const auto p = partition(*graph, {.partitioner = partitioner});
      QVERIFY2(p, p ? "" : p.error().line().c_str());
      for (const char* draw : {"unread", "noise", "late"}) {
        QVERIFY2(p->forward->find(draw), draw);
        const Node* again = p->backward->find(draw);
        QVERIFY2(!again || again->is_placeholder(), draw);
      }
      QVERIFY(saves(*p, "noise") && saves(*p, "late") && !saves(*p, "unread"));
    }
  }

  void costs_of_huge_sizes_do_not_wrap() {
    const auto graph = fx("primals_1: <f32[s0, 4][4, 1]>, tangents_1: <f32[s0, 4][4, 1]>",
                          "y: <f32[s0, 4][4, 1]> = $sin(primals_1)\n"
                          "c: <f32[s0, 4][4, 1]> = $cos(primals_1)\n"
                          "dx: <f32[s0, 4][4, 1]> = $mul.Tensor(tangents_1, c)\n"
                          "return (y, dx)");
    graph->shapes->set_hint("s0", std::int64_t{1} << 62);
    const Node& y = *graph->find("y");
    QVERIFY(elements_of(y) > 0);
    QVERIFY(bytes_of(y) >= elements_of(y));
    QVERIFY(operations_of(y) > 0);
    const auto p = partition(*graph, {});
    QVERIFY2(p, p ? "" : p.error().line().c_str());
    QVERIFY(p->input_bytes + p->activation_bytes > 0);
  }

  void sizes_without_hints_stay_symbols() {
    const auto graph = fx("primals_1: <f32[s0, 4][4, 1]>, tangents_1: <f32[s0, 4][4, 1]>",
                          "e: <f32[s0, 4][4, 1]> = $exp(primals_1)\n"
                          "y: <f32[s0, 4][4, 1]> = $sin(e)\n"
                          "c: <f32[s0, 4][4, 1]> = $cos(e)\n"
                          "dy: <f32[s0, 4][4, 1]> = $mul.Tensor(tangents_1, c)\n"
                          "dx: <f32[s0, 4][4, 1]> = $mul.Tensor(dy, e)\n"
                          "return (y, dx)");
    const PartitionOptions options{.recompute = {"e"}};
    auto p = partition(*graph, options);
    QVERIFY2(p, p ? "" : p.error().line().c_str());
    QCOMPARE(p->recomputed_operations.str(), std::string("4*s0"));
    QVERIFY((assumed_sizes(*graph) == std::map<std::string, std::int64_t>{{"s0", 4096}}));
    graph->shapes->set_hint("s0", 100);
    p = partition(*graph, options);
    QVERIFY(p->recomputed_operations.is(400));
    QVERIFY(assumed_sizes(*graph).empty());
  }

  void impossible_pins_are_refused() {
    const auto graph = joint();
    for (const PartitionOptions& options :
         {PartitionOptions{.save = {"nothing"}}, PartitionOptions{.recompute = {"tangents_1"}},
          PartitionOptions{.save = {"mm"}, .recompute = {"mm"}}}) {
      const auto p = partition(*graph, options);
      QVERIFY(!p);
      QCOMPARE(p.error().code, std::string("partition.pin"));
    }
  }

  void joint_graphs_are_recognised() {
    QVERIFY(is_joint(*joint()));
    const char* body = "m: <f32[2][1]> = $mul.Tensor(tangents_1, primals_1)\nreturn (m, None)";
    QVERIFY2(!is_joint(*fx("primals_1: <f32[2][1]>, tangents_1: <f32[2][1]>", body)),
             "a backward: its first output hangs on the tangent");
    QVERIFY2(!is_joint(*fx("primals_2: <f32[2][1]>, tangents_1: <f32[2][1]>",
                           "m: <f32[2][1]> = $mul.Tensor(tangents_1, primals_2)\nreturn (None, m)")),
             "a backward of which one primal was saved");
    QVERIFY2(!is_joint(*fx("primals_1: <f32[2][1]>", "s: <f32[2][1]> = $sin(primals_1)\nreturn (s,)")), "a forward");
  }

  /// How many outputs are the forward's: one gradient per primal comes after them, and more where the gradient of a
  /// plain tensor is a tensor subclass.
  void forward_outputs_are_told_from_gradients() {
    struct Row {
      const char *what, *outputs, *note;
      std::optional<std::size_t> count;
    };
    const Row rows[] = {
        {"one each", "(s, g3, g5)", "", 1},
        {"the forward returns None, too", "(s, None, g3, g5)", "", 2},
        {"a subclass of g5 and another g5", "(s, None, g5, g5)", "", 1},
        {"a subclass as the first gradient", "(s, g3, g3, g5)", "", 1},
        {"gradients of other sizes", "(s, g5, g3)", "", {}},
        {"as the log says", "(s, None, g3, g5)",
         "PlainAOTOutput(idx=0)\nPlainAOTOutput(idx=1)\nGradAOTOutput(grad_of=PlainAOTInput(idx=0))\n"
         "GradAOTOutput(grad_of=PlainAOTInput(idx=1))",
         2},
        {"a subclass, as the log says", "(s, None, g5, g5)",
         "PlainAOTOutput(idx=0)\nGradAOTOutput(grad_of=PlainAOTInput(idx=0))\n"
         "SubclassGetAttrAOTOutput(base=GradAOTOutput(grad_of=PlainAOTInput(idx=1)), attr='a')\n"
         "SubclassGetAttrAOTOutput(base=GradAOTOutput(grad_of=PlainAOTInput(idx=1)), attr='b')",
         1},
        {"what has no gradient, as the log says", "(s, None, g5, g5)",
         "PlainAOTOutput(idx=0)\nNone\n"
         "SubclassGetAttrAOTOutput(base=GradAOTOutput(grad_of=PlainAOTInput(idx=1)), attr='a')\n"
         "SubclassGetAttrAOTOutput(base=GradAOTOutput(grad_of=PlainAOTInput(idx=1)), attr='b')",
         1},
    };
    for (const Row& row : rows) {
      const auto graph = fx("primals_1: <f32[3][1]>, primals_2: <f32[5][1]>, tangents_1: <f32[5][1]>",
                            std::string("s: <f32[5][1]> = $sin(primals_2)\n"
                                        "g5: <f32[5][1]> = $neg(tangents_1)\n"
                                        "n: <f32[][]> = $sum(tangents_1)\n"
                                        "g3: <f32[3][1]> = $mul.Tensor(primals_1, n)\nreturn ") +
                                row.outputs);
      graph->output()->note = row.note;
      const auto p = partition(*graph);
      QVERIFY2(bool(p) == row.count.has_value(), row.what);
      if (!p) {
        QCOMPARE(p.error().code, std::string("partition.joint"));
        continue;
      }
      QVERIFY2(p->forward_outputs == *row.count, row.what);
      QVERIFY2(p->gradient_of.front() == 0 && p->gradient_of.back() == 1, row.what);
      QVERIFY2(p->backward->outputs().size() == graph->outputs().size() - *row.count, row.what);
    }
  }

  /// A gradient that is a tensor subclass of a symbolic size is its inner tensors and the size, which is an input.
  void sizes_follow_the_inner_tensors_of_a_gradient() {
    const auto graph =
        fx("primals_1: \"Sym(s0)\", primals_2: <f32[s0][1]>, primals_3: <f32[s0][1]>, tangents_1: <f32[s0][1]>",
           "s: <f32[s0][1]> = $mul.Tensor(primals_2, primals_3)\n"
           "a: <f32[s0][1]> = $mul.Tensor(tangents_1, primals_3)\n"
           "b: <f32[s0][1]> = $mul.Tensor(tangents_1, primals_2)\n"
           "return (s, None, a, b, b, primals_1)");
    for (const Partitioner how : {Partitioner::MinCut, Partitioner::Default}) {
      const auto p = partition(*graph, {.partitioner = how});
      QVERIFY2(p, p ? "" : p.error().line().c_str());
      QCOMPARE(p->forward_outputs, std::size_t{1});
      QCOMPARE(p->gradient_of, (std::vector<std::size_t>{0, 1, 2, 2, 2}));
      for (const char* name : {"primals_1", "primals_2", "primals_3"}) QVERIFY2(p->backward->find(name), name);
    }
  }

  /// None may be an output or the first input's gradient where the other sizes fit both.
  void outputs_that_do_not_tell_are_refused() {
    const auto graph = fx("primals_1: <f32[3][1]>, primals_2: <f32[3][1]>, tangents_1: <f32[3][1]>",
                          "s: <f32[3][1]> = $sin(primals_1)\n"
                          "g: <f32[3][1]> = $neg(tangents_1)\n"
                          "return (s, None, g, g)");
    const auto p = partition(*graph);
    QVERIFY(!p && p.error().message.find("--forward-outputs") != std::string::npos);
    const auto told = partition(*graph, {.forward_outputs = 2});
    QVERIFY2(told, told ? "" : told.error().line().c_str());
    QCOMPARE(told->backward->outputs().size(), std::size_t{2});
  }

  /// A device mesh, say: no tensor, handed on to what is returned beside a gradient.
  void opaque_inputs_are_saved() {
    const auto graph = fx("primals_1: <f32[4][1]>, primals_2, tangents_1: <f32[4][1]>",
                          "sin: <f32[4][1]> = $sin(primals_1)\n"
                          "cos: <f32[4][1]> = $cos(primals_1)\n"
                          "mul: <f32[4][1]> = $mul.Tensor(tangents_1, cos)\n"
                          "return (sin, mul, primals_2)");
    for (const Partitioner partitioner : {Partitioner::Default, Partitioner::MinCut}) {
      const auto p = partition(*graph, {.partitioner = partitioner});
      QVERIFY2(p, p ? "" : p.error().line().c_str());
      QCOMPARE(p->saved.back().name, std::string("primals_2"));
      QCOMPARE(p->saved.back().bytes, std::int64_t{0});
      QVERIFY(p->backward->find("primals_2")->is_placeholder());
    }
  }

  /// Beside what torch.utils.flop_counter counts for the same calls.
  void operations_are_those_of_pytorch() {
    struct Row {
      const char *inputs, *call;
      std::int64_t operations;
    };
    const char *images =
                   "x: <f32[2, 6, 9, 9][486, 81, 9, 1]>, w: <f32[4, 3, 3, 3][27, 9, 3, 1]>, "
                   "g: <f32[2, 4, 7, 7][196, 49, 7, 1]>, d: <f32[8, 6, 3, 3][54, 9, 3, 1]>",
               *heads =
                   "q: <f32[2, 4, 16, 8][512, 128, 8, 1]>, k: <f32[2, 4, 32, 8][1024, 256, 8, 1]>, "
                   "v: <f32[2, 4, 32, 8][1024, 256, 8, 1]>, o: <f32[2, 4, 16, 8][512, 128, 8, 1]>, "
                   "l: <f32[2, 4, 16][64, 16, 1]>",
               *matrices =
                   "a: <f32[3, 4][4, 1]>, b: <f32[4, 5][5, 1]>, c: <f32[2, 3, 4][12, 4, 1]>, "
                   "e: <f32[2, 4, 5][20, 5, 1]>, s: <f32[3, 5][5, 1]>, z: <f32[5, 4][4, 1]>";
    const Row rows[] = {
        {matrices, "$mm(a, b)", 120},
        {matrices, "$addmm(s, a, b)", 120},
        {matrices, "$bmm(c, e)", 240},
        {matrices, "$addbmm(s, c, e)", 240},
        {matrices, "$matmul(c, b)", 240},
        {matrices, "$linear(c, z)", 240},
        {images, "$conv2d(x, d)", 2 * 2 * 8 * 49 * 54},
        {images, "$convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 2)", 2 * 2 * 4 * 49 * 27},
        {images, "$conv_transpose2d.input(g, w)", 2 * 2 * 4 * 49 * 27},
        {images, "$convolution(g, w, None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1)", 2 * 2 * 4 * 49 * 27},
        {heads, "$scaled_dot_product_attention(q, k, v)", 2 * 2 * 4 * 16 * 32 * 16},
        {heads, "$_scaled_dot_product_flash_attention_for_cpu(q, k, v)", 2 * 2 * 4 * 16 * 32 * 16},
        {heads, "$_scaled_dot_product_flash_attention_for_cpu_backward(o, q, k, v, o, l, 0.0, False)",
         2 * 2 * 4 * 16 * 32 * 40},
        {heads, "$_scaled_dot_product_attention_math(q, k, v)", 2 * 2 * 4 * 16 * 32 * 16},
        {heads, "$_scaled_dot_product_efficient_attention(q, k, v, None, True)", 2 * 2 * 4 * 16 * 32 * 16},
    };
    for (const Row& row : rows) {
      const auto graph = fx(row.inputs, std::string("y = ") + row.call + "\nreturn (y,)");
      (void)propagate(*graph);  // what is known; kernels of GPUs have no inference
      const Node* y = graph->find("y");
      QVERIFY2(operations_of(*y) == row.operations,
               qPrintable(QString("%1: %2, not %3").arg(row.call).arg(operations_of(*y)).arg(row.operations)));
    }
  }

  void the_budget_trades_bytes_for_arithmetic() {
    const auto graph = joint();
    const auto all = partition(*graph), none = partition(*graph, {.memory_budget = 0});
    QVERIFY2(all, all ? "" : all.error().line().c_str());
    QVERIFY2(none, none ? "" : none.error().line().c_str());
    QVERIFY(all->activation_bytes > 0);
    QCOMPARE(none->activation_bytes, std::int64_t{0});
    QVERIFY(recomputes(*none, "mm"));
    const auto curve = budget_curve(*graph, {}, 5);
    QVERIFY2(curve, curve ? "" : curve.error().line().c_str());
    QCOMPARE(curve->size(), std::size_t{5});
    for (std::size_t i = 1; i < curve->size(); ++i) {
      QVERIFY((*curve)[i].activation_bytes >= (*curve)[i - 1].activation_bytes);
      QVERIFY((*curve)[i].recomputed_operations.as_int() <= (*curve)[i - 1].recomputed_operations.as_int());
    }
    QCOMPARE(curve->back().activation_bytes, all->activation_bytes);
  }
};

QTEST_GUILESS_MAIN(TestPartitionOptions)
#include "test_options.moc"
