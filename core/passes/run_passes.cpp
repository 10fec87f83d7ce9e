// Runs passes and checks each one: its claim against the graph's hash, then the verifier, then the metas of the
// outputs, up to guards and new names of unbacked sizes. passes_of() applies the configured order.
#include "core/passes/run_passes.h"

#include <chrono>
#include <map>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/fake/renaming.h"
#include "core/ir/structural_hash.h"
#include "core/ir/verify.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

std::size_t count_nodes(const Graph& graph) {
  std::size_t n = graph.size();
  for (const auto& [name, child] : graph.children) n += count_nodes(*child);
  return n;
}

/// Sets every insignificant stride to 1, so that metas can be compared.
Meta significant(Meta meta) {
  TensorMeta* t = meta.tensor();
  if (!t || !t->strides_known) return meta;
  for (std::size_t d = 0; d < t->dim(); ++d)
    if (!is_significant_stride(t->sizes, d)) t->strides[d] = 1;
  return meta;
}

/// The metas of the outputs, by the path of the sub graph ("" for the graph itself): passes may not change them.
using Promises = std::map<std::string, std::vector<Meta>>;

void output_promises(const Graph& graph, const std::string& path, Promises& out) {
  std::vector<Meta>& metas = out[path];
  for (const Arg& a : graph.outputs()) metas.push_back(a.node() ? significant(a.node()->meta) : Meta());
  for (const auto& [name, child] : graph.children) output_promises(*child, path + "/" + name, out);
}

Diagnostic broken(std::string code, const Pass& pass, const Graph& graph, std::string_view what, Where where = {}) {
  where.graph = graph.name;
  return {Fault::Internal, std::move(code),
          fmt::format("pass {} {}; --disable {} goes on without it", pass.name, what, pass.name), std::move(where)};
}

Result<bool> run_on_all(const Pass& pass, Graph& graph, PassContext& context) {
  bool changed = false;
  for (auto& [name, child] : graph.children) {
    TRY(const bool child_changed, run_on_all(pass, *child, context));
    changed |= child_changed;
  }
  TRY(const bool here, pass.run(graph, context));
  return changed || here;
}

Status verify_all(const Pass& pass, const Graph& graph) {
  if (auto broken_rules = verify(graph); !broken_rules.empty()) {
    Diagnostic error =
        broken("pipeline.verify", pass, graph, "broke the graph: " + broken_rules[0].message, broken_rules[0].where);
    for (std::size_t i = 1; i < broken_rules.size(); ++i) error.notes.push_back(broken_rules[i].line());
    return error;
  }
  for (const auto& [name, child] : graph.children) TRY_DO(verify_all(pass, *child));
  return {};
}

/// The promised meta in the sizes and strides that were found, where the graph's guards make both equal: a broadcast
/// of s2 with 5 has either size. The guard is one of the graph from now on.
Meta under_guards(const Graph& graph, const Pass& pass, Meta promised, const Meta& found) {
  TensorMeta* t = promised.tensor();
  const TensorMeta* now = found.tensor();
  if (!t || !now || t->dim() != now->dim() || !graph.shapes) return promised;
  const auto meet = [&](SymExpr& promised_size, SymExpr found_size) {
    if (promised_size == found_size) return;
    const auto equal =
        graph.shapes->evaluate(sym_eq(promised_size, found_size), fmt::format("an output after {}", pass.name));
    if (equal && *equal) promised_size = found_size;
  };
  for (std::size_t d = 0; d < t->dim(); ++d) meet(t->sizes[d], now->sizes[d]);
  for (std::size_t d = 0; d < t->strides.size() && d < now->strides.size(); ++d) meet(t->strides[d], now->strides[d]);
  return promised;
}

Status check_promises(const Pass& pass, const Graph& graph, const Promises& promised_outputs) {
  Promises found;
  output_promises(graph, {}, found);
  std::vector<Meta> before, after;
  for (const auto& [path, metas] : promised_outputs) {  // a sub graph that the pass made has promised nothing
    const std::vector<Meta>& now = found[path];
    if (metas.size() != now.size()) return broken("pipeline.outputs", pass, graph, "changed the number of outputs");
    before.insert(before.end(), metas.begin(), metas.end());
    after.insert(after.end(), now.begin(), now.end());
  }
  // A pass may replace a call whose size depends on data. The size then has a new name, which may be that of another
  // size when it finds both equal (nonzero of the same tensor).
  UnbackedRenaming renaming(*graph.shapes);
  for (std::size_t i = 0; i < before.size(); ++i) {
    // PyTorch has one name for the sizes of unique(x) and unique(x, return_counts=True), our inference two.
    UnbackedRenaming of_output(*graph.shapes);
    UnbackedRenaming& names = pass.stage == Stage::PreGradPasses ? of_output : renaming;
    // A text without strides promised none.
    const TensorMeta* promised = before[i].tensor();
    if (TensorMeta* t = after[i].tensor(); t && promised && !promised->strides_known) {
      t->strides = promised->strides;
      t->strides_known = false;
    }
    if (before[i].known() && after[i].known() && !names.same(before[i], after[i]) &&
        !names.same(under_guards(graph, pass, before[i], after[i]), after[i])) {
      // Before functionalisation annotations are what the file says.
      if (pass.stage == Stage::PreGradPasses)
        return input_error("pipeline.annotation",
                           fmt::format("output {} is annotated {}, but its calls give {}; mend one of them", i,
                                       annotation(before[i]), annotation(after[i])));
      return broken("pipeline.outputs", pass, graph,
                    fmt::format("changed output {} from {} to {}", i, annotation(before[i]), annotation(after[i])));
    }
  }
  return {};
}

}  // namespace

Result<PipelineRun> run_passes(Graph& graph, std::span<const Pass> passes, PassContext& context,
                               const PipelineOptions& options) {
  PipelineRun run;
  run.fixed = context.fixed;
  const bool keep = options.snapshots || options.changed;
  std::shared_ptr<const Graph> last = keep ? std::shared_ptr<const Graph>(graph.clone()) : nullptr;
  if (options.snapshots) run.before = last;
  std::uint64_t hash = structural_hash(graph);
  Promises promises;
  output_promises(graph, {}, promises);
  for (const Pass& pass : passes) {
    if (options.stop_after >= 0 && run.passes.size() >= static_cast<std::size_t>(options.stop_after)) break;
    TRY_DO(
        step(options.progress, static_cast<double>(run.passes.size()) / static_cast<double>(passes.size()), pass.name));
    PassRun& record = run.passes.emplace_back();
    record.name = pass.name;
    record.stage = pass.stage;
    record.nodes_before = record.nodes_after = count_nodes(graph);
    record.after = options.snapshots ? last : nullptr;
    if (options.disabled.contains(pass.name)) {
      record.disabled = true;
      continue;
    }
    WorkingOn place(fmt::format("graph {}, pass {}", graph.name, pass.name));
    const auto start = std::chrono::steady_clock::now();
    context.rewrites.clear();
    Result<bool> claim = catch_raised<bool>([&] { return run_on_all(pass, graph, context); });
    record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!claim) {
      claim.error().notes.push_back(fmt::format("in pass {}", pass.name));
      return std::move(claim).error();
    }
    const std::uint64_t new_hash = structural_hash(graph);
    record.changed = new_hash != hash;
    if (record.changed && !*claim)
      return broken("pipeline.claim", pass, graph, "changed the graph but reported no change");
    if (!record.changed) continue;
    record.rewrites = context.rewrites;
    hash = new_hash;
    record.nodes_after = count_nodes(graph);
    TRY_DO(verify_all(pass, graph));
    TRY_DO(check_promises(pass, graph, promises));
    if (!keep) continue;
    const std::shared_ptr<const Graph> before = std::exchange(last, std::shared_ptr<const Graph>(graph.clone()));
    if (options.snapshots) record.after = last;
    if (!options.changed) continue;
    TRY(const bool go_on, options.changed(*before, *last, record));
    if (!go_on) break;
  }
  return run;
}

Result<std::unique_ptr<Graph>> after_rewrites(const Graph& before, const Pass& pass, const PassContext& context,
                                              std::size_t count) {
  std::unique_ptr<Graph> graph = before.clone();
  PassContext limited = context;
  limited.rewrites.clear();
  limited.rewrite_limit = count;
  TRY_DO(catch_raised<bool>([&] { return run_on_all(pass, *graph, limited); }));
  TRY_DO(verify_all(pass, *graph));
  return graph;
}

PassNames configured_disabled() {
  PassNames names(config().disable_passes.begin(), config().disable_passes.end());
  if (names.erase("all") > 0)
    for (const Pass& pass : all_passes())
      if (!pass.needed) names.emplace(pass.name);
  return names;
}

Status check_pass_names(const PassNames& disabled) {
  PassNames names = disabled;
  names.insert(config().pass_order.begin(), config().pass_order.end());
  for (const std::string& name : names)
    if (std::ranges::none_of(all_passes(), [&](const Pass& p) { return p.name == name; }))
      return input_error("passes.name", fmt::format("no pass {}; partita passes --list shows them", name));
  return {};
}

std::vector<Pass> passes_of(Stage stage) {
  std::vector<Pass> out;
  for (const Pass& pass : all_passes())
    if (pass.stage == stage) out.push_back(pass);
  std::vector<Pass> ordered;
  for (const std::string& name : config().pass_order)
    if (std::ranges::find(ordered, name, &Pass::name) == ordered.end())
      std::ranges::copy_if(out, std::back_inserter(ordered), [&](const Pass& p) { return p.name == name; });
  auto next = ordered.begin();
  for (Pass& pass : out)
    if (std::ranges::find(config().pass_order, pass.name) != config().pass_order.end()) pass = *next++;
  return out;
}

}  // namespace partita
