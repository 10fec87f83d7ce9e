#pragma once
#include <QWidget>

#include "app/tasks/joined_profile.h"

namespace partita::views {

/// The steps of a profile on its time line, each as high as its compiled graphs took; some next to one another are
/// chosen by a click and a drag, by arrows, and with Shift by arrows to more of them.
class StepStrip : public QWidget {
  Q_OBJECT

 public:
  explicit StepStrip(QWidget* parent = nullptr);
  struct Bar {
    QString name;
    double begin = 0, end = 0;  ///< seconds since the first step
    double seconds = 0;         ///< of its compiled graphs
  };
  void set_steps(std::vector<Bar> bars);  ///< all of them are chosen
  StepRange chosen() const { return chosen_; }
  void choose(StepRange steps);  ///< emits `changed` when it does
  void choose_all() { choose({0, bars_.size()}); }

 Q_SIGNALS:
  void changed();

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void mouseDoubleClickEvent(QMouseEvent*) override { choose_all(); }
  void keyPressEvent(QKeyEvent*) override;
  bool event(QEvent* event) override;  ///< what a step took as a tooltip
  QSize sizeHint() const override;

 private:
  /// Chooses this step, or with `extend` all from the one where that began.
  void go_to(std::size_t step, bool extend);
  QRectF area() const;
  QRectF column_of(std::size_t step) const;  ///< its place in time, at full height
  std::optional<std::size_t> at(double x) const;

  std::vector<Bar> bars_;
  StepRange chosen_;
  std::size_t anchor_ = 0;  ///< where a drag or Shift began
  std::size_t cursor_ = 0;
};

}  // namespace partita::views
