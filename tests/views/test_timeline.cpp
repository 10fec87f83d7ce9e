// The time line of a log: where its steps lie, what zooms, and what it says of where the time went.
#include <QDir>
#include <QSignalSpy>

#include "core/load/compile_times.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/table/table_panel.h"
#include "views/timeline/timeline_controller.h"

using namespace partita;
using namespace partita::tests;
using namespace partita::views;

namespace {

struct Event {
  const char* phase;
  const char* name;
  double at;            ///< seconds
  int compilation = 0;  ///< of frame 0
};

/// A log of these events, by a rank.
QString write_log(const QString& path, const std::vector<Event>& events) {
  std::ofstream out(path.toStdString());
  for (const Event& e : events)
    out << R"(V1121 08:13:51.015000 1 torch/_dynamo/utils.py:1] {"chromium_event": {}, "frame_id": 0, "frame_compile_id": )"
        << e.compilation << R"(, "attempt": 0, "has_payload": ""})" << "\n\t{\n\t\"name\": \"" << e.name
        << "\",\n\t\"ts\": " << QString::number(1.7e15 + e.at * 1e6, 'f', 1).toStdString()
        << ",\n\t\"args\": {\"fn_name\": \"f of " << e.name << "\", \"compile_id\": \"0/0\"},\n\t\"ph\": \"" << e.phase
        << "\",\n\t\"tid\": 0\n\t}\n";
  return path;
}

const std::vector<Event> kEvents = {{"B", "dynamo", 0},       {"B", "trace", 1},   {"E", "trace", 2},
                                    {"i", "cache_miss", 2.5}, {"B", "trace", 3},   {"E", "trace", 4},
                                    {"B", "compile", 4},      {"E", "compile", 9}, {"E", "dynamo", 10},
                                    {"B", "dynamo", 20, 1},   {"B", "lost", 21, 1}};

const TimelineSpan& span_of(const Timeline& timeline, const std::string& name, int occurrence = 0) {
  for (const TimelineSpan& span : timeline.spans)
    if (span.name == name && occurrence-- == 0) return span;
  qFatal("there is no such step");
}

}  // namespace

class TestTimeline : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void steps_lie_below_what_they_are_part_of() {
    const Loaded loaded = *load(write_log(folder_.filePath("one.log"), kEvents).toStdString());
    const Timeline timeline = make_timeline(loaded);
    QCOMPARE(timeline.tracks.size(), std::size_t{1});
    QCOMPARE(timeline.tracks[0].lanes, 2);
    QCOMPARE(timeline.tracks[0].busy_seconds, 11.0);
    QCOMPARE(timeline.seconds, 21.0);
    QCOMPARE(span_of(timeline, "dynamo").lane, 0);
    QCOMPARE(span_of(timeline, "dynamo").self_seconds, 3.0);
    QCOMPARE(span_of(timeline, "trace", 1).begin, 3.0);
    QCOMPARE(span_of(timeline, "trace", 1).lane, 1);
    QCOMPARE(span_of(timeline, "compile").lane, 1);  // it begins when the one before it ends
    QCOMPARE(span_of(timeline, "compile").about, std::string("fn_name: f of compile"));
    QCOMPARE(span_of(timeline, "compile").compilation, std::string("0/0"));
    QVERIFY(span_of(timeline, "cache_miss").instant);
    // What the log does not end lasts until its end.
    QVERIFY(!span_of(timeline, "lost").ended && !span_of(timeline, "dynamo", 1).ended);
    QCOMPARE(span_of(timeline, "dynamo", 1).compilation, std::string("0/1"));
    QCOMPARE(span_of(timeline, "dynamo", 1).seconds, 1.0);
    QCOMPARE(timeline.steps[0].name, std::string("compile"));
    QCOMPARE(timeline.steps[0].self_seconds, 5.0);
    const auto trace = std::ranges::find(timeline.steps, std::string("trace"), &TimelineStep::name);
    QCOMPARE(trace->count, 2);
    QCOMPARE(trace->seconds, 2.0);
    QCOMPARE(timeline.summary(),
             std::string("11 s of compiling; most of it, 5 s, in compile; 2 steps without an end in the log"));
    const std::vector<Row> rows = timeline_rows(timeline);
    QCOMPARE(rows[0].node, QString("compile"));
    QCOMPARE(rows[0].cells[4].text, QString("45.5 %"));
  }

  void a_folder_of_ranks_has_a_track_for_each() {
    QVERIFY(QDir(folder_.path()).mkpath("ranks"));
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<Event> events = {{"B", "dynamo", 0.5 * rank}, {"E", "dynamo", 10 + 2.0 * rank}};
      write_log(folder_.filePath(QString("ranks/dedicated_log_torch_trace_rank_%1_abcdefgh.log").arg(rank)), events);
    }
    const Loaded loaded = *load(folder_.filePath("ranks").toStdString());
    const Timeline timeline = make_timeline(loaded);
    QCOMPARE(timeline.tracks.size(), std::size_t{2});
    QVERIFY(timeline.tracks[1].name.starts_with("rank 1"));
    QCOMPARE(timeline.spans[1].begin, 0.5);  // by one clock
    QVERIFY2(timeline.summary().starts_with("11.5 s of compiling in rank 1") &&
                 timeline.summary().find(", 10 s in rank 0") != std::string::npos &&
                 timeline.summary().ends_with("; of 21.5 s in all, most, 21.5 s, in dynamo"),
             timeline.summary().c_str());
  }

  void the_steps_of_a_step_are_not_counted_twice() {
    const std::vector<Event> events = {{"B", "a", 0}, {"B", "a", 1}, {"E", "a", 3}, {"E", "a", 4}};
    const Timeline timeline = make_timeline(*load(write_log(folder_.filePath("within.log"), events).toStdString()));
    QCOMPARE(timeline.steps[0].seconds, 4.0);
    QCOMPARE(timeline.steps[0].self_seconds, 4.0);
    QCOMPARE(timeline.steps[0].count, 2);
  }

  void the_wheel_zooms_at_the_pointer_and_arrows_walk() {
    TimelinePlot plot;
    plot.resize(824, 300);
    plot.show();
    plot.set_timeline(std::make_shared<const Timeline>(
        make_timeline(*load(write_log(folder_.filePath("wheel.log"), kEvents).toStdString()))));
    QCOMPARE(plot.shown_seconds(), 21.0);
    const Timeline& timeline = *plot.timeline();
    const int compile = static_cast<int>(&span_of(timeline, "compile") - timeline.spans.data());
    const QRectF box = plot.box_of(compile);
    plot.zoom_by(4, box.left());
    QCOMPARE(plot.shown_seconds(), 21.0 / 4);
    QVERIFY(std::abs(plot.box_of(compile).left() - box.left()) < 1e-6);
    QVERIFY(std::abs(plot.box_of(compile).width() - 4 * box.width()) < 1e-6);
    plot.zoom_by(1e12, 400);
    QVERIFY(plot.shown_seconds() > 0);
    plot.zoom_by(1e-12, 400);
    QCOMPARE(plot.shown_begin(), 0.0);
    QCOMPARE(plot.shown_seconds(), 21.0);
    // A click chooses, arrows go on from there.
    QSignalSpy chosen(&plot, &TimelinePlot::span_chosen);
    QTest::mouseClick(plot.viewport(), Qt::LeftButton, {}, plot.box_of(compile).center().toPoint());
    QCOMPARE(plot.chosen(), compile);
    QCOMPARE(plot.accessibleDescription(), QString("compile (0/0): 5.00 s, 5.00 s of its own"));
    QTest::keyClick(&plot, Qt::Key_Left);
    QCOMPARE(timeline.spans[static_cast<std::size_t>(plot.chosen())].begin, 3.0);
    QTest::keyClick(&plot, Qt::Key_Up);
    QCOMPARE(timeline.spans[static_cast<std::size_t>(plot.chosen())].name, std::string("dynamo"));
    QTest::keyClick(&plot, Qt::Key_Down);
    QCOMPARE(timeline.spans[static_cast<std::size_t>(plot.chosen())].begin, 1.0);
    QCOMPARE(chosen.count(), 4);
    QTest::keyClick(&plot, Qt::Key_Z);
    QVERIFY(plot.shown_seconds() < 1.2 && plot.shown_begin() > 0.9);
    QTest::keyClick(&plot, Qt::Key_F);
    QCOMPARE(plot.shown_seconds(), 21.0);
    // What is painted is not the background alone.
    QVERIFY(plot.grab().toImage().pixelColor(plot.box_of(compile).center().toPoint()) != Theme::current().paper);
  }

  void any_times_of_a_log_can_be_drawn() {
    // Whatever a log says: huge and negative times, ends before beginnings, hundreds of steps within one another.
    std::vector<Event> events = {
        {"B", "huge", 1e290}, {"E", "huge", -1e290}, {"B", "long", -1e290}, {"E", "long", 1e290}};
    for (int i = 0; i < 300; ++i) events.push_back({"B", "deep", 1.0 * i});
    TimelinePlot plot;
    plot.resize(400, 200);
    plot.show();
    plot.set_timeline(std::make_shared<const Timeline>(
        make_timeline(*load(write_log(folder_.filePath("huge.log"), events).toStdString()))));
    for (int i = 0; i < 40; ++i) {
      plot.zoom_by(10, 17 * i % 400);
      QVERIFY(plot.grab().toImage().width() > 100);
    }
    QTest::keyClick(&plot, Qt::Key_Right);
    QTest::keyClick(&plot, Qt::Key_Down);
    QVERIFY(plot.shown_seconds() > 0);
  }

  void a_log_opens_into_its_times() {
    Session bench(tools());
    bench.window().resize(1200, 800);
    bench.window().show();
    bench.documents().open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/training/training.log");
    QVERIFY(wait_shown(bench));
    QVERIFY(bench.views().show("timeline"));
    TimelineView* view = bench.views().get<TimelineController>().view();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->plot()->timeline(); }, 30000));
    QVERIFY2(view->summary().contains(" of compiling; most of it, "), qPrintable(view->summary()));
    QVERIFY(bench.command_line().contains("query") && bench.command_line().endsWith("times"));
    // The table's first row is the step that took most; Enter goes to its longest occurrence.
    const QString first = view->table()->model()->rows().front().node;
    Q_EMIT view->table()->node_activated(first);
    QVERIFY(view->readout().startsWith(first));
    QVERIFY(view->plot()->shown_seconds() < view->plot()->timeline()->seconds);
    // From a step to the graph of its compilation.
    const auto chosen = static_cast<std::size_t>(view->plot()->chosen());
    Q_EMIT view->record_asked(QString::fromStdString(view->plot()->timeline()->spans[chosen].record));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current_graph(); }, 30000));
    QVERIFY(!bench.views().get<TimelineController>().on_screen());
    QCOMPARE(bench.documents().current()->artefact.group, std::string("0/0"));
  }

  void what_has_no_times_says_so() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("plain.py", *tests::joint_graph(1)));
    QVERIFY(wait_shown(bench));
    QVERIFY(bench.views().show("timeline"));
    TimelineView* view = bench.views().get<TimelineController>().view();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->plot()->timeline(); }, 30000));
    QCOMPARE(view->summary(), QString("no times of compiling are in it"));
  }

 private:
  TestFolder folder_;
};

QTEST_MAIN(TestTimeline)
#include "test_timeline.moc"
