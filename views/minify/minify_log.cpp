#include "views/minify/minify_log.h"

#include <QLocale>

#include "views/look/format.h"

namespace partita::views {
namespace {

QString grouped(std::size_t n) {
  return QLocale(QLocale::English).toString(static_cast<qulonglong>(n));
}

}  // namespace

QString outcome_text(const minify::MinifyResult& reduced) {
  return QString("%1 of %2 calls still %3: %4")
      .arg(grouped(reduced.calls), grouped(reduced.start_calls), reduced.calls == 1 ? "fails" : "fail",
           text(reduced.failure.text()));
}

QString details_text(const minify::MinifyResult& reduced, const minify::Culprit& culprit) {
  QStringList lines;
  const auto blame = [&lines](const QString& what, const QString& who) {
    const QString none = "none: ";  // the reason follows
    if (who.startsWith(none))
      lines << QString("No guilty %1: %2").arg(what, who.mid(none.size()));
    else if (!who.isEmpty())
      lines << QString("Guilty %1: %2").arg(what, who);
  };
  blame("pass", text(culprit.pass));
  blame("kernel", text(culprit.kernel));
  QString tries = QString("%1 in %2").arg(count_text(reduced.tries, "try", "tries"), seconds_text(reduced.seconds));
  if (reduced.recalled > 0) tries += QString(", %1 known from before").arg(grouped(reduced.recalled));
  lines << tries;
  return lines.join('\n');
}

void MinifyLog::clear() {
  recent_.clear();
  curve_.clear();
}

void MinifyLog::add(const minify::Event& step) {
  if (curve_.empty()) curve_.push_back({0, step.start_calls});
  if (curve_.back().calls != step.calls) curve_.push_back({step.seconds, step.calls});
  if (!recent_.empty()) recent_.back().graph = nullptr;  // only the graph of the newest step is shown
  recent_.push_back(step);
  if (recent_.size() > kMostKept) recent_.pop_front();
}

std::vector<Row> MinifyLog::rows() const {
  std::vector<Row> rows;
  for (auto step = recent_.rbegin(); step != recent_.rend(); ++step) {
    QString verdict = step->fails ? "still fails" : "passes";
    if (step->remembered) verdict += ", known";
    const std::size_t number = step->tries + step->recalled;
    rows.push_back({{},
                    {Cell(QString::number(number), static_cast<double>(number), Tone::Dim),
                     Cell(verdict, step->fails ? Tone::Plain : Tone::Dim), Cell(text(step->tried)),
                     Cell(text(step->strategy), Tone::Dim)}});
  }
  return rows;
}

QString MinifyLog::headline() const {
  if (recent_.empty()) return {};
  return QString("%1 of %2 calls").arg(grouped(last().calls), grouped(last().start_calls));
}

QString MinifyLog::line() const {
  if (recent_.empty()) return {};
  QString line = QString("%1: %2, %3 a second, %4")
                     .arg(text(last().strategy), count_text(last().tries, "try", "tries"))
                     .arg(last().tries_per_second, 0, 'f', last().tries_per_second < 10 ? 1 : 0)
                     .arg(seconds_text(last().seconds));
  if (last().recalled > 0) line += QString(", %1 known from before").arg(grouped(last().recalled));
  return line;
}

}  // namespace partita::views
