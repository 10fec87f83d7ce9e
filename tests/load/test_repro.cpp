// Repro scripts with what lies beside them: the values of their inputs, and sub graphs.
#include <QtTest>
#include <filesystem>
#include <fstream>

#include "core/load/session.h"
#include "tests/load/paths.h"

using namespace partita;
using partita::testing::left;
using partita::testing::opened;
using partita::testing::read_text;

namespace fs = std::filesystem;

class TestRepro : public QObject {
  Q_OBJECT

  QTemporaryDir dir_;
  fs::path copy(const char* name) {
    static int count = 0;
    const fs::path to =
        fs::path(dir_.path().toStdString()) / ("copy" + std::to_string(count++)) / "torch_compile_debug" / name;
    fs::create_directories(to.parent_path());
    fs::copy(left / name, to, fs::copy_options::recursive);
    return to;
  }

 private Q_SLOTS:
  void a_script_has_its_inputs_data();
  void a_script_has_its_inputs();
  void a_script_elsewhere_finds_its_run();
  void a_folder_runs_the_script_that_it_began_with();
  void a_script_of_a_log_has_its_sub_graphs();
  void a_script_without_values_has_none();
  void damaged_values_are_told();
  void values_stay_below_the_folder();
};

void TestRepro::a_script_has_its_inputs_data() {
  QTest::addColumn<QString>("run");
  QTest::newRow("2.14: sub graphs are classes beside") << "run_2_14";
  QTest::newRow("2.13: sub graphs are in the run's folder") << "run_2_13";
}

void TestRepro::a_script_has_its_inputs() {
  QFETCH(QString, run);
  const Loaded loaded = opened(left / run.toStdString() / "minifier");
  const auto artefact = loaded.pick("");
  QVERIFY(artefact && (*artefact)->id == "minifier_launcher");
  const auto graph = (*artefact)->graph();
  QVERIFY(graph);
  QVERIFY((*graph)->child("true_graph_0") && (*graph)->child("false_graph_0"));
  QVERIFY((*graph)->child("false_graph_0")->find("cos"));
  const auto& values = (*artefact)->companion->sample_inputs;
  QCOMPARE(values.size(), 4U);
  QCOMPARE(values[0].get<Tensor>()->dtype, DType::Bool);
  QCOMPARE(values[2].get<Tensor>()->sizes, (Sizes{8, 8}));
  QVERIFY(values[2].get<Tensor>()->requires_grad);
}

void TestRepro::a_script_elsewhere_finds_its_run() {
  const fs::path run = copy("run_2_13");
  // PyTorch copies the script to the working folder, and says where its values are: below that folder, once.
  std::string script = read_text(run / "minifier/minifier_launcher.py");
  const std::size_t at = script.find("torch_compile_debug/"), end = script.find("/minifier", at);
  script.replace(at, end - at, "torch_compile_debug/run_2_13");
  const fs::path path = run.parent_path().parent_path() / "repro.py";
  std::ofstream(path) << script;
  const Loaded loaded = opened(path);
  QVERIFY(loaded.artefacts[0].companion);
  QCOMPARE(loaded.artefacts[0].companion->sample_inputs.size(), 4U);
  QVERIFY((*loaded.artefacts[0].graph())->child("true_graph_0"));
}

void TestRepro::a_folder_runs_the_script_that_it_began_with() {
  const fs::path minifier = copy("run_2_14") / "minifier";
  fs::copy(minifier / "minifier_launcher.py", minifier / "checkpoints/19.py");
  const Loaded loaded = opened(minifier);
  const auto picked = loaded.pick("");
  QVERIFY(picked && (*picked)->id == "minifier_launcher");
  QVERIFY(loaded.find("19") && loaded.find("19")->companion);  // its values are beside it
}

void TestRepro::a_script_of_a_log_has_its_sub_graphs() {
  // As torch 2.13 logs it: the graph, and then the script of it.
  const fs::path run = left / "run_2_13";
  std::string log;
  for (const auto& [record, file] :
       {std::pair{"\"aot_forward_graph\": {}", run / "torchinductor/model__0_forward_1.0/fx_graph_readable.py"},
        {"\"artifact\": {\"name\": \"fx_graph_runnable\"}", run / "minifier/minifier_launcher.py"}}) {
    log += "V1128 13:55:42.366000 7 torch/x.py:1] {" + std::string(record) +
           ", \"frame_id\": 0, \"frame_compile_id\": 0, \"has_payload\": \"\"}\n";
    for (const QString& line : QString::fromStdString(read_text(file)).split('\n'))
      log += "\t" + line.toStdString() + "\n";
  }
  const fs::path path = fs::path(dir_.path().toStdString()) / "trace.log";
  std::ofstream(path) << log;
  const Loaded loaded = opened(path);
  const Artefact* script = loaded.find("0_0.fx_graph_runnable");
  QVERIFY(script && script->companion);
  QVERIFY((*script->graph())->child("false_graph_0"));
}

void TestRepro::a_script_without_values_has_none() {
  const fs::path run = copy("run_2_14");
  fs::remove(run / "minifier/checkpoints/storages/36d9b53750d7de6a8a3a378010a1edc0e3feff29");
  const Loaded loaded = opened(run / "minifier/minifier_launcher.py");
  QVERIFY(!loaded.artefacts[0].companion);
  QVERIFY(loaded.warnings.empty());
}

void TestRepro::damaged_values_are_told() {
  const fs::path run = copy("run_2_14"), script = run / "minifier/minifier_launcher.py";
  const fs::path storage = run / "minifier/checkpoints/storages/36d9b53750d7de6a8a3a378010a1edc0e3feff29";
  const std::string bytes = read_text(storage);
  for (std::size_t size = 0; size < bytes.size(); size += 97) {
    std::ofstream(storage, std::ios::binary) << bytes.substr(0, size);
    const Loaded loaded = opened(script);
    QVERIFY(!loaded.artefacts[0].companion);
    QCOMPARE(loaded.warnings.size(), 1U);
  }
  std::ofstream(storage, std::ios::binary) << bytes;
  const std::string text = read_text(script);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"buf1, (8, 8)", "buf1, (8, 9)"},
                                 {"buf1, (8, 8)", "buf1, (4611686018427387904, 8)"},
                                 {"buf1, (8, 8)", "buf1, (8, 8), (8, -1)"},
                                 {"buf1, (8, 8)", "buf1, (8, 8), storage_offset=1"},
                                 {"buf1, (8, 8)", "buf1, (8, u7)"}}) {
    std::string changed = text;
    std::ofstream(script) << changed.replace(changed.find(from), from.size(), to);
    const Loaded loaded = opened(script);
    QVERIFY2(!loaded.artefacts[0].companion, to.c_str());
    // Sizes beyond 64 bits are not understood at all.
    QVERIFY2(loaded.warnings.size() == (to.find("4611686018427387904") == std::string::npos), to.c_str());
  }
}

void TestRepro::values_stay_below_the_folder() {
  const fs::path run = copy("run_2_14"), script = run / "minifier/minifier_launcher.py";
  const std::string name = "36d9b53750d7de6a8a3a378010a1edc0e3feff29";
  const fs::path storage = run / "minifier/checkpoints/storages" / name, outside = run.parent_path() / "outside";
  fs::rename(storage, outside);
  fs::create_symlink(outside, storage);
  QVERIFY(!opened(script).artefacts[0].companion);
  fs::remove(storage);
  std::string text = read_text(script);
  std::ofstream(script) << text.replace(text.find(name), name.size(), "../../../../outside");
  QVERIFY(!opened(script).artefacts[0].companion);
  text = read_text(left / "run_2_14/minifier/minifier_launcher.py");
  const std::string saved = "save_dir='";
  fs::create_directories(run.parent_path() / "storages");
  fs::copy(outside, run.parent_path() / "storages" / name);
  const std::size_t at = text.find(saved) + saved.size();
  std::ofstream(script) << text.replace(at, text.find('\'', at) - at, "/torch_compile_debug/../../..");
  QVERIFY(!opened(script).artefacts[0].companion);
}

QTEST_GUILESS_MAIN(TestRepro)
#include "test_repro.moc"
