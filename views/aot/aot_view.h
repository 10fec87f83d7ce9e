#pragma once
#include <QWidget>

#include "views/graph/graph_view.h"
#include "views/session/document.h"
#include "views/table/table_panel.h"

class QLabel;
class QSlider;

namespace partita::views {

/// The forward and the backward of a joint graph as they will be compiled, with what is saved between them.
struct AotPair {
  Overview forward, backward;
  std::shared_ptr<const CutSummary> cut;
  UnknownBytes unknown;
};
std::vector<Row> saved_rows(const CutSummary& cut, const UnknownBytes& unknown);

/// Shows forward, saved values and backward side by side.
class AotView : public QWidget {
  Q_OBJECT

 public:
  explicit AotView(QWidget* parent = nullptr);
  void set_pair(std::shared_ptr<const AotPair> pair);
  std::shared_ptr<const AotPair> pair() const { return pair_; }
  QSizeF room() const;  ///< of each half, in pixels at 100 %
  void select(const QString& node);
  TablePanel* saved() { return saved_; }

 Q_SIGNALS:
  void node_chosen(QString node);
  void pin_asked(QString node, partita::views::Pin pin);
  void fold_asked(bool of_backward, QString frame_key);

 private:
  std::shared_ptr<const AotPair> pair_;
  GraphView *forward_, *backward_;
  TablePanel* saved_;
  QLabel* total_;
};

}  // namespace partita::views
