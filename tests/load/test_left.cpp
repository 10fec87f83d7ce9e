// What PyTorch leaves beside graphs: logs of stderr, and files that hold no graph; and the ids of a folder.
#include <QtTest>
#include <filesystem>
#include <fstream>

#include "core/base/output.h"
#include "core/ir/print.h"
#include "core/load/dynamo_reasons.h"
#include "core/load/records.h"
#include "core/load/session.h"
#include "tests/load/paths.h"

using namespace partita;
using partita::testing::left;
using partita::testing::opened;
using partita::testing::read_text;

namespace {

namespace fs = std::filesystem;

std::string note_of(const Loaded& loaded) {
  for (const Diagnostic& d : loaded.warnings)
    if (d.severity == Severity::Note) return d.message;
  return {};
}

std::string ids(const Loaded& loaded) {
  std::string out;
  for (const Artefact& a : loaded.artefacts) out += (out.empty() ? "" : " ") + a.id;
  return out;
}

}  // namespace

class TestLeft : public QObject {
  Q_OBJECT

  QTemporaryDir dir_;
  fs::path put(const std::string& name, const std::string& bytes) {
    const fs::path path = fs::path(dir_.path().toStdString()) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private Q_SLOTS:
  void a_log_has_all_channels();
  void ranks_of_one_log_stay_apart();
  void a_dump_of_vllm_opens();
  void files_without_a_graph_say_what_they_are_data();
  void files_without_a_graph_say_what_they_are();
  void hostile_files_are_refused_data();
  void hostile_files_are_refused();
  void cut_short_or_changed_they_never_crash();
  void ids_are_as_short_as_they_are_unique();
};

namespace {

/// A message of TORCH_LOGS.
std::string message(const std::string& head, const std::string& text) {
  std::string out;
  for (const QString& line : QString::fromStdString(text).split('\n')) out += head + " " + line.toStdString() + "\n";
  return out;
}

std::string graph_of(const char* op) {
  return std::string(
             "TRACED GRAPH\n ===== Forward graph 0 =====\n /x/_lazy_graph_module.py class "
             "GraphModule(torch.nn.Module):\n") +
         "    def forward(self, x: \"f32[2][1]cpu\"):\n        y: \"f32[2][1]cpu\" = torch.ops.aten." + op +
         ".default(x);  x = None\n        return (y,)\n        ";
}

}  // namespace

void TestLeft::a_log_has_all_channels() {
  const std::string at = "V1128 13:55:42.36", file = " 16029 torch/x.py:1] [0/1]";
  const std::string log =
      "compiling\n" + message(at + "6000" + file + " [__aot_graphs]", graph_of("sin")) +
      message(at + "6100" + file + " [__graph_code]", graph_of("cos")) +
      message(at + "6200" + file + " [__output_code]", "Output code: \n# AOT ID: ['0_forward']\ncall(x)") +
      message(at + "6201" + file + " [__output_code]", "Output code written to: /tmp/x.py") +
      message(at + "6300" + file + " [__recompiles]",
              "Recompiling function f in a.py:4\n    triggered by the following guard failure(s):\n    - 0/0: L['x'] "
              "== 2") +
      message(at + "6400" + file + " [__graph_breaks]",
              "Graph break in user code at /a.py:7\nGraph Break Reason: print") +
      message(at + "6500" + file + " [__fusion]", "one") + message(at + "6600" + file + " [__fusion]", "two") +
      message("W1128 13:55:43.000000 16029 torch/y.py:3] [0/1]", "torch._dynamo hit the limit") + "done\n";
  const Loaded loaded = opened(put("log.txt", log));
  QCOMPARE(QString::fromStdString(ids(loaded)),
           QString("0_1.aot_graphs 0_1.graph_code 0_1.output_code 0_1.recompile_reasons "
                   "0_1.dynamo_graph_break_reason program_output 0_1.fusion 0_1.messages"));
  QCOMPARE(loaded.artefacts[0].kind, ArtefactKind::Forward);
  QCOMPARE(loaded.artefacts[1].kind, ArtefactKind::Dynamo);
  QCOMPARE(loaded.artefacts[0].where.line, 4);
  const auto text = [&](const char* id) { return *loaded.find(id)->text(); };
  const auto reasons = read_recompile_reasons(text("0_1.recompile_reasons"));
  QCOMPARE(reasons.size(), 1U);
  QCOMPARE(reasons[0].earlier, std::string("0/0"));
  QCOMPARE(reasons[0].guard, std::string("L['x'] == 2"));
  QCOMPARE(text("0_1.fusion"), std::string("one\ntwo\n"));
  QCOMPARE(text("program_output"), std::string("compiling\ndone\n"));
  QVERIFY(text("0_1.messages").find("hit the limit") != std::string::npos);
  QVERIFY(text("0_1.output_code").starts_with("Output code: \n# AOT ID"));
  QCOMPARE(record_name(*loaded.find("0_1.recompile_reasons")), std::string_view("recompile_reasons"));
}

void TestLeft::ranks_of_one_log_stay_apart() {
  const QStringList a =
      QString::fromStdString(
          message("[rank0]:V1128 13:55:42.366000 7 torch/x.py:1] [0/0] [__aot_graphs]", graph_of("sin")))
          .split('\n');
  const QStringList b =
      QString::fromStdString(
          message("[rank1]:V1128 13:55:42.366000 8 torch/x.py:1] [0/0] [__aot_graphs]", graph_of("cos")))
          .split('\n');
  std::string log;
  for (qsizetype i = 0; i < a.size(); ++i) log += (a[i] + "\n" + b[i] + "\n").toStdString();
  const Loaded loaded = opened(put("ranks.txt", log));
  QVERIFY(loaded.find("rank_0/0_0.aot_graphs") && loaded.find("rank_1/0_0.aot_graphs"));
  QVERIFY((*loaded.find("rank_0/0_0.aot_graphs")->graph())->find("y")->op()->name == "aten.sin.default");
  QVERIFY((*loaded.find("rank_1/0_0.aot_graphs")->graph())->find("y")->op()->name == "aten.cos.default");
  QCOMPARE(loaded.find("rank_1/0_0.aot_graphs")->group, std::string("rank 1 0/0"));
  QVERIFY(!loaded.pick("aot_graphs") && !loaded.pick("forward"));
}

void TestLeft::a_dump_of_vllm_opens() {
  // vllm/compilation/graph_dump.py: what a log of graph_code has, nodes by layers, and a table of contents.
  put("vllm/rank_0_dp_0/graphs/0000_17_before_split.raw.py", graph_of("sin"));
  put("vllm/rank_0_dp_0/graphs/0000_17_before_split.structured.txt",
      "model: Llama\n  %y : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%x,), kwargs = "
      "{})\n");
  put("vllm/rank_0_dp_0/graphs/0000_17_before_split.metadata.json", "{\"name\": \"before_split\"}");
  put("vllm/rank_0_dp_0/graphs/0001_17_pass.after_post_grad.raw.py", graph_of("cos"));
  put("vllm/rank_0_dp_0/graphs/index.md", "# vLLM Graph Dumps\n\n| # | stage |\n");
  const Loaded loaded = opened(dir_.path().toStdString() + "/vllm");
  QVERIFY(loaded.warnings.empty());
  QCOMPARE(QString::fromStdString(ids(loaded)),
           QString("0000_17_before_split.metadata 0000_17_before_split.raw 0000_17_before_split.structured "
                   "0001_17_pass.after_post_grad.raw index"));
  QCOMPARE((*loaded.find("0000_17_before_split.raw")->graph())->find("y")->op()->name, std::string("aten.sin.default"));
  QCOMPARE(loaded.find("0001_17_pass.after_post_grad.raw")->kind, ArtefactKind::PostGrad);
}

constexpr const char* debug_log =
    R"({"format": "torch.utils._debug_mode.DebugMode.logs", "version": 1, "logs": [
{"call_depth": 1, "output_str": "  ->  t: f32[2]", "type": "op", "op_name": "aten::sin", "args_str": "t: f32[2]", "kwargs_str": ""},
{"call_depth": 2, "type": "region"}]})";

void TestLeft::files_without_a_graph_say_what_they_are_data() {
  QTest::addColumn<QString>("path");
  QTest::addColumn<QString>("ids");
  QTest::addColumn<QString>("note");
  QTest::addColumn<QString>("text");
  const auto row = [](const char* name, const fs::path& path, const char* ids, const char* note, const char* text) {
    QTest::newRow(name) << QString::fromStdString(path.string()) << ids << note << text;
  };
  row("aoti", left / "aoti.pt2",
      "model/wrapper.cpp model/kernel.cpp model/wrapper_metadata.json model/kernel_metadata.json",
      "an AOTInductor package of 1 model for cpu, x86_64, AVX512 AVX512_VNNI AMX_TILE: 1 file of machine code, 1 "
      "wrapper "
      "and 1 kernel as code; PyTorch writes no graph into it",
      "aoti_include/cpu.h");
  row("memory snapshot", left / "snapshot.pickle", "snapshot",
      "a memory snapshot of torch.cuda.memory: 1 segments: 2097152 bytes reserved, 1048576 allocated, 1048576 active",
      "1048576 bytes  active_allocated  train.py:12 step (node mm_1)");
  row("caches", left / "cache.bin", "cache fabc/output_code", "2 artifacts of 2 caches, 1 with code",
      "inductor  fabc  ");
  row("DebugMode", put("debug.json", debug_log), "calls", "a log of DebugMode: 2 calls",
      "  aten::sin(t: f32[2])  ->  t: f32[2]\n    region");
  row("precompile", put("p.py", "# Generated by torch.compiler.precompile -- do not edit.\nx = 1\n"), "output_code",
      "a program of torch.compiler.precompile", "x = 1");
  row("output code", put("q.py", "import torch\nasync_compile = AsyncCompile()\n"), "output_code",
      "code that inductor wrote", "AsyncCompile");
  row("inductor's kernels", put("ir_pre_fusion.txt", "op0: SchedulerNode(ComputedBuffer)\nop0.writes = []\n"),
      "ir_pre_fusion", "what inductor made of a graph", "op0.writes");
  row("mappings", put("m.json", "{\"preToPost\": {}}"), "m", "which nodes and kernels", "preToPost");
}

void TestLeft::files_without_a_graph_say_what_they_are() {
  QFETCH(QString, path);
  QFETCH(QString, ids);
  QFETCH(QString, note);
  QFETCH(QString, text);
  const Loaded loaded = opened(path.toStdString());
  QCOMPARE(QString::fromStdString(::ids(loaded)), ids);
  QVERIFY2(note_of(loaded).find(note.toStdString()) != std::string::npos, note_of(loaded).c_str());
  QVERIFY2(loaded.artefacts[0].text()->find(text.toStdString()) != std::string::npos,
           loaded.artefacts[0].text()->c_str());
  const auto picked = loaded.pick("");
  QVERIFY(!picked && picked.error().exit_code() == 2);
  QCOMPARE(picked.error().message, note_of(loaded));
}

void TestLeft::hostile_files_are_refused_data() {
  QTest::addColumn<QByteArray>("bytes");
  QTest::addColumn<QString>("says");
  const std::string cache = read_text(left / "cache.bin");
  const auto row = [](const char* name, const std::string& bytes, const char* says) {
    QTest::newRow(name) << QByteArray::fromStdString(bytes) << says;
  };
  row("caches cut short", cache.substr(0, cache.size() - 5), "reaches beyond the end");
  row("caches changed", cache.substr(0, cache.size() - 1) + "!", "its checksum is another");
  std::string huge = cache;
  huge.replace(32, 8, std::string("\xff\xff\xff\xff\xff\xff\xff\xf0", 8));  // the number of artifacts
  row("caches of 2^64 artifacts", huge, "not readable as saved cache artifacts");
  row("DebugMode cut short", std::string(debug_log).substr(0, 200), "is it truncated?");
  row("DebugMode without logs", R"({"format": "torch.utils._debug_mode.DebugMode.logs", "logs": 3})",
      "no JSON with 'logs'");
}

void TestLeft::hostile_files_are_refused() {
  QFETCH(QByteArray, bytes);
  QFETCH(QString, says);
  const auto loaded = load(put("hostile.x", bytes.toStdString()).string());
  QVERIFY(!loaded);
  QVERIFY2(QString::fromStdString(loaded.error().line()).contains(says), loaded.error().line().c_str());
  QCOMPARE(loaded.error().exit_code(), 2);
}

void TestLeft::cut_short_or_changed_they_never_crash() {
  for (const char* name : {"cache.bin", "snapshot.pickle", "aoti.pt2"}) {
    const std::string bytes = read_text(left / name);
    const std::size_t step = bytes.size() / 300 + 1;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0xff);
      for (const std::string& hostile : {bytes.substr(0, at), changed}) {
        const auto loaded = load(put(name, hostile).string());
        if (!loaded) QVERIFY(loaded.error().exit_code() == 2 || loaded.error().exit_code() == 3);
      }
    }
  }
}

void TestLeft::ids_are_as_short_as_they_are_unique() {
  const std::string graph = "class G(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n";
  const std::string log = message("V1128 13:55:42.366000 16029 torch/x.py:1] [0/0] [__aot_graphs]", graph_of("sin"));
  put("one/trace/a_long_name.log", log);
  put("one/deep/er/fx_graph_readable.py", graph);
  const Loaded one = opened(dir_.path().toStdString() + "/one");
  QCOMPARE(ids(one), std::string("fx_graph_readable 0_0.aot_graphs"));
  for (const char* word : {"trace/a_long_name/0_0.aot_graphs", "0_0.aot_graphs", "aot_graphs", "forward"}) {
    const auto picked = one.pick(word);
    QVERIFY2(picked && (*picked)->id == "0_0.aot_graphs", word);
  }
  QVERIFY(one.find("er/fx_graph_readable") && !one.find("other/fx_graph_readable") && !one.pick("backward"));

  put("two/rank_0/x.log", log);
  put("two/rank_1/x.log", log);
  put("two/a/g.py", graph);
  put("two/a/h.py", graph + graph);
  put("two/b/g.py", graph);
  const Loaded two = opened(dir_.path().toStdString() + "/two");
  QCOMPARE(ids(two), std::string("a/g G G_1 b/g rank_0/x/0_0.aot_graphs rank_1/x/0_0.aot_graphs"));
  const auto picked = two.pick("forward");
  QVERIFY(!picked);
  QVERIFY2(picked.error().message.starts_with("2 graphs are 'forward'; choose one with --graph: rank_0/x/0_0"),
           picked.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestLeft)
#include "test_left.moc"
