// `check` on AOTAutograd cases: functions that write to their inputs, return views, are handed one memory twice.
// aot_cases/ holds our own, all of which must be right; of those in the corpus, refused.tsv lists what is refused, and
// aot_graphs.tsv where our graphs differ from PyTorch's, and why.
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSet>
#include <QtTest>

#include "tests/support/corpus.h"

using namespace partita::testing;

namespace {

QJsonObject check(const QString& folder, const QString& backend, bool train) {
  QStringList arguments = {"check", folder, "--json", "--backend", backend};
  if (train) arguments << "--train";
  QProcess process;
  process.start(PARTITA_BINARY, arguments);
  if (!process.waitForFinished(600'000)) process.kill();
  return QJsonDocument::fromJson(process.readAllStandardOutput()).object();
}

QString lines(const QJsonArray& rows) {
  QString text;
  for (const QJsonValue& row : rows) text += "\n" + row["file"].toString() + ": " + row["message"].toString();
  return text;
}

/// "alias_detach aot_graphs", for every row of the table.
QSet<QString> known_differences() {
  QFile file(PARTITA_SOURCE_DIR "/tests/cli/aot_graphs.tsv");
  QSet<QString> out;
  if (!file.open(QIODevice::ReadOnly)) return out;
  for (const QString& line : QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts))
    if (const QStringList columns = line.split('\t'); !line.startsWith('#') && columns.size() == 3)
      out.insert(columns[0] + " " + columns[1]);
  return out;
}

void rows() {
  QTest::addColumn<QString>("backend");
  QTest::addColumn<bool>("train");
  for (const char* backend : {"interp", "cpu"})
    for (const bool train : {false, true})
      QTest::addRow("%s%s", backend, train ? " with gradients" : "") << backend << train;
}

}  // namespace

class TestAotCases : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void ours_data() { rows(); }
  void ours() {
    QFETCH(QString, backend);
    QFETCH(bool, train);
    const QString folder = PARTITA_SOURCE_DIR "/tests/cli/aot_cases";
    const QJsonObject found = check(folder, backend, train);
    QVERIFY2(found["failures"].toArray().isEmpty(), qPrintable(lines(found["failures"].toArray())));
    QVERIFY2(found["skips"].toArray().isEmpty(), qPrintable(lines(found["skips"].toArray())));
    QCOMPARE(found["passed"].toInt(), QDir(folder).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size());
  }

  void the_corpus_data() { rows(); }
  void the_corpus() {
    if (corpus().empty()) QSKIP(no_corpus);
    QFETCH(QString, backend);
    QFETCH(bool, train);
    const QJsonObject found = check(QString::fromStdString((corpus() / "aot").string()), backend, train);
    QSet<QString> differ;
    QJsonArray wrong;
    for (const QJsonValue& row : found["failures"].toArray()) {
      const QString which = row["file"].toString() + " " + row["graph"].toString();
      differ.insert(which);
      if (!known_differences().contains(which)) wrong.append(row);
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(lines(wrong)));
    const QSet<QString> gone = known_differences() - differ;
    QVERIFY2(gone.isEmpty(), qPrintable("no longer different: " + QStringList(gone.values()).join(", ")));
    QVERIFY(found["aot"]["passed"].toInt() > 80);
    QFile file(PARTITA_SOURCE_DIR "/tests/cli/refused.tsv");
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QString listed = QString::fromUtf8(file.readAll());
    for (const QJsonValue& row : found["skips"].toArray())
      QVERIFY2(listed.contains("\naot/" + row["file"].toString() + "\taot\t"), qPrintable(lines({row})));
  }
};

QTEST_GUILESS_MAIN(TestAotCases)
#include "test_aot_cases.moc"
