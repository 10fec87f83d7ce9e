#pragma once
#include <QAbstractItemModel>
#include <memory>

namespace partita::views {

/// The tree of what is open: files, their groups (a rank, a compile id in it, a folder), and the documents of each. A
/// document that was made here is a child of the one it was made from.
class ArtefactTree : public QAbstractItemModel {
  Q_OBJECT

 public:
  enum Role {
    KeyRole = Qt::UserRole + 1,  ///< QString: a document's key; empty for files and groups
    PathRole,                    ///< QString: the path of the file that the item belongs to
    WordsRole,                   ///< QString: what stands in its row and above it, for a filter
  };

  explicit ArtefactTree(QObject* parent = nullptr);
  ~ArtefactTree() override;

  QModelIndex add_file(const QString& path, const QString& title);
  void remove_file(const QString& path);
  QStringList paths() const;  ///< of the files
  void rename_file(const QString& path, const QString& title);
  /// Adds a document to the innermost of these groups (none: to the file itself), or as a child of the document
  /// `parent_key`. With a `heading` it goes below the heading of that name there, which shows how many documents it
  /// has.
  QModelIndex add_document(const QString& path, const QStringList& groups, const QString& key, const QString& title,
                           const QString& detail, const QString& parent_key = {}, const QString& heading = {});
  QModelIndex find(const QString& key) const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  struct Item;
  Item* item_of(const QModelIndex& index) const;
  QModelIndex index_of(const Item* item) const;
  Item* named(Item* parent, const QString& text, bool is_heading);
  Item* append(Item* parent, std::unique_ptr<Item> item);
  static Item* find_below(Item* item, const QString& key);

  std::unique_ptr<Item> root_;
};

}  // namespace partita::views
