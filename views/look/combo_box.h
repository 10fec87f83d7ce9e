#pragma once
#include <QComboBox>

namespace partita::views {

/// A combo box that draws its own arrow, because style sheets can only take one from an image file.
class ComboBox : public QComboBox {
 public:
  /// `name`: for screen readers.
  explicit ComboBox(const QString& name) { setAccessibleName(name); }

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace partita::views
