// A broken invariant ends the process, so a child process breaks it and the test watches.
#include <QtTest>
#include <functional>
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

  void a_held_invariant_is_silent() {
    const End end = in_child([] { CHECK(true, "never read"); });
    QCOMPARE(end.exit_code, 0);
    QCOMPARE(end.error, std::string());
  }
};

QTEST_GUILESS_MAIN(TestCheck)
#include "test_check.moc"
