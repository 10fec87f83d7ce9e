// Calls with effects: AOTAutograd's graphs chain them by a token, graphs that run keep their order. The joint graph is
// that of PyTorch 2.13.
#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/aot/run_program.h"
#include "core/base/config.h"
#include "core/interp/interpreter.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

const char* const lines =
    "y = $sin(x)\nd = $detach(y)\ne = torch.ops.corpus.emit(d, 'mid')\nm = $mul.Tensor(y, 2)\n"
    "f = torch.ops.corpus.emit(m, 'end')\nreturn (m,)";

/// Takes a token, checks two infos, returns the token and a product.
const char* const checked =
    "w = torch.ops.higher_order.with_effects(t, torch.ops.aten._linalg_check_errors.default, info, 'inv', "
    "is_matrix = True)\n"
    "g: <f32[0][1]> = w[0]\n"
    "v = torch.ops.higher_order.with_effects(g, torch.ops.aten.var_mean.correction, x, [0], correction = 0)\n"
    "g1: <f32[0][1]> = v[0]\n"
    "var: <f32[][]> = v[1]\n"
    "mean: <f32[][]> = v[2]\n"
    "return (g1, mean, var)";
const char* const checked_inputs = "t: <f32[0][1]>, info: <i32[][]>, x: <f32[3][1]>";

std::vector<Value> inputs_of(int info) {
  return {f32({0}, {}), tensor(DType::Int32, {}, {double(info)}), f32({3}, {1, 2, 3})};
}

}  // namespace

class TestEffectTokens : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { set_config(*patched_config({{"verify", "true"}})); }

  void joint_and_forward() {
    const auto graph = fx("x: <f32[3][1]>", lines);
    const auto graphs = aot(*graph, nullptr, {.passes = false, .effect_tokens = true});
    VERIFY_DONE(graphs);
    const std::string forward =
        "sin = torch.ops.aten.sin.default(primals_2)\n"
        "detach = torch.ops.aten.detach.default(sin)\n"
        "with_effects = torch.ops.higher_order.with_effects(primals_1, torch.ops.corpus.emit.default, detach, 'mid')\n"
        "getitem = with_effects[0]\n"
        "mul = torch.ops.aten.mul.Tensor(sin, 2)\n"
        "with_effects_1 = torch.ops.higher_order.with_effects(getitem, torch.ops.corpus.emit.default, mul, 'end')\n"
        "getitem_1 = with_effects_1[0]\n";
    QCOMPARE(body(*graphs->joint), forward +
                                       "mul_1 = torch.ops.aten.mul.Tensor(tangents_1, 2)\n"
                                       "cos = torch.ops.aten.cos.default(primals_2)\n"
                                       "mul_2 = torch.ops.aten.mul.Tensor(mul_1, cos)\n"
                                       "return [getitem_1, mul, mul_2]\n");
    QCOMPARE(body(*graphs->partition.forward), forward + "return (getitem_1, mul, primals_2)\n");
    const auto again = parse_fx_text(print(*graphs->joint));
    VERIFY_DONE(again);
    const auto parts = partition(**again);
    VERIFY_DONE(parts);
    QCOMPARE(body(*parts->forward), body(*graphs->partition.forward));
    QCOMPARE(body(*parts->backward), body(*graphs->partition.backward));
  }

  void wrapper_passes_the_token() {
    const auto graph = fx("x: <f32[3][1]>", "a = $mul_.Tensor(x, 2)\ne = torch.ops.corpus.emit(a)\nreturn (a,)");
    const auto graphs =
        aot(*graph, nullptr, {.train = false, .keep_input_mutations = false, .passes = false, .effect_tokens = true});
    VERIFY_DONE(graphs);
    const Wrappers made = wrap_graphs(*graphs);
    const auto found =
        std::ranges::find_if(made, [](const Wrapper& w) { return name_of(w) == EffectTokensWrapper::name; });
    QVERIFY(found != made.end());
    const auto wrappers = read_wrappers(to_json(made).dump());
    VERIFY_DONE(wrappers);
    QVERIFY(*wrappers == made);
    const CompiledFn doubles = [](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      if (inputs.size() != 2 || inputs[0].get<Tensor>()->numel() != 0) return input_error("test", "no token");
      const Tensor twice = f32({3}, {2, 4, 6});
      return std::vector<Value>{inputs[0], twice, twice};
    };
    const Tensor x = f32({3}, {1, 2, 3});
    std::vector<Value> inputs = {x};
    const auto outputs = post_compile(*wrappers, boxed(doubles))(inputs);
    VERIFY_DONE(outputs);
    QCOMPARE(outputs->size(), std::size_t{1});
    QCOMPARE(elements(x), (std::vector<double>{2, 4, 6}));
    const Tensor* shown = (*outputs)[0].get<Tensor>();
    QVERIFY(shown && shown->storage == x.storage);
  }

  /// Viewing needs no implementation of an operator; running names it.
  void unknown_operators_are_refused_at_run_time() {
    const auto graph = fx("x: <f32[3][1]>", lines);
    AotOptions options = as_run(*graph, {.train = false});
    const auto graphs = aot(*graph, nullptr, options);
    VERIFY_DONE(graphs);
    QCOMPARE(graphs->tokens, std::size_t{0});
    const auto run = interpret(*graphs->partition.forward, {f32({3}, {1, 2, 3})});
    QVERIFY(!run);
    QVERIFY2(run.error().message.find("corpus.emit") != std::string::npos, run.error().line().c_str());
    const Status prepared = prepare_post_grad(*graphs->partition.forward);
    QVERIFY(!prepared);
    QVERIFY2(prepared.error().message.find("corpus.emit") != std::string::npos, prepared.error().line().c_str());
  }

  void compilers_get_the_calls_themselves() {
    const auto graph = fx(checked_inputs, checked);
    const auto before = interpret(*graph, inputs_of(0));
    VERIFY_DONE(before);
    VERIFY_DONE(prepare_post_grad(*graph));
    QCOMPARE(body(*graph),
             std::string("_linalg_check_errors = torch.ops.aten._linalg_check_errors.default(info, 'inv', "
                         "is_matrix = True)\n"
                         "var_mean = torch.ops.aten.var_mean.correction(x, [0], correction = 0)\n"
                         "var_1 = var_mean[0]\n"
                         "mean_1 = var_mean[1]\n"
                         "return (t, mean_1, var_1)\n"));
    const auto after = interpret(*graph, inputs_of(0));
    VERIFY_DONE(after);
    for (std::size_t i = 0; i < 3; ++i) QCOMPARE(elements((*after)[i]), elements((*before)[i]));
    QVERIFY(!interpret(*graph, inputs_of(2)));
  }

  /// What inductor gets: tokens are made and taken in the graph.
  void unlifted_tokens() {
    const auto graph =
        fx("info: <i32[][]>, x: <f32[3][1]>",
           "t = torch.ops.prims._make_token.default()\n"
           "w = torch.ops.higher_order.with_effects(t, torch.ops.aten._linalg_check_errors.default, info, 'inv', "
           "is_matrix = True)\n"
           "g = w[0]\n"
           "s = torch.ops.prims._sink_tokens.default([g])\n"
           "y: <f32[3][1]> = $sin(x)\n"
           "return (y,)");
    QVERIFY(interpret(*graph, {tensor(DType::Int32, {}, {0}), f32({3}, {1, 2, 3})}));
    QVERIFY(!interpret(*graph, {tensor(DType::Int32, {}, {1}), f32({3}, {1, 2, 3})}));
    VERIFY_DONE(prepare_post_grad(*graph));
    QVERIFY(!interpret(*graph, {tensor(DType::Int32, {}, {1}), f32({3}, {1, 2, 3})}));
  }
};

QTEST_GUILESS_MAIN(TestEffectTokens)
#include "test_effect_tokens.moc"
