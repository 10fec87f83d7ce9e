// Makes the history of a pipeline run: for each step a scene beside the one before, removed cards and a text diff;
// rewrites are added on demand. Then the table's columns, and the widget that steps through.
#include "views/passes/passes_view.h"

#include <QKeyEvent>
#include <QSlider>
#include <algorithm>

#include "core/ir/print.h"
#include "views/look/arrange.h"
#include "views/look/elided_label.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

QString summary(const PassStep& step) {
  if (!step.wrong.isEmpty()) return "wrong numbers";
  if (step.disabled) return "skipped";
  if (!step.diff) return step.changed && !step.rewrite ? "changed" : "";
  QStringList parts;
  if (step.diff->added) parts << QString("+%1").arg(step.diff->added);
  if (step.diff->removed) parts << QString("−%1").arg(step.diff->removed);
  if (step.diff->changed) parts << QString("~%1").arg(step.diff->changed);
  return parts.isEmpty() ? "order" : parts.join("  ");
}

Cell numbers_cell(const PassStep& step, int) {
  if (!step.wrong.isEmpty()) return {"wrong", INFINITY, Tone::Bad};
  if (!step.off_by) return {};
  return {*step.off_by == 0 ? "equal" : error_text(*step.off_by), *step.off_by, Tone::Good};
}

Tone tone_of(const PassStep& step) {
  return step.changed && !step.rewrite ? Tone::Plain : Tone::Dim;
}

Cell nodes_cell(const PassStep& step, int number) {
  const auto nodes = [](std::size_t count, const QString& words, Tone tone) {
    return Cell(words, static_cast<double>(count), tone);
  };
  if (number == 0) {
    const std::size_t count = step.graph ? step.graph->size() : 0;
    return nodes(count, QString::number(count), Tone::Dim);
  }
  if (step.rewrite && !step.graph) return {};
  if (step.nodes_before == step.nodes_after)
    return nodes(step.nodes_after, QString::number(step.nodes_after), Tone::Dim);
  return nodes(step.nodes_after, QString("%1 → %2").arg(step.nodes_before).arg(step.nodes_after), Tone::Plain);
}

/// A column with its cells, so that a heading cannot stand above other cells. `number`: of the pass; 0 before the
/// first.
struct PassColumn {
  const char* title;
  bool only_checked;  ///< is shown when it is known how far each pass moved the results
  Cell (*cell)(const PassStep& step, int number);
};
constexpr PassColumn kColumns[] = {
    {QT_TRANSLATE_NOOP("QObject", "#"), false,
     [](const PassStep& step, int number) {
       return step.rewrite ? Cell(QString(), number, Tone::Dim) : Cell(QString::number(number), number, Tone::Dim);
     }},
    {QT_TRANSLATE_NOOP("QObject", "Pass"), false,
     [](const PassStep& step, int) { return Cell(step.rewrite ? "    " + step.name : step.name, tone_of(step)); }},
    {QT_TRANSLATE_NOOP("QObject", "Changed"), false,
     [](const PassStep& step, int) {
       return Cell(summary(step), !step.wrong.isEmpty() ? Tone::Bad : step.changed ? Tone::Warn : Tone::Dim);
     }},
    {QT_TRANSLATE_NOOP("QObject", "Numbers"), true, numbers_cell},
    {QT_TRANSLATE_NOOP("QObject", "Nodes"), false, nodes_cell},
    {QT_TRANSLATE_NOOP("QObject", "Time"), false,
     [](const PassStep& step, int number) {
       return number == 0 || step.rewrite ? Cell() : Cell(seconds_text(step.seconds), step.seconds, tone_of(step));
     }},
};

std::shared_ptr<const CodeDocument> code_of(const Graph& graph) {
  return std::make_shared<const CodeDocument>(QString::fromStdString(print(graph)), &graph);
}

/// Fills in what a step shows of its graph, beside the step before it.
void draw(PassStep& step, const PassStep& last, const PictureOptions& options) {
  const Scene& old = *last.scene;
  step.scene = make_scene(step.graph, options, &old);
  for (std::size_t i = 0; i < old.picture.cards.size(); ++i)
    if (step.scene->picture.card_by_key(old.picture.cards[i].key) < 0)
      step.removed.push_back({old.layout.boxes[i], text(old.picture.cards[i].title)});
  step.code = code_of(*step.graph);
  auto difference = std::make_shared<GraphDiff>(diff(*last.graph, *step.graph));
  QString listing;
  for (const DiffLine& line : difference->lines) {
    listing += text(line.text) + '\n';
    step.line_changes.push_back(line.change);
  }
  step.listing = std::make_shared<CodeDocument>(listing, step.graph.get());
  step.diff = std::move(difference);
}

}  // namespace

PassHistory make_history(const PipelineRun& run, const TextWidth& text_width,
                         const std::unordered_set<std::string>& folded) {
  PictureOptions options;
  options.text_width = text_width;
  options.folded = folded;
  PassHistory history;
  PassStep first;
  first.name = "before";
  first.graph = run.before;
  first.scene = make_scene(first.graph, options);
  first.code = code_of(*first.graph);
  history.steps.push_back(first);
  for (const PassRun& pass : run.passes) {
    PassStep step;
    step.name = text(pass.name);
    step.stage = text(row_of(pass.stage).passes);
    step.seconds = pass.milliseconds / 1e3;
    step.nodes_before = pass.nodes_before;
    step.nodes_after = pass.nodes_after;
    step.changed = pass.changed;
    step.disabled = pass.disabled;
    step.rewrites = pass.rewrites;
    step.graph = pass.after;
    step.scene = history.steps.back().scene;
    step.code = history.steps.back().code;
    if (pass.changed && pass.after) draw(step, history.steps.back(), options);
    history.steps.push_back(std::move(step));
  }
  return history;
}

void add_rewrites(PassHistory& history, int at) {
  const PassStep& own = history.steps[static_cast<std::size_t>(at)];
  std::vector<PassStep> steps;
  for (std::size_t i = 0; i < own.rewrites.size(); ++i) {
    const RewriteStep& rewrite = own.rewrites[i];
    PassStep& step = steps.emplace_back();
    step.name = QString("%1  %2 at %3").arg(i + 1).arg(text(rewrite.rule), text(rewrite.node));
    step.stage = own.stage;
    step.rewrite = step.changed = true;
  }
  history.steps.insert(history.steps.begin() + at + 1, std::make_move_iterator(steps.begin()),
                       std::make_move_iterator(steps.end()));
}

int pass_step(const PassHistory& history, int step) {
  while (history.steps[static_cast<std::size_t>(step)].rewrite) --step;
  return step;
}

Status draw_rewrite(PassHistory& history, int at, const Pass& pass, const TextWidth& text_width,
                    const std::unordered_set<std::string>& folded, const Progress& progress) {
  PictureOptions options;
  options.text_width = text_width;
  options.folded = folded;
  const int own = pass_step(history, at);
  const PassStep& before = history.steps[static_cast<std::size_t>(pass_step(history, own - 1))];
  const auto drawn = [&](int step, const PassStep& last) -> Status {
    PassStep& rewrite = history.steps[static_cast<std::size_t>(step)];
    if (rewrite.scene) return {};
    TRY_DO(partita::step(&progress, -1, rewrite.name.toStdString()));
    TRY(rewrite.graph, after_rewrites(*before.graph, pass, PassContext(), static_cast<std::size_t>(step - own)));
    rewrite.nodes_before = last.graph->size();
    rewrite.nodes_after = rewrite.graph->size();
    draw(rewrite, last, options);
    return {};
  };
  if (at == own + 1) return drawn(at, before);
  // A step that was jumped to has the graph before the pass beside it, until it is shown itself.
  PassStep& previous = history.steps[static_cast<std::size_t>(at - 1)];
  TRY_DO(drawn(at - 1, before));
  return drawn(at, previous);
}

bool drop_rewrites(PassHistory& history, int step) {
  const auto first = history.steps.begin() + step + 1;
  const auto last = std::find_if(first, history.steps.end(), [](const PassStep& s) { return !s.rewrite; });
  if (first == last) return false;
  history.steps.erase(first, last);
  return true;
}

std::unordered_map<std::string, std::string> pass_of_nodes(const PassHistory& history, int step) {
  std::unordered_map<std::string, std::string> passes;
  if (step == 0) {
    for (const PassStep& later : history.steps)
      if (later.diff && !later.rewrite)
        for (const DiffLine& line : later.diff->lines)
          if (line.change == Change::Removed || line.change == Change::Changed)
            passes.try_emplace(line.node, later.name.toStdString());
    return passes;
  }
  for (int i = 1; i <= step; ++i)
    if (const PassStep& made = history.steps[static_cast<std::size_t>(i)]; made.diff && !made.rewrite)
      for (const auto& [node, change] : made.diff->marks) passes[node] = made.name.toStdString();
  return passes;
}

PassTable pass_table(const PassHistory& history) {
  const bool checked = std::ranges::any_of(
      history.steps, [](const PassStep& step) { return step.off_by.has_value() || !step.wrong.isEmpty(); });
  PassTable table;
  for (const PassColumn& column : kColumns)
    if (checked || !column.only_checked) table.columns << QObject::tr(column.title);
  int number = 0;
  for (const PassStep& step : history.steps) {
    if (!table.rows.empty() && !step.rewrite) ++number;
    Row& row = table.rows.emplace_back();
    for (const PassColumn& column : kColumns)
      if (checked || !column.only_checked) row.cells.push_back(column.cell(step, number));
  }
  return table;
}

PassesView::PassesView(QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout, 12);
  auto* more =
      menu_button(tr("This pass ▾"), tr("Look into the chosen pass, or try the graph without it or in another order"));
  changes_ = more->menu();
  connect(changes_, &QMenu::aboutToShow, this, &PassesView::offer_changes);
  add_all(bar, {button_of(tr("Run passes"), this, &PassesView::run_asked),
                button_of(tr("Check numbers"), this, &PassesView::check_asked,
                          tr("Run the passes and compute the graph before and after each")),
                more});
  slider_ = new QSlider(Qt::Horizontal);
  slider_->setPageStep(1);
  slider_->setAccessibleName(tr("Pass"));
  slider_->setEnabled(false);
  bar->addWidget(slider_, 2);
  title_ = new ElidedLabel;
  title_->setText(tr("Each pass of this graph's stage, one step at a time"));
  bar->addWidget(title_, 3);
  list_ = new TablePanel(pass_table({}).columns);
  text_ = new CodeView;
  layout->addWidget(split_of({list_, text_}, {460, 640}), 1);
  connect(slider_, &QSlider::valueChanged, this, &PassesView::go_to);
  connect(list_, &TablePanel::row_chosen, this, &PassesView::go_to);
  connect(text_, &CodeView::node_chosen, this, &PassesView::node_chosen);
}

void PassesView::set_history(std::shared_ptr<const PassHistory> history, int step) {
  history_ = std::move(history);
  step_ = -1;
  PassTable table = pass_table(history_ ? *history_ : PassHistory());
  const int count = static_cast<int>(table.rows.size());
  if (list_->model()->columns() != table.columns) list_->model()->set_columns(table.columns);
  list_->set_rows(std::move(table.rows));
  slider_->setRange(0, std::max(0, count - 1));
  slider_->setEnabled(count > 1);
  text_->set_document(nullptr);
  if (count == 0) return title_->setText(tr("Each pass of this graph's stage, one step at a time"));
  if (step >= 0) return go_to(step);
  // Begins at the first pass that did something.
  int first = 0;
  while (first + 1 < count && !history_->steps[first].changed) ++first;
  go_to(history_->steps[first].changed ? first : 0);
}

void PassesView::go_to(int step) {
  if (!history_ || step == step_ || step < 0 || step >= static_cast<int>(history_->steps.size())) return;
  step_ = step;
  const PassStep& chosen = history_->steps[step];
  QSignalBlocker quiet(slider_);
  slider_->setValue(step);
  list_->set_current_row(step);
  text_->set_document(chosen.listing);
  text_->set_line_changes(chosen.line_changes);
  const auto is_pass = [](const PassStep& s) { return !s.rewrite; };
  const auto begin = history_->steps.begin() + 1, here = history_->steps.begin() + step;
  const auto last = std::count_if(begin, history_->steps.end(), is_pass);
  if (step == 0)
    title_->setText(tr("before the first of %1 passes").arg(last));
  else if (chosen.rewrite)
    title_->setText(tr("rewrite %1  %2").arg(chosen.name, summary(chosen)));
  else
    title_->setText(tr("%1/%2  %3  %4  %5")
                        .arg(std::count_if(begin, here + 1, is_pass))
                        .arg(last)
                        .arg(chosen.name, seconds_text(chosen.seconds),
                             !chosen.wrong.isEmpty() ? chosen.wrong
                             : chosen.changed        ? summary(chosen)
                             : chosen.disabled       ? tr("skipped")
                                                     : tr("changed nothing")));
  Q_EMIT step_chosen(step);
}

const PassStep* PassesView::chosen_pass() const {
  const int step = history_ && step_ > 0 ? pass_step(*history_, step_) : 0;
  return step > 0 ? &history_->steps[static_cast<std::size_t>(step)] : nullptr;
}

void PassesView::offer_changes() {
  changes_->clear();
  const PassStep* pass = chosen_pass();
  if (!pass) {
    changes_->addAction(tr("Choose a pass in the list"))->setEnabled(false);
  } else {
    const QString name = pass->name;
    const int step = static_cast<int>(pass - history_->steps.data());
    const bool shown = step + 1 < static_cast<int>(history_->steps.size()) &&
                       history_->steps[static_cast<std::size_t>(step) + 1].rewrite;
    auto* rewrites = changes_->addAction(shown ? tr("Hide its rewrites") : tr("Show its rewrites"), this,
                                         [this, step] { Q_EMIT rewrites_asked(step); });
    rewrites->setEnabled(!pass->rewrites.empty());
    changes_->addAction(pass->disabled ? tr("Run %1 again").arg(name) : tr("Skip %1").arg(name), this,
                        [this, name] { Q_EMIT skip_asked(name); });
    changes_->addAction(tr("Run %1 one place earlier").arg(name), this, [this, name] { Q_EMIT move_asked(name, -1); });
    changes_->addAction(tr("Run %1 one place later").arg(name), this, [this, name] { Q_EMIT move_asked(name, 1); });
  }
  changes_->addSeparator();
  changes_->addAction(tr("All passes, in their own order"), this, &PassesView::reset_asked);
}

void PassesView::go_by(int by, bool only_changed) {
  if (!history_) return;
  int step = step_ + by;
  while (only_changed && step > 0 && step + 1 < static_cast<int>(history_->steps.size()) &&
         !history_->steps[step].changed)
    step += by;
  go_to(step);
}

void PassesView::keyPressEvent(QKeyEvent* event) {
  bool shift = event->modifiers() & Qt::ShiftModifier;
  if (event->key() == Qt::Key_Left) return go_by(-1, shift);
  if (event->key() == Qt::Key_Right) return go_by(1, shift);
  QWidget::keyPressEvent(event);
}

}  // namespace partita::views
