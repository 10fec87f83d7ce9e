#include "core/compare/check_passes.h"

#include <map>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/compare/per_node.h"
#include "core/interp/interpreter.h"
#include "core/ir/place.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"

namespace partita {

bool draws_random(const Node& node) {
  const Schema* schema = node.op()->is_call() ? find_schema(node.op()) : nullptr;
  if (!schema || !draws(node.op())) return false;
  const Result<Args> args = bind_arguments(*schema, node.args(), node.kwargs());
  const auto is = [&](const char* name, const Arg& value) {
    const int at = args ? schema->index_of(name) : -1;
    return at >= 0 && (*args)[static_cast<std::size_t>(at)] == value;
  };
  for (const char* probability : {"p", "dropout_p"})
    if (is(probability, 0.0) || is(probability, 0)) return false;
  return !is("train", false) && !is("training", false);
}

namespace {

const Node* find_random(const Graph& graph) {
  for (const Node* node : graph)
    if (draws_random(*node)) return node;
  for (const auto& [name, child] : graph.children)
    if (const Node* node = find_random(*child)) return node;
  return nullptr;
}

Result<std::vector<Value>> run(const Graph& graph, const std::vector<Value>& inputs, const PassContext& context,
                               std::function<Status(const Node&, const Value&)> observer = {}) {
  TRY(std::vector<Value> own, copy_values(inputs));
  InterpOptions options;
  options.threads = context.threads;
  options.observer = std::move(observer);
  return interpret(graph, std::move(own), options);
}

Tolerance tolerance_of(const Value& v) {
  const auto* t = v.get<Tensor>();
  return t ? pass_tolerance(t->dtype) : Tolerance{0, 0};
}

struct OutputDifference {
  std::size_t output = 0;
  Difference difference;
};

/// Compares results; nullopt when they agree. `most` receives the one with the largest error, as far as they are
/// compared.
std::optional<OutputDifference> first_difference(const std::vector<Value>& reference, const std::vector<Value>& outputs,
                                                 std::optional<Difference>* most = nullptr) {
  for (std::size_t i = 0; i < outputs.size() && i < reference.size(); ++i) {
    Difference d = compare_values(fmt::format("output.{}", i), reference[i], outputs[i], tolerance_of(reference[i]));
    if (most && (!*most || d.max_abs > (*most)->max_abs || !d.ok())) *most = d;
    if (!d.ok()) return OutputDifference{i, std::move(d)};
  }
  return std::nullopt;
}

/// Runs both graphs and finds the first node of `after` whose value differs from that of the node with the same name in
/// `before`. If it reads a node made by the pass, that node is the likelier culprit.
Status locate(const Graph& before, const Graph& after, const std::vector<Value>& inputs, const PassContext& context,
              PassFailure& failure) {
  std::map<std::string, Value> known;
  const auto remember = [&](const Node& node, const Value& value) -> Status {
    if (&node.graph() != &before || !value.get<Tensor>() || !after.find(node.name())) return {};
    TRY(std::vector<Value> copy, copy_values({value}));  // later nodes may write to the value
    known.emplace(node.name(), std::move(copy[0]));
    return {};
  };
  if (auto done = run(before, inputs, context, remember); !done) return std::move(done).error();
  const Node* first = nullptr;
  const auto compare = [&](const Node& node, const Value& value) -> Status {
    const auto it = first || &node.graph() != &after ? known.end() : known.find(node.name());
    if (it != known.end() && !compare_values("", it->second, value, tolerance_of(it->second), false).ok())
      first = &node;
    return {};
  };
  if (auto done = run(after, inputs, context, compare); !done) return std::move(done).error();
  if (!first) first = after.output();
  const Node* culprit = first;
  for (const Node* in : first->inputs())
    if (!before.find(in->name())) culprit = in;
  if (first->is_output()) {  // the output is a new node, or reads another node than before
    const auto outputs = after.outputs();
    if (failure.output < outputs.size() && outputs[failure.output].node()) culprit = outputs[failure.output].node();
  }
  failure.node = culprit->name();
  failure.origin = origin_text(*culprit);
  failure.node_is_new = !before.find(culprit->name());
  failure.seen_at = first->name();
  return {};
}

/// Finds the first rewrite after which the graph gives other values, and the node that is wrong then.
Status blame(const Graph& before, const Graph& after, const Pass& pass, const PassRun& run_of_pass,
             const std::vector<Value>& reference, const std::vector<Value>& inputs, const PassContext& context,
             PassFailure& failure) {
  std::size_t right = 0, wrong = run_of_pass.rewrites.size();  // numbers of rewrites
  if (wrong == 0) return locate(before, after, inputs, context, failure);
  std::unique_ptr<Graph> good, bad;
  while (right + 1 < wrong) {
    const std::size_t middle = right + (wrong - right) / 2;
    TRY(std::unique_ptr<Graph> graph, after_rewrites(before, pass, context, middle));
    TRY(const std::vector<Value> outputs, run(*graph, inputs, context));
    if (auto d = first_difference(reference, outputs)) {
      failure.output = d->output;
      failure.difference = std::move(d->difference);
      bad = std::move(graph);
      wrong = middle;
    } else {
      good = std::move(graph);
      right = middle;
    }
  }
  failure.rewrite = right;
  failure.step = run_of_pass.rewrites[right];
  return locate(good ? *good : before, bad ? *bad : after, inputs, context, failure);
}

}  // namespace

Tolerance pass_tolerance(DType t) {
  switch (t) {
    case DType::Float32:
    case DType::Complex64:
      return {1e-4, 1e-5};
    case DType::Float16:
      return {2e-2, 1e-3};
    case DType::BFloat16:
      return {5e-2, 1e-2};
    default:
      return default_tolerance(t);
  }
}

Result<CheckedRun> run_passes_checked(Graph& graph, std::span<const Pass> passes, PassContext& context,
                                      const std::vector<Value>& inputs, const PipelineOptions& options) {
  if (const Node* random = find_random(graph))
    return unsupported("check.random",
                       "draws random numbers, so its results cannot be compared; give a graph without dropout",
                       place_of(*random));
  CheckedRun checked;
  TRY(std::vector<Value> reference, run(graph, inputs, context));
  PipelineOptions watched = options;
  watched.changed = [&](const Graph& before, const Graph& after, const PassRun& pass) -> Result<bool> {
    if (options.changed) {
      TRY(const bool go_on, options.changed(before, after, pass));
      if (!go_on) return false;
    }
    TRY(std::vector<Value> outputs, run(after, inputs, context));
    std::optional<Difference> most;
    const auto different = first_difference(reference, outputs, &most);
    if (most) checked.numbers.emplace(pass.name, *std::move(most));
    if (different) {
      checked.failure.emplace();
      checked.failure->pass = pass.name;
      checked.failure->output = different->output;
      checked.failure->difference = different->difference;
      const auto guilty = std::ranges::find(passes, pass.name, &Pass::name);
      CHECK(guilty != passes.end(), "a pass that did not run");
      TRY_DO(blame(before, after, *guilty, pass, reference, inputs, context, *checked.failure));
      return false;
    }
    reference = std::move(outputs);  // rounding adds up, so compare each pass only with the one before
    return true;
  };
  TRY(checked.run, run_passes(graph, passes, context, watched));
  return checked;
}

}  // namespace partita
