// Every row of the configuration takes part in what runs, and enters the key of stored code if it decides that.
#include <QtTest>

#include <fmt/format.h>

#include "codegen/backends.h"
#include "codegen/cuda/compile_cuda.h"
#include "codegen/cuda/cuda_kernel.h"
#include "codegen/cuda/matrix/unit.h"
#include "core/aot/aot.h"
#include "core/base/config.h"
#include "core/base/memory.h"
#include "core/load/session.h"
#include "core/ops/record/evaluate.h"
#include "core/store/code_store.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// A value for each row that is not its default's. A new row has none, and fails until it has one.
const std::map<std::string_view, std::string> changes = {
    {"threads", "2"},
    {"partitioner", "default"},
    {"memory_budget", "0"},
    {"decompositions", "default"},
    {"functionalize_rng", "true"},
    {"disable_passes", "share_common"},
    {"pass_order", "share_common,rewrite_post_grad"},
    {"fold_limit", "1KiB"},
    {"fuse", "false"},
    {"pack_parameters", "false"},
    {"freezing", "true"},
    {"freezing_discard_parameters", "true"},
    {"use_runtime_constant_folding", "false"},
    {"save_args", "/dev/null/none"},
    {"recompile_limit", "2"},
    {"force_disable_caches", "true"},
    {"fresh_cache", "true"},
    {"strict_autograd_cache", "true"},
    {"store", "/nowhere"},
    {"store_limit", "1GiB"},
    {"team_cache", "/nowhere/socket"},
    {"team_key", "/nowhere/key"},
    {"team_seconds", "0.25"},
    {"trace", "/nowhere"},
    {"cuda_path", "/nowhere"},
    {"cuda_architectures", "sm_86"},
    {"cuda_tf32", "true"},
    {"cuda_libraries", "false"},
    {"cudnn_benchmark", "false"},
    {"cuda_graphs", "true"},
    {"deterministic", "true"},
    {"device", "cpu"},
    {"python", "/nowhere/python"},
    {"python_import", "nothing"},
    {"operators", "/nowhere/operators"},
    {"python_seconds", "5"},
    {"python_memory", "1GiB"},
    {"step_seconds", "5"},
    {"memory_limit", "1GiB"},
    {"graph_limit", "9k"},
    {"loop_limit", "9k"},
    {"verify", Config().verify ? "false" : "true"},
};

/// The kernels and calls of a plan.
std::string planned(const char* parameters, const char* lines) {
  const auto graph = fx(parameters, lines);
  const auto made = default_compiler().stages({}).plan(*graph);
  if (!made) return made.error().line();
  return body(*made->first) +
         fmt::format("{} steps for {} threads", made->second.steps.size(), made->second.target.threads);
}

std::string trained(const char* parameters, const char* lines) {
  const auto made = aot(*fx(parameters, lines), nullptr, {.passes = false});
  if (!made) return made.error().line();
  return print(*made->partition.forward) + (made->partition.backward ? print(*made->partition.backward) : "");
}

/// The second result of a graph that may pack its weights, whose weights have changed since the first.
std::string after_a_change_of_weights() {
  const auto graph = fx("x: <f32[2, 64][64, 1]>, w: <f32[64, 64][64, 1]>", "a = $mm(x, w)\nreturn (a,)");
  graph->find("w")->note = "ParamAOTInput";
  BackendOptions options;
  options.fixed_parameters = true;
  const auto run = default_compiler().make(options)(*graph);
  if (!run) return run.error().line();
  const Tensor x = f32({2, 64}, std::vector<double>(128, 1)), w = f32({64, 64}, std::vector<double>(4096, 1));
  const auto first = (*run)({x, w});
  for (int i = 0; i < 4096; ++i) w.as<float>()[i] = 2;
  const auto second = (*run)({x, w});
  return second ? fmt::format("{}", elements((*second)[0])[0]) : second.error().line();
}

std::string said(const Result<Value>& result) {
  return result ? "a value" : result.error().code;
}

const char* const twice = "a = $sin(x)\nb = $sin(x)\nc = $mul.Tensor(a, b)\nreturn (c,)";
const char* const through_mm = "a = $mm(x, w)\nb = $sin(a)\nc = $exp(b)\nd = $sum(c)\nreturn (d,)";

/// What a program sees of each row: it differs from that of the default. A new row has none, and fails until it has.
const std::map<std::string_view, std::function<std::string()>> observed = {
    {"threads", [] { return planned("x: <f32[8][1]>", twice); }},
    {"partitioner", [] { return trained("x: <f32[4, 4][4, 1]>, w: <f32[4, 4][4, 1]>", through_mm); }},
    {"memory_budget", [] { return trained("x: <f32[4, 4][4, 1]>, w: <f32[4, 4][4, 1]>", through_mm); }},
    {"decompositions", [] { return trained("x: <f32[4][1]>", "a = $relu(x)\nb = $sum(a)\nreturn (b,)"); }},
    {"functionalize_rng",
     [] { return trained("x: <f32[4][1]>", "r = $rand([4])\na = $mul.Tensor(x, r)\nb = $sum(a)\nreturn (b,)"); }},
    {"disable_passes", [] { return planned("x: <f32[8][1]>", twice); }},
    {"pass_order",  // the second neg is undone before it is found to be the first one
     [] {
       return planned("x: <f32[8][1]>", "a = $neg(x)\nb = $neg(x)\nc = $neg(b)\nd = $mul.Tensor(a, c)\nreturn (d,)");
     }},
    {"save_args",
     [] {
       const auto run = default_compiler().make({})(*fx("x: <f32[2][1]>", "a = $sin(x)\nreturn (a,)"));
       const auto out = run ? (*run)({f32({2}, {1, 2})}) : Result<std::vector<Value>>(run.error());
       return out ? "a value" : out.error().code;
     }},
    {"fold_limit",
     [] { return planned("x: <f32[999][1]>", "a = $arange(999)\nb = $sin(a)\nc = $mul.Tensor(x, b)\nreturn (c,)"); }},
    {"fuse", [] { return planned("x: <f32[8][1]>", "a = $sin(x)\nb = $sum(a)\nc = $exp(a)\nreturn (b, c)"); }},
    {"pack_parameters", after_a_change_of_weights},
    {"freezing",
     [] {
       const auto graph = fx("p_w: <f32[2][1]>, x: <f32[2][1]>", "a = $neg(p_w)\nb = $mul.Tensor(x, a)\nreturn (b,)");
       const auto made = aot(*graph, nullptr, {.train = false, .values = {f32({2}, {1, 2}), f32({2}, {3, 4})}});
       return made ? body(*made->partition.forward) : made.error().line();
     }},
    {"cuda_path",
     [] {
       const auto found = codegen::find_cuda_compiler();
       return found ? found->path : found.error().line();
     }},
    {"cuda_architectures", [] { return codegen::cuda_architectures()->front().name; }},
    {"cuda_tf32", [] { return std::to_string(int(codegen::matrix_unit(DType::Float32))); }},
    {"deterministic", [] { return std::string(codegen::cuda_target().atomic_sums ? "atomic" : "in order"); }},
    {"device",
     [] {
       Artefact read = Artefact::of_graph(fx("x: \"f32[2][1]cuda:0\"", "a = $sin(x)\nreturn (a,)"));
       read.kind = ArtefactKind::Graph;
       const auto graph = read.graph();
       return graph ? print(**graph) : graph.error().line();
     }},
    {"store", [] { return StoreFile::default_file(); }},
    {"store_limit", [] { return std::to_string(StoreFile::open(StoreFile::default_file())->limit_bytes); }},
    {"memory_limit", [] { return std::string(check_fits_in_memory(std::size_t{2} << 30) ? "fits" : "too much"); }},
    {"graph_limit",
     [] {
       std::string product = "1";
       for (int k = 0; k < 10; ++k) product += fmt::format("*(s{} + s{})", 2 * k, 2 * k + 1);
       return std::string(SymExpr::parse(product) ? "parsed" : "too large");
     }},
    {"loop_limit",
     [] {
       const auto number = [](double v) { return Value(*Tensor::scalar(DType::Float64, v)); };
       return said(
           evaluate(Op::torch("aten.special_legendre_polynomial_p.default"), {number(0.5), number(20'000)}, {}));
     }},
    {"verify", [] { return std::string(config().verify ? "verified" : "not"); }},
};
/// Rows whose effect other tests see: the counts below, test_worker's hang, test_symbolic, test_cuda_driver and _cudnn,
/// test_torch_worker, test_torch_columns, test_pipeline of aot, and cli/operators.py.
const std::set<std::string_view> observed_elsewhere = {"cuda_graphs",
                                                       "cudnn_benchmark",
                                                       "cuda_libraries",
                                                       "force_disable_caches",
                                                       "recompile_limit",
                                                       "fresh_cache",
                                                       "strict_autograd_cache",
                                                       "step_seconds",
                                                       "python",
                                                       "python_import",
                                                       "operators",
                                                       "python_seconds",
                                                       "python_memory",
                                                       "freezing_discard_parameters",
                                                       "use_runtime_constant_folding",
                                                       "save_args",
                                                       "team_cache",
                                                       "team_key",
                                                       "team_seconds",
                                                       "trace"};

}  // namespace

class TestConfigKey : public QObject {
  Q_OBJECT

  static constexpr std::int64_t graph_and_code = 2;  ///< entries of one compilation

  struct Counts {
    std::int64_t made = 0, found = 0;
    bool operator==(const Counts&) const = default;
  };

  /// Compiles the graph and runs it; what the store then holds and was asked for.
  Counts after(const Config& config) {
    const auto graph = fx("x: <f32[64][1]>", "a = $sin(x)\nb = $exp(a)\nreturn (b,)");
    BackendOptions options;
    options.config = config;
    options.store = store_;
    const auto compiled = default_compiler().make(options)(*graph);
    const auto out = compiled ? (*compiled)({f32({64}, std::vector<double>(64, 0.5))})
                              : Result<std::vector<Value>>(compiled.error());
    if (!out) throw std::runtime_error(out.error().line());
    return counts();
  }

  static Counts counts() {
    auto file = StoreFile::open(StoreFile::default_file());
    if (!file) throw std::runtime_error(file.error().line());
    const auto stats = file->stats();
    if (!stats) throw std::runtime_error(stats.error().line());
    return {stats->compiled, stats->hits};
  }

  QTemporaryDir dir_;
  std::shared_ptr<CodeStore> store_;

 private Q_SLOTS:
  void initTestCase() {
    qputenv("PARTITA_STORE", dir_.path().toUtf8());
    qputenv("XDG_CONFIG_HOME", dir_.path().toUtf8());
    store_ = std::make_shared<CodeStore>();
  }

  void every_row_takes_part_data() {
    QTest::addColumn<QString>("name");
    for (const ConfigRow& row : config_rows())
      if (!observed_elsewhere.contains(row.name)) QTest::newRow(row.name.data()) << QString(row.name.data());
  }
  void every_row_takes_part() {
    QFETCH(QString, name);
    const std::string row = name.toStdString();
    QVERIFY2(observed.contains(row) && changes.contains(row), "a new row needs its effect here");
    const std::string before = observed.at(row)();
    const ConfigScope scope(*patched_config({{row, changes.at(row)}}));
    const std::string after = observed.at(row)();
    QVERIFY2(before != after, before.c_str());
  }

  /// Kernels for sizes that come after the call for which the configuration was patched.
  void code_that_is_made_later_keeps_its_configuration() {
    const auto graph = fx("x: <f32[s0][1]>, n: \"Sym(s0)\"", "a = $sin(x)\nb = $cos(a)\nreturn (b,)");
    for (const bool uses_store : {false, true}) {
      const Counts before = counts();
      std::optional<ConfigScope> scope(std::in_place, Config());
      if (!uses_store) scope.emplace(*patched_config({{"force_disable_caches", "true"}}, Config()));
      BackendOptions options;
      options.store = store_;
      const auto compiled = default_compiler().make(options)(*graph);
      scope.reset();
      QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
      const auto out = (*compiled)({f32({8}, std::vector<double>(8, 0.5)), std::int64_t{8}});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE(counts().made, before.made + (uses_store ? graph_and_code : 0));
    }
  }

  void a_plan_has_the_configuration_of_its_options() {
    const auto graph = fx("x: <f32[8][1]>", "a = $sin(x)\nreturn (a,)");
    for (const bool ordered : {false, true}) {
      BackendOptions options;
      options.config.deterministic = ordered;
      const auto planned = (*find_backend("cuda-emulate"))->stages(options).plan(*graph);
      QVERIFY2(planned, planned ? "" : planned.error().line().c_str());
      QCOMPARE(planned->second.target.atomic_sums, !ordered);
    }
  }

  void what_decides_code_enters_the_key() {
    const Counts first = after(Config());
    Counts before = after(Config());
    QCOMPARE(before, (Counts{first.made, first.found + graph_and_code}));
    for (const ConfigRow& row : config_rows()) {
      QVERIFY2(changes.contains(row.name), row.name.data());
      if (row.name == "save_args") continue;  // that folder cannot be made, so nothing compiles
      const auto config = patched_config({{std::string(row.name), changes.at(row.name)}}, Config());
      QVERIFY2(config, config ? "" : config.error().message.c_str());
      QVERIFY2(row.differs(*config), row.name.data());
      const Counts now = after(*config);
      const bool made = now.made == before.made + graph_and_code, found = now.found == before.found + graph_and_code;
      if (row.use == ConfigUse::Code)
        QVERIFY2(made && now.found == before.found, row.name.data());
      else if (row.name == "force_disable_caches")
        QCOMPARE(now, before);
      else
        QVERIFY2(found && now.made == before.made, row.name.data());
      before = now;
    }
    // Each of them is found again.
    const auto again = patched_config({{"fuse", "false"}}, Config());
    QCOMPARE(after(*again), (Counts{before.made, before.found + graph_and_code}));
  }
};

QTEST_GUILESS_MAIN(TestConfigKey)
#include "test_config_key.moc"
