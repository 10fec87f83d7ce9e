#pragma once
// What the window does, written to a file as it happens, for tests that use it with keys and mouse from outside.
#include <QApplication>
#include <QElapsedTimer>
#include <QJsonObject>
#include <QPointer>
#include <map>

#include "core/base/output.h"

namespace partita::views {

class Session;

/// Writes one JSON object a line, with "event" and "at", milliseconds of CLOCK_MONOTONIC:
/// - shown, painted: a document came to the screen; its picture or text was drawn there
/// - started, done, gone: a job; "gone" follows "done" and also ends jobs that were cancelled
/// - selected, page, logged, problem, quit
/// - stall: the window did not answer for over 100 ms, without the time that it waited for a processor and what this
///   log took to write a screen; "cpu_ms" is what its thread worked, the rest are waits, as for the display; "in" is
///   the slowest event of that time
/// - screen: Ctrl+Alt+D was pressed; what can be seen, each with its place in global pixels
class EventLog : public QObject {
 public:
  /// Error file.write.
  static Result<std::unique_ptr<EventLog>> open(const QString& path);
  explicit EventLog(OutputLog file) : file_(std::move(file)) {}

  void watch(Session& bench);
  /// The first event that cannot be written is shown as a problem; later ones are left out.
  void write(const QString& event, QJsonObject fields = {});
  const Status& written() const { return written_; }  ///< error file.write when events are missing
  /// An event was handled, which took that long.
  void handled(const QObject* receiver, const QEvent& event, double milliseconds);
  bool takes(const QEvent& event);  ///< true for the key that asks for the screen, which is written then

 protected:
  void timerEvent(QTimerEvent*) override;

 private:
  void write_screen();
  void refresh_jobs();
  void begin_turn();
  void tell_stall();  ///< when the turn so far was one

  OutputLog file_;
  Status written_;
  Session* bench_ = nullptr;
  std::map<int, QString> jobs_;
  QString painted_;  ///< key of the document that was painted last
  QElapsedTimer turn_;
  double waited_ms_ = 0, worked_ms_ = 0;
  QString slowest_;
  double slowest_ms_ = 0;
};

/// An application that tells a log, when it has one, how long each event took.
class WatchedApplication : public QApplication {
 public:
  using QApplication::QApplication;
  void set_log(EventLog* log) { log_ = log; }
  bool notify(QObject* receiver, QEvent* event) override;

 private:
  QPointer<EventLog> log_;
};

}  // namespace partita::views
