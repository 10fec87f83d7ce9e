#pragma once
#include <QWidget>

#include "views/session/document.h"

class QTextBrowser;
class QPushButton;

namespace partita::views {

/// What is known of one node, as rows of text, without widgets.
struct NodeAccount {
  QString title;     ///< the node's name
  QString subtitle;  ///< the operator in full
  struct Row {
    QString label, html;
  };
  std::vector<Row> rows;
  QString why_no_pin;  ///< empty: the value can be pinned
  Pin pin = Pin::None;
};
NodeAccount account_of(const Document& document, const Node& node, const NodeFacts* facts);
/// What is known of the graph as a whole, for when no node is chosen.
NodeAccount account_of(const Document& document);
/// What is known of a module, for when it is folded and its card is chosen. `frame`: of the picture.
NodeAccount account_of(const Document& document, const Picture& picture, int frame);
/// The same as HTML; other nodes are links "node:NAME".
QString account_html(const NodeAccount& account, const Theme& theme);

/// The chosen node: what it is, where it comes from, who reads it, why it is saved; with the pins.
class Inspector : public QWidget {
  Q_OBJECT

 public:
  explicit Inspector(QWidget* parent = nullptr);
  void show_node(const Document* document, const QString& node, const NodeFacts* facts);
  void show_module(const Document& document, const Picture& picture, int frame);

 Q_SIGNALS:
  void node_chosen(QString node);
  void pin_asked(QString node, partita::views::Pin pin);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void refresh();

  NodeAccount account_;
  QTextBrowser* page_;
  QPushButton *save_, *recompute_, *release_;
};

}  // namespace partita::views
