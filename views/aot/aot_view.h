#pragma once
#include <QWidget>

#include "core/partition/read_cut.h"
#include "views/picture/graph_view.h"
#include "views/session/document.h"
#include "views/table/table_panel.h"

class QLabel;
class QPushButton;
class QSplitter;

namespace partita::views {

/// A forward and a backward with what is saved between them: PyTorch's as it left them, or ours of a joint graph.
struct AotPair {
  struct Half : Overview {
    bool asked = false;  ///< the user folded or unfolded something
  };
  Half forward, backward;
  std::shared_ptr<const CutSummary> cut;
  UnknownBytes unknown;
  bool theirs = false;                ///< it is PyTorch's
  std::vector<CutDifference> values;  ///< of both cuts; empty: there is one
  QString told;                       ///< of each cut a line: what it saves, and under what it was made
};
std::vector<Row> saved_rows(const CutSummary& cut, const UnknownBytes& unknown);
/// "17 saved, 88 KiB; 2 inputs kept, 28 KiB; 11 recomputed for 12 k operations".
QString told_of(const CutSummary& cut, const UnknownBytes& unknown);

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
  void cut_asked(bool theirs);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  std::shared_ptr<const AotPair> pair_;
  GraphView *forward_, *backward_;
  QSplitter *halves_, *rows_;  ///< side by side; what stands above the other
  QWidget* between_;           ///< the saved values, in one of them
  TablePanel* saved_;
  QLabel* total_;
  QPushButton *theirs_, *ours_;  ///< whose cut is shown, where there are both
};

}  // namespace partita::views
