// Work in child processes: results arrive, and a crash or a loop costs only its own step.
#include <QtTest>
#include <csignal>
#include <set>
#include <stdexcept>

#include <unistd.h>

#include "core/base/check.h"
#include "core/process/workers.h"

using namespace partita;

namespace {

/// The outcome of `items` items of three steps each; `fail` may end the process of a step.
struct Outcome {
  std::set<std::string> sent;
  std::vector<std::string> deaths;
};

Outcome run(std::size_t items, const std::function<void(std::size_t item, std::size_t step)>& fail) {
  Outcome out;
  std::vector<std::size_t> begun(items, 0);
  Workers w;
  w.items = items;
  w.jobs = 2;
  w.step_seconds = 1;
  w.work = [&](std::size_t item, std::size_t from, const Workers::Send& send) {
    for (std::size_t step = from; step < 3; ++step) {
      send("begin");
      fail(item, step);
      send(std::to_string(item) + "." + std::to_string(step));
    }
  };
  w.receive = [&](std::size_t item, std::string_view message) {
    if (message == "begin")
      ++begun[item];
    else
      out.sent.insert(std::string(message));
  };
  w.died = [&](std::size_t item, const std::string& how) -> std::optional<std::size_t> {
    out.deaths.push_back(how);
    return begun[item];
  };
  const Status done = run_workers(w);
  if (!done) qFatal("%s", done.error().line().c_str());
  return out;
}

}  // namespace

class TestWorkers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_item_is_done() {
    const Outcome out = run(20, [](auto, auto) {});
    QCOMPARE(out.sent.size(), std::size_t{60});
    QVERIFY(out.deaths.empty());
    QVERIFY(run(0, [](auto, auto) {}).sent.empty());
  }

  void a_crash_costs_one_step() {
    const Outcome out = run(4, [](std::size_t item, std::size_t step) {
      if (item == 2 && step == 1) std::raise(SIGKILL);  // the sanitizers handle SIGSEGV themselves
    });
    QCOMPARE(out.sent.size(), std::size_t{11});
    QVERIFY(!out.sent.contains("2.1") && out.sent.contains("2.2"));
    QCOMPARE(out.deaths.size(), std::size_t{1});
    QVERIFY2(out.deaths[0].starts_with("signal 9 (Killed)"), out.deaths[0].c_str());
  }

  void a_broken_invariant_is_quoted() {
    const Outcome out = run(1, [](auto, std::size_t step) { CHECK(step != 0, "of the test"); });
    QCOMPARE(out.sent, (std::set<std::string>{"0.1", "0.2"}));
    QCOMPARE(out.deaths.size(), std::size_t{1});
    QVERIFY2(out.deaths[0].starts_with("exit code 4: partita: internal error"), out.deaths[0].c_str());
    QVERIFY2(out.deaths[0].ends_with("of the test"), out.deaths[0].c_str());
  }

  void endless_steps_are_killed() {
    const Outcome out = run(2, [](std::size_t item, std::size_t step) {
      if (item == 0 && step == 0)
        while (true) pause();
    });
    QCOMPARE(out.sent.size(), std::size_t{5});
    QCOMPARE(out.deaths, std::vector<std::string>{"still running after 1 s"});
  }
  void a_step_that_ends_every_child_is_not_tried_for_ever() {
    const CheckHandler before = set_check_handler([](const std::string& line) { throw std::runtime_error(line); });
    const auto restore = qScopeGuard([&] { set_check_handler(before); });
    Workers w;
    w.items = 1;
    w.work = [](std::size_t, std::size_t, const Workers::Send&) { std::raise(SIGKILL); };
    w.died = [](std::size_t, const std::string&) { return std::optional<std::size_t>(0); };
    QVERIFY_EXCEPTION_THROWN((void)run_workers(w), std::runtime_error);
  }

  void a_sanitizers_summary_is_told() {
    const Outcome out = run(1, [](auto, std::size_t step) {
      if (step != 1) return;
      std::fprintf(stderr,
                   "frames\nSUMMARY: AddressSanitizer: heap-buffer-overflow in f\nshadow bytes\n==1==ABORTING\n");
      _exit(1);
    });
    QCOMPARE(out.deaths.size(), std::size_t{1});
    QCOMPARE(out.deaths[0], std::string("exit code 1: SUMMARY: AddressSanitizer: heap-buffer-overflow in f"));
  }
};

QTEST_GUILESS_MAIN(TestWorkers)
#include "test_workers.moc"
