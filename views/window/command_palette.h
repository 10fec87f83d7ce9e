#pragma once
#include <QFrame>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace partita::views {

/// Something the palette can do.
struct PaletteEntry {
  QString text, detail;  ///< detail: the shortcut, or what kind of thing it is
  std::function<void()> run;
};

/// How well `typed` matches `text`, in which its letters must occur in order. Higher is better, negative is no match.
int fuzzy_score(const QString& typed, const QString& text);

/// Runs any command by name and goes to any node: Ctrl+K.
class CommandPalette : public QFrame {
  Q_OBJECT

 public:
  explicit CommandPalette(QWidget* parent);
  /// `more` gives further entries for what is typed (nodes), asked while typing.
  void open(std::vector<PaletteEntry> entries, std::function<std::vector<PaletteEntry>(const QString&)> more);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refresh();
  void run_current();

  QLineEdit* field_;
  QListWidget* list_;
  std::vector<PaletteEntry> entries_, shown_;
  std::function<std::vector<PaletteEntry>(const QString&)> more_;
};

}  // namespace partita::views
