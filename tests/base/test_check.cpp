// A broken invariant ends the process, so a child process breaks it and the test watches.
#include <QtTest>
#include <functional>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "core/base/check.h"

using namespace partita;

namespace {

struct End {
  int exit_code = -1;  ///< -1: it did not exit by itself
  std::string error;   ///< what it wrote to stderr
};

End in_child(const std::function<void()>& work) {
  int ends[2];
  if (pipe(ends) != 0) qFatal("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    work();
    _exit(0);
  }
  close(ends[1]);
  End end;
  char text[256];
  for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;) end.error.append(text, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return end;
}

}  // namespace

class TestCheck : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_broken_invariant_is_exit_code_4() {
    const End end = in_child([] {
      WorkingOn graph("graph joint");
      {
        WorkingOn done("pass that is done");
      }
      WorkingOn pass("pass fold_constants");
      const int uses = 2;
      CHECK(uses == 3, "of node mul_7");
    });
    QCOMPARE(end.exit_code, 4);
    const QString error = QString::fromStdString(end.error);
    QVERIFY2(error.startsWith("partita: internal error at "), qPrintable(error));
    QVERIFY2(error.endsWith("uses == 3: of node mul_7; graph joint; pass fold_constants\n"), qPrintable(error));
    QCOMPARE(error.count('\n'), 1);
  }

  void an_embedding_program_takes_over() {
    const CheckHandler before = set_check_handler([](const std::string& line) { throw std::runtime_error(line); });
    const auto restore = qScopeGuard([&] { set_check_handler(before); });
    QVERIFY(!before);
    for (const char* graph : {"graph a", "graph b"}) {
      try {
        WorkingOn work(graph);
        CHECK(graph == nullptr, "of node mul_7");
        QFAIL("a broken invariant was passed");
      } catch (const std::runtime_error& error) {
        const QString line = error.what();
        QVERIFY2(line.startsWith("internal error at "), qPrintable(line));
        QVERIFY2(line.endsWith(QString("graph == nullptr: of node mul_7; ") + graph), qPrintable(line));
      }
    }
  }

  void a_handler_that_returns_ends_the_process() {
    const End end = in_child([] {
      set_check_handler([](const std::string& line) { std::fprintf(stderr, "seen: %s", line.c_str()); });
      CHECK(false, "of node mul_7");
    });
    QCOMPARE(end.exit_code, 4);
    QVERIFY2(end.error.starts_with("seen: internal error at "), end.error.c_str());
    QVERIFY2(end.error.ends_with("of node mul_7"), end.error.c_str());
  }

  void a_held_invariant_is_silent() {
    const End end = in_child([] { CHECK(true, "never read"); });
    QCOMPARE(end.exit_code, 0);
    QCOMPARE(end.error, std::string());
  }
};

QTEST_GUILESS_MAIN(TestCheck)
#include "test_check.moc"
