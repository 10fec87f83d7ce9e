// Lays out grid panes, histograms and controls of dimensions, for one column or several. Slices are asked for by a
// signal, and grids for a slice that is no longer wanted are dropped.
#include "views/tensor/tensor_view.h"

#include <QGridLayout>
#include <QSlider>
#include <algorithm>

#include "core/base/mapped.h"
#include "views/look/arrange.h"
#include "views/look/combo_box.h"
#include "views/look/format.h"

namespace partita::views {

TensorView::TensorView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Tensor"));
  auto* column = plain_column(this);
  auto* top = new QHBoxLayout;
  top->setContentsMargins(12, 6, 12, 2);
  top->setSpacing(8);
  heading_ = styled_label("heading", tr("No values"));
  heading_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  top->addWidget(heading_, 1);
  column_ = new ComboBox(tr("Column"));
  column_->setToolTip(tr("The column that verdict and histograms are of"));
  connect(column_, &QComboBox::activated, this, &TensorView::choose_column);
  first_wrong_ = button_of(tr("First over tolerance"), this, [this] { go_to(pair()->first_wrong); });
  worst_ = button_of(tr("Worst"), this, [this] { go_to(pair()->worst); });
  add_all(top, {column_, first_wrong_, worst_});
  column->addLayout(top);
  verdict_ = new QLabel(tr("Choose a row of a comparison and press Enter, or Graph > Look at the values (Ctrl+E)"));
  make_readable(verdict_, {12, 2, 12, 8});
  column->addWidget(verdict_);

  body_ = new QWidget;
  auto* body = new QVBoxLayout(body_);
  body->setContentsMargins(4, 0, 4, 0);
  auto* page = new QWidget;
  pictures_ = new QGridLayout(page);
  pictures_->setContentsMargins(0, 0, 0, 0);
  body->addWidget(scrolled(page), 1);  // for columns that do not fit beside one another
  plots_ = new QWidget(page);          // it gets its place with the panes
  auto* plots = new QHBoxLayout(plots_);
  plots->setContentsMargins(0, 0, 0, 0);
  value_plot_ = new HistogramPlot;
  error_plot_ = new HistogramPlot;
  plots->addWidget(value_plot_, 1);
  plots->addWidget(error_plot_, 1);
  controls_ = new QHBoxLayout;
  controls_->setContentsMargins(8, 0, 8, 0);
  body->addLayout(controls_);
  readout_ = new QLabel;
  readout_->setFont(code_font());
  make_readable(readout_, {8, 2, 8, 6});
  readout_->setAccessibleName(tr("Values under the cursor"));
  body->addWidget(readout_);
  column->addWidget(body_, 1);
  column->addStretch(0);
  set_note(verdict_->text());
}

void TensorView::set_note(const QString& note) {
  values_ = {};
  grids_ = nullptr;
  current_ = 0;
  heading_->setText(tr("Values"));
  verdict_->setText(note);
  body_->hide();
  column_->hide();
  first_wrong_->hide();
  worst_->hide();
}

std::vector<const TensorPair*> TensorView::all() const {
  return mapped(pairs(), [](const auto& pair) { return pair.get(); });
}

// One column: expected, found and difference beside one another, histograms below. Several: a column for each, with
// its difference below it.
void TensorView::make_panes() {
  const std::size_t count = pairs().size();
  if (found_.size() == count) return;
  delete expected_;
  for (auto* panes : {&found_, &errors_}) {
    for (GridPane* pane : *panes) delete pane;
    panes->clear();
  }
  const auto make = [this](Layer layer, int row, int column) {
    auto* pane = new GridPane(layer);
    connect(pane, &GridPane::cell_chosen, this, &TensorView::choose_cell);
    pictures_->addWidget(pane, row, column);
    return pane;
  };
  const bool one = count == 1;
  for (int c = 0; c < pictures_->columnCount(); ++c) pictures_->setColumnStretch(c, 0);
  expected_ = make(Layer::Expected, 0, 0);
  for (int i = 0; i < static_cast<int>(count); ++i) {
    found_.push_back(make(Layer::Found, 0, i + 1));
    errors_.push_back(one ? make(Layer::Error, 0, 2) : make(Layer::Error, 1, i + 1));
  }
  const int columns = one ? 3 : static_cast<int>(count) + 1;
  for (int c = 0; c < columns; ++c) pictures_->setColumnStretch(c, 1);
  static_cast<QBoxLayout*>(plots_->layout())->setDirection(one ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  pictures_->removeWidget(plots_);
  pictures_->addWidget(plots_, 1, 0, 1, one ? 3 : 1);
  pictures_->setRowStretch(0, one ? 3 : 1);
  pictures_->setRowStretch(1, 1);
}

void TensorView::set_values(RowValues values) {
  const bool alike = pair() && pair()->sizes() == values.pairs.front()->sizes();
  values_ = std::move(values);
  grids_ = nullptr;
  const auto wrong = std::ranges::find_if(pairs(), [](const auto& p) { return p->first_wrong >= 0; });
  current_ = wrong == pairs().end() ? 0 : static_cast<std::size_t>(wrong - pairs().begin());
  heading_->setText(pair()->name + "   " + pair()->type);
  column_->clear();
  for (const auto& each : pairs()) column_->addItem(each->found_name);
  column_->setCurrentIndex(static_cast<int>(current_));
  column_->setVisible(pairs().size() > 1);
  body_->show();
  make_panes();
  expected_->set_content({}, nullptr, {}, 0);
  for (GridPane* pane : found_) pane->set_content({}, nullptr, {}, 0);
  for (GridPane* pane : errors_) pane->set_content({}, nullptr, {}, 0);
  tell_column();
  std::int64_t start = pair()->first_wrong >= 0 ? pair()->first_wrong : pair()->worst;
  wanted_ = start;
  if (pair()->expected.numel() > 0) ask(alike ? slice_through(*pair(), start, slice_) : slice_through(*pair(), start));
}

/// The verdicts on all columns, and the histograms of the current one.
void TensorView::tell_column() {
  const QStringList lines =
      texts(pairs(), [&](const auto& each) { return pairs().size() == 1 ? pair_text(*each) : column_text(*each); });
  verdict_->setText((lines + values_.without).join('\n'));
  verdict_->setToolTip(pairs().size() == 1 ? QString() : pair()->found_name + ": " + pair_text(*pair()));
  first_wrong_->show();
  worst_->show();
  first_wrong_->setEnabled(pair()->first_wrong >= 0);  // greyed, so that the other one stays where it is
  worst_->setEnabled(!pair()->errors.counts.empty());
  value_plot_->set_content(tr("values: %1 filled, %2 line").arg(pair()->expected_name, pair()->found_name),
                           pair()->expected_values, pair()->found_values, NAN, {});
  error_plot_->set_content(tr("differences, %1 equal").arg(pair()->equal), pair()->errors, {},
                           pair()->tolerance.absolute, tr("tolerance"));
}

void TensorView::choose_column(int column) {
  if (column < 0 || column >= static_cast<int>(pairs().size())) return;
  current_ = static_cast<std::size_t>(column);
  column_->setCurrentIndex(column);
  tell_column();
  if (grids_) tell_grid();
}

void TensorView::ask(const Slice& slice) {
  slice_ = slice;
  make_controls();
  Q_EMIT slice_asked(slice_);
}

void TensorView::choose_dimension(bool rows, int dimension) {
  Slice slice = slice_;
  int& mine = rows ? slice.rows : slice.columns;
  int& other = rows ? slice.columns : slice.rows;
  if (mine == dimension) return;
  if (other == dimension) other = mine;
  mine = dimension;
  if (const GridCell* cell = grid() ? grid()->at(0, 0) : nullptr; cell && wanted_ < 0) wanted_ = cell->position;
  ask(slice);
}

// The controls below the pictures: which dimensions are drawn, and a slider for each of the others.
void TensorView::make_controls() {
  if (control_box_) control_box_->deleteLater();
  control_box_ = new QWidget;
  controls_->addWidget(control_box_);
  auto* row = new QHBoxLayout(control_box_);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(8);
  const Sizes& sizes = pair()->sizes();
  int rank = static_cast<int>(sizes.size());
  control_box_->setVisible(rank > 2);
  if (rank <= 2) return;
  for (bool rows : {true, false}) {
    row->addWidget(new QLabel(rows ? tr("down") : tr("across")));
    auto* box = new ComboBox(rows ? tr("Dimension drawn downwards") : tr("Dimension drawn across"));
    for (int d = 0; d < rank; ++d) box->addItem(tr("dim %1 (%2)").arg(d).arg(sizes[static_cast<std::size_t>(d)]));
    box->setCurrentIndex(rows ? slice_.rows : slice_.columns);
    connect(box, &QComboBox::activated, this, [this, rows](int d) { choose_dimension(rows, d); });
    row->addWidget(box);
  }
  for (int d = 0; d < rank; ++d) {
    auto k = static_cast<std::size_t>(d);
    if (d == slice_.rows || d == slice_.columns) continue;
    auto caption = [d, n = sizes[k]](int at) { return tr("dim %1: %2 of %3").arg(d).arg(at).arg(n); };
    auto* label = new QLabel(caption(static_cast<int>(slice_.at[k])));
    label->setMinimumWidth(label->fontMetrics().horizontalAdvance(caption(static_cast<int>(sizes[k]))));
    auto* slider = new QSlider(Qt::Horizontal);
    slider->setAccessibleName(tr("Index in dimension %1").arg(d));
    slider->setRange(0, static_cast<int>(sizes[k]) - 1);
    slider->setValue(static_cast<int>(slice_.at[k]));
    connect(slider, &QSlider::valueChanged, this, [this, k, label, caption](int at) {
      label->setText(caption(at));
      slice_.at[k] = at;
      wanted_ = -1;
      Q_EMIT slice_asked(slice_);
    });
    row->addWidget(label);
    row->addWidget(slider, 1);
  }
}

void TensorView::set_grids(const Slice& slice, std::shared_ptr<const std::vector<Grid>> grids) {
  if (pairs().empty() || !(slice == slice_)) return;  // the answer to an earlier request
  grids_ = std::move(grids);
  tell_grid();
}

void TensorView::tell_grid() {
  const TensorColours colours = TensorColours::of(all());
  const auto grid_of = [this](std::size_t i) { return std::shared_ptr<const Grid>(grids_, &(*grids_)[i]); };
  expected_->set_content(pair()->expected_name, grid_of(0), colours, 0);
  expected_->set_marked(pair()->first_wrong >= 0 ? grid()->cell_of(pair()->first_wrong) : -1);
  expected_->set_cell(-1, -1);
  for (std::size_t i = 0; i < pairs().size(); ++i) {
    const TensorPair& each = *pairs()[i];
    found_[i]->set_content(each.found_name, grid_of(i), colours, 0);
    errors_[i]->set_content(tr("|%1 - %2|, logarithmic").arg(each.found_name, each.expected_name), grid_of(i), colours,
                            each.tolerance.absolute);
    const int marked = each.first_wrong >= 0 ? grid_of(i)->cell_of(each.first_wrong) : -1;
    for (GridPane* pane : {found_[i], errors_[i]}) {
      pane->set_cell(-1, -1);
      pane->set_marked(marked);
    }
  }
  const Grid& shown = *grid();
  int cell = wanted_ >= 0 ? shown.cell_of(wanted_) : 0;
  if (shown.columns > 0) choose_cell(std::max(cell, 0) / shown.columns, std::max(cell, 0) % shown.columns);
}

void TensorView::choose_cell(int row, int column) {
  const GridCell* cell = grid() ? grid()->at(row, column) : nullptr;
  if (!cell || cell->position < 0) return;
  wanted_ = cell->position;
  expected_->set_cell(row, column);
  for (GridPane* pane : found_) pane->set_cell(row, column);
  for (GridPane* pane : errors_) pane->set_cell(row, column);
  if (pairs().size() == 1) {
    readout_->setText(cell_text(*pair(), *grid(), *cell));
  } else {
    readout_->setText(cells_text(all(), mapped(*grids_, [&](const Grid& each) { return *each.at(row, column); })));
  }
  readout_->setToolTip(readout_->text());
}

void TensorView::go_to(std::int64_t position) {
  if (!pair() || position < 0) return;
  wanted_ = position;
  int cell = grid() ? grid()->cell_of(position) : -1;
  if (cell >= 0) return choose_cell(cell / grid()->columns, cell % grid()->columns);
  ask(slice_through(*pair(), position, slice_));
}

}  // namespace partita::views
