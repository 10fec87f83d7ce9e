#include "views/compare/compare_view.h"

#include <QCheckBox>
#include <algorithm>
#include <cmath>

#include "views/look/arrange.h"
#include "views/look/combo_box.h"
#include "views/look/elided_label.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

// How bad a row is: a death is worst, then wrong layouts, then NaNs and infinities on one side, then what differs by
// its error, then what differs because an input did.
std::pair<int, double> badness(const Difference& d) {
  if (d.inherited()) return {1, d.max_abs};
  return {!d.died.empty() ? 5 : !d.layout.empty() ? 4 : d.specials_differ() ? 3 : d.ok() ? 0 : 2, d.max_abs};
}

QString what_is_wrong(const Difference& d) {
  if (!d.died.empty()) return text(d.died);
  QStringList parts;
  if (d.inherited()) parts << QString("after %1").arg(text(d.inherited_from));
  for (const std::string& line : d.layout) parts << text(line);
  if (d.nan_expected != d.nan_found) parts << QString("%1 NaN expected, %2 found").arg(d.nan_expected).arg(d.nan_found);
  if (d.inf_expected != d.inf_found) parts << QString("%1 inf expected, %2 found").arg(d.inf_expected).arg(d.inf_found);
  if (d.wrong > 0 && d.first_wrong) {
    QStringList index;
    for (auto i : d.first_wrong->index) index << QString::number(i);
    parts << QString("[%1] %2 expected, %3 found")
                 .arg(index.join(", "))
                 .arg(d.first_wrong->expected, 0, 'g', 6)
                 .arg(d.first_wrong->found, 0, 'g', 6);
  }
  if (d.rounding) parts << "rounding: no farther from f64 than expected is";
  return parts.join("; ");
}

}  // namespace

void note_error(NodeFacts& facts, const Difference& d, const Tolerance& tolerance) {
  facts.error = d.specials_differ() ? NAN : d.max_abs;
  facts.wrong = !d.ok();
  facts.inherited_from = d.inherited() ? d.inherited_from : std::string();
  facts.tolerance = tolerance.absolute;
}

QString verdict_of(const Difference& d) {
  return !d.died.empty() ? "died"
         : d.inherited() ? "inherited"
         : !d.ok()       ? "differs"
         : d.rounding    ? "rounding"
                         : "agrees";
}

std::vector<Row> report_rows(const Report& report, const Tolerance& tolerance) {
  std::vector<const Difference*> order;
  for (const Difference& d : report.rows) order.push_back(&d);
  std::stable_sort(order.begin(), order.end(),
                   [](const Difference* a, const Difference* b) { return badness(*a) > badness(*b); });
  std::vector<Row> rows;
  for (const Difference* d : order) {
    const bool first = !d->ok() && !d->inherited();
    Tone tone = first ? Tone::Bad : d->ok() && !d->rounding ? Tone::Plain : Tone::Warn;
    Cell verdict(verdict_of(*d), tone == Tone::Plain ? Tone::Good : tone);
    rows.push_back({text(d->name),
                    {verdict, Cell(text(d->name)), Cell(error_text(d->max_abs), d->max_abs, tone),
                     Cell(error_text(d->max_rel), d->max_rel, tone),
                     d->max_ulp ? Cell(QString::number(*d->max_ulp), static_cast<double>(*d->max_ulp)) : Cell(),
                     Cell(QString("%1 / %2").arg(d->wrong).arg(d->numel), static_cast<double>(d->wrong),
                          d->wrong ? Tone::Bad : Tone::Dim),
                     Cell(error_text(tolerance.absolute) + " + " + error_text(tolerance.relative) + "·|x|", Tone::Dim),
                     Cell(what_is_wrong(*d), tone), Cell(text(d->origin), Tone::Dim)}});
  }
  return rows;
}

CompareView::CompareView(QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  expected_ = new ComboBox(tr("Expected"));
  found_ = new ComboBox(tr("Found"));
  per_node_ = new QCheckBox(tr("every node"));
  per_node_->setChecked(true);
  inputs_ = new InputsBox;
  add_all(bar, {button_of(tr("Compare"), this, [this] { Q_EMIT run_asked(request()); }), expected_, new QLabel("="),
                found_, per_node_, inputs_});
  summary_ = new ElidedLabel;  // the end is cut off when it does not fit: the verdict comes first
  bar->addWidget(summary_, 1);
  const auto choose_first_wrong = [this] {
    table_->select_node(first_wrong_name_);
    Q_EMIT node_chosen(first_wrong_name_);
  };
  first_wrong_ = button_of(tr("First wrong"), this, choose_first_wrong,
                           tr("The first node in graph order that is outside the tolerance"));
  first_wrong_->hide();
  const auto ask_values = [this] {
    QString row = table_->current_node();
    Q_EMIT values_asked(row.isEmpty() ? table_->model()->rows().front().node : row);
  };
  values_ = button_of(tr("Values"), this, ask_values, tr("The values of the chosen row on both sides (Enter)"));
  values_->setEnabled(false);
  table_ = new TablePanel({tr("Verdict"), tr("Node or output"), tr("Largest error"), tr("Relative"), tr("ULP"),
                           tr("Wrong"), tr("Tolerance"), tr("What"), tr("From")});
  add_all(table_->bar(), {first_wrong_, values_});
  layout->addWidget(table_, 1);
  connect(table_, &TablePanel::node_chosen, this, &CompareView::node_chosen);
  connect(table_, &TablePanel::node_activated, this, &CompareView::values_asked);
}

void CompareView::set_backends(const QStringList& names, const QString& found) {
  for (auto* box : {expected_, found_}) {
    box->clear();
    box->addItems(names);
  }
  found_->setCurrentText(found);
}

CompareRequest CompareView::request() const {
  return {expected_->currentText(), found_->currentText(), per_node_->isChecked(), Tolerance{}, inputs_->path()};
}

void CompareView::set_report(const Report& report, const Tolerance& tolerance, const QString& summary,
                             const QString& first_wrong) {
  table_->set_rows(report_rows(report, tolerance));
  first_wrong_name_ = first_wrong;
  first_wrong_->setVisible(!first_wrong.isEmpty());
  values_->setEnabled(!report.rows.empty());
  summary_->setText(summary);
}

void CompareView::set_note(const QString& note) {
  summary_->setText(note);
}

void CompareView::clear(const QString& note) {
  table_->set_rows({});
  first_wrong_->hide();
  values_->setEnabled(false);
  summary_->setText(note);
}

void CompareView::select(const QString& node) {
  table_->select_node(node);
}

}  // namespace partita::views
