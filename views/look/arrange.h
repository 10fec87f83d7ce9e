#pragma once
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
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

inline void add_all(QBoxLayout* to, std::initializer_list<QWidget*> widgets) {
  for (QWidget* widget : widgets) to->addWidget(widget);
}

/// Parts with handles between them, by which the user sizes them.
inline QSplitter* split_of(std::initializer_list<QWidget*> parts, const QList<int>& sizes,
                           Qt::Orientation orientation = Qt::Horizontal) {
  auto* split = new QSplitter(orientation);
  for (QWidget* part : parts) split->addWidget(part);
  split->setSizes(sizes);
  return split;
}

/// A button that calls `clicked` of `context`, at Enter too.
template <class Context, class F>
QPushButton* button_of(const QString& text, Context* context, F clicked, const QString& tooltip = {}) {
  auto* button = new QPushButton(text);
  button->setToolTip(tooltip);
  button->setAutoDefault(true);
  QObject::connect(button, &QPushButton::clicked, context, clicked);
  return button;
}

/// Keeps a widget's place while it is hidden, so that nothing else comes to stand under the mouse.
inline void keep_place(QWidget* widget) {
  QSizePolicy policy = widget->sizePolicy();
  policy.setRetainSizeWhenHidden(true);
  widget->setSizePolicy(policy);
}

/// A label in a style of the style sheet: "heading", "dim", "error", "panelTitle".
inline QLabel* styled_label(const char* style, const QString& text = {}) {
  auto* label = new QLabel(text);
  label->setObjectName(style);
  return label;
}

/// A label of several lines, whose text can be selected.
inline void make_readable(QLabel* label, const QMargins& margins = {}) {
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setContentsMargins(margins);
}

}  // namespace partita::views
