// Compiled code is found again under another configuration exactly where that decides no code.
#include <QtTest>

#include "codegen/backends.h"
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
    {"memory_budget", "0.5"},
    {"decompositions", "core"},
    {"functionalize_rng", "true"},
    {"disable_passes", "fold_constants"},
    {"fold_limit", "1KiB"},
    {"fuse", "false"},
    {"pack_parameters", "false"},
    {"force_disable_caches", "true"},
    {"store", "/nowhere"},
    {"store_limit", "1GiB"},
    {"step_seconds", "5"},
    {"memory_limit", "1GiB"},
    {"graph_limit", "9k"},
    {"loop_limit", "9k"},
    {"verify", Config().verify ? "false" : "true"},
};

}  // namespace

class TestConfigKey : public QObject {
  Q_OBJECT

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
    auto file = StoreFile::open(StoreFile::default_file());
    if (!file) throw std::runtime_error(file.error().line());
    const auto stats = file->stats();
    if (!stats) throw std::runtime_error(stats.error().line());
    return {stats->compiled, stats->hits};
  }

  QTemporaryDir dir_;
  std::shared_ptr<CodeStore> store_;

 private slots:
  void initTestCase() {
    qputenv("PARTITA_STORE", dir_.path().toUtf8());
    qputenv("XDG_CONFIG_HOME", dir_.path().toUtf8());
    store_ = std::make_shared<CodeStore>();
  }

  void what_decides_code_enters_the_key() {
    QCOMPARE(after(Config()).made, 1);
    Counts before = after(Config());
    QCOMPARE(before, (Counts{1, 1}));
    for (const ConfigRow& row : config_rows()) {
      QVERIFY2(changes.contains(row.name), row.name.data());
      const auto config = patched_config({{std::string(row.name), changes.at(row.name)}}, Config());
      QVERIFY2(config, config ? "" : config.error().message.c_str());
      QVERIFY2(row.differs(*config), row.name.data());
      const Counts now = after(*config);
      const bool made = now.made == before.made + 1, found = now.found == before.found + 1;
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
    QCOMPARE(after(*again), (Counts{before.made, before.found + 1}));
  }
};

QTEST_GUILESS_MAIN(TestConfigKey)
#include "test_config_key.moc"
