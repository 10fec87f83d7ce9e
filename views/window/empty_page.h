#pragma once
#include <QWidget>
#include <vector>

#include "views/look/theme.h"
#include "views/session/samples.h"

class QLabel;
class QVBoxLayout;

namespace partita::views {

/// What the window shows before a file is open: samples, recent files, how to get graphs out of PyTorch.
class EmptyPage : public QWidget {
  Q_OBJECT

 public:
  explicit EmptyPage(QWidget* parent = nullptr);
  void set_content(const std::vector<Sample>& samples, const QStringList& recent);

 Q_SIGNALS:
  void open_asked(QString path);

 private:
  QLabel* hint_;
  QVBoxLayout* samples_;
  QVBoxLayout* recent_;
  std::vector<QWidget*> copies_;  ///< buttons
};

}  // namespace partita::views
