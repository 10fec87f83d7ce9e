#include "core/minify/culprit.h"

#include "core/compare/per_node.h"
#include "core/loops/loop.h"
#include "core/schedule/execute_plan.h"

namespace partita::minify {
namespace {

using schedule::Plan;

/// The number of passes after which the failure is first seen and then stays; 0: it needs none. Nothing: not even with
/// all of them, so that the failure is somewhere else.
Result<std::optional<std::size_t>> guilty_pass(const StagedCompiler& compiler,
                                               const std::function<Oracle(const CompileFn&)>& oracle,
                                               const Candidate& candidate, const Failure& failure,
                                               const Progress* progress) {
  std::optional<std::size_t> first;
  for (std::size_t n = compiler.passes.size() + 1; n-- > 0;) {
    if (progress && progress->cancelled()) return input_error("minify.cancelled", "stopped on request");
    const Result<Verdict> verdict = judge(oracle(compiler.with_passes(static_cast<int>(n))), candidate, progress);
    // A graph that is not ready for the compiler fails in another way.
    if (!verdict || !*verdict || !(*verdict)->same(failure)) return first;
    first = n;
  }
  return first;
}

/// Compiled against executed by reference, buffer for buffer of the last step.
Result<Verdict> judge_plan(const StagedCompiler& compiler, const Plan& plan, const Graph& graph,
                           const std::vector<Value>& inputs, const SameOptions& same) {
  TRY(std::vector<Value> own, copy_values(inputs));
  const auto found = compiler.run_plan(plan, graph.attributes, own);
  if (!found) return Verdict(Failure{"error " + found.error().code, {}, {}, found.error().line()});
  TRY(own, copy_values(inputs));
  TRY(const std::vector<Value> expected, schedule::execute(plan, graph.attributes, own));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (const auto what = torch_difference(expected[i], (*found)[i], Value(), same))
      return Verdict(Failure{*what, {}, {}, {}});
  return Verdict();
}

}  // namespace

Result<Culprit> find_culprit(const StagedCompiler& compiler, const std::function<Oracle(const CompileFn&)>& oracle,
                             const Candidate& candidate, const Failure& failure, const SameOptions& same,
                             const Progress* progress) {
  Culprit out;
  TRY(const auto pass, guilty_pass(compiler, oracle, candidate, failure, progress));
  if (pass) out.pass = *pass == 0 ? "none: it fails before any" : compiler.passes[*pass - 1];
  if (pass && *pass > 0) return out;  // what the pass made is compiled as it stands

  const Oracle asked = oracle(CompileFn());
  Oracle whether;
  whether.in_child = asked.in_child;
  whether.limits = asked.limits;
  whether.judge = [&](const Candidate& c, const Progress*) -> Result<Verdict> {
    const auto made = compiler.plan(*c.graph);
    return made ? Verdict() : Verdict(Failure{"error " + made.error().code, {}, {}, made.error().line()});
  };
  const Result<Verdict> plannable = judge(whether, candidate, progress);
  if (!plannable || *plannable) {
    out.kernel = "none: it fails before there are any";
    return out;
  }
  TRY(const auto planned, compiler.plan(*candidate.graph));
  const auto& [graph, plan] = planned;
  TRY(const std::vector<Value> inputs, candidate.inputs());
  for (std::size_t steps = 1; steps <= plan.steps.size(); ++steps) {
    if (progress && progress->cancelled()) return input_error("minify.cancelled", "stopped on request");
    const Plan part = schedule::first_steps(plan, steps);
    whether.judge = [&, graph = graph.get()](const Candidate&, const Progress*) {
      return judge_plan(compiler, part, *graph, inputs, same);
    };
    const Result<Verdict> verdict = judge(whether, candidate, progress);
    if (!verdict || !*verdict) continue;
    out.kernel = schedule::step_name(plan, steps - 1);
    if (const auto* call = std::get_if<schedule::KernelCall>(&plan.steps[steps - 1]))
      out.detail = loops::print(plan.kernels[static_cast<std::size_t>(call->kernel)]);
    return out;
  }
  out.kernel = "none: each step does what is planned, so the lowering to loops or the plan is to blame";
  return out;
}

}  // namespace partita::minify
