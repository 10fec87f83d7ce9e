// The team's cache against a real Redis server, which the tests start and kill.
#include <QElapsedTimer>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>
#include <memory>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/store/code_store.h"
#include "core/store/redis.h"

using namespace partita;

namespace {

/// What is written to stderr while it lives.
class Stderr {
 public:
  Stderr() : kept_(::dup(STDERR_FILENO)), file_(std::tmpfile()) { ::dup2(::fileno(file_), STDERR_FILENO); }
  ~Stderr() {
    restore();
    std::fclose(file_);
  }
  QString text() {
    restore();
    std::string all(65536, '\0');
    const ssize_t n = ::pread(::fileno(file_), all.data(), all.size(), 0);
    return QString::fromStdString(all.substr(0, static_cast<std::size_t>(std::max<ssize_t>(n, 0))));
  }

 private:
  void restore() {
    if (kept_ < 0) return;
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
    kept_ = -1;
  }
  int kept_;
  std::FILE* file_;
};

}  // namespace

class TestTeamCache : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> dir_;
  QProcess server_;

  std::string path(const std::string& name) const { return dir_->path().toStdString() + "/" + name; }

  void write_key(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path(name)) << text;
    ::chmod(path(name).c_str(), mode);
  }

  bool start_server() {
    // Debian's redis-tools has the server's program under another name; it goes by the name that it is called by.
    QString program = QStandardPaths::findExecutable("redis-server");
    if (program.isEmpty()) {
      const QString tool = QStandardPaths::findExecutable("redis-check-rdb");
      if (tool.isEmpty()) return false;
      program = dir_->filePath("redis-server");
      QFile::link(tool, program);
    }
    server_.start(program, {"--port", "0", "--unixsocket", QString::fromStdString(path("socket")), "--save", "",
                            "--appendonly", "no", "--daemonize", "no"});
    return server_.waitForStarted() && QTest::qWaitFor([this] { return bool(redis({"PING"})); }, 10000);
  }

  /// A machine of the team: its own store, the common server.
  std::unique_ptr<CodeStore> machine(const std::string& name, ConfigPatches more = {}) const {
    ConfigPatches patches = {{"store", path(name + ".sqlite")},
                             {"team_cache", path("socket")},
                             {"team_key", path("key")},
                             {"team_seconds", "0.5"}};
    std::ranges::move(more, std::back_inserter(patches));
    auto config = patched_config(patches);
    if (!config) qFatal("%s", config.error().line().c_str());
    const ConfigScope scope(*config);
    return std::make_unique<CodeStore>();
  }

  Result<std::optional<std::string>> redis(const std::vector<std::string_view>& command) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    TRY(const auto connection, RedisConnection::open(path("socket"), deadline));
    return connection->ask(command, deadline);
  }

 private Q_SLOTS:
  void init() {
    dir_ = std::make_unique<QTemporaryDir>();
    qputenv("XDG_CONFIG_HOME", dir_->path().toUtf8());
    qunsetenv("PARTITA_STORE");
    write_key("key", "0123456789abcdef0123456789abcdef\n");
    if (!start_server()) QSKIP("no redis-server (Debian: redis-tools)");
  }
  void cleanup() {
    if (server_.state() == QProcess::NotRunning) return;
    ::kill(static_cast<pid_t>(server_.processId()), SIGCONT);
    server_.kill();
    server_.waitForFinished();
  }

  void what_one_machine_stored_another_finds() {
    const std::string code("\0\1machine code\r\n\0", 17), large(std::size_t{5} << 20, 'x');
    const auto a = machine("a"), b = machine("b");
    a->put("graph", code, "forward");
    a->put("large", large, "backward");
    QVERIFY(b->find("graph") == code);
    QVERIFY(b->find("large") == large);
    QVERIFY(!b->find("other"));
    // From here on b has it itself.
    cleanup();
    QVERIFY(machine("b")->find("graph") == code);
    const Stderr said;
    QVERIFY(!machine("c")->find("graph"));
  }

  void a_forged_entry_is_refused_by_name() {
    const auto a = machine("a");
    a->put("graph", "code", "forward");
    a->put("other", "other code", "forward");
    const auto names = redis({"RANDOMKEY"});
    QVERIFY(names && *names);
    const std::string one = **names, code = **redis({"GET", one});
    // The entry of another key, changed bytes, no entry at all, and an entry of somebody with another key.
    std::vector<std::string> forged = {"", "code", std::string(1000, '\xff'), code};
    forged.back().back() ^= 1;
    int tried = 0;
    for (const std::string& entry : forged) {
      QVERIFY(redis({"SET", one, entry}));
      Stderr said;
      const auto b = machine("b" + std::to_string(tried++));
      const bool found[] = {b->find("graph").has_value(), b->find("other").has_value()};
      QCOMPARE(found[0] + found[1], 1);
      QVERIFY2(said.text().contains(QString::fromStdString(one) + " is not signed"), qPrintable(said.text()));
    }
    QVERIFY(redis({"FLUSHALL"}));
    a->put("graph", "code", "forward");
    const std::string first = **redis({"RANDOMKEY"}), entry = **redis({"GET", first});
    QVERIFY(redis({"FLUSHALL"}));
    a->put("other", "other code", "forward");
    QVERIFY(redis({"SET", **redis({"RANDOMKEY"}), entry}));
    Stderr swapped;
    QVERIFY(!machine("c")->find("other"));
    QVERIFY(swapped.text().contains("is not signed with the team's key"));

    write_key("stranger", "fedcba9876543210fedcba9876543210");
    machine("stranger", {{"team_key", path("stranger")}})->put("graph", "evil code", "forward");
    Stderr said;
    QVERIFY(!machine("d")->find("graph"));
    QVERIFY(said.text().contains("is not signed with the team's key"));
  }

  void keys_that_others_know_are_refused() {
    write_key("open", "0123456789abcdef0123456789abcdef", 0644);
    write_key("short", "0123456789");
    for (const auto& [file, why] : {std::pair("open", "can be read by other users"),
                                    {"short", "shorter than 32 bytes"},
                                    {"missing", "cannot be read"}}) {
      Stderr said;
      const auto store = machine("a", {{"team_key", path(file)}});
      store->put("graph", "code", "forward");
      const QString text = said.text();
      QVERIFY2(text.contains(why), qPrintable(text));
      QVERIFY2(text.count('\n') == 1, qPrintable(text));
    }
    QVERIFY(!*redis({"RANDOMKEY"}));
  }

  void a_server_that_dies_or_hangs_is_told_once() {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      const std::string number = std::to_string(signal);
      const auto a = machine("a" + number), b = machine("b" + number);
      a->put("before", "code", "forward");
      QVERIFY(b->find("before"));
      ::kill(static_cast<pid_t>(server_.processId()), signal);
      if (signal == SIGKILL) server_.waitForFinished();
      Stderr said;
      QElapsedTimer time;
      time.start();
      for (int i = 0; i < 20; ++i) {
        a->put("after" + std::to_string(i), "code", "forward");
        QVERIFY(a->find("after" + std::to_string(i)));
        QVERIFY(!b->find("after" + std::to_string(i)));
      }
      const qint64 waited = time.elapsed();
      const QString text = said.text();
      QCOMPARE(text.count("the team's server fails"), 2);  // one line of each machine
      QVERIFY2(waited < 5000, qPrintable(QString::number(waited)));
      cleanup();
      QFile::remove(QString::fromStdString(path("socket")));
      QVERIFY(start_server());
    }
  }

  void an_absent_or_silent_server_costs_one_time_out() {
    const int silent = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string listening = path("silent");
    listening.copy(address.sun_path, sizeof address.sun_path - 1);
    QVERIFY(::bind(silent, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
            ::listen(silent, 8) == 0);
    int number = 0;
    for (const std::string& server : {listening, path("nobody"), std::string("127.0.0.1:1"), std::string("nonsense")}) {
      Stderr said;
      QElapsedTimer time;
      time.start();
      const auto store = machine("a" + std::to_string(number++), {{"team_cache", server}});
      for (int i = 0; i < 20; ++i) {
        store->put("key" + std::to_string(i), "code", "forward");
        QVERIFY(store->find("key" + std::to_string(i)));
        QVERIFY(!store->find("no key"));
      }
      const qint64 waited = time.elapsed();
      QVERIFY2(waited < 3000, qPrintable(QString::fromStdString(server) + QString::number(waited)));
      if (server == listening) QVERIFY2(waited >= 450, qPrintable(QString::number(waited)));
      QCOMPARE(said.text().count("going on without the team's cache"), 1);
    }
    ::close(silent);
  }

  void errors_of_the_server_are_told() {
    QVERIFY(redis({"CONFIG", "SET", "maxmemory", "1"}));
    Stderr said;
    const auto a = machine("a");
    a->put("graph", "code", "forward");
    QVERIFY(a->find("graph"));
    QVERIFY2(said.text().contains("OOM"), qPrintable(said.text()));
    // Lists are no answers to what is asked.
    QVERIFY(!redis({"KEYS", "*"}));
  }
};

QTEST_GUILESS_MAIN(TestTeamCache)
#include "test_team_cache.moc"
