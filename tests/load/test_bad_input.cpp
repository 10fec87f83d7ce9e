// Truncated, empty or hostile files and files of other kinds must give one clear line: no crash, no hang, little
// memory.
#include <QProcess>
#include <QtTest>
#include <filesystem>

#include <zip.h>

#include "core/base/config.h"
#include "core/base/output.h"
#include "core/load/file.h"
#include "core/load/pickle.h"
#include "core/load/session.h"
#include "tests/load/paths.h"

using namespace partita;
using namespace std::string_view_literals;
using partita::testing::read_text;

namespace {

const std::string data = std::string(PARTITA_SOURCE_DIR) + "/tests/load/data/";

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  QTemporaryDir dir;
  std::string path = dir.filePath("z").toStdString();
  int error = 0;
  zip_t* z = zip_open(path.c_str(), ZIP_CREATE, &error);
  for (const auto& [name, content] : entries)
    zip_file_add(z, name.c_str(), zip_source_buffer(z, content.data(), content.size(), 0), ZIP_FL_ENC_UTF_8);
  zip_close(z);
  return read_text(path);
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = text.find(from);
  if (at == std::string::npos) qFatal("'%s' is not in the sample", from.c_str());
  return text.replace(at, from.size(), to);
}

/// A .pt2 archive in whose model.json `to` replaces `from`.
std::string archive_with(const std::string& from, const std::string& to) {
  int error = 0;
  zip_t* z = zip_open((data + "mlp.pt2").c_str(), ZIP_RDONLY, &error);
  std::vector<std::pair<std::string, std::string>> entries;
  for (zip_int64_t i = 0; i < zip_get_num_entries(z, 0); ++i) {
    zip_stat_t status;
    zip_stat_index(z, static_cast<zip_uint64_t>(i), 0, &status);
    std::string content(status.size, '\0');
    zip_file_t* f = zip_fopen_index(z, static_cast<zip_uint64_t>(i), 0);
    zip_fread(f, content.data(), content.size());
    zip_fclose(f);
    std::string name = status.name;
    if (content.find(from) != std::string::npos) content = with(content, from, to);
    entries.emplace_back(name, content);
  }
  zip_discard(z);
  return zip_of(entries);
}

std::string pickle(std::string_view body) {
  return "\x80\x02" + std::string(body);
}

}  // namespace

class TestBadInput : public QObject {
  Q_OBJECT

  QTemporaryDir dir_;

 private Q_SLOTS:
  void refused_in_one_line_data();
  void refused_in_one_line();
  void truncated_at_any_length_never_crashes();
  void hostile_pickles_are_refused_by_name_data();
  void hostile_pickles_are_refused_by_name();
  void hundred_megabytes_of_zeros();
  void a_size_of_100000_terms_opens();
  void an_unknown_dtype_refuses_no_more_than_its_tensor();
  void nodes_are_counted();
  void a_stack_without_modules_is_none();
  void folder_reports_and_goes_on();
  void command_line_exit_codes();
};

void TestBadInput::refused_in_one_line_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<QByteArray>("bytes");
  QTest::addColumn<int>("exit_code");
  QTest::addColumn<QString>("says");
  auto row = [](const char* title, const char* name, const std::string& bytes, int code, const char* says) {
    QTest::newRow(title) << QString(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())) << code
                         << QString(says);
  };
  row("empty", "a.py", "", 2, "is empty");
  row("plain text", "a.txt", "hello\n", 2, "holds no graph");
  row("python without a graph", "a.py", "import torch\nx = 1\n", 2, "holds no graph");
  row("binary", "a.bin", std::string("\x7f\x45\x4c\x46\0\1\2\3\4\5\6", 11), 2, "is binary");
  row("binary called .py", "a.py", std::string(100, '\0'), 2, "is binary");
  row("truncated class", "a.py", "class G(torch.nn.Module):\n    def forward(self, x:", 2,
      "a type annotation expected");
  row("parameter twice", "a.py", "class G(torch.nn.Module):\n    def forward(self, x, x):\n        return (x,)\n", 2,
      "the parameter 'x' occurs twice");
  row("parameter called None", "a.py",
      "class G(torch.nn.Module):\n    def forward(self, None):\n        return (None,)\n", 2,
      "a parameter name expected, found 'None'");
  const auto graph = [](const std::string& type, const std::string& call) {
    return "class G(torch.nn.Module):\n    def forward(self, x: \"" + type + "\"):\n        a = torch.ops.aten." +
           call + "\n        return (a,)\n";
  };
  row("size that is a fraction", "a.py", graph("f32[0.5][1]", "neg.default(x)"), 2, "'0.5' is no integer");
  row("stride that is a fraction", "a.py", graph("f32[2][0.5]", "neg.default(x)"), 2, "'0.5' is no integer");
  row("size beyond 64 bits", "a.py", graph("f32[2**9223372036854775807][1]", "neg.default(x)"), 2, "overflow");
  row("strides beyond 64 bits", "a.py", graph("f32[4611686018427387904, 4611686018427387904, 2]", "neg.default(x)"), 2,
      "overflow");
  std::string product = "s0", sizes = "s0";
  for (int i = 1; i < 40; ++i) product += "*(s0 + s" + std::to_string(i) + ")";
  for (int i = 1; i < 12; ++i) sizes += " + s" + std::to_string(i);
  row("product of sums", "a.py", graph("f32[" + product + "][1]", "neg.default(x)"), 2,
      "the limit is 1000000; raise it with --graph-limit");
  // None of these exceeds the limit by itself.
  std::string many = "class G(torch.nn.Module):\n    def forward(self, x):\n";
  for (int i = 0; i < 60; ++i) many += "        a: \"Sym((" + sizes + ")**5 + " + std::to_string(i) + ")\" = x + 1\n";
  row("many long sizes", "a.py", many + "        return (a,)\n", 2, "raise it with --graph-limit");
  row("unknown name inside a list", "a.py", graph("f32[2][1]", "ones.default([kk1])"), 2, "unknown name 'kk1'");
  row("zip of nothing", "a.pt2", "PK\5\6" + std::string(18, '\0'), 2, "no models/NAME.json");
  row("half a zip", "a.pt2", read_text(data + "mlp.pt2").substr(0, 20000), 2, "not a valid archive");
  row("no zip", "a.pt2", "hello", 2, "not a valid archive");
  row("path escapes", "a.pt2", zip_of({{"../../etc/passwd", "x"}}), 2, "entry '../../etc/passwd' leads out of it");
  row("absolute path", "a.pt2", zip_of({{"/etc/passwd", "x"}}), 2, "leads out of it");
  row("other version", "a.pt2", archive_with("\"schema_version\": {\"major\": 8", "\"schema_version\": {\"major\": 99"),
      3, "schema version 99");
  row("json cut", "a.pt2", archive_with("\"graph_module\"", "\"graph_module"), 2, "models/model.json is not JSON");
  row("weight beyond file", "a.pt2",
      archive_with("{\"as_int\": 64}, {\"as_int\": 32}], \"requires_grad\": true",
                   "{\"as_int\": 6400}, {\"as_int\": 32}], \"requires_grad\": true"),
      2, "reaches beyond its 8192 bytes");
  row("undefined value", "a.pt2",
      archive_with("{\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1",
                   "{\"as_tensor\": {\"name\": \"nobody\"}}, \"kind\": 1"),
      2, "value 'nobody' is used but not defined");
  row("unknown argument", "a.pt2",
      archive_with("{\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1",
                   "{\"as_riddle\": {\"name\": \"x\"}}, \"kind\": 1"),
      3, "as_riddle");
  row("deflate bomb", "a.pt2", zip_of({{"a/models/model.json", std::string(200'000'000, ' ')}}), 2,
      "takes over 64 times its size");
  row("target that is code", "a.pt2",
      archive_with("torch.ops.aten.linear.default", "torch.ops.aten.linear.default(x)\\nimport os"), 2,
      "is not a dotted name");
  row("zip without a model", "a.pt2", zip_of({{"a/b.txt", "x"}}), 2, "no models/NAME.json");
  row("pickle in torch.save", "a.pt", zip_of({{"a/data.pkl", pickle("cos\nsystem\nX\2\0\0\0id\x85R."sv)}}), 2,
      "os.system");
}

void TestBadInput::refused_in_one_line() {
  QFETCH(QString, name);
  QFETCH(QByteArray, bytes);
  QFETCH(int, exit_code);
  QFETCH(QString, says);
  std::string path = dir_.filePath(name).toStdString();
  std::ofstream(path, std::ios::binary) << std::string(bytes.data(), static_cast<std::size_t>(bytes.size()));
  auto loaded = load(path);
  std::optional<Diagnostic> error;
  if (!loaded)
    error = loaded.error();
  else if (auto graph = loaded->artefacts[0].graph(); !graph)
    error = graph.error();
  QVERIFY(error);
  QVERIFY2(QString::fromStdString(error->line()).contains(says), error->line().c_str());
  QVERIFY(error->line().find('\n') == std::string::npos);
  QCOMPARE(error->exit_code(), exit_code);
  QVERIFY2(error->line().starts_with(path), error->line().c_str());
}

/// Prefixes of all samples, and samples with changed bytes, may give any answer but a crash.
void TestBadInput::truncated_at_any_length_never_crashes() {
  std::string path = dir_.filePath("cut").toStdString();
  std::uint64_t random = 1;
  for (const std::filesystem::path& sample : partita::testing::files_below(data, "")) {
    std::string whole = read_text(sample);
    std::string name = path + sample.extension().string();
    for (int i = 0; i < 40; ++i) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      std::string bytes = whole;
      if (i % 2 == 0)
        bytes.resize((random >> 33) % bytes.size());
      else
        for (int k = 0; k < 5; ++k) {
          random = random * 6364136223846793005ULL + 1442695040888963407ULL;
          bytes[(random >> 33) % bytes.size()] = static_cast<char>(random >> 25);
        }
      std::ofstream(name, std::ios::binary) << bytes;
      auto loaded = load(name);
      if (!loaded) {
        QVERIFY(!loaded.error().message.empty());
        continue;
      }
      for (const Artefact& a : loaded->artefacts)
        if (a.is_graph())
          if (auto graph = a.graph(); !graph) QVERIFY(!graph.error().message.empty());
    }
  }
}

void TestBadInput::hostile_pickles_are_refused_by_name_data() {
  QTest::addColumn<QByteArray>("bytes");
  QTest::addColumn<QString>("says");
  auto row = [](const char* title, const std::string& bytes, const char* says) {
    QTest::newRow(title) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())) << QString(says);
  };
  row("os.system", pickle("cos\nsystem\nX\2\0\0\0id\x85R."sv), "os.system");
  row("eval by STACK_GLOBAL", pickle("X\x08\0\0\0builtinsX\4\0\0\0eval\x93."sv), "opcode");
  row("INST", pickle("(ios\nsystem\n."sv), "opcode 0x69 is not admitted");
  row("no stop", pickle("K\1"sv), "ends without STOP");
  row("empty stack", pickle("."sv), "STOP without exactly one value");
  row("pop nothing", pickle("00."sv), "the stack is empty");
  row("huge string", pickle("X\xff\xff\xff\xffx."sv), "reaches beyond the end");
  row("memo not set", pickle("h\5."sv), "memo 5 is not set");
  row("append to a number", pickle("K\1K\2a."sv), "items for an object that is not a list");
  row("call of a class", pickle("ctorch\nTensor\n)R."sv), "a call of torch.Tensor");
  row("call of a number", pickle("K\1)R."sv), "a call of an object that is not a function");
  row("tensor without storages", pickle("(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\1tQ."sv),
      "no storages");
  std::string bomb = "](";
  for (int i = 0; i < 100'000; ++i) bomb += "N";
  bomb += "eq\1";
  for (int i = 0; i < 10'000; ++i) bomb += "cbuiltins\nset\nh\1\x85R0";
  row("copy bomb", pickle(bomb + "."), "copy too many list entries");
}

void TestBadInput::hostile_pickles_are_refused_by_name() {
  QFETCH(QByteArray, bytes);
  QFETCH(QString, says);
  auto read = read_pickle(std::string_view(bytes.data(), static_cast<std::size_t>(bytes.size())));
  QVERIFY(!read);
  if (says == "opcode") says = "builtins.eval";
  QVERIFY2(QString::fromStdString(read.error().line()).contains(says), read.error().line().c_str());
  // Shared objects that unfold to a huge tree, and a list that contains itself.
  std::string laughs = pickle("](K\1eq\1"sv);
  for (int i = 0; i < 40; ++i)
    laughs += "0](h" + std::string(1, static_cast<char>(i + 1)) + "h" + std::string(1, static_cast<char>(i + 1)) +
              "eq" + std::string(1, static_cast<char>(i + 2));
  auto tree = read_pickle(laughs + ".");
  QVERIFY2(bool(tree), tree ? "" : tree.error().line().c_str());
  QVERIFY(!pytree_leaves(*tree->root));
  QVERIFY(!to_value(*tree->root));
  auto cycle = read_pickle(pickle("]q\1h\1a."sv));
  QVERIFY(cycle && !pytree_leaves(*cycle->root));
  auto deep = read_pickle(pickle(std::string(200'000, ']') + std::string(199'999, 'a') + "."));
  QVERIFY(deep && !to_value(*deep->root));
}

void TestBadInput::hundred_megabytes_of_zeros() {
  for (const char* name : {"z.py", "z.pt2", "z.log", "z.safetensors", "z.input"}) {
    std::string path = dir_.filePath(name).toStdString();
    std::ofstream(path).close();
    std::filesystem::resize_file(path, 100'000'000);
    QElapsedTimer timer;
    timer.start();
    auto loaded = load(path);
    QVERIFY(!loaded);
    QVERIFY2(timer.elapsed() < 2000, name);
    QCOMPARE(loaded.error().exit_code(), 2);
    std::filesystem::remove(path);
  }
}

void TestBadInput::a_size_of_100000_terms_opens() {
  const std::string path = dir_.filePath("long.py").toStdString();
  std::string size = "s0";
  for (int i = 1; i < 100'000; ++i) size += " + s" + std::to_string(i);
  std::ofstream(path) << "class G(torch.nn.Module):\n    def forward(self, x: \"f32[" + size +
                             ", 8][8, 1]cpu\"):\n        return (x,)\n";
  QElapsedTimer timer;
  timer.start();
  auto loaded = load(path);
  QVERIFY(loaded);
  auto graph = loaded->artefacts[0].graph();
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  QCOMPARE((*graph)->first()->meta.tensor()->sizes[0].args().size(), std::size_t(100'000));
  QVERIFY2(timer.elapsed() < 60'000, "2 s with optimisation");
}

/// torch.export's passes write a name of their own for nodes that they insert.
void TestBadInput::a_stack_without_modules_is_none() {
  const std::string path = dir_.filePath("own.pt2").toStdString(), own = "_empty_nn_module_stack_from_metadata_hook";
  QVERIFY(
      write_file(path, archive_with("L__self__,,zoo.MLP;L__self__norm,norm,torch.nn.modules.normalization.LayerNorm",
                                    own + "," + own + "," + own)));
  const auto loaded = load(path);
  QVERIFY(loaded);
  const auto graph = loaded->artefacts[0].graph();
  QVERIFY(graph);
  QCOMPARE((*graph)->find("layer_norm")->origin->modules, std::string());
  QCOMPARE((*graph)->find("linear")->origin->modules, std::string("fc1"));
}

void TestBadInput::an_unknown_dtype_refuses_no_more_than_its_tensor() {
  const std::string path = dir_.filePath("dtype.pt2").toStdString();
  QVERIFY(write_file(path, archive_with("\"dtype\": 7", "\"dtype\": 99")));  // of one weight, and of one value
  const auto loaded = load(path);
  QVERIFY2(loaded, loaded ? "" : loaded.error().line().c_str());
  QVERIFY(loaded->artefacts[0].graph());
  QCOMPARE(loaded->warnings.size(), std::size_t{1});
  QVERIFY2(loaded->warnings[0].message.ends_with("was left out: dtype code 99 is unknown here"),
           loaded->warnings[0].message.c_str());
  QCOMPARE(loaded->artefacts[0].program->tensors.size(), std::size_t{7});
  for (const char* name : {"float9_e5m3", "int3x", "uint12", "Float9_e5m3Storage"})
    QVERIFY2(read_pickle(pickle(std::string("ctorch\n") + name + "\n.")), name);
  for (const char* name : {"float.x", "load", "int3()", "Float9 Storage"})
    QVERIFY2(!read_pickle(pickle(std::string("ctorch\n") + name + "\n.")), name);
}

void TestBadInput::nodes_are_counted() {
  const std::string path = dir_.filePath("nodes.py").toStdString();
  std::ofstream(path) << "class G(torch.nn.Module):\n    def forward(self, x):\n        return (x + 1, x + 2, x + 3)\n";
  std::optional<ConfigScope> patch(std::in_place, *patched_config({{"graph_limit", "2"}}));
  auto loaded = load(path);
  auto graph = loaded->artefacts[0].graph();
  patch.reset();
  QVERIFY(!graph);
  QVERIFY2(
      QString::fromStdString(graph.error().line()).contains("more than 2 nodes; raise the limit with --graph-limit"),
      graph.error().line().c_str());
  QVERIFY(loaded->artefacts[0].graph());
}

void TestBadInput::folder_reports_and_goes_on() {
  QTemporaryDir folder;
  std::ofstream(folder.filePath("a.py").toStdString())
      << "class G(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n";
  std::ofstream(folder.filePath("b.pt2").toStdString()) << "PK\3\4 and no more";
  std::ofstream(folder.filePath("c.py").toStdString()) << "";
  std::filesystem::create_directory_symlink(folder.path().toStdString(), folder.filePath("loop").toStdString());
  auto loaded = load(folder.path().toStdString());
  QVERIFY2(bool(loaded), loaded ? "" : loaded.error().line().c_str());
  QCOMPARE(loaded->artefacts.size(), 1u);
  QCOMPARE(loaded->warnings.size(), 1u);
  QVERIFY(loaded->warnings[0].where.file.ends_with("b.pt2"));
}

void TestBadInput::command_line_exit_codes() {
  if (!std::filesystem::exists(PARTITA_BINARY)) QSKIP("partita is not built");
  std::string broken = dir_.filePath("broken.py").toStdString();
  std::ofstream(broken) << "class G(torch.nn.Module):\n    def forward(self, x):\n        y = x +\n        return y\n";
  struct Case {
    QStringList arguments;
    int code;
    QString line;
  };
  QString path = QString::fromStdString(broken), sample = QString::fromStdString(data);
  const Case cases[] = {
      {{"list", path}, 2, "partita: " + path + ":3: an expression expected, found the end of the line\n"},
      {{"show", path}, 2, "partita: " + path + ":3: an expression expected, found the end of the line\n"},
      {{"list", "/nowhere"}, 2, "partita: /nowhere: cannot open: No such file or directory\n"},
      {{"list", sample + "mlp_joint.py"}, 0, ""},
      {{"show", sample + "mlp_joint.py", "--format", "dot"}, 0, ""},
      {{"show", sample + "mlp_joint.py", "--graph", "joint?"},
       2,
       "partita: " + sample + "mlp_joint.py: no graph 'joint?' in it; choose one with --graph: mlp_joint\n"},
  };
  for (const Case& c : cases) {
    QProcess process;
    process.start(PARTITA_BINARY, c.arguments);
    QVERIFY(process.waitForFinished());
    QCOMPARE(QString::fromUtf8(process.readAllStandardError()), c.line);
    QCOMPARE(process.exitCode(), c.code);
  }
  QProcess json;
  json.start(PARTITA_BINARY, {"list", sample + "mlp.pt2", "--json"});
  QVERIFY(json.waitForFinished());
  QJsonObject graph = QJsonDocument::fromJson(json.readAllStandardOutput()).object()["graphs"].toArray()[0].toObject();
  QCOMPARE(graph["id"].toString(), "exported");
  QCOMPARE(graph["kind"].toString(), "exported");
  QCOMPARE(graph["nodes"].toInt(), 20);
  QCOMPARE(graph["ops"].toInt(), 9);
  QCOMPARE(graph["inputs"].toInt(), 10);
  QVERIFY(graph["origin"].toString().endsWith("mlp.pt2"));
}

QTEST_GUILESS_MAIN(TestBadInput)
#include "test_bad_input.moc"
