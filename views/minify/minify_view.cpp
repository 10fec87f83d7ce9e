#include "views/minify/minify_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/look/combo_box.h"

namespace partita::views {

MinifyView::MinifyView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Minifier"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(12, 6, 12, 6);
  bar->setSpacing(8);
  run_ = new QPushButton(tr("Minify"));
  run_->setToolTip(tr("Find the small part of this graph that fails in the same way"));
  check_ = new ComboBox;
  check_->setAccessibleName(tr("What is looked for"));
  compiler_ = new ComboBox;
  compiler_->setAccessibleName(tr("Compiler"));
  pause_ = new QPushButton(tr("Pause"));
  accept_ = new QPushButton(tr("Accept now"));
  accept_->setToolTip(tr("End with the smallest graph so far"));
  cancel_ = new QPushButton(tr("Cancel"));
  folder_ = new QPushButton(tr("Open the repro"));
  connect(run_, &QPushButton::clicked, this, [this] { Q_EMIT run_asked(request()); });
  connect(pause_, &QPushButton::clicked, this, [this] { set_paused(!paused_); });
  connect(accept_, &QPushButton::clicked, this, &MinifyView::accept_asked);
  connect(cancel_, &QPushButton::clicked, this, &MinifyView::cancel_asked);
  connect(folder_, &QPushButton::clicked, this, [this] { Q_EMIT folder_asked(repro_); });
  bar->addWidget(run_);
  bar->addWidget(check_);
  bar->addWidget(new QLabel(tr("with")));
  bar->addWidget(compiler_);
  bar->addStretch(1);
  for (QPushButton* button : {pause_, accept_, cancel_, folder_}) bar->addWidget(button);
  layout->addLayout(bar);

  auto* split = new QSplitter;
  graph_ = new GraphView;
  graph_->setAccessibleName(tr("The smallest graph that fails"));
  split->addWidget(graph_);
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  headline_ = new QLabel;
  headline_->setObjectName("heading");
  headline_->setContentsMargins(12, 8, 12, 0);
  headline_->setWordWrap(true);
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  line_ = new QLabel;
  line_->setObjectName("dim");
  line_->setContentsMargins(12, 2, 12, 4);
  line_->setWordWrap(true);
  plot_ = new ShrinkPlot;
  tried_ = new TablePanel({tr("Try"), tr("It"), tr("What was tried"), tr("Strategy")});
  column->addWidget(headline_);
  column->addWidget(line_);
  column->addWidget(plot_);
  column->addWidget(tried_, 1);
  split->addWidget(right);
  split->setSizes({380, 340});
  split->setChildrenCollapsible(false);
  layout->addWidget(split, 1);
  set_running(false);
  folder_->hide();
  headline_->setText(tr("Nothing minified yet"));
  line_->setText(tr("Choose what is looked for and with which compiler, then Minify"));
}

void MinifyView::set_choices(const QStringList& checks, const QStringList& compilers) {
  check_->addItems(checks);
  compiler_->addItems(compilers);
}

MinifyRequest MinifyView::request() const {
  return {check_->currentText(), compiler_->currentText()};
}

void MinifyView::choose(const MinifyRequest& request) {
  check_->setCurrentText(request.check);
  compiler_->setCurrentText(request.compiler);
}

QString MinifyView::headline() const {
  return headline_->text();
}

void MinifyView::set_running(bool running) {
  running_ = running;
  paused_ = false;
  pause_->setText(tr("Pause"));
  for (QPushButton* button : {pause_, accept_, cancel_}) button->setVisible(running);
  for (QWidget* widget : std::initializer_list<QWidget*>{run_, check_, compiler_}) widget->setEnabled(!running);
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
  folder_->hide();
  plot_->set_curve({}, 0);
  tried_->set_rows({});
  headline_->setText(tr("Does it fail?"));
  line_->setText(tr("the first try"));
  set_running(true);
}

void MinifyView::add(const std::vector<MinifyStep>& steps) {
  if (steps.empty()) return;
  for (const MinifyStep& step : steps) log_.add(step);
  headline_->setText(log_.headline());
  line_->setText(log_.line());
  plot_->set_curve(log_.curve(), log_.last().seconds);
  tried_->set_rows(log_.rows());
}

void MinifyView::set_scene(std::shared_ptr<const Scene> scene) {
  graph_->set_scene(std::move(scene));
}

void MinifyView::finish(const MinifyOutcome& outcome) {
  set_running(false);
  repro_ = outcome.folder;
  folder_->setVisible(!repro_.isEmpty());
  folder_->setToolTip(repro_);
  headline_->setText(outcome_text(outcome));
  line_->setText(repro_.isEmpty() ? QString() : tr("written to %1").arg(repro_));
  plot_->set_curve(log_.curve(), outcome.seconds);
}

void MinifyView::fail(const QString& why) {
  set_running(false);
  headline_->setText(why);
}

void MinifyView::set_theme(const Theme& theme) {
  graph_->set_theme(theme);
  plot_->set_theme(theme);
  tried_->set_theme(theme);
}

}  // namespace partita::views
