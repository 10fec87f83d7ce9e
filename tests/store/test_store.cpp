#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/store/store.h"
#include "tests/support/result.h"

using namespace partita;

namespace {

CacheKey key(const std::string& graph) {
  return {graph, "O3", "avx512f", "0.1"};
}

mode_t mode_of(const std::string& path) {
  struct stat s = {};
  return stat(path.c_str(), &s) == 0 ? s.st_mode & 07777 : 0;
}

}  // namespace

class TestStore : public QObject {
  Q_OBJECT

  QTemporaryDir dir_, config_;
  std::string path(const std::string& name) const { return dir_.path().toStdString() + "/" + name; }

 private Q_SLOTS:
  void initTestCase() {
    qputenv("XDG_CONFIG_HOME", config_.path().toUtf8());
    qunsetenv("PARTITA_STORE");
  }

  void key_parts_do_not_run_together() {
    QVERIFY((CacheKey{"ab", "c", "", ""}.hash() != CacheKey{"a", "bc", "", ""}.hash()));
    QCOMPARE(key("g").hash(), key("g").hash());
    QVERIFY((CacheKey{"g", "O3", "avx2", "0.1"}.hash() != key("g").hash()));
  }

  void finds_what_another_connection_stored() {
    auto a = StoreFile::open(path("two.sqlite")), b = StoreFile::open(path("two.sqlite"));
    QVERIFY_RESULT(a);
    QVERIFY_RESULT(b);
    const std::string bytes("\0\1machine code\0", 15);
    QVERIFY(a->put_compiled(key("g"), {bytes, "forward", "elf"}));
    const auto found = b->find_compiled(key("g"));
    QVERIFY_RESULT(found);
    QVERIFY(found->has_value());
    QVERIFY((*found)->bytes == bytes);
    QCOMPARE((*found)->graph_name, std::string("forward"));
    QVERIFY(!(*b->find_compiled(key("h"))).has_value());
    QCOMPARE((*a->stats()).hits, std::int64_t{1});
  }

  void stored_twice_is_one_row() {
    auto s = StoreFile::open(path("twice.sqlite"));
    QVERIFY(s->put_compiled(key("g"), {"one", "g", "elf"}));
    QVERIFY(s->put_compiled(key("g"), {"two", "g", "elf"}));
    QCOMPARE((*s->stats()).compiled, std::int64_t{1});
    QCOMPARE((*s->find_compiled(key("g")))->bytes, std::string("two"));
  }

  void least_recently_used_goes_first() {
    auto s = StoreFile::open(path("lru.sqlite"));
    s->limit_bytes = 250;
    for (const char* name : {"a", "b", "c"}) QVERIFY(s->put_compiled(key(name), {std::string(100, 'x'), name, "elf"}));
    QVERIFY(!(*s->find_compiled(key("a"))).has_value());
    QVERIFY((*s->find_compiled(key("c"))).has_value());
    QCOMPARE((*s->stats()).compiled, std::int64_t{2});
  }

  void damaged_object_is_seen_and_dropped() {
    const std::string file = path("flip.sqlite");
    {
      auto s = StoreFile::open(file);
      QVERIFY(s->put_compiled(key("g"), {"good bytes", "g", "elf"}));
    }
    {
      sqlite3* raw = nullptr;
      QCOMPARE(sqlite3_open(file.c_str(), &raw), SQLITE_OK);
      Database db(raw);
      QVERIFY(execute(raw, "UPDATE compiled SET object = x'00'"));
    }
    auto s = StoreFile::open(file);
    const auto problems = s->verify();
    QVERIFY_RESULT(problems);
    QCOMPARE(problems->size(), std::size_t{1});
    QCOMPARE((*problems)[0], std::string("compiled/1: the code was not signed by this user"));
    QVERIFY(!(*s->find_compiled(key("g"))).has_value());
    QVERIFY((*s->verify()).empty());
  }

  void what_is_not_as_partita_makes_it_is_told_data() {
    QTest::addColumn<QString>("sql");
    QTest::addColumn<QString>("told");
    QTest::newRow("a table") << "DROP TABLE tries" << "the table tries is missing";
    QTest::newRow("the table of code") << "DROP TABLE compiled" << "the table compiled is missing";
    QTest::newRow("a column") << "ALTER TABLE runs DROP COLUMN outcome"
                              << "the column outcome of the table runs is missing";
    QTest::newRow("a renamed column") << "ALTER TABLE runs RENAME COLUMN outcome TO result"
                                      << "the column result of the table runs is not of partita";
    QTest::newRow("another type")
        << "DROP TABLE notes; CREATE TABLE notes(id INTEGER PRIMARY KEY, at TEXT NOT NULL, path TEXT NOT NULL, graph "
           "TEXT "
           "NOT NULL, node TEXT NOT NULL, text TEXT NOT NULL)"
        << "the column at of the table notes is not as partita makes it: INTEGER, not null expected, TEXT, not null "
           "found";
    QTest::newRow("a view in a table's place")
        << "ALTER TABLE runs RENAME TO other; CREATE VIEW runs AS SELECT * FROM other"
        << "the view runs is not of partita";
    QTest::newRow("a trigger") << "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END"
                               << "the trigger t is not of partita";
    QTest::newRow("an index") << "DROP INDEX compiled_key" << "the index compiled_key is missing";
    QTest::newRow("another index") << "DROP INDEX tries_candidate; CREATE INDEX tries_candidate ON tries(session)"
                                   << "the index tries_candidate is not as partita makes it: tries session,candidate, "
                                      "unique expected, tries session found";
  }
  void what_is_not_as_partita_makes_it_is_told() {
    QFETCH(QString, sql);
    QFETCH(QString, told);
    const std::string file = path((std::string("structure ") + QTest::currentDataTag() + ".sqlite").c_str());
    auto s = StoreFile::open(file);
    QVERIFY(s->put_compiled(key("g"), {"code", "g", "elf"}));
    QVERIFY((*s->verify()).empty());
    sqlite3* raw = nullptr;
    QCOMPARE(sqlite3_open(file.c_str(), &raw), SQLITE_OK);
    const Database db(raw);
    QVERIFY(execute(raw, sql.toStdString()));
    const auto problems = s->verify();
    QVERIFY_RESULT(problems);
    QVERIFY2(std::ranges::find(*problems, told.toStdString()) != problems->end(),
             problems->empty() ? "no problem" : problems->front().c_str());
  }

  void code_that_was_moved_or_signed_by_another_key_is_dropped() {
    const std::string file = path("forged.sqlite");
    auto s = StoreFile::open(file);
    for (const char* name : {"a", "b"}) QVERIFY(s->put_compiled(key(name), {name, "g", "elf"}));
    Database db;
    sqlite3* raw = nullptr;
    QCOMPARE(sqlite3_open(file.c_str(), &raw), SQLITE_OK);
    db.reset(raw);
    // The code of a, signature and all, under the key of b.
    QVERIFY(execute(raw,
                    "UPDATE compiled SET (object, signature) = (SELECT object, signature FROM compiled WHERE id = 1) "
                    "WHERE id = 2"));
    QCOMPARE(s->verify()->size(), std::size_t{1});
    QVERIFY(!(*s->find_compiled(key("b"))).has_value());
    QVERIFY((*s->find_compiled(key("a"))).has_value());
    SigningKey other;
    const std::string forged = sign(other, {key("a").hash(), "elf", "evil"});
    QVERIFY(execute(raw, "UPDATE compiled SET object = 'evil', signature = '" + forged + "' WHERE id = 1"));
    QVERIFY(!(*s->find_compiled(key("a"))).has_value());
  }

  void is_private_whatever_the_umask() {
    const mode_t before = umask(0);
    const std::string file = path("new/folder/private.sqlite");
    auto s = StoreFile::open(file);
    umask(before);
    QVERIFY_RESULT(s);
    QVERIFY(s->put_compiled(key("g"), {"code", "g", "elf"}));
    for (const char* name : {"new", "new/folder"}) QCOMPARE(mode_of(path(name)), mode_t{0700});
    for (const char* suffix : {"", "-wal", "-shm"}) QCOMPARE(mode_of(file + suffix), mode_t{0600});
    QCOMPARE(mode_of(config_.path().toStdString() + "/partita/store.key"), mode_t{0600});
  }

  void code_is_refused_where_others_may_write_data() {
    QTest::addColumn<QString>("how");
    QTest::addColumn<QString>("fault");
    QTest::newRow("folder for all") << "folder" << "other users may write it";
    QTest::newRow("symbolic link") << "link" << "symbolic link";
    QTest::newRow("key for all") << "key" << "can be read by other users";
    QTest::newRow("key cut off") << "short key" << "damaged";
  }
  void code_is_refused_where_others_may_write() {
    QFETCH(QString, how);
    QFETCH(QString, fault);
    const std::string folder = path("shared"), file = folder + "/store.sqlite";
    const std::string key_file = config_.path().toStdString() + "/partita/store.key";
    {
      auto s = StoreFile::open(file);
      QVERIFY_RESULT(s);
      QVERIFY(!s->code_refused());
      QVERIFY(s->put_compiled(key("g"), {"code", "g", "elf"}));
    }
    std::string opened = file;
    if (how == "folder") QCOMPARE(chmod(folder.c_str(), 0777), 0);
    if (how == "link") {
      opened = path("link.sqlite");
      QCOMPARE(symlink(file.c_str(), opened.c_str()), 0);
    }
    if (how == "key") QCOMPARE(chmod(key_file.c_str(), 0644), 0);
    if (how == "short key") QCOMPARE(truncate(key_file.c_str(), 7), 0);
    {
      auto s = StoreFile::open(opened);
      QVERIFY_RESULT(s);
      QVERIFY(s->code_refused());
      QVERIFY2(QString::fromStdString(s->code_refused()->message).contains(fault), s->code_refused()->message.c_str());
      QVERIFY(!(*s->find_compiled(key("g"))).has_value());
      QVERIFY(s->put_compiled(key("h"), {"code", "h", "elf"}));
      QVERIFY(!(*s->find_compiled(key("h"))).has_value());
      QVERIFY(!s->verify()->empty());
      QVERIFY(s->add_run({"x", "g", "cpu", "", 1.5, "ok"}));
    }
    chmod(folder.c_str(), 0700);
    unlink(key_file.c_str());
    unlink(path("link.sqlite").c_str());
  }

  void paths_that_are_not_absolute_are_refused() {
    auto s = StoreFile::open("store.sqlite");
    QVERIFY(!s);
    QCOMPARE(s.error().code, std::string("store.path"));
    qputenv("XDG_CACHE_HOME", "relative");
    const QByteArray home = qgetenv("HOME");
    qputenv("HOME", "");
    QCOMPARE(StoreFile::default_file(), std::string());
    qputenv("HOME", "/home/x");
    QCOMPARE(StoreFile::default_file(), std::string("/home/x/.cache/partita/store.sqlite"));
    qputenv("HOME", home);
    qunsetenv("XDG_CACHE_HOME");
  }

  void bad_files_are_refused_data() {
    QTest::addColumn<QString>("content");
    QTest::addColumn<QString>("code");
    QTest::newRow("text")
        << QString("not a database at all, but long enough to have a header of its own, and then some more text")
        << "store.corrupt";
    QTest::newRow("damaged header")
        << QString("SQLite format 3 with a damaged header........................................................")
        << "store.corrupt";
  }
  void bad_files_are_refused() {
    QFETCH(QString, content);
    QFETCH(QString, code);
    const std::string file = path("bad.sqlite");
    std::ofstream(file) << content.toStdString();
    auto s = StoreFile::open(file);
    QVERIFY(!s);
    QCOMPARE(QString::fromStdString(s.error().code), code);
    QCOMPARE(s.error().exit_code(), 2);
    QVERIFY(!s.error().line().empty() && s.error().line().find('\n') == std::string::npos);
  }

  void folder_that_cannot_be_made_is_refused() {
    auto s = StoreFile::open("/proc/partita/store.sqlite");
    QVERIFY(!s);
    QCOMPARE(s.error().code, std::string("store.read_only"));
  }

  void newer_version_is_refused_data() {
    QTest::addColumn<int>("version");
    QTest::newRow("newer") << 1000;
    QTest::newRow("negative") << -1;
  }
  void newer_version_is_refused() {
    QFETCH(int, version);
    const std::string file = path("newer.sqlite");
    {
      sqlite3* raw = nullptr;
      sqlite3_open(file.c_str(), &raw);
      Database db(raw);
      QVERIFY(execute(raw, "PRAGMA user_version=" + std::to_string(version)));
    }
    auto s = StoreFile::open(file);
    QVERIFY(!s);
    QCOMPARE(s.error().code, std::string("store.version"));
  }

  void processes_share_it() {
    const std::string file = path("many.sqlite");
    constexpr int processes = 4, rows = 40;
    std::vector<pid_t> children;
    for (int p = 0; p < processes; ++p) {
      const pid_t child = fork();
      if (child == 0) {
        auto s = StoreFile::open(file);
        bool ok = static_cast<bool>(s);
        for (int i = 0; ok && i < rows; ++i) {
          const std::string name = std::to_string(p) + "/" + std::to_string(i);
          ok = s->put_compiled(key(name), {name, name, "elf"}) && s->add_run({"x", name, "cpu", "", 1.5, "ok"});
          const auto back = ok ? s->find_compiled(key(name)) : Result<std::optional<CompiledObject>>(std::nullopt);
          ok = ok && back && back->has_value() && (*back)->bytes == name;
        }
        _exit(ok ? 0 : 1);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      waitpid(child, &status, 0);
      QCOMPARE(status, 0);
    }
    auto s = StoreFile::open(file);
    QCOMPARE((*s->stats()).compiled, std::int64_t{processes * rows});
    QCOMPARE((*s->stats()).runs, std::int64_t{processes * rows});
    QVERIFY((*s->verify()).empty());
  }

  void notes_stay_with_the_graph_of_a_file() {
    const std::string file = path("notes.sqlite");
    {
      auto s = StoreFile::open(file);
      QVERIFY(s->put_note("/a.py", "joint", {"mm", ""}));
      QVERIFY(s->put_note("/a.py", "joint", {"gelu", "why is it saved?"}));
      QVERIFY(s->put_note("/a.py", "forward", {"mm", "other graph"}));
      QVERIFY(s->put_note("/a.py", "joint", {"mm", "slow"}));  // in place of the bookmark
    }
    auto s = StoreFile::open(file);
    QCOMPARE(*s->notes("/a.py", "joint"), (std::vector<NodeNote>{{"mm", "slow"}, {"gelu", "why is it saved?"}}));
    QVERIFY(s->drop_note("/a.py", "joint", "mm"));
    QCOMPARE(*s->notes("/a.py", "joint"), (std::vector<NodeNote>{{"gelu", "why is it saved?"}}));
    QVERIFY(s->notes("/b.py", "joint")->empty());
    QVERIFY(s->show("notes/2")->ends_with("why is it saved?\n"));
  }

  void rows_are_listed_shown_cleared_and_exported() {
    auto s = StoreFile::open(path("browse.sqlite"));
    QVERIFY(s->add_check({"m.pt2", "forward", "compare", false, "{\"ok\": false}"}));
    QVERIFY(s->add_snapshot({"forward", "remove_noops", "class GraphModule"}));
    QVERIFY(s->add_snapshot({"forward", "remove_noops", "class GraphModule"}));
    const auto rows = s->list();
    QVERIFY_RESULT(rows);
    QCOMPARE(rows->size(), std::size_t{2});
    QCOMPARE((*rows)[0].title, std::string("m.pt2 forward compare FAILED"));
    const auto shown = s->show("snapshots/1");
    QVERIFY_RESULT(shown);
    QVERIFY(QString::fromStdString(*shown).contains("graph: forward\npass: remove_noops\n"));
    QVERIFY(QString::fromStdString(*shown).endsWith("class GraphModule\n"));
    QVERIFY(s->add_run({"m.pt2", "forward", "cpu", "threads 2", 1.5, "ok"}));
    const auto checks = s->checks(10);
    QVERIFY_RESULT(checks);
    QCOMPARE(checks->size(), std::size_t{1});
    QCOMPARE((*checks)[0].row.kind, std::string("compare"));
    QVERIFY(!(*checks)[0].row.ok && (*checks)[0].at > 0);
    QCOMPARE(*s->check_report((*checks)[0].id), std::string("{\"ok\": false}"));
    QCOMPARE(s->check_report(99).error().code, std::string("store.id"));
    QCOMPARE((*s->runs(10))[0].row.milliseconds, 1.5);
    QVERIFY(s->runs(0)->empty());
    QCOMPARE(s->show("checks/9").error().code, std::string("store.id"));
    QCOMPARE(s->show("checks; DROP").error().code, std::string("store.id"));
    QVERIFY(s->export_to(path("copy.sqlite")));
    QCOMPARE((*StoreFile::open(path("copy.sqlite"))->list()).size(), std::size_t{3});
    QVERIFY(!s->export_to(path("copy.sqlite")));
    QVERIFY(s->put_compiled({"limit", "", "", ""}, {"1e10 1e11", "machine limit", "limit"}));
    QCOMPARE((*s->list()).front().table + " " + (*s->list()).front().title, std::string("measured machine limit"));
    QVERIFY(QString::fromStdString(*s->show("measured/1")).endsWith("graph: machine limit\n1e10 1e11\n"));
    QCOMPARE(s->stats()->compiled, 0);
    QVERIFY(s->clear());
    QVERIFY((*s->list()).empty());
  }
};

QTEST_GUILESS_MAIN(TestStore)
#include "test_store.moc"
