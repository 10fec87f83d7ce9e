#pragma once
#include <QWidget>

#include "views/picture/graph_view.h"
#include "views/session/document.h"
#include "views/table/table_panel.h"

class QLabel;
class QSplitter;

namespace partita::views {

/// The forward and the backward of a joint graph as they will be compiled, with what is saved between them.
struct AotPair {
  struct Half : Overview {
    bool asked = false;  ///< the user folded or unfolded something
  };
  Half forward, backward;
  std::shared_ptr<const CutSummary> cut;
  UnknownBytes unknown;
};
std::vector<Row> saved_rows(const CutSummary& cut, const UnknownBytes& unknown);

/// Shows forward and backward side by side, and what the one saves for the other.
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

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  std::shared_ptr<const AotPair> pair_;
  GraphView *forward_, *backward_;
  QSplitter *halves_, *rows_;  ///< side by side; what stands above the other
  QWidget* between_;           ///< the saved values, in one of them
  TablePanel* saved_;
  QLabel* total_;
};

}  // namespace partita::views
