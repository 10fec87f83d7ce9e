#pragma once
#include <QComboBox>

namespace partita::views {

/// A combo box that draws its own arrow, because style sheets can only take one from an image file.
class ComboBox : public QComboBox {
 public:
  using QComboBox::QComboBox;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace partita::views
