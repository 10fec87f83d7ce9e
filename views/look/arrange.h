#pragma once
#include <QHBoxLayout>
#include <QVBoxLayout>

namespace partita::views {

/// A column without margins or gaps.
inline QVBoxLayout* plain_column(QWidget* widget) {
  auto* column = new QVBoxLayout(widget);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  return column;
}

/// A row of buttons and boxes at the top of a view, added to its column.
inline QHBoxLayout* command_bar(QVBoxLayout* column, int spacing = 8) {
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(12, 6, 12, 6);
  bar->setSpacing(spacing);
  column->addLayout(bar);
  return bar;
}

}  // namespace partita::views
