#include "views/tensor/tensor_view.h"

#include <QSlider>

#include "views/look/arrange.h"
#include "views/look/combo_box.h"

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
  first_wrong_ = button_of(tr("First over tolerance"), this, [this] { go_to(pair_->first_wrong); });
  worst_ = button_of(tr("Worst"), this, [this] { go_to(pair_->worst); });
  add_all(top, {first_wrong_, worst_});
  column->addLayout(top);
  verdict_ = new QLabel(tr("Choose a row of a comparison and press Enter, or Graph > Look at the values (Ctrl+E)"));
  make_readable(verdict_, {12, 2, 12, 8});
  column->addWidget(verdict_);

  body_ = new QWidget;
  auto* body = new QVBoxLayout(body_);
  body->setContentsMargins(4, 0, 4, 0);
  auto* pictures = new QHBoxLayout;
  for (Layer layer : {Layer::Expected, Layer::Found, Layer::Error}) {
    auto* pane = new GridPane(layer);
    connect(pane, &GridPane::cell_chosen, this, &TensorView::choose_cell);
    panes_[static_cast<std::size_t>(layer)] = pane;
    pictures->addWidget(pane, 1);
  }
  body->addLayout(pictures, 3);
  auto* plots = new QHBoxLayout;
  values_ = new HistogramPlot;
  errors_ = new HistogramPlot;
  plots->addWidget(values_, 1);
  plots->addWidget(errors_, 1);
  body->addLayout(plots, 1);
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
  pair_ = nullptr;
  grid_ = nullptr;
  heading_->setText(tr("Values"));
  verdict_->setText(note);
  body_->hide();
  first_wrong_->hide();
  worst_->hide();
}

void TensorView::set_pair(std::shared_ptr<const TensorPair> pair) {
  bool alike = pair_ && pair_->sizes() == pair->sizes();
  pair_ = std::move(pair);
  grid_ = nullptr;
  heading_->setText(pair_->name + "   " + pair_->type);
  verdict_->setText(pair_text(*pair_));
  first_wrong_->setVisible(pair_->first_wrong >= 0);
  worst_->setVisible(!pair_->errors.counts.empty());
  body_->show();
  for (GridPane* pane : panes_) pane->set_content({}, nullptr, {}, 0);
  values_->set_content(tr("values: %1 filled, %2 line").arg(pair_->expected_name, pair_->found_name),
                       pair_->expected_values, pair_->found_values, NAN, {});
  errors_->set_content(tr("differences, %1 equal").arg(pair_->equal), pair_->errors, {}, pair_->tolerance.absolute,
                       tr("tolerance"));
  std::int64_t start = pair_->first_wrong >= 0 ? pair_->first_wrong : pair_->worst;
  wanted_ = start;
  if (pair_->expected.numel() > 0) ask(alike ? slice_through(*pair_, start, slice_) : slice_through(*pair_, start));
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
  if (const GridCell* cell = grid_ ? grid_->at(0, 0) : nullptr; cell && wanted_ < 0) wanted_ = cell->position;
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
  const Sizes& sizes = pair_->sizes();
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
    auto told = [d, n = sizes[k]](int at) { return tr("dim %1: %2 of %3").arg(d).arg(at).arg(n); };
    auto* label = new QLabel(told(static_cast<int>(slice_.at[k])));
    label->setMinimumWidth(label->fontMetrics().horizontalAdvance(told(static_cast<int>(sizes[k]))));
    auto* slider = new QSlider(Qt::Horizontal);
    slider->setAccessibleName(tr("Index in dimension %1").arg(d));
    slider->setRange(0, static_cast<int>(sizes[k]) - 1);
    slider->setValue(static_cast<int>(slice_.at[k]));
    connect(slider, &QSlider::valueChanged, this, [this, k, label, told](int at) {
      label->setText(told(at));
      slice_.at[k] = at;
      wanted_ = -1;
      Q_EMIT slice_asked(slice_);
    });
    row->addWidget(label);
    row->addWidget(slider, 1);
  }
}

void TensorView::set_grid(const Slice& slice, std::shared_ptr<const Grid> grid) {
  if (!pair_ || !(slice == slice_)) return;  // the answer to an earlier request
  grid_ = std::move(grid);
  tell_grid();
}

void TensorView::tell_grid() {
  TensorColours colours = TensorColours::of(*pair_);
  panes_[0]->set_content(pair_->expected_name, grid_, colours, 0);
  panes_[1]->set_content(pair_->found_name, grid_, colours, 0);
  panes_[2]->set_content(tr("|%1 - %2|, logarithmic").arg(pair_->found_name, pair_->expected_name), grid_, colours,
                         pair_->tolerance.absolute);
  int marked = pair_->first_wrong >= 0 ? grid_->cell_of(pair_->first_wrong) : -1;
  for (GridPane* pane : panes_) {
    pane->set_cell(-1, -1);
    pane->set_marked(marked);
  }
  int cell = wanted_ >= 0 ? grid_->cell_of(wanted_) : 0;
  if (grid_->columns > 0) choose_cell(std::max(cell, 0) / grid_->columns, std::max(cell, 0) % grid_->columns);
}

void TensorView::choose_cell(int row, int column) {
  const GridCell* cell = grid_ ? grid_->at(row, column) : nullptr;
  if (!cell || cell->position < 0) return;
  wanted_ = cell->position;
  for (GridPane* pane : panes_) pane->set_cell(row, column);
  readout_->setText(cell_text(*pair_, *grid_, *cell));
  readout_->setToolTip(readout_->text());
}

void TensorView::go_to(std::int64_t position) {
  if (!pair_ || position < 0) return;
  wanted_ = position;
  int cell = grid_ ? grid_->cell_of(position) : -1;
  if (cell >= 0) return choose_cell(cell / grid_->columns, cell % grid_->columns);
  ask(slice_through(*pair_, position, slice_));
}

QString TensorView::readout() const {
  return readout_->text();
}

}  // namespace partita::views
