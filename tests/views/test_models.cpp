#include <QAbstractItemModelTester>
#include <QPainter>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QStyleOptionHeader>
#include <QTest>

#include "core/ir/print.h"
#include "tests/views/graphs.h"
#include "views/aot/aot_view.h"
#include "views/compare/compare_view.h"
#include "views/coverage/coverage_view.h"
#include "views/diff/diff_view.h"
#include "views/graph/budget_slider.h"
#include "views/inspector/inspector.h"
#include "views/listing/code_document.h"
#include "views/listing/fx_highlight.h"
#include "views/look/elided_label.h"
#include "views/look/format.h"
#include "views/look/style.h"
#include "views/passes/graph_diff.h"
#include "views/passes/passes_view.h"
#include "views/picture/sizes.h"
#include "views/run/run_view.h"
#include "views/session/artefact_tree.h"
#include "views/session/document.h"
#include "views/session/selection.h"
#include "views/table/table_panel.h"
#include "views/window/command_palette.h"

using namespace partita;
using namespace partita::views;

class TestModels : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tree_holds_files_groups_documents() {
    ArtefactTree tree;
    QAbstractItemModelTester tester(&tree, QAbstractItemModelTester::FailureReportingMode::QtTest);
    tree.add_file("/a.log", "a.log");
    tree.add_document("/a.log", {"0/0"}, "a#joint", "joint", "joint");
    tree.add_document("/a.log", {"0/0"}, "a#forward", "forward", "forward");
    tree.add_document("/a.log", {}, "a#text", "version", "text");
    tree.add_document("/a.log", {}, "a#made", "post-grad", "made", "a#forward");
    tree.add_file("/a.log", "again");  // already known
    QCOMPARE(tree.rowCount(), 1);
    QModelIndex file = tree.index(0, 0);
    QCOMPARE(tree.rowCount(file), 2);
    QModelIndex group = tree.index(0, 0, file);
    QCOMPARE(group.data().toString(), QString("0/0"));
    QCOMPARE(tree.rowCount(group), 2);
    QModelIndex made = tree.find("a#made");
    QCOMPARE(made.parent().data(ArtefactTree::KeyRole).toString(), QString("a#forward"));
    QVERIFY(!tree.find("nothing").isValid());
    tree.add_file("/b.py", "b.py");
    tree.remove_file("/a.log");
    QCOMPARE(tree.rowCount(), 1);
    QCOMPARE(tree.index(0, 0).data().toString(), QString("b.py"));
  }

  void texts_stand_below_a_heading_of_their_group() {
    ArtefactTree tree;
    QAbstractItemModelTester tester(&tree, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QModelIndex file = tree.add_file("/a.log", "a.log");
    tree.add_document("/a.log", {"0/0"}, "a#joint", "joint", "joint");
    tree.add_document("/a.log", {"0/0"}, "a#guards", "guards", "", {}, "texts");
    tree.add_document("/a.log", {"0/0"}, "a#code", "code", "", {}, "texts");
    tree.add_document("/a.log", {}, "a#version", "version", "", {}, "texts");
    QModelIndex group = tree.index(0, 0, file);
    QCOMPARE(tree.rowCount(group), 2);  // the graph and the heading
    QModelIndex heading = tree.find("a#guards").parent();
    QCOMPARE(heading.parent(), group);
    QCOMPARE(heading.data().toString(), QString("texts"));
    QCOMPARE(heading.siblingAtColumn(1).data().toString(), QString("2"));
    QVERIFY(heading.data(ArtefactTree::KeyRole).toString().isEmpty());
    QCOMPARE(tree.find("a#version").parent().parent(), file);
  }

  void overlays_show_what_is_known() {
    Picture picture = make_picture(tests::joint_graph(2));
    std::size_t gelu = static_cast<std::size_t>(picture.card_by_key("gelu"));
    std::size_t add = static_cast<std::size_t>(picture.card_by_key("add"));
    for (OverlayKind kind : {OverlayKind::Time, OverlayKind::Kernel, OverlayKind::Pass}) {
      Overlay none = make_overlay(kind, picture, {}, Theme::light());
      QVERIFY(none.legend.empty());
      QVERIFY(!none.colours[gelu].isValid());
    }
    views::Facts facts;
    facts["gelu"] = {.seconds = 2e-3, .kernel = "k0_gelu_add", .pass = "rewrite"};
    facts["add"] = {.seconds = 1e-6, .kernel = "k0_gelu_add"};
    Overlay time = make_overlay(OverlayKind::Time, picture, facts, Theme::light());
    QCOMPARE(time.texts[gelu], QString("2.00 ms"));
    QVERIFY(time.colours[gelu] != time.colours[add]);
    QVERIFY(time.ramp);  // from the least to the most, by powers of ten
    QCOMPARE(time.ramp->scale.low, 1e-6);
    QCOMPARE(time.ramp->scale.high, 2e-3);
    QCOMPARE(time.colours[add], sequential(0, Theme::light()));
    QCOMPARE(time.colours[gelu], sequential(1, Theme::light()));
    Overlay kernel = make_overlay(OverlayKind::Kernel, picture, facts, Theme::light());
    QCOMPARE(kernel.legend.size(), std::size_t{1});
    QCOMPARE(kernel.legend[0].text, QString("k0_gelu_add (2)"));
    QCOMPARE(kernel.colours[gelu], kernel.colours[add]);
    Overlay pass = make_overlay(OverlayKind::Pass, picture, facts, Theme::light());
    QCOMPARE(pass.texts[gelu], QString("rewrite"));
    QVERIFY(!pass.colours[add].isValid());
  }

  void error_heat_marks_wrong_values_and_nan() {
    Picture picture = make_picture(tests::joint_graph(3));
    auto card = [&](const char* name) { return static_cast<std::size_t>(picture.card_by_key(name)); };
    views::Facts facts;
    Difference off, fine, nan, exact;
    off.max_abs = 1e-2, off.values_agree = false;
    fine.max_abs = 1e-6;
    nan.nan_found = 1, nan.values_agree = false;
    note_error(facts["gelu"], off, {});
    note_error(facts["add"], fine, {});
    note_error(facts["gelu_1"], nan, {});
    note_error(facts["add_1"], exact, {});
    Difference after = off;
    after.inherited_from = "gelu";
    note_error(facts["addmm_1"], after, {});
    for (const Theme* theme : {&Theme::light(), &Theme::night()}) {
      Overlay heat = make_overlay(OverlayKind::Error, picture, facts, *theme);
      QCOMPARE(heat.marks[card("gelu")], '!');
      QCOMPARE(heat.marks[card("gelu_1")], 'N');
      QCOMPARE(heat.marks[card("addmm_1")], '>');
      QCOMPARE(heat.marks[card("add")], char(0));
      QCOMPARE(heat.colours[card("gelu_1")], nan_colour(*theme));
      QCOMPARE(heat.colours[card("gelu")], sequential(1, *theme));
      QCOMPARE(heat.colours[card("add_1")], diverging(0, *theme));  // what agrees does not alarm
      QCOMPARE(heat.colours[card("add")], heat.colours[card("add_1")]);
      QVERIFY(!heat.colours[card("addmm")].isValid());
      QVERIFY(heat.ramp);
      QCOMPARE(heat.ramp->mark, Tolerance{}.absolute);
      QStringList legend;
      for (const auto& entry : heat.legend) legend << entry.text;
      QCOMPARE(legend, (QStringList{"N: nan (1)", "!: over tolerance (2)", ">: after one that is (1)",
                                    "agrees (2), at most 1.0e-6"}));
    }
  }

  void the_worst_row_is_the_first() {
    Report report;
    for (auto [name, error] : {std::pair("fine", 1e-7), std::pair("small", 1e-3), std::pair("large", 0.5)}) {
      Difference d;
      d.name = name;
      d.max_abs = error;
      d.values_agree = error < 1e-5;
      report.rows.push_back(d);
    }
    QStringList order;
    std::vector<ComparedRow> keys;
    for (const Row& row : report_rows(report, {}, keys)) order << row.node;
    QCOMPARE(order, (QStringList{"large", "small", "fine"}));
  }

  void a_header_points_to_the_larger_values() {
    QStyleOptionHeader header;
    header.rect = QRect(0, 0, 16, 16);
    const auto arrow = [&](PlainStyle::PrimitiveElement element, QStyleOptionHeader::SortIndicator sorted) {
      QImage image(16, 16, QImage::Format_ARGB32);
      image.fill(Qt::white);
      QPainter painter(&image);
      header.sortIndicator = sorted;
      PlainStyle().drawPrimitive(element, &header, &painter, nullptr);
      return image;
    };
    // Qt calls ascending order "down".
    const QImage ascending = arrow(QStyle::PE_IndicatorHeaderArrow, QStyleOptionHeader::SortDown);
    const QImage descending = arrow(QStyle::PE_IndicatorHeaderArrow, QStyleOptionHeader::SortUp);
    QVERIFY(ascending != descending);
    QCOMPARE(ascending, arrow(QStyle::PE_IndicatorArrowUp, QStyleOptionHeader::None));
    QCOMPARE(descending, arrow(QStyle::PE_IndicatorArrowDown, QStyleOptionHeader::None));
  }

  void a_label_leaves_out_whole_clauses() {
    ElidedLabel label(Qt::ElideRight, true);
    label.setText("budget 100 %: 224 KiB, 3 MiB less");
    const auto shown = [&](const QString& text) {
      label.resize(label.fontMetrics().horizontalAdvance(text) + 1, 20);
      const QImage cut = label.grab().toImage();
      ElidedLabel whole;
      whole.setText(text);
      whole.resize(label.size());
      return cut == whole.grab().toImage();
    };
    QVERIFY(shown("budget 100 %: 224 KiB, 3 MiB less"));
    QVERIFY(shown("budget 100 %: 224 KiB"));
    QVERIFY(shown("budget 100 %"));
  }

  void paths_are_elided_in_code() {
    auto graph = tests::joint_graph(1);
    CodeDocument code("        # File: /home/user/lib/models/gpt2.py:7 in forward, code: x = a / b\n        y = x\n",
                      graph.get());
    QCOMPARE(code.shown_line(0), QString::fromUtf8("    # File: …/gpt2.py:7 in forward, code: x = a / b"));
    QCOMPARE(code.shown_line(1), QString("    y = x"));
    QVERIFY(code.line(0).contains(u"/home/user"));  // what is copied and searched
    QCOMPARE(CodeDocument("  /a/b.py:1", nullptr).shown_line(0), QString("  /a/b.py:1"));
  }

  void unknown_sizes_are_expressions() {
    auto graph = tests::joint_graph(2);
    const SymExpr batch = SymExpr::symbol("s0");
    for (Node* node : *graph)
      if (node->name() == "addmm" || node->name() == "gelu")
        node->meta = TensorMeta::contiguous(DType::Float32, {batch, SymExpr(64)});
    CutSummary cut;
    cut.saved = {{"addmm", 1 << 30, false, false, {}}, {"add", 2048, false, false, {}}};
    PictureOptions options;
    options.cut = &cut;
    Picture picture = make_picture(graph, options);
    QCOMPARE(size_text(picture.unknown.saved), QString("256*s0 + 2048 B"));
    QCOMPARE(size_text(picture.saved[0], picture.unknown), QString("256*s0 B"));
    QCOMPARE(size_text(picture.saved[1], picture.unknown), QString("2.00 KiB"));
    QCOMPARE(saved_rows(cut, picture.unknown)[0].cells[1].text, QString("256*s0 B"));
    options.folded = {"blocks/blocks.0#0"};
    const Picture folded = make_picture(graph, options);
    const int block = folded.card_by_key("frame:blocks/blocks.0#0");
    QVERIFY(block >= 0);
    QCOMPARE(size_text(folded.cards[block].bytes), QString("512*s0 + 18432 B"));
    QCOMPARE(folded.cards[block].detail, std::string("4 nodes, 512*s0 + 18432 B"));
    graph->shapes->set_hint("s0", 8);
    QCOMPARE(size_text(graph->find("addmm")->meta, graph->shapes.get()), QString("2.00 KiB"));
    std::vector<BudgetPoint> curve(2);
    curve[0] = {0, 1000, 0}, curve[1] = {1, 4000, 0};
    curve[0].recomputed_operations = batch * SymExpr(64);
    QCOMPARE(budget_text(curve, 0, false),
             QString("budget 0 %: 25 % of the bytes, sizes not known, 64*s0 operations more"));
    curve[0].activation_bytes = curve[1].activation_bytes = 0;
    QCOMPARE(budget_text(curve, 1, false), QString("budget 100 %: 0 B"));
  }

  void writes_and_views_of_inputs_are_shown() {
    auto graph = std::make_shared<Graph>("forward");
    Node* x = graph->placeholder("x", tests::f32(8, 64));
    const auto call = [&](const char* op, Args args) {
      Node* node = graph->create(Op::torch(op), std::move(args));
      node->meta = tests::f32(8, 64);
      return node;
    };
    Node* view = call("aten.alias.default", {x});
    Node* sum = call("aten.add.Tensor", {x, 1});
    call("aten.copy_.default", {view, sum});
    graph->set_output(Arg::list({view, sum}));
    const Picture picture = make_picture(graph);
    const auto detail = [&](const char* name) { return picture.cards[picture.card_by_key(name)].detail; };
    QCOMPARE(detail("x"), std::string("f32[8, 64]  written"));
    QCOMPARE(detail("alias"), std::string("view of x"));
    QCOMPARE(detail("add"), std::string("f32[8, 64]"));
    Document document;
    document.graph = graph;
    document.scene = make_scene(graph, {});
    const auto row = [&](const Node& node, const char* name) {
      for (const auto& [key, html] : account_of(document, node, nullptr).rows)
        if (key == name) return QString(html).remove(QRegularExpression("<[^>]*>"));
      return QString();
    };
    QCOMPARE(row(*x, "written by"), QString("copy_"));
    QCOMPARE(row(*x, "views"), QString("alias"));
    QCOMPARE(row(*view, "view of"), QString("x"));
    QVERIFY(row(*sum, "view of").isEmpty() && row(*sum, "written by").isEmpty());
  }

  void modules_are_told_apart() {
    // The only child of the root holds everything; the layers inside it are what differs.
    auto graph = tests::joint_graph(20);
    for (Node* node : *graph) {
      if (!node->origin) continue;
      auto origin = std::make_shared<Origin>(*node->origin);
      origin->modules = "m." + origin->modules;
      node->origin = origin;
    }
    Picture picture = make_picture(graph);
    Overlay modules = make_overlay(OverlayKind::Module, picture, {}, Theme::light());
    auto card = [&](const char* name) { return static_cast<std::size_t>(picture.card_by_key(name)); };
    QCOMPARE(modules.texts[card("gelu")], QString("blocks.0"));
    QCOMPARE(modules.texts[card("gelu_7")], QString("blocks.7"));
    QVERIFY(modules.colours[card("gelu")] != modules.colours[card("gelu_1")]);
  }

  void ramps_keep_their_order_without_colour() {
    for (const Theme* theme : {&Theme::light(), &Theme::night()}) {
      double before = -1;
      for (int k = 0; k <= 10; ++k) {
        QColor c = sequential(k / 10.0, *theme);
        double luminance = 0.2126 * c.redF() + 0.7152 * c.greenF() + 0.0722 * c.blueF();
        if (k > 0) QVERIFY(theme->dark ? luminance > before : luminance < before);
        before = luminance;
      }
    }
    LogScale scale = LogScale::of({0, -1, NAN, 1e-7, 1e-3, INFINITY});
    QCOMPARE(scale.low, 1e-7);
    QCOMPARE(scale.high, 1e-3);
    QVERIFY(std::abs(scale.at(1e-5) - 0.5) < 1e-9);
    QCOMPARE(scale.at(0), 0.0);
    QCOMPARE(scale.at(INFINITY), 1.0);
    QCOMPARE(scale.ticks(8).size(), std::size_t{5});
    QVERIFY(scale.ticks(2).size() <= 3);
    QVERIFY(LogScale::of({0, 0}).empty());
  }

  void nodes_know_the_pass_that_changed_them() {
    auto before = tests::joint_graph(2);
    auto after = std::shared_ptr<Graph>(before->clone());
    Node* gelu = after->find("gelu");
    Node* relu = after->create(Op::torch("aten.relu.default"), {gelu}, {}, "relu", gelu->next());
    relu->meta = gelu->meta;
    after->find("add")->replace_input(gelu, relu);
    PassHistory history;
    history.steps.push_back({.name = "before", .graph = before});
    history.steps.push_back({.name = "quiet", .graph = before});
    history.steps.push_back({.name = "loud", .graph = after});
    history.steps.back().diff = std::make_shared<GraphDiff>(diff(*before, *after));
    auto will = pass_of_nodes(history, 0);
    QCOMPARE(will.at("add"), std::string("loud"));
    QVERIFY(!will.contains("relu"));  // it does not exist yet
    QVERIFY(pass_of_nodes(history, 1).empty());
    QCOMPARE(pass_of_nodes(history, 2).at("relu"), std::string("loud"));
  }

  void budgets_are_said_against_the_largest() {
    std::vector<BudgetPoint> curve{{0, 0, 250'000}, {0.5, 1024, 3000}, {1, 4096, 1000}};
    QCOMPARE(budget_text({}, 0.5), QString("budget 50 %"));
    QCOMPARE(budget_text(curve, 1), QString("budget 100 %: 4.00 KiB"));
    QCOMPARE(budget_text(curve, 0.5), QString("budget 50 %: 1.00 KiB, 3.00 KiB less, 2 k operations more"));
    QCOMPARE(budget_text(curve, 0), QString("budget 0 %: 0 B, 4.00 KiB less, 249 k operations more"));
  }

  void the_slider_emits_once_after_a_drag() {
    BudgetSlider slider;
    QSignalSpy chosen(&slider, &BudgetSlider::budget_chosen);
    slider.set_budget(0.3);
    QCOMPARE(slider.budget(), 0.3);
    for (int i = 0; i < 4; ++i) QTest::keyClick(&slider, Qt::Key_Right);
    QCOMPARE(chosen.count(), 0);
    QVERIFY(chosen.wait(5000));
    QCOMPARE(chosen.count(), 1);
    QCOMPARE(chosen[0][0].toDouble(), 0.7);
    slider.set_budget(1);
    QTest::qWait(300);
    QCOMPARE(chosen.count(), 1);  // changes made by the program emit no signal
  }

  void selection_walks_back_and_forth() {
    Selection selection;
    QSignalSpy changed(&selection, &Selection::changed);
    selection.select({"a", "x"});
    selection.select_node("y");
    selection.select_node("y");  // no change
    selection.select({"b", "z"});
    QCOMPARE(changed.count(), 3);
    selection.back();
    QCOMPARE(selection.spot(), (Spot{"a", "y"}));
    selection.back();
    QVERIFY(!selection.can_go_back());
    selection.forward();
    QCOMPARE(selection.spot().node, QString("y"));
    selection.select_node("w");  // the forward history is dropped
    QVERIFY(!selection.can_go_forward());
    selection.back();
    QCOMPARE(selection.spot().node, QString("y"));
  }

  void table_sorts_and_copies() {
    TableModel model({"name", "error"});
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.set_rows({{"a", {Cell("a|b"), Cell("1.0e-6", 1e-6)}}, {"c", {Cell("c\td"), Cell("2.0e-3", 2e-3)}}});
    QCOMPARE(model.index(1, 1).data(TableModel::SortRole).toDouble(), 2e-3);
    QCOMPARE(model.index(0, 0).data(TableModel::NodeRole).toString(), QString("a"));
    std::vector<const Row*> rows{&model.rows()[1], &model.rows()[0]};
    QCOMPARE(as_tsv(model.columns(), rows), QString("name\terror\nc d\t2.0e-3\na|b\t1.0e-6\n"));
    QCOMPARE(as_markdown(model.columns(), rows),
             QString("| name | error |\n|---|---|\n| c\td | 2.0e-3 |\n| a\\|b | 1.0e-6 |\n"));
  }

  void the_cells_of_passes_stand_under_their_headings() {
    PassStep before, checked, skipped;
    before.name = "before";
    checked.name = "fuse";
    checked.nodes_before = 7;
    checked.nodes_after = 5;
    checked.seconds = 2e-3;
    skipped = checked;
    skipped.disabled = true;
    for (const bool numbers : {false, true}) {
      if (numbers) checked.off_by = 1e-6;
      const PassTable table = pass_table({{before, checked, skipped}});
      const auto cell = [&](int row, const char* column) -> const Cell& {
        const qsizetype at = table.columns.indexOf(column);
        return table.rows[static_cast<std::size_t>(row)].cells[static_cast<std::size_t>(at)];
      };
      for (const Row& row : table.rows) QCOMPARE(static_cast<qsizetype>(row.cells.size()), table.columns.size());
      QCOMPARE(table.columns.contains("Numbers"), numbers);
      QCOMPARE(cell(2, "#").text, QString("2"));
      QCOMPARE(cell(1, "Pass").text, QString("fuse"));
      QCOMPARE(cell(1, "Nodes").text, QString("7 → 5"));
      QCOMPARE(cell(1, "Nodes").number, 5.0);
      QCOMPARE(cell(1, "Time").text, seconds_text(2e-3));
      QCOMPARE(cell(2, "Changed").text, QString("skipped"));
      if (numbers) QCOMPARE(cell(1, "Numbers").text, error_text(1e-6));
    }
  }

  void tables_sort_numbers_as_numbers_and_keep_their_order() {
    TablePanel table({"what"});
    const auto rows = [](std::initializer_list<Cell> cells) {
      std::vector<Row> out;
      for (const Cell& cell : cells) out.push_back({cell.text, {cell}});
      return out;
    };
    const auto order = [&] {
      QStringList shown;
      for (const Row* row : table.shown_rows()) shown << row->cells[0].text;
      return shown;
    };
    table.set_rows(rows({Cell("k10"), Cell("9 ms", 9e-3), Cell(), Cell("k9"), Cell("1 s", 1.0)}));
    table.sort_by(0, Qt::AscendingOrder);
    QCOMPARE(order(), (QStringList{"9 ms", "1 s", "k9", "k10", ""}));
    table.sort_by(0, Qt::DescendingOrder);
    QCOMPARE(order(), (QStringList{"k10", "k9", "1 s", "9 ms", ""}));
    // Other rows: the order and the chosen one stay, until another node is chosen that has no row.
    table.select_node("k9");
    table.set_rows(rows({Cell("k8"), Cell("k9"), Cell("k10")}));
    QCOMPARE(order(), (QStringList{"k10", "k9", "k8"}));
    QCOMPARE(table.current_node(), QString("k9"));
    table.select_node("elsewhere");
    QCOMPARE(table.current_node(), QString());
  }

  void results_and_files_come_by_the_numbers_in_their_names() {
    CompilerRun result;
    for (const char* name : {"grad.input.0", "output.10", "output.2", "output.1"})
      result.results.tensors[name] = *Tensor::zeros(DType::Float32, {1});
    QStringList names;
    for (const Row& row : result_rows(result)) names << row.cells[0].text;
    QCOMPARE(names, (QStringList{"grad.input.0", "output.1", "output.2", "output.10"}));
    DiffView diff;
    diff.set_files({"/logs/rank_10.log", "/logs/rank_2.log"});
    QCOMPARE(diff.chosen_files(), (QStringList{"/logs/rank_2.log", "/logs/rank_10.log"}));
  }

  void modules_stay_folded_when_the_cut_makes_new_pieces_of_them() {
    const auto frame = [](const char* path, const char* key, Side side, bool folded) {
      return Frame{.path = path, .key = key, .label = "", .side = side, .folded = folded};
    };
    Picture before, now;
    before.frames = {frame("a", "a#0", Side::Forward, false), frame("a", "a|b#0", Side::Backward, true),
                     frame("b", "b|b#0", Side::Backward, true), frame("c", "c|b#0", Side::Backward, false)};
    now.frames = {frame("a", "a#1", Side::Forward, false),        frame("a", "a|b#0", Side::Backward, false),
                  frame("a", "a|b#1", Side::Backward, false),     frame("c", "c|b#1", Side::Backward, false),
                  frame("new", "new|b#0", Side::Backward, false), frame("new", "new#0", Side::Forward, false)};
    const auto folded = carried_folds({"a|b#0"}, before, now);
    QCOMPARE(folded, (std::unordered_set<std::string>{"a|b#0", "a|b#1", "new|b#0"}));
    // A frame that comes out of a folded one that is gone stays folded; within one that is still there it is as it was.
    before.frames = {frame("block", "block|b#0", Side::Backward, true), frame("in", "in|b#0", Side::Backward, false)};
    before.frames[1].parent = 0;
    now.frames = {before.frames[1]};
    now.frames[0].parent = -1;
    QCOMPARE(carried_folds({"block|b#0"}, before, now).count("in|b#0"), std::size_t{1});
    QCOMPARE(carried_folds({"block|b#0"}, before, before).count("in|b#0"), std::size_t{0});
  }

  void report_is_worst_first() {
    Report report;
    Difference fine, off, shape;
    fine.name = "fine";
    fine.max_abs = 0.5;  // still within the tolerance
    off.name = "off";
    off.values_agree = false;
    off.max_abs = 1e-3;
    off.wrong = 3;
    off.numel = 8;
    shape.name = "shape";
    shape.layout = {"dtype: float32 expected, float64 found"};
    report.rows = {fine, off, shape};
    std::vector<ComparedRow> keys;
    std::vector<Row> rows = report_rows(report, {}, keys);
    QCOMPARE(rows[0].node, QString("shape"));
    QCOMPARE(rows[1].node, QString("off"));
    QCOMPARE(rows[2].node, QString("fine"));
    QCOMPARE(rows[1].cells[0].text, QString("differs"));
    QCOMPARE(rows[1].cells[5].text, QString("3 / 8"));
    QCOMPARE(rows[0].cells[7].text, QString("dtype: float32 expected, float64 found"));
  }

  void code_knows_where_nodes_are() {
    auto graph = tests::joint_graph(3);
    CodeDocument code(QString::fromStdString(print(*graph)), graph.get());
    int found = 0;
    for (const Node* node : *graph) found += code.line_of(QString::fromStdString(node->name())) >= 0;
    QCOMPARE(found, static_cast<int>(graph->size()));
    int line = code.line_of("gelu_1");
    QVERIFY(code.line(line).contains(QString("gelu_1:")));
    QCOMPARE(code.node_at(line), QString("gelu_1"));
    QCOMPARE(code.node_at(0), QString());
    QCOMPARE(code.find("GELU_1:", line), line);
    QCOMPARE(code.find("gelu_1:", line + 1), line);  // wraps around the end
    QCOMPARE(code.find("no such text", 0), -1);
    // Names are coloured as their cards are, where that can be read.
    QCOMPARE(code.family_at(line), std::optional(family_of(graph->find("gelu_1")->op())));
    QVERIFY(!code.family_at(0) && !code.family_at(code.line_of("primals_1")) && !code.family_at(-1));
    for (const Theme* theme : {&Theme::light(), &Theme::night()})
      for (int f = 0; f <= static_cast<int>(Family::Other); ++f) {
        const QColor name = readable_on(theme->paper, theme->family(static_cast<Family>(f)), theme->ink);
        QVERIFY2(contrast(name, theme->paper) >= 4.5, qPrintable(name.name()));
      }
    CodeDocument plain("one\ntwo\n", nullptr);
    QCOMPARE(plain.line_count(), 2);
    QCOMPARE(plain.line(1).toString(), QString("two"));
  }

  void highlights_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("tokens");  // one letter per token
    QTest::newRow("statement") << "  relu: \"f32[2]\" = torch.ops.aten.relu.default(x)" << "NA";
    QTest::newRow("numbers") << "add = f(x, 1e-05, -2, None)" << "N##K";
    QTest::newRow("comment") << "    # File: a.py:3 in f, code: x = 'y'" << "C";
    QTest::newRow("deletion") << "t = g('s');  x = y = None" << "NSD";
    QTest::newRow("return") << "return (a, b)" << "K";
    QTest::newRow("unfinished") << "x = 'abc" << "NS";
  }
  void highlights() {
    QFETCH(QString, line);
    QFETCH(QString, tokens);
    QString seen;
    int end = 0;
    for (const TokenSpan& span : highlight_fx(line)) {
      QVERIFY(span.begin >= end && span.begin + span.length <= line.size());
      end = span.begin + span.length;
      seen += QString("PKS#CAND")[static_cast<int>(span.token)];
    }
    QCOMPARE(seen, tokens);
  }

  void diff_tells_what_a_pass_did() {
    auto before = tests::joint_graph(3);
    auto after = before->clone();
    Node* gelu = after->find("gelu_1");
    Node* relu = after->create(Op::torch("aten.relu.default"), {gelu}, {}, "relu", gelu->next());
    relu->meta = gelu->meta;
    after->find("add_1")->replace_input(gelu, relu);
    Node* dead = after->create(Op::torch("aten.neg.default"), {gelu}, {}, "neg", gelu->next());
    dead->meta = gelu->meta;
    after->erase(dead);
    GraphDiff d = diff(*before, *after, 1);
    QCOMPARE(d.added, 1);
    QCOMPARE(d.removed, 0);
    QCOMPARE(d.changed, 1);
    QCOMPARE(d.marks.at("relu"), Change::Added);
    QCOMPARE(d.marks.at("add_1"), Change::Changed);
    QStringList changes;
    for (const DiffLine& line : d.lines)
      if (line.change != Change::None)
        changes << QString("%1 %2").arg(static_cast<int>(line.change)).arg(QString::fromStdString(line.node));
    QCOMPARE(changes, (QStringList{"1 relu", "3 add_1", "2 add_1"}));
    GraphDiff back = diff(*after, *before, 0);
    QCOMPARE(back.removed, 1);
    QCOMPARE(diff(*before, *before).lines.size(), std::size_t{1});  // "# n unchanged statements"
  }

  void numbers_are_formatted() {
    QCOMPARE(bytes_text(0), QString("0 B"));
    QCOMPARE(file_name_of("joint (inner_f)"), QString("joint_inner_f"));
    QCOMPARE(file_name_of("exported program / joint, made here"), QString("exported_program_joint_made_here"));
    QCOMPARE(bytes_text(1023), QString("1023 B"));
    QCOMPARE(bytes_text(10445), QString("10.2 KiB"));
    QCOMPARE(bytes_text(-2048), QString("-2.00 KiB"));
    QCOMPARE(bytes_text(3'565'158), QString("3.40 MiB"));
    QCOMPARE(seconds_text(0.00123), QString("1.23 ms"));
    QCOMPARE(seconds_text(0.81), QString("810 ms"));
    QCOMPARE(seconds_text(12.34), QString("12.3 s"));
    QCOMPARE(error_text(3.14e-6), QString("3.1e-6"));
    QCOMPARE(error_text(9.99e-6), QString("1.0e-5"));
    QCOMPARE(error_text(0), QString("0"));
    QCOMPARE(error_text(NAN), QString("nan"));
    QCOMPARE(count_text(1, "node"), QString("1 node"));
    QCOMPARE(count_text(2, "entry", "entries"), QString("2 entries"));
  }

  void coverage_tells_what_records_have() {
    const std::vector<Row> rows = coverage_rows();
    const auto row =
        std::ranges::find(rows, QString("aten.addmm.default"), [](const Row& r) { return r.cells[0].text; });
    QVERIFY(row != rows.end());
    QStringList cells;
    for (const Cell& cell : row->cells) cells << cell.text;
    QCOMPARE(cells, (QStringList{"aten.addmm.default", "matmul", "own", "own", "", "", "own", "library", "expensive"}));
  }

  void a_picture_that_fits_stays_in_the_middle() {
    auto graph = std::make_shared<Graph>();
    Node* x = graph->placeholder("primals_1", TensorMeta::contiguous(DType::Float32, {SymExpr::symbol("s0"), 4}));
    Node* y = graph->create(Op::torch("aten.exp.default"), {x}, {}, "exp");
    Node* z = graph->create(Op::torch("aten.sin.default"), {y}, {}, "sin");
    y->meta = z->meta = x->meta;
    graph->set_output(Arg::list({z, x}));
    GraphView view;
    view.show();
    view.set_scene(make_scene(graph, {}));
    for (int width = 120; width < 300; width += 10) {
      view.resize(width, 500);
      QCOMPARE(view.cards_in_view().size(), view.scene()->picture.cards.size());
    }
  }

  void palette_finds_by_letters() {
    QVERIFY(fuzzy_score("fit", "View: Fit the picture") > fuzzy_score("fit", "File: Quit the window"));
    QCOMPARE(fuzzy_score("xyz", "Open file"), -1);
    QVERIFY(fuzzy_score("of", "Open file") > 0);
  }
};

QTEST_MAIN(TestModels)
#include "test_models.moc"
