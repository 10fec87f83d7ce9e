// `check` on the corpus' operator cases: no case may fail, and the refused ones must be those in refused.tsv, so that a
// lost or new operator is noticed. Sanitizers make this slow: under them a fixed share of each operator's cases is run,
// and an operator that is refused no longer is left to the other builds to notice.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtEndian>
#include <QtTest>
#include <map>

#include "tests/support/corpus.h"

using namespace partita::testing;

namespace {

#ifdef PARTITA_SANITIZED
constexpr int every = 7;  // odd, because dtypes often alternate
#else
constexpr int every = 1;
#endif

/// "item.default:0:graph" -> the reason, for a folder and a backend.
std::map<QString, QString> listed(const QString& folder, const QString& backend) {
  QFile file(PARTITA_SOURCE_DIR "/tests/cli/refused.tsv");
  if (!file.open(QIODevice::ReadOnly)) qFatal("refused.tsv is missing");
  std::map<QString, QString> rows;
  for (const QString& line : QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts)) {
    if (line.startsWith('#')) continue;
    const QStringList cells = line.split('\t');
    if (cells.size() != 5) qFatal("refused.tsv: five cells expected: %s", qPrintable(line));
    if (!cells[0].startsWith(folder + "/") || (cells[2] != "*" && cells[2] != backend)) continue;
    for (const QString& index : cells[3].split(','))
      rows[QString("%1:%2:%3").arg(cells[0].sliced(folder.size() + 1), index, cells[1])] = cells[4];
  }
  return rows;
}

QByteArray check(const QStringList& arguments, int& code) {
  QProcess process;
  process.start(PARTITA_BINARY, QStringList{"check"} + arguments);
  if (!process.waitForFinished(1'500'000)) process.kill();
  code = process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1;
  return process.readAllStandardOutput();
}

QString name_of(const QJsonValue& row) {
  return QString("%1:%2:%3").arg(row["file"].toString()).arg(row["idx"].toInt()).arg(row["graph"].toString());
}

/// Copies the cases of a folder that have true among their bool inputs, with other bytes than 1 in its place.
int copy_with_odd_bools(const QString& from, const QString& to) {
  int copied = 0;
  for (const QFileInfo& tensors : QDir(from).entryInfoList({"*.safetensors"})) {
    QFile file(tensors.filePath());
    if (!file.open(QIODevice::ReadOnly)) qFatal("%s cannot be read", qPrintable(file.fileName()));
    QByteArray bytes = file.readAll();
    const qsizetype data = 8 + qFromLittleEndian<qint64>(bytes.constData());
    const QJsonObject header = QJsonDocument::fromJson(bytes.sliced(8, data - 8)).object();
    bool changed = false;
    for (auto entry = header.begin(); entry != header.end(); ++entry) {
      if (entry->toObject()["dtype"] != "BOOL" || !(entry.key().contains(".in.") || entry.key().contains(".const.")))
        continue;
      const QJsonArray place = entry->toObject()["data_offsets"].toArray();
      for (qsizetype i = data + place[0].toInteger(); i < data + place[1].toInteger(); ++i)
        if (bytes[i] == 1) changed = true, bytes[i] = "\x02\x03\x3f\x80\xff"[i % 5];
    }
    if (!changed) continue;
    QFile copy(to + "/" + tensors.fileName());
    if (!copy.open(QIODevice::WriteOnly) || copy.write(bytes) != bytes.size()) qFatal("no room in %s", qPrintable(to));
    const QString json = tensors.completeBaseName() + ".json";
    if (!QFile::copy(from + "/" + json, to + "/" + json)) qFatal("%s cannot be copied", qPrintable(json));
    ++copied;
  }
  return copied;
}

}  // namespace

class TestCheck : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    if (corpus().empty()) QSKIP(no_corpus);
  }

  void cases_data() {
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("backend");
    for (const char* folder : {"ops", "ops_inplace", "ops_unbacked"})
      for (const char* backend : {"debug", "cpu"}) QTest::addRow("%s %s", folder, backend) << folder << backend;
  }
  void cases() {
    QFETCH(QString, folder);
    QFETCH(QString, backend);
    int code = 0;
    const QByteArray out = check({QString::fromStdString((corpus() / folder.toStdString()).string()), "--train",
                                  "--json", "--backend", backend, "--every", QString::number(every)},
                                 code);
    const QJsonObject found = QJsonDocument::fromJson(out).object();
    QVERIFY2(found.contains("passed"), qPrintable(QString("exit code %1").arg(code)));
    QString wrong;
    for (const QJsonValue& row : found["failures"].toArray())
      wrong += name_of(row) + ": " + row["message"].toString() + "\n";
    std::map<QString, QString> expected = listed(folder, backend);
    for (const QJsonValue& row : found["skips"].toArray())
      if (const QString name = name_of(row); expected.erase(name) == 0)
        wrong += name + " is refused and not listed in refused.tsv: " + row["message"].toString() + "\n";
    if (every == 1)
      for (const auto& [name, reason] : expected)
        wrong += name + " passes (was: " + reason + "); take it off refused.tsv\n";
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong));
    qInfo("%d passed, %d of them by the run in double", found["passed"].toInt(),
          static_cast<int>(found["by_double"].toArray().size()));
    QCOMPARE(code, 0);
  }

  /// A stored bool may be any byte, of which only 0 is false: results are the same whatever the bytes.
  void bools_of_other_bytes_data() {
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("backend");
    for (const char* folder : {"ops", "ops_inplace"})
      for (const char* backend : {"interp", "cpu"}) QTest::addRow("%s %s", folder, backend) << folder << backend;
  }
  void bools_of_other_bytes() {
    QFETCH(QString, folder);
    QFETCH(QString, backend);
    QTemporaryDir copies;
    const int files =
        copy_with_odd_bools(QString::fromStdString((corpus() / folder.toStdString()).string()), copies.path());
    QVERIFY(files > 3);
    int code = 0;
    const QByteArray out =
        check({copies.path(), "--json", "--backend", backend, "--every", QString::number(every)}, code);
    const QJsonObject found = QJsonDocument::fromJson(out).object();
    QString wrong;
    for (const QJsonValue& row : found["failures"].toArray())
      wrong += name_of(row) + ": " + row["message"].toString() + "\n";
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong));
    // The first case of each file is always run.
    QVERIFY(found["passed"].toInt() + found["skips"].toArray().size() >= files);
    QVERIFY(found["passed"].toInt() > 0);
    QCOMPARE(code, 0);
  }

  /// The first case of each file is always run, so every operator is.
  void a_share_of_the_cases_has_every_operator() {
    const QString file = QString::fromStdString((corpus() / "ops/add.default.json").string());
    int code = 0;
    const auto count = [&](const char* n) {
      const QJsonObject found = QJsonDocument::fromJson(check({file, "--json", "--every", n}, code)).object();
      return found["graph"].toObject()["passed"].toInt();
    };
    const int all = count("1");
    QVERIFY(all > 7);
    QCOMPARE(count("7"), (all + 6) / 7);
    QCOMPARE(count("1000000"), 1);
  }

  void the_last_line_counts() {
    int code = 0;
    const QByteArray out = check({QString::fromStdString((corpus() / "ops/add.default.json").string())}, code);
    const QStringList lines = QString::fromUtf8(out).split('\n', Qt::SkipEmptyParts);
    QCOMPARE(code, 0);
    QVERIFY(QRegularExpression("^\\d+ outside the tolerance and right by the run in double$")
                .match(lines.end()[-2])
                .hasMatch());
    QVERIFY(QRegularExpression("^\\d+ passed, 0 failed, 0 skipped$").match(lines.back()).hasMatch());
  }
};

QTEST_GUILESS_MAIN(TestCheck)
#include "test_check.moc"
