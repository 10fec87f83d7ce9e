// Logs and folders that grow while they are looked at.
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>
#include <fstream>

#include "core/base/file_watch.h"
#include "core/base/md5.h"
#include "core/load/follow.h"
#include "tests/load/paths.h"

using namespace partita;

namespace {

std::string md5_of(const std::string& text) {
  Md5 sum;
  sum.update(text);
  return sum.hex();
}

std::string tabbed(const std::string& text) {
  std::string out = "\t";
  for (char c : text) out += c == '\n' ? "\n\t" : std::string(1, c);
  return out + "\n";
}

/// A record as torch._logging.trace_structured writes it.
std::string record(const std::string& entry, const std::string& payload = {}, int compile = 0) {
  std::string line = "V1129 10:00:00.000000 1 torch/x.py:1] {" + entry +
                     ", \"frame_id\": 0, \"frame_compile_id\": " + std::to_string(compile) + ", \"attempt\": 0";
  if (!payload.empty()) line += ", \"has_payload\": \"" + md5_of(payload) + "\"";
  return line + "}\n" + (payload.empty() ? "" : tabbed(payload));
}

std::string graph_of(const std::string& op) {
  return "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[4]\"):\n        y = torch.ops.aten." +
         op + ".default(x)\n        return (y,)\n";
}

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

std::vector<std::string> ids(const std::vector<Artefact>& artefacts) {
  std::vector<std::string> out;
  for (const Artefact& a : artefacts) out.push_back(a.id);
  return out;
}

using Ids = std::vector<std::string>;

}  // namespace

class TestFollow : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  std::string path(const char* name) const { return folder_.filePath(name).toStdString(); }

 private Q_SLOTS:
  void a_record_is_read_when_it_is_whole() {
    const std::string log = path("grows.log"), joint = record("\"aot_joint_graph\": {}", graph_of("sin"));
    append(log, record("\"dynamo_start\": {}") + record("\"dynamo_output_graph\": {}", graph_of("cos")));
    Followed followed(log);
    const auto first = followed.begin(nullptr);
    QVERIFY(bool(first));
    QCOMPARE(ids(first->artefacts), (Ids{"0_0.dynamo_output_graph", "0_0.dynamo_start"}));
    QVERIFY(followed.next(nullptr)->empty());
    for (std::size_t cut : {joint.size() / 4, joint.size() / 2, joint.size() - 9}) {
      append(log, joint.substr(0, cut));
      QVERIFY(followed.next(nullptr)->empty());
      std::filesystem::resize_file(log, std::filesystem::file_size(log) - cut);
    }
    append(log, joint);
    const auto news = followed.next(nullptr);
    QVERIFY(bool(news));
    QCOMPARE(ids(news->artefacts), Ids{"0_0.aot_joint_graph"});
    const auto graph = news->artefacts[0].graph();
    QVERIFY(bool(graph) && (*graph)->find("y"));
    // What was read in parts is what is read at once.
    const auto whole = load(log);
    QVERIFY(bool(whole));
    QCOMPARE(*whole->find("0_0.aot_joint_graph")->text(), *news->artefacts[0].text());
    QCOMPARE(whole->find("0_0.aot_joint_graph")->where.line, news->artefacts[0].where.line);
  }

  void texts_that_are_gathered_grow() {
    const std::string log = path("events.log");
    append(log, record("\"chromium_event\": {}", "{\"a\": 1}"));
    Followed followed(log);
    QVERIFY(bool(followed.begin(nullptr)));
    append(log, record("\"chromium_event\": {}", "{\"b\": 2}"));
    const auto news = followed.next(nullptr);
    QCOMPARE(ids(news->artefacts), Ids{"0_0.chromium_event"});
    QCOMPARE(*news->artefacts[0].text(), std::string("{\"a\": 1}\n{\"b\": 2}\n"));
    Loaded all = *load(log);
    add_news(all, *news);
    QCOMPARE(ids(all.artefacts), Ids{"0_0.chromium_event"});
    QCOMPARE(*all.artefacts[0].text(), *news->artefacts[0].text());
    // Several that have grown, under ids too long to lie within a string.
    Loaded several{log, {}, {}};
    LoadNews grown;
    for (int i = 0; i < 20; ++i) {
      Artefact before = Artefact::of_string("before"), after = Artefact::of_string("after");
      before.id = after.id = "a folder with a long name/the artefact of number " + std::to_string(i);
      several.artefacts.push_back(before);
      grown.artefacts.push_back(after);
    }
    add_news(several, grown);
    QCOMPARE(several.artefacts.size(), 20u);
    for (const Artefact& a : several.artefacts) QCOMPARE(*a.text(), std::string("after"));
  }

  void symbols_that_come_later_do_not_change_graphs_of_before() {
    const std::string log = path("symbols.log");
    const auto symbol = [](const std::string& name, int value) {
      return record("\"create_symbol\": {\"symbol\": \"" + name + "\", \"val\": \"" + std::to_string(value) +
                    "\", \"vr\": \"[2, int_oo]\"}");
    };
    append(log, symbol("s0", 8) + record("\"dynamo_output_graph\": {}", graph_of("cos")));
    Followed followed(log);
    const auto first = followed.begin(nullptr);
    const auto before = first->find("0_0.dynamo_output_graph")->symbols;
    append(log, symbol("s1", 9) + record("\"aot_joint_graph\": {}", graph_of("sin")));
    const auto news = followed.next(nullptr);
    QCOMPARE(before->size(), 1u);
    QCOMPARE(news->artefacts[0].symbols->size(), 2u);
    QCOMPARE(news->artefacts[0].symbols->at("s1").hint, 9);
  }

  void an_incomplete_end_is_said() {
    const std::string log = path("cut.log");
    append(log, record("\"dynamo_start\": {}") + record("\"aot_joint_graph\": {}", graph_of("sin")).substr(0, 150));
    Followed followed(log);
    const auto first = followed.begin(nullptr);
    QVERIFY(bool(first));
    QCOMPARE(first->warnings.size(), 1u);
    QVERIFY(first->warnings[0].message.find("not complete") != std::string::npos);
  }

  void an_end_without_a_checksum_is_shown_and_read_again() {
    const std::string log = path("by_hand.log");
    const std::string line =
        "V1129 10:00:00.000000 1 x.py:1] {\"dynamo_error\": {}, \"frame_id\": 0, "
        "\"frame_compile_id\": 0, \"attempt\": 0, \"has_payload\": \"\"}\n";
    append(log, line + "\tthe text of");
    Followed followed(log);
    const auto first = followed.begin(nullptr);
    QVERIFY(bool(first) && first->warnings.empty());
    QCOMPARE(ids(first->artefacts), Ids{"0_0.dynamo_error"});
    QCOMPARE(first->artefacts[0].where.line, 2);
    append(log, " an error\n" + line + "\tanother\n" + record("\"dynamo_start\": {}"));
    const auto news = followed.next(nullptr);
    QCOMPARE(ids(news->artefacts), (Ids{"0_0.dynamo_error", "0_0.dynamo_error_1", "0_0.dynamo_start"}));
    QCOMPARE(*news->artefacts[0].text(), std::string("the text of an error\n"));
  }

  void a_log_that_became_another_file_is_said() {
    const std::string log = path("other.log");
    append(log, record("\"dynamo_output_graph\": {}", graph_of("cos")));
    Followed followed(log);
    QVERIFY(bool(followed.begin(nullptr)));
    std::filesystem::resize_file(log, 0);
    append(log, record("\"dynamo_start\": {}"));
    QCOMPARE(followed.next(nullptr)->rewritten, Ids{log});
    std::filesystem::remove(log);
    QVERIFY(followed.next(nullptr)->empty());
  }

  void a_graph_file_that_changes_is_not_read_again() {
    const std::string file = path("graph.py");
    append(file, graph_of("cos"));
    Followed followed(file);
    QVERIFY(bool(followed.begin(nullptr)));
    append(file, "\n# more\n");
    const auto news = followed.next(nullptr);
    QCOMPARE(news->rewritten, Ids{file});
    QVERIFY(news->artefacts.empty());
  }

  void a_folder_gets_files() {
    const std::string folder = path("debug");
    std::filesystem::create_directories(folder + "/run");
    append(folder + "/a.py", graph_of("cos"));
    append(folder + "/empty.py", "");
    Followed followed(folder);
    append(folder + "/rank_0.log", record("\"dynamo_output_graph\": {}", graph_of("cos")));
    QCOMPARE(ids(followed.begin(nullptr)->artefacts), (Ids{"a", "0_0.dynamo_output_graph"}));  // as load() has them
    append(folder + "/rank_0.log", record("\"aot_joint_graph\": {}", graph_of("neg")));
    append(folder + "/run/b.py", graph_of("sin"));
    append(folder + "/rank_1.log", record("\"dynamo_output_graph\": {}", graph_of("abs")));
    auto news = followed.next(nullptr);
    QCOMPARE(ids(news->artefacts), (Ids{"0_0.aot_joint_graph", "rank_1/0_0.dynamo_output_graph", "run/b"}));
    // A file that was still being written, and one that was empty.
    std::filesystem::resize_file(folder + "/a.py", 0);
    append(folder + "/a.py", graph_of("tanh"));
    append(folder + "/empty.py", graph_of("exp"));
    append(folder + "/rank_1.log", record("\"aot_joint_graph\": {}", graph_of("neg"), 1));
    news = followed.next(nullptr);
    QCOMPARE(ids(news->artefacts), (Ids{"a", "empty", "rank_1/0_1.aot_joint_graph"}));
    QVERIFY(news->artefacts[0].text()->find("tanh") != std::string::npos);
    QVERIFY(news->rewritten.empty() && followed.next(nullptr)->empty());
    QCOMPARE(followed.folders().size(), 2u);
  }

  void a_watch_hears_of_one_file() {
    FileWatch watch("wanted.log");
    watch.add(folder_.path().toStdString());
    append(path("unwanted.log"), "x");
    QVERIFY(!watch.take());
    append(path("wanted.log"), "x");
    QVERIFY(watch.take() && !watch.take());
    Progress stopped;
    stopped.stop = true;
    watch.wait(60, &stopped);  // returns
  }
};

QTEST_GUILESS_MAIN(TestFollow)
#include "test_follow.moc"
