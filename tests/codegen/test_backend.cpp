// A third backend, as docs/adding-a-backend.md says how to make one, with what a backend must have and no more: a
// device on which kernels are executed one element at a time.
#include <QtTest>

#include "codegen/backends.h"
#include "codegen/program/kernel_cost.h"
#include "codegen/program/kernel_forms.h"
#include "codegen/program/machine.h"
#include "core/base/check.h"
#include "core/loops/execute.h"
#include "tests/support/close.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

/// The kernels that were compiled; an object is the number of one.
std::vector<std::unique_ptr<loops::Kernel>> compiled;

class Kernels final : public KernelSource {
 public:
  Result<KernelEntry> add(const loops::Kernel& kernel) override {
    return KernelEntry{.phases = {{.symbol = kernel_symbol(number(kernel_text(kernel), kernel).first)}}};
  }
  std::string key() const override {
    std::string texts;
    for (const loops::Kernel& kernel : kernels()) texts += kernel_text(kernel);
    return texts;
  }
  Result<ObjectCode> compile(bool) const override {
    ObjectCode code;
    for (const loops::Kernel& kernel : kernels()) {
      code.objects.push_back(std::to_string(compiled.size()));
      compiled.push_back(std::make_unique<loops::Kernel>(kernel));
    }
    return code;
  }
};

class Code final : public LoadedCode {
 public:
  explicit Code(std::span<const std::string> objects) : objects_(objects.begin(), objects.end()) {}
  Result<void*> find(const std::string& symbol) override {
    for (std::size_t i = 0; i < objects_.size(); ++i)
      if (kernel_symbol(i) == symbol) return compiled.at(std::stoul(objects_[i])).get();
    return input_error("test.code", "there is no " + symbol);
  }

 private:
  std::vector<std::string> objects_;
};

/// Its memory is the host's, where the host has some.
class Elements final : public KernelDevice {
 public:
  Result<bool> begin(const Run& run) override {
    buffers_.assign(run.buffers.begin(), run.buffers.end());
    own_.assign(buffers_.size(), nullptr);
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      if (!buffers_[b].result) continue;
      TRY(own_[b], Storage::allocate(buffers_[b].bytes));
      buffers_[b].host = own_[b]->data();
    }
    return false;
  }
  void never_record(std::string) override {}
  Status run(const Kernel& kernel) override {
    ++launched;
    std::vector<void*> addresses;
    for (const int b : kernel.buffers) addresses.push_back(buffers_[static_cast<std::size_t>(b)].host);
    return loops::execute(*static_cast<const loops::Kernel*>(kernel.launches[0].function), addresses);
  }
  Prepared prepare(const ExternContext&, std::string&) override { return {}; }
  Status call(ExternStep&, std::span<const int>, std::span<const int>, const std::string&) override {
    CHECK(false, "no call is prepared for this device");
  }
  Status give_to_host(std::span<const int>, bool) override { return {}; }
  Result<std::shared_ptr<Storage>> result(int buffer) override { return own_[static_cast<std::size_t>(buffer)]; }
  Result<std::vector<Fault>> end(std::size_t kernels) override { return std::vector<Fault>(kernels); }
  Result<std::vector<double>> seconds() override { return std::vector<double>(); }

  static inline int launched = 0;

 private:
  std::vector<Memory> buffers_;
  std::vector<std::shared_ptr<Storage>> own_;
};

class ThirdMachine final : public Machine {
 public:
  loops::Target target(int threads) const override { return {.threads = threads}; }
  /// Sizes must be numbers.
  Status check_kernel(const loops::Kernel& kernel) const override {
    return unsupported("test.symbols", kernel.name + " has symbolic sizes");
  }
  std::vector<KernelForm> forms() const override { return {loops_form()}; }
  std::unique_ptr<KernelSource> source(const schedule::Plan&) const override { return std::make_unique<Kernels>(); }
  Result<std::shared_ptr<LoadedCode>> load(const Program&, std::span<const std::string> objects) const override {
    return std::shared_ptr<LoadedCode>(std::make_shared<Code>(objects));
  }
  PrepareExtern prepare() const override { return prepare_evaluation; }
  std::unique_ptr<KernelDevice> device(bool) const override { return std::make_unique<Elements>(); }
};

std::shared_ptr<const Machine> third_machine() {
  return std::make_shared<const ThirdMachine>();
}

constexpr Backend third = {"third", "kernels executed one element at a time", nullptr, third_machine};

Tensor numbers(const Sizes& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t n : sizes) count *= n;
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * 37 % 101) / 50 - 1);
  return tensor(DType::Float32, sizes, values);
}

class TestBackend : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void gives_what_the_interpreter_gives_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("lines");
    QTest::addColumn<int>("kernels");
    QTest::newRow("rows") << "x: <f32[6, 9][9, 1]>"
                          << "s: <f32[6, 9][9, 1]> = $_softmax(x, 1, False)\n"
                             "t: <f32[6][1]> = $sum.dim_IntList(s, [1])\nreturn (s, t)"
                          << 1;
    QTest::newRow("a call and the work after it")
        << "x: <f32[6, 9][9, 1]>, w: <f32[9, 4][4, 1]>"
        << "m: <f32[6, 4][4, 1]> = $mm(x, w)\nr: <f32[6, 4][4, 1]> = $relu(m)\nreturn (r,)" << 1;
    QTest::newRow("an input that is written") << "x: <f32[5][1]>"
                                              << "s: <f32[5][1]> = $sin(x)\n"
                                                 "c: <f32[5][1]> = $copy_(x, s)\nreturn (s,)"
                                              << 1;
  }
  void gives_what_the_interpreter_gives() {
    QFETCH(QString, parameters);
    QFETCH(QString, lines);
    QFETCH(int, kernels);
    const auto graph = fx(parameters.toStdString(), lines.toStdString());
    std::vector<std::vector<Value>> results;
    const Backend& interpreter = **find_backend("interp");
    for (const Backend* backend : {&interpreter, &third}) {
      const auto run = backend->make({})(*graph);
      QVERIFY2(run, run ? "" : run.error().line().c_str());
      Elements::launched = 0;
      std::vector<Value> inputs;
      for (const Node* node : graph->placeholders())
        inputs.emplace_back(numbers(*concrete(node->meta.tensor()->sizes)));
      auto out = (*run)(inputs);
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE(Elements::launched > 0, backend == &third);
      if (backend == &third) QVERIFY(Elements::launched >= kernels);
      std::ranges::move(inputs, std::back_inserter(*out));
      results.push_back(*std::move(out));
    }
    QCOMPARE(results[1].size(), results[0].size());
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      const std::string difference = wrong(results[0][i], results[1][i], default_tolerance(DType::Float32));
      QVERIFY2(difference.empty(), difference.c_str());
    }
  }

  /// What a machine refuses for all sizes is compiled for those that are met.
  void takes_sizes_one_by_one() {
    const auto graph = fx("s0: 'Sym(s0)', x: <f32[s0][1]>", "s: <f32[s0][1]> = $sin(x)\nreturn (s,)");
    if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
    graph->shapes->set_hint("s0", 3);
    std::vector<SizeCompilation> told;
    const auto run = third.make({.on_sizes = [&](const SizeCompilation& c) { told.push_back(c); }})(*graph);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    for (const std::int64_t n : {3, 7}) {
      const auto out = (*run)({n, numbers({n})});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE((*out)[0].get<Tensor>()->sizes, Sizes{n});
    }
    QCOMPARE(told.size(), std::size_t{2});
    for (const SizeCompilation& c : told) {
      QVERIFY(c.kind == SizeCompilation::Kind::Fixed);
      QVERIFY2(c.why_not.find("symbolic sizes") != std::string::npos, c.why_not.c_str());
    }
  }

  void shows_its_forms() {
    const StagedCompiler staged = third.stages({});
    QCOMPARE(staged.forms.size(), std::size_t{1});
    const auto graph = fx("x: <f32[5][1]>", "s: <f32[5][1]> = $sin(x)\nreturn (s,)");
    const auto planned = staged.plan(*graph);
    QVERIFY2(planned, planned ? "" : planned.error().line().c_str());
    const auto text = staged.forms[0].text(planned->second, 0);
    QVERIFY(text && *text && (*text)->text.find("Sin(") != std::string::npos);
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestBackend)
#include "test_backend.moc"
