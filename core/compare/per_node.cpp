#include "core/compare/per_node.h"

#include <charconv>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/whereabouts.h"
#include "core/ir/place.h"
#include "core/ops/effects.h"

namespace partita {
namespace {

Result<Value> copy_value(const Value& value, std::map<const Storage*, std::shared_ptr<Storage>>& copies) {
  if (const auto* list = value.get<ValueList>()) {
    ValueList out;
    for (const Value& item : *list) {
      TRY(Value v, copy_value(item, copies));
      out.push_back(std::move(v));
    }
    return Value(std::move(out));
  }
  const auto* t = value.get<Tensor>();
  if (!t || !t->storage) return value;
  std::shared_ptr<Storage>& copy = copies[t->storage.get()];
  if (!copy) {
    TRY(copy, Storage::allocate(t->storage->bytes()));
    if (t->storage->bytes() > 0) std::memcpy(copy->data(), t->storage->data(), t->storage->bytes());
  }
  Tensor out = *t;
  out.storage = copy;
  return Value(std::move(out));
}

/// The nodes whose values can be compared: calls that give one tensor.
std::vector<const Node*> visible_nodes(const Graph& graph) {
  std::vector<const Node*> nodes;
  for (const Node* node : graph)
    if (node->op()->is_call() && node->meta.tensor()) nodes.push_back(node);
  return nodes;
}

std::size_t bytes_of(const Node& node, const Graph& graph) {
  const SymExpr e = byte_size(*node.meta.tensor());
  const auto n = e.is_int() ? std::optional(e.as_int()) : graph.shapes ? graph.shapes->hint(e) : std::nullopt;
  return static_cast<std::size_t>(n.value_or(1 << 20));
}

/// The graph with the nodes as results, without what they do not need.
std::unique_ptr<Graph> with_outputs(const Graph& graph, std::span<const Node* const> nodes) {
  std::unique_ptr<Graph> copy = graph.clone();
  std::vector<Arg> outputs;
  for (const Node* node : nodes) outputs.emplace_back(copy->find(node->name()));
  copy->form = GraphForm::Flat;
  Node* output = copy->output();
  output->set_args({Arg::tuple(std::move(outputs))}, {});
  copy->eliminate_dead(has_effect);
  return copy;
}

Result<std::vector<Value>> run_on_copy(const Runner& run, const Graph& graph, const std::vector<Value>& inputs) {
  TRY(std::vector<Value> own, copy_values(inputs));
  return run(graph, std::move(own));
}

/// Adds the rows of a batch of nodes.
Status compare_batch(const Graph& graph, const std::vector<Value>& inputs, std::span<const Node* const> batch,
                     const Runner& expected, const Runner& found, const PerNodeOptions& options, Report& report) {
  const std::unique_ptr<Graph> seen = with_outputs(graph, batch);
  TRY(const std::vector<Value> a, run_on_copy(expected, *seen, inputs));
  TRY(const std::vector<Value> b, run_on_copy(found, *seen, inputs));
  std::vector<Value> exact;
  if (options.baseline) {
    TRY(exact, run_on_copy(options.baseline, *seen, inputs));
  }
  CHECK(a.size() == batch.size() && b.size() == batch.size(), "a backend returned a wrong number of values");
  for (std::size_t i = 0; i < batch.size(); ++i) {
    TRY_DO(check_cancelled(options.progress));
    Difference d =
        compare_values(batch[i]->name(), a[i], b[i], options.tolerance, batch[i]->meta.tensor()->strides_known);
    d.origin = origin_text(*batch[i]);
    if (options.baseline) judge_by_baseline(d, exact[i], a[i], b[i], options.tolerance);
    report.rows.push_back(std::move(d));
  }
  return {};
}

/// Sets `inherited_from`. A node that is equal though an input differs hands nothing on; one that agrees within the
/// tolerance, or that has no row, such as a tuple, hands on what it reads.
void find_inherited(const Graph& graph, Report& report) {
  std::unordered_map<std::string_view, Difference*> rows;
  for (Difference& d : report.rows) rows.emplace(d.name, &d);
  std::unordered_map<const Node*, const Difference*> first;  // for each node whose value differs
  for (const Node* node : graph) {
    const Difference* from = nullptr;
    for (const Node* input : node->inputs())
      if (const auto found = first.find(input); found != first.end() && (!from || found->second < from))
        from = found->second;
    const auto own = rows.find(node->name());
    if (own != rows.end()) {
      Difference& row = *own->second;
      if (row.ok() && row.max_abs == 0) continue;
      if (from && row.died.empty()) row.inherited_from = from->name;
      if (!from && !row.ok()) from = &row;
    }
    if (from) first.emplace(node, from);
  }
  const std::vector<Arg> outputs = graph.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto row = rows.find(fmt::format("output.{}", i));
    const auto from = outputs[i].node() ? first.find(outputs[i].node()) : first.end();
    if (row != rows.end() && from != first.end()) row->second->inherited_from = from->second->name;
  }
}

}  // namespace

Result<std::vector<Value>> copy_values(const std::vector<Value>& values) {
  std::map<const Storage*, std::shared_ptr<Storage>> copies;
  std::vector<Value> out;
  for (const Value& v : values) {
    TRY(Value copy, copy_value(v, copies));
    out.push_back(std::move(copy));
  }
  return out;
}

Result<Value> value_of(const Graph& graph, const std::vector<Value>& inputs, const Runner& run,
                       const std::string& name) {
  if (const Node* node = graph.find(name); node && node->op()->is_call() && node->meta.tensor()) {
    TRY(std::vector<Value> values, run_on_copy(run, *with_outputs(graph, std::span(&node, 1)), inputs));
    CHECK(values.size() == 1, "a backend returned a wrong number of values");
    return std::move(values[0]);
  }
  constexpr std::string_view prefix = "output.";
  std::size_t index = 0;
  const bool is_result = name.starts_with(prefix);
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(is_result ? name.data() + prefix.size() : end, end, index);
  if (!is_result || parsed.ec != std::errc() || parsed.ptr != end)
    return input_error("compare.name",
                       fmt::format("{} is neither a node with a tensor nor an output.N; choose one of these", name));
  TRY(std::vector<Value> values, run_on_copy(run, graph, inputs));
  if (index >= values.size())
    return input_error("compare.name", fmt::format("{}: the graph has {} results", name, values.size()));
  return std::move(values[index]);
}

Difference row_of_death(const Diagnostic& death) {
  Difference row;
  row.name = death.where.node.empty() ? "the run" : death.where.node;
  row.origin = death.where.origin;
  row.died = death.message;
  return row;
}

Result<Report> compare_outputs(const Graph& graph, const std::vector<Value>& inputs, const Runner& expected,
                               const Runner& found, const Tolerance& tolerance) {
  Report report;
  const auto a = run_on_copy(expected, graph, inputs);
  const auto b = a ? run_on_copy(found, graph, inputs) : a;
  for (const auto* side : {&a, &b}) {
    if (*side) continue;
    if (!is_death(side->error())) return side->error();
    report.rows.push_back(row_of_death(side->error()));
    return report;
  }
  for (std::size_t i = 0; i < a->size() && i < b->size(); ++i)
    report.rows.push_back(compare_values(fmt::format("output.{}", i), (*a)[i], (*b)[i], tolerance));
  return report;
}

Result<Report> compare_nodes(const Graph& graph, const std::vector<Value>& inputs, const Runner& expected,
                             const Runner& found, const PerNodeOptions& options) {
  Report report;
  std::vector<const Node*> nodes = visible_nodes(graph);
  std::optional<Diagnostic> died;
  for (std::size_t begin = 0; begin < nodes.size();) {
    std::size_t end = begin, bytes = 0;
    do bytes += bytes_of(*nodes[end++], graph);
    while (end < nodes.size() && bytes < options.batch_bytes);
    const auto batch = std::span<const Node* const>(nodes).subspan(begin, end - begin);
    TRY_DO(
        step(options.progress, static_cast<double>(begin) / static_cast<double>(nodes.size()), batch.front()->name()));
    const Status done = compare_batch(graph, inputs, batch, expected, found, options, report);
    if (done) {
      begin = end;
      continue;
    }
    if (!is_death(done.error())) return done.error();
    died = done.error();
    // The nodes before the one that it died at are compared without it. A hang is waited for only once.
    const auto at = std::ranges::find(batch, died->where.node, [](const Node* n) { return n->name(); });
    const bool earlier = at != batch.begin() && at != batch.end();
    nodes.resize(earlier ? begin + static_cast<std::size_t>(at - batch.begin()) : begin);
  }
  if (died) {
    report.rows.push_back(row_of_death(*died));
    find_inherited(graph, report);
    return report;
  }
  TRY(Report outputs, compare_outputs(graph, inputs, expected, found, options.tolerance));
  std::ranges::move(outputs.rows, std::back_inserter(report.rows));
  find_inherited(graph, report);
  return report;
}

}  // namespace partita
