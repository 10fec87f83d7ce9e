#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QFileInfo>
#include <QHeaderView>
#include <QMenu>
#include <QTreeView>
#include <QUrl>

#include "views/look/format.h"
#include "views/window/workbench.h"

namespace partita::views {
namespace {

/// What is open, as a tree; a click brings a document to the screen.
class ArtefactsController : public WidgetController<QTreeView> {
 public:
  explicit ArtefactsController(Workbench& bench) : WidgetController(bench) {
    view_->setHeaderHidden(true);
    view_->setUniformRowHeights(true);
    view_->setIndentation(14);
    view_->setFrameShape(QFrame::NoFrame);
    view_->setMinimumWidth(150);  // a small window must not leave titles without letters
    view_->setAccessibleName(tr("Artefacts"));
    view_->setTextElideMode(Qt::ElideMiddle);
    view_->setModel(&bench.tree());
    view_->header()->setStretchLastSection(false);
    view_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    view_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    connect(view_->header(), &QHeaderView::geometriesChanged, this, &ArtefactsController::fit_kinds);
    connect(view_, &QTreeView::expanded, this, &ArtefactsController::fit_kinds);
    connect(view_, &QTreeView::collapsed, this, &ArtefactsController::fit_kinds);
    auto chosen = [&bench](const QModelIndex& index) {
      QString key = index.siblingAtColumn(0).data(ArtefactTree::KeyRole).toString();
      if (!key.isEmpty()) bench.show(key);
    };
    connect(view_, &QTreeView::clicked, this, chosen);
    connect(view_, &QTreeView::activated, this, chosen);
    view_->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(view_, &QTreeView::customContextMenuRequested, this, &ArtefactsController::offer_actions);
    connect(&bench, &Workbench::graphs_added, this, &ArtefactsController::expand);
  }
  void set_document(const Document& document) override {
    const QModelIndex index = bench_.tree().find(document.key);
    view_->expand(index.parent());
    view_->setCurrentIndex(index);
  }

 private:
  /// Kinds are shown where they leave the names whole.
  void fit_kinds() {
    const QAbstractItemView& items = *view_;
    const bool narrow = view_->viewport()->width() < items.sizeHintForColumn(0) + items.sizeHintForColumn(1);
    if (view_->isColumnHidden(1) != narrow) view_->setColumnHidden(1, narrow);
  }
  void offer_actions(const QPoint& at) {
    const QModelIndex index = view_->indexAt(at).siblingAtColumn(0);
    if (!index.isValid()) return;
    const QString path = index.data(ArtefactTree::PathRole).toString();
    const QString key = index.data(ArtefactTree::KeyRole).toString();
    auto* menu = new QMenu(view_);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    if (!key.isEmpty()) menu->addAction(tr("Show"), this, [this, key] { bench_.show(key); });
    menu->addAction(tr("Copy the path"), this, [path] { QApplication::clipboard()->setText(path); });
    menu->addAction(tr("Show the folder"), this,
                    [path] { QDesktopServices::openUrl(QUrl::fromLocalFile(QFileInfo(path).path())); });
    menu->addSeparator();
    menu->addAction(tr("Close %1").arg(bench_.title_of(path)), this, [this, path] { bench_.close_file(path); });
    menu->popup(view_->viewport()->mapToGlobal(at));
  }
  void expand(const QModelIndex& file) {
    constexpr int kMostGroups = 12;
    view_->expand(file);
    for (int row = 0; row < bench_.tree().rowCount(file) && row < kMostGroups; ++row)
      view_->expand(bench_.tree().index(row, 0, file));
    fit_kinds();
  }
};

}  // namespace

std::unique_ptr<Controller> make_artefacts_view(Workbench& bench) {
  return std::make_unique<ArtefactsController>(bench);
}

}  // namespace partita::views
