// Random numbers as functions of a seed and an offset. The texts are what PyTorch 2.13 traces under
// torch._functorch.config.functionalize_rng_ops; the numbers those of torch.rand on a CUDA device after
// torch.cuda.manual_seed(0): 0.3990 0.5167 0.0249 0.9401 0.9459 0.7967 0.4150 0.8203 0.2290 0.9096.
#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/aot/metadata_json.h"
#include "core/aot/run_compiled.h"
#include "core/aot/run_program.h"
#include "core/base/config.h"
#include "core/compare/check_passes.h"
#include "core/interp/interpreter.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

Result<TrainedFunction> function_of(const Graph& graph, const TensorFile& io, bool train) {
  RunOptions options{.aot = {.train = train, .functionalize_rng = true},
                     .forward = compile_to_interpreter,
                     .backward = compile_to_interpreter,
                     .seed = 0};
  return TrainedFunction::make(artefact_of(graph), io, options);
}

Result<AotGraphs> made(const std::unique_ptr<Graph>& graph, bool train) {
  return aot(*graph, nullptr, {.train = train, .passes = false, .functionalize_rng = true});
}

/// x[10] of ones that requires grad.
TensorFile ones() {
  TensorFile io;
  Tensor x = f32({10}, std::vector<double>(10, 1));
  x.requires_grad = true;
  io.tensors["input.0"] = x;
  io.tensors["tangent.0"] = f32({10}, std::vector<double>(10, 1));
  return io;
}

const std::vector<double> first_mask = {0, 1, 0, 1, 1, 1, 0, 1, 0, 1};

}  // namespace

class TestFunctionalRng : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { set_config(*patched_config({{"verify", "true"}})); }

  void joint_and_forward_of_dropout() {
    const auto graph = fx("x: <f32[4, 3][3, 1]>", "s = $sin(x)\nd = $dropout(s, 0.3, True)\nc = $cos(d)\nreturn (c,)");
    const auto graphs = made(graph, true);
    VERIFY_DONE(graphs);
    QCOMPARE(body(*graphs->joint),
             std::string("sin = torch.ops.aten.sin.default(primals_1)\n"
                         "add = torch.ops.aten.add.Tensor(fwd_base_offset_1, 0)\n"
                         "philox_rand = torch.ops.rngprims.philox_rand.default([4, 3], fwd_seed_1, add, None, "
                         "device(type='cpu'), torch.float32)\n"
                         "getitem = philox_rand[0]\n"
                         "getitem_1 = philox_rand[1]\n"
                         "add_1 = torch.ops.aten.add.Tensor(getitem_1, 0)\n"
                         "gt = torch.ops.aten.gt.Scalar(getitem, 0.3)\n"
                         "mul = torch.ops.aten.mul.Tensor(gt, sin)\n"
                         "mul_1 = torch.ops.aten.mul.Tensor(mul, 1.4285714285714286)\n"
                         "cos = torch.ops.aten.cos.default(mul_1)\n"
                         "sin_1 = torch.ops.aten.sin.default(mul_1)\n"
                         "neg = torch.ops.aten.neg.default(sin_1)\n"
                         "mul_2 = torch.ops.aten.mul.Tensor(tangents_1, neg)\n"
                         "native_dropout_backward = torch.ops.aten.native_dropout_backward.default(mul_2, gt, "
                         "1.4285714285714286)\n"
                         "cos_1 = torch.ops.aten.cos.default(primals_1)\n"
                         "mul_3 = torch.ops.aten.mul.Tensor(native_dropout_backward, cos_1)\n"
                         "add_2 = torch.ops.aten.add.Tensor(fwd_base_offset_1, add_1)\n"
                         "add_3 = torch.ops.aten.add.Tensor(add_2, 3)\n"
                         "floor_divide = torch.ops.aten.floor_divide.default(add_3, 4)\n"
                         "mul_4 = torch.ops.aten.mul.Tensor(floor_divide, 4)\n"
                         "return [cos, mul_4, mul_3, bwd_base_offset_1]\n"));
    const std::string text = print(*graphs->joint);
    QVERIFY(text.find("def forward(self, primals, tangents, fwd_seed, fwd_base_offset, bwd_seed, bwd_base_offset):") !=
            std::string::npos);
    const auto again = parse_fx_text(text);
    VERIFY_DONE(again);
    QCOMPARE(print(**again), text);
    const auto parts = partition(**again);
    VERIFY_DONE(parts);
    for (const Graph* forward : {graphs->partition.forward.get(), parts->forward.get()})
      QVERIFY2(body(*forward).ends_with("return (cos, mul_4, primals_1, gt)\n"), body(*forward).c_str());
    QCOMPARE(graphs->partition.forward->placeholders().size(), std::size_t{3});
    QCOMPARE(graphs->partition.backward->placeholders().back()->name(), std::string("bwd_base_offset_1"));
    const auto meta = metadata_json(*graphs);
    QCOMPARE(meta["is_rng_op_functionalized"].get<bool>(), true);
    QCOMPARE(meta["traced_tangents"].size(), std::size_t{1});
  }

  /// Offsets add up over the calls; PyTorch takes bernoulli of a number apart, and not that of a tensor.
  void inference() {
    const auto graph = fx("x: <f32[4, 3][3, 1]>",
                          "a = $rand_like(x)\nb = $rand([2], dtype=torch.float64, device=device(type='cpu'))\n"
                          "c = $bernoulli.p(x, 0.3)\nd = $bernoulli(x)\nreturn (a, b, c, d)");
    const auto graphs = made(graph, false);
    VERIFY_DONE(graphs);
    QCOMPARE(body(*graphs->partition.forward),
             std::string("add = torch.ops.aten.add.Tensor(arg2_1, 0)\n"
                         "philox_rand = torch.ops.rngprims.philox_rand.default([4, 3], arg1_1, add, None, "
                         "device(type='cpu'), torch.float32)\n"
                         "getitem = philox_rand[0]\n"
                         "getitem_1 = philox_rand[1]\n"
                         "add_1 = torch.ops.aten.add.Tensor(getitem_1, 0)\n"
                         "add_2 = torch.ops.aten.add.Tensor(arg2_1, add_1)\n"
                         "philox_rand_1 = torch.ops.rngprims.philox_rand.default([2], arg1_1, add_2, None, "
                         "device(type='cpu'), torch.float64)\n"
                         "getitem_2 = philox_rand_1[0]\n"
                         "getitem_3 = philox_rand_1[1]\n"
                         "add_3 = torch.ops.aten.add.Tensor(add_1, getitem_3)\n"
                         "add_4 = torch.ops.aten.add.Tensor(arg2_1, add_3)\n"
                         "philox_rand_2 = torch.ops.rngprims.philox_rand.default([4, 3], arg1_1, add_4, None, "
                         "device(type='cpu'), torch.float32)\n"
                         "getitem_4 = philox_rand_2[0]\n"
                         "getitem_5 = philox_rand_2[1]\n"
                         "add_5 = torch.ops.aten.add.Tensor(add_3, getitem_5)\n"
                         "lt = torch.ops.aten.lt.Scalar(getitem_4, 0.3)\n"
                         "_to_copy = torch.ops.aten._to_copy.default(lt, dtype = torch.float32, "
                         "layout = torch.strided)\n"
                         "bernoulli = torch.ops.aten.bernoulli.default(arg0_1)\n"
                         "add_6 = torch.ops.aten.add.Tensor(arg2_1, add_5)\n"
                         "add_7 = torch.ops.aten.add.Tensor(add_6, 3)\n"
                         "floor_divide = torch.ops.aten.floor_divide.default(add_7, 4)\n"
                         "mul = torch.ops.aten.mul.Tensor(floor_divide, 4)\n"
                         "return (getitem, getitem_2, _to_copy, bernoulli, mul)\n"));
  }

  /// Whole channels are dropped, also without a batch; nothing is left of the tensor that bernoulli_ was to fill.
  void dropped_channels() {
    for (const auto& [call, sizes] : {std::pair("dropout1d(x, 0.2)", "[1, 4, 1]"),
                                      {"dropout1d(x.unsqueeze(0), 0.2)", "[1, 4, 1]"},
                                      {"dropout2d(x.view(1, 4, 3, 1), 0.2)", "[1, 4, 1, 1]"},
                                      {"dropout3d(x.view(4, 3, 1, 1), 0.2)", "[1, 4, 1, 1, 1]"}}) {
      const auto graphs =
          made(fx("x: <f32[4, 3][3, 1]>", std::string("y = torch.nn.functional.") + call + "\nreturn (y,)"), false);
      VERIFY_DONE(graphs);
      const std::string text = body(*graphs->partition.forward);
      QVERIFY2(text.find(std::string("philox_rand.default(") + sizes) != std::string::npos, text.c_str());
      QVERIFY2(text.find("empty") == std::string::npos, text.c_str());
    }
    QVERIFY(!made(fx("x: <f32[4][1]>", "y = torch.nn.functional.dropout1d(x, 0.2)\nreturn (y,)"), false));
  }

  void a_graph_that_draws_nothing() {
    const auto graphs = made(fx("x: <f32[3][1]>", "s = $sin(x)\nreturn (s,)"), false);
    VERIFY_DONE(graphs);
    QVERIFY(body(*graphs->partition.forward).ends_with("return (sin, arg2_1)\n"));
  }

  /// The mask is CUDA's, forward and backward have the same one, and the next step draws from the moved offset.
  void steps() {
    const auto graph = fx("x: <f32[10][1]>", "d = $dropout(x, 0.5, True)\nreturn (d,)");
    auto function = function_of(*graph, ones(), true);
    VERIFY_DONE(function);
    const Wrapper& inner = function->wrappers().back();
    QCOMPARE(name_of(inner), std::string_view("FunctionalizedRngRuntimeWrapper"));
    const auto read = read_wrappers(to_json(function->wrappers()).dump());
    VERIFY_DONE(read);
    QVERIFY(*read == function->wrappers());
    std::vector<std::vector<double>> drawn;
    for (int step = 0; step < 2; ++step) {
      const auto out = function->step();
      VERIFY_DONE(out);
      drawn.push_back(elements(*out->find("output.0")));
      QCOMPARE(elements(*out->find("grad.input.0")), drawn.back());
    }
    for (std::size_t i = 0; i < first_mask.size(); ++i) QCOMPARE(drawn[0][i], 2 * first_mask[i]);
    QVERIFY(drawn[0] != drawn[1]);
    auto inference = function_of(*graph, ones(), false);
    VERIFY_DONE(inference);
    for (int step = 0; step < 2; ++step) {
      const auto out = inference->step();
      VERIFY_DONE(out);
      QCOMPARE(elements(*out->find("output.0")), drawn[static_cast<std::size_t>(step)]);
    }
  }

  /// What a checkpoint draws is drawn again in the backward, from the same offset.
  void recomputed_numbers_are_the_same() {
    const auto graph = fx("x: <f32[10][1]>", "d = $dropout(x, 0.5, True)\ns = $sin(d)\nreturn (s,)");
    auto graphs = made(graph, true);
    VERIFY_DONE(graphs);
    QVERIFY(!draws_random(*graphs->joint->find("philox_rand")));
    for (Node* n : *graphs->joint) {
      if (n->op()->name == "aten.sin.default") break;
      if (n->op()->is_call()) n->recompute = Recompute::MustRecompute;
    }
    const auto parts = partition(*graphs->joint, {.forward_outputs = 2});
    VERIFY_DONE(parts);
    QVERIFY2(std::ranges::find(parts->recomputed, "philox_rand") != parts->recomputed.end(),
             body(*parts->backward).c_str());
  }

  /// With the option in the configuration, all who make graphs make these.
  void by_configuration() {
    const Config before = config();
    set_config(*patched_config({{"functionalize_rng", "true"}}));
    const auto graph = fx("x: <f32[10][1]>", "d = $dropout(x, 0.5, True)\nreturn (d,)");
    const auto outputs = run_compiled(*graph, {f32({10}, std::vector<double>(10, 1))}, compile_to_interpreter);
    const auto graphs = aot(*graph, nullptr, {});
    set_config(before);
    VERIFY_DONE(outputs);
    QCOMPARE(elements((*outputs)[0]).size(), std::size_t{10});
    VERIFY_DONE(graphs);
    QVERIFY(graphs->functional_rng);
    ExportedProgram program;
    program.inputs.push_back({ProgramInputKind::UserInput, "x"});
    const ExportedProgram of_joint = program_of_joint(*graph, program, *graphs);
    QCOMPARE(of_joint.inputs.size(), std::size_t{6});
    TensorFile io = ones();
    const auto inputs = gather_inputs(*graphs->joint, &of_joint, io, {});
    VERIFY_DONE(inputs);
    QCOMPARE(elements(inputs->values[2]), std::vector<double>{0});
  }

  void random_numbers_of_sub_graphs_are_refused() {
    const auto graph = fx("p: <b8[][]>, x: <f32[3][1]>",
                          "t = self.t\nf = self.f\nc = torch.ops.higher_order.cond(p, t, f, (x,))\nr = c[0]\n"
                          "return (r,)",
                          "    class t(torch.nn.Module):\n        def forward(self, x: <f32[3][1]>):\n"
                          "            r: <f32[3][1]> = $rand_like(x)\n            return (r,)\n"
                          "    class f(torch.nn.Module):\n        def forward(self, x: <f32[3][1]>):\n"
                          "            r: <f32[3][1]> = $sin(x)\n            return (r,)\n");
    const auto graphs = made(graph, false);
    QVERIFY(!graphs);
    QCOMPARE(graphs.error().code, std::string("functional_rng.region"));
  }
};

QTEST_GUILESS_MAIN(TestFunctionalRng)
#include "test_functional_rng.moc"
