// The caches of whole graphs: what another process finds, without making it again, and what is not kept.
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "codegen/backends.h"
#include "core/aot/run_program.h"
#include "core/base/stage_times.h"
#include "core/compare/compare.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/schedule/specialise.h"
#include "core/store/code_store.h"
#include "tests/support/close.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

using SymbolValues = std::map<std::string, std::int64_t>;

/// What the caches did since this was made.
class Since {
 public:
  std::int64_t count(const std::string& name) const { return at(cache_log().counts(), name) - at(before_, name); }
  std::string last_reason() const { return cache_log().events().back().reason; }

 private:
  static std::int64_t at(const std::map<std::string, std::int64_t>& counts, const std::string& name) {
    const auto found = counts.find(name);
    return found == counts.end() ? 0 : found->second;
  }
  std::map<std::string, std::int64_t> before_ = cache_log().counts();
};

std::unique_ptr<Graph> symbolic() {
  auto graph = fx("s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1][s1, 1]>",
                  "y = $roll(x, [1], [0])\nz = $sin(y)\nw = $sum.dim_IntList(z, [1])\nreturn (z, w)");
  if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
  graph->shapes->set_hint("s0", 12);
  graph->shapes->set_hint("s1", 4);
  return graph;
}

}  // namespace

class TestGraphCache : public QObject {
  Q_OBJECT

  QTemporaryDir dir_;
  std::shared_ptr<StageTimes> times_;

  /// As another process would have them.
  BackendOptions options() {
    BackendOptions o;
    o.store = std::make_shared<CodeStore>();
    o.times = times_ = std::make_shared<StageTimes>();
    return o;
  }
  /// Did the compiler's passes run?
  bool passes_ran() const {
    const auto all = times_->all();
    return std::ranges::any_of(all, [](const auto& stage) { return stage.first == "post_grad_passes"; });
  }
  static std::string wrong_for(const Graph& graph, const CompiledFn& run, const SymbolValues& sizes) {
    const auto special = schedule::specialise(graph, sizes);
    const auto inputs = random_inputs(**special, 3);
    const auto expected = interpret(graph, *inputs), found = run(*inputs);
    if (!found) return found.error().line();
    for (std::size_t i = 0; i < found->size(); ++i)
      if (const std::string difference = wrong((*expected)[i], (*found)[i], {}); !difference.empty()) return difference;
    return "";
  }

 private Q_SLOTS:
  void initTestCase() { qputenv("XDG_CONFIG_HOME", dir_.path().toUtf8()); }
  void init() {
    static int number = 0;
    qputenv("PARTITA_STORE", (dir_.path() + QString("/%1").arg(++number)).toUtf8());
  }

  void a_graph_is_found_again() {
    const auto graph = fx("x: <f32[8, 6][6, 1]>, w: <f32[6, 5][5, 1]>",
                          "a = $mm(x, w)\nb = $relu(a)\nc = $arange(5)\nd = $add.Tensor(b, c)\ns = "
                          "$sort.default(d, 1, True)\ne = s[0]\nreturn (e, d)");
    for (const bool again : {false, true}) {
      const Since since;
      const auto run = default_compiler().make(options())(*graph);
      QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
      QCOMPARE(passes_ran(), !again);
      QCOMPARE(since.count("fxgraph_cache_hit"), std::int64_t{again});
      QCOMPARE(since.count("fxgraph_cache_miss"), std::int64_t{!again});
      QCOMPARE(since.count("fxgraph_cache_saved"), std::int64_t{!again});
      QCOMPARE(wrong_for(*graph, *run, {}), std::string());
    }
  }

  void values_of_constants_are_a_part_of_the_key() {
    auto graph = fx("x: <f32[2][1]>", "c: <f32[2][1]> = self.c\na = $mul.Tensor(x, c)\nreturn (a,)");
    for (const double value : {2.0, 3.0, 2.0}) {
      graph->attributes["c"] = f32({2}, {value, value});
      const auto run = default_compiler().make(options())(*graph);
      QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
      const auto out = (*run)({f32({2}, {1, 5})});
      QCOMPARE(elements((*out)[0]), (std::vector<double>{value, 5 * value}));
    }
  }

  /// A graph with symbolic sizes: code is kept with its guards, and sizes that were checked are not checked again.
  void guards_are_kept() {
    const auto graph = symbolic();
    const SymbolValues first{{"s0", 12}, {"s1", 4}}, second{{"s0", 20}, {"s1", 7}}, one{{"s0", 1}, {"s1", 5}};
    std::int64_t compiled = 0;
    for (const int process : {1, 2, 3}) {
      const Since since;
      BackendOptions how = options();
      std::int64_t told = 0;
      how.on_sizes = [&](const SizeCompilation&) { ++told; };
      const auto run = default_compiler().make(how)(*graph);
      QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
      QCOMPARE(since.count("fxgraph_cache_hit"), std::int64_t{process > 1});
      for (const SymbolValues& sizes : {first, second, one, first})
        QCOMPARE(wrong_for(*graph, *run, sizes), std::string());
      QCOMPARE(passes_ran(), process == 1);
      if (process == 1) compiled = told;
      QCOMPARE(told, compiled);
      QCOMPARE(wrong_for(*graph, *run, {{"s0", 30 + process}, {"s1", 9}}), std::string());
    }
  }

  /// A call of sub graphs, which are entries of their own.
  void sub_graphs_are_found_again() {
    auto graph = fx("p: <b8[][]>, x: <f32[4][1]>",
                    "t = self.true_graph_0\nf = self.false_graph_0\nc = torch.ops.higher_order.cond(p, t, f, (x,))\na: "
                    "<f32[4][1]> = c[0]\nb = $neg(a)\nreturn (a, b)");
    graph->children.emplace_back("true_graph_0", fx("x: <f32[4][1]>", "a = $sin(x)\nreturn (a,)"));
    graph->children.emplace_back("false_graph_0",
                                 fx("x: <f32[4][1]>", "c: <f32[4][1]> = self.c\na = $mul.Tensor(x, c)\nreturn (a,)"));
    for (const double factor : {3.0, 5.0})
      for (const bool again : {false, true}) {
        graph->children[1].second->attributes["c"] = f32({4}, {factor, 2, 1, 0});
        const Since since;
        const auto run = default_compiler().make(options())(*graph);
        QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
        // The branch without a constant is the same for both.
        QCOMPARE(since.count("fxgraph_cache_hit"), std::int64_t{again ? 3 : factor == 5});
        QCOMPARE(since.count("fxgraph_cache_miss"), std::int64_t{again ? 0 : factor == 5 ? 2 : 3});
        QCOMPARE(since.count("fxgraph_cache_bypass"), std::int64_t{0});
        QCOMPARE(passes_ran(), !again);
        for (const double p : {0.0, 1.0}) {
          const std::vector<Value> inputs{*Tensor::scalar(DType::Bool, p), f32({4}, {1, 2, 3, 4})};
          const auto expected = interpret(*graph, inputs), found = (*run)(inputs);
          QVERIFY2(bool(found), found ? "" : found.error().line().c_str());
          for (std::size_t i = 0; i < found->size(); ++i)
            QCOMPARE(wrong((*expected)[i], (*found)[i], {}), std::string());
        }
      }
  }

  /// A graph that is cut at a call whose size values decide, twice. The parts are kept, for all sizes that were met.
  void graphs_that_values_cut_are_found_again() {
    auto graph = fx("x: <f32[6][1]>, y: <f32[6][1]>",
                    "s = $sin(x)\nn: <i64[u0, 1][1, u0]> = $nonzero(s)\nm = $mul.Tensor(n, 2)\nt = $add.Tensor(y, "
                    "s)\nk: <i64[u1, 1][1, u1]> = $nonzero(t)\nl = $neg(k)\nreturn (m, l, s)");
    for (const bool again : {false, true}) {
      const Since since;
      const auto run = default_compiler().make(options())(*graph);
      QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
      for (const auto& x : {f32({6}, {1, 0, 2, 0, 0, 3}), f32({6}, {1, 1, 2, 1, 0, 3}), f32({6}, {0, 0, 0, 0, 0, 0}),
                            f32({6}, {0, 0, 0, 0, 0, 1})}) {
        const std::vector<Value> inputs{x, f32({6}, {1, 0, 0, 0, 0, 0})};
        const auto expected = interpret(*graph, inputs), found = (*run)(inputs);
        QVERIFY2(bool(found), found ? "" : found.error().line().c_str());
        for (std::size_t i = 0; i < found->size(); ++i) QCOMPARE(wrong((*expected)[i], (*found)[i], {}), std::string());
      }
      QCOMPARE(since.count("fxgraph_cache_bypass"), std::int64_t{0});
      QCOMPARE(passes_ran(), !again);
      QVERIFY(again ? since.count("fxgraph_cache_hit") >= 3 : since.count("fxgraph_cache_saved") >= 3);
      QCOMPARE(since.count(again ? "fxgraph_cache_miss" : "fxgraph_cache_hit"), std::int64_t{0});
    }
    // Sizes that no kept code is for: the part is made again from the graph.
    const auto run = default_compiler().make(options())(*graph);
    QVERIFY(bool(run));
    const std::vector<Value> inputs{f32({6}, {1, 1, 2, 1, 5, 3}), f32({6}, {1, 1, 1, 1, 1, 1})};
    const auto expected = interpret(*graph, inputs), found = (*run)(inputs);
    QVERIFY2(bool(found), found ? "" : found.error().line().c_str());
    for (std::size_t i = 0; i < found->size(); ++i) QCOMPARE(wrong((*expected)[i], (*found)[i], {}), std::string());
  }

  void a_cache_that_cannot_keep_a_graph_says_why() {
    auto graph = fx("p: <b8[][]>, x: <f32[4][1]>",
                    "t = self.true_graph_0\nf = self.false_graph_0\nc = torch.ops.higher_order.cond(p, t, f, (x,))\na: "
                    "<f32[4][1]> = c[0]\nreturn (a,)");
    graph->children.emplace_back("true_graph_0", fx("x: <f32[4][1]>", "a = $sin(x)\nreturn (a,)"));
    graph->children.emplace_back(
        "false_graph_0",
        fx("x: <f32[4][1]>", "c: <f32[5000000][1]> = self.c\ns = $sum(c)\na = $mul.Tensor(x, s)\nreturn (a,)"));
    graph->children[1].second->attributes["c"] = *Tensor::zeros(DType::Float32, {5'000'000});
    const Since since;
    const auto run = default_compiler().make(options())(*graph);
    QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
    QCOMPARE(since.count("fxgraph_cache_bypass"), std::int64_t{1});
    QCOMPARE(since.last_reason(), std::string("constants of 20000000 bytes and more were made"));
    const ConfigScope strict(*patched_config({{"strict_autograd_cache", "true"}}));
    const auto refused = default_compiler().make(options())(*graph);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("cache.bypass"));
  }

  void an_unreadable_entry_is_made_again() {
    const auto graph = fx("x: <f32[8][1]>", "a = $sin(x)\nreturn (a,)");
    QVERIFY(bool(default_compiler().make(options())(*graph)));
    const std::string key = cache_log().events().back().key;
    const CodeStore store;
    for (const bool signed_too : {false, true}) {
      CodeStore other;
      const auto bytes = other.find(key);
      QVERIFY(bytes);
      std::string broken = *bytes;
      if (signed_too)
        broken.resize(broken.size() - 7);
      else
        broken = "PTG1 nonsense";
      QVERIFY(other.put(key, broken, "graph"));
      const Since since;
      const auto run = default_compiler().make(options())(*graph);
      QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
      QCOMPARE(since.count("fxgraph_cache_miss"), std::int64_t{1});
      QCOMPARE(since.count("fxgraph_cache_saved"), std::int64_t{1});
      QCOMPARE(wrong_for(*graph, *run, {}), std::string());
    }
  }

  /// Training: the second process has neither joint graph nor passes, and the same gradients.
  void a_program_is_found_again() {
    Artefact artefact = Artefact::of_graph(std::shared_ptr<const Graph>(
        fx("x: <f32[4, 3][3, 1]>, w: <f32[3, 2][2, 1]>, n: <f32[2][1]>",
           "a = $mm(x, w)\nb = $tanh(a)\nm = $add_.Tensor(n, 1)\nc = $mul.Tensor(b, m)\ns = $sum(c)\nreturn (s, b)")));
    artefact.kind = ArtefactKind::Graph;
    const auto io = [] {
      TensorFile file;
      file.tensors["input.0"] = f32({4, 3}, {1, 2, 3, 4, 5, 6, -1, -2, -3, 0.5, 0.25, 0});
      file.tensors["input.1"] = f32({3, 2}, {0.1, 0.2, 0.3, -0.1, -0.2, -0.3});
      file.tensors["input.2"] = f32({2}, {1, 2});
      file.tensors["input.1"].requires_grad = true;
      return file;
    };
    std::map<std::string, std::vector<double>> first;
    for (const bool again : {false, true}) {
      const Since since;
      const BackendOptions how = options();
      RunOptions run{.aot = {.train = true}};
      run.forward = run.backward = default_compiler().make(how);
      run.cache = default_compiler().cache(how);
      QVERIFY(run.cache);
      auto function = TrainedFunction::make(artefact, io(), run);
      QVERIFY2(bool(function), function ? "" : function.error().line().c_str());
      QCOMPARE(since.count("autograd_cache_hit"), std::int64_t{again});
      QCOMPARE(since.count("autograd_cache_saved"), std::int64_t{!again});
      QCOMPARE(since.count("fxgraph_cache_hit"), std::int64_t{again ? 2 : 0});
      QCOMPARE(function->graphs() == nullptr, again);
      QCOMPARE(passes_ran(), !again);
      std::map<std::string, std::vector<double>> found;
      const auto out = function->step();
      QVERIFY2(bool(out), out ? "" : out.error().line().c_str());
      for (const auto& [name, tensor] : out->tensors) found[name] = elements(tensor);
      QVERIFY(found.contains("grad.input.1") && found.contains("input_after.2"));
      if (!again) first = found;
      QCOMPARE(found, first);
    }
  }

  /// With freezing, values of parameters are a part of the key.
  void frozen_parameters_are_found_again() {
    auto graph = fx("x: <f32[4, 3][3, 1]>, p_w: <f32[3, 2][2, 1]>",
                    "h = $mul.Tensor(p_w, 2)\na = $mm(x, h)\nb = $tanh(a)\nreturn (b,)");
    for (Node* node : graph->placeholders())
      if (node->name() == "p_w") node->note = "ParamAOTInput(target='w')";
    Artefact artefact = Artefact::of_graph(std::shared_ptr<const Graph>(std::move(graph)));
    artefact.kind = ArtefactKind::Graph;
    const ConfigScope freezing(*patched_config({{"freezing", "true"}}));
    for (const auto& [weight, hit] : {std::pair{0.1, false}, {0.1, true}, {0.2, false}, {0.1, true}}) {
      TensorFile io;
      io.tensors["input.0"] = f32({4, 3}, {1, 2, 3, 4, 5, 6, -1, -2, -3, 0.5, 0.25, 0});
      io.tensors["param.w"] = f32({3, 2}, {weight, 0.2, 0.3, -0.1, -0.2, -0.3});
      const Since since;
      BackendOptions how = options();
      how.fixed_parameters = true;
      RunOptions run{.aot = {.train = false}};
      run.forward = default_compiler().make(how);
      run.cache = default_compiler().cache(how);
      const auto out = run_program(artefact, io, run);
      QVERIFY2(bool(out), out ? "" : out.error().line().c_str());
      QCOMPARE(static_cast<float>(elements(*out->find("output.0"))[0]),
               std::tanh(static_cast<float>(2 * (weight + 2 * 0.3 + 3 * -0.2))));
      QCOMPARE(since.count("autograd_cache_bypass"), std::int64_t{0});
      QCOMPARE(since.count("autograd_cache_hit"), std::int64_t{hit});
      QCOMPARE(since.count("fxgraph_cache_hit"), std::int64_t{hit});
    }
  }

  /// Each in a process of its own: an entry serves all sizes for which the guards of AOTAutograd's graphs hold.
  void new_sizes_find_the_program() {
    for (const auto& [rows, hit] :
         {std::pair<std::int64_t, bool>{9, false}, {12, true}, {5, false}, {20, true}, {5, true}}) {
      Artefact artefact = Artefact::of_graph(std::shared_ptr<const Graph>(
          fx("s0: 'Sym(s0)', x: <f32[s0, 3][3, 1]>", "a = $slice.Tensor(x, 0, 0, 8)\nb = $neg(a)\nreturn (b,)")));
      artefact.kind = ArtefactKind::Graph;
      TensorFile io;
      io.tensors["input.0"] = *Tensor::scalar(DType::Int64, static_cast<double>(rows));
      io.tensors["input.1"] = f32({rows, 3}, std::vector<double>(static_cast<std::size_t>(rows * 3), 2));
      const Since since;
      const BackendOptions how = options();
      RunOptions run{.aot = {.train = false}};
      run.forward = default_compiler().make(how);
      run.cache = default_compiler().cache(how);
      const auto out = run_program(artefact, io, run);
      QVERIFY2(bool(out), out ? "" : out.error().line().c_str());
      QCOMPARE(elements(*out->find("output.0")),
               std::vector<double>(static_cast<std::size_t>(std::min<std::int64_t>(rows, 8) * 3), -2));
      QCOMPARE(since.count("autograd_cache_hit"), std::int64_t{hit});
      QCOMPARE(since.count("autograd_cache_saved"), std::int64_t{!hit});
    }
  }

  void keys_say_where_they_differ() {
    const KeyParts a{{"graph", "x\ny\nz\n"}, {"options", "train=true\n"}, {"program", "1"}};
    const KeyParts b{{"graph", "x\nY\nz\n"}, {"options", "train=true\n"}, {"program", "2"}};
    QVERIFY(key_of(a) != key_of(b));
    const auto differences = key_differences(a, b);
    QCOMPARE(differences.size(), std::size_t{2});
    QCOMPARE(differences[0].part, std::string("graph"));
    QCOMPARE(differences[0].lines, (std::vector<std::string>{"- y", "+ Y"}));
    QVERIFY(key_differences(a, a).empty());
  }
};

QTEST_GUILESS_MAIN(TestGraphCache)
#include "test_graph_cache.moc"
