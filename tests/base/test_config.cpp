// The configuration: what its texts are read as, what is refused, and where a change holds.
#include <QtTest>
#include <fstream>
#include <set>
#include <thread>

#include "core/base/config.h"

using namespace partita;

namespace {

/// A text for the row that is not its default's.
std::string another_value(const ConfigRow& row) {
  switch (row.type) {
    case ConfigType::Flag:
      return row.text(Config()) == "true" ? "false" : "true";
    case ConfigType::Integer:
      return "2";
    case ConfigType::Number:
      return "0.75";
    case ConfigType::Size:
      return "3MiB";
    case ConfigType::Count:
      return "7k";
    case ConfigType::Choice: {
      const std::string_view choices = row.allowed.choices;
      const std::string_view first = choices.substr(0, choices.find('|')),
                             last = choices.substr(choices.rfind('|') + 1);
      return std::string(row.text(Config()) == last ? first : last);
    }
    case ConfigType::Names:
      return "a,b";
    case ConfigType::Text:
      return "/somewhere/else";
  }
  return {};
}

}  // namespace

class TestConfig : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void texts_of_values_are_read_back() {
    Config all;
    for (const ConfigRow& row : config_rows()) {
      QVERIFY2(!row.differs(all), row.name.data());
      const auto set = set_value(all, row.name, another_value(row));
      QVERIFY2(set, set ? "" : set.error().message.c_str());
      QVERIFY2(row.differs(all) && row.given(all), row.name.data());
      QCOMPARE(row.text(all), another_value(row));
      QVERIFY(!row.help.empty() && !row.takes().empty());
    }
    Config again;
    const auto read = read_config_text(again, config_text(all, ConfigPart::All), "all");
    QVERIFY2(read, read ? "" : read.error().line().c_str());
    QCOMPARE(config_text(again, ConfigPart::All), config_text(all, ConfigPart::All));
    QCOMPARE(again.given, all.given);
    // What is of this machine is not handed on.
    QVERIFY(config_text(all, ConfigPart::Given).find("/somewhere") != std::string::npos);
    QVERIFY(config_text(all, ConfigPart::Differs).find("/somewhere") == std::string::npos);
  }

  void rows_have_names_of_their_own() {
    std::set<std::string_view> names;
    for (const ConfigRow& row : config_rows()) QVERIFY2(names.insert(row.name).second, row.name.data());
  }

  void reads_values_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("read");
    const auto row = [](const char* name, const char* text, const char* read) {
      QTest::addRow("%s=%s", name, text) << name << text << read;
    };
    row("memory_limit", "64MiB", "64MiB");
    row("memory_limit", "64m", "64MiB");
    row("memory_limit", "2048", "2KiB");
    row("memory_limit", "1025", "1025");
    row("memory_limit", "1 GB", "1GiB");
    row("graph_limit", "2000000", "2m");
    row("graph_limit", "0", "0");
    row("threads", " 4 ", "4");
    row("memory_budget", "0", "0");
    row("verify", "1", "true");
    row("verify", "false", "false");
    row("disable_passes", "a, b", "a,b");
    row("disable_passes", "", "");
    row("store", "/a b/#c", "/a b/#c");
  }
  void reads_values() {
    QFETCH(QString, name);
    QFETCH(QString, text);
    QFETCH(QString, read);
    const auto config = patched_config({{name.toStdString(), text.toStdString()}});
    QVERIFY2(config, config ? "" : config.error().message.c_str());
    QString lower = QString::fromStdString((*find_config_row(name.toStdString()))->text(*config)).toLower();
    QCOMPARE(lower, read.toLower());
  }

  void refuses_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("code");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, const char* text, const char* code, const char* words) {
      QTest::addRow("%s=%s", name, text) << name << text << code << words;
    };
    row("thread", "1", "config.unknown", "the nearest name is threads");
    row("partitoner", "default", "config.unknown", "the nearest name is partitioner");
    row("memory-limit", "1", "config.unknown", "the nearest name is memory_limit");
    row("threads", "many", "config.value", "threads takes a whole number from 1 to 1024, and got 'many'");
    row("threads", "0", "config.value", "a whole number from 1 to 1024");
    row("threads", "1025", "config.value", "a whole number from 1 to 1024");
    row("threads", "1.5", "config.value", "a whole number");
    row("threads", "99999999999", "config.value", "a whole number");
    row("threads", "", "config.value", "a whole number");
    row("memory_budget", "1.01", "config.value",
        "The valid ranges for memory budget are 0 <= m <= 1. The provided value is 1.01");
    row("memory_budget", "nan", "config.value", "The provided value is nan");
    row("partitioner", "max-cut", "config.value", "min-cut, default");
    row("partitioner", "min-cut|default", "config.value", "min-cut, default");
    row("memory_limit", "-1", "config.value", "bytes");
    row("memory_limit", "9999999999999g", "config.value", "bytes");
    row("memory_limit", "1q", "config.value", "bytes");
    row("graph_limit", "1g", "config.value", "a whole number");
    row("verify", "yes", "config.value", "true or false");
    row("step_seconds", "0", "config.value", "a number of at least 0.001");
    row("store", "a\nthreads = 2", "config.value", "text in one line");
  }
  void refuses() {
    QFETCH(QString, name);
    QFETCH(QString, text);
    QFETCH(QString, code);
    QFETCH(QString, words);
    const auto config = patched_config({{name.toStdString(), text.toStdString()}});
    QVERIFY(!config);
    QCOMPARE(config.error().code, code.toStdString());
    QVERIFY2(config.error().message.find(words.toStdString()) != std::string::npos, config.error().message.c_str());
  }

  void patches_replace_some_values_of_a_copy() {
    const std::string before = config_text(config(), ConfigPart::All);
    const auto patched = patched_config({{"threads", "3"}, {"fuse", "false"}});
    QVERIFY(patched);
    QCOMPARE(patched->threads, 3);
    QVERIFY(!patched->fuse);
    QCOMPARE(patched->partitioner, config().partitioner);
    QCOMPARE(config_text(config(), ConfigPart::All), before);
    const auto more = patched_config({{"threads", "4"}}, *patched);
    QVERIFY(more && more->threads == 4 && !more->fuse);
    QVERIFY(!patched_config({{"threads", "4"}, {"fuse", "perhaps"}}));
  }

  void a_scope_holds_for_its_call_and_thread() {
    const int before = config().threads;
    {
      const ConfigScope outer(*patched_config({{"threads", "5"}}));
      QCOMPARE(config().threads, 5);
      {
        const ConfigScope inner(*patched_config({{"fuse", "false"}}));
        QCOMPARE(config().threads, 5);
        QVERIFY(!config().fuse);
      }
      QVERIFY(config().fuse);
      int elsewhere = 0;
      std::thread([&] { elsewhere = config().threads; }).join();
      QCOMPARE(elsewhere, before);
    }
    QCOMPARE(config().threads, before);
  }

  void the_process_has_one() {
    const Config before = config();
    const Config& held = config();
    set_config(*patched_config({{"threads", "7"}}));
    int elsewhere = 0;
    std::thread([&] { elsewhere = config().threads; }).join();
    QCOMPARE(elsewhere, 7);
    QCOMPARE(held.threads, before.threads);  // references stay valid
    set_config(before);
  }

  void a_file_names_its_wrong_line() {
    QTemporaryDir dir;
    const std::string file = dir.filePath("config").toStdString();
    std::ofstream(file) << "# a comment\n\n threads = 2\npartitioner=default\n  # more\nfuse = off\n";
    Config out;
    const auto read = read_config_file(out, file);
    QVERIFY(!read);
    QCOMPARE(read.error().where.line, 6);
    QCOMPARE(read.error().where.file, file);
    QCOMPARE(out.threads, 2);
    QCOMPARE(out.partitioner, std::string("default"));
    QCOMPARE(read_config_text(out, "threads 2", "f").error().code, std::string("config.syntax"));
    QCOMPARE(read_config_file(out, file + "x").error().code, std::string("config.file"));
    QCOMPARE(read_config_file(out, dir.path().toStdString()).error().code, std::string("config.file"));
  }

  void the_key_has_the_rows_that_decide_code() {
    for (const ConfigRow& row : config_rows()) {
      const auto changed = patched_config({{std::string(row.name), another_value(row)}});
      QVERIFY2((code_key(*changed) != code_key(Config())) == (row.use == ConfigUse::Code), row.name.data());
    }
  }

  void words_are_quoted_for_a_shell() {
    const auto config = patched_config({{"store", "/a b"}, {"threads", "2"}});
    QCOMPARE(config_words(*config, ConfigPart::Given), std::string(" --config threads=2 --config 'store=/a b'"));
  }
};

QTEST_GUILESS_MAIN(TestConfig)
#include "test_config.moc"
