#include "views/minify/minify_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/look/arrange.h"
#include "views/look/combo_box.h"

namespace partita::views {

MinifyView::MinifyView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Minifier"));
  run_ = new QPushButton(tr("Minify"));
  run_->setToolTip(tr("Find the small part of this graph that fails in the same way"));
  check_ = new ComboBox;
  check_->setAccessibleName(tr("What is looked for"));
  compiler_ = new ComboBox;
  compiler_->setAccessibleName(tr("Compiler"));
  inputs_ = new InputsBox;
  pause_ = new QPushButton(tr("Pause"));
  accept_ = new QPushButton(tr("Accept now"));
  accept_->setToolTip(tr("End with the smallest graph so far"));
  cancel_ = new QPushButton(tr("Cancel"));
  save_ = new QPushButton(tr("Save the repro…"));
  save_->setToolTip(tr("A folder with the graph, its inputs, a script for PyTorch and a README for a bug report"));
  open_ = new QPushButton(tr("Open the small graph"));
  open_->setToolTip(tr("Beside the graph it was made from, on the inputs it fails on"));
  folder_ = new QPushButton(tr("Show the folder"));
  connect(run_, &QPushButton::clicked, this, [this] { Q_EMIT run_asked(request()); });
  connect(pause_, &QPushButton::clicked, this, [this] { set_paused(!paused_); });
  connect(accept_, &QPushButton::clicked, this, &MinifyView::accept_asked);
  connect(cancel_, &QPushButton::clicked, this, &MinifyView::cancel_asked);
  connect(save_, &QPushButton::clicked, this, &MinifyView::save_asked);
  connect(open_, &QPushButton::clicked, this, &MinifyView::open_asked);
  connect(folder_, &QPushButton::clicked, this, [this] { Q_EMIT folder_asked(repro_); });

  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  for (QWidget* widget : std::initializer_list<QWidget*>{run_, check_, new QLabel(tr("with")), compiler_, inputs_})
    bar->addWidget(widget);
  bar->addStretch(1);
  for (QPushButton* button : {pause_, accept_, cancel_}) bar->addWidget(button);

  auto* left = new QSplitter(Qt::Vertical);
  graph_ = new GraphView;
  graph_->setAccessibleName(tr("The smallest graph that fails"));
  code_ = new CodeView;
  code_->setAccessibleName(tr("The smallest graph that fails, as text"));
  left->addWidget(graph_);
  left->addWidget(code_);
  left->setSizes({320, 200});
  left->setChildrenCollapsible(false);
  connect(graph_, &GraphView::node_chosen, code_, &CodeView::select);
  connect(code_, &CodeView::node_chosen, graph_, &GraphView::select);
  auto* right = new QWidget;
  auto* column = plain_column(right);
  headline_ = new QLabel;
  headline_->setObjectName("heading");
  headline_->setContentsMargins(12, 8, 12, 0);
  headline_->setWordWrap(true);
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  line_ = new QLabel;
  line_->setObjectName("dim");
  line_->setContentsMargins(12, 2, 12, 4);
  line_->setWordWrap(true);
  line_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  plot_ = new ShrinkPlot;
  tried_ = new TablePanel({tr("Try"), tr("Result"), tr("What was tried"), tr("Strategy")});
  tried_->set_stretched_column(3);
  column->addWidget(headline_);
  column->addWidget(line_);
  auto* next = command_bar(column);
  for (QPushButton* button : {save_, folder_, open_}) next->addWidget(button);
  next->addStretch(1);
  column->addWidget(plot_);
  column->addWidget(tried_, 1);
  auto* split = new QSplitter;
  split->addWidget(left);
  split->addWidget(right);
  split->setSizes({330, 400});
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
  return {check_->currentText(), compiler_->currentText(), inputs_->path()};
}

void MinifyView::choose(const MinifyRequest& request) {
  check_->setCurrentText(request.check);
  compiler_->setCurrentText(request.compiler);
}

QString MinifyView::headline() const {
  return headline_->text();
}

QString MinifyView::details() const {
  return line_->text();
}

void MinifyView::set_running(bool running) {
  running_ = running;
  paused_ = false;
  pause_->setText(tr("Pause"));
  for (QPushButton* button : {pause_, accept_, cancel_}) button->setVisible(running);
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

void MinifyView::start() {
  log_.clear();
  repro_.clear();
  plot_->set_curve({}, 0);
  tried_->set_rows({});
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

void MinifyView::finish(const minify::Reduced& reduced, const minify::Culprit& culprit) {
  set_running(false);
  for (QPushButton* button : {save_, open_}) button->show();
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
  save_->hide();
  folder_->show();
  folder_->setToolTip(folder);
}

}  // namespace partita::views
