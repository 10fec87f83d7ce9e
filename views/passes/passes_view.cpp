#include "views/passes/passes_view.h"

#include <QKeyEvent>
#include <QSlider>
#include <QTableView>

#include "core/ir/print.h"
#include "views/look/arrange.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

QString summary(const PassStep& step) {
  if (step.disabled) return "disabled";
  if (!step.diff) return step.changed ? "changed" : "";
  QStringList parts;
  if (step.diff->added) parts << QString("+%1").arg(step.diff->added);
  if (step.diff->removed) parts << QString("−%1").arg(step.diff->removed);
  if (step.diff->changed) parts << QString("~%1").arg(step.diff->changed);
  return parts.isEmpty() ? "order" : parts.join("  ");
}

}  // namespace

PassHistory make_history(const PipelineRun& run, const TextWidth& text_width,
                         const std::unordered_set<std::string>& folded) {
  PictureOptions options;
  options.text_width = text_width;
  options.folded = folded;
  const auto code_of = [](const Graph& graph) {
    return std::make_shared<const CodeDocument>(QString::fromStdString(print(graph)), &graph);
  };
  PassHistory history;
  PassStep first;
  first.name = "before";
  first.graph = run.before;
  first.scene = make_scene(first.graph, options);
  first.code = code_of(*first.graph);
  history.steps.push_back(first);
  const Graph* before = run.before.get();
  for (const PassRun& pass : run.passes) {
    PassStep step;
    step.name = text(pass.name);
    step.stage = text(stage_name(pass.stage));
    step.seconds = pass.milliseconds / 1e3;
    step.nodes_before = pass.nodes_before;
    step.nodes_after = pass.nodes_after;
    step.changed = pass.changed;
    step.disabled = pass.disabled;
    step.graph = pass.after;
    step.scene = history.steps.back().scene;
    step.code = history.steps.back().code;
    if (pass.changed && pass.after) {
      const Scene& old = *history.steps.back().scene;
      step.scene = make_scene(pass.after, options, &old);
      for (std::size_t i = 0; i < old.picture.cards.size(); ++i)
        if (step.scene->picture.card_by_key(old.picture.cards[i].key) < 0)
          step.removed.push_back({old.layout.boxes[i], text(old.picture.cards[i].title)});
      step.code = code_of(*pass.after);
      auto difference = std::make_shared<GraphDiff>(diff(*before, *pass.after));
      QString listing;
      for (const DiffLine& line : difference->lines) {
        listing += text(line.text) + '\n';
        step.line_changes.push_back(line.change);
      }
      step.listing = std::make_shared<CodeDocument>(listing, pass.after.get());
      step.diff = std::move(difference);
    }
    if (pass.after) before = pass.after.get();
    history.steps.push_back(std::move(step));
  }
  return history;
}

std::unordered_map<std::string, std::string> pass_of_nodes(const PassHistory& history, int step) {
  std::unordered_map<std::string, std::string> passes;
  if (step == 0) {
    for (const PassStep& later : history.steps)
      if (later.diff)
        for (const DiffLine& line : later.diff->lines)
          if (line.change == Change::Removed || line.change == Change::Changed)
            passes.try_emplace(line.node, later.name.toStdString());
    return passes;
  }
  for (int i = 1; i <= step; ++i)
    if (const PassStep& made = history.steps[static_cast<std::size_t>(i)]; made.diff)
      for (const auto& [node, change] : made.diff->marks) passes[node] = made.name.toStdString();
  return passes;
}

PassesView::PassesView(QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout, 12);
  bar->addWidget(button_of(tr("Run passes"), this, &PassesView::run_asked));
  slider_ = new QSlider(Qt::Horizontal);
  slider_->setPageStep(1);
  slider_->setAccessibleName(tr("Pass"));
  slider_->setEnabled(false);
  bar->addWidget(slider_, 2);
  title_ = new QLabel(tr("Each pass of this graph's stage, one step at a time"));
  bar->addWidget(title_, 3);
  list_ = new TablePanel({tr("#"), tr("Pass"), tr("Changed"), tr("Nodes"), tr("Time")});
  text_ = new CodeView;
  layout->addWidget(split_of({list_, text_}, {460, 640}), 1);
  connect(slider_, &QSlider::valueChanged, this, &PassesView::go_to);
  connect(list_, &TablePanel::row_chosen, this, &PassesView::go_to);
  connect(text_, &CodeView::node_chosen, this, &PassesView::node_chosen);
}

void PassesView::set_history(std::shared_ptr<const PassHistory> history) {
  history_ = std::move(history);
  step_ = -1;
  std::vector<Row> rows;
  int count = history_ ? static_cast<int>(history_->steps.size()) : 0;
  for (int i = 0; i < count; ++i) {
    const PassStep& step = history_->steps[i];
    Tone tone = step.changed ? Tone::Plain : Tone::Dim;
    rows.push_back({{},
                    {Cell(QString::number(i), i, Tone::Dim), Cell(step.name, tone),
                     Cell(summary(step), step.changed ? Tone::Warn : Tone::Dim),
                     i == 0 ? Cell(QString::number(step.graph ? step.graph->size() : 0), Tone::Dim)
                     : step.nodes_before == step.nodes_after
                         ? Cell(QString::number(step.nodes_after), Tone::Dim)
                         : Cell(QString("%1 → %2").arg(step.nodes_before).arg(step.nodes_after)),
                     i == 0 ? Cell() : Cell(seconds_text(step.seconds), step.seconds, tone)}});
  }
  list_->set_rows(std::move(rows));
  slider_->setRange(0, std::max(0, count - 1));
  slider_->setEnabled(count > 1);
  text_->set_document(nullptr);
  if (count == 0) return title_->setText(tr("Each pass of this graph's stage, one step at a time"));
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
  int last = static_cast<int>(history_->steps.size()) - 1;
  title_->setText(step == 0 ? tr("before the first of %1 passes").arg(last)
                            : tr("%1/%2  %3  %4  %5")
                                  .arg(step)
                                  .arg(last)
                                  .arg(chosen.name, seconds_text(chosen.seconds),
                                       chosen.changed ? summary(chosen) : tr("changed nothing")));
  Q_EMIT step_chosen(step);
}

void PassesView::go_by(int by, bool only_changed) {
  if (!history_) return;
  int step = step_ + by;
  while (only_changed && step > 0 && step + 1 < static_cast<int>(history_->steps.size()) &&
         !history_->steps[step].changed)
    step += by;
  go_to(step);
}

void PassesView::select(const QString& node) {
  text_->select(node);
}

void PassesView::keyPressEvent(QKeyEvent* event) {
  bool shift = event->modifiers() & Qt::ShiftModifier;
  if (event->key() == Qt::Key_Left) return go_by(-1, shift);
  if (event->key() == Qt::Key_Right) return go_by(1, shift);
  QWidget::keyPressEvent(event);
}

}  // namespace partita::views
