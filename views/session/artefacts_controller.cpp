#include <QHeaderView>
#include <QTreeView>

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
    view_->setAccessibleName(tr("Artefacts"));
    view_->setTextElideMode(Qt::ElideMiddle);
    view_->setModel(&bench.tree());
    view_->header()->setStretchLastSection(false);
    view_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    view_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    auto chosen = [&bench](const QModelIndex& index) {
      QString key = index.siblingAtColumn(0).data(ArtefactTree::KeyRole).toString();
      if (!key.isEmpty()) bench.show(key);
    };
    connect(view_, &QTreeView::clicked, this, chosen);
    connect(view_, &QTreeView::activated, this, chosen);
    connect(&bench, &Workbench::graphs_added, this, &ArtefactsController::expand);
  }
  void set_document(const Document& document) override {
    const QModelIndex index = bench_.tree().find(document.key);
    view_->expand(index.parent());
    view_->setCurrentIndex(index);
  }

 private:
  void expand(const QModelIndex& file) {
    constexpr int kMostGroups = 12;
    view_->expand(file);
    for (int row = 0; row < bench_.tree().rowCount(file) && row < kMostGroups; ++row)
      view_->expand(bench_.tree().index(row, 0, file));
  }
};

}  // namespace

std::unique_ptr<Controller> make_artefacts_view(Workbench& bench) {
  return std::make_unique<ArtefactsController>(bench);
}

}  // namespace partita::views
