#pragma once
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QToolButton>
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
QPushButton* button_of(const QString& text, auto* context, auto clicked, const QString& tooltip = {}) {
  auto* button = new QPushButton(text);
  button->setToolTip(tooltip);
  button->setAutoDefault(true);
  QObject::connect(button, &QPushButton::clicked, context, clicked);
  return button;
}

/// A button that opens a menu, its own if none is given.
inline QToolButton* menu_button(const QString& text, const QString& tooltip, QMenu* menu = nullptr) {
  auto* button = new QToolButton;
  button->setText(text);
  button->setToolTip(tooltip);
  button->setPopupMode(QToolButton::InstantPopup);
  button->setMenu(menu ? menu : new QMenu(button));
  return button;
}

/// Scrolls what does not fit. What is in it has no background of its own.
inline QScrollArea* scrolled(QWidget* content) {
  auto* area = new QScrollArea;
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setWidget(content);
  for (QWidget* inner : {area->viewport(), content}) inner->setAutoFillBackground(false);
  return area;
}

/// Asks for a file, and gives its path to `chosen` of `context`. The dialog is opened by its caller, who may say more
/// of what is looked for.
QFileDialog* file_dialog(QWidget* parent, const QString& title, auto* context, auto chosen) {
  auto* dialog = new QFileDialog(parent, title);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  QObject::connect(dialog, &QFileDialog::fileSelected, context, chosen);
  return dialog;
}

/// Asks for a new file or folder, this one at first.
QFileDialog* save_dialog(QWidget* parent, const QString& title, const QString& name, auto* context, auto chosen) {
  auto* dialog = file_dialog(parent, title, context, chosen);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->selectFile(name);
  return dialog;
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
