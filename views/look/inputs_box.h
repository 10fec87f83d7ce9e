#pragma once
#include <QWidget>

class QLabel;

namespace partita::views {

/// Chooses the file that the inputs of a run come from.
class InputsBox : public QWidget {
  Q_OBJECT

 public:
  explicit InputsBox(QWidget* parent = nullptr);
  /// An empty path stands for the archive's sample inputs, else a dump's example inputs, else random ones.
  void set_path(const QString& path);
  QString path() const { return path_; }

 Q_SIGNALS:
  void chosen(QString path);  ///< by the user

 private:
  void ask();

  QString path_;
  QLabel* label_;
};

}  // namespace partita::views
