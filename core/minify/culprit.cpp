#include "core/minify/culprit.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/compare/per_node.h"
#include "core/schedule/execute_plan.h"

namespace partita::minify {
namespace {

using schedule::Plan;

/// Finds by bisection, since a try may hang, how many passes are needed for the failure to appear; 0: it appears
/// without any. nullopt: it does not appear even after all passes, so the cause is elsewhere.
Result<std::optional<std::size_t>> guilty_pass(const StagedCompiler& compiler,
                                               const std::function<Oracle(const CompileFn&)>& oracle,
                                               const Candidate& candidate, const Failure& failure,
                                               const Progress* progress) {
  const auto fails_after = [&](std::size_t n) -> Result<bool> {
    const Result<Verdict> verdict = judge(oracle(compiler.with_passes(static_cast<int>(n))), candidate, progress);
    TRY_DO(check_cancelled(progress));
    // A graph that lacks a needed pass fails in another way.
    return verdict && *verdict && (*verdict)->same(failure);
  };
  TRY(const bool without, fails_after(0));
  if (without) return std::optional<std::size_t>(0);
  std::size_t passes = 0, fails = compiler.passes.size();
  TRY(const bool with_all, fails_after(fails));
  if (!with_all) return std::optional<std::size_t>();
  while (fails - passes > 1) {
    const std::size_t middle = passes + (fails - passes) / 2;
    TRY(const bool seen, fails_after(middle));
    (seen ? fails : passes) = middle;
  }
  return std::optional(fails);
}

/// Compares compiled code with the reference executor, over the buffers that the last step writes.
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

/// Is the failure a way in which a child ended, rather than a wrong value? If it is another one than the graph's own (a
/// timeout on a busy machine), no step is blamed for it.
bool is_end(const Failure& failure) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"signal", "exit", "timeout", "out of memory", "error"},
      [&](std::string_view end) { return failure.what.starts_with(end); });
}

/// The call that alone fails as the whole graph does; null when none does.
Result<const Node*> guilty_call(const Oracle& oracle, const Candidate& candidate, const Failure& failure,
                                const Progress* progress) {
  TRY(std::vector<Value> inputs, candidate.inputs());
  const auto base = std::make_shared<Base>(candidate.graph, std::move(inputs), candidate.salt, 1);
  for (std::size_t item = 0; item < base->removables().size(); ++item) {
    const std::optional<Candidate> alone = keep(base, {item}, false);
    if (!alone) continue;
    const Result<Verdict> verdict = judge(oracle, *alone, progress);
    TRY_DO(check_cancelled(progress));
    if (verdict && *verdict && (*verdict)->same(failure)) return base->removables()[item].node;
  }
  return nullptr;
}

}  // namespace

Result<Culprit> find_culprit(const StagedCompiler& compiler, const std::function<Oracle(const CompileFn&)>& oracle,
                             const Candidate& candidate, const Failure& failure, const SameOptions& same,
                             const Progress* progress) {
  Culprit out;
  TRY(const auto pass, guilty_pass(compiler, oracle, candidate, failure, progress));
  if (pass) out.pass = *pass == 0 ? "none: it fails before any" : compiler.passes[*pass - 1];
  if (pass && *pass > 0) return out;  // the pass is to blame, so no kernel is

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
    const Plan part = schedule::first_steps(plan, steps);
    whether.judge = [&, graph = graph.get()](const Candidate&, const Progress*) {
      return judge_plan(compiler, part, *graph, inputs, same);
    };
    const Result<Verdict> verdict = judge(whether, candidate, progress);
    TRY_DO(check_cancelled(progress));
    if (!verdict || !*verdict || (is_end(**verdict) && !(*verdict)->same(failure))) continue;
    out.kernel = schedule::step_name(plan, steps - 1);
    if (const auto* call = std::get_if<schedule::KernelCall>(&plan.steps[steps - 1]))
      out.detail = loops::print(plan.kernels[static_cast<std::size_t>(call->kernel)]);
    return out;
  }
  const CompileFn compile = compiler.with_passes(pass ? 0 : static_cast<int>(compiler.passes.size()));
  TRY(const Node* call, guilty_call(oracle(compile), candidate, failure, progress));
  out.kernel =
      call ? fmt::format("the lowering of {} ({}): each kernel does what is planned, and the call fails alone",
                         call->op()->name, call->name())
           : "none: each kernel does what is planned and no call fails alone, so fusion or the plan is to blame";
  return out;
}

}  // namespace partita::minify
