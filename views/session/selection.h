#pragma once
#include <QObject>
#include <QString>
#include <vector>

namespace partita::views {

/// A node of a document, by its name: a pointer would not outlive a graph that is made anew.
struct Spot {
  QString document;
  QString node;  ///< empty: the document itself
  bool operator==(const Spot&) const = default;
};

/// The one selection of the window, with its history for back and forward.
class Selection : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  const Spot& spot() const { return spot_; }
  void select(const Spot& spot);  ///< forgets what forward() would go to
  void select_node(const QString& node) { select({spot_.document, node}); }
  void back();
  void forward();
  bool can_go_back() const { return at_ > 0; }
  bool can_go_forward() const { return at_ + 1 < static_cast<int>(way_.size()); }

 Q_SIGNALS:
  void changed(const partita::views::Spot& spot);

 private:
  void go(int at);

  Spot spot_;
  std::vector<Spot> way_;
  int at_ = -1;
};

}  // namespace partita::views
