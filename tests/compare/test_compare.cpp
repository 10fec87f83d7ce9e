#include <QtTest>
#include <array>
#include <cmath>

#include "core/base/whereabouts.h"
#include "core/compare/changes.h"
#include "core/compare/check_passes.h"
#include "core/compare/per_node.h"
#include "core/compare/rounding.h"
#include "core/compare/same_calls.h"
#include "core/compare/side_values.h"
#include "core/interp/interpreter.h"
#include "core/ops/record/record.h"
#include "core/passes/rewrite.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

Runner interpreter() {
  return [](const Graph& graph, std::vector<Value> inputs) { return interpret(graph, std::move(inputs)); };
}
Runner wide_interpreter() {
  return [](const Graph& graph, std::vector<Value> inputs) {
    InterpOptions options;
    options.float64 = true;
    return interpret(graph, std::move(inputs), options);
  };
}
/// A runner that multiplies the result of one node's kernel.
Runner planted(std::string node, double factor) {
  return [=](const Graph& graph, std::vector<Value> inputs) {
    InterpOptions options;
    options.evaluate = [&](const Node& n, std::vector<Value> args, ValueKwargs kwargs,
                           const EvalContext& context) -> Result<Value> {
      TRY(Value v, evaluate(n.op(), std::move(args), std::move(kwargs), context, &n));
      if (n.name() != node) return v;
      return evaluate(Op::torch("aten.mul.Tensor"), {v, Value(factor)}, {});
    };
    return interpret(graph, std::move(inputs), options);
  };
}

std::unique_ptr<Graph> chain() {
  return fx("x: <f32[4][1]>",
            "# File: net.py:5 in forward, code: h = x.sin()\na: <f32[4][1]> = $sin(x)\n"
            "# File: net.py:6 in forward, code: h = h.exp()\nb: <f32[4][1]> = $exp(a)\nc: <f32[4][1]> = $mul.Tensor(b, "
            "a)\nreturn (c,)");
}
std::vector<Value> chain_input() {
  return {f32({4}, {0.1, 0.2, 0.3, 0.4})};
}

Result<bool> sin_to_cos(Graph& graph, PassContext&) {
  bool changed = false;
  for (Node* node : graph)
    if (node->is(Op::torch("aten.sin.default"))) {
      node->set_op(Op::torch("aten.cos.default"));
      changed = true;
    }
  return changed;
}
Result<bool> exp_to_new_sin(Graph& graph, PassContext&) {
  Node* exp = graph.find("b");
  Node* made = graph.create(Op::torch("aten.sin.default"), {exp->args()[0]}, {}, "wrong", exp);
  made->meta = exp->meta;
  made->origin = exp->origin;
  exp->replace_all_uses_with(made);
  graph.erase(exp);
  return true;
}
/// Three sound rewrites of exp and one of sin that is not.
Result<bool> rewrites_with_a_bug(Graph& graph, PassContext& context) {
  static const Rewrite rows[] = {
      {"exp_of_neg", 0, "exp(neg(x))", "reciprocal(exp(x))", [](const Match&) { return true; }},
      {"sin_to_cos", 0, "sin(x)", "cos(x)", [](const Match&) { return true; }}};
  static const RewriteSet set(rows);
  return set.apply(graph, context);
}
Result<bool> harmless(Graph& graph, PassContext&) {
  graph.rename(graph.find("c"), "product");
  Node* b = graph.find("product");
  b->set_args({b->args()[1], b->args()[0]}, {});
  return true;
}

}  // namespace

class TestCompare : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_farthest_elements_of_all_sides_come_first() {
    const auto tensor = [](std::vector<float> values) {
      Tensor t = *Tensor::empty(DType::Float32, {2, static_cast<std::int64_t>(values.size()) / 2});
      std::ranges::copy(values, t.as<float>());
      return Value(t);
    };
    std::vector<SideValue> sides;
    sides.push_back(side_value("a", tensor({1, 2, 3, 4, NAN, 6})));
    sides.push_back(side_value("b", tensor({1, 2, 3.5, 4, NAN, 6})));
    sides.push_back(side_value("c", tensor({1, NAN, 3, 4, NAN, 8})));
    sides.push_back(side_value("shorter", tensor({1, 2})));
    sides.push_back(side_value("dead", input_error("run.died", "it died")));
    const auto rows = *farthest_elements(sides, {0, 1}, 10);
    QCOMPARE(rows.size(), std::size_t{3});   // NaN equals NaN
    QCOMPARE(rows[0].index, (Sizes{0, 1}));  // NaN on one side is farthest
    QCOMPARE(rows[1].index, (Sizes{1, 2}));
    QCOMPARE(rows[2].index, (Sizes{0, 2}));
    QCOMPARE(*rows[2].values[1], 3.5);
    QVERIFY(!rows[2].values[3] && !rows[2].values[4]);
    QCOMPARE(farthest_elements(sides, {0, 1}, 1)->front().index, (Sizes{0, 1}));
    const std::string text = *values_text(sides, {0, 1}, 2);
    QVERIFY2(text.find("dead: it died") != std::string::npos && text.find("[1, 2]") != std::string::npos &&
                 text.find("[0, 2]") == std::string::npos,
             text.c_str());
    // A complex number that differs in its sign alone differs.
    Tensor plus = *Tensor::zeros(DType::Complex64, {2}), minus = *plus.clone();
    plus.as<std::complex<float>>()[1] = {0, 1};
    minus.as<std::complex<float>>()[1] = {0, -1};
    const SideValue complex[] = {side_value("plus", Value(plus)), side_value("minus", Value(minus))};
    const auto parts = *farthest_elements(complex, {}, 10);
    QCOMPARE(parts.size(), std::size_t{1});
    QCOMPARE(parts[0].index, (Sizes{1, 1}));
    // Values that are equal have no such elements, and a reference without values has none either.
    QVERIFY(farthest_elements(std::span(complex, 1), {}, 10)->empty());
    QVERIFY(farthest_elements(std::span(&sides[4], 1), {}, 10)->empty());
  }

  void what_changed_between_two_comparisons() {
    const auto report = [](std::vector<std::pair<const char*, double>> rows) {
      Report r;
      for (const auto& [name, error] : rows) {
        Difference d;
        d.name = name;
        d.max_abs = error;
        d.values_agree = error < 1;
        r.rows.push_back(d);
      }
      return r;
    };
    const Report a =
        report({{"same", 0.1}, {"worse", 0.1}, {"broken", 0.1}, {"fixed", 2}, {"exact", 0.1}, {"gone", 0}});
    const Report b = report({{"same", 0.12}, {"worse", 0.4}, {"broken", 3}, {"fixed", 0.2}, {"exact", 0}, {"new", 0}});
    std::vector<std::string> told;
    for (const ChangedRow& row : changed_rows(a, b)) told.push_back(row.any().name + ": " + row.text);
    const std::vector<std::string> expected = {"broken: broken",      "fixed: fixed",    "worse: 4 times larger",
                                               "exact: exact now",    "gone: only in A", "new: only in B",
                                               "same: about the same"};
    QCOMPARE(told, expected);
  }

  void elements_are_counted() {
    const double nan = std::nan(""), inf = INFINITY;
    const Difference d = compare_values("output.0", f32({2, 3}, {1, 2, nan, inf, 5, 100}),
                                        f32({2, 3}, {1, 2.5, nan, inf, 5, nan}), {1e-4, 1e-5});
    QVERIFY(!d.ok());
    QCOMPARE(d.wrong, std::int64_t{2});
    QCOMPARE(d.max_abs, 0.5);
    QCOMPARE(d.max_rel, 0.25);
    QCOMPARE(d.first_wrong->index, (Sizes{0, 1}));
    QCOMPARE(d.first_wrong->expected, 2.0);
    QCOMPARE(d.first_wrong->found, 2.5);
    QCOMPARE(d.nan_expected, std::int64_t{1});
    QCOMPARE(d.nan_found, std::int64_t{2});
    QCOMPARE(d.inf_found, std::int64_t{1});
  }

  void ulps_are_steps_of_the_dtype() {
    const float one = 1, next = std::nextafterf(std::nextafterf(1.0f, 2.0f), 2.0f);
    Difference d = compare_values("", f32({1}, {one}), f32({1}, {next}), {1e-4, 0});
    QVERIFY(d.ok());
    QCOMPARE(*d.max_ulp, std::int64_t{2});
    d = compare_values("", f32({1}, {-1e-45}), f32({1}, {1e-45}), {0, 1});
    QCOMPARE(*d.max_ulp, std::int64_t{2});
    d = compare_values("", tensor(DType::BFloat16, {1}, {1}), tensor(DType::BFloat16, {1}, {1.0078125}), {1e-1, 0});
    QCOMPARE(*d.max_ulp, std::int64_t{1});
  }

  void any_byte_but_0_is_true() {
    Tensor found = tensor(DType::Bool, {3}, {1, 1, 0});
    found.as<StoredBool>()[1].byte = 6;
    const Difference d = compare_values("", tensor(DType::Bool, {3}, {1, 1, 1}), found, {});
    QCOMPARE(d.wrong, 1);
    QCOMPARE(d.max_abs, 1.0);
  }

  void large_integers_are_exact() {
    Tensor a = *Tensor::zeros(DType::Int64, {1}), b = *Tensor::zeros(DType::Int64, {1});
    *a.as<std::int64_t>() = std::int64_t{1} << 60;
    *b.as<std::int64_t>() = (std::int64_t{1} << 60) + 1;
    QVERIFY(!compare_values("", a, b, {1e-4, 1e-5}).ok());
    // As tensors of a dump or of a saved case numbers keep their digits too.
    const auto number = tensor_or_number(Value((std::int64_t{1} << 60) + 1));
    QVERIFY(number && *number);
    QVERIFY(compare_values("", b.view_as({}, {}, 0), **number, {0, 0}).ok());
  }

  void layout_differences_are_reported() {
    const Tensor dense = f32({2, 2}, {1, 2, 3, 4});
    Difference d = compare_values("", dense, dense.view_as({2, 2}, {1, 2}, 0), {10, 10});
    QCOMPARE(d.layout, std::vector<std::string>{"strides: [2, 1] expected, [1, 2] found"});
    d = compare_values("", dense, *dense.to(DType::Float64), {});
    QCOMPARE(d.layout, std::vector<std::string>{"dtype: float32 expected, float64 found"});
    d = compare_values("", dense, f32({4}, {1, 2, 3, 4}), {});
    QCOMPARE(d.layout, std::vector<std::string>{"sizes: [2, 2] expected, [4] found"});
    QVERIFY(compare_values("", f32({1, 2}, {1, 2}), f32({1, 2}, {1, 2}).view_as({1, 2}, {9, 1}, 0), {}).ok());
    QVERIFY(!compare_values("", dense, Value(), {}).ok());
  }

  void a_planted_wrong_kernel_is_named() {
    const auto graph = chain();
    PerNodeOptions options;
    options.baseline = wide_interpreter();
    options.batch_bytes = 16;  // one node per batch
    const auto report = compare_nodes(*graph, chain_input(), interpreter(), planted("b", 1.01), options);
    QVERIFY2(report, report ? "" : report.error().line().c_str());
    QVERIFY(!report->ok());
    QCOMPARE(report->first_bad()->name, std::string("b"));
    QCOMPARE(report->first_bad()->origin, std::string("net.py:6 in forward"));
    QCOMPARE(report->rows.size(), std::size_t{4});  // a, b, c, output.0
    QVERIFY(report->rows[0].ok() && !report->rows[1].ok() && !report->rows[2].ok() && !report->rows[3].ok());
  }

  void each_node_is_reported_and_may_be_the_last() {
    const auto graph = chain();
    for (const std::size_t batch_bytes : {std::size_t{16}, std::size_t{1} << 20}) {
      Progress progress;
      std::vector<std::string> names;
      double last = 0;
      bool grows = true;
      progress.report = [&](double fraction, std::string_view name) {
        grows = grows && fraction >= last && fraction < 1;
        last = fraction;
        if (names.empty() || names.back() != name) names.emplace_back(name);
        if (names.size() == 5) progress.stop = true;
      };
      PerNodeOptions options;
      options.batch_bytes = batch_bytes;
      options.progress = &progress;
      const Column columns[] = {{"first", interpreter()}, {"second", interpreter()}};
      const auto reports = compare_columns(*graph, chain_input(), {"interp", interpreter()}, columns, options);
      const bool at_once = batch_bytes > 16;  // all nodes for a column, then for the next
      const std::vector<std::string> stopped = {"a", "b", "c", "a", "b"}, all = {"a", "b", "c"};
      QCOMPARE(names, at_once ? stopped : all);
      QCOMPARE(static_cast<bool>(reports), !at_once);
      QVERIFY(grows);
    }
  }

  void a_nodes_own_error_is_told_from_the_inherited_one() {
    const auto graph = chain();
    PerNodeOptions options;
    options.own = options.statistics = true;
    // Both a and c are wrong; b only inherits a's error.
    const Runner wrong = [](const Graph& g, std::vector<Value> inputs) {
      InterpOptions how;
      how.evaluate = [&](const Node& n, std::vector<Value> args, ValueKwargs kwargs,
                         const EvalContext& context) -> Result<Value> {
        TRY(Value v, evaluate(n.op(), std::move(args), std::move(kwargs), context, &n));
        if (n.name() == "b") return v;
        return evaluate(Op::torch("aten.mul.Tensor"), {v, Value(1.01)}, {});
      };
      return interpret(g, std::move(inputs), how);
    };
    const Column columns[] = {{"wrong", wrong}, {"same", interpreter()}, {"b", planted("b", 1.01)}};
    for (const std::size_t batch : {std::size_t{1}, std::size_t{1} << 20}) {
      options.batch_bytes = batch;
      const auto reports = compare_columns(*graph, chain_input(), {"interp", interpreter()}, columns, options);
      QVERIFY2(reports, reports ? "" : reports.error().line().c_str());
      const std::vector<Difference>& rows = (*reports)[0].rows;
      QVERIFY(!rows[0].own->ok && !rows[0].inherited());
      QVERIFY(rows[1].own->ok && rows[1].inherited() && rows[1].own->max_abs == 0);
      QVERIFY(!rows[2].own->ok && !rows[2].inherited());  // b would hide that c is wrong, too
      QCOMPARE(rows[2].inherited_from, std::string("a"));
      QVERIFY((*reports)[1].ok() && (*reports)[1].rows[2].own->max_abs == 0);
      QCOMPARE((*reports)[2].first_bad()->name, std::string("b"));
      QVERIFY((*reports)[2].rows[2].inherited());
      QVERIFY((*reports)[2].seconds > 0);
      const QString text = QString::fromStdString(table_text(*reports, false, false));
      QVERIFY2(text.contains("first divergence: a (an error of its own: alone 0.00389)"), qPrintable(text));
      QVERIFY2(text.contains("first divergence: b (an error of its own"), qPrintable(text));
      QVERIFY(text.contains("c  ") && !text.contains("norm"));
    }
    const auto writes =
        fx("x: <f32[4][1]>", "a: <f32[4][1]> = $add_.Tensor(x, x)\nb: <f32[4][1]> = $exp(a)\nreturn (b,)");
    const auto report = compare_columns(*writes, chain_input(), {"interp", interpreter()}, columns, options);
    QVERIFY(report && !(*report)[1].rows[0].own &&
            QString::fromStdString((*report)[1].why_not_own).contains("writes to memory"));
  }

  void a_run_of_the_past_is_compared_by_its_statistics() {
    const auto graph = chain();
    PerNodeOptions options;
    options.statistics = true;
    const Column now[] = {{"same", interpreter()}, {"wrong", planted("b", 1.01)}, {"nan", planted("b", NAN)}};
    const auto made = compare_columns(*graph, chain_input(), {"interp", interpreter()}, now, options);
    QVERIFY(made);
    const Statistics& s = *(*made)[0].rows[0].found_statistics;
    QCOMPARE(s.numel, std::int64_t{4});
    QVERIFY(std::abs(s.norm - 0.5370) < 1e-4 && std::abs(s.least - std::sin(0.1)) < 1e-6);
    QCOMPARE(s.magnitudes.decades[14], std::int64_t{1});  // sin(0.1) is below 0.1
    QCOMPARE(s.magnitudes.decades[15], std::int64_t{3});
    std::vector<Report> past;
    for (const Report& r : *made) {
      auto read = Report::from_json(r.json());
      QVERIFY2(read, read ? "" : read.error().line().c_str());
      past.push_back(*std::move(read));
    }
    const Column columns[] = {{"past same", {}, &past[0]}, {"past wrong", {}, &past[1]}, {"past nan", {}, &past[2]}};
    const auto reports = compare_columns(*graph, chain_input(), {"interp", interpreter()}, columns, options);
    QVERIFY2(reports, reports ? "" : reports.error().line().c_str());
    QVERIFY((*reports)[0].ok());
    QCOMPARE((*reports)[0].rows.size(), std::size_t{4});
    const Difference& b = (*reports)[1].rows[1];
    QVERIFY((*reports)[1].rows[0].ok() && !b.ok() && b.by_statistics);
    QVERIFY(b.max_abs > 0.0119 && b.max_abs <= (*made)[1].rows[1].max_abs);  // a bound from below, and a good one here
    QVERIFY(!(*reports)[2].rows[1].ok());
    QVERIFY(QString::fromStdString(table_text(*reports, true, true)).contains("the same"));
    const auto again = Report::from_json((*reports)[1].json());
    QVERIFY(again && again->rows[1].by_statistics && !again->rows[1].ok() && again->rows[0].ok());
  }

  void rows_that_inherit_their_difference_come_after_the_first_ones() {
    const auto graph = fx("x: <f32[4][1]>",
                          "a: <f32[4][1]> = $sin(x)\nb: <f32[4][1]> = $exp(a)\nc: <f32[4][1]> = $mul.Tensor(b, a)\n"
                          "d: <f32[4][1]> = $cos(x)\ne: <f32[4][1]> = $mul.Scalar(c, 0)\n"
                          "f: <f32[4][1]> = $add.Tensor(e, d)\nreturn (c, f)");
    const auto report = compare_nodes(*graph, chain_input(), interpreter(), planted("b", 1.01));
    QVERIFY2(report, report ? "" : report.error().line().c_str());
    std::map<std::string, std::string> inherited;
    for (const Difference& d : report->rows)
      if (!d.ok()) inherited[d.name] = d.inherited_from;
    // Zero times a wrong value is right, and so is what is made of it. What agrees only within the tolerance is no
    // place for an error to begin after it.
    const auto small = fx("x: <f32[4][1]>",
                          "a: <f32[4][1]> = $sin(x)\nb: <f32[4][1]> = $mul.Scalar(a, 1e-4)\n"
                          "c: <f32[4][1]> = $mul.Scalar(b, 10000)\nreturn (c,)");
    const auto passed_on = compare_nodes(*small, chain_input(), interpreter(), planted("a", 1.01));
    QVERIFY(passed_on && passed_on->rows[1].ok() && passed_on->rows[2].inherited());
    QCOMPARE(passed_on->rows[2].inherited_from, std::string("a"));
    QCOMPARE(inherited, (std::map<std::string, std::string>{{"b", ""}, {"c", "b"}, {"output.0", "b"}}));
    const QStringList lines = QString::fromStdString(report->text()).split('\n');
    QVERIFY(lines[0].startsWith("DIFFERS  b "));
    QVERIFY(lines[1].endsWith(", after b"));
    QVERIFY(lines[lines.size() - 3].endsWith(", 3 differ, 2 of them after an input that does"));
    const QString json = QString::fromStdString(report->json()).simplified();
    QVERIFY(json.contains("\"first_differences\": [ \"b\" ]"));
    QCOMPARE(json.count("\"inherited_from\": \"b\""), 2);
    QCOMPARE(Report::from_json(report->json())->text(), report->text());
  }

  void a_death_is_the_last_row_and_costs_one_more_run() {
    const auto graph = chain();
    for (const std::size_t batch_bytes : {std::size_t{16}, std::size_t{1} << 20}) {
      int died = 0;
      const Runner dies = [&](const Graph& g, std::vector<Value> inputs) -> Result<std::vector<Value>> {
        if (!g.find("b")) return interpret(g, std::move(inputs));
        ++died;
        Whereabouts at{};
        write_whereabouts_to(&at);
        const std::string nodes[] = {"b", "c"};
        now_at("running kernel 1", nodes);
        write_whereabouts_to(nullptr);
        return death("cpu", "signal 11 (Segmentation fault)", at);
      };
      PerNodeOptions options;
      options.batch_bytes = batch_bytes;
      const auto report = compare_nodes(*graph, chain_input(), interpreter(), dies, options);
      QVERIFY2(report, report ? "" : report.error().line().c_str());
      QCOMPARE(died, 1);
      QCOMPARE(report->rows.size(), std::size_t{2});
      QVERIFY(report->rows[0].name == "a" && report->rows[0].ok());
      QVERIFY(report->rows[1].name == "b" && !report->rows[1].ok());
      QVERIFY(
          report->rows[1].died.starts_with("cpu ended: signal 11 (Segmentation fault) while running kernel 1 (b, c);"));
      QVERIFY(report->text().starts_with("DIED"));
      QCOMPARE(Report::from_json(report->json())->rows[1].died, report->rows[1].died);
    }
    const auto outputs =
        compare_outputs(*graph, chain_input(), interpreter(),
                        [](const Graph&, const std::vector<Value>&) { return death("cpu", "exit code 1", {}); }, {});
    QVERIFY(outputs && outputs->rows.size() == 1 && outputs->rows[0].name == "the run");
  }

  void rounding_is_separated_from_errors() {
    // Both are about equally far from the f64 value, so neither is wrong.
    const auto graph = fx("x: <f32[4][1]>", "a: <f32[4][1]> = $sin(x)\nreturn (a,)");
    PerNodeOptions options;
    options.tolerance = {0, 0};
    options.baseline = wide_interpreter();
    const auto report = compare_nodes(*graph, chain_input(), planted("a", 1 + 1e-4), planted("a", 1 - 1e-4), options);
    QVERIFY2(report, report ? "" : report.error().line().c_str());
    QVERIFY(report->rows[0].rounding);
    QVERIFY(report->rows[0].ok());
  }

  /// The reference may be the wrong one: that the column is right by the run in double excuses nothing then. What reads
  /// the reference's value inherits the difference.
  void a_wrong_reference_is_named() {
    const auto graph = chain();
    PerNodeOptions options;
    options.baseline = wide_interpreter();
    options.shifted = [](unsigned seed) -> Runner {
      return
          [seed](const Graph& g, const std::vector<Value>& inputs) { return interpret_shifted(g, inputs, seed, true); };
    };
    options.own = true;
    const auto report = compare_nodes(*graph, chain_input(), planted("b", 1.01), interpreter(), options);
    QVERIFY2(report, report ? "" : report.error().line().c_str());
    const auto& rows = report->rows;  // a, b, c, output.0
    QVERIFY(rows[0].ok() && !rows[1].ok() && !rows[2].ok() && !rows[3].ok());
    QVERIFY(rows[1].expected_is_off && rows[2].expected_is_off);
    QVERIFY(rows[1].own && !rows[1].own->ok && rows[2].own && rows[2].own->ok);
    QVERIFY(!rows[1].inherited() && rows[2].inherited());

    // An error that rounding explains is still excused.
    const auto near = fx("x: <f32[4][1]>", "a: <f32[4][1]> = $sin(x)\nreturn (a,)");
    options.tolerance = {0, 0};
    const auto rounded = compare_nodes(*near, chain_input(), planted("a", 1 + 3e-7), interpreter(), options);
    QVERIFY2(rounded, rounded ? "" : rounded.error().line().c_str());
    QVERIFY(!rounded->rows[0].values_agree && rounded->rows[0].ok() && !rounded->rows[0].expected_is_off);
  }

  /// Where numbers cancel, what they read may be rounded otherwise at other elements. The node is not accused of that
  /// if it is right alone and as near to the run in double, nor is the result that it is; of an error of its own it is.
  void a_difference_that_is_handed_on_is_no_accusation() {
    const auto graph = fx("x: <f32[2][1]>, y: <f32[2][1]>",
                          "a: <f32[2][1]> = $neg(x)\ns: <f32[2][1]> = $add.Tensor(a, y)\nreturn (s,)");
    const std::vector<Value> inputs = {f32({2}, {100, 1}), f32({2}, {150, 1.001})};
    const auto nudged = [](std::string node, std::size_t element, float by) -> Runner {
      return [=](const Graph& g, std::vector<Value> values) {
        InterpOptions how;
        how.evaluate = [&](const Node& n, std::vector<Value> args, ValueKwargs kwargs,
                           const EvalContext& context) -> Result<Value> {
          TRY(Value v, evaluate(n.op(), std::move(args), std::move(kwargs), context, &n));
          if (n.name() == node) v.get<Tensor>()->as<float>()[element] += by;
          return v;
        };
        return interpret(g, std::move(values), how);
      };
    };
    PerNodeOptions options;
    options.baseline = wide_interpreter();
    options.own = true;
    const Column reference{"reference", nudged("a", 0, 3e-5f)},
        columns[] = {
            {"elsewhere", nudged("a", 1, 3e-5f)}, {"twice", nudged("a", 1, 1e-4f)}, {"own", nudged("s", 1, 3e-5f)}};
    const auto reports = compare_columns(*graph, inputs, reference, columns, options);
    QVERIFY2(reports, reports ? "" : reports.error().line().c_str());
    const auto row = [&](std::size_t c, const char* name) {
      return *std::ranges::find((*reports)[c].rows, std::string(name), &Difference::name);
    };
    QVERIFY(!row(0, "s").values_agree && row(0, "s").rounding && row(0, "output.0").rounding);
    QVERIFY((*reports)[0].ok());
    QVERIFY(!row(1, "s").ok() && !row(1, "output.0").ok());  // farther than twice the reference's error
    QVERIFY(!row(2, "s").ok() && !row(2, "output.0").ok());
  }

  /// `expected` and `found` against `exact`, with a tolerance of 0.1.
  static bool excused(const std::vector<double>& exact, const std::vector<double>& expected,
                      const std::vector<double>& found) {
    const Sizes sizes{static_cast<std::int64_t>(exact.size())};
    const Tolerance tolerance{0, 0.1};
    const Value a = f32(sizes, expected), b = f32(sizes, found);
    Difference d = compare_values("", a, b, tolerance);
    std::ignore = judge_by_baseline(d, tensor(DType::Float64, sizes, exact), a, b, tolerance);
    return d.rounding;
  }
  void only_errors_like_the_expected_ones_are_excused() {
    const double nan = std::nan(""), inf = INFINITY;
    QVERIFY(excused({1, 2, 3}, {1.5, 2, 3}, {1, 2, 3}));    // nearer to double
    QVERIFY(excused({1, 2, 3}, {1.5, 2, 3}, {1, 2.9, 3}));  // twice as far, elsewhere
    QVERIFY(!excused({1, 2, 3}, {1.5, 2, 3}, {1, 3.1, 3}));
    QVERIFY(!excused({1, 2, 3}, {1.5, 2, 3}, {1, 2.9, 3.9}));  // one such error excuses one
    QVERIFY(excused({1, 1e39}, {1, 3e38}, {1, inf}));          // as double's in float32
    QVERIFY(!excused({1, 2}, {1.5, 2}, {1, nan}));
    QVERIFY(!excused({1, 2}, {1.5, inf}, {1, -inf}));
    QVERIFY(!excused({nan, 2}, {1, 2}, {3, 2}));
    QVERIFY(excused({nan, 2}, {1, 2}, {nan, 2}));
    QVERIFY(!excused({1, 2}, {1, 2}, {1, 2}));  // nothing to excuse
  }

  /// Where no run in double tells, neighbours of a half type agree, and no others do.
  void a_unit_in_the_last_place_of_half_types() {
    const auto agree = [](DType t, double x, double y, bool unit) {
      return compare_values("", tensor(t, {1}, {x}), tensor(t, {1}, {y}), {.unit = unit}).values_agree;
    };
    QVERIFY(agree(DType::BFloat16, 1, 1.0078125, true) && !agree(DType::BFloat16, 1, 1.0078125, false));
    QVERIFY(!agree(DType::BFloat16, 1, 1.015625, true));
    QVERIFY(agree(DType::Float16, 1, 1.0009765625, true) && !agree(DType::Float16, 1, 1.001953125, true));
    QVERIFY(!agree(DType::Float32, 1, 1.0009765625, true));
  }

  void inputs_are_not_touched() {
    const auto graph =
        fx("x: <f32[2][1]>", "a: <f32[2][1]> = $add_.Tensor(x, 1)\nb: <f32[2][1]> = $neg(a)\nreturn (b,)");
    const std::vector<Value> inputs = {f32({2}, {1, 2})};
    const auto report = compare_nodes(*graph, inputs, interpreter(), interpreter());
    QVERIFY(report && report->ok());
    QCOMPARE(elements(inputs[0]), (std::vector<double>{1, 2}));
  }

  void a_planted_bug_in_a_pass_is_named() {
    const Pass passes[] = {{harmless, "harmless", Stage::PostGradPasses, ""},
                           {sin_to_cos, "sin_to_cos", Stage::PostGradPasses, ""},
                           {harmless, "never reached", Stage::PostGradPasses, ""}};
    PassContext context;
    const auto graph = chain();
    const auto done = run_passes_checked(*graph, passes, context, chain_input());
    QVERIFY2(done, done ? "" : done.error().line().c_str());
    QVERIFY(done->failure);
    QCOMPARE(done->failure->pass, std::string("sin_to_cos"));
    QCOMPARE(done->failure->node, std::string("a"));
    QCOMPARE(done->failure->origin, std::string("net.py:5 in forward"));
    QVERIFY(!done->failure->node_is_new);
    QCOMPARE(done->run.passes.size(), std::size_t{2});
  }

  void a_wrong_node_that_a_pass_made_is_named() {
    const Pass pass{exp_to_new_sin, "exp_to_new_sin", Stage::PostGradPasses, ""};
    PassContext context;
    const auto done = run_passes_checked(*chain(), {&pass, 1}, context, chain_input());
    QVERIFY2(done, done ? "" : done.error().line().c_str());
    QVERIFY(done->failure);
    QCOMPARE(done->failure->node, std::string("wrong"));
    QVERIFY(done->failure->node_is_new);
    QCOMPARE(done->failure->seen_at, std::string("c"));
  }

  void a_wrong_rewrite_is_named() {
    const auto graph = fx("x: <f32[4][1]>",
                          "n: <f32[4][1]> = $neg(x)\na: <f32[4][1]> = $exp(n)\nm: <f32[4][1]> = $neg(a)\n"
                          "b: <f32[4][1]> = $exp(m)\ns: <f32[4][1]> = $sin(b)\nk: <f32[4][1]> = $neg(s)\n"
                          "c: <f32[4][1]> = $exp(k)\nreturn (c,)");
    const Pass pass{rewrites_with_a_bug, "planted", Stage::PostGradPasses, "the second row is wrong"};
    PassContext context;
    const auto checked = run_passes_checked(*graph, {&pass, 1}, context, chain_input());
    QVERIFY2(checked, checked ? "" : checked.error().line().c_str());
    QVERIFY(checked->failure);
    QCOMPARE(checked->failure->pass, std::string("planted"));
    QCOMPARE(*checked->failure->rewrite, std::size_t{2});
    QCOMPARE(checked->failure->step.rule, std::string("sin_to_cos"));
    QCOMPARE(checked->failure->step.node, std::string("s"));
    QCOMPARE(checked->failure->node, std::string("cos"));
    QCOMPARE(checked->run.passes[0].rewrites.size(), std::size_t{4});
  }

  void correct_passes_pass() {
    const Pass pass{harmless, "harmless", Stage::PostGradPasses, ""};
    PassContext context;
    const auto done = run_passes_checked(*chain(), {&pass, 1}, context, chain_input());
    QVERIFY(done && !done->failure);
  }

  void random_graphs_cannot_be_checked() {
    PassContext context;
    const auto graph = fx("x: <f32[4][1]>", "r: <f32[4][1]> = $rand_like(x)\nreturn (r,)");
    const auto done = run_passes_checked(*graph, {}, context, chain_input());
    QVERIFY(!done);
    QCOMPARE(done.error().code, std::string("check.random"));
    QCOMPARE(done.error().where.node, std::string("r"));
  }

  void dropout_with_probability_0_is_not_random() {
    PassContext context;
    const auto graph = fx("x: <f32[4][1]>",
                          "d = $native_dropout(x, 0.0, True)\na: <f32[4][1]> = d[0]\n"
                          "e = $native_dropout(a, 0.5, False)\nb: <f32[4][1]> = e[0]\nreturn (b,)");
    const auto done = run_passes_checked(*graph, {}, context, chain_input());
    QVERIFY2(done, done ? "" : done.error().line().c_str());
  }

  void the_value_behind_a_row_is_computed_again() {
    const auto graph = fx("x: <f32[4][1]>", "a: <f32[4][1]> = $neg(x)\nb: <f32[4][1]> = $neg(a)\nreturn (b, a)");
    const std::vector<Value> inputs{f32({4}, {1, 2, 3, 4})};
    for (const char* name : {"a", "output.1"}) {
      const auto value = value_of(*graph, inputs, interpreter(), name);
      QVERIFY2(value, name);
      QCOMPARE(value->get<Tensor>()->item_as_double(3), -4.0);
    }
    for (const char* name : {"x", "c", "output.2", "output.", "output.1x", ""})
      QCOMPARE(value_of(*graph, inputs, interpreter(), name).error().code, std::string("compare.name"));
  }

  void angle_and_histogram_are_computed() {
    const Difference d = compare_values("", f32({4}, {1, 2, 0, 5}), f32({4}, {1, 2.5, 0.002, NAN}), {});
    QCOMPARE(d.histogram.equal, std::int64_t{1});
    QCOMPARE(d.histogram.not_finite, std::int64_t{1});
    QCOMPARE(d.histogram.decades[static_cast<std::size_t>(-1 - ErrorHistogram::lowest)], std::int64_t{1});
    QCOMPARE(d.histogram.decades[static_cast<std::size_t>(-3 - ErrorHistogram::lowest)], std::int64_t{1});
    QVERIFY(!d.cosine);
    const Difference turned = compare_values("", f32({2}, {1, 0}), f32({2}, {3, 4}), {});
    QVERIFY(std::abs(turned.cosine.value() - 0.6) < 1e-12);
    QVERIFY(QString::fromStdString(Report{"a", "b", {d}}.json()).contains("\"-3\": 1"));
    QCOMPARE(compare_values("", i64({2}, {1, 2}), i64({2}, {1, 12}), {}).histogram.equal, std::int64_t{1});
  }

  void report_is_worst_first() {
    Report r;
    r.expected_name = "interp";
    r.found_name = "cpu";
    r.rows.push_back(compare_values("small", f32({1}, {1}), f32({1}, {1.1}), {}));
    r.rows.push_back(compare_values("fine", f32({1}, {1}), f32({1}, {1}), {}));
    r.rows.push_back(compare_values("large", f32({1}, {1}), f32({1}, {9}), {}));
    r.left_out = {{"output.1", "beyond the limit"}};
    QCOMPARE(not_compared(std::array{r, r}), std::vector<std::string>{"output.1 is not compared: beyond the limit"});
    const QStringList lines = QString::fromStdString(r.text()).split('\n');
    QVERIFY(lines[0].startsWith("DIFFERS  large"));
    QVERIFY(lines[1].startsWith("DIFFERS  small"));
    QVERIFY(lines[2].startsWith("ok       fine"));
    QCOMPARE(lines[3], QString("cpu against interp: 3 compared, 2 differ"));
    QCOMPARE(lines[4], QString("first that differs: small"));
    QVERIFY(QString::fromStdString(r.json()).contains("\"first_that_differs\": \"small\""));
    const auto back = Report::from_json(r.json());
    QVERIFY2(back, back ? "" : back.error().line().c_str());
    QCOMPARE(back->text(), r.text());
    QCOMPARE(back->json(), r.json());  // includes cosine and histogram
    QVERIFY(back->rows[2].cosine && back->rows[0].histogram.decades[-1 - ErrorHistogram::lowest] == 1);
    for (const char* other : {"", "{}", "[1]", "{\"expected\": \"a\", \"found\": \"b\", \"rows\": [{}]}"})
      QCOMPARE(Report::from_json(other).error().code, std::string("compare.json"));
  }

  void graphs_are_compared_by_what_they_call() {
    const char* inputs = "x: <f32[4][1]>, y: <f32[4][1]>";
    const auto expected = fx(inputs, "a = $neg(x)\nb = $add.Tensor(a, y, alpha = 1)\nreturn (b, a)");
    const auto differences = [&](const char* lines) {
      std::string text;
      for (const std::string& line : call_differences(*expected, *fx(inputs, lines))) text += line + "\n";
      return text;
    };
    // Names, order and defaults do not matter.
    QCOMPARE(differences("q = $neg(x)\nr = $add.Tensor(q, y)\nreturn (r, q)"), std::string());
    QCOMPARE(differences("q = $neg(x)\nr = $add.Tensor(y, q)\nreturn (r, q)"),
             std::string("no call is b = torch.ops.aten.add.Tensor(a, y, alpha = 1)\n"
                         "output 0 is r, which is not what PyTorch's b is\n"));
    QCOMPARE(differences("q = $neg(x)\nr = $sub.Tensor(q, y)\nreturn (r, q)").substr(0, 38),
             std::string("aten.add.Tensor 0 times, 1 expected\nat"));
    QCOMPARE(differences("q = $neg(x)\nr = $add.Tensor(q, y)\nreturn (r,)"), std::string("1 outputs, 2 expected\n"));
  }
};

QTEST_GUILESS_MAIN(TestCompare)
#include "test_compare.moc"
