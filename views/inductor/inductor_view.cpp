#include "views/inductor/inductor_view.h"

#include <QCheckBox>
#include <algorithm>
#include <cmath>

#include "views/look/arrange.h"
#include "views/look/combo_box.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

QString sentence(const std::string& words) {
  const QString all = text(words);
  return all.left(1).toUpper() + all.mid(1);
}

Cell wrong_elements(const WrongBuffer& buffer) {
  if (buffer.wrong == 0) return {};
  return {QObject::tr("%1 of %2").arg(buffer.wrong).arg(buffer.total), static_cast<double>(buffer.wrong)};
}

}  // namespace

std::vector<Row> wrong_buffer_rows(const Located& found) {
  std::vector<Row> rows;
  const std::vector<std::string> given = found.given_nodes();
  for (const WrongBuffer& buffer : found.wrong_buffers()) {
    Row row{given.empty() ? QString() : text(given.front()), {}};
    const Cell ratio = std::isnan(buffer.ratio) ? Cell() : Cell(amount_text(buffer.ratio), buffer.ratio);
    row.cells = {Cell(text(buffer.node)),
                 Cell(text(buffer.what), Tone::Bad),
                 ratio,
                 wrong_elements(buffer),
                 Cell(text(buffer.first)),
                 Cell(text(buffer.buffer), Tone::Dim),
                 Cell(text(buffer.kernel), Tone::Dim)};
    rows.push_back(std::move(row));
  }
  return rows;
}

InductorView::InductorView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Inductor"));
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  against_ = new QLineEdit(text(LocateRequest().against));
  against_->setAccessibleName(tr("Compiler"));
  against_->setToolTip(tr("With settings of inductor: torch:inductor+max_fusion_size=1+KEY=VALUE"));
  against_->setMinimumWidth(120);
  connect(against_, &QLineEdit::returnPressed, this, &InductorView::find_asked);
  inputs_ = new InputsBox;
  train_ = new QCheckBox(tr("with gradients"));
  switches_ = new QCheckBox(tr("try its settings"));
  switches_->setToolTip(tr("Also compile what is wrong with one setting of inductor changed after another"));
  graph_ = new ComboBox(tr("Graph"));
  note_ = new ElidedLabel;
  note_->setObjectName("dim");
  find_ = button_of(tr("Find"), this, &InductorView::find_asked,
                    tr("Compile the graph with PyTorch's inductor, judge each kernel, and name the wrong one"));
  cancel_ = button_of(tr("Cancel"), this, &InductorView::cancel_asked);
  add_all(bar, {find_, cancel_, against_, inputs_, train_, switches_, graph_});
  bar->addWidget(note_, 1);
  evidence_ = new TablePanel({tr("Value of"), tr("What is wrong"), tr("Error by eager's"), tr("Elements"),
                              tr("First of them"), tr("Buffer"), tr("Kernel")});
  evidence_->setAccessibleName(tr("Wrong buffers"));
  auto* split = split_of({make_verdict(), evidence_}, {400, 600});
  split->setChildrenCollapsible(false);
  layout->addWidget(split, 1);
  connect(graph_, &QComboBox::activated, this, [this](int index) {
    show_graph(index);
    Q_EMIT graph_chosen();
  });
  set_running(false);
  clear();
}

QWidget* InductorView::make_verdict() {
  auto* side = new QWidget;
  auto* column = plain_column(side);
  headline_ = styled_label("heading");
  certainty_ = styled_label("dim");
  facts_ = new QLabel;
  auto* lines = new QWidget;
  auto* inside = plain_column(lines);
  make_readable(headline_, {12, 4, 12, 0});
  make_readable(certainty_, {12, 2, 12, 4});
  make_readable(facts_, {12, 0, 12, 4});
  add_all(inside, {headline_, certainty_, facts_});
  inside->addStretch(1);
  auto* scroll = scrolled(lines);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  column->addWidget(scroll, 1);
  minify_ = button_of(tr("Minify"), this, &InductorView::minify_asked,
                      tr("Find the smallest graph with which inductor fails in this way"));
  repro_ = button_of(tr("Repro…"), this, &InductorView::repro_asked,
                     tr("A folder with the graph, its inputs, a script for PyTorch and a README for a bug report"));
  command_ = button_of(tr("Copy command"), this, &InductorView::command_asked);
  code_ = button_of(
      tr("Kernel's code"), this, [this] { Q_EMIT code_wanted(); },
      tr("Shows the code of the wrong kernel, or of the graph again, beside the picture"));
  code_->setCheckable(true);
  auto* next = command_bar(column);
  add_all(next, {code_, minify_, repro_, command_});
  next->addStretch(1);
  return side;
}

LocateRequest InductorView::request() const {
  LocateRequest request;
  request.against = against_->text().trimmed().toStdString();
  request.inputs = inputs_->path().toStdString();
  request.train = train_->isChecked();
  request.switches = switches_->isChecked();
  return request;
}

void InductorView::set_running(bool running) {
  running_ = running;
  find_->setVisible(!running);
  cancel_->setVisible(running);
}

void InductorView::set_found(std::vector<Located> found) {
  found_ = std::move(found);
  graph_->clear();
  for (const Located& one : found_) graph_->addItem(text(one.graph));
  graph_->setVisible(found_.size() > 1);
  const auto wrong = std::ranges::find_if(found_, [](const Located& one) { return !one.clean(); });
  show_graph(wrong == found_.end() ? 0 : static_cast<int>(wrong - found_.begin()));
}

void InductorView::clear() {
  set_found({});
  say(tr("Compiles the graph with PyTorch's inductor and holds each kernel to eager's values and to double"));
}

const Located* InductorView::found() const {
  const int at = graph_->currentIndex();
  return at >= 0 && at < std::ssize(found_) ? &found_[static_cast<std::size_t>(at)] : nullptr;
}

void InductorView::show_graph(int index) {
  graph_->setCurrentIndex(index);
  const Located* one = found();
  QStringList lines;
  if (one)
    for (const auto& [what, content] : one->facts()) lines << QString("%1: %2").arg(text(what), text(content));
  headline_->setText(one ? sentence(one->headline()) : QString());
  certainty_->setText(one ? sentence(one->certainty()) : QString());
  certainty_->setVisible(!certainty_->text().isEmpty());
  facts_->setText(lines.join('\n'));
  evidence_->set_rows(one ? wrong_buffer_rows(*one) : std::vector<Row>());
  const bool wrong = one && !one->clean();
  for (QPushButton* button : {minify_, repro_}) button->setEnabled(wrong);
  command_->setEnabled(one != nullptr);
  code_->setEnabled(one && !one->kernel_code().empty());
  code_->setChecked(code_->isEnabled());
}

}  // namespace partita::views
