// Compiled code in another process gives what it gives in this one, and its end is an error with a place.
#include <QElapsedTimer>
#include <QtTest>
#include <set>
#include <thread>

#include "codegen/backends.h"
#include "core/base/whereabouts.h"
#include "core/compare/per_node.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Case {
  const char* name;
  const char* parameters;
  const char* lines;
  std::vector<Value> inputs;
};

const Tensor base = f32({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"pointwise",
       "x: <f32[2, 2][2, 1]>",
       "a: <f32[2, 2][2, 1]> = $sin(x)\nreturn (a, None, 3)",
       {f32({2, 2}, {1, 2, 3, 4})}},
      {"strided input",
       "x: <f32[3, 4][1, 3]>",
       "a: <f32[3, 4][1, 3]> = $exp(x)\nb: <f32[3][1]> = $sum.dim_IntList(a, [1])\nreturn (b,)",
       {base.view_as({3, 4}, {1, 3}, 0)}},
      {"inputs that share memory",
       "x: <f32[3][1]>, y: <f32[3][1]>",
       "a: <f32[3][1]> = $add.Tensor(x, y)\nc = $copy_(x, a)\nreturn (a,)",
       {base.view_as({3}, {1}, 0), base.view_as({3}, {1}, 6)}},
      {"an input is written",
       "x: <f32[3][1]>",
       "a: <f32[3][1]> = $mul.Tensor(x, 2.0)\nc = $copy_(x, a)\nreturn (a,)",
       {f32({3}, {1, 2, 3})}},
      {"an output is an input",
       "x: <f32[2, 3][3, 1]>",
       "a: <f32[6][1]> = $view(x, [6])\nreturn (a, x)",
       {f32({2, 3}, {1, 2, 3, 4, 5, 6})}},
      {"nothing in it", "x: <f32[0, 3][3, 1]>", "a: <f32[0, 3][3, 1]> = $neg(x)\nreturn (a,)", {f32({0, 3}, {})}},
      {"numbers",
       "x: <f32[s0][1]>, n: \"Sym(s0)\"",
       "a: <f32[s0][1]> = $add.Tensor(x, n)\nreturn (a, n)",
       {f32({3}, {1, 2, 3}), std::int64_t{3}}},
      {"random", "x: <f32[8][1]>", "a: <f32[8][1]> = $rand_like(x)\nreturn (a,)", {f32({8}, std::vector<double>(8))}},
      {"an error",
       "x: <f32[5][1]>, i: <i64[2][1]>",
       "r: <f32[2][1]> = $index.Tensor(x, [i])\nreturn (r,)",
       {f32({5}, {1, 2, 3, 4, 5}), i64({2}, {1, 7})}},
      {"a refusal",
       "x: <f32[2][1]>",
       "a: <f32[2][1]> = torch.ops.mylib.unknown.default(x)\nreturn (a,)",
       {f32({2}, {1, 2})}},
  };
  return all;
}

/// Two runs of one compiled graph, as text: compilations for its sizes, results, what became of the inputs, or the
/// error.
QString runs(const Graph& graph, const std::vector<Value>& inputs, BackendOptions options) {
  QString text;
  options.on_sizes = [&](const SizeCompilation& c) { text += QString::fromStdString(partita::text(c)); };
  const auto say = [&](const char* what, const std::vector<Value>& values) {
    for (const Value& v : values) {
      text += QString("%1:").arg(what);
      for (const double x : elements(v)) text += QString(" %1").arg(x, 0, 'g', 17);
      if (const auto* t = v.get<Tensor>())
        for (const std::int64_t s : t->strides) text += QString(" /%1").arg(s);
      text += "\n";
    }
  };
  const auto run = default_compiler().make(options)(graph);
  if (!run) return QString::fromStdString(run.error().code + " " + run.error().line());
  for (int i = 0; i < 2; ++i) {
    auto own = copy_values(inputs);
    if (!own) return "no copies";
    const std::vector<Value> given = *own;
    const auto found = (*run)(*std::move(own));
    if (!found) return text + QString::fromStdString(found.error().code + " " + found.error().line());
    say("result", *found);
    say("input", given);
  }
  return text;
}

BackendOptions in_worker(const std::string& plant = {}) {
  BackendOptions options;
  options.worker = WorkerOptions{.program = PARTITA_BINARY, .plant = plant};
  return options;
}

}  // namespace

class TestWorker : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void it_gives_what_this_process_gives_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < cases().size(); ++i) QTest::newRow(cases()[i].name) << static_cast<int>(i);
  }
  void it_gives_what_this_process_gives() {
    QFETCH(int, index);
    const Case& c = cases()[static_cast<std::size_t>(index)];
    const auto graph = fx(c.parameters, c.lines);
    for (const bool one_generator : {false, true}) {
      BackendOptions here, there = in_worker();
      if (one_generator) {
        here.generator = std::make_shared<Generator>(7);
        there.generator = std::make_shared<Generator>(7);
      }
      const QString expected = runs(*graph, c.inputs, here);
      QCOMPARE(runs(*graph, c.inputs, there), expected);
      QVERIFY(!expected.isEmpty());
      if (one_generator) QCOMPARE(there.generator->random(), here.generator->random());
    }
  }

  void the_worker_knows_the_sizes_of_symbols() {
    const auto graph = fx("x: <f32[s0][1]>, y: <f32[s1][1]>", "a: <f32[s0][1]> = $mul.Tensor(x, y)\nreturn (a,)");
    const std::vector<Value> inputs = {f32({3}, {1, 2, 3}), f32({3}, {2, 3, 4})};
    graph->shapes->set_hint("s0", 3);
    graph->shapes->set_hint("s1", 3);
    graph->shapes->set_range("s0", {3, 9});
    const QString expected = runs(*graph, inputs, {});
    QVERIFY2(expected.contains("result: 2 6 12"), qPrintable(expected));
    QCOMPARE(runs(*graph, inputs, in_worker()), expected);
  }

  void constants_and_several_graphs_share_one_process() {
    const auto graph = fx("x: <f32[3][1]>",
                          "k: <f32[3][1]> = self._tensor_constant0\na: <f32[3][1]> = $mul.Tensor(x, k)\nreturn (a,)");
    graph->attributes["_tensor_constant0"] = f32({3}, {2, 3, 4});
    const auto other = fx("x: <f32[3][1]>", "a: <f32[3][1]> = $neg(x)\nreturn (a,)");
    const CompileFn compile = default_compiler().make(in_worker());
    QVERIFY(bool(compile(*graph)));  // is released at once
    const auto first = compile(*graph), second = compile(*other);
    QVERIFY(first && second);
    for (int i = 0; i < 2; ++i) {
      const auto a = (*first)({f32({3}, {1, 2, 3})}), b = (*second)({f32({3}, {1, 2, 3})});
      QVERIFY(a && b);
      QCOMPARE(elements((*a)[0]), (std::vector<double>{2, 6, 12}));
      QCOMPARE(elements((*b)[0]), (std::vector<double>{-1, -2, -3}));
    }
  }

  void after_a_death_comes_another_worker() {
    const auto bad = fx("x: <f32[3][1]>", "b: <f32[3][1]> = $sin(x)\nreturn (b,)");
    const auto good = fx("x: <f32[3][1]>", "a: <f32[3][1]> = $neg(x)\nreturn (a,)");
    const CompileFn compile = default_compiler().make(in_worker("aten.sin.default:crash"));
    for (int i = 0; i < 2; ++i) {
      QVERIFY(!compile(*bad));
      const auto run = compile(*good);
      QVERIFY(bool(run));
      const auto found = (*run)({f32({3}, {1, 2, 3})});
      QVERIFY(found && elements((*found)[0])[2] == -3);
    }
  }

  void a_death_has_a_place() {
    const auto graph = fx("x: <f32[3][1]>", "a: <f32[3][1]> = $neg(x)\nb: <f32[3][1]> = $sin(a)\nreturn (b,)");
    const CompileFn compile = default_compiler().make(in_worker("aten.sin.default:crash"));
    for (int i = 0; i < 2; ++i) {
      const auto run = compile(*graph);
      QVERIFY(!run && is_death(run.error()));
      QCOMPARE(run.error().where.node, std::string("b"));
      QCOMPARE(run.error().exit_code(), 4);
      const QString message = QString::fromStdString(run.error().message);
      QVERIFY2(message.startsWith("cpu ended: signal 11 (Segmentation fault) while compiling aten.sin.default (b);"),
               qPrintable(message));
    }
    BackendOptions nowhere = in_worker();
    nowhere.worker->program = "/nonexistent/partita";
    const auto refused = default_compiler().make(nowhere)(*graph);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("worker.start"));
  }

  void times_of_its_stages_come_back() {
    const auto graph = fx("x: <f32[3][1]>", "b: <f32[3][1]> = $sin(x)\nreturn (b,)");
    BackendOptions options = in_worker();
    options.config.fresh_cache = true;
    options.times = std::make_shared<StageTimes>();
    const auto run = default_compiler().make(options)(*graph);
    QVERIFY(run && (*run)({f32({3}, {1, 2, 3})}));
    std::set<std::string> stages;
    for (const auto& [stage, milliseconds] : options.times->all()) {
      stages.insert(stage);
      QVERIFY(milliseconds >= 0 && milliseconds < 1e5);
    }
    QVERIFY(stages.contains("plan") && stages.contains("post_grad_passes"));
  }

  void hangs_end_by_their_limit_or_on_request() {
    const auto graph = fx("x: <f32[3][1]>", "b: <f32[3][1]> = $sin(x)\nreturn (b,)");
    BackendOptions short_limit = in_worker("aten.sin.default:hang");
    short_limit.config.step_seconds = 0.5;
    const auto late = default_compiler().make(short_limit)(*graph);
    QVERIFY(!late && is_death(late.error()));
    QVERIFY(late.error().message.find("still running after 0.5 s while compiling aten.sin.default (b)") !=
            std::string::npos);
    Progress progress;
    BackendOptions patient = in_worker("aten.sin.default:hang");
    patient.progress = &progress;
    QElapsedTimer since_stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      since_stop.start();
      progress.stop = true;
    });
    const auto stopped = default_compiler().make(patient)(*graph);
    QVERIFY(!stopped);
    QCOMPARE(stopped.error().fault, Fault::Cancelled);
    QVERIFY2(since_stop.elapsed() < 1000, qPrintable(QString::number(since_stop.elapsed())));
  }

  void kernels_say_where_they_are() {
    const auto graph = fx("x: <i64[3][1]>, y: <i64[3][1]>",
                          "a: <i64[3][1]> = $div.Tensor_mode(x, y, rounding_mode='floor')\nreturn (a,)");
    Whereabouts page{};
    write_whereabouts_to(&page);
    const auto run = default_compiler().make({})(*graph);
    QVERIFY(bool(run));
    QVERIFY(std::string(page.what).starts_with("compiling 1 kernel"));
    const std::uint64_t before = page.notes;
    const auto fails = (*run)({i64({3}, {1, 2, 3}), i64({3}, {1, 0, 1})});
    write_whereabouts_to(nullptr);
    QVERIFY(!fails);
    QVERIFY(page.notes > before);
    QVERIFY2(std::string(page.what).starts_with("running kernel "), page.what);
    QCOMPARE(std::string(page.nodes), std::string("a"));
    const Diagnostic end = death("cpu", "signal 8 (Floating point exception)", page);
    QCOMPARE(end.where.node, std::string("a"));
  }
};

QTEST_GUILESS_MAIN(TestWorker)
#include "test_worker.moc"
