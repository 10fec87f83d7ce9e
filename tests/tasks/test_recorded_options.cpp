// torch:inductor compiles a recorded graph with the options that its program had set.
#include <QtTest>

#include "app/tasks/minify_question.h"
#include "app/tasks/run_artefact.h"

namespace partita {
namespace {

class TestRecordedOptions : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void inductor_takes_them() {
    QCOMPARE(with_recorded_options("torch:inductor", recorded()), std::string("torch:inductor+max_fusion_size=1"));
    QCOMPARE(with_recorded_options("accuracy:torch:inductor", recorded()),
             std::string("accuracy:torch:inductor+max_fusion_size=1"));
  }

  void others_and_chosen_ones_stay() {
    QCOMPARE(with_recorded_options("torch:eager", recorded()), std::string("torch:eager"));
    QCOMPARE(with_recorded_options("torch:inductor+debug=True", recorded()), std::string("torch:inductor+debug=True"));
    QCOMPARE(with_recorded_options("torch:inductor", Artefact{}), std::string("torch:inductor"));
  }

  void window_minifies_with_them() {
    const auto tool = minify_tool(recorded(), {"crash", "torch:inductor", {}}, {}, "partita");
    QVERIFY2(tool, tool ? "" : tool.error().line().c_str());
    QVERIFY2(tool->options.find("crash:torch:inductor+max_fusion_size=1") != std::string::npos, tool->options.c_str());
  }

 private:
  static Artefact recorded() {
    Artefact graph;
    graph.recorded = std::make_shared<Recorded>(Recorded{.options = {{"max_fusion_size", "1"}}});
    return graph;
  }
};

}  // namespace
}  // namespace partita

QTEST_GUILESS_MAIN(partita::TestRecordedOptions)
#include "test_recorded_options.moc"
