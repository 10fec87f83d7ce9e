#include "views/minify/minify_view.h"

#include "views/look/arrange.h"
#include "views/look/combo_box.h"
#include "views/look/format.h"

namespace partita::views {

MinifyView::MinifyView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Minifier"));
  run_ = button_of(
      tr("Minify"), this, [this] { Q_EMIT run_asked(request()); },
      tr("Find the small part of this graph that fails in the same way"));
  check_ = new ComboBox(tr("What is looked for"));
  compiler_ = new ComboBox(tr("Compiler"));
  inputs_ = new InputsBox;
  pause_ = button_of(tr("Pause"), this, [this] { set_paused(!paused_); });
  accept_ = button_of(tr("Accept now"), this, &MinifyView::accept_asked, tr("End with the smallest graph so far"));
  cancel_ = button_of(tr("Cancel"), this, &MinifyView::cancel_asked);
  save_ = button_of(tr("Save repro…"), this, &MinifyView::save_asked,
                    tr("A folder with the graph, its inputs, a script for PyTorch and a README for a bug report"));
  open_ = button_of(tr("Open graph"), this, &MinifyView::open_asked,
                    tr("The small one, beside the graph it was made from, on the inputs it fails on"));
  folder_ = button_of(tr("Show folder"), this, [this] { Q_EMIT folder_asked(repro_); });

  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  with_ = new QLabel(tr("with"));
  add_all(bar, {run_, check_, with_, compiler_, inputs_});
  bar->addStretch(1);
  add_all(bar, {pause_, accept_, cancel_});

  graph_ = new GraphView;
  graph_->setAccessibleName(tr("The smallest graph that fails"));
  code_ = new CodeView;
  code_->setAccessibleName(tr("The smallest graph that fails, as text"));
  auto* left = split_of({graph_, code_}, {320, 200}, Qt::Vertical);
  left->setChildrenCollapsible(false);
  connect(graph_, &GraphView::node_chosen, code_, &CodeView::select);
  connect(code_, &CodeView::node_chosen, graph_, &GraphView::select);
  auto* right = new QWidget;
  auto* column = plain_column(right);
  headline_ = styled_label("heading");
  make_readable(headline_, {12, 8, 12, 0});
  line_ = styled_label("dim");
  make_readable(line_, {12, 2, 12, 4});
  for (QLabel* label : {headline_, line_}) {  // a long name in it asks for no width
    QSizePolicy policy = label->sizePolicy();
    policy.setHorizontalPolicy(QSizePolicy::Ignored);
    label->setSizePolicy(policy);
  }
  plot_ = new ShrinkPlot;
  tried_ = new TablePanel({tr("Try"), tr("Result"), tr("What was tried"), tr("Strategy")});
  tried_->set_stretched_column(3);
  add_all(column, {headline_, line_});
  auto* next = command_bar(column);
  add_all(next, {save_, open_, folder_});
  constexpr int kLeast = 64;  // a small window cuts their texts, and does not take the room from the panels
  for (QPushButton* button : {save_, open_, folder_}) button->setMinimumWidth(kLeast);
  next->addStretch(1);
  column->addWidget(plot_);
  column->addWidget(tried_, 1);
  auto* split = split_of({left, right}, {260, 470});
  split->setChildrenCollapsible(false);
  layout->addWidget(split, 1);
  set_running(false);
  headline_->setText(tr("Nothing minified yet"));
  line_->setText(tr("Choose what is looked for and with which compiler, then Minify"));
}

void MinifyView::set_choices(const QStringList& checks, const QStringList& compilers, const QString& compiler) {
  check_->addItems(checks);
  compiler_->addItems(compilers);
  compiler_->setCurrentText(compiler);
}

MinifyRequest MinifyView::request() const {
  return {check_->currentText().toStdString(), compiler_->currentText().toStdString(), inputs_->path().toStdString()};
}

void MinifyView::choose(const MinifyRequest& request) {
  check_->setCurrentText(text(request.check));
  const QString compiler = text(request.compiler);
  if (compiler_->findText(compiler) < 0) compiler_->addItem(compiler);  // torch:inductor with settings
  compiler_->setCurrentText(compiler);
}

void MinifyView::set_running(bool running) {
  running_ = running;
  paused_ = false;
  pause_->setText(tr("Pause"));
  // One row for both: a small window has no room for more, not even between the two, when a layout would take it from
  // the panels.
  const std::vector<QWidget*> steering{pause_, accept_, cancel_}, choosing{with_, compiler_, inputs_};
  for (QWidget* widget : running ? choosing : steering) widget->hide();
  for (QWidget* widget : running ? steering : choosing) widget->show();
  for (QPushButton* button : {save_, open_, folder_}) button->hide();  // until there is a result
  for (QWidget* widget : std::initializer_list<QWidget*>{run_, check_, compiler_, inputs_})
    widget->setEnabled(!running);
}

void MinifyView::set_paused(bool paused) {
  if (!running_) return;
  paused_ = paused;
  pause_->setText(paused ? tr("Resume") : tr("Pause"));
  Q_EMIT pause_asked(paused);
}

void MinifyView::clear() {
  log_.clear();
  repro_.clear();
  plot_->set_curve({}, 0);
  tried_->set_rows({});
  headline_->clear();
  line_->clear();
  set_graph({}, {});
  set_running(false);
}

void MinifyView::start() {
  clear();
  headline_->setText(tr("Does it fail?"));
  line_->setText(tr("the first try"));
  set_running(true);
}

void MinifyView::add(const std::vector<minify::Event>& steps) {
  if (steps.empty()) return;
  const bool first = log_.empty();  // the first try has the widest rows
  for (const minify::Event& step : steps) log_.add(step);
  headline_->setText(log_.headline());
  line_->setText(log_.line());
  plot_->set_curve(log_.curve(), log_.last().seconds);
  tried_->set_rows(log_.rows(), !first);
}

void MinifyView::set_graph(std::shared_ptr<const Scene> scene, std::shared_ptr<const CodeDocument> code) {
  graph_->set_scene(std::move(scene));
  code_->set_document(std::move(code));
}

void MinifyView::finish(const minify::MinifyResult& reduced, const minify::Culprit& culprit) {
  set_running(false);
  for (QPushButton* button : {save_, open_}) button->show();
  save_->setEnabled(true);
  headline_->setText(outcome_text(reduced));
  line_->setText(details_text(reduced, culprit));
  plot_->set_curve(log_.curve(), reduced.seconds);
}

void MinifyView::fail(const QString& why) {
  set_running(false);
  headline_->setText(why);
  line_->setText(log_.line());
}

void MinifyView::set_saved(const QString& folder) {
  repro_ = folder;
  save_->setEnabled(false);  // it stays: the next button must not come to stand under the mouse
  folder_->show();
  folder_->setToolTip(folder);
}

}  // namespace partita::views
