#include "views/look/format.h"

#include <QDir>
#include <QFileInfo>
#include <cmath>

#include "core/base/shell_word.h"

namespace partita::views {

QString text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString bytes_text(std::int64_t bytes) {
  if (bytes < 0) return "-" + bytes_text(-bytes);
  if (bytes < 1024) return QString::number(bytes) + " B";
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1023.5 && unit < 3) value /= 1024, ++unit;
  int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return QString::number(value, 'f', decimals) + " " + units[unit];
}

QString seconds_text(double seconds) {
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr Unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
  Unit unit = units[3];
  for (Unit u : units)
    if (seconds >= u.size * 0.9995) {
      unit = u;
      break;
    }
  double value = seconds / unit.size;
  return QString::number(value, 'f', value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + " " + unit.name;
}

QString error_text(double error) {
  if (std::isnan(error)) return "nan";
  if (std::isinf(error)) return "inf";
  if (error == 0) return "0";
  int exponent = static_cast<int>(std::floor(std::log10(std::abs(error))));
  QString mantissa = QString::number(error / std::pow(10, exponent), 'f', 1);
  if (mantissa == "10.0") mantissa = "1.0", ++exponent;
  return mantissa + "e" + QString::number(exponent);
}

QString count_text(std::int64_t n, const char* singular, const char* plural) {
  if (n == 1) return "1 " + QString(singular);
  return QString::number(n) + " " + (plural ? QString(plural) : QString(singular) + "s");
}

QString amount_text(double n) {
  const char* units[] = {"", " k", " M", " G", " T"};
  int unit = 0;
  for (; n >= 1000 && unit < 4; n /= 1000) ++unit;
  return QString::number(n, 'g', 3) + units[unit];
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
  return title.simplified().replace(' ', '_').replace('/', '_');
}

QString shell_word(const QString& word) {
  return text(partita::shell_word(word.toStdString()));
}

}  // namespace partita::views
