#include <QtTest>

#include "core/base/config.h"
#include "core/ir/devices.h"
#include "core/ir/graph.h"
#include "core/ir/verify.h"

using namespace partita;

namespace {

const Op* add() {
  return Op::torch("aten.add.Tensor");
}

}  // namespace

class GraphTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void theSizesOfAnAnnotationShareOneLimit() {
    QString sizes;
    for (int i = 0; i < 200; ++i)
      sizes += QString("%1(a%2 + b%2 + c%2 + d%2)**3").arg(sizes.isEmpty() ? "" : ", ").arg(i);
    const std::string text = "f32[" + sizes.toStdString() + "]";
    std::optional<ConfigScope> patch(std::in_place, *patched_config({{"graph_limit", "10k"}}));
    const Result<SymExpr> one = SymExpr::parse("(x + y + z + w)**3");
    const Result<Meta> all = parse_annotation(text);
    patch.reset();
    QVERIFY(one);
    QVERIFY(!all);
    QCOMPARE(all.error().code, std::string("sym.too_large"));
  }

  void namesContinueTheirCountAsInFx() {
    Graph g;
    Node* x = g.placeholder("x");
    QCOMPARE(g.create(add(), {x, x})->name(), std::string("add"));
    QCOMPARE(g.create(add(), {x, x})->name(), std::string("add_1"));
    QCOMPARE(g.create(add(), {x, x}, {}, "add_1")->name(), std::string("add_2"));
    QCOMPARE(g.create(add(), {x, x}, {}, "9 lives")->name(), std::string("_9_lives"));
  }

  void usesFollowArguments() {
    Graph g;
    Node *x = g.placeholder("x"), *y = g.placeholder("y");
    Node* a = g.create(add(), {x, x});
    Node* l = g.create(Op::torch("aten.cat.default"), {Arg::list({x, a, Arg()})});
    g.set_output(Arg::tuple({l}));
    QCOMPARE(x->users().size(), std::size_t{3});
    x->replace_all_uses_with(y);
    QVERIFY(x->users().empty());
    QCOMPARE(y->users().size(), std::size_t{3});
    QVERIFY(verify(g).empty());
    g.erase(x);
    QCOMPARE(g.size(), std::size_t{4});
  }

  void cloneIsDeep() {
    Graph g;
    Node* x = g.placeholder("x");
    Node* a = g.create(add(), {x, Arg(1)}, {{"alpha", Arg(2)}});
    g.set_output(a);
    auto copy = g.clone();
    QVERIFY(verify(*copy).empty());
    QVERIFY(copy->find("add") != a);
    QCOMPARE(copy->find("add")->args()[0].node(), copy->find("x"));
    QVERIFY(*copy->find("add")->kwarg("alpha") == Arg(2));
  }

  void a_graph_moves_to_the_cpu() {
    const Device gpu{DeviceType::Cuda, 0}, meta{DeviceType::Meta};
    Graph g;
    Node* x = g.placeholder("x", TensorMeta::contiguous(DType::Float32, {2}, gpu));
    QCOMPARE(other_device(g)->str(), std::string("cuda:0"));
    Node* full =
        g.create(Op::torch("aten.full.default"), {Arg::list({2}), 1}, {{"device", gpu}, {"dtype", DType::Float32}});
    full->meta = MetaTuple{{TensorMeta::contiguous(DType::Float32, {2}, gpu), Meta()}};
    Node* named =
        g.create(Op::torch("aten.ones.default"), {Arg::list({2})}, {{"device", "cuda:1"}, {"layout", "cuda"}});
    Node* empty =
        g.create(Op::torch("aten.empty.default"), {Arg::list({2}), Arg::list({gpu, meta})}, {{"device", meta}});
    g.children.emplace_back("body", std::make_unique<Graph>());
    Node* inner = g.children[0].second->placeholder("y", TensorMeta::contiguous(DType::Float32, {2}, gpu));
    move_to(g, Device{});
    QVERIFY(!other_device(g));
    QCOMPARE(x->meta.tensor()->device, Device{});
    QCOMPARE(*full->kwargs()[0].second.get<Device>(), Device{});
    QCOMPARE(full->meta.tuple()->items[0].tensor()->device, Device{});
    QCOMPARE(*named->kwargs()[0].second.get<Device>(), Device{});
    QCOMPARE(*named->kwargs()[1].second.get<std::string>(), std::string("cuda"));
    QCOMPARE(*empty->kwargs()[0].second.get<Device>(), meta);
    QCOMPARE(*empty->args()[1].get<ArgList>()->items[0].get<Device>(), Device{});
    QCOMPARE(*empty->args()[1].get<ArgList>()->items[1].get<Device>(), meta);
    QCOMPARE(inner->meta.tensor()->device, Device{});
  }

  void deadChainsGo() {
    Graph g;
    Node* x = g.placeholder("x");
    Node* a = g.create(add(), {x, x});
    g.create(add(), {a, a});
    Node* kept = g.create(Op::torch("aten._assert_scalar.default"), {x});
    g.set_output(x);
    QCOMPARE(g.eliminate_dead([&](const Node& n) { return &n == kept; }), std::size_t{2});
    QCOMPARE(g.size(), std::size_t{3});
  }

  void verifierCollectsAll() {
    Graph g;
    Node* x = g.placeholder("x");
    Node* a = g.create(add(), {x, x});
    Node* b = g.create(add(), {a, x});
    g.move_before(b, a);
    std::vector<Diagnostic> found = verify(g);
    QCOMPARE(found.size(), std::size_t{2});
    QCOMPARE(found[0].message, std::string("reads add before it is computed"));
    QCOMPARE(found[0].where.node, std::string("add_1"));
    QCOMPARE(found[1].message, std::string("no output"));
  }
};

QTEST_APPLESS_MAIN(GraphTest)
#include "test_graph.moc"
