// Every artefact of the corpus must load, have PyTorch's node counts, and give the same graph when its text is read
// back.
#include <QtTest>
#include <set>

#include <nlohmann/json.hpp>

#include "core/ir/print.h"
#include "core/ir/verify.h"
#include "core/load/fx_text.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"
#include "tests/load/paths.h"
#include "tests/support/corpus.h"
#include "tests/support/same_graph.h"

using namespace partita;
using partita::testing::corpus;
using partita::testing::files_below;
using partita::testing::read_text;
using partita::testing::same_graph;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Empty if the graph is sound and parse(print(graph)) is the same graph.
std::string trouble_with(const Graph& graph) {
  if (auto errors = verify(graph); !errors.empty()) return "verify: " + errors[0].line();
  auto again = parse_fx_text(print(graph));
  if (!again) return "printed text: " + again.error().line();
  std::string why;
  return same_graph(graph, **again, &why) ? "" : "after printing: " + why;
}

std::map<std::string, std::size_t> counts_of(const Json& json) {
  std::map<std::string, std::size_t> out;
  for (auto& [key, value] : json.items())
    if (key != "total") out[key] = value.get<std::size_t>();
  return out;
}

std::string text_of(const std::map<std::string, std::size_t>& counts) {
  std::string out;
  for (const auto& [key, n] : counts)
    if (n > 0) out += key + "=" + std::to_string(n) + " ";
  return out;
}

}  // namespace

class TestCorpus : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    if (corpus().empty()) QSKIP(partita::testing::no_corpus);
  }
  void every_artefact_loads_data();
  void every_artefact_loads();
  void archives_have_the_counts_of_case_json();
  void archives_equal_their_printed_text();
  void archives_hold_signature_tensors_and_samples();
  void joint_graphs_have_the_counts_of_sizes_json();
  void damaged_log_loads_the_rest();
  void operator_case_texts_read();
};

void TestCorpus::every_artefact_loads_data() {
  QTest::addColumn<QString>("folder");
  QTest::addColumn<int>("least_graphs");
  for (auto [folder, least] : {std::pair{"models", 450},
                               {"extra", 40},
                               {"extra_traces", 80},
                               {"big", 28},
                               {"logs", 8},
                               {"aot", 420},
                               {"aot_log_sample.txt", 4}})
    QTest::newRow(folder) << QString(folder) << least;
}

void TestCorpus::every_artefact_loads() {
  QFETCH(QString, folder);
  QFETCH(int, least_graphs);
  auto loaded = load((corpus() / folder.toStdString()).string());
  QVERIFY2(bool(loaded), loaded ? "" : loaded.error().line().c_str());
  int graphs = 0;
  for (const Diagnostic& w : loaded->warnings)
    QVERIFY2(folder == "logs" && w.message.find("checksum") != std::string::npos, w.line().c_str());
  std::set<std::string> ids;
  for (const Artefact& a : loaded->artefacts) {
    QVERIFY2(ids.insert(a.id).second, a.id.c_str());
    if (!a.is_graph()) {
      QVERIFY(bool(a.text()));
      continue;
    }
    auto graph = a.graph();
    QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
    std::string trouble = trouble_with(**graph);
    QVERIFY2(trouble.empty(), (a.id + ": " + trouble).c_str());
    ++graphs;
  }
  QVERIFY2(graphs >= least_graphs, std::to_string(graphs).c_str());
}

void TestCorpus::archives_have_the_counts_of_case_json() {
  int archives = 0;
  for (const char* set : {"models", "extra"})
    for (const fs::path& file : files_below(corpus() / set, "case.json")) {
      Json json = Json::parse(read_text(file));
      for (auto [key, name] : {std::pair{"exported", "program.pt2"}, {"core", "program.core.pt2"}}) {
        if (!json.contains(key) || !json[key].contains("node_counts")) continue;
        auto loaded = load((file.parent_path() / name).string());
        QVERIFY2(bool(loaded), loaded ? "" : loaded.error().line().c_str());
        auto graph = loaded->artefacts[0].graph();
        QCOMPARE(
            QString::fromStdString(file.parent_path().filename().string() + " " + text_of((*graph)->kind_counts())),
            QString::fromStdString(file.parent_path().filename().string() + " " +
                                   text_of(counts_of(json[key]["node_counts"]))));
        ++archives;
      }
    }
  QVERIFY2(archives >= 30, std::to_string(archives).c_str());
}

/// exported.py is PyTorch's print of the same program: operators, arguments, annotations and source lines must agree.
void TestCorpus::archives_equal_their_printed_text() {
  int same = 0;
  for (const char* set : {"models", "extra"})
    for (const fs::path& archive : files_below(corpus() / set, ".pt2")) {
      std::string stem = archive.filename() == "program.pt2" ? "exported.py" : "core.py";
      fs::path text = archive.parent_path() / "graphs" / stem;
      if (!fs::exists(text)) text = archive.parent_path() / stem;
      if (!fs::exists(text)) continue;
      auto a = load(archive.string());
      auto b = load(text.string());
      QVERIFY(a && b);
      auto from_archive = a->artefacts[0].graph(), from_text = b->artefacts[0].graph();
      // What the archive spells differently is not compared: names of get_attr, annotations missing for ops without
      // recorded values, and the origin prefix.
      QCOMPARE((*from_archive)->size(), (*from_text)->size());
      for (Node *x = (*from_archive)->first(), *y = (*from_text)->first(); x; x = x->next(), y = y->next()) {
        std::string where = archive.string() + " " + x->name() + ": ";
        QVERIFY2(x->op() == y->op(), (where + x->op()->name + " / " + y->op()->name).c_str());
        if (x->is(Op::get_attr())) continue;
        QVERIFY2(x->name() == y->name(), (where + y->name()).c_str());
        QVERIFY2(annotation(x->meta) == annotation(y->meta),
                 (where + annotation(x->meta) + " / " + annotation(y->meta)).c_str());
        QVERIFY2(x->inputs().size() == y->inputs().size(), where.c_str());
        if (x->op()->is_call() && !x->is(Op::getitem()) && x->origin && y->origin && !y->origin->file.empty()) {
          // The text was exported in another run: folders differ, and size nodes made while exporting had no stack
          // there.
          QVERIFY2(x->origin->line == y->origin->line, (where + print(*x)).c_str());
          QCOMPARE(x->origin->function, y->origin->function);
          QCOMPARE(x->origin->code, y->origin->code);
        }
      }
      ++same;
    }
  QVERIFY2(same >= 40, std::to_string(same).c_str());
}

void TestCorpus::archives_hold_signature_tensors_and_samples() {
  for (const char* name : {"mlp", "gpt2", "resnet", "gpt2_dyn", "unet"}) {
    fs::path folder = corpus() / "models" / name;
    Json json = Json::parse(read_text(folder / "case.json"));
    auto loaded = load((folder / "program.pt2").string());
    QVERIFY2(bool(loaded), loaded ? "" : loaded.error().line().c_str());
    const ExportedProgram& program = *loaded->artefacts[0].program;
    const Json& inputs = json["exported"]["inputs"];
    QCOMPARE(program.inputs.size(), inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      QCOMPARE(std::string(kind_name(program.inputs[i].kind)), inputs[i]["kind"].get<std::string>());
      QCOMPARE(program.inputs[i].name, inputs[i]["name"].get<std::string>());
      if (inputs[i]["target"].is_null()) continue;
      QCOMPARE(program.inputs[i].target, inputs[i]["target"].get<std::string>());
      const Tensor* tensor = program.tensor_of(program.inputs[i].name);
      QVERIFY2(tensor, program.inputs[i].target.c_str());
      QCOMPARE(tensor->sizes, inputs[i]["shape"].get<Sizes>());
      QCOMPARE(tensor->strides, inputs[i]["stride"].get<Sizes>());
      QCOMPARE(tensor->requires_grad, program.inputs[i].kind == ProgramInputKind::Parameter);
    }
    const Json& outputs = json["exported"]["outputs"];
    QCOMPARE(program.outputs.size(), outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      QCOMPARE(std::string(kind_name(program.outputs[i].kind)), outputs[i]["kind"].get<std::string>());
      if (!outputs[i]["target"].is_null()) QCOMPARE(program.outputs[i].target, outputs[i]["target"].get<std::string>());
    }
    auto io = read_safetensors((folder / "io.safetensors").string());
    QVERIFY(bool(io));
    QVERIFY(!program.sample_inputs.empty());
    for (std::size_t i = 0; i < program.sample_inputs.size(); ++i) {
      auto* sample = program.sample_inputs[i].get<Tensor>();
      const Tensor* input = io->find("input." + std::to_string(i));
      QVERIFY(sample && input);
      QCOMPARE(sample->sizes, input->sizes);
      for (std::int64_t k = 0; k < input->numel(); ++k)
        QCOMPARE(sample->contiguous()->item_as_double(k), input->item_as_double(k));
    }
  }
}

void TestCorpus::joint_graphs_have_the_counts_of_sizes_json() {
  Json sizes = Json::parse(read_text(corpus() / "big" / "sizes.json"));
  int compared = 0;
  for (auto& [name, entry] : sizes.items()) {
    if (!entry.contains("joint_nodes")) continue;
    auto count = [&, folder = corpus() / "big" / name](const char* file) -> std::size_t {
      auto graph = parse_fx_text(read_text(folder / file));
      return graph ? (*graph)->size() : 0;
    };
    QCOMPARE(count("joint.py"), entry["joint_nodes"].get<std::size_t>());
    QCOMPARE(count("forward.py"), entry["min_cut"]["forward_nodes"].get<std::size_t>());
    QCOMPARE(count("backward.py"), entry["min_cut"]["backward_nodes"].get<std::size_t>());
    ++compared;
  }
  QCOMPARE(compared, 5);
}

void TestCorpus::damaged_log_loads_the_rest() {
  auto whole = load((corpus() / "logs" / "simple.log").string());
  auto damaged = load((corpus() / "logs" / "simple_corrupted_json.log").string());
  QVERIFY(whole && damaged);
  QCOMPARE(whole->warnings.size(), 0u);
  QCOMPARE(damaged->warnings.size(), 1u);
  QCOMPARE(damaged->warnings[0].where.line, 14);
  QCOMPARE(damaged->artefacts.size(), whole->artefacts.size());
}

void TestCorpus::operator_case_texts_read() {
  int graphs = 0;
  for (const char* set : {"ops", "ops_inplace", "ops_unbacked"})
    for (const fs::path& file : files_below(corpus() / set, ".json")) {
      Json json = Json::parse(read_text(file));
      for (const Json& item : json["cases"])
        for (const char* key : {"graph", "pre_dispatch_graph", "symbolic_graph"}) {
          if (!item.contains(key) || !item[key].is_string()) continue;
          auto graph = parse_fx_text(item[key].get<std::string>(), file.filename().string());
          QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
          std::string trouble = trouble_with(**graph);
          QVERIFY2(trouble.empty(), (file.filename().string() + ": " + trouble).c_str());
          ++graphs;
        }
    }
  QVERIFY2(graphs > 3000, std::to_string(graphs).c_str());
}

QTEST_GUILESS_MAIN(TestCorpus)
#include "test_corpus.moc"
