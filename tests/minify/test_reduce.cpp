// The test plants a wrong rule for one operator. At most three calls may remain, the guilty one among them.
#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <thread>

#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/ir/verify.h"
#include "core/load/pickle.h"
#include "core/load/session.h"
#include "core/minify/reduce_graph.h"
#include "core/minify/repro.h"
#include "core/minify/start.h"
#include "core/ops/record/record.h"
#include "tests/support/corpus.h"
#include "tests/support/fx.h"
#include "tests/support/result.h"
#include "tests/support/values.h"

namespace partita::minify {
namespace {

enum Fault : int { Wrong, Crash, Hang };

/// The interpreter with a wrong rule for one operator.
CompileFn faulty(const std::string& op, Fault fault) {
  return [op = Op::torch(op), fault](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&graph, op, fault](std::vector<Value> inputs) {
      InterpOptions options;
      options.check_inputs = false;
      options.evaluate = [op, fault](const Node& n, std::vector<Value> args, ValueKwargs kwargs,
                                     const EvalContext& context) -> Result<Value> {
        TRY(Value v, evaluate(n.op(), std::move(args), std::move(kwargs), context, &n));
        if (!n.is(op)) return v;
        if (fault == Crash) std::raise(SIGSEGV);
        while (fault == Hang) std::this_thread::sleep_for(std::chrono::seconds(1));
        if (const auto* list = v.get<ValueList>()) {
          ValueList wrong = *list;
          TRY(wrong[0], evaluate(Op::torch("aten.mul.Tensor"), {wrong[0], Value(1.05)}, {}));
          return Value(std::move(wrong));
        }
        return evaluate(Op::torch("aten.mul.Tensor"), {v, Value(1.05)}, {});
      };
      return interpret(graph, std::move(inputs), options);
    });
  };
}

Oracle oracle_for(const std::string& op, Fault fault) {
  Oracle o = fault == Wrong ? accuracy_oracle("planted", faulty(op, fault), {}, 1)
                            : crash_oracle("planted", faulty(op, fault));
  o.limits.seconds = fault == Hang ? 4 : 60;
  return o;
}

std::size_t count(const Graph& graph, const std::string& op) {
  std::size_t n = 0;
  for (const Node* node : graph) n += node->is(Op::torch(op));
  return n;
}

/// An oracle that fails if the graph has an operator; it costs nothing.
Oracle holds(const std::string& op) {
  Oracle o;
  o.question = "holds " + op;
  o.judge = [op](const Candidate& c, const Progress*) -> Result<Verdict> {
    return count(*c.graph, op) > 0 ? Verdict(Failure{"holds", {}, {}, {}}) : Verdict();
  };
  return o;
}

/// Loads a graph, with random inputs and constants.
Start load_graph(const std::filesystem::path& path) {
  const auto loaded = partita::load(path.string());
  if (!loaded) throw std::runtime_error(loaded.error().line());
  auto start = make_start(**loaded->pick(""), TensorFile(), 7, false);
  if (!start) throw std::runtime_error(start.error().line());
  return *std::move(start);
}

std::unique_ptr<Graph> branches() {
  return testing::fx("x: <f32[4, 6][6, 1]>, w: <f32[6, 6][6, 1]>",
                     "a: <f32[4, 6][6, 1]> = $mm(x, w)\nb: <f32[4, 6][6, 1]> = $tanh(a)\n"
                     "c: <f32[4, 6][6, 1]> = $exp(a)\nd: <f32[4, 6][6, 1]> = $mul.Tensor(b, c)\n"
                     "e: <f32[4][1]> = $sum.dim_IntList(d, [1])\nf: <f32[4, 6][6, 1]> = $sigmoid(d)\nreturn (e, f)");
}
std::vector<Value> branch_inputs() {
  return *random_inputs(*branches(), 3);
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> out;
  for (const Node* node : graph)
    if (node->op()->is_call()) out.push_back(node->op()->name);
  return out;
}

}  // namespace

class TestReduce : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void planted_faults_data() {
    QTest::addColumn<QString>("path");
    QTest::addColumn<QString>("op");
    QTest::addColumn<int>("fault");
    // A hang is waited for, so only the smallest graphs are tried with hangs.
    const auto rows = [](const char* path, const char* op, bool hang = false) {
      for (const auto& [fault, name] : {std::pair(Wrong, "wrong"), std::pair(Crash, "crash"), std::pair(Hang, "hang")})
        if (fault != Hang || hang) QTest::addRow("%s %s %s", path, op, name) << path << op << static_cast<int>(fault);
    };
    rows("models/gpt2/graphs/joint.py", "aten.tanh.default", true);
    rows("models/resnet/graphs/joint.py", "aten.threshold_backward.default");
    rows("models/t5/graphs/joint.py", "aten.rsqrt.default");
    rows("models/swin/graphs/joint.py", "aten.native_layer_norm_backward.default");
    rows("big/gpt12/joint.py", "aten.tanh.default");
  }

  void planted_faults() {
    QFETCH(QString, path);
    QFETCH(QString, op);
    QFETCH(int, fault);
    const auto corpus = testing::corpus();
    if (corpus.empty()) QSKIP(testing::no_corpus);
    const Start start = load_graph(corpus / path.toStdString());
    const auto reduced =
        reduce(start.graph, start.inputs, oracle_for(op.toStdString(), static_cast<Fault>(fault)), {.jobs = 2});
    QVERIFY_RESULT(reduced);
    qInfo("%zu of %zu calls, %zu tries, %.2f s, %.0f nodes/s", reduced->calls, reduced->start_calls, reduced->tries,
          reduced->seconds, static_cast<double>(reduced->nodes_tried) / reduced->seconds);
    QVERIFY2(reduced->calls <= 3, print(*reduced->graph).c_str());
    QVERIFY(count(*reduced->graph, op.toStdString()) >= 1);
    QCOMPARE(reduced->failure.what, std::string(fault == Wrong ? "values" : fault == Crash ? "signal 11" : "timeout"));
    QVERIFY(verify(*reduced->graph).empty());
  }

  void keeps_to_the_failure_it_started_from() {
    // The start fails by a wrong value. With tanh alone, exp crashes in this compiler, which is another failure and
    // must not count.
    CompileFn compile = [](const Graph& graph) -> Result<CompiledFn> {
      if (count(graph, "aten.tanh.default") == 0) return input_error("other.failure", "another failure");
      return faulty("aten.tanh.default", Wrong)(graph);
    };
    const auto reduced = reduce(branches(), branch_inputs(), accuracy_oracle("two faults", compile, {}, 1));
    QVERIFY_RESULT(reduced);
    QCOMPARE(ops_of(*reduced->graph), std::vector<std::string>{"aten.tanh.default"});
  }

  void error_that_names_its_node_is_found_at_once() {
    CompileFn compile = [](const Graph& graph) -> Result<CompiledFn> {
      for (const Node* node : graph)
        if (node->is(Op::torch("aten.exp.default")))
          return unsupported("test.exp", "no rule for exp", Where{.node = node->name()});
      return faulty("aten.none.default", Wrong)(graph);
    };
    const auto reduced = reduce(branches(), branch_inputs(), crash_oracle("names it", compile), {.simplify = false});
    QVERIFY_RESULT(reduced);
    QCOMPARE(ops_of(*reduced->graph), std::vector<std::string>{"aten.exp.default"});
    QCOMPARE(reduced->failure.op, std::string("aten.exp.default"));
    QCOMPARE(reduced->tries, std::size_t{3});
  }

  void two_needed_calls_both_stay() {
    Oracle both = holds("aten.tanh.default");
    both.judge = [](const Candidate& c, const Progress*) -> Result<Verdict> {
      return count(*c.graph, "aten.tanh.default") && count(*c.graph, "aten.sigmoid.default")
                 ? Verdict(Failure{"holds", {}, {}, {}})
                 : Verdict();
    };
    const auto reduced = reduce(branches(), branch_inputs(), both);
    QVERIFY_RESULT(reduced);
    QCOMPARE(reduced->calls, std::size_t{2});
  }

  void sizes_shrink_together() {
    const auto reduced = reduce(branches(), branch_inputs(), holds("aten.mm.default"));
    QVERIFY_RESULT(reduced);
    const Node* mm = reduced->graph->find("a");
    QVERIFY(mm);
    QCOMPARE(annotation(mm->meta), std::string("f32[1, 1][1, 1]cpu"));
    for (const Value& v : reduced->inputs) QCOMPARE(testing::elements(v), std::vector<double>{0});
  }

  void symbols_shrink() {
    const auto graph = testing::fx("s0: \"Sym(s0)\", x: <f32[s0, 3][3, 1]>",
                                   "a: <f32[s0, 3][3, 1]> = $sin(x)\nb: <f32[s0, 3][3, 1]> = $tanh(a)\nreturn (b,)");
    std::vector<Value> inputs{Value(std::int64_t{8}), testing::f32({8, 3}, std::vector<double>(24, 0.5))};
    const auto reduced = reduce(std::shared_ptr<const Graph>(graph->clone()), inputs, holds("aten.tanh.default"));
    QVERIFY_RESULT(reduced);
    const Tensor* t = reduced->inputs.back().get<Tensor>();
    QVERIFY(t);
    QCOMPARE(t->sizes, (Sizes{2, 3}));
  }

  void tuples_are_replaced_at_their_getitems() {
    const auto graph = testing::fx("x: <f32[4, 6][6, 1]>",
                                   "a = $sort(x)\nv: <f32[4, 6][6, 1]> = a[0]\ni: <i64[4, 6][6, 1]> = a[1]\n"
                                   "b: <f32[4, 6][6, 1]> = $tanh(v)\nreturn (b, i)");
    const auto inputs = *random_inputs(*graph, 1);
    const std::shared_ptr<const Graph> shared(graph->clone());
    const auto after = reduce(shared, inputs, holds("aten.tanh.default"), {.simplify = false});
    QVERIFY_RESULT(after);
    QCOMPARE(ops_of(*after->graph), std::vector<std::string>{"aten.tanh.default"});
    QCOMPARE(testing::elements(after->inputs[0])[0] <= testing::elements(after->inputs[0])[1], true);
    const auto before = reduce(shared, inputs, holds("aten.sort.default"));
    QVERIFY_RESULT(before);
    QCOMPARE(before->calls, std::size_t{1});
  }

  void a_graph_that_does_not_fail_is_refused() {
    const auto reduced = reduce(branches(), branch_inputs(), holds("aten.cos.default"));
    QVERIFY(!reduced);
    QCOMPARE(reduced.error().code, std::string("minify.passes"));
    QCOMPARE(reduced.error().exit_code(), 1);
  }

  void random_calls_become_inputs_before_values_are_compared() {
    const auto graph = testing::fx("x: <f32[8][1]>",
                                   "r: <f32[8][1]> = $rand_like(x)\na: <f32[8][1]> = $add.Tensor(x, r)\n"
                                   "b: <f32[8][1]> = $tanh(a)\nreturn (b,)");
    const auto reduced = reduce(std::shared_ptr<const Graph>(graph->clone()), *random_inputs(*graph, 1),
                                accuracy_oracle("planted", faulty("aten.tanh.default", Wrong), {}, 1));
    QVERIFY_RESULT(reduced);
    QCOMPARE(ops_of(*reduced->graph), std::vector<std::string>{"aten.tanh.default"});
  }

  void answers_are_remembered() {
    std::map<std::uint64_t, std::string> memory;
    ReduceOptions options;
    options.memory.recall = [&](std::uint64_t c) -> std::optional<std::string> {
      const auto it = memory.find(c);
      return it == memory.end() ? std::nullopt : std::optional(it->second);
    };
    options.memory.remember = [&](std::uint64_t c, const std::string& answer) { memory[c] = answer; };
    const Oracle oracle = oracle_for("aten.tanh.default", Wrong);
    const auto first = reduce(branches(), branch_inputs(), oracle, options);
    QVERIFY_RESULT(first);
    const auto again = reduce(branches(), branch_inputs(), oracle, options);
    QVERIFY_RESULT(again);
    QCOMPARE(again->tries, std::size_t{1});  // only the confirmation
    QCOMPARE(print(*again->graph), print(*first->graph));
  }

  void can_be_watched_and_ended() {
    std::vector<Event> events;
    ReduceOptions options;
    options.event = [&](const Event& e) { events.push_back(e); };
    QVERIFY_RESULT(reduce(branches(), branch_inputs(), holds("aten.tanh.default"), options));
    QVERIFY(events.size() > 3);
    QCOMPARE(events.front().calls, std::size_t{6});
    QVERIFY(events.back().calls == 1 && events.back().graph);

    Steering steering;
    steering.accept_now = true;
    options.steering = &steering;
    const auto accepted = reduce(branches(), branch_inputs(), holds("aten.tanh.default"), options);
    QVERIFY_RESULT(accepted);
    QCOMPARE(accepted->calls, std::size_t{6});

    Progress progress;
    progress.stop = true;
    options = {};
    options.progress = &progress;
    const auto cancelled = reduce(branches(), branch_inputs(), holds("aten.tanh.default"), options);
    QVERIFY(!cancelled);
    QCOMPARE(cancelled.error().fault, partita::Fault::Cancelled);
  }

  void commands_judge_by_exit_code_or_output() {
    auto by_code = command_oracle("grep -q aten.exp {} && test -s $(dirname {})/inputs.safetensors", "", {});
    QVERIFY_RESULT(by_code);
    const auto reduced = reduce(branches(), branch_inputs(), *by_code, {.simplify = false});
    QVERIFY_RESULT(reduced);
    QCOMPARE(ops_of(*reduced->graph), std::vector<std::string>{"aten.exp.default"});
    auto by_text = command_oracle("cat {}; exit 3", "ops.aten.sigm[a-z]+", {});
    QVERIFY_RESULT(by_text);
    const auto other = reduce(branches(), branch_inputs(), *by_text, {.simplify = false});
    QVERIFY_RESULT(other);
    QCOMPARE(ops_of(*other->graph), std::vector<std::string>{"aten.sigmoid.default"});
    QVERIFY(!command_oracle("true", "", {}));
    QVERIFY(!command_oracle("true {}", "(", {}));
  }

  void another_process_judges() {
    Oracle oracle;
    oracle.question = "crash elsewhere";
    oracle.program = [](const std::string& folder) -> Result<ProcessWork> {
      return ProcessWork{
          .words = {PARTITA_BINARY, "minify", folder + "/graph.py", "--inputs", folder + "/inputs.safetensors",
                    "--check", "crash:interp", "--plant", "aten.exp.default:crash", "--once", "--json"},
          .body = {}};
    };
    oracle.limits = {.seconds = 20};
    for (const int jobs : {1, 3}) {
      const auto reduced = reduce(branches(), branch_inputs(), oracle, {.jobs = jobs, .simplify = false});
      QVERIFY_RESULT(reduced);
      QCOMPARE(ops_of(*reduced->graph), std::vector<std::string>{"aten.exp.default"});
      QCOMPARE(reduced->failure.what, std::string("signal 11"));
    }
  }

  void repro_holds_the_graph_and_nothing_else() {
    const auto graph = testing::fx("x: <f32[4][1]>",
                                   "# File: /home/somebody/secret.py:5 in forward, code: h = x.tanh()\n"
                                   "a: <f32[4][1]> = $tanh(x)\nreturn (a,)");
    const auto reduced = reduce(std::shared_ptr<const Graph>(graph->clone()), {testing::f32({4}, {1, 2, 3, 4})},
                                oracle_for("aten.tanh.default", Wrong));
    QVERIFY_RESULT(reduced);
    QTemporaryDir dir;
    const std::string folder = dir.filePath("out").toStdString();
    ReproText text;
    text.check = "accuracy:planted";
    text.again = "partita minify graph.py --once";
    text.version = "partita";
    QVERIFY_RESULT(write_repro(*reduced, folder, text));
    for (const char* name : {"graph.py", "repro.py", "inputs.safetensors", "graph.input", "README.md"}) {
      QFile file(QString::fromStdString(folder + "/" + name));
      QVERIFY2(file.open(QIODevice::ReadOnly), name);
      QVERIFY2(!file.readAll().contains("somebody"), name);
    }
    const auto back = partita::load(folder + "/graph.py");
    QVERIFY_RESULT(back);
    QVERIFY_RESULT((*back->pick(""))->graph());
    QFile pickle(QString::fromStdString(folder + "/graph.input"));
    QVERIFY(pickle.open(QIODevice::ReadOnly));
    const auto metas = read_dumped_inputs(pickle.readAll().toStdString());
    QVERIFY_RESULT(metas);
    QCOMPARE(metas->size(), reduced->inputs.size());
  }
};

}  // namespace partita::minify

QTEST_GUILESS_MAIN(partita::minify::TestReduce)
#include "test_reduce.moc"
