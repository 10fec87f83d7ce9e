// Child processes: how they end is told apart, and nothing that they started is left.
#include <QtTest>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/scratch.h"
#include "core/process/run.h"
#include "tests/support/result.h"

using namespace partita;

namespace {

ProcessWork shell(const std::string& command) {
  return {.words = {"/bin/sh", "-c", command}, .body = {}};
}

ProcessWork body(std::function<void(int)> run) {
  return {.words = {}, .body = std::move(run)};
}

/// Does the process whose number is in the file still run?
bool runs(const std::string& file) {
  pid_t pid = 0;
  std::ifstream(file) >> pid;
  return pid > 0 && ::kill(pid, 0) == 0;
}

}  // namespace

class TestProcess : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void ends_of_functions_are_distinguished() {
    const std::vector<ProcessWork> works = {
        body([](int out) { write_all(out, "fine", 4); }),
        body([](int) { std::raise(SIGABRT); }),
        body([](int) { ::_exit(7); }),
        body([](int) {
          for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
        }),
        body([](int) { throw std::bad_alloc(); }),
        body([](int) { std::raise(SIGKILL); }),
    };
    const auto ends = run_processes(works, 2, {.seconds = 1});
    QVERIFY_RESULT(ends);
    QVERIFY((*ends)[0].succeeded());
    QCOMPARE((*ends)[0].output, std::string("fine"));
    QCOMPARE((*ends)[1].how, ProcessEnd::Signalled);
    QCOMPARE((*ends)[1].code, SIGABRT);
    QCOMPARE((*ends)[2].text(), std::string("exit code 7"));
    QCOMPARE((*ends)[3].how, ProcessEnd::TimedOut);
    QCOMPARE((*ends)[4].text(), std::string("out of memory"));
    QCOMPARE((*ends)[5].how, ProcessEnd::OutOfMemory);
    QCOMPARE((*ends)[5].text(), std::string("signal 9 (Killed), as when memory is short"));
  }

  void ends_of_programs_are_distinguished() {
    const std::vector<ProcessWork> works = {
        shell("echo out; echo first >&2; echo last >&2"),
        shell("echo why >&2; exit 3"),
        shell("kill -SEGV $$"),
        shell("sleep 60"),
        {.words = {"/no/such/program"}, .body = {}},
    };
    const auto ends = run_processes(works, 5, {.seconds = 1});
    QVERIFY_RESULT(ends);
    QCOMPARE((*ends)[0].output, std::string("out\n"));
    QCOMPARE((*ends)[0].errors, std::string("first\nlast\n"));
    QCOMPARE((*ends)[1].text(), std::string("exit code 3: why"));
    QCOMPARE((*ends)[2].text(), std::string("signal 11 (Segmentation fault)"));
    QCOMPARE((*ends)[3].how, ProcessEnd::TimedOut);
    QCOMPARE((*ends)[4].how, ProcessEnd::NotFound);
  }

  void what_a_program_started_ends_with_it() {
    const auto folder = ScratchFolder::make("test");
    QVERIFY_RESULT(folder);
    const std::string file = folder->path() + "/pid";
    const auto ends =
        run_processes(std::vector{shell("setsid sleep 60 & echo $! > " + file + "; wait")}, 1, {.seconds = 0.5});
    QVERIFY_RESULT(ends);
    QVERIFY(std::filesystem::exists(file));
    QTRY_VERIFY(!runs(file));
  }

  void a_program_ends_with_its_owner() {
    const auto folder = ScratchFolder::make("test");
    QVERIFY_RESULT(folder);
    const std::string file = folder->path() + "/pid";
    {
      ProcessStart start;
      start.words = {"/bin/sh", "-c", "echo $$ > " + file + "; exec sleep 60"};
      const auto process = Process::start(start);
      QVERIFY_RESULT(process);
      QTRY_VERIFY(runs(file));
    }
    QVERIFY(!runs(file));
  }

  void memory_is_limited() {
    const auto ends = run_processes(std::vector{body([](int) { std::vector<char> much(std::size_t{1} << 31, 1); })}, 1,
                                    {.memory_bytes = 64 << 20});
    QVERIFY_RESULT(ends);
#ifndef PARTITA_SANITIZED  // a sanitizer ends the process itself
    QCOMPARE((*ends)[0].how, ProcessEnd::OutOfMemory);
#endif
    QVERIFY(!(*ends)[0].succeeded());
  }

  void work_is_stopped_on_request() {
    Progress progress;
    progress.stop = true;
    const auto ends = run_processes(std::vector{shell("sleep 60")}, 1, {}, &progress);
    QVERIFY_RESULT(ends);
    QCOMPARE((*ends)[0].how, ProcessEnd::Cancelled);
    const auto asked = ask_program({"sleep", "60"}, {}, &progress);
    QVERIFY(!asked);
    QCOMPARE(asked.error().fault, Fault::Cancelled);
  }

  void endless_output_takes_no_more_memory_than_its_limit() {
    const auto ends = run_processes(std::vector{shell("yes >&2")}, 1, {.seconds = 20});
    QVERIFY_RESULT(ends);
    QVERIFY2((*ends)[0].how == ProcessEnd::Exited, (*ends)[0].text().c_str());
  }

  void a_program_is_asked() {
    const auto answer = ask_program({"printf", "%s %s", "a b", "$HOME"});
    QVERIFY_RESULT(answer);
    QCOMPARE(*answer, std::string("a b $HOME"));
    const auto failed = ask_program({"/bin/sh", "-c", "echo no >&2; exit 2"});
    QVERIFY(!failed);
    QCOMPARE(failed.error().message, std::string("/bin/sh: exit code 2: no"));
  }
};

QTEST_GUILESS_MAIN(TestProcess)
#include "test_process.moc"
