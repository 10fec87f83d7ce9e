#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QFileInfo>
#include <QHeaderView>
#include <QLineEdit>
#include <QMenu>
#include <QRegularExpression>
#include <QSortFilterProxyModel>
#include <QTreeView>
#include <QUrl>
#include <deque>

#include "views/frame/workbench.h"
#include "views/look/arrange.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

/// Rows that have all typed words in them or above them: "rank 3 joint". A number is not a part of another one or of a
/// name.
class WordFilter : public QSortFilterProxyModel {
 public:
  WordFilter() { setRecursiveFilteringEnabled(true); }
  void set_words(const QString& typed) {
    static const QRegularExpression digits("^[0-9]+$");
    words_.clear();
    for (const QString& word : typed.split(' ', Qt::SkipEmptyParts))
      words_.push_back(QRegularExpression(digits.match(word).hasMatch() ? "(?<![0-9A-Za-z])" + word + "(?![0-9A-Za-z])"
                                                                        : QRegularExpression::escape(word),
                                          QRegularExpression::CaseInsensitiveOption));
    invalidateFilter();
  }

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override {
    if (words_.empty()) return true;
    const QString text = sourceModel()->index(row, 0, parent).data(ArtefactTree::WordsRole).toString();
    return std::ranges::all_of(words_, [&](const QRegularExpression& word) { return text.contains(word); });
  }

 private:
  std::vector<QRegularExpression> words_;
};

/// The tree, with a field above it that filters as one types.
struct ArtefactsView : QWidget {
  explicit ArtefactsView(QWidget* parent) : QWidget(parent) {
    auto* layout = plain_column(this);
    auto* bar = command_bar(layout);
    filter = new QLineEdit;
    filter->setPlaceholderText(QObject::tr("Filter: rank 3 joint"));
    filter->setAccessibleName(QObject::tr("Filter artefacts"));
    filter->setClearButtonEnabled(true);
    bar->addWidget(filter);
    filter->setObjectName("artefactFilter");
    tree = new QTreeView;
    tree->setObjectName("artefacts");
    layout->addWidget(tree, 1);
    setFocusProxy(tree);
  }
  QLineEdit* filter;
  QTreeView* tree;
};

/// What is open, as a tree; a click brings a document to the screen.
class ArtefactsController : public WidgetController<ArtefactsView> {
 public:
  explicit ArtefactsController(Workbench& bench) : WidgetController(bench), tree_(view_->tree) {
    tree_->setHeaderHidden(true);
    tree_->setUniformRowHeights(true);
    tree_->setIndentation(11);
    tree_->setFrameShape(QFrame::NoFrame);
    tree_->setMinimumWidth(150);  // a small window must not leave titles without letters
    tree_->setAccessibleName(tr("Artefacts"));
    tree_->setTextElideMode(Qt::ElideRight);  // names in a log differ in how they begin
    shown_.setSourceModel(&bench.documents().tree());
    tree_->setModel(&shown_);
    tree_->header()->setStretchLastSection(false);
    tree_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    tree_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    connect(tree_->header(), &QHeaderView::sectionResized, this, &ArtefactsController::fit_kinds, Qt::QueuedConnection);
    connect(tree_, &QTreeView::expanded, this, &ArtefactsController::fit_kinds);
    connect(tree_, &QTreeView::collapsed, this, &ArtefactsController::fit_kinds);
    auto chosen = [&bench](const QModelIndex& index) {
      QString key = index.siblingAtColumn(0).data(ArtefactTree::KeyRole).toString();
      if (!key.isEmpty()) bench.screen().show(key);
    };
    connect(tree_, &QTreeView::clicked, this, chosen);
    connect(tree_, &QTreeView::activated, this, chosen);
    tree_->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(tree_, &QTreeView::customContextMenuRequested, this, &ArtefactsController::offer_actions);
    connect(&bench.documents(), &Documents::graphs_added, this, &ArtefactsController::expand);
    connect(view_->filter, &QLineEdit::textChanged, this, [this](const QString& typed) {
      shown_.set_words(typed);
      if (!typed.isEmpty()) tree_->expandAll();
      fit_kinds();
    });
  }
  void set_document(const Document& document) override {
    const QModelIndex index = shown_.mapFromSource(bench_.documents().tree().find(document.key));
    for (QModelIndex above = index.parent(); above.isValid(); above = above.parent()) tree_->expand(above);
    tree_->setCurrentIndex(index);
  }

 private:
  /// Kinds are shown where they leave the names whole.
  void fit_kinds() {
    const QAbstractItemView& items = *tree_;
    const bool narrow = tree_->viewport()->width() < items.sizeHintForColumn(0) + items.sizeHintForColumn(1);
    if (tree_->isColumnHidden(1) != narrow) tree_->setColumnHidden(1, narrow);
  }
  void offer_actions(const QPoint& at) {
    const QModelIndex index = tree_->indexAt(at).siblingAtColumn(0);
    if (!index.isValid()) return;
    const QString path = index.data(ArtefactTree::PathRole).toString();
    const QString key = index.data(ArtefactTree::KeyRole).toString();
    auto* menu = new QMenu(view_);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    if (!key.isEmpty()) menu->addAction(tr("Show"), this, [this, key] { bench_.screen().show(key); });
    menu->addAction(tr("Copy the path"), this, [this, path] {
      QApplication::clipboard()->setText(path);
      bench_.window().tell(tr("Copied to the clipboard: %1").arg(path));
    });
    menu->addAction(tr("Show the folder"), this,
                    [path] { QDesktopServices::openUrl(QUrl::fromLocalFile(QFileInfo(path).path())); });
    menu->addSeparator();
    menu->addAction(tr("Close %1").arg(bench_.documents().title_of(path)), this,
                    [this, path] { bench_.documents().close_file(path); });
    menu->popup(tree_->viewport()->mapToGlobal(at));
  }
  /// From the file down, as long as that does not make too many rows.
  void expand(const QModelIndex& file) {
    int rows_left = 120;
    for (std::deque<QModelIndex> open{shown_.mapFromSource(file)}; !open.empty(); open.pop_front()) {
      const int rows = shown_.rowCount(open.front());
      if (rows > rows_left && open.front() != shown_.mapFromSource(file)) break;
      rows_left -= rows;
      tree_->expand(open.front());
      for (int row = 0; row < rows; ++row)
        if (const QModelIndex child = shown_.index(row, 0, open.front()); shown_.hasChildren(child))
          open.push_back(child);
    }
    fit_kinds();
  }

  QTreeView* tree_;
  WordFilter shown_;
};

}  // namespace

extern const MakeView make_artefacts_view = make_view<ArtefactsController>;

}  // namespace partita::views
