#include "views/graph/picture_bar.h"

#include <QEvent>
#include <algorithm>

#include "views/look/arrange.h"
#include "views/look/elided_label.h"
#include "views/look/format.h"

namespace partita::views {

PictureBar::PictureBar(QWidget* parent) : QWidget(parent) {
  setObjectName("pictureBar");
  setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(4, 2, 12, 2);
  row->setSpacing(8);
  colours_ = menu_button({}, tr("What the colours of the picture say"));
  colours_->setAccessibleName(tr("What colours say"));
  colours_->setFocusPolicy(Qt::ClickFocus);  // by keyboard: the View menu, Alt+1 to Alt+7
  colours_->menu()->setToolTipsVisible(true);
  row->addWidget(colours_);
  modules_ = new QLabel;
  modules_->setAccessibleName(tr("Modules of the chosen node"));
  modules_->setTextFormat(Qt::RichText);
  modules_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  modules_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  modules_->installEventFilter(this);
  connect(modules_, &QLabel::linkActivated, this, &PictureBar::module_chosen);
  row->addWidget(modules_, 1);
  budget_label_ = new ElidedLabel(Qt::ElideRight, true);
  budget_label_->setObjectName("dim");
  budget_label_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  // Wider it would keep the docks from their width. The advance is rounded, and half a pixel less gives an ellipsis.
  budget_label_->setMinimumWidth(budget_label_->fontMetrics().horizontalAdvance(budget_text({}, 1)) + 1);
  budget_ = new BudgetSlider;
  add_all(row, {budget_label_, budget_});
  connect(budget_, &BudgetSlider::moved, this, &PictureBar::tell_budget);
  set_overlay(OverlayKind::None);
  tell_budget();
}

void PictureBar::add_overlay(OverlayKind kind, QAction* action) {
  colours_->menu()->addAction(action);
  connect(action, &QAction::triggered, this, [this, kind] { set_overlay(kind); });
}

void PictureBar::set_modules(std::vector<Crumb> path) {
  path_ = std::move(path);
  show_modules();
}

void PictureBar::changeEvent(QEvent* event) {
  if (event->type() == QEvent::StyleChange && modules_) show_modules();
  QWidget::changeEvent(event);
}

bool PictureBar::eventFilter(QObject* watched, QEvent* event) {
  if (watched == modules_ && event->type() == QEvent::Resize) show_modules();
  return QWidget::eventFilter(watched, event);
}

// What does not fit is left out from the outermost module on; where the last one alone is too long, so is its end.
void PictureBar::show_modules() {
  const QFontMetrics metrics = modules_->fontMetrics();
  const QStringList labels = texts(path_, &Crumb::label);
  const QString left_out_mark = "… › ", folded_mark = " ▸";
  const auto width_of_marks = [&](qsizetype left_out) {
    return metrics.horizontalAdvance((left_out > 0 ? left_out_mark : QString()) +
                                     (path_.back().folded ? folded_mark : QString()));
  };
  const auto fits = [&](qsizetype left_out) {
    return metrics.horizontalAdvance(labels.mid(left_out).join(" › ")) + width_of_marks(left_out) <= modules_->width();
  };
  qsizetype left_out = 0;
  while (left_out + 1 < labels.size() && !fits(left_out)) ++left_out;
  QStringList parts;
  for (const Crumb& crumb : path_) {
    QString label = crumb.label;
    if (&crumb == &path_.back())
      label = metrics.elidedText(label, Qt::ElideMiddle, std::max(0, modules_->width() - width_of_marks(left_out)));
    parts << QString("<a href=\"%1\" style=\"text-decoration:none;color:%2\">%3</a>%4")
                 .arg(crumb.frame_key.toHtmlEscaped(), Theme::current().accent.name(), label.toHtmlEscaped(),
                      crumb.folded ? folded_mark : QString());
  }
  modules_->setText((left_out > 0 ? left_out_mark : QString()) + parts.mid(left_out).join(" › "));
  modules_->setToolTip(labels.empty() ? QString()
                                      : labels.join(" › ") + "\n" + tr("A click on a module folds or unfolds it"));
  modules_->setFocusPolicy(labels.empty() ? Qt::NoFocus : Qt::StrongFocus);
}

void PictureBar::set_budget_visible(bool visible) {
  budget_->setVisible(visible);
  budget_label_->setVisible(visible);
  if (visible) tell_budget();
}

}  // namespace partita::views
