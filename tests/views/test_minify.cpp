// The view of a minification, tested on events without a minifier.
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include "core/ir/print.h"
#include "tests/views/graphs.h"
#include "views/minify/minify_view.h"

using namespace partita;
using namespace partita::views;

namespace {

minify::Event step(std::size_t tries, std::size_t calls, bool fails) {
  minify::Event s;
  s.strategy = "truncate suffix";
  s.tried = "keep " + std::to_string(calls) + " of 1700";
  s.fails = fails;
  s.tries = tries;
  s.calls = calls;
  s.start_calls = 1700;
  s.seconds = static_cast<double>(tries) / 20;
  s.tries_per_second = 20;
  return s;
}

minify::MinifyResult two_of(std::size_t calls) {
  minify::MinifyResult r;
  r.failure = {.what = "values", .op = "float32"};
  r.calls = 2;
  r.start_calls = calls;
  r.tries = 46;
  r.seconds = 1.9;
  return r;
}

QPushButton* button(MinifyView& view, const QString& text) {
  for (QPushButton* b : view.findChildren<QPushButton*>())
    if (b->text() == text) return b;
  return nullptr;
}

}  // namespace

class TestMinify : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_compiler_with_settings_can_be_chosen() {
    MinifyView view;
    view.set_choices({"accuracy", "crash"}, {"cpu", "torch:inductor"}, "cpu");
    for (const char* compiler : {"torch:inductor+max_fusion_size=1", "torch:inductor"}) {
      view.choose({"crash", compiler, {}});
      QCOMPARE(view.request().compiler, std::string(compiler));
    }
  }

  void the_log_keeps_the_newest_tries_and_all_improvements() {
    MinifyLog log;
    QVERIFY(log.empty() && log.rows().empty() && log.headline().isEmpty());
    constexpr int tries = 1000;
    for (int i = 1; i <= tries; ++i) log.add(step(i, 1700 - i / 100 * 100, i % 100 == 0));
    QCOMPARE(log.rows().size(), MinifyLog::kMostKept);
    QCOMPARE(log.rows().front().cells[0].text, QString("1000"));
    QCOMPARE(log.rows().front().cells[1].text, QString("still fails"));
    QCOMPARE(log.rows()[1].cells[1].text, QString("passes"));
    for (const Row& row : log.rows()) QVERIFY(row.cells[1].tone != Tone::Good);  // a graph that fails is no good news
    QCOMPARE(log.curve().size(), std::size_t{11});                               // the start and ten steps down
    QCOMPARE(log.curve().front().calls, std::size_t{1700});
    QCOMPARE(log.curve().back().calls, std::size_t{700});
    QCOMPARE(log.headline(), QString("700 of 1,700 calls"));
    QCOMPARE(log.line(), QString("truncate suffix: 1000 tries, 20 a second, 50.0 s"));
  }

  void an_outcome_names_the_culprit() {
    const minify::MinifyResult reduced = two_of(1717);
    QCOMPARE(outcome_text(reduced), QString("2 of 1,717 calls still fail: values at float32"));
    QCOMPARE(details_text(reduced, {.pass = "fuse_addmm"}), QString("Guilty pass: fuse_addmm\n46 tries in 1.90 s"));
    QCOMPARE(details_text(reduced, {.pass = "none: it fails before any", .kernel = "kernel 0 (tanh)"}),
             QString("No guilty pass: it fails before any\nGuilty kernel: kernel 0 (tanh)\n46 tries in 1.90 s"));
  }

  void it_can_be_paused_resumed_accepted_and_cancelled_only_while_it_runs() {
    MinifyView view;
    view.set_choices({"accuracy", "crash"}, {"cpu", "nnc_jit"}, "cpu");
    view.resize(720, 480);
    view.show();
    for (const char* name : {"Pause", "Accept now", "Cancel", "Save repro…", "Open graph", "Show folder"})
      QVERIFY2(button(view, name)->isHidden(), name);
    view.choose({"crash", "nnc_jit"});
    QSignalSpy run(&view, &MinifyView::run_asked), pause(&view, &MinifyView::pause_asked),
        accept(&view, &MinifyView::accept_asked), cancel(&view, &MinifyView::cancel_asked),
        save(&view, &MinifyView::save_asked), open(&view, &MinifyView::open_asked),
        folder(&view, &MinifyView::folder_asked);
    button(view, "Minify")->click();
    QCOMPARE(run.at(0).at(0).value<MinifyRequest>().check, std::string("crash"));
    QCOMPARE(run.at(0).at(0).value<MinifyRequest>().compiler, std::string("nnc_jit"));
    view.start();
    QVERIFY(!button(view, "Minify")->isEnabled());
    view.add({step(1, 1700, true), step(2, 850, true)});
    QCOMPARE(view.headline(), QString("850 of 1,700 calls"));
    QCOMPARE(view.tried()->model()->rowCount(), 2);
    button(view, "Pause")->click();
    button(view, "Resume")->click();
    QCOMPARE(pause.size(), 2);
    QVERIFY(pause.at(0).at(0).toBool() && !pause.at(1).at(0).toBool());
    button(view, "Accept now")->click();
    button(view, "Cancel")->click();
    QCOMPARE(accept.size(), 1);
    QCOMPARE(cancel.size(), 1);
    auto graph = tests::joint_graph(1);
    auto scene = make_scene(graph, {});
    view.set_graph(scene, std::make_shared<CodeDocument>(QString::fromStdString(print(*graph)), graph.get()));
    view.finish(two_of(1700), {.pass = "none", .kernel = "kernel 0 (tanh)"});
    QVERIFY(view.grab().width() > 0);
    QVERIFY(button(view, "Pause")->isHidden() && button(view, "Minify")->isEnabled());
    Q_EMIT view.graph()->node_chosen("gelu");
    QCOMPARE(view.code()->current_line(), view.code()->document()->line_of("gelu"));
    QVERIFY(button(view, "Show folder")->isHidden());
    button(view, "Save repro…")->click();
    button(view, "Open graph")->click();
    QCOMPARE(save.size(), 1);
    QCOMPARE(open.size(), 1);
    view.set_saved("/tmp/repro");
    QVERIFY(!button(view, "Save repro…")->isEnabled());
    button(view, "Show folder")->click();
    QCOMPARE(folder.at(0).at(0).toString(), QString("/tmp/repro"));
    view.start();
    view.fail("the graph does not fail");
    QVERIFY(!view.running() && !button(view, "Save repro…")->isEnabled());
  }
};

QTEST_MAIN(TestMinify)
#include "test_minify.moc"
