#pragma once
#include <QComboBox>

namespace partita::views {

/// A combo box with its arrow, which style sheets draw from image files only.
class ComboBox : public QComboBox {
 public:
  using QComboBox::QComboBox;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace partita::views
