#include "views/session/samples.h"

#include <QDir>
#include <QFileInfo>
#include <QSaveFile>
#include <QStandardPaths>

// Of a static library, resources are there once this has been called; the name is a macro of C.
static void add_resources() {
  Q_INIT_RESOURCE(samples);
}

namespace partita::views {
namespace {

const QString kFolder = QStringLiteral(":/samples");

}  // namespace

std::vector<Sample> samples() {
  add_resources();
  constexpr std::pair<const char*, const char*> kinds[] = {
      {"*.pt2", "exported program"}, {"*.py", "joint graph"}, {"*.log", "log of torch.compile"}};
  std::vector<Sample> found;
  for (const QString& name : QDir(kFolder).entryList(QDir::Dirs, QDir::Name))
    for (const auto& [pattern, kind] : kinds)
      for (const QFileInfo& file : QDir(kFolder + "/" + name).entryInfoList({pattern}, QDir::Files))
        found.push_back({name, kind, file.filePath()});
  return found;
}

Result<QString> path_on_disk(const QString& path) {
  if (!path.startsWith(kFolder)) return path;
  const QFileInfo sample(path);
  const QDir folder(QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) + "/partita/samples/" +
                    sample.dir().dirName());
  const auto failed = [&](const QString& file) {
    return input_error("samples.write", folder.filePath(file).toStdString() + ": the sample cannot be written here");
  };
  if (!folder.mkpath(".")) return failed(".");
  for (const QFileInfo& file : sample.dir().entryInfoList(QDir::Files)) {
    QFile from(file.filePath());
    QSaveFile to(folder.filePath(file.fileName()));
    if (!from.open(QIODevice::ReadOnly) || !to.open(QIODevice::WriteOnly)) return failed(file.fileName());
    const QByteArray bytes = from.readAll();
    if (to.write(bytes) != bytes.size() || !to.commit()) return failed(file.fileName());
  }
  return folder.filePath(sample.fileName());
}

}  // namespace partita::views
