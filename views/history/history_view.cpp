// Past checks, runs and cache entries in one table, and one or two of a kind side by side: reports by node, runs by
// property, cache entries by the lines in which their keys differ.
#include "views/history/history_view.h"

#include <QDateTime>
#include <algorithm>
#include <cmath>

#include "core/base/mapped.h"
#include "core/compare/changes.h"
#include "views/compare/compare_view.h"
#include "views/look/arrange.h"
#include "views/look/elided_label.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

QString error_of(const Difference& d) {
  return d.specials_differ() ? QString("nan") : error_text(d.max_abs);
}

QString kind_name(PastWork::Kind kind) {
  static constexpr const char* names[] = {"check", "run", "cache"};
  return names[static_cast<std::size_t>(kind)];
}

Tone tone_of(const PastWork& p) {
  if (p.kind == PastWork::Kind::Entry) return Tone::Dim;
  return p.ok ? Tone::Good : Tone::Bad;
}

Tone tone_of(RowChange change) {
  if (change == RowChange::Broken) return Tone::Bad;
  if (change == RowChange::BrokenAfter || change == RowChange::Worse) return Tone::Warn;
  if (change == RowChange::Fixed || change == RowChange::Better) return Tone::Good;
  return Tone::Dim;
}

void add_side(std::vector<Cell>& cells, const Difference* d) {
  if (!d) return cells.insert(cells.end(), 2, Cell()), void();
  Tone tone = d->ok() && !d->rounding ? Tone::Good : d->ok() || d->inherited() ? Tone::Warn : Tone::Bad;
  cells.emplace_back(verdict_of(*d), tone);
  cells.emplace_back(error_of(*d), d->specials_differ() ? INFINITY : d->max_abs, d->ok() ? Tone::Plain : Tone::Bad);
}

}  // namespace

std::vector<PastWork> past_work(const std::vector<StoredCheck>& checks, const std::vector<StoredRun>& runs,
                                const std::vector<StoredEntry>& entries) {
  std::vector<PastWork> past;
  for (const StoredCheck& c : checks)
    past.push_back({PastWork::Kind::Check, c.id, c.at, text(c.row.path), text(c.row.graph), text(c.row.kind),
                    c.row.ok ? "ok" : "differs", c.row.ok, -1});
  for (const StoredRun& r : runs)
    past.push_back({PastWork::Kind::Run, r.id, r.at, text(r.row.path), text(r.row.graph),
                    QString(text(r.row.backend) + " " + text(r.row.options)).trimmed(), text(r.row.outcome),
                    r.row.outcome == "ok", r.row.milliseconds});
  for (const StoredEntry& e : entries)
    past.push_back({PastWork::Kind::Entry,
                    e.id,
                    e.at,
                    {},
                    text(e.graph),
                    text(e.cache),
                    e.hits > 0 ? "found " + count_text(e.hits, "time") : "not found again",
                    true,
                    -1});
  std::ranges::stable_sort(past, std::greater{}, &PastWork::at);
  return past;
}

std::vector<Row> past_rows(const std::vector<PastWork>& past) {
  std::vector<Row> rows;
  for (const PastWork& p : past)
    rows.push_back({{},
                    {Cell(QDateTime::fromSecsSinceEpoch(p.at).toString("yyyy-MM-dd hh:mm:ss")),
                     Cell(kind_name(p.kind), Tone::Dim), Cell(p.outcome, tone_of(p)),
                     Cell(p.path.isEmpty() ? QString() : file_title(p.path)), Cell(p.graph), Cell(p.what, Tone::Dim),
                     p.milliseconds < 0 ? Cell() : Cell(seconds_text(p.milliseconds / 1000), p.milliseconds)}});
  return rows;
}

std::vector<int> newest_pair(const std::vector<PastWork>& past) {
  auto is_check = [](const PastWork& p) { return p.kind == PastWork::Kind::Check && p.what == "compare"; };
  auto newest = std::ranges::find_if(past, is_check);
  if (newest == past.end()) return {};
  auto before = std::find_if(newest, past.end(), [&](const PastWork& p) {
    return is_check(p) && p.path == newest->path && p.graph == newest->graph && p.at != newest->at;
  });
  std::vector<int> rows{static_cast<int>(newest - past.begin())};
  if (before != past.end()) rows.push_back(static_cast<int>(before - past.begin()));
  return rows;
}

std::vector<Row> side_by_side(const Report& a, const Report* b) {
  std::vector<Row> rows;
  const auto add = [&](const Difference* first, const Difference* second, Cell how) {
    const QString name = text((first ? first : second)->name);
    Row& row = rows.emplace_back(Row{name, {Cell(name)}});
    add_side(row.cells, first);
    add_side(row.cells, second);
    row.cells.push_back(std::move(how));
  };
  if (b) {
    for (const ChangedRow& row : changed_rows(a, *b)) add(row.a, row.b, Cell(text(row.text), tone_of(row.change)));
    return rows;
  }
  std::vector<const Difference*> order;
  for (const Difference& d : a.rows) order.push_back(&d);
  std::ranges::stable_sort(order, [](const Difference* x, const Difference* y) {
    const auto error = [](const Difference* d) { return d->specials_differ() ? INFINITY : d->max_abs; };
    return x->ok() != y->ok() ? !x->ok() : error(x) > error(y);
  });
  for (const Difference* d : order) add(d, nullptr, {});
  return rows;
}

std::vector<Row> side_by_side(const PastWork& a, const PastWork* b) {
  std::vector<Row> rows;
  auto add = [&](const QString& name, const QString& first, const QString& second, Cell how) {
    rows.push_back({{}, {Cell(name), Cell(first), Cell(), Cell(b ? second : QString()), Cell(), b ? how : Cell()}});
  };
  auto plain = [&](const QString& name, const QString& first, const QString& second) {
    add(name, first, second, Cell(first == second ? "same" : "other", first == second ? Tone::Dim : Tone::Warn));
  };
  const PastWork& other = b ? *b : a;
  double ratio = a.milliseconds > 0 ? other.milliseconds / a.milliseconds : NAN;
  add("time", seconds_text(a.milliseconds / 1000), seconds_text(other.milliseconds / 1000),
      ratio > 1    ? Cell(QString("%1 times slower").arg(ratio, 0, 'g', 3), Tone::Warn)
      : ratio <= 1 ? Cell(QString("%1 times faster").arg(1 / ratio, 0, 'g', 3), Tone::Good)
                   : Cell());
  plain("outcome", a.outcome, other.outcome);
  plain("backend", a.what, other.what);
  plain("graph", a.graph, other.graph);
  plain("file", a.path, other.path);
  return rows;
}

std::vector<Row> side_by_side(const EntryDifference& entries) {
  std::vector<Row> rows;
  for (const KeyDifference& part : entries.parts) {
    QStringList a, b, rest;
    for (const std::string& line : part.lines)
      (line.starts_with("- ") ? a : line.starts_with("+ ") ? b : rest) << text(line);
    for (qsizetype i = 0; i < std::max(a.size(), b.size()); ++i)
      rows.push_back(
          {{}, {Cell(text(part.part)), Cell(a.value(i).mid(2)), Cell(), Cell(b.value(i).mid(2)), Cell(), Cell()}});
    for (const QString& line : rest)
      rows.push_back({{}, {Cell(text(part.part)), Cell(), Cell(), Cell(), Cell(), Cell(line, Tone::Dim)}});
  }
  return rows;
}

HistoryView::HistoryView(QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  past_table_ =
      new TablePanel({tr("When"), tr("Kind"), tr("Outcome"), tr("File"), tr("Graph"), tr("What"), tr("Time")});
  past_table_->set_choose_many(true);
  past_table_->bar()->addWidget(button_of(tr("Read again"), this, &HistoryView::refresh_asked));
  connect(past_table_, &TablePanel::rows_changed, this, &HistoryView::choose);
  auto* right = new QWidget;
  auto* column = plain_column(right);
  note_ = new ElidedLabel;
  note_->setObjectName("dim");
  note_->setContentsMargins(12, 8, 12, 2);
  column->addWidget(note_);
  beside_ = new TablePanel({tr("What"), tr("A"), tr("Error of A"), tr("B"), tr("Error of B"), tr("Change")});
  connect(beside_, &TablePanel::node_chosen, this, &HistoryView::node_chosen);
  column->addWidget(beside_, 1);
  layout->addWidget(split_of({past_table_, right}, {500, 500}));
  set_note(tr("Choose one check, run or cache entry, or two to see them beside each other"));
}

void HistoryView::set_past(std::vector<PastWork> past) {
  past_ = std::move(past);
  past_table_->set_rows(past_rows(past_));
  past_table_->choose_rows(newest_pair(past_));
}

void HistoryView::choose() {
  std::vector<int> rows = past_table_->chosen_rows();
  if (rows.empty()) return;
  if (rows.size() > 2) return set_note(tr("Two at most can stand beside each other"));
  std::ranges::reverse(rows);  // the older one is A
  const auto chosen = mapped(rows, [&](int row) { return past_[static_cast<std::size_t>(row)]; });
  for (const PastWork& p : chosen)
    if (p.kind != chosen.front().kind) return set_note(tr("Choose two of one kind"));
  show_beside({});
  QStringList names;
  for (const PastWork& p : chosen)
    names << QDateTime::fromSecsSinceEpoch(p.at).toString("hh:mm:ss") + " " + file_title(p.path);
  note_->setText(names.size() == 2 ? tr("A: %1     B: %2").arg(names[0], names[1]) : tr("A: %1").arg(names[0]));
  if (chosen.front().kind == PastWork::Kind::Run)
    return show_beside(side_by_side(chosen[0], chosen.size() > 1 ? &chosen[1] : nullptr));
  if (chosen.front().kind == PastWork::Kind::Entry) {
    const auto id = [](const PastWork& p) { return "compiled/" + std::to_string(p.id); };
    Q_EMIT explanation_asked(chosen.size() > 1 ? id(chosen[0]) : std::string(), id(chosen.back()));
    return;
  }
  Q_EMIT reports_asked(mapped(chosen, &PastWork::id));
}

void HistoryView::set_reports(const std::vector<Report>& reports) {
  if (reports.empty()) return;
  show_beside(side_by_side(reports[0], reports.size() > 1 ? &reports[1] : nullptr));
}

void HistoryView::set_explanation(const EntryDifference& entries) {
  const QStringList parts = texts(entries.parts, &KeyDifference::part);
  note_->setText(tr("A: %1     B: %2     %3")
                     .arg(text(entries.a), text(entries.b),
                          parts.isEmpty() ? tr("the keys are equal") : tr("differ in: %1").arg(parts.join(", "))));
  show_beside(side_by_side(entries));
}

void HistoryView::show_beside(std::vector<Row> rows) {
  beside_->set_rows(std::move(rows));
  const auto& shown = beside_->model()->rows();
  for (int c = 1; c < beside_->model()->columnCount(); ++c)
    beside_->view()->setColumnHidden(c, !shown.empty() && std::ranges::all_of(shown, [&](const Row& row) {
                                       return row.cells[static_cast<std::size_t>(c)].text.isEmpty();
                                     }));
}

void HistoryView::set_note(const QString& text) {
  note_->setText(text);
  show_beside({});
}

}  // namespace partita::views
