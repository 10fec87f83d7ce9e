// Turns reports into table rows: a column for each measure of a single report, a short cell per report of several, the
// worst first. The widget has the sides, the tolerance and the columns to add.
#include "views/compare/compare_view.h"

#include <QCheckBox>
#include <QDoubleValidator>
#include <QLineEdit>
#include <QWidgetAction>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/ir/place.h"
#include "views/look/arrange.h"
#include "views/look/combo_box.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

QString what_is_wrong(const Difference& d) {
  if (!d.died.empty()) return text(d.died);
  QStringList parts;
  if (d.inherited()) parts << QString("after %1").arg(text(d.inherited_from));
  parts << texts(d.layout);
  if (d.nan_expected != d.nan_found) parts << QString("%1 NaN expected, %2 found").arg(d.nan_expected).arg(d.nan_found);
  if (d.inf_expected != d.inf_found) parts << QString("%1 inf expected, %2 found").arg(d.inf_expected).arg(d.inf_found);
  if (d.wrong > 0 && d.first_wrong) {
    parts << QString("[%1] %2 expected, %3 found")
                 .arg(numbers_text(d.first_wrong->index))
                 .arg(d.first_wrong->expected, 0, 'g', 6)
                 .arg(d.first_wrong->found, 0, 'g', 6);
  }
  if (d.expected_is_off) parts << "the expected value is off: f64 is nearer to the found one";
  if (d.rounding) parts << "rounding: no farther from f64 than expected is";
  return parts.join("; ");
}

const QStringList& report_columns() {
  static const QStringList names{"Verdict",   "Node or output", "Largest error", "Relative", "ULP",  "Wrong",
                                 "Tolerance", "What",           "From",          "Alone",    "Norm", "Cosine"};
  return names;
}

Tone tone_of(const Difference& d) {
  return !d.ok() && !d.inherited() ? Tone::Bad : d.ok() && !d.rounding ? Tone::Plain : Tone::Warn;
}

/// The error of the node alone, when it was run so.
Cell alone_cell(const Difference& d) {
  if (!d.own) return {};
  return {error_text(d.own->max_abs), d.own->max_abs, d.own->ok ? Tone::Dim : Tone::Bad};
}

Cell norm_cell(const std::optional<Statistics>& s) {
  if (!s) return {};
  QString text = QString::number(s->norm, 'g', 6);
  if (s->nan) text += QString(", %1 NaN").arg(s->nan);
  if (s->inf) text += QString(", %1 inf").arg(s->inf);
  return {text, s->norm, s->nan || s->inf ? Tone::Warn : Tone::Dim};
}

/// "differs 9.3e-3, alone 9.3e-3"
Cell short_cell(const Difference& d) {
  QString words = verdict_of(d);
  if (d.died.empty() && d.layout.empty() && !(d.by_statistics && d.ok()))
    words += (d.by_statistics ? " ≥ " : " ") + error_text(d.max_abs);
  if (d.own && !d.ok()) words += ", alone " + error_text(d.own->max_abs);
  const Tone tone = tone_of(d);
  return {words, badness(d).first * 1e30 + d.max_abs, tone == Tone::Plain ? Tone::Good : tone};
}

}  // namespace

std::unordered_map<std::string, std::string> shown_nodes(const Graph& shown, const std::vector<Report>& reports) {
  std::unordered_map<std::string, std::string> out;
  const NodesByPlace nodes(shown);
  for (const Report& report : reports)
    for (const Difference& d : report.rows)
      if (const Node* node = nodes.find(d.name, d.origin)) out.emplace(d.name, node->name());
  return out;
}

void note_error(NodeFacts& facts, const Difference& d, const Tolerance& tolerance) {
  facts.error = d.specials_differ() ? NAN : d.max_abs;
  facts.wrong = !d.ok();
  facts.inherited_from = d.inherited() ? d.inherited_from : std::string();
  facts.tolerance = tolerance.absolute;
}

std::pair<int, double> badness(const Difference& d) {
  if (d.inherited()) return {1, d.max_abs};
  return {!d.died.empty() ? 5 : !d.layout.empty() ? 4 : d.specials_differ() ? 3 : d.ok() ? 0 : 2, d.max_abs};
}

QString verdict_of(const Difference& d) {
  return !d.died.empty()                                                              ? "died"
         : d.inherited()                                                              ? "inherited"
         : !d.ok()                                                                    ? "differs"
         : d.rounding                                                                 ? "rounding"
         : d.by_statistics && d.expected_statistics->hash != d.found_statistics->hash ? "alike"
                                                                                      : "agrees";
}

std::vector<Row> report_rows(const Report& report, const Tolerance& tolerance, std::vector<ComparedRow>& keys) {
  std::vector<const Difference*> order;
  for (const Difference& d : report.rows) order.push_back(&d);
  std::stable_sort(order.begin(), order.end(),
                   [](const Difference* a, const Difference* b) { return badness(*a) > badness(*b); });
  std::vector<Row> rows;
  keys.clear();
  for (const Difference* d : order) {
    keys.push_back({report.graph, d->name});
    const Tone tone = tone_of(*d);
    Cell verdict(verdict_of(*d), tone == Tone::Plain ? Tone::Good : tone);
    rows.push_back(
        {text(d->name),
         {verdict, Cell(text(d->name)), Cell(error_text(d->max_abs), d->max_abs, tone),
          Cell(error_text(d->max_rel), d->max_rel, tone),
          d->max_ulp ? Cell(QString::number(*d->max_ulp), static_cast<double>(*d->max_ulp)) : Cell(),
          Cell(QString("%1 / %2").arg(d->wrong).arg(d->numel), static_cast<double>(d->wrong),
               d->wrong ? Tone::Bad : Tone::Dim),
          Cell(error_text(tolerance.absolute) + " + " + error_text(tolerance.relative) + "·|x|", Tone::Dim),
          Cell(what_is_wrong(*d), tone), Cell(text(d->origin), Tone::Dim), alone_cell(*d),
          norm_cell(d->found_statistics), d->cosine ? Cell(QString::number(*d->cosine, 'g', 9), *d->cosine) : Cell()}});
  }
  return rows;
}

std::vector<Row> table_rows(const std::vector<Report>& reports,
                            const std::unordered_map<std::string, std::string>& shown, std::vector<ComparedRow>& keys) {
  std::map<std::pair<std::string, std::string>, std::size_t> row_of;  // by graph and name
  struct Ranked {
    std::pair<int, double> worst;
    Row row;
    ComparedRow key;
  };
  std::vector<Ranked> rows;
  QStringList names;
  for (const Report& r : reports)
    if (!names.contains(text(r.found_name))) names << text(r.found_name);
  const bool one_graph =
      std::ranges::all_of(reports, [&](const Report& r) { return r.graph == reports.front().graph; });
  for (const Report& report : reports)
    for (const Difference& d : report.rows) {
      const auto [at, is_new] = row_of.emplace(std::pair(report.graph, d.name), rows.size());
      if (is_new) {
        const auto node = shown.find(d.name);
        Row row{text(node == shown.end() ? d.name : node->second), {}};
        row.cells.emplace_back(one_graph ? text(d.name) : text(report.graph + ": " + d.name));
        row.cells.resize(static_cast<std::size_t>(names.size()) + 1);
        row.cells.push_back(norm_cell(d.expected_statistics));
        row.cells.emplace_back(text(d.origin), Tone::Dim);
        rows.push_back({{}, std::move(row), {report.graph, d.name}});
      }
      auto& [worst, row, key] = rows[at->second];
      worst = std::max(worst, badness(d));
      row.cells[static_cast<std::size_t>(names.indexOf(text(report.found_name))) + 1] = short_cell(d);
    }
  std::ranges::stable_sort(rows, std::greater(), &Ranked::worst);
  std::vector<Row> out;
  keys.clear();
  for (Ranked& ranked : rows) {
    out.push_back(std::move(ranked.row));
    keys.push_back(std::move(ranked.key));
  }
  return out;
}

CompareView::CompareView(QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  expected_ = new ComboBox(tr("Expected"));
  expected_->setToolTip(tr("The reference: what all columns are compared with"));
  found_ = new ComboBox(tr("Found"));
  found_->setEditable(true);
  found_->setInsertPolicy(QComboBox::NoInsert);
  found_->setCompleter(nullptr);
  found_->setMinimumContentsLength(10);
  found_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  found_->lineEdit()->setAccessibleName(tr("Found"));
  found_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  found_->setMaximumWidth(480);
  found_->setToolTip(
      tr("What is compared, with blanks between them: cpu f64 cpu+fuse=false past:12. + adds one to the others."));
  auto* add = menu_button("+", tr("Add a column"));
  add->setAccessibleName(add->toolTip());
  more_ = add->menu();
  connect(more_, &QMenu::aboutToShow, this, &CompareView::offer_columns);
  per_node_ = new QCheckBox(tr("every node"));
  per_node_->setChecked(true);
  train_ = new QCheckBox(tr("with gradients"));
  train_->setToolTip(tr("Compare the forward and the backward that are made of this graph"));
  const auto tolerance = [](double value, const QString& name) {
    auto* field = new QLineEdit(QString::number(value));
    auto* numbers = new QDoubleValidator(0, 1e30, 12, field);
    numbers->setLocale(QLocale::c());
    field->setValidator(numbers);
    field->setAccessibleName(name);
    field->setToolTip(name);
    field->setFixedWidth(80);
    return field;
  };
  absolute_ = tolerance(Tolerance{}.absolute, tr("Absolute tolerance"));
  relative_ = tolerance(Tolerance{}.relative, tr("Relative tolerance, times the size of the expected value"));
  inputs_ = new InputsBox;
  auto* options = menu_button(tr("Options ▾"), tr("Every node or results only, gradients, tolerance"));
  auto* page = new QWidget;
  auto* lines = new QVBoxLayout(page);
  auto* allowed = new QHBoxLayout;
  add_all(allowed, {new QLabel(tr("Tolerance")), absolute_, new QLabel("+"), relative_, new QLabel("·|x|")});
  add_all(lines, {per_node_, train_});
  lines->addLayout(allowed);
  auto* shown = new QWidgetAction(options);
  shown->setDefaultWidget(page);
  options->menu()->addAction(shown);
  add_all(bar, {button_of(tr("Compare"), this, [this] { Q_EMIT run_asked(request()); }), expected_, new QLabel("="),
                found_, add, options, inputs_});
  bar->setStretchFactor(found_, 4);
  bar->addStretch(1);
  summary_ = new ElidedLabel;  // the end is cut off when it does not fit: the verdict comes first
  const auto choose_first_wrong = [this] {
    table_->select_node(first_wrong_name_);
    Q_EMIT node_chosen(first_wrong_name_);
  };
  first_wrong_ = button_of(tr("First wrong"), this, choose_first_wrong,
                           tr("The first node in graph order that is outside the tolerance"));
  first_wrong_->hide();
  keep_place(first_wrong_);
  const auto ask_values = [this] {
    QString row = table_->current_node();
    Q_EMIT values_asked(row.isEmpty() ? table_->model()->rows().front().node : row);
  };
  values_ = button_of(tr("Values"), this, ask_values, tr("The values of the chosen row on both sides (Enter)"));
  values_->setEnabled(false);
  table_ = new TablePanel(report_columns());
  table_->bar()->insertWidget(2, summary_, 4);  // beside the filter, where rows are counted
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

void CompareView::choose_columns(const QStringList& columns) {
  found_->setEditText(columns.join(' '));
  found_->lineEdit()->setCursorPosition(0);
}

void CompareView::offer_columns() {
  more_->clear();
  const auto offer = [this](const QString& word, const QString& title) {
    more_->addAction(title.isEmpty() ? word : word + "   " + title, this,
                     [this, word] { found_->setEditText((found_->currentText() + " " + word).simplified()); });
  };
  for (int i = 0; i < expected_->count(); ++i) offer(expected_->itemText(i), {});
  more_->addSeparator();
  offer("cpu+disable_passes=all", tr("without the passes that only make graphs better"));
  offer("cpu+fuse=false", tr("a kernel for each operator"));
  offer("cpu+freezing=true", tr("parameters as constants; results only"));
  offer("stored", tr("the results in the file of the inputs"));
  if (!past_.empty()) more_->addSection(tr("Comparisons of the past"));
  for (const PastColumn& past : past_) offer(past.word, past.title);
}

CompareRequest CompareView::request() const {
  std::vector<std::string> found;
  for (const QString& word : found_->currentText().simplified().split(' ', Qt::SkipEmptyParts))
    found.push_back(word.toStdString());
  return {expected_->currentText().toStdString(),
          std::move(found),
          per_node_->isChecked(),
          {relative_->text().toDouble(), absolute_->text().toDouble()},
          inputs_->path().toStdString(),
          train_->isChecked()};
}

void CompareView::set_report(const std::vector<Report>& reports, const Tolerance& tolerance, const QString& summary,
                             const QString& first_wrong, const std::unordered_map<std::string, std::string>& shown) {
  const bool one = reports.size() == 1;
  QStringList columns = report_columns();
  if (reports.size() > 1) {
    columns = {tr("Node or output")};
    for (const Report& r : reports)
      if (!columns.contains(text(r.found_name))) columns << text(r.found_name);
    columns << tr("Norm of %1").arg(text(reports.front().expected_name)) << tr("From");
  }
  if (table_->model()->columns() != columns) table_->model()->set_columns(columns);
  std::vector<Row> rows = one ? report_rows(reports.front(), tolerance, keys_) : table_rows(reports, shown, keys_);
  for (Row& row : rows)
    if (const auto node = shown.find(row.node.toStdString()); one && node != shown.end()) row.node = text(node->second);
  values_->setEnabled(!rows.empty());
  table_->set_rows(std::move(rows));
  first_wrong_name_ = first_wrong;
  first_wrong_->setVisible(!first_wrong.isEmpty());
  summary_->setText(summary);
}

void CompareView::clear(const QString& note) {
  table_->set_rows({});
  keys_.clear();
  first_wrong_->hide();
  values_->setEnabled(false);
  summary_->setText(note);
}

std::optional<ComparedRow> CompareView::row_of(const QString& node) const {
  const std::vector<Row>& rows = table_->model()->rows();
  const auto is_it = [&](std::size_t i) { return i < keys_.size() && rows[i].node == node; };
  if (const std::vector<int> chosen = table_->chosen_rows(); !chosen.empty())
    if (const auto i = static_cast<std::size_t>(chosen.front()); is_it(i)) return keys_[i];
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (is_it(i)) return keys_[i];
  return std::nullopt;
}

}  // namespace partita::views
