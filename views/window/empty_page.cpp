#include "views/window/empty_page.h"

#include <QApplication>
#include <QClipboard>
#include <QFileInfo>
#include <QGridLayout>
#include <QScrollArea>

#include "views/look/arrange.h"
#include "views/look/tell.h"

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

void clear(QLayout* layout) {
  while (QLayoutItem* item = layout->takeAt(0)) {
    if (item->widget()) item->widget()->deleteLater();
    delete item;
  }
}

}  // namespace

EmptyPage::EmptyPage(QWidget* parent) : QWidget(parent) {
  auto* scroll = new QScrollArea;  // many recent files must not make the window larger
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setAccessibleName(tr("First steps"));
  plain_column(this)->addWidget(scroll);
  auto* content = new QWidget;
  scroll->setWidget(content);
  content->setAutoFillBackground(false);
  auto* outer = new QGridLayout(content);
  outer->setColumnStretch(0, 1);
  outer->setColumnStretch(2, 1);
  outer->setRowStretch(0, 2);
  outer->setRowStretch(2, 3);
  auto* column = new QVBoxLayout;
  column->setSpacing(8);
  outer->addLayout(column, 1, 1);

  auto* title = styled_label("heading", tr("Open a graph"));
  QFont large = interface_font();
  large.setPointSizeF(18);
  title->setFont(large);
  column->addWidget(title);
  hint_ = styled_label("dim");
  column->addWidget(hint_);
  column->addSpacing(12);
  samples_ = new QVBoxLayout;
  samples_->setSpacing(4);
  column->addLayout(samples_);
  recent_ = new QVBoxLayout;
  recent_->setSpacing(4);
  column->addLayout(recent_);
  column->addSpacing(16);
  column->addWidget(styled_label("panelTitle", tr("Getting graphs out of PyTorch")));
  for (const Recipe& recipe : kRecipes) {
    auto* row = new QHBoxLayout;
    auto* texts = new QVBoxLayout;
    texts->setSpacing(2);
    auto* line = new QLabel(QString::fromUtf8(recipe.line));
    line->setFont(code_font());
    line->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    texts->addWidget(line);
    texts->addWidget(styled_label("dim", tr(recipe.what)));
    row->addLayout(texts, 1);
    const auto copied = [this, recipe] {
      QApplication::clipboard()->setText(QString::fromUtf8(recipe.line));
      tell(this, tr("Copied to the clipboard: %1").arg(QString::fromUtf8(recipe.line)));
    };
    auto* copy = button_of(tr("Copy"), this, copied);
    copy->setAccessibleName(tr("Copy: %1").arg(QString::fromUtf8(recipe.what)));
    row->addWidget(copy, 0, Qt::AlignVCenter);
    copies_.push_back(copy);
    column->addLayout(row);
    column->addSpacing(4);
  }
}

void EmptyPage::set_content(const std::vector<Sample>& samples, const QStringList& recent) {
  hint_->setText(samples.empty() ? tr("Drop a file or folder here, or press Ctrl+O.")
                                 : tr("Drop a file or folder here, press Ctrl+O, or begin with a sample."));
  clear(samples_);
  clear(recent_);
  std::vector<QWidget*> in_order;
  const auto add = [&](QVBoxLayout* to, const QString& title, const QString& detail, const QString& path) {
    auto* button = button_of(title + "    " + detail, this, [this, path] { Q_EMIT open_asked(path); });
    button->setCursor(Qt::PointingHandCursor);
    button->setStyleSheet("text-align: left; padding: 8px 12px;");
    to->addWidget(button);
    in_order.push_back(button);
  };
  for (const Sample& sample : samples) add(samples_, sample.title, sample.detail, sample.path);
  if (!recent.isEmpty()) {
    recent_->addSpacing(8);
    recent_->addWidget(styled_label("panelTitle", tr("Recent")));
  }
  for (const QString& path : recent.mid(0, 6)) add(recent_, QFileInfo(path).fileName(), QFileInfo(path).path(), path);
  // The page was made before its buttons, but one begins with these.
  setFocusProxy(in_order.empty() ? copies_.front() : in_order.front());
  in_order.insert(in_order.end(), copies_.begin(), copies_.end());
  for (std::size_t i = 1; i < in_order.size(); ++i) setTabOrder(in_order[i - 1], in_order[i]);
  if (!window()->isVisible()) setFocus();
}

}  // namespace partita::views
