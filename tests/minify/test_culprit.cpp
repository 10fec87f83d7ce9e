// The test makes one pass or kernel of the compiler wrong, for a correct graph; the minifier must name it.
#include <QtTest>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/program/executable.h"
#include "core/fake/propagate.h"
#include "core/interp/random_values.h"
#include "core/minify/culprit.h"
#include "core/minify/reduce_graph.h"
#include "core/passes/run_passes.h"
#include "core/schedule/make_plan.h"
#include "tests/support/fx.h"

namespace partita::minify {
namespace {

/// A wrong pass that replaces every tanh by sigmoid.
Result<bool> tanh_to_sigmoid(Graph& graph, PassContext&) {
  bool changed = false;
  for (Node* node : graph)
    if (node->is(Op::torch("aten.tanh.default"))) {
      node->set_op(Op::torch("aten.sigmoid.default"));
      changed = true;
    }
  return changed;
}

std::vector<Pass> passes_with_a_wrong_one() {
  std::vector<Pass> passes = passes_of(Stage::PostGradPasses);
  passes.insert(passes.begin() + 3,
                Pass{tanh_to_sigmoid, "wrong_pass", Stage::PostGradPasses, "takes tanh for sigmoid"});
  return passes;
}

/// Doubles what the kernels of `origin` store, as a wrong row of the emitter would.
void miscompile(schedule::Plan& plan, const std::string& origin) {
  for (loops::Kernel& kernel : plan.kernels) {
    if (std::ranges::find(kernel.origins, origin) == kernel.origins.end()) continue;
    const auto doubled = [&](auto& self, std::vector<loops::Stmt>& body) -> void {
      for (loops::Stmt& stmt : body) {
        if (auto* loop = std::get_if<loops::Loop>(&stmt)) self(self, loop->body);
        auto* store = std::get_if<loops::Store>(&stmt);
        if (store) store->value = kernel.scalars.make(loops::ScalarOp::Add, store->value, store->value);
      }
    };
    doubled(doubled, kernel.body);
  }
}

StagedCompiler compiler(std::vector<Pass> passes, const std::string& wrong_kernel) {
  const auto passed = [passes](const Graph& graph, int stop_after) -> Result<std::shared_ptr<const Graph>> {
    std::unique_ptr<Graph> copy = graph.clone();
    PassContext context;
    PipelineOptions options;
    options.stop_after = stop_after;
    TRY(const PipelineRun done, run_passes(*copy, passes, context, options));
    return std::shared_ptr<const Graph>(std::move(copy));
  };
  StagedCompiler c;
  for (const Pass& p : passes) c.passes.emplace_back(p.name);
  c.plan = [passed](const Graph& graph) -> Result<StagedCompiler::Planned> {
    TRY(auto after, passed(graph, -1));
    TRY(schedule::Plan plan, schedule::make_plan(*after));
    return StagedCompiler::Planned(std::move(after), std::move(plan));
  };
  c.run_plan = [wrong_kernel](schedule::Plan plan, const std::map<std::string, Tensor>& constants,
                              const std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    miscompile(plan, wrong_kernel);
    TRY(const auto compiled, codegen::compile_plan(*codegen::cpu_machine(), plan, constants));
    return compiled->run(inputs);
  };
  c.with_passes = [passed, run = c.run_plan](int stop_after) -> CompileFn {
    return [=](const Graph& graph) -> Result<CompiledFn> {
      TRY(const auto after, passed(graph, stop_after));
      TRY(const schedule::Plan plan, schedule::make_plan(*after));
      return CompiledFn([=](std::vector<Value> inputs) { return run(plan, after->attributes, inputs); });
    };
  };
  return c;
}

std::shared_ptr<const Graph> graph() {
  auto g = testing::fx("x: <f32[8, 6][6, 1]>, w: <f32[6, 6][6, 1]>",
                       "a: <f32[8, 6][6, 1]> = $exp(x)\nb: <f32[8, 6][6, 1]> = $tanh(a)\n"
                       "c: <f32[8, 6][6, 1]> = $mm(b, w)\nd: <f32[8, 6][6, 1]> = $sigmoid(c)\nreturn (d,)");
  return std::shared_ptr<const Graph>(std::move(g));
}

/// Minifies, and returns the culprit that is found.
Culprit culprit_of(const StagedCompiler& c, MinifyResult& reduced) {
  const auto oracle = [](const CompileFn& compile) { return accuracy_oracle("staged", compile, {}, 1); };
  auto done = reduce(graph(), *random_inputs(*graph(), 5), oracle(c.with_passes(-1)));
  if (!done) throw std::runtime_error(done.error().line());
  reduced = *std::move(done);
  auto culprit = find_culprit(c, oracle, with_inputs(reduced.graph, reduced.inputs, 0), reduced.failure, SameOptions());
  if (!culprit) throw std::runtime_error(culprit.error().line());
  return *std::move(culprit);
}

}  // namespace

class TestCulprit : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void wrong_pass_is_named() {
    MinifyResult reduced;
    const Culprit culprit = culprit_of(compiler(passes_with_a_wrong_one(), ""), reduced);
    QCOMPARE(reduced.calls, std::size_t{1});
    QCOMPARE(culprit.pass, std::string("wrong_pass"));
    QCOMPARE(culprit.kernel, std::string());
  }

  void wrong_kernel_is_named() {
    MinifyResult reduced;
    const Culprit culprit = culprit_of(compiler(passes_of(Stage::PostGradPasses), "b"), reduced);
    QVERIFY(reduced.calls <= 2);
    QVERIFY(reduced.graph->find("b"));
    QVERIFY2(culprit.pass.starts_with("none"), culprit.pass.c_str());
    QVERIFY2(culprit.kernel.starts_with("kernel 0") && culprit.kernel.find('b') != std::string::npos,
             culprit.kernel.c_str());
    QVERIFY(!culprit.detail.empty());
  }
};

}  // namespace partita::minify

QTEST_GUILESS_MAIN(partita::minify::TestCulprit)
#include "test_culprit.moc"
