#include "views/session/artefact_tree.h"

#include <QFont>

#include "views/look/format.h"

namespace partita::views {

struct ArtefactTree::Item {
  QString text, detail, key, path;
  bool is_file = false, is_heading = false;
  Item* parent = nullptr;
  std::vector<std::unique_ptr<Item>> children;

  int row() const {
    for (std::size_t i = 0; parent && i < parent->children.size(); ++i)
      if (parent->children[i].get() == this) return static_cast<int>(i);
    return 0;
  }
};

ArtefactTree::ArtefactTree(QObject* parent) : QAbstractItemModel(parent), root_(std::make_unique<Item>()) {}
ArtefactTree::~ArtefactTree() = default;

ArtefactTree::Item* ArtefactTree::item_of(const QModelIndex& index) const {
  return index.isValid() ? static_cast<Item*>(index.internalPointer()) : root_.get();
}

QModelIndex ArtefactTree::index_of(const Item* item) const {
  return item == root_.get() ? QModelIndex() : createIndex(item->row(), 0, item);
}

ArtefactTree::Item* ArtefactTree::append(Item* parent, std::unique_ptr<Item> item) {
  int row = static_cast<int>(parent->children.size());
  beginInsertRows(index_of(parent), row, row);
  item->parent = parent;
  parent->children.push_back(std::move(item));
  endInsertRows();
  return parent->children.back().get();
}

QModelIndex ArtefactTree::add_file(const QString& path, const QString& title) {
  for (const auto& file : root_->children)
    if (file->path == path) return index_of(file.get());
  auto item = std::make_unique<Item>();
  item->text = title;
  item->path = path;
  item->is_file = true;
  return index_of(append(root_.get(), std::move(item)));
}

void ArtefactTree::remove_file(const QString& path) {
  for (std::size_t i = 0; i < root_->children.size(); ++i) {
    if (root_->children[i]->path != path) continue;
    beginRemoveRows({}, static_cast<int>(i), static_cast<int>(i));
    root_->children.erase(root_->children.begin() + static_cast<std::ptrdiff_t>(i));
    endRemoveRows();
    return;
  }
}

QStringList ArtefactTree::paths() const {
  return texts(root_->children, [](const auto& file) { return file->path; });
}

void ArtefactTree::rename_file(const QString& path, const QString& title) {
  for (const auto& file : root_->children) {
    if (file->path != path || file->text == title) continue;
    file->text = title;
    const QModelIndex index = index_of(file.get());
    Q_EMIT dataChanged(index, index);
  }
}

// The group or heading of that text, made when there is none.
ArtefactTree::Item* ArtefactTree::named(Item* parent, const QString& text, bool is_heading) {
  for (const auto& child : parent->children)
    if (child->key.isEmpty() && child->text == text && child->is_heading == is_heading) return child.get();
  auto item = std::make_unique<Item>();
  item->text = text;
  item->is_heading = is_heading;
  return append(parent, std::move(item));
}

QModelIndex ArtefactTree::add_document(const QString& path, const QStringList& groups, const QString& key,
                                       const QString& title, const QString& detail, const QString& parent_key,
                                       const QString& heading) {
  Item* file = nullptr;
  for (const auto& candidate : root_->children)
    if (candidate->path == path) file = candidate.get();
  if (!file) return {};
  if (Item* known = find_below(file, key)) return index_of(known);
  Item* parent = parent_key.isEmpty() ? nullptr : find_below(file, parent_key);
  if (!parent) {
    parent = file;
    for (const QString& group : groups) parent = named(parent, group, false);
    if (!heading.isEmpty()) parent = named(parent, heading, true);
  }
  auto item = std::make_unique<Item>();
  item->text = title;
  item->detail = detail;
  item->key = key;
  return index_of(append(parent, std::move(item)));
}

ArtefactTree::Item* ArtefactTree::find_below(Item* item, const QString& key) {
  if (!item->key.isEmpty() && item->key == key) return item;
  for (const auto& child : item->children)
    if (Item* found = find_below(child.get(), key)) return found;
  return nullptr;
}

QModelIndex ArtefactTree::find(const QString& key) const {
  Item* item = find_below(root_.get(), key);
  return item ? index_of(item) : QModelIndex();
}

QModelIndex ArtefactTree::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, item_of(parent)->children[row].get());
}

QModelIndex ArtefactTree::parent(const QModelIndex& child) const {
  if (!child.isValid()) return {};
  return index_of(item_of(child)->parent);
}

int ArtefactTree::rowCount(const QModelIndex& parent) const {
  return parent.column() > 0 ? 0 : static_cast<int>(item_of(parent)->children.size());
}

int ArtefactTree::columnCount(const QModelIndex&) const {
  return 2;
}

QVariant ArtefactTree::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Item* item = item_of(index);
  if (role == Qt::DisplayRole && item->is_heading && index.column() == 1) return QString::number(item->children.size());
  if (role == Qt::DisplayRole) return index.column() == 0 ? item->text : item->detail;
  if (role == Qt::ToolTipRole) return item->is_file ? item->path : item->text;
  if (role == KeyRole) return item->key;
  if (role == PathRole) {
    while (!item->is_file && item->parent) item = item->parent;
    return item->path;
  }
  if (role == WordsRole) {
    QString words;
    for (const Item* at = item; at; at = at->parent) words += at->text + " " + at->detail + " ";
    return words;
  }
  if (role == Qt::FontRole && item->is_file && index.column() == 0) {
    QFont font;
    font.setWeight(QFont::DemiBold);
    return font;
  }
  return {};
}

Qt::ItemFlags ArtefactTree::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable;
}

}  // namespace partita::views
