// MainWindow: where its panels stand, for which kind of work, and how that is kept.
#include <QDockWidget>
#include <QResizeEvent>
#include <QScreen>
#include <QSettings>
#include <QStackedWidget>
#include <QTabBar>
#include <QTabWidget>
#include <QWindow>
#include <algorithm>

#include "views/window/main_window.h"

namespace partita::views {
namespace {

constexpr const char* kAlone = "alone";  // the kind of work on a page of use_alone()

}  // namespace

void MainWindow::use_alone(QWidget* page) {
  names_[page] = kAlone;
}

void MainWindow::open_bottom(bool open) {
  bottom_open_ = open;
  bottom_->setMaximumHeight(open ? QWIDGETSIZE_MAX : bottom_->tabBar()->sizeHint().height());
  bottom_->setMinimumWidth(open ? 0 : 1);  // while it is closed, its views do not keep the docks from their width
  bottom_dock_->show();
  constexpr double kShare = 0.3;
  if (open && bottom_->height() < kShare / 2 * height())
    resizeDocks({bottom_dock_}, {static_cast<int>(height() * kShare)}, Qt::Vertical);
  Q_EMIT panel_changed();
  follow_work();
}

// Comparing wants other room for panels than reading: each kind of work finds the docks as it left them.
void MainWindow::follow_work() {
  if (!arranged_ || restoring_) return;
  const auto page = names_.find(pages_->currentWidget()), tab = names_.find(bottom_->currentWidget());
  const QString work = page != names_.end()                  ? page->second
                       : bottom_open_ && tab != names_.end() ? tab->second
                                                             : "reading";
  if (work == work_) return;
  layouts_[work_] = saveState();
  const QString from = std::exchange(work_, work);
  const auto kept = layouts_.find(work);
  if (kept == layouts_.end()) {
    if (from != kAlone && work != kAlone) return;
    for (auto* dock : findChildren<QDockWidget*>())
      if (dockWidgetArea(dock) == Qt::RightDockWidgetArea) dock->setVisible(work != kAlone);
    return;
  }
  restoring_ = true;
  restoreState(kept->second);
  bottom_dock_->show();
  arrange_corner();
  restoring_ = false;
}

// In a narrow window the tabs and what they show take the whole width.
void MainWindow::arrange_corner() {
  constexpr int kNarrow = 1200;
  setCorner(Qt::BottomRightCorner, width() < kNarrow ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea);
}

// The picture does not pay for a smaller window alone: the panels beside it keep their share.
void MainWindow::resizeEvent(QResizeEvent* event) {
  arrange_corner();
  refresh_tools();
  QList<QDockWidget*> panels;
  QList<int> widths;
  if (isVisible() && event->oldSize().width() > 0 && event->oldSize().width() != width())
    for (auto* dock : findChildren<QDockWidget*>())
      if (dock->isVisible() && dock != bottom_dock_ && !dock->isFloating()) {
        panels << dock;
        widths << dock->width() * width() / event->oldSize().width();
      }
  QMainWindow::resizeEvent(event);
  if (!panels.isEmpty()) resizeDocks(panels, widths, Qt::Horizontal);
}

// The code gets room for some 80 columns, the picture at least as much. In a wide window the node stands beside the
// code.
void MainWindow::arrange_docks() {
  auto docks_at = [this](Qt::DockWidgetArea area) {
    QList<QDockWidget*> docks;
    for (auto* dock : findChildren<QDockWidget*>())
      if (dockWidgetArea(dock) == area) docks << dock;
    return docks;
  };
  const QList<QDockWidget*> left = docks_at(Qt::LeftDockWidgetArea), right = docks_at(Qt::RightDockWidgetArea);
  constexpr int kRoomForBoth = 1800;
  const bool beside = width() >= kRoomForBoth && right.size() > 1;
  splitDockWidget(right.first(), right.last(), beside ? Qt::Horizontal : Qt::Vertical);
  const int code = std::clamp(width() * 2 / 5, 320, 640), tree = std::clamp(width() * 3 / 20, 140, 280);
  resizeDocks({left.first(), right.first()}, {tree, code}, Qt::Horizontal);
  if (beside) return resizeDocks(right, {width() * 3 / 10, width() * 18 / 100}, Qt::Horizontal);
  resizeDocks(right, {height() * 11 / 20, height() * 9 / 20}, Qt::Vertical);
}

void MainWindow::fit_screen() {
  fitting_ = true;
  shrink_to_screen();
}

void MainWindow::shrink_to_screen() {
  if (isMaximized() || isFullScreen()) return;
  constexpr QMargins kUsualFrame(2, 32, 2, 6);  // the real one is known once the window is shown
  const QMargins known = windowHandle() ? windowHandle()->frameMargins() : QMargins();
  const QMargins frame = known.isNull() && !isVisible() ? kUsualFrame : known;
  const QRect room = screen()->availableGeometry().marginsRemoved(frame);
  QRect now = geometry();
  now.setSize(now.size().boundedTo(room.size()));
  now.moveLeft(std::clamp(now.left(), room.left(), room.right() - now.width() + 1));
  now.moveTop(std::clamp(now.top(), room.top(), room.bottom() - now.height() + 1));
  if (now != geometry()) setGeometry(now);
}

void MainWindow::showEvent(QShowEvent* event) {
  if (!arranged_) arrange_docks();
  arranged_ = true;
  QMainWindow::showEvent(event);
}

void MainWindow::restore_layout() {
  QSettings settings;
  restoreGeometry(settings.value("geometry").toByteArray());
  arranged_ = restoreState(settings.value("layout").toByteArray());
  open_bottom(settings.value("bottom", false).toBool());
  const QVariantMap kept = settings.value("layouts").toMap();
  for (const auto& [work, state] : kept.asKeyValueRange()) layouts_[work] = state.toByteArray();
}

void MainWindow::reset_layout() {
  layouts_.clear();
  restoreState(default_layout_);
  for (auto* dock : findChildren<QDockWidget*>()) dock->show();
  open_bottom(false);
  arrange_docks();
}

}  // namespace partita::views
