// Convolutions by cuDNN, against a library that has its functions and no device (fake_cudnn.cpp).
#include <QtTest>

#include <dlfcn.h>
#include <fmt/format.h>

#include "codegen/backends.h"
#include "codegen/cuda/cuda_machine.h"
#include "codegen/cuda/driver.h"
#include "codegen/cuda/library_calls.h"
#include "codegen/program/executable.h"
#include "codegen/program/program.h"
#include "tests/codegen/fake_cudnn.h"
#include "tests/codegen/one_call.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

template <class F>
F* found_in(const char* library, const char* name) {
  auto* f = reinterpret_cast<F*>(::dlsym(::dlopen(library, RTLD_NOW), name));
  if (!f) qFatal("%s has no %s", library, name);
  return f;
}

FakeCudnn& fake() {
  static FakeCudnn& fake = *found_in<FakeCudnn*()>(PARTITA_FAKE_CUDNN, "fake_cudnn")();
  return fake;
}

std::string driver_log() {
  return found_in<const char*()>(PARTITA_FAKE_DRIVER, "fake_log")();
}

std::shared_ptr<CudaDevice> opened() {
  auto device = CudaDevice::open(PARTITA_FAKE_DRIVER);
  if (!device) qFatal("%s", device.error().line().c_str());
  return *device;
}

bool has(const std::string& text, const char* words) {
  return text.find(words) != text.npos;
}

Sizes channels_last(const Sizes& sizes) {
  Sizes out(sizes.size(), 1);
  std::int64_t distance = sizes[1];
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (d == 1) continue;
    out[d] = distance;
    distance *= sizes[d];
  }
  return out;
}

/// Shapes, and how the window moves in every dimension.
struct Case {
  DType dtype = DType::Float32;
  Sizes input = {2, 4, 9, 8}, weight = {6, 4, 3, 3};
  std::int64_t stride = 1, padding = 1, dilation = 1, output_padding = 0, groups = 1;
  bool transposed = false, last = false;

  Tensor tensor(const Sizes& sizes, std::uint32_t seed) const {
    const Tensor t = *random_tensor(sizes, seed).to(dtype);
    return last && sizes.size() > 1 ? t.view_as(sizes, channels_last(sizes), 0) : t;
  }
  Tensor x() const { return tensor(input, 1); }
  Tensor w() const { return tensor(weight, 2); }
  std::int64_t channels() const { return transposed ? weight[1] * groups : weight[0]; }

  OneCall forward(bool with_bias = true) const {
    std::vector<Value> args = {x(), w(), with_bias ? Value(tensor({channels()}, 3)) : Value()};
    add_window(args);
    return lying({"aten.convolution.default", std::move(args)});
  }
  OneCall backward(bool of_input, bool of_weight, bool of_bias) const {
    const Tensor grad = tensor(forward().expected.get<Tensor>()->sizes, 4);
    std::vector<Value> args = {grad, x(), w(), ints({channels()})};
    add_window(args);
    args.emplace_back(ValueList{of_input, of_weight, of_bias});
    return lying({"aten.convolution_backward.default", std::move(args)});
  }

 private:
  void add_window(std::vector<Value>& args) const {
    const auto list = [&](std::int64_t n) {
      ValueList out;
      for (std::size_t d = 2; d < weight.size(); ++d) out.push_back(n);
      return out;
    };
    for (const std::int64_t n : {stride, padding, dilation}) args.emplace_back(list(n));
    args.emplace_back(transposed);
    args.emplace_back(list(output_padding));
    args.emplace_back(groups);
  }
  /// Results lie as the arguments do.
  OneCall lying(OneCall c) const {
    c.plan.target = emulated_machine()->target(1);
    std::size_t output = 0;
    for (schedule::PlanView& v : c.call().results) {
      if (v.buffer < 0) continue;
      if (const auto sizes = concrete(v.sizes); last && sizes->size() > 1) {
        const Sizes strides = channels_last(*sizes);
        v.strides.assign(strides.begin(), strides.end());
        c.plan.outputs[output] = v;
      }
      ++output;
    }
    return c;
  }
};

/// What rounding once or twice to the dtype may cost.
double tolerance_of(DType dtype) {
  return dtype == DType::Float32 ? 1e-5 : dtype == DType::BFloat16 ? 0x1p-5 : dtype == DType::Float16 ? 0x1p-8 : 1e-12;
}

std::string why_not(OneCall c) {
  const bool backward = c.call().op->name.find("backward") != std::string::npos;
  const ExternContext context{.call = c.call(),
                              .routine = backward ? LibraryRoutine::ConvolutionBackward : LibraryRoutine::Convolution};
  std::string why;
  return prepare_on_device(opened(), context, why).step ? "it does" : why;
}

class TestCudaCudnn : public QObject {
  Q_OBJECT

  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<ConfigScope> scope_;

  /// The library's words for the call; its results are compared.
  std::string run(OneCall c, double tolerance) {
    const auto e = compile_plan(*cuda_machine(device_), c.plan, {});
    if (!e) return e.error().line();
    if ((*e)->externs.size() != 1) return fmt::format("{} calls", (*e)->externs.size());
    const auto got = (*e)->run(c.inputs);
    if (!got) return got.error().line();
    ValueList want = {c.expected};
    if (auto* list = c.expected.get<ValueList>()) {
      want.clear();
      for (const Value& v : *list)
        if (!v.is_none()) want.push_back(v);
    }
    if (got->size() != want.size()) return fmt::format("{} results", got->size());
    for (std::size_t i = 0; i < want.size(); ++i)
      if (const double w = worst(*(*got)[i].get<Tensor>(), *want[i].get<Tensor>()); !(w <= tolerance))
        return fmt::format("result {} differs by {}", i, w);
    return (*e)->externs[0].library;
  }

 private Q_SLOTS:
  void init() {
    fake() = FakeCudnn();
    found_in<void()>(PARTITA_FAKE_DRIVER, "fake_reset")();
    device_ = opened();
    scope_ = std::make_unique<ConfigScope>(
        *patched_config({{"cuda_path", PARTITA_FAKE_TOOLKIT}, {"cudnn_benchmark", "false"}}));
  }
  void cleanup() {
    scope_.reset();
    device_.reset();
    QCOMPARE(fake().handles, 0);
    QCOMPARE(fake().descriptors, 0);
  }

  void convolutions_data() {
    QTest::addColumn<Case>("shapes");
    const auto row = [](const char* name, const Case& shapes) { QTest::newRow(name) << shapes; };
    row("plain", {});
    row("stride and dilation",
        {.input = {2, 4, 11, 12}, .weight = {6, 4, 3, 2}, .stride = 2, .padding = 2, .dilation = 2});
    row("groups", {.weight = {6, 2, 3, 3}, .groups = 2});
    row("depthwise", {.input = {1, 6, 7, 7}, .weight = {6, 1, 3, 3}, .stride = 2, .padding = 0, .groups = 6});
    row("of pixels", {.weight = {6, 4, 1, 1}, .padding = 0});
    row("one dimension", {.input = {3, 4, 20}, .weight = {5, 4, 4}, .stride = 3});
    row("one dimension, transposed", {.input = {3, 4, 9}, .weight = {4, 5, 4}, .stride = 3, .transposed = true});
    row("three dimensions", {.input = {1, 2, 5, 4, 6}, .weight = {3, 2, 2, 3, 1}});
    row("channels last", {.last = true});
    row("channels last, groups", {.weight = {6, 2, 3, 2}, .stride = 2, .groups = 2, .last = true});
    row("channels last, of pixels", {.weight = {6, 4, 1, 1}, .padding = 0, .last = true});
    row("channels last, three dimensions", {.input = {2, 4, 5, 4, 6}, .weight = {3, 4, 2, 3, 1}, .last = true});
    row("transposed",
        {.input = {2, 4, 5, 6}, .weight = {4, 3, 3, 3}, .stride = 2, .output_padding = 1, .transposed = true});
    row("transposed groups",
        {.input = {2, 4, 5, 6}, .weight = {4, 3, 3, 2}, .stride = 2, .dilation = 2, .groups = 2, .transposed = true});
    row("transposed, channels last",
        {.input = {2, 4, 5, 6}, .weight = {4, 3, 3, 3}, .stride = 2, .transposed = true, .last = true});
    for (const DType dtype : {DType::Float64, DType::Float16, DType::BFloat16})
      row(std::string(short_name(dtype)).c_str(), {.dtype = dtype, .weight = {6, 2, 3, 3}, .groups = 2});
  }
  /// The fake convolves what it is told to.
  void convolutions() {
    QFETCH(Case, shapes);
    const double tolerance = tolerance_of(shapes.dtype);
    const std::string direction = shapes.transposed ? "backward data" : "forward";
    QCOMPARE(run(shapes.forward(), tolerance), "cuDNN 9.1.0, " + direction + " algorithm 0 with bias");
    QCOMPARE(run(shapes.forward(false), tolerance), "cuDNN 9.1.0, " + direction + " algorithm 0");
  }

  void gradients_data() { convolutions_data(); }
  void gradients() {
    QFETCH(Case, shapes);
    const double tolerance = tolerance_of(shapes.dtype) * 8;
    const std::string direction = shapes.transposed ? "forward" : "backward data";
    QCOMPARE(run(shapes.backward(true, false, false), tolerance), "cuDNN 9.1.0, " + direction + " algorithm 0");
    QCOMPARE(run(shapes.backward(false, true, false), tolerance),
             std::string("cuDNN 9.1.0, backward filter algorithm 0"));
    QCOMPARE(run(shapes.backward(true, true, false), tolerance),
             "cuDNN 9.1.0, " + direction + " algorithm 0, backward filter algorithm 0");
  }

  /// A kernel of ours sums it, and cuDNN does the rest.
  void gradient_of_a_bias() {
    OneCall c = Case().backward(true, true, true);
    const auto split = make_program(*cuda_machine(device_), c.plan);
    QVERIFY2(split, split ? "" : split.error().line().c_str());
    QCOMPARE(split->program.plan.steps.size(), std::size_t{2});
    const auto* call = std::get_if<schedule::ExternCall>(&split->program.plan.steps[0]);
    QVERIFY(call && call->results[0].buffer >= 0 && call->results[1].buffer >= 0 && call->results[2].buffer < 0);
    QVERIFY(std::get_if<schedule::KernelCall>(&split->program.plan.steps[1]));
    QCOMPARE(cuda_kernels(*split).size(), std::size_t{1});
    QVERIFY(has(cuda_kernels(*split)[0].text, "gradient of a convolution's bias"));
    // What is left to the library is what the two gradients alone are.
    schedule::Plan rest = c.plan;
    rest.steps = {*call};
    rest.outputs.pop_back();
    const auto e = compile_plan(*cuda_machine(device_), rest, {});
    QVERIFY2(e, e ? "" : e.error().line().c_str());
    const auto got = (*e)->run(c.inputs);
    QVERIFY2(got, got ? "" : got.error().line().c_str());
    for (std::size_t i = 0; i < 2; ++i)
      QVERIFY(worst(*(*got)[i].get<Tensor>(), *(*c.expected.get<ValueList>())[i].get<Tensor>()) < 1e-4);
    // Without the rest, or the library, it is one kernel.
    OneCall alone = Case().backward(false, false, true);
    QVERIFY(make_program(*cuda_machine(device_), alone.plan)->program.calls.empty());
    fake().has_none = true;
    const auto whole = make_program(*cuda_machine(device_), c.plan);
    QCOMPARE(whole->program.plan.steps.size(), std::size_t{1});
    QVERIFY(whole->program.calls.empty());
  }

  void tensor_cores_data() {
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<bool>("tf32");
    QTest::addColumn<int>("algorithm");
    QTest::addColumn<int>("math");
    QTest::newRow("f32") << DType::Float32 << false << 0 << 3;
    QTest::newRow("f32, TF32") << DType::Float32 << true << 6 << 1;
    QTest::newRow("f64") << DType::Float64 << true << 6 << 0;
    QTest::newRow("f16") << DType::Float16 << false << 6 << 1;
    QTest::newRow("bf16") << DType::BFloat16 << false << 6 << 1;
  }
  /// Algorithms that round single precision are taken with cuda_tf32 only.
  void tensor_cores() {
    QFETCH(DType, dtype);
    QFETCH(bool, tf32);
    QFETCH(int, algorithm);
    QFETCH(int, math);
    Config own = config();
    own.cuda_tf32 = tf32;
    const ConfigScope scope(own);
    fake().on_tensor_cores = true;
    const Case shapes{.dtype = dtype};
    const bool rounds = tf32 && dtype == DType::Float32;
    QCOMPARE(run(shapes.forward(), rounds ? 0x1p-8 : tolerance_of(dtype)),
             fmt::format("cuDNN 9.1.0, forward algorithm {} with bias", algorithm));
    if (rounds) QVERIFY(has(run(shapes.forward(), tolerance_of(dtype)), "result 0 differs by"));
    QCOMPARE(fake().ran[0].algorithm, algorithm);
    QCOMPARE(fake().ran[0].math, math);
  }

  void deterministic() {
    Config own = config();
    own.deterministic = true;
    const ConfigScope scope(own);
    QCOMPARE(run(Case().backward(true, true, false), 1e-4),
             std::string("cuDNN 9.1.0, backward data algorithm 1, backward filter algorithm 1"));
    for (const FakeCudnn::Run& run : fake().ran) QCOMPARE(run.algorithm, 1);
    // Its workspace is memory of the device, of which there may be too little.
    found_in<void(std::size_t)>(PARTITA_FAKE_DRIVER, "fake_room")(1 << 20);
    fake().workspace_bytes = 2 << 20;
    QCOMPARE(why_not(Case().forward()),
             std::string("cuDNN 9.1.0: it has no deterministic algorithm for this convolution"));
  }

  /// Of the algorithms 0 and 1, in cuDNN's order, the second is faster.
  void fastest_algorithm() {
    const ConfigScope scope(*patched_config({{"cudnn_benchmark", "true"}}));
    fake().on_run = [](int algorithm) {
      found_in<void(float)>(PARTITA_FAKE_DRIVER, "fake_work")(algorithm == 0 ? 5 : 2);
    };
    const OneCall c = Case().forward();
    const auto first = compile_plan(*cuda_machine(device_), c.plan, {});
    QVERIFY(first);
    QCOMPARE((*first)->externs[0].library, std::string("cuDNN 9.1.0, forward algorithm 1 with bias"));
    const auto trials = fake().ran.size();
    QVERIFY(trials > 2);
    // Another convolution of the kind is not timed, one of another kind is.
    QVERIFY(has(run(Case().forward(), 1e-5), "forward algorithm 1"));
    QCOMPARE(fake().ran.size(), trials + 1);
    QVERIFY(has(run(Case{.stride = 2}.forward(), 1e-5), "forward algorithm 1"));
    QVERIFY(fake().ran.size() > trials + 2);
    Config own = config();
    own.deterministic = true;  // timed or not, it is always the same
    const ConfigScope ordered(own);
    fake().ran.clear();
    QVERIFY(has(run(Case().forward(), 1e-5), "forward algorithm 1"));
    QCOMPARE(fake().ran.size(), std::size_t{1});
  }

  /// A call that wants a larger workspace leaves the one that another has.
  void workspaces() {
    const OneCall small = Case().forward();
    const auto first = compile_plan(*cuda_machine(device_), small.plan, {});
    QVERIFY(first && has(driver_log(), "allocate 4096\n"));
    {
      Config own = config();
      own.deterministic = true;
      const ConfigScope scope(own);
      QVERIFY(has(run(Case().forward(), 1e-5), "algorithm 1"));
    }
    QVERIFY(has(driver_log(), "allocate 10240\n"));
    const auto got = (*first)->run(small.inputs);
    QVERIFY2(got, got ? "" : got.error().line().c_str());
    QVERIFY(worst(*(*got)[0].get<Tensor>(), *small.expected.get<Tensor>()) < 1e-5);
  }

  /// Kernels of ours do these.
  void convolutions_that_it_does_not_take() {
    const auto refusal = [](const char* why) { return std::string("cuDNN 9.1.0: ") + why; };
    QCOMPARE(why_not(Case().forward()), std::string("it does"));
    // Rows with gaps between them are taken, memory that overlaps is not.
    const auto with_strides = [](std::size_t argument, Sizes strides) {
      OneCall c = Case().forward();
      std::get<schedule::PlanView>(c.call().args[argument]).strides.assign(strides.begin(), strides.end());
      return c;
    };
    QCOMPARE(why_not(with_strides(0, {400, 100, 10, 1})), std::string("it does"));
    QCOMPARE(why_not(with_strides(0, {0, 72, 8, 1})), refusal("strides that it does not take"));
    QCOMPARE(why_not(with_strides(0, {288, 72, 4, 1})), refusal("strides that it does not take"));
    QCOMPARE(why_not(with_strides(0, {std::int64_t{1} << 32, 72, 8, 1})), refusal("more elements than 32 bits count"));
    QCOMPARE(why_not(with_strides(1, {400, 100, 10, 1})), refusal("strides of the weight that it does not take"));
    QCOMPARE(why_not(with_strides(2, {2})), refusal("strides of the bias that it does not take"));
    OneCall c = Case().forward();
    std::get<schedule::PlanView>(c.call().args[0]).offset = 3;
    QCOMPARE(why_not(c), refusal("a tensor that does not begin at a multiple of 16 bytes"));
    c = Case().forward();
    std::get<schedule::PlanView>(c.call().args[2]).dtype = DType::Float64;
    QCOMPARE(why_not(c), refusal("a dtype that it does not take"));
    c = Case().forward();
    for (auto* v : {&std::get<schedule::PlanView>(c.call().args[0]), &std::get<schedule::PlanView>(c.call().args[1]),
                    &std::get<schedule::PlanView>(c.call().args[2]), &c.call().results[0]})
      v->dtype = DType::Int32;
    QCOMPARE(why_not(c), refusal("a dtype that it does not take"));
    c = Case().forward();
    c.call().around = {1, 1};
    QCOMPARE(why_not(c), refusal("zeros around the image"));
    QCOMPARE(why_not(Case{.input = {0, 4, 9, 8}}.forward()), refusal("nothing to convolve"));
    // An output padding of a stride or more, which a dilation allows.
    QCOMPARE(why_not(Case{.weight = {4, 3, 3, 3}, .dilation = 2, .output_padding = 1, .transposed = true}.forward()),
             refusal("an output padding that it does not take"));
    QCOMPARE(why_not(Case().backward(true, true, true)), refusal("the gradient of a bias"));
    fake().has_none = true;
    QCOMPARE(why_not(Case().forward()), refusal("it has no algorithm for this convolution"));
    QCOMPARE(why_not(Case().backward(false, true, false)), refusal("it has no algorithm for this convolution"));
  }

  void symbolic_sizes_wait() {
    OneCall c = Case().forward();
    for (auto* v : {&std::get<schedule::PlanView>(c.call().args[0]), &c.call().results[0]})
      v->sizes[0] = SymExpr::symbol("s0");
    QCOMPARE(why_not(c), std::string(symbolic_sizes));
    OneCall b = Case().backward(true, true, false);
    for (std::size_t i : {0, 1}) std::get<schedule::PlanView>(b.call().args[i]).sizes[0] = SymExpr::symbol("s0");
    QCOMPARE(why_not(b), std::string(symbolic_sizes));
  }

  void errors_have_the_library_s_words() {
    const OneCall c = Case().forward();
    const auto e = compile_plan(*cuda_machine(device_), c.plan, {});
    QVERIFY2(e, e ? "" : e.error().line().c_str());
    for (const auto& [what, name] : {std::pair(&FakeCudnn::fails, "cudnnConvolutionForward of "),
                                     std::pair(&FakeCudnn::add_fails, "cudnnAddTensor of ")}) {
      fake().*what = 5000;
      const auto failed = (*e)->run(c.inputs);
      fake().*what = 0;
      QVERIFY(!failed);
      QCOMPARE(failed.error().code, std::string("cuda.library"));
      QVERIFY2(has(failed.error().message, name) && has(failed.error().message, ": CUDNN_STATUS_EXECUTION_FAILED"),
               failed.error().message.c_str());
    }
    QVERIFY((*e)->run(c.inputs));
    fake().refuses = 3000;
    std::string why = why_not(c);
    QVERIFY2(
        has(why, "cuDNN 9.1.0: cudnnGetConvolutionForwardAlgorithm_v7 of ") && has(why, ": CUDNN_STATUS_NOT_SUPPORTED"),
        why.c_str());
  }

  void handles_that_it_does_not_give() {
    fake().no_handle = 2000;
    const std::string why = why_not(Case().forward());
    QVERIFY2(has(why, "cuDNN 9.1.0: cudnnCreate of ") && has(why, ": CUDNN_STATUS_BAD_PARAM"), why.c_str());
    QVERIFY(make_program(*cuda_machine(device_), Case().forward().plan)->program.calls.empty());
  }

  void versions() {
    QVERIFY2(has(device_libraries_text(), "cuBLASLt 13.0.2 in ") && has(device_libraries_text(), "\ncuDNN 9.1.0 in "),
             device_libraries_text().c_str());
    fake().version = 8907;
    QCOMPARE(run(Case().forward(), 1e-5), std::string("cuDNN 8.9.7, forward algorithm 0 with bias"));
  }

  void without_the_library_data() {
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QString>("value");
    QTest::newRow("absent") << "cuda_path" << QDir::tempPath() + "/partita-nowhere";
    QTest::newRow("switched off") << "cuda_libraries" << "false";
  }
  void without_the_library() {
    QFETCH(QString, setting);
    QFETCH(QString, value);
    const ConfigScope scope(*patched_config({{setting.toStdString(), value.toStdString()}}));
    QCOMPARE(why_not(Case().forward()), std::string());
    QCOMPARE(device_libraries_text(), std::string());
    for (const OneCall& c : {Case().forward(), Case().backward(true, true, true)}) {
      const auto made = make_program(*cuda_machine(device_), c.plan);
      QVERIFY(made && made->program.calls.empty() && cuda_kernels(*made).size() == 1);
    }
  }

  /// A graph whose images are as many as there are, recorded as a CUDA graph: a recording neither allocates nor waits.
  void graphs_of_any_size() {
    Config own = config();
    own.cuda_graphs = own.cudnn_benchmark = true;
    const ConfigScope scope(own);
    const BackendOptions options{.machine = cuda_machine(device_)};
    const auto graph = fx("s0: 'Sym(s0)', x: <f32[s0, 4, 9, 8][288, 72, 8, 1]>, w: <f32[6, 4, 3, 3][36, 9, 3, 1]>",
                          "a = $convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)\nreturn (a,)");
    const auto run = (*find_backend("cuda"))->make(options)(*graph);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    for (const std::int64_t images : {2, 3}) {
      const Case shapes{.input = {images, 4, 9, 8}};
      for (int i = 0; i < 3; ++i) {
        const auto got = (*run)({images, shapes.x(), shapes.w()});
        QVERIFY2(got, got ? "" : got.error().line().c_str());
        QVERIFY(worst(*(*got)[0].get<Tensor>(), *shapes.forward(false).expected.get<Tensor>()) < 1e-5);
      }
    }
    const std::string log = driver_log();
    QVERIFY2(has(log, "instantiate") && !has(log, "while capturing"), log.c_str());
    QVERIFY(fake().ran.size() >= 2);
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestCudaCudnn)
#include "test_cuda_cudnn.moc"
