#include "views/window/empty_page.h"

#include <QApplication>
#include <QClipboard>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace partita::views {
namespace {

struct Recipe {
  const char* what;
  const char* line;
};
constexpr Recipe kRecipes[] = {
    {"Every graph of every compilation, as a log", "TORCH_TRACE=trace python train.py"},
    {"An exported program with its weights", "torch.export.save(torch.export.export(model, args), \"program.pt2\")"},
    {"Folders with inductor's graphs", "TORCH_COMPILE_DEBUG=1 python train.py"},
};

QLabel* label(const QString& text, const char* name) {
  auto* l = new QLabel(text);
  l->setObjectName(name);
  return l;
}

void clear(QLayout* layout) {
  while (QLayoutItem* item = layout->takeAt(0)) {
    if (item->widget()) item->widget()->deleteLater();
    delete item;
  }
}

QPushButton* row_button(const QString& title, const QString& detail) {
  auto* button = new QPushButton(detail.isEmpty() ? title : title + "    " + detail);
  button->setCursor(Qt::PointingHandCursor);
  button->setStyleSheet("text-align: left; padding: 8px 12px;");
  return button;
}

}  // namespace

EmptyPage::EmptyPage(QWidget* parent) : QWidget(parent) {
  auto* outer = new QGridLayout(this);
  outer->setColumnStretch(0, 1);
  outer->setColumnStretch(2, 1);
  outer->setRowStretch(0, 2);
  outer->setRowStretch(2, 3);
  auto* column = new QVBoxLayout;
  column->setSpacing(8);
  outer->addLayout(column, 1, 1);

  auto* title = label(tr("Open a graph"), "heading");
  QFont large = interface_font();
  large.setPointSizeF(18);
  title->setFont(large);
  column->addWidget(title);
  column->addWidget(label(tr("Drop a file or folder here, press Ctrl+O, or begin with a sample."), "dim"));
  column->addSpacing(12);
  samples_ = new QVBoxLayout;
  samples_->setSpacing(4);
  column->addLayout(samples_);
  recent_ = new QVBoxLayout;
  recent_->setSpacing(4);
  column->addLayout(recent_);
  column->addSpacing(16);
  column->addWidget(label(tr("Getting graphs out of PyTorch"), "panelTitle"));
  for (const Recipe& recipe : kRecipes) {
    auto* row = new QHBoxLayout;
    auto* texts = new QVBoxLayout;
    texts->setSpacing(2);
    auto* line = new QLabel(QString::fromUtf8(recipe.line));
    line->setFont(code_font());
    line->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    texts->addWidget(line);
    texts->addWidget(label(tr(recipe.what), "dim"));
    row->addLayout(texts, 1);
    auto* copy = new QPushButton(tr("Copy"));
    copy->setAccessibleName(tr("Copy: %1").arg(QString::fromUtf8(recipe.what)));
    connect(copy, &QPushButton::clicked, this,
            [recipe] { QApplication::clipboard()->setText(QString::fromUtf8(recipe.line)); });
    row->addWidget(copy, 0, Qt::AlignVCenter);
    column->addLayout(row);
    column->addSpacing(4);
  }
  setMinimumWidth(520);
}

void EmptyPage::set_content(const std::vector<Sample>& samples, const QStringList& recent) {
  clear(samples_);
  clear(recent_);
  for (const Sample& sample : samples) {
    auto* button = row_button(sample.title, sample.detail);
    connect(button, &QPushButton::clicked, this, [this, path = sample.path] { Q_EMIT open_asked(path); });
    samples_->addWidget(button);
  }
  if (recent.isEmpty()) return;
  recent_->addSpacing(8);
  recent_->addWidget(label(tr("Recent"), "panelTitle"));
  for (const QString& path : recent.mid(0, 6)) {
    auto* button = row_button(QFileInfo(path).fileName(), QFileInfo(path).path());
    connect(button, &QPushButton::clicked, this, [this, path] { Q_EMIT open_asked(path); });
    recent_->addWidget(button);
  }
}

}  // namespace partita::views
