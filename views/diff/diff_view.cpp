#include "views/diff/diff_view.h"

#include <QTableView>
#include <algorithm>

#include "core/base/natural_order.h"
#include "views/look/arrange.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

constexpr int kFirstRun = 3;  ///< columns before those of runs

/// With more runs than this, a column is for those that have the same, as the command line prints them.
constexpr std::size_t kMostRunColumns = 4;

bool grouped(const Diff& diff) {
  return diff.runs.size() > kMostRunColumns;
}

QString name_of(const Run& run) {
  return run.name == run.path ? file_title(text(run.name)) : text(run.name);
}

/// "rank 0, rank 2 and 5 more".
QString names_of(const Diff& diff, const std::vector<std::size_t>& runs) {
  constexpr std::size_t kMostNames = 4;
  QStringList names;
  for (std::size_t i = 0; i < std::min(runs.size(), kMostNames); ++i) names << name_of(diff.runs[runs[i]]);
  return names.join(", ") +
         (runs.size() > kMostNames ? DiffView::tr(" and %1 more").arg(runs.size() - kMostNames) : QString());
}

QString cell_text(const DiffCell& cell) {
  const QString shown = text(cell.text.empty() ? "–" : cell.text);
  return cell.node.empty() ? shown : text(cell.node) + ": " + shown;
}

}  // namespace

QStringList diff_columns(const Diff& diff) {
  QStringList columns{DiffView::tr("About"), DiffView::tr("In"), DiffView::tr("What")};
  if (grouped(diff)) {
    std::size_t groups = 1;
    for (const DiffRow& row : diff.rows) groups = std::max(groups, groups_of(row.cells).size());
    columns << DiffView::tr("As the first");
    for (std::size_t i = 1; i < groups; ++i) columns << DiffView::tr("Other %1").arg(i);
  } else {
    for (const Run& run : diff.runs) columns << name_of(run);
  }
  return columns << DiffView::tr("Graphs") << DiffView::tr("Line");
}

std::vector<Row> diff_rows(const Diff& diff, bool all, std::vector<const DiffRow*>& shown) {
  std::vector<Row> rows;
  shown.clear();
  const auto before_graphs = static_cast<std::size_t>(diff_columns(diff).size()) - 2;
  for (const DiffRow& d : diff.rows) {
    if (d.follows && !all) continue;
    Row row{{}, {Cell(text(aspect_name(d.aspect)), Tone::Dim), Cell(text(d.compilation)), Cell(text(d.what))}};
    const auto tone = [&](const DiffCell& c) {
      const bool as_first = c.text == d.cells.front().text;
      return d.follows || c.text.empty() ? Tone::Dim : as_first ? Tone::Plain : Tone::Warn;
    };
    if (grouped(diff)) {
      for (const DiffGroup& group : groups_of(d.cells))
        row.cells.emplace_back(names_of(diff, group.runs) + ":  " + cell_text(*group.cell), tone(*group.cell));
      row.cells.resize(before_graphs);
    } else {
      for (const DiffCell& c : d.cells) row.cells.emplace_back(cell_text(c), tone(c));
    }
    row.cells.emplace_back(texts(d.graphs).join(", "), Tone::Dim);
    row.cells.emplace_back(text(d.where), Tone::Dim);
    rows.push_back(std::move(row));
    shown.push_back(&d);
  }
  return rows;
}

DiffView::DiffView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Differences"));
  auto* layout = plain_column(this);
  table_ = new TablePanel({tr("About"), tr("In"), tr("What")});
  layout->addWidget(table_, 1);
  auto* files =
      menu_button(tr("Files ▾"), tr("The open files that are compared; of a single folder, the logs of its ranks"));
  files_menu_ = files->menu();
  all_ = new QCheckBox(tr("what follows"));
  all_->setToolTip(tr("Also differences that follow from others"));
  summary_ = new ElidedLabel;
  table_->bar()->insertWidget(0, button_of(tr("Compare"), this, [this] { Q_EMIT asked(); }));
  table_->bar()->insertWidget(1, files);
  table_->bar()->insertWidget(2, all_);
  table_->bar()->addWidget(summary_, 1);
  connect(all_, &QCheckBox::toggled, this, &DiffView::refresh);
  connect(table_->view(), &QTableView::clicked, this, &DiffView::choose);
  connect(table_->view(), &QTableView::activated, this, &DiffView::choose);
}

void DiffView::set_files(const QStringList& paths) {
  QStringList known;
  for (QAction* action : files_menu_->actions()) {
    known << action->data().toString();
    if (!paths.contains(known.back())) files_menu_->removeAction(action);
  }
  for (const QString& path : paths) {
    if (known.contains(path)) continue;
    QAction* action = files_menu_->addAction(file_title(path));
    action->setCheckable(true);
    action->setChecked(true);
    action->setData(path);
  }
}

QStringList DiffView::chosen_files() const {
  QStringList paths;
  for (const QAction* action : files_menu_->actions())
    if (action->isChecked()) paths << action->data().toString();
  // Not in the order in which they happened to be read.
  std::ranges::sort(paths, naturally_before, &QString::toStdString);
  return paths;
}

void DiffView::set_diff(std::shared_ptr<const Diff> diff) {
  diff_ = std::move(diff);
  refresh();
}

void DiffView::set_note(const QString& note) {
  set_diff(nullptr);
  say(note);
}

void DiffView::refresh() {
  if (!diff_) {
    shown_.clear();
    table_->set_rows({});
    return;
  }
  table_->model()->set_columns(diff_columns(*diff_));
  table_->set_rows(diff_rows(*diff_, all_->isChecked(), shown_));
  QStringList parts;
  std::map<DiffAspect, int> counts;
  for (const DiffRow& row : diff_->rows)
    if (!row.follows) ++counts[row.aspect];
  for (const auto& [aspect, count] : counts) parts << QString("%1 %2").arg(text(aspect_name(aspect))).arg(count);
  summary_->setText(parts.isEmpty() ? tr("No difference in %1").arg(count_text(diff_->matched_graphs, "graph"))
                                    : parts.join(", "));
}

void DiffView::choose(const QModelIndex& index) {
  const std::vector<int> rows = table_->chosen_rows();
  if (rows.empty() || rows.front() >= static_cast<int>(shown_.size())) return;
  const DiffRow& row = *shown_[rows.front()];
  // Beside the columns of runs, the first run that has it.
  std::size_t run = static_cast<std::size_t>(std::max(index.column() - kFirstRun, 0));
  if (grouped(*diff_)) {
    const std::vector<DiffGroup> groups = groups_of(row.cells);
    run = run < groups.size() ? groups[run].runs.front() : row.cells.size();
  }
  if (index.column() < kFirstRun || run >= row.cells.size())
    run = static_cast<std::size_t>(
        std::ranges::find_if(row.cells, [](const DiffCell& c) { return c.artefact != nullptr; }) - row.cells.begin());
  if (run >= row.cells.size() || !row.cells[run].artefact) return;
  Q_EMIT place_chosen(text(diff_->runs[run].path), text(row.cells[run].artefact->id), text(row.cells[run].node));
}

}  // namespace partita::views
