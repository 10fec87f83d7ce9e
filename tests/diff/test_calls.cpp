// Two logs of DebugMode: where their calls part.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/diff/diff.h"

using namespace partita;

class TestCalls : public QObject {
  Q_OBJECT

  QTemporaryDir dir_;
  Loaded log(const char* name, const std::vector<std::string>& calls) {
    std::string text = "{\"format\": \"torch.utils._debug_mode.DebugMode.logs\", \"version\": 1, \"logs\": [";
    for (std::size_t i = 0; i < calls.size(); ++i)
      text += (i ? ",{\"op_name\": \"" : "{\"op_name\": \"") + calls[i] + "\", \"args_str\": \"t: f32[2]\"}";
    const std::string path = dir_.filePath(name).toStdString();
    std::ofstream(path) << text << "]}";
    auto loaded = load(path);
    if (!loaded) qFatal("%s", loaded.error().line().c_str());
    return *std::move(loaded);
  }
  QStringList rows(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    const Loaded one = log("a.json", a), two = log("b.json", b);
    const auto found = diff({&one, &two});
    if (!found) qFatal("%s", found.error().line().c_str());
    QStringList out;
    for (const DiffRow& row : found->rows) {
      if (row.aspect != DiffAspect::Call) qFatal("another row");
      out << QString::fromStdString(row.what + ": " + row.cells[0].text + " | " + row.cells[1].text);
    }
    return out;
  }

 private Q_SLOTS:
  void equal_logs_have_no_row() { QCOMPARE(rows({"sin", "cos"}, {"sin", "cos"}), QStringList()); }

  void each_place_is_a_row() {
    QCOMPARE(
        rows({"a", "b", "c", "d", "e"}, {"a", "x", "c", "d", "f", "e", "g"}),
        (QStringList{"call 2: b(t: f32[2]) | x(t: f32[2])", "call 5:  | f(t: f32[2])", "call 6:  | g(t: f32[2])"}));
  }

  void many_are_counted() {
    const QStringList found = rows({"a"}, {"a", "1", "2", "3", "4", "5", "6"});
    QCOMPARE(found.size(), 1);
    QVERIFY(found[0].endsWith("4(t: f32[2]); and 2 more"));
  }
};

QTEST_GUILESS_MAIN(TestCalls)
#include "test_calls.moc"
