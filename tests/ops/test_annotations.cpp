// Every operator record must infer from its arguments' annotations the annotation that PyTorch gave the result.
#include <QTest>
#include <fstream>
#include <map>
#include <sstream>

#include "core/load/fx_text.h"
#include "core/ops/record/record.h"
#include "tests/support/corpus.h"

using namespace partita;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Count {
  int equal = 0, different = 0;
  std::map<std::string, int> unknown;
};

void compare(const Meta& inferred, const Node& node, const std::string& graph, Count& count) {
  if (same_annotation(inferred, node.meta)) {
    ++count.equal;
    return;
  }
  ++count.different;
  qWarning("%s %s: %s, PyTorch has %s", graph.c_str(), node.name().c_str(), annotation(inferred).c_str(),
           annotation(node.meta).c_str());
}

void check(Graph& graph, const std::string& name, Count& count) {
  // Symbols without a hint in the text get one, so that guards can be decided.
  std::int64_t next = 5;
  for (Node* n : graph)
    if (const TensorMeta* t = n->meta.tensor())
      for (const SymExpr& s : t->sizes)
        for (const std::string& symbol : s.symbols())
          if (!graph.shapes->hint(SymExpr::symbol(symbol))) graph.shapes->set_hint(symbol, next += 2);
  for (Node* n : graph) {
    if (!n->op()->is_call() || n->is(Op::getitem())) continue;
    Result<Meta> meta = infer(*n);
    if (!meta) {
      if (meta.error().code == "ops.unknown") {
        ++count.unknown[n->op()->name];
        continue;
      }
      ++count.different;
      qWarning("%s %s: %s", name.c_str(), n->name().c_str(), meta.error().line().c_str());
      continue;
    }
    if (const MetaTuple* tuple = meta->tuple()) {
      n->meta = *meta;
      for (Node* user : n->users()) {
        if (!user->is(Op::getitem())) continue;
        auto i = static_cast<std::size_t>(*user->args()[1].get<std::int64_t>());
        if (i < tuple->items.size())
          compare(tuple->items[i], *user, name, count);
        else
          ++count.different;
      }
    } else if (n->meta.known()) {
      compare(*meta, *n, name, count);
    }
  }
}

}  // namespace

class Annotations : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void models_data();
  void models();
};

void Annotations::models_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<bool>("strict");
  if (testing::corpus().empty()) QSKIP(testing::no_corpus);
  for (const char* model : {"mlp", "gpt2", "resnet"}) QTest::newRow(model) << QString(model) << true;
  for (const char* model : {"autoencoder_dyn", "bert", "convnext", "dlrm", "gpt2_dyn", "llama", "lstm", "mamba",
                            "mixtral", "mobilenet_v2", "swin", "t5", "unet", "vae", "vit", "whisper"})
    QTest::newRow(model) << QString(model) << false;
}

void Annotations::models() {
  QFETCH(QString, model);
  QFETCH(bool, strict);
  std::filesystem::path graphs = testing::corpus() / "models" / model.toStdString() / "graphs";
  if (!std::filesystem::exists(graphs)) QSKIP("not in this corpus");
  Count count;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(graphs)) {
    std::string name = std::filesystem::relative(entry.path(), graphs).string();
    if (entry.path().extension() != ".py" || name == "dynamo.py" || name.starts_with("pre_grad")) continue;
    auto graph = parse_fx_text(read(entry.path()), name);
    QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
    check(**graph, name, count);
  }
  std::string unknown;
  for (auto& [op, n] : count.unknown) unknown += " " + op + " " + std::to_string(n);
  qInfo("%s: %d equal, %d different; without a record:%s", qPrintable(model), count.equal, count.different,
        unknown.empty() ? " none" : unknown.c_str());
  QVERIFY(count.equal > 0);
  if (strict) {
    QCOMPARE(count.different, 0);
    QVERIFY(count.unknown.empty());
  }
}

QTEST_APPLESS_MAIN(Annotations)
#include "test_annotations.moc"
