// Arranges the table of steps, memory plot, details and a LinkedPane for each form of code, and keeps step and node the
// same in all of them. Code arrives later, pane by pane.
#include "views/kernels/kernels_view.h"

#include <algorithm>

#include "views/kernels/memory_plot.h"
#include "views/look/arrange.h"
#include "views/look/combo_box.h"
#include "views/look/format.h"

namespace partita::views {

KernelsView::KernelsView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Kernels"));
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  graph_ = new ComboBox(tr("Graph"));
  train_ = new QCheckBox(tr("with gradients"));
  inputs_ = new InputsBox;
  note_ = new ElidedLabel;
  note_->setObjectName("dim");
  add_all(bar, {button_of(
                    tr("Plan"), this, [this] { Q_EMIT asked(false); }, tr("Make the kernels, without running them")),
                button_of(
                    tr("Measure"), this, [this] { Q_EMIT asked(true); }, tr("Run several times, to have times")),
                button_of(
                    tr("PyTorch's"), this, [this] { Q_EMIT inductor_asked(); },
                    tr("The kernels of inductor in this log or folder")),
                train_, inputs_});
  bar->addWidget(note_, 1);

  table_ = new TablePanel(kernel_columns());
  table_->bar()->insertWidget(0, graph_);
  memory_ = new MemoryPlot;
  auto* upper = split_of({table_, memory_}, {680, 320});
  upper->setChildrenCollapsible(false);
  details_ = new QLabel;
  make_readable(details_, {12, 6, 12, 6});
  details_->setTextFormat(Qt::RichText);
  details_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  auto* scroll = scrolled(details_);
  scroll->setAccessibleName(tr("What was fused and why no more"));
  auto* code = new QWidget;
  auto* column = plain_column(code);
  forms_ = command_bar(column, 4);
  code_ = new QSplitter(Qt::Horizontal);
  code_->setChildrenCollapsible(false);
  column->addWidget(code_, 1);
  auto* split = split_of({upper, scroll, code}, {320, 80, 320}, Qt::Vertical);
  split->setChildrenCollapsible(false);
  layout->addWidget(split, 1);
  setFocusProxy(table_);

  connect(graph_, &QComboBox::currentIndexChanged, this, &KernelsView::show_list);
  connect(table_, &TablePanel::row_chosen, this, [this](int row) {
    if (quiet_) return;
    const auto shown = list();
    if (!shown) return;
    const auto& origins = shown->report.rows[static_cast<std::size_t>(row)].origins;
    show_step(row, origins.empty() ? QString() : text(origins.back()));
    if (!origins.empty()) Q_EMIT node_chosen(text(origins.back()));
  });
  connect(memory_, &MemoryPlot::step_chosen, this, &KernelsView::go_to);
  connect(memory_, &MemoryPlot::node_chosen, this, &KernelsView::node_chosen);
  clear();
}

std::shared_ptr<const KernelList> KernelsView::list() const {
  const int at = graph_->currentIndex();
  return at >= 0 && at < static_cast<int>(lists_.size()) ? lists_[static_cast<std::size_t>(at)] : nullptr;
}

void KernelsView::set_lists(std::vector<std::shared_ptr<const KernelList>> lists, const QString& note) {
  lists_ = std::move(lists);
  {
    const QSignalBlocker blocked(graph_);
    graph_->clear();
    for (const auto& list : lists_) graph_->addItem(list->name);
    graph_->setVisible(lists_.size() > 1);
  }
  note_->setText(note);
  show_list(0);
}

void KernelsView::show_list(int) {
  const auto shown = list();
  step_ = -1;
  quiet_ = true;
  table_->set_rows(shown ? kernel_rows(*shown) : std::vector<Row>());
  quiet_ = false;
  const int kName = static_cast<int>(kernel_columns().indexOf("Name"));
  constexpr int kWidestName = 220;  // names of many nodes are long
  table_->view()->setColumnWidth(kName, std::min(table_->view()->columnWidth(kName), kWidestName));
  memory_->set_report(shown ? shown->report : schedule::KernelReport());
  memory_->setVisible(shown && !shown->report.buffers.empty());
  make_panes(shown ? shown->forms : QStringList());
  if (!shown)
    return details_->setText(tr("Plan makes the kernels of the graph on the screen, Measure also times them."));
  details_->setText(shown->note.toHtmlEscaped());
  // The one that takes longest, else the first.
  const auto& rows = shown->report.rows;
  if (rows.empty()) return;
  const auto slowest = std::ranges::max_element(rows, {}, [](const auto& row) { return row.seconds.value_or(0); });
  go_to(static_cast<int>(slowest - rows.begin()));
}

/// A pane for each form, and a button that shows or hides it. Where there is no room for all, the first and the last
/// are shown.
void KernelsView::make_panes(const QStringList& forms) {
  constexpr int least_width = 280;
  while (code_->count() > 0) delete code_->widget(0);
  panes_.clear();
  while (QLayoutItem* item = forms_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  const auto room = static_cast<qsizetype>(std::max(width(), 1) / least_width);
  for (qsizetype i = 0; i < forms.size(); ++i) {
    auto* pane = new LinkedPane(forms[i]);
    connect(pane, &LinkedPane::node_chosen, this, [this](int node) { mark(node, true); });
    auto* part = new QWidget;
    auto* column = plain_column(part);
    auto* heading = styled_label("panelTitle", forms[i].toUpper());
    heading->setContentsMargins(12, 4, 12, 4);
    column->addWidget(heading);
    column->addWidget(pane, 1);
    code_->addWidget(part);
    panes_.push_back(pane);
    auto* shown = new QCheckBox(forms[i]);
    shown->setChecked(forms.size() <= room || i == 0 || i + 1 == forms.size());
    part->setVisible(shown->isChecked());
    connect(shown, &QCheckBox::toggled, part, &QWidget::setVisible);
    forms_->addWidget(shown);
  }
  forms_->addStretch(1);
  for (LinkedPane* pane : panes_) pane->set_note(tr("Choose a step to see its code."));
}

void KernelsView::go_to(int step) {
  const auto shown = list();
  if (!shown || step < 0 || step >= static_cast<int>(shown->report.rows.size())) return;
  table_->set_current_row(step);
  const auto& origins = shown->report.rows[static_cast<std::size_t>(step)].origins;
  show_step(step, origins.empty() ? QString() : text(origins.back()));
}

void KernelsView::show_step(int step, const QString& node) {
  const auto shown = list();
  if (!shown || step < 0) return;
  const bool other = std::exchange(step_, step) != step;
  memory_->set_step(step);
  details_->setText(kernel_details(*shown, static_cast<std::size_t>(step)));
  if (other) {
    for (LinkedPane* pane : panes_) pane->set_note(tr("compiling…"));
    Q_EMIT code_asked(step);
  }
  const auto& origins = shown->report.rows[static_cast<std::size_t>(step)].origins;
  const auto at = std::ranges::find(origins, node.toStdString());
  mark(at == origins.end() ? -1 : static_cast<int>(at - origins.begin()), false);
}

void KernelsView::mark(int node, bool tell) {
  for (LinkedPane* pane : panes_) pane->mark(node);
  const auto shown = list();
  if (!tell || !shown || step_ < 0 || node < 0) return;
  const auto& origins = shown->report.rows[static_cast<std::size_t>(step_)].origins;
  if (static_cast<std::size_t>(node) < origins.size())
    Q_EMIT node_chosen(text(origins[static_cast<std::size_t>(node)]));
}

void KernelsView::select(const QString& node, const StackFrame* source) {
  const auto shown = list();
  if (!shown || node.isEmpty()) return;
  if (step_ >= 0) {  // the chosen step, if it is one of those of a line
    const auto& origins = shown->report.rows[static_cast<std::size_t>(step_)].origins;
    if (std::ranges::find(origins, node.toStdString()) != origins.end()) return show_step(step_, node);
  }
  const auto step = shown->step_of(node, source);
  if (!step) return;
  quiet_ = true;
  table_->set_current_row(static_cast<int>(*step));
  quiet_ = false;
  show_step(static_cast<int>(*step), node);
}

void KernelsView::set_code(int form, const Result<std::optional<loops::LinkedText>>& code) {
  if (form < 0 || form >= static_cast<int>(panes_.size())) return;
  LinkedPane* pane = panes_[static_cast<std::size_t>(form)];
  const int marked = pane->marked();
  if (!code) return pane->set_note(text(code.error().line()));
  if (!*code)
    return pane->set_note(tr("A call has no code of its own: a library does it, or the operator's evaluation."));
  pane->set_code(**code);
  pane->mark(marked);
}

}  // namespace partita::views
