#include "views/look/format.h"

#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>

#include "core/base/number_text.h"
#include "core/base/text.h"

namespace partita::views {

QString text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString bytes_text(std::int64_t bytes) {
  return text(partita::bytes_text(static_cast<double>(bytes)));
}

QString seconds_text(double seconds) {
  return text(partita::seconds_text(seconds));
}

QString error_text(double error) {
  return text(partita::error_text(error));
}

QString count_text(std::int64_t n, const char* singular, const char* plural) {
  return text(partita::count_text(n, singular, plural ? plural : ""));
}

QString amount_text(double n) {
  return text(partita::amount_text(n));
}

QString log_title(const QString& name) {
  const QString always = "dedicated_log_torch_trace_";
  return name.startsWith(always) && name.size() > always.size() ? name.mid(always.size()) : name;
}

QString file_title(const QString& path, int folders) {
  const QFileInfo file(path);
  QString title = log_title(file.fileName());
  for (QDir above = file.dir(); folders > 0 && !above.isRoot(); --folders) {
    title = above.dirName() + "/" + title;
    if (!above.cdUp()) break;
  }
  return title;
}

QString file_name_of(const QString& title) {
  static const QRegularExpression others("[^\\w.+-]+", QRegularExpression::UseUnicodePropertiesOption);
  QString name = QString(title).replace(others, "_");
  while (name.endsWith('_')) name.chop(1);
  return name;
}

QStringList inputs_words(const QString& file) {
  return file.isEmpty() ? QStringList{"--random-weights", "0"} : QStringList{"--inputs", shell_word(file)};
}

QString shell_word(const QString& word) {
  return text(partita::shell_word(word.toStdString()));
}

}  // namespace partita::views
