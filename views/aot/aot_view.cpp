#include "views/aot/aot_view.h"

#include <QButtonGroup>
#include <QResizeEvent>
#include <algorithm>

#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/picture/sizes.h"

namespace partita::views {
namespace {

QWidget* column(const QString& title, QWidget* content, std::initializer_list<QWidget*> beside = {}) {
  auto* box = new QWidget;
  auto* layout = plain_column(box);
  auto* heading = styled_label("panelTitle", title);
  heading->setContentsMargins(12, 6, 12, 6);
  auto* top = new QHBoxLayout;
  top->addWidget(heading, 1);
  add_all(top, beside);
  layout->addLayout(top);
  layout->addWidget(content, 1);
  return box;
}

enum SavedColumn : int { kValue, kTheirs, kOurs, kHow, kWhy };

Cell bytes_cell(const std::optional<SavedValue>& value, const UnknownBytes& unknown) {
  if (!value) return Cell(QString::fromUtf8("–"), -1.0, Tone::Dim);
  return Cell(size_text(*value, unknown), static_cast<double>(value->bytes), value->is_input ? Tone::Dim : Tone::Plain);
}

/// The rows of one cut, with an empty column for the other's bytes; of two, what either saves.
std::vector<Row> rows_of(const AotPair& pair) {
  std::vector<Row> rows = saved_rows(*pair.cut, pair.unknown);
  for (Row& row : rows) row.cells.insert(row.cells.begin() + (pair.theirs ? kOurs : kTheirs), Cell());
  if (pair.values.empty()) return rows;
  std::erase_if(rows, [&](const Row& row) {
    return std::ranges::any_of(pair.values, [&](const CutDifference& d) { return text(d.name) == row.node; });
  });
  for (const CutDifference& d : pair.values) {
    const SavedValue& value = d.theirs ? *d.theirs : *d.ours;
    const QString how = value.is_input ? "input" : value.is_symbol ? "number" : "saved";
    const bool both = d.theirs && d.ours;
    rows.push_back({text(d.name),
                    {Cell(text(d.name)), bytes_cell(d.theirs, pair.unknown), bytes_cell(d.ours, pair.unknown),
                     Cell(both ? how : how + (d.theirs ? " by PyTorch" : " by ours"), both ? Tone::Dim : Tone::Warn),
                     Cell(text(d.why), Tone::Dim)}});
  }
  return rows;
}

QPushButton* choice(QButtonGroup* group, const QString& text, const QString& tooltip) {
  auto* button = new QPushButton(text);
  button->setCheckable(true);
  button->setToolTip(tooltip);
  group->addButton(button);
  return button;
}

}  // namespace

std::vector<Row> saved_rows(const CutSummary& cut, const UnknownBytes& unknown) {
  std::vector<Row> rows;
  for (const SavedValue& value : cut.saved)
    rows.push_back(
        {text(value.name),
         {Cell(text(value.name)),
          Cell(size_text(value, unknown), static_cast<double>(value.bytes), value.is_input ? Tone::Dim : Tone::Plain),
          Cell(value.is_input    ? "input"
               : value.is_symbol ? "number"
                                 : "saved",
               value.is_input ? Tone::Dim : Tone::Plain),
          Cell(text(value.why), Tone::Dim)}});
  for (const std::string& name : cut.recomputed)
    rows.push_back({text(name), {Cell(text(name)), Cell("", -1.0), Cell("recomputed", Tone::Warn), Cell()}});
  return rows;
}

AotView::AotView(QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  forward_ = new GraphView;
  forward_->setAccessibleName(tr("Forward graph"));
  backward_ = new GraphView;
  backward_->setAccessibleName(tr("Backward graph"));
  saved_ = new TablePanel({tr("Value"), tr("PyTorch's"), tr("Ours"), tr("How"), tr("Why")});
  auto* middle = new QWidget;
  auto* stack = plain_column(middle);
  total_ = new QLabel;
  total_->setContentsMargins(12, 4, 12, 8);
  total_->setWordWrap(true);
  auto* whose = new QButtonGroup(this);
  theirs_ = choice(whose, tr("PyTorch's cut"), tr("Forward and backward as PyTorch left them"));
  ours_ = choice(whose, tr("Our cut"), tr("The joint graph beside them, cut here"));
  connect(theirs_, &QPushButton::clicked, this, [this] { Q_EMIT cut_asked(true); });
  connect(ours_, &QPushButton::clicked, this, [this] { Q_EMIT cut_asked(false); });
  stack->addWidget(saved_, 1);
  stack->addWidget(total_);
  between_ = column(tr("BETWEEN THEM"), middle, {theirs_, ours_});
  halves_ = split_of({column(tr("FORWARD"), forward_), column(tr("BACKWARD"), backward_)}, {1, 1});
  rows_ = split_of({halves_, between_}, {2, 1}, Qt::Vertical);
  layout->addWidget(rows_);
  setFocusProxy(forward_);
  for (GraphView* view : {forward_, backward_}) {
    connect(view, &GraphView::fold_asked, this,
            [this, view](const QString& frame) { Q_EMIT fold_asked(view == backward_, frame); });
    connect(view, &GraphView::node_chosen, this, &AotView::node_chosen);
    connect(view, &GraphView::pin_asked, this, &AotView::pin_asked);
  }
  connect(saved_, &TablePanel::node_chosen, this, &AotView::node_chosen);
}

// The saved values stand between the halves, or below them where three columns are too narrow and there is the height.
void AotView::resizeEvent(QResizeEvent* event) {
  constexpr int kThreeColumns = 1000, kTwoRows = 600;
  const bool below = width() < kThreeColumns && height() >= kTwoRows;
  QWidget::resizeEvent(event);
  QSplitter* home = below ? rows_ : halves_;
  if (between_->parentWidget() == home && event->oldSize().isValid()) return;
  home->insertWidget(1, between_);
  const int all = below ? height() : width();
  home->setSizes(below ? QList{all * 2 / 3, all / 3} : QList{all * 2 / 5, all / 5, all * 2 / 5});
  for (int i = 0; i < home->count(); ++i) home->setStretchFactor(i, home->widget(i) == between_ ? 1 : 2);
}

void AotView::set_pair(std::shared_ptr<const AotPair> pair) {
  const bool turned = !pair_ || !pair || pair_->theirs != pair->theirs;
  bool same_place = pair_ != nullptr && pair != nullptr;
  pair_ = std::move(pair);
  // With another cut a half may be three times as large: what nobody moved is shown whole again.
  forward_->set_scene(pair_ ? pair_->forward.scene : nullptr, same_place && !forward_->is_fitted());
  backward_->set_scene(pair_ ? pair_->backward.scene : nullptr, same_place && !backward_->is_fitted());
  const bool both = pair_ && !pair_->values.empty(), theirs = pair_ && pair_->theirs;
  for (QPushButton* button : {theirs_, ours_}) button->setVisible(both);
  (theirs ? theirs_ : ours_)->setChecked(true);
  saved_->view()->setColumnHidden(kTheirs, !both && !theirs);
  saved_->view()->setColumnHidden(kOurs, !both && theirs);
  saved_->set_rows(pair_ ? rows_of(*pair_) : std::vector<Row>{});
  if (turned) saved_->sort_by(theirs ? kTheirs : kOurs, Qt::DescendingOrder);
  total_->setText(
      pair_ ? pair_->told
            : tr("Open a joint graph, or a forward and its backward, to see what the one hands to the other."));
}

QString told_of(const CutSummary& cut, const UnknownBytes& unknown) {
  return AotView::tr("%1 saved, %2; %3; %4 recomputed for %5 operations")
      .arg(unknown.values)
      .arg(size_text(unknown.saved), kept_inputs_text(unknown))
      .arg(cut.recomputed.size())
      .arg(operations_text(cut.recomputed_operations));
}

QSizeF AotView::room() const {
  return {std::min(forward_->room().width(), backward_->room().width()), forward_->room().height()};
}

void AotView::select(const QString& node) {
  forward_->select(node);
  backward_->select(node);
  saved_->select_node(node);
}

}  // namespace partita::views
