#pragma once
#include <QObject>
#include <map>

#include "views/frame/documents.h"

namespace partita::views {

/// Draws documents in jobs, with what the user folded. A drawing that fails or is cancelled leaves what was there
/// before.
class Drawing : public QObject {
  Q_OBJECT

 public:
  Drawing(Documents& documents, JobTracker& jobs, Window& window);

  const TextWidth& text_width() const { return text_width_; }  ///< of cards
  /// Cards keep their places unless the layout is to be made anew.
  void render(Document& document, bool new_layout = false);
  void fold(const QString& frame_key);   ///< or unfold, in the current document
  void fold_all(bool folded);            ///< back to the overview, or everything open
  void fail(const Diagnostic& problem);  ///< reports it

 Q_SIGNALS:
  void drawn(QString key);
  void not_drawn(QString key);  ///< the document is as it was drawn before, if it was
  void failed(const partita::Diagnostic& problem);
  /// The partitioner does not take the pins of a document that was drawn before.
  void pins_refused(const partita::Diagnostic& problem);

 private:
  QSizeF room_for_pictures() const;
  void set_rendering(const QString& key, Rendering rendering);
  void give_up(const QString& key, const Diagnostic& why);
  void end(int job);
  void go_back(const QString& key);

  Documents& documents_;
  JobTracker& jobs_;
  Window& window_;
  TextWidth text_width_;
  std::map<int, QString> draws_;  ///< jobs whose result did not come yet: keys of their documents
};

}  // namespace partita::views
