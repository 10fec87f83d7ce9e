// Compares columns with a reference node by node, in batches of extra outputs; each node also runs alone on the
// reference's values, for its own error. Then each row says from which one it inherited its difference.
#include "core/compare/per_node.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/check.h"
#include "core/base/whereabouts.h"
#include "core/compare/rounding.h"
#include "core/ir/place.h"
#include "core/ops/facts/effects.h"

namespace partita {
namespace {

Result<Value> copy_value(const Value& value, std::map<const Storage*, std::shared_ptr<Storage>>& copies) {
  if (const auto* list = value.get<ValueList>()) {
    ValueList out;
    for (const Value& item : *list) TRY_DO(assign(out.emplace_back(), copy_value(item, copies)));
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

/// What the reference and the double-precision run give for some rows, which are the results of `graph`.
struct Expected {
  const Graph* graph = nullptr;
  const std::vector<Value>* inputs = nullptr;
  std::vector<Value> values;
  std::vector<std::optional<Statistics>> statistics;  ///< empty when nobody asked
  std::vector<Value> exact;                           ///< empty without a baseline, or before it is needed
  std::optional<Result<Moved>> moved;                 ///< of the exact values, when it is needed
};

class Comparison {
 public:
  Comparison(const Graph& graph, const std::vector<Value>& inputs, const Column& reference,
             std::span<const Column> columns, const PerNodeOptions& options)
      : graph_(graph),
        inputs_(inputs),
        reference_(reference),
        columns_(columns),
        options_(options),
        reports_(columns.size()),
        ended_(columns.size()),
        past_(columns.size()) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      reports_[c].expected_name = reference.name;
      reports_[c].found_name = columns[c].name;
      if (columns[c].past)
        for (const Difference& d : columns[c].past->rows) past_[c].emplace(d.name, &d);
    }
  }

  Result<std::vector<Report>> run() {
    if (options_.nodes) {
      const std::vector<const Node*> nodes = visible_nodes(graph_);
      count_ = nodes.size();
      for (begin_ = 0; begin_ < nodes.size() && !all_ended();) {
        std::size_t end = begin_, bytes = 0;
        do bytes += bytes_of(*nodes[end++], graph_);
        while (end < nodes.size() && bytes < options_.batch_bytes);
        TRY_DO(at_node(0, *nodes[begin_]));
        TRY_DO(compare_batch(std::span(nodes).subspan(begin_, end - begin_)));
        begin_ = end;
      }
    }
    if (!all_ended()) TRY_DO(compare_results());
    if (options_.nodes)
      for (Report& report : reports_) find_inherited(graph_, report);
    return std::move(reports_);
  }

 private:
  using Nodes = std::span<const Node* const>;

  /// Reports the node, and asks whether to stop, when this many nodes of the batch are compared. A node counts in part
  /// for each column.
  Status at_node(double compared, const Node& node) const {
    return step(options_.progress, (static_cast<double>(begin_) + compared) / static_cast<double>(count_), node.name());
  }

  bool all_ended() const { return std::ranges::find(ended_, false) == ended_.end(); }
  void end(std::size_t column, const Diagnostic& death) {
    reports_[column].rows.push_back(row_of_death(death));
    ended_[column] = true;
  }
  void end_all(const Diagnostic& death) {
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (!ended_[c]) end(c, death);
  }

  /// The nodes before the one at which the process died, which are then compared without it. A hang is waited for only
  /// once.
  static Nodes before_death(Nodes nodes, const Diagnostic& death) {
    const auto at = std::ranges::find(nodes, death.where.node, [](const Node* n) { return n->name(); });
    return nodes.first(at == nodes.end() ? 0 : static_cast<std::size_t>(at - nodes.begin()));
  }

  Result<Expected> expect(const Graph& graph, const std::vector<Value>& inputs, std::vector<Value> values) const {
    Expected out{.graph = &graph, .inputs = &inputs, .values = std::move(values)};
    if (options_.statistics || has_past())
      for (const Value& v : out.values) out.statistics.push_back(statistics_of(v));
    if (options_.baseline) TRY_DO(assign(out.exact, run_on_copy(options_.baseline, graph, inputs)));
    return out;
  }
  bool has_past() const {
    return std::ranges::any_of(columns_, [](const Column& c) { return c.past != nullptr; });
  }

  Status compare_batch(Nodes nodes) {
    const std::unique_ptr<Graph> seen = with_outputs(graph_, nodes);
    auto values = run_on_copy(reference_.run, *seen, inputs_);
    if (!values) {
      if (!is_death(values.error())) return values.error();
      if (const Nodes before = before_death(nodes, values.error()); !before.empty()) TRY_DO(compare_batch(before));
      end_all(values.error());
      return {};
    }
    CHECK(values->size() == nodes.size(), "a backend returned a wrong number of values");
    TRY(Expected expected, expect(*seen, inputs_, *std::move(values)));
    std::optional<Diagnostic> no_own;
    std::optional<SingleCalls> alone;
    std::vector<Value> given;
    Expected alone_expected;
    if (options_.own) {
      const Status prepared = prepare_alone(nodes, expected, alone, given, alone_expected);
      if (!prepared) {
        if (prepared.error().fault == Fault::Cancelled) return prepared;
        no_own = prepared.error();
        alone.reset();
      }
    }
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (ended_[c]) continue;
      if (no_own) reports_[c].why_not_own = no_own->line();
      std::optional<Diagnostic> died;
      for (Nodes part = nodes; !part.empty();) {
        const Status done = add_rows(c, part, expected, alone, given, alone_expected);
        if (done) break;
        if (!is_death(done.error())) return done;
        if (!died) died = done.error();
        part = before_death(part, done.error());
      }
      if (died) end(c, *died);
    }
    return {};
  }

  /// The nodes alone, the values that they are given, and what they should give.
  Status prepare_alone(Nodes nodes, const Expected& expected, std::optional<SingleCalls>& alone,
                       std::vector<Value>& given, Expected& alone_expected) {
    TRY(alone, single_calls(graph_, nodes));
    std::unordered_map<const Node*, Value> known;
    for (std::size_t i = 0; i < nodes.size(); ++i) known.emplace(nodes[i], expected.values[i]);
    std::vector<const Node*> earlier;
    std::ranges::copy_if(alone->given, std::back_inserter(earlier), [&](const Node* n) { return !known.contains(n); });
    if (!earlier.empty()) {
      TRY(std::vector<Value> values, run_on_copy(reference_.run, *with_outputs(graph_, earlier), inputs_));
      for (std::size_t i = 0; i < earlier.size(); ++i) known.emplace(earlier[i], std::move(values[i]));
    }
    given = inputs_;
    for (const Node* node : alone->given) given.push_back(known.at(node));
    std::vector<Value> values;
    for (const Node* node : alone->nodes) values.push_back(known.at(node));
    TRY(alone_expected, expect(*alone->graph, given, std::move(values)));
    return {};
  }

  /// Rows of the first nodes of a batch.
  Status add_rows(std::size_t c, Nodes nodes, Expected& expected, const std::optional<SingleCalls>& alone,
                  const std::vector<Value>& given, Expected& alone_expected) {
    Report& report = reports_[c];
    if (columns_[c].past) {
      for (std::size_t i = 0; i < nodes.size(); ++i) add_past(c, nodes[i]->name(), expected.statistics[i]);
      return {};
    }
    TRY(const std::vector<Value> values, run_on_copy(columns_[c].run, *with_outputs(graph_, nodes), inputs_));
    CHECK(values.size() == nodes.size(), "a backend returned a wrong number of values");
    std::vector<Difference> rows;
    std::unordered_map<const Node*, std::size_t> row_of;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = *nodes[i];
      const auto compared = static_cast<double>(c * nodes.size() + i);
      TRY_DO(at_node(compared / static_cast<double>(columns_.size()), node));
      TRY(rows.emplace_back(), difference(node.name(), expected, i, values[i], node.meta.tensor()->strides_known));
      rows.back().origin = origin_text(node);
      row_of.emplace(&node, i);
    }
    // A batch that is cut short by a death is not run node by node.
    if (alone && row_of.size() == expected.values.size()) {
      const auto own = run_on_copy(columns_[c].run, *alone->graph, given);
      if (!own && (is_death(own.error()) || own.error().fault == Fault::Cancelled)) return own.error();
      if (!own) report.why_not_own = own.error().line();
      for (std::size_t i = 0; own && i < own->size(); ++i) {
        TRY(const Difference d, difference({}, alone_expected, i, (*own)[i], false));
        Difference& row = rows[row_of.at(alone->nodes[i])];
        row.own = {d.ok(), d.max_abs, d.max_rel, d.wrong};
        row.rounding |= is_handed_on(row, &row);
      }
    }
    std::ranges::move(rows, std::back_inserter(report.rows));
    return {};
  }

  Result<Difference> difference(std::string name, Expected& expected, std::size_t i, const Value& value,
                                bool strides) const {
    Difference d = compare_values(std::move(name), expected.values[i], value, options_.tolerance, strides);
    if (!expected.exact.empty()) TRY_DO(judge(d, expected, i, value));
    add_statistics(d, expected, i, value);
    return d;
  }

  void add_statistics(Difference& d, const Expected& expected, std::size_t i, const Value& value) const {
    if (!options_.statistics || d.name.empty()) return;
    d.expected_statistics = expected.statistics[i];
    d.found_statistics = statistics_of(value);
  }

  Status judge(Difference& d, Expected& expected, std::size_t i, const Value& value) const {
    const auto moved = [&]() -> Result<std::vector<double>> {
      const auto shifted_run = [&](unsigned seed) {
        return run_on_copy(options_.shifted(seed), *expected.graph, *expected.inputs);
      };
      if (!expected.moved) expected.moved = moved_by_rounding(shifted_run, expected.exact);
      if (!*expected.moved) return expected.moved->error();
      return (**expected.moved)[i];
    };
    if (options_.shifted)
      return judge_both_sides(d, expected.exact[i], expected.values[i], value, options_.tolerance, moved);
    std::ignore = judge_by_baseline(d, expected.exact[i], expected.values[i], value, options_.tolerance);
    return {};
  }

  /// Where numbers cancel, rounding in what the node reads may be beyond the tolerance, at other elements than the
  /// reference's. The value is right if its node is so alone, and it is no farther from the run in double.
  static bool is_handed_on(const Difference& d, const Difference* node) {
    return !d.values_agree && !d.expected_is_off && node && node->own && node->own->ok && !d.specials_differ() &&
           d.expected_error && d.found_error && *d.found_error <= 2 * *d.expected_error;
  }

  void add_past(std::size_t c, const std::string& name, const std::optional<Statistics>& expected) {
    const auto row = past_[c].find(name);
    if (row == past_[c].end() || !row->second->found_statistics || !expected) return;
    Difference d = compare_statistics(name, *expected, *row->second->found_statistics, options_.tolerance);
    d.origin = row->second->origin;
    reports_[c].rows.push_back(std::move(d));
  }

  Status compare_results() {
    const auto values = run_on_copy(reference_.run, graph_, inputs_);
    if (!values) {
      if (!is_death(values.error())) return values.error();
      end_all(values.error());
      return {};
    }
    Expected expected{.graph = &graph_, .inputs = &inputs_, .values = *values};
    if (options_.statistics || has_past())
      for (const Value& v : expected.values) expected.statistics.push_back(statistics_of(v));
    const auto name = [](std::size_t i) { return fmt::format("output.{}", i); };
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (ended_[c]) continue;
      Report& report = reports_[c];
      if (columns_[c].past) {
        for (std::size_t i = 0; i < values->size(); ++i) add_past(c, name(i), expected.statistics[i]);
        continue;
      }
      const auto begun = std::chrono::steady_clock::now();
      const auto found = run_on_copy(columns_[c].run, graph_, inputs_);
      report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      if (!found) {
        if (!is_death(found.error())) return found.error();
        end(c, found.error());
        continue;
      }
      for (std::size_t i = 0; i < values->size() && i < found->size(); ++i) {
        Difference d = compare_values(name(i), expected.values[i], (*found)[i], options_.tolerance);
        add_statistics(d, expected, i, (*found)[i]);
        if (!d.values_agree && options_.baseline) {
          if (expected.exact.empty()) TRY_DO(assign(expected.exact, run_on_copy(options_.baseline, graph_, inputs_)));
          TRY_DO(judge(d, expected, i, (*found)[i]));
          d.rounding |= is_handed_on(d, row_of_output(report, i));
        }
        report.rows.push_back(std::move(d));
      }
    }
    return {};
  }

  /// The row of the node that is this result; null when it has none.
  const Difference* row_of_output(const Report& report, std::size_t i) const {
    const Node* node = graph_.outputs()[i].node();
    const auto row = node ? std::ranges::find(report.rows, node->name(), &Difference::name) : report.rows.end();
    return row == report.rows.end() ? nullptr : &*row;
  }

  const Graph& graph_;
  const std::vector<Value>& inputs_;
  const Column& reference_;
  std::span<const Column> columns_;
  const PerNodeOptions& options_;
  std::vector<Report> reports_;
  std::vector<bool> ended_;
  std::size_t begin_ = 0, count_ = 0;  ///< the first node of the batch, and how many nodes there are
  std::vector<std::unordered_map<std::string_view, const Difference*>> past_;  ///< rows by name
};

}  // namespace

Result<std::vector<Value>> copy_values(const std::vector<Value>& values) {
  std::map<const Storage*, std::shared_ptr<Storage>> copies;
  std::vector<Value> out;
  for (const Value& v : values) TRY_DO(assign(out.emplace_back(), copy_value(v, copies)));
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
  PerNodeOptions options;
  options.tolerance = tolerance;
  options.nodes = false;
  return compare_nodes(graph, inputs, expected, found, options);
}

Result<Report> compare_nodes(const Graph& graph, const std::vector<Value>& inputs, const Runner& expected,
                             const Runner& found, const PerNodeOptions& options) {
  const Column column{.name = {}, .run = found};
  TRY(std::vector<Report> reports,
      compare_columns(graph, inputs, {.name = {}, .run = expected}, std::span(&column, 1), options));
  return std::move(reports.front());
}

Result<std::vector<Report>> compare_columns(const Graph& graph, const std::vector<Value>& inputs,
                                            const Column& reference, std::span<const Column> columns,
                                            const PerNodeOptions& options) {
  return Comparison(graph, inputs, reference, columns, options).run();
}

}  // namespace partita
