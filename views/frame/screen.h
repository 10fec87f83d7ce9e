#pragma once
#include <QObject>
#include <memory>

#include "views/frame/drawing.h"
#include "views/frame/made_views.h"
#include "views/session/selection.h"

namespace partita::views {

/// What is on the screen: brings documents there, draws them first when that has not been done, and tells the views.
class Screen : public QObject {
  Q_OBJECT

 public:
  Screen(Documents& documents, Drawing& drawing, Selection& selection, Views& views, Window& window);

  void show(const QString& key);  ///< makes this document the current one
  /// What is on the screen is not the document itself but this graph, as "after fuse_addmm".
  void show_step(const QString& step, std::shared_ptr<const Graph> graph, Facts facts);
  bool shows_step() const { return step_ != nullptr; }  ///< in place of the current document
  const Document* document() const { return step_ ? step_.get() : documents_.current(); }  ///< the step, else that
  /// Tells the views that something was found out about nodes, when the document is on the screen.
  void facts_changed(const Document& document);

 Q_SIGNALS:
  /// This document comes to the screen, before the views are told; null: nothing is shown any more.
  void showing(const partita::views::Document* document);
  void shown(QString key);

 private:
  void put_on_screen(Document& document);
  void go_back(const QString& key);
  void show_nothing();
  void show_status(const Document& document);
  void select(const Spot& spot);

  Documents& documents_;
  Drawing& drawing_;
  Selection& selection_;
  Views& views_;
  Window& window_;
  std::unique_ptr<const Document> step_;  ///< of its passes; null: the document itself is shown
  QString shown_;                         ///< key of the document that came to the screen last
};

}  // namespace partita::views
