// For every ATen call in PyTorch's own graphs of the corpus models, inference must give PyTorch's annotation.
#include <QtTest>
#include <fstream>
#include <map>
#include <sstream>

#include "core/functionalize/to_aten.h"
#include "core/load/fx_text.h"
#include "core/ops/record/record.h"
#include "core/tensor/significant_strides.h"
#include "tests/support/corpus.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// In an exported graph, attention chooses its kernel by whether the mask requires grad, which the text does not say.
bool undecidable(const std::string& path, const std::string& node) {
  return path.ends_with("/exported.py") && node.starts_with("scaled_dot_product_attention");
}

/// Are dtype, device, sizes and significant strides equal? Symbolic strides agree if their values do: Min(32, 32*s38)
/// is 32.
bool alike(const Meta& a, const Meta& b, const ShapeEnv& shapes) {
  const TensorMeta *x = a.tensor(), *y = b.tensor();
  if (!x || !y || !x->strides_known || !y->strides_known) return same_annotation(a, b);
  TensorMeta relaxed = *y;
  for (std::size_t d = 0; d < y->dim() && x->sizes == y->sizes; ++d) {
    bool equal = shapes.hint(x->strides[d]).has_value() && shapes.hint(x->strides[d]) == shapes.hint(y->strides[d]);
    if (!is_significant_stride(y->sizes, d) || equal) relaxed.strides[d] = x->strides[d];
  }
  return same_annotation(a, relaxed);
}

/// Does the inferred meta agree with the node's annotation (with its getitems' for a tuple)? True if PyTorch wrote
/// none.
bool agrees(const Node& node, const Meta& inferred, std::string& what) {
  const ShapeEnv& shapes = *node.graph().shapes;
  auto differs = [&](const Node& shown, const Meta& found) {
    what = shown.name() + ": " + annotation(found) + " instead of " + annotation(shown.meta);
    return false;
  };
  if (const MetaTuple* tuple = inferred.tuple()) {
    for (const Node* user : node.users()) {
      if (!user->is(Op::getitem()) || !user->meta.known()) continue;
      auto i = static_cast<std::size_t>(*user->args()[1].get<std::int64_t>());
      Meta found = i < tuple->items.size() ? tuple->items[i] : Meta();
      if (!alike(found, user->meta, shapes)) return differs(*user, found);
    }
    return true;
  }
  return !node.meta.known() || alike(inferred, node.meta, shapes) || differs(node, inferred);
}

/// Gives symbols hints, since texts have none. Sizes differ from the constants around them. Those of one dimension are
/// equal in all inputs, as the batch of ids and labels is.
void give_hints(const Graph& graph) {
  auto hint = [&](SymExpr e, std::size_t dimension) {
    for (const std::string& symbol : e.symbols())
      if (symbol.starts_with("s") && !graph.shapes->hints().contains(symbol)) {
        graph.shapes->set_range(symbol, {.low = 2});
        graph.shapes->set_hint(symbol, 29 + 12 * static_cast<std::int64_t>(dimension));
      }
  };
  for (const Node* node : graph.placeholders())
    if (const TensorMeta* t = node->meta.tensor())
      for (std::size_t d = 0; d < t->dim(); ++d) hint(t->sizes[d], d);
  for (const Node* node : graph.placeholders())
    if (const SymExpr* e = node->meta.sym()) hint(*e, 9);
}

}  // namespace

class CorpusMetas : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void models_data() {
    QTest::addColumn<QString>("path");
    fs::path corpus = testing::corpus();
    if (corpus.empty()) return;
    for (const auto& model : fs::directory_iterator(corpus / "models")) {
      if (!fs::is_directory(model.path() / "graphs")) continue;
      for (const char* file :
           {"exported.py", "core.py", "joint.py", "inductor_decomp/joint.py", "post_grad_0.py", "post_grad_1.py"}) {
        fs::path path = model.path() / "graphs" / file;
        if (!fs::exists(path)) continue;
        std::string name = model.path().filename().string() + "/" + file;
        QTest::newRow(name.c_str()) << QString::fromStdString(path.string());
      }
    }
  }

  void models() {
    if (testing::corpus().empty()) QSKIP(testing::no_corpus);
    QFETCH(QString, path);
    auto graph = parse_fx_text(read(path.toStdString()), path.toStdString());
    QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
    give_hints(**graph);
    std::map<std::string, int> failures;
    for (Node* node : **graph) {
      if (node->op()->kind != OpKind::Torch) continue;
      if (node->op()->name.starts_with("higher_order.")) continue;
      Result<Meta> meta = infer(*node);
      std::string what;
      if (!meta) {
        if (meta.error().code == "ops.unknown") continue;  // the coverage page counts these
        what = node->name() + ": " + meta.error().message;
      } else if (agrees(*node, *meta, what) || undecidable(path.toStdString(), node->name())) {
        continue;
      }
      if (failures[node->op()->name]++ == 0) qWarning("%s", (node->op()->name + " " + what).c_str());
    }
    QVERIFY(failures.empty());
  }

  void dynamo_data() {
    QTest::addColumn<QString>("path");
    fs::path corpus = testing::corpus();
    if (corpus.empty()) return;
    for (const auto& model : fs::directory_iterator(corpus / "models"))
      if (fs::exists(model.path() / "graphs/dynamo.py"))
        QTest::newRow(model.path().filename().c_str())
            << QString::fromStdString((model.path() / "graphs/dynamo.py").string());
  }

  void dynamo() {
    if (testing::corpus().empty()) QSKIP(testing::no_corpus);
    QFETCH(QString, path);
    auto graph = parse_fx_text(read(path.toStdString()), path.toStdString());
    QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
    give_hints(**graph);
    auto aten = to_aten(**graph);
    QVERIFY2(bool(aten), aten ? "" : aten.error().line().c_str());
    for (const Node* node : *aten->graph) {
      if (!node->op()->is_call()) continue;
      bool python = node->op()->kind == OpKind::Function &&
                    (node->op()->name.starts_with("_operator.") || node->op()->name.starts_with("torch.sym_"));
      QVERIFY2(node->op()->kind == OpKind::Torch || python, node->op()->name.c_str());
    }
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::CorpusMetas)
#include "test_corpus_metas.moc"
