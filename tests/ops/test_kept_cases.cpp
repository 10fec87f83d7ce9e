// Cases in the corpus' format that were once wrong (tests/torch/operator_cases.py makes them from PyTorch's operator
// database): values, strides and gradients, interpreted.
#include <QtTest>
#include <filesystem>

#include "core/compare/op_cases.h"

using namespace partita;

class KeptCases : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void agrees_with_torch_data() {
    QTest::addColumn<QString>("path");
    const auto files = find_case_files(PARTITA_SOURCE_DIR "/tests/ops/cases");
    QVERIFY(files);
    for (const std::string& path : *files)
      QTest::newRow(std::filesystem::path(path).stem().c_str()) << QString::fromStdString(path);
  }

  void agrees_with_torch() {
    QFETCH(QString, path);
    const auto results = check_cases(path.toStdString(), {.train = true});
    QVERIFY2(results, results ? "" : results.error().line().c_str());
    QVERIFY(!results->empty());
    for (const CaseResult& r : *results)
      QVERIFY2(r.outcome == Outcome::Passed,
               qPrintable(QString("%1 %2: %3")
                              .arg(r.index)
                              .arg(QString::fromStdString(r.kind), QString::fromStdString(r.message))));
  }
};

QTEST_GUILESS_MAIN(KeptCases)
#include "test_kept_cases.moc"
