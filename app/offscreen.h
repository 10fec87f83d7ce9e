#pragma once
#include <QGuiApplication>
#include <cstdio>
#include <optional>

namespace partita {

/// While it lives there is a QGuiApplication, which fonts need; nothing of it is shown. Where the program has one, that
/// is taken.
class Offscreen {
 public:
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;
  Offscreen() {
    if (QCoreApplication::instance()) return;
    // What Qt says of its platform does not matter to who asked for a file.
    qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& message) {
      if (type == QtFatalMsg) std::fprintf(stderr, "partita: %s\n", qPrintable(message));
    });
    app_.emplace(argc_, argv_);
  }

 private:
  // Qt takes out what it has read.
  char name_[8] = "partita", option_[10] = "-platform", platform_[10] = "offscreen";
  char* argv_[4] = {name_, option_, platform_, nullptr};
  int argc_ = 3;
  std::optional<QGuiApplication> app_;
};

}  // namespace partita
