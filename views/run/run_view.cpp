#include "views/run/run_view.h"

#include <QCheckBox>
#include <algorithm>
#include <cmath>

#include "core/base/mapped.h"
#include "core/base/natural_order.h"
#include "views/look/arrange.h"
#include "views/look/combo_box.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

QString type_of(const Tensor& t) {
  return QString("%1[%2]").arg(text(short_name(t.dtype)), numbers_text(t.sizes));
}

struct Values {
  double least = INFINITY, most = -INFINITY, sum = 0;
  std::int64_t finite = 0, special = 0;
};

Values values_of(const Tensor& t) {
  Values v;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const double x = t.item_as_double(i);
    if (!std::isfinite(x)) {
      ++v.special;
      continue;
    }
    v.least = std::min(v.least, x);
    v.most = std::max(v.most, x);
    v.sum += x;
    ++v.finite;
  }
  return v;
}

Cell number(double x) {
  return Cell(QString::number(x, 'g', 5), x);
}

void add_verdict(std::vector<Cell>& cells, const Report& report, const std::string& name) {
  const auto row = std::ranges::find(report.rows, name, &Difference::name);
  if (row == report.rows.end()) return cells.insert(cells.end(), 2, Cell()), void();
  cells.emplace_back(row->ok() ? "agrees" : "differs", row->ok() ? Tone::Good : Tone::Bad);
  cells.emplace_back(error_text(row->max_abs), row->max_abs, row->ok() ? Tone::Plain : Tone::Bad);
}

}  // namespace

std::vector<Row> result_rows(const CompilerRun& run) {
  std::vector<Row> rows;
  auto names = mapped(run.results.tensors, [](const auto& result) { return result.first; });
  std::ranges::sort(names, naturally_before);
  for (const std::string& name : names) {
    const Tensor& tensor = run.results.tensors.at(name);
    const Values v = values_of(tensor);
    Row row{{}, {Cell(text(name)), Cell(type_of(tensor), Tone::Dim)}};
    add_verdict(row.cells, run.against_file, name);
    if (v.finite > 0)
      row.cells.insert(row.cells.end(),
                       {number(v.least), number(v.most), number(v.sum / static_cast<double>(v.finite))});
    else
      row.cells.insert(row.cells.end(), 3, Cell());
    row.cells.emplace_back(QString::number(v.special), static_cast<double>(v.special),
                           v.special > 0 ? Tone::Warn : Tone::Dim);
    rows.push_back(std::move(row));
  }
  return rows;
}

RunView::RunView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Run"));
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  const auto run = [this] {
    if (wants_folder()) return ask_folder(true);
    Q_EMIT run_asked(request());
  };
  compiler_ = new ComboBox(tr("Compiler"));
  connect(compiler_, &QComboBox::currentIndexChanged, this, &RunView::tell_choice);
  train_ = new QCheckBox(tr("with gradients"));
  inputs_ = new InputsBox;
  choose_folder_ = button_of(tr("Folder…"), this, [this] { ask_folder(false); });
  add_all(bar, {button_of(tr("Run"), this, run, tr("Run the whole program: joint graph, cut, both halves compiled")),
                compiler_, train_, inputs_, choose_folder_});
  description_ = new ElidedLabel;
  description_->setObjectName("dim");
  summary_ = new ElidedLabel;
  bar->addWidget(description_, 1);
  bar->addWidget(summary_, 1);
  summary_->hide();
  results_ = new TablePanel({tr("Result"), tr("Type"), tr("As in the file"), tr("Largest error"), tr("Smallest"),
                             tr("Largest"), tr("Mean"), tr("Not finite")});
  printed_ = new CodeView;
  printed_->setAccessibleName(tr("What the compiler printed"));
  auto* split = split_of({results_, printed_}, {560, 540});
  split->setChildrenCollapsible(false);
  printed_->hide();  // until a compiler prints
  layout->addWidget(split, 1);
}

void RunView::set_compilers(std::span<const Compiler> compilers) {
  compilers_ = compilers;
  compiler_->clear();
  for (const Compiler& c : compilers_) {
    compiler_->addItem(text(c.name));
    compiler_->setItemData(compiler_->count() - 1, text(c.description), Qt::ToolTipRole);
  }
  tell_choice();
}

void RunView::choose(const QString& compiler, bool train) {
  compiler_->setCurrentText(compiler);
  train_->setChecked(train);
}

const Compiler* RunView::chosen() const {
  const auto at = static_cast<std::size_t>(compiler_->currentIndex());
  return at < compilers_.size() ? &compilers_[at] : nullptr;
}

void RunView::tell_choice() {
  const Compiler* choice = chosen();
  if (!choice) return;
  choose_folder_->setVisible(choice->writes_files);
  choose_folder_->setToolTip(folder_.isEmpty() ? tr("Where it writes its files") : folder_);
  description_->setText(choice->writes_files && !folder_.isEmpty()
                            ? tr("%1; files go to %2").arg(text(choice->description), folder_)
                            : text(choice->description));
}

void RunView::ask_folder(bool then_run) {
  const auto chosen = [this, then_run](const QString& path) {
    set_folder(path);
    if (then_run) Q_EMIT run_asked(request());
  };
  auto* dialog = file_dialog(this, tr("Folder for what the compiler writes"), this, chosen);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->open();
}

void RunView::set_folder(const QString& path) {
  folder_ = path;
  tell_choice();
}

CompilerRequest RunView::request() const {
  return {compiler_->currentText().toStdString(), train_->isChecked(), inputs_->path().toStdString(),
          folder_.toStdString()};
}

void RunView::set_result(std::vector<Row> rows, std::shared_ptr<const CodeDocument> printed, const QString& summary,
                         const QString& details) {
  results_->set_rows(std::move(rows));
  printed_->setVisible(printed && !printed->text().isEmpty());
  printed_->set_document(std::move(printed));
  say(summary);
  if (!details.isEmpty()) summary_->setToolTip(summary + "\n" + details);
}

void RunView::say(const QString& summary) {
  summary_->setText(summary);
  summary_->setVisible(!summary.isEmpty());
  description_->setVisible(summary.isEmpty());
}

}  // namespace partita::views
