#include "views/aot/aot_view.h"

#include <QResizeEvent>

#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/picture/sizes.h"

namespace partita::views {
namespace {

QWidget* column(const QString& title, QWidget* content) {
  auto* box = new QWidget;
  auto* layout = plain_column(box);
  auto* heading = styled_label("panelTitle", title);
  heading->setContentsMargins(12, 6, 12, 6);
  layout->addWidget(heading);
  layout->addWidget(content, 1);
  return box;
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
  saved_ = new TablePanel({tr("Value"), tr("Bytes"), tr("How"), tr("Why")});
  saved_->sort_by(1, Qt::DescendingOrder);
  auto* middle = new QWidget;
  auto* stack = plain_column(middle);
  total_ = new QLabel;
  total_->setContentsMargins(12, 4, 12, 8);
  total_->setWordWrap(true);
  stack->addWidget(saved_, 1);
  stack->addWidget(total_);
  between_ = column(tr("BETWEEN THEM"), middle);
  halves_ = split_of({column(tr("FORWARD"), forward_), column(tr("BACKWARD"), backward_)}, {1, 1});
  rows_ = split_of({halves_, between_}, {3, 1}, Qt::Vertical);
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
  home->setSizes(below ? QList{all * 3 / 4, all / 4} : QList{all * 2 / 5, all / 5, all * 2 / 5});
  for (int i = 0; i < home->count(); ++i) home->setStretchFactor(i, home->widget(i) == between_ ? 1 : below ? 3 : 2);
}

void AotView::set_pair(std::shared_ptr<const AotPair> pair) {
  bool same_place = pair_ != nullptr && pair != nullptr;
  pair_ = std::move(pair);
  // With another cut a half may be three times as large: what nobody moved is shown whole again.
  forward_->set_scene(pair_ ? pair_->forward.scene : nullptr, same_place && !forward_->is_fitted());
  backward_->set_scene(pair_ ? pair_->backward.scene : nullptr, same_place && !backward_->is_fitted());
  saved_->set_rows(pair_ ? saved_rows(*pair_->cut, pair_->unknown) : std::vector<Row>{});
  if (!pair_) return total_->setText(tr("Open a joint graph to see what its forward hands to its backward."));
  const CutSummary& cut = *pair_->cut;
  const UnknownBytes& unknown = pair_->unknown;
  QString line = tr("%1 saved, %2; %3; %4 recomputed")
                     .arg(unknown.values)
                     .arg(size_text(unknown.saved), kept_inputs_text(unknown))
                     .arg(cut.recomputed.size());
  total_->setText(line + tr(" for %1 operations").arg(operations_text(cut.recomputed_operations)));
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
