// A folder of `partita record`: tests/load/recording was made with --per-graph 150 of a program with a training step,
// called three times, and a graph that writes to its input; of the trace only the graphs are left.
#include <QtTest>
#include <cstring>
#include <filesystem>

#include "core/base/output.h"
#include "core/load/follow.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"
#include "tests/load/paths.h"

using namespace partita;
using partita::testing::opened;
using partita::testing::read_text;

namespace fs = std::filesystem;

namespace {

const fs::path sample = fs::path(PARTITA_SOURCE_DIR) / "tests/load/recording";

/// A copy that may be changed.
fs::path copied(const QTemporaryDir& folder) {
  const fs::path to = folder.filePath("recording").toStdString();
  fs::copy(sample, to, fs::copy_options::recursive);
  return to;
}

void replace_in(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = read_text(path);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) qFatal("'%s' is not in the file", from.c_str());
  const Status written = write_file(path.string(), text.replace(at, from.size(), to));
  if (!written) qFatal("%s", written.error().line().c_str());
}

std::vector<std::string> ids_of(const Loaded& loaded) {
  std::vector<std::string> out;
  for (const Artefact& a : loaded.artefacts) out.push_back(a.id);
  return out;
}

}  // namespace

class TestRecording : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void graphs_have_their_calls();
  void the_trace_has_the_values_that_fit();
  void values_are_read_from_where_they_are();
  void numbers_name_graphs();
  void other_calls_are_graphs_of_their_own();
  void ranks_have_folders();
  void it_is_followed();
  void damage_is_told();
  void no_path_leads_out();
};

void TestRecording::graphs_have_their_calls() {
  const Loaded loaded = opened(sample);
  QVERIFY(loaded.warnings.empty());
  const Artefact* forward = loaded.find("000.forward");
  QVERIFY(forward && forward->recorded);
  QCOMPARE(forward->kind, ArtefactKind::Forward);
  QCOMPARE(forward->group, "0/0");
  QCOMPARE(forward->title, "recorded forward graph of 0/0, call 1 of 3");
  const Recorded& recorded = *forward->recorded;
  QCOMPARE(recorded.calls, 3);
  QCOMPARE(recorded.call, 1);
  QCOMPARE(recorded.why, "first");
  QCOMPARE(recorded.cache, "hit");
  QCOMPARE(recorded.left_out, 1);
  QVERIFY(!recorded.of_trace);
  QCOMPARE(loaded.find("002.inference")->kind, ArtefactKind::Inference);
  QVERIFY(loaded.find("session"));
}

void TestRecording::the_trace_has_the_values_that_fit() {
  const Loaded loaded = opened(sample);
  const auto inputs = [&](const char* id) {
    const Artefact* a = loaded.find(id);
    if (!a) qFatal("no %s", id);
    return a->recorded ? fs::path(a->recorded->inputs).filename().string() : "none";
  };
  QCOMPARE(inputs("0_0.aot_forward_graph"), "000.forward.inputs.safetensors");
  QCOMPARE(inputs("0_0.aot_backward_graph"), "001.backward.inputs.safetensors");
  QCOMPARE(inputs("0_0.inductor_post_grad_graph"), "000.forward.inputs.safetensors");
  QCOMPARE(inputs("0_0.inductor_post_grad_graph_1"), "001.backward.inputs.safetensors");
  QCOMPARE(inputs("1_0.aot_inference_graph"), "002.inference.inputs.safetensors");
  QCOMPARE(inputs("0_0.dynamo_output_graph"), "none");
  QVERIFY(loaded.find("0_0.aot_forward_graph")->recorded->of_trace);
}

void TestRecording::values_are_read_from_where_they_are() {
  const auto values = [](const char* name) {
    auto file = read_recorded_values((sample / "graphs" / name).string());
    if (!file) qFatal("%s", file.error().line().c_str());
    return *std::move(file);
  };
  const TensorFile forward = values("000.forward.outputs.safetensors"),
                   backward = values("001.backward.inputs.safetensors");
  const Tensor *first = forward.find("output.0"), *same = forward.find("output.1"), *saved = backward.find("input.0");
  QVERIFY(first && same && saved);
  QVERIFY(first->storage != same->storage);  // what writes to one must not write to the other
  for (const Tensor* t : {same, saved}) {
    QCOMPARE(t->sizes, first->sizes);
    QVERIFY(std::memcmp(t->data(), first->data(), 8 * sizeof(float)) == 0);
  }
  QVERIFY(saved->requires_grad);
  QCOMPARE(backward.find("input.1")->strides, (Sizes{1, 3}));
  QVERIFY(!forward.find("output.2"));
  QCOMPARE(forward.left_out.at("output.2"), "beyond the limit of one graph; float32[3,4]");
}

void TestRecording::numbers_name_graphs() {
  const Loaded loaded = opened(sample);
  QCOMPARE((*loaded.pick("1"))->id, "001.backward");
  QCOMPARE((*loaded.pick("0_0.aot_backward_graph"))->id, "0_0.aot_backward_graph");
  const auto none = loaded.pick("3");
  QVERIFY(!none);
  QCOMPARE(none.error().code, "load.graph_id");
}

void TestRecording::other_calls_are_graphs_of_their_own() {
  const QTemporaryDir folder;
  const fs::path path = copied(folder);
  replace_in(path / "session.json", R"("recorded": [)",
             R"("recorded": [{"call": 1, "why": "first", "inputs": "graphs/000.forward.inputs.safetensors"},
                 {"call": 41, "why": "nan", "inputs": "graphs/001.backward.inputs.safetensors"}], "then": [)");
  const Loaded loaded = opened(path);
  QCOMPARE(loaded.find("000.forward")->recorded->call, 1);
  const Artefact* later = loaded.find("000.forward.call41");
  QVERIFY(later);
  QCOMPARE(later->recorded->why, "nan");
  QCOMPARE((*loaded.pick("0")), later);
}

void TestRecording::ranks_have_folders() {
  const QTemporaryDir folder;
  const fs::path path = copied(folder);
  for (const char* rank : {"rank_0", "rank_1"}) fs::copy(sample, path / rank, fs::copy_options::recursive);
  const Loaded loaded = opened(path);
  QVERIFY(loaded.find("rank_1/000.forward"));
  QCOMPARE((*loaded.pick("rank_1/2"))->id, "rank_1/002.inference");
  QVERIFY(!loaded.pick("2"));
}

void TestRecording::it_is_followed() {
  const QTemporaryDir folder;
  const fs::path path = copied(folder);
  Followed followed(path.string());
  const auto begun = followed.begin(nullptr);
  QVERIFY(begun);
  QCOMPARE(ids_of(*begun), ids_of(opened(path)));
  QVERIFY((*followed.next(nullptr)).empty());
  replace_in(path / "session.json", R"("calls": 3)", R"("calls": 4444)");
  QCOMPARE((*followed.next(nullptr)).rewritten.size(), 1);
  replace_in(path / "session.json", R"("calls": 4444)", R"("calls": 5)");
  QVERIFY((*followed.next(nullptr)).empty());  // told once
}

void TestRecording::damage_is_told() {
  const QTemporaryDir folder;
  const fs::path path = copied(folder);
  fs::remove(path / "graphs/000.forward.inputs.safetensors");
  fs::remove(path / "graphs/002.inference.py");
  fs::remove(path / "graphs/000.forward.outputs.safetensors");
  fs::remove_all(path / "trace");
  const Loaded loaded = opened(path);
  QCOMPARE(loaded.warnings.size(), 4);
  QVERIFY(loaded.find("000.forward")->recorded->inputs.empty());
  const auto values = read_recorded_values((path / "graphs/001.backward.inputs.safetensors").string());
  QVERIFY(!values);
  QCOMPARE(values.error().message, "000.forward.outputs.safetensors has values of it and is not there");
  const std::string whole = read_text(path / "session.json");
  for (const std::size_t size : {std::size_t{60}, whole.size() / 2, whole.size() - 3}) {
    QVERIFY(write_file((path / "session.json").string(), whole.substr(0, size)));
    const auto cut = load(path.string());
    QVERIFY(!cut);
    QCOMPARE(cut.error().code, "load.recording");
  }
  for (const char* text : {R"({"format": "partita-recording-9", "graphs": []})",
                           R"({"format": "partita-recording-1", "graphs": [3, {"file": 7}, {"file": "graphs/"}]})"}) {
    QVERIFY(write_file((path / "session.json").string(), text));
    const auto odd = load(path.string());
    QCOMPARE(static_cast<bool>(odd), std::string_view(text).find("-1") != std::string_view::npos);
  }
}

void TestRecording::no_path_leads_out() {
  const QTemporaryDir folder;
  const fs::path path = copied(folder);
  QVERIFY(write_file((fs::path(folder.path().toStdString()) / "secret.safetensors").string(), "x"));
  replace_in(path / "session.json", "graphs/000.forward.inputs.safetensors", "graphs/../../secret.safetensors");
  replace_in(path / "session.json", "graphs/001.backward.py", "../secret.safetensors");
  fs::remove(path / "graphs/002.inference.inputs.safetensors");
  fs::create_symlink("../../secret.safetensors", path / "graphs/002.inference.inputs.safetensors");
  const Loaded loaded = opened(path);
  QVERIFY(loaded.find("000.forward")->recorded->calls == 3);
  QVERIFY(!loaded.find("001.backward"));
  QVERIFY(loaded.find("002.inference")->recorded->inputs.empty());
  for (const char* name : {"../secret.safetensors", "/etc/passwd", ".", ""}) {
    TensorFile file;
    file.metadata["elsewhere"] = std::string(R"({"input.0": [")") + name + R"(", "input.0"]})";
    QVERIFY(write_safetensors((path / "x.safetensors").string(), file));
    const auto values = read_recorded_values((path / "x.safetensors").string());
    QVERIFY(!values);
    QVERIFY(values.error().message.find("does not say where") != std::string::npos);
  }
}

QTEST_GUILESS_MAIN(TestRecording)
#include "test_recording.moc"
