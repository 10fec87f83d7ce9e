// The device's runtime against a library that has the driver's functions and no device (fake_cuda_driver.cpp).
#include <QtTest>

#include <dlfcn.h>

#include "codegen/backends.h"
#include "codegen/cuda/cuda_machine.h"
#include "codegen/cuda/driver.h"
#include "codegen/cuda/library_calls.h"
#include "codegen/program/executable.h"
#include "codegen/program/executor.h"
#include "codegen/program/program.h"
#include "core/store/code_store.h"
#include "core/store/graph_entry.h"
#include "tests/codegen/one_call.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

/// The fake's own functions.
struct Fake {
  void* library = ::dlopen(PARTITA_FAKE_DRIVER, RTLD_NOW);
  template <class F>
  F* find(const char* name) const {
    auto* f = reinterpret_cast<F*>(::dlsym(library, name));
    if (!f) qFatal("the fake driver has no %s", name);
    return f;
  }
  void reset() const { find<void()>("fake_reset")(); }
  std::string log() const { return find<const char*()>("fake_log")(); }
  std::string new_log() const {
    const std::string text = log();
    find<void()>("fake_forget_log")();
    return text;
  }
  void fail(const char* function, int error) const { find<void(const char*, int)>("fake_fail")(function, error); }
  void devices(int count, int major, int minor) const {
    find<void(int, int, int)>("fake_devices")(count, major, minor);
  }
  void room(std::size_t bytes) const { find<void(std::size_t)>("fake_room")(bytes); }
  using OnLaunch = void (*)(const char*, unsigned, unsigned, void**);
  void on_launch(OnLaunch f) const { find<void(OnLaunch)>("fake_on_launch")(f); }
};

const Fake& fake() {
  static const Fake fake;
  return fake;
}

bool has(const std::string& text, const char* words) {
  return text.find(words) != text.npos;
}

std::shared_ptr<CudaDevice> opened() {
  auto device = CudaDevice::open(PARTITA_FAKE_DRIVER);
  if (!device) qFatal("%s", device.error().line().c_str());
  return *device;
}

/// Doubles the first buffer into the second.
void doubles(const char*, unsigned blocks, unsigned threads, void** arguments) {
  const float* in = *static_cast<const float**>(arguments[0]);
  float* out = *static_cast<float**>(arguments[1]);
  for (unsigned i = 0; i < blocks * threads; ++i) out[i] = 2 * in[i];
}

/// Reports index 7 of bound 3. A kernel's last argument is its fault.
void reports(const char*, unsigned, unsigned, void** arguments) {
  struct {
    unsigned met;
    long long which, position;
  }* fault = *static_cast<decltype(fault)*>(arguments[2]);
  *fault = {1, 3, 7};
}

/// y = 2 * x, whose one kernel is the test's.
Program doubling(const TensorMeta& x) {
  Program p;
  const SymExpr n = *reach(*concrete(x.sizes), *concrete(x.strides));
  p.plan.target.device = DeviceType::Cuda;
  p.plan.buffers = {{schedule::PlanBuffer::Kind::Input, 0, "", DType::Float32, n, 0, {}},
                    {schedule::PlanBuffer::Kind::Output, 0, "", DType::Float32, n, 0, {}}};
  p.plan.inputs = {x};
  p.plan.outputs = {schedule::PlanView{1, DType::Float32, {n}, {1}, 0}};
  p.plan.steps = {schedule::KernelCall{0, {0, 1}}};
  p.kernels.resize(1);
  p.kernels[0].name = "twice";
  p.kernels[0].origins = {"mul"};
  p.kernels[0].entry.phases = {{.symbol = "k", .parallel = true, .iterations = 1, .threads = int(n.as_int())}};
  p.written = {false, true};
  return p;
}

/// Runs a program on the fake.
struct OnDevice {
  std::shared_ptr<CudaDevice> device = opened();
  std::unique_ptr<Executable> executable;

  explicit OnDevice(Program program, bool records = true) {
    fake().on_launch(doubles);
    const std::string binary = "a binary";
    const auto code = load_for(device, program.kernels, {&binary, 1});
    if (!code) qFatal("%s", code.error().line().c_str());
    auto made = load_program(std::make_shared<Program>(std::move(program)), {}, *code, {},
                             {.device = kernel_device(device, records)});
    if (!made) qFatal("%s", made.error().line().c_str());
    executable = *std::move(made);
    fake().new_log();
  }
  Tensor placed(const Tensor& t) const {
    std::vector<Value> values = {t};
    if (const Status done = device->place(values); !done) qFatal("%s", done.error().line().c_str());
    fake().new_log();
    return *values[0].get<Tensor>();
  }
  Tensor run(const Tensor& x) const {
    auto out = executable->run({x});
    if (!out) qFatal("%s", out.error().line().c_str());
    return *(*out)[0].get<Tensor>();
  }
};

void tell_cublaslt(const char* function, int value) {
  void* library = ::dlopen(PARTITA_FAKE_CUBLASLT, RTLD_NOW);
  reinterpret_cast<void (*)(int)>(::dlsym(library, function))(value);
}

std::int64_t skipped(const std::string& why) {
  const auto counts = cuda_graph_counts();
  const auto found = counts.skipped.find(why);
  return found == counts.skipped.end() ? 0 : found->second;
}

class TestCudaDriver : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { fake().reset(); }

  void refuses_what_is_no_device() {
    const auto missing = CudaDevice::open("libpartita-nowhere.so.1");
    QVERIFY(!missing);
    QCOMPARE(missing.error().code, std::string("cuda.device"));
    QCOMPARE(missing.error().exit_code(), 3);
    QVERIFY(has(missing.error().message, "libpartita-nowhere.so.1"));
    fake().devices(0, 8, 0);
    QVERIFY(has(CudaDevice::open(PARTITA_FAKE_DRIVER).error().message, "the driver finds none"));
    fake().devices(1, 3, 5);
    QVERIFY(has(CudaDevice::open(PARTITA_FAKE_DRIVER).error().message, "generation 3.5"));
    fake().devices(1, 8, 0);
    fake().fail("init", 100);
    QVERIFY(has(CudaDevice::open(PARTITA_FAKE_DRIVER).error().message, "CUDA_ERROR_NO_DEVICE (a fake error)"));
  }

  void takes_the_newest_code_that_runs() {
    fake().devices(1, 9, 0);
    QCOMPARE(opened()->architecture().name, std::string("sm_90"));
    fake().devices(1, 8, 8);
    QCOMPARE(opened()->architecture().name, std::string("sm_87"));
    QVERIFY(has(fake().log(), "release"));  // with its last owner
  }

  void memory_is_used_again() {
    const auto device = opened();
    const auto first = device->allocate(1000);
    QVERIFY(first);
    device->free(*first);
    QCOMPARE(device->kept_bytes(), std::size_t{1024});
    fake().new_log();
    const auto second = device->allocate(900);
    QVERIFY(second);
    QCOMPARE(*second, *first);
    QVERIFY(!has(fake().log(), "allocate"));
    const auto third = device->allocate(900);
    QVERIFY(third && *third != *first);
    QVERIFY(has(fake().log(), "allocate 1024"));
    const auto small = device->allocate(0);
    QVERIFY(small && *small != 0);
    // A block much larger than what is asked for is left to who needs it.
    const auto large = device->allocate(1 << 20);
    QVERIFY(large);
    device->free(*large);
    const auto other = device->allocate(4096);
    QVERIFY(other && *other != *large);
  }

  void memory_that_is_kept_goes_when_there_is_no_more() {
    const auto device = opened();
    fake().room(10'000);
    const auto first = device->allocate(6000);
    QVERIFY(first);
    device->free(*first);
    fake().new_log();
    const auto second = device->allocate(9000);
    QVERIFY2(second, second ? "" : second.error().line().c_str());
    QCOMPARE(fake().log(), std::string("allocate 9216\nwait\nfree\nallocate 9216\n"));
    const auto third = device->allocate(5000);
    QVERIFY(!third);
    QCOMPARE(third.error().code, std::string("cuda.memory"));
    QVERIFY(has(third.error().message, "no 5120 bytes more; this process holds 9216"));
  }

  /// What is copied, and when: only what the other has not.
  void buffers_follow_who_writes() {
    const auto device = opened();
    fake().on_launch(doubles);
    ProgramKernel kernel;
    kernel.entry.phases = {{.symbol = "k", .parallel = true, .iterations = 2, .threads = 4, .shared_bytes = 50'000}};
    const std::string binary = "a binary";
    const auto code = load_for(device, {&kernel, 1}, {&binary, 1});
    QVERIFY(code);
    QVERIFY(has(fake().new_log(), "load\nfunction k\nshared memory 50000\n"));
    QCOMPARE(load_for(device, {&kernel, 1}, {}).error().code, std::string("cuda.binary"));
    const auto kernels = kernel_device(device, false);
    float in[8], out[8] = {};
    for (int i = 0; i < 8; ++i) in[i] = static_cast<float>(i);
    const KernelDevice::Memory memory[] = {{reinterpret_cast<std::byte*>(in), sizeof in, true, true, false},
                                           {reinterpret_cast<std::byte*>(out), sizeof out, false, false, true}};
    const KernelDevice::Launch launch{*(*code)->find("k"), 2, 4, 50'000};
    const int buffers[] = {0, 1}, result[] = {1};
    const std::string nodes[] = {"mul"};
    const KernelDevice::Kernel run{.number = 0,
                                   .name = "twice",
                                   .origins = nodes,
                                   .launches = {&launch, 1},
                                   .buffers = buffers,
                                   .workspace = {},
                                   .workspace_bytes = 0,
                                   .symbols = {}};
    QVERIFY(kernels->begin({memory}));
    QVERIFY(kernels->run(run));
    const std::string log = fake().new_log();
    QVERIFY2(has(log, "to device 32\n") && has(log, "launch k 2 x 4\n") && !has(log, "to host"), log.c_str());
    QCOMPARE(out[3], 0.f);
    QVERIFY(kernels->give_to_host(result, false));
    QCOMPARE(out[3], 6.f);
    QCOMPARE(fake().new_log(), std::string("to host 32\nwait\n"));
    QVERIFY(kernels->give_to_host(result, false));  // the host has it
    QCOMPARE(fake().new_log(), std::string());
    const auto faults = kernels->end(1);
    QVERIFY(faults && !(*faults)[0].met);

    // A second run: the first buffer's values are known not to change, and the second one's memory is there.
    fake().new_log();
    QVERIFY(kernels->begin({memory}));
    QVERIFY(kernels->run(run));
    QVERIFY2(!has(fake().log(), "to device") && !has(fake().log(), "allocate"), fake().log().c_str());
    // The host writes the first buffer after all: the kernel sees that.
    const int first[] = {0};
    QVERIFY(kernels->give_to_host(first, true));
    in[3] = 50;
    QVERIFY(kernels->run(run));
    QVERIFY(kernels->give_to_host(result, false));
    QCOMPARE(out[3], 100.f);

    fake().on_launch(reports);
    QVERIFY(kernels->begin({memory}));
    QVERIFY(kernels->run(run));
    const auto met = kernels->end(1);
    QVERIFY(met && (*met)[0].met);
    QCOMPARE((*met)[0].which, std::int64_t{3});
    QCOMPARE((*met)[0].position, std::int64_t{7});

    fake().fail("launch", 1);
    const Status refused = kernels->run(run);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("cuda.fault"));
    QVERIFY(has(refused.error().message, "kernel twice (mul) cannot be launched on a fake device"));
    fake().fail("launch", 0);
    QVERIFY(kernels->run(run));
    fake().fail("wait", 700);
    const auto fault = kernels->end(1);
    QVERIFY(!fault);
    QCOMPARE(fault.error().code, std::string("cuda.fault"));
    QVERIFY2(has(fault.error().message, "CUDA_ERROR_ILLEGAL_ADDRESS") && has(fault.error().message, "twice (mul)"),
             fault.error().message.c_str());
  }

  void temporaries_may_be_empty() {
    const auto kernels = kernel_device(opened(), false);
    KernelDevice::Memory empty;
    empty.in_arena = 0;
    QVERIFY(kernels->begin({{&empty, 1}, 0}));
    QVERIFY(kernels->end(0));
  }

  /// A product as the compiler makes it, whose kernel the test computes: arguments, launch and copies.
  void runs_a_plan() {
    if (const auto found = find_cuda_compiler(); !found) QSKIP(found.error().message.c_str());
    OneCall c("aten.mm.default", {random_tensor({70, 40}, 1), random_tensor({40, 21}, 2)});
    c.plan.target = emulated_machine()->target(1);
    const auto device = opened();
    auto e = compile_plan(*cuda_machine(device), c.plan, {});
    QVERIFY2(e, e ? "" : e.error().line().c_str());
    QVERIFY((*e)->externs.empty());
    fake().on_launch([](const char*, unsigned blocks, unsigned threads, void** arguments) {
      const float *a = *static_cast<const float**>(arguments[0]), *b = *static_cast<const float**>(arguments[1]);
      float* out = *static_cast<float**>(arguments[2]);
      if (blocks != 2 || threads != 256) return;
      for (int m = 0; m < 70; ++m)
        for (int n = 0; n < 21; ++n) {
          double sum = 0;
          for (int k = 0; k < 40; ++k) sum += double(a[m * 40 + k]) * double(b[k * 21 + n]);
          out[m * 21 + n] = static_cast<float>(sum);
        }
    });
    const auto got = (*e)->run(c.inputs);
    QVERIFY2(got, got ? "" : got.error().line().c_str());
    QVERIFY(worst(*(*got)[0].get<Tensor>(), *c.expected.get<Tensor>()) < 1e-5);
    const std::string log = fake().log();
    for (const char* words : {"to device 11200\n", "to device 3360\n", "to host 5880\n"})
      QVERIFY2(has(log, words), words);
  }

  void values_stay_on_the_device() {
    const Tensor x = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8});
    const OnDevice runs(doubling(meta(x)), false);
    // Two views of one memory are placed once, and stay views of one memory.
    std::vector<Value> values = {x, ValueList{x.view_as({2}, {1}, 3)}};
    QVERIFY(runs.device->place(values));
    QCOMPARE(fake().new_log(), std::string("allocate 512\nto device 32\nwait\n"));
    const Tensor there = *values[0].get<Tensor>();
    QCOMPARE((*values[1].get<ValueList>())[0].get<Tensor>()->storage, there.storage);
    const Tensor twice = runs.run(there), again = runs.run(twice);
    const std::string log = fake().new_log();
    QVERIFY2(!has(log, "to device") && !has(log, "to host 32"), log.c_str());
    QVERIFY(twice.storage->remote() && again.storage->remote());
    QCOMPARE(again.as<float>()[7], 32.f);
    QCOMPARE(fake().new_log(), std::string("to host 32\nwait\n"));
    QVERIFY(!again.storage->remote());
    QCOMPARE(again.as<float>()[0], 4.f);
    // What was changed here is copied there again.
    again.as<float>()[0] = 100;
    QCOMPARE(runs.run(again).as<float>()[0], 200.f);
    QCOMPARE(twice.as<float>()[7], 16.f);
  }

  /// Kernels read 16 bytes at a time.
  void inputs_that_are_not_aligned_are_copied() {
    const Tensor x = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8});
    const OnDevice runs(doubling(meta(x.view_as({4}, {1}, 0))), false);
    const Tensor there = runs.placed(x);
    QCOMPARE(runs.run(there.view_as({4}, {1}, 4)).as<float>()[0], 10.f);
    QVERIFY(!has(fake().new_log(), "copy"));
    QCOMPARE(runs.run(there.view_as({4}, {1}, 1)).as<float>()[0], 4.f);
    QVERIFY(has(fake().new_log(), "copy 16\n"));
  }

  void runs_become_a_graph() {
    const Tensor x = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8}), y = f32({8}, {0, 1, 0, 1, 0, 1, 0, 1});
    const OnDevice runs(doubling(meta(x)));
    const CudaGraphCounts before = cuda_graph_counts();
    QCOMPARE(runs.run(x).as<float>()[1], 4.f);
    QVERIFY(!has(fake().new_log(), "capture"));
    QCOMPARE(runs.run(y).as<float>()[1], 2.f);
    // Once as ever, once in the other stream after that, and recorded.
    const std::string log = fake().new_log();
    QVERIFY2(has(log,
                 "to device 32\nlaunch k 1 x 8\nstream\nevent\nwait for event on the side\nlaunch k 1 x 8 on the side\n"
                 "wait on the side\ncapture 1\nlaunch k 1 x 8 on the side\nend capture\ninstantiate\n"),
             log.c_str());
    QCOMPARE(runs.run(x).as<float>()[7], 16.f);
    const std::string replay = fake().new_log();
    QVERIFY2(has(replay, "to device 32\ngraph\n") && !has(replay, "launch") && !has(replay, "allocate"),
             replay.c_str());
    QCOMPARE(cuda_graph_counts().recorded - before.recorded, std::int64_t{1});
    QCOMPARE(cuda_graph_counts().replayed - before.replayed, std::int64_t{1});
  }

  /// Inputs that stay where they are on the device are not copied; those that move are.
  void static_inputs_of_a_graph() {
    const Tensor x = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8}), y = f32({8}, {0, 1, 0, 1, 0, 1, 0, 1});
    const OnDevice runs(doubling(meta(x)));
    const Tensor a = runs.placed(x), b = runs.placed(y);
    const CudaGraphCounts before = cuda_graph_counts();
    for (int i = 0; i < 2; ++i) runs.run(a);
    fake().new_log();
    QCOMPARE(runs.run(a).as<float>()[1], 4.f);
    QVERIFY2(has(fake().log(), "graph\n") && !has(fake().log(), "copy"), fake().log().c_str());
    // It moves, so the graph is made again, with a copy of it.
    fake().new_log();
    QCOMPARE(runs.run(b).as<float>()[1], 2.f);
    QVERIFY2(has(fake().log(), "copy 32\n") && has(fake().log(), "instantiate"), fake().log().c_str());
    for (const Tensor* t : {&a, &b, &a}) {
      fake().new_log();
      QCOMPARE(runs.run(*t).as<float>()[1], t == &a ? 4.f : 2.f);
      QVERIFY2(has(fake().log(), "copy 32\n") && has(fake().log(), "graph\n"), fake().log().c_str());
    }
    QCOMPARE(cuda_graph_counts().recorded - before.recorded, std::int64_t{2});
  }

  /// PyTorch overwrites them; here the run does without the graph.
  void results_that_are_held_stay() {
    const Tensor x = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8}), y = f32({8}, {0, 1, 0, 1, 0, 1, 0, 1});
    const OnDevice runs(doubling(meta(x)));
    for (int i = 0; i < 2; ++i) runs.run(x);
    const std::int64_t before = skipped("the results of the last run are still in use");
    const Tensor held = runs.run(x);
    fake().new_log();
    QCOMPARE(runs.run(y).as<float>()[1], 2.f);
    QVERIFY2(has(fake().log(), "launch") && !has(fake().log(), "graph\n"), fake().log().c_str());
    QCOMPARE(skipped("the results of the last run are still in use"), before + 1);
    QCOMPARE(held.as<float>()[1], 4.f);  // from now on here
    fake().new_log();
    QCOMPARE(runs.run(y).as<float>()[1], 2.f);
    QVERIFY2(has(fake().log(), "graph\n"), fake().log().c_str());
    // What another graph has read is not held by it.
    const OnDevice next(doubling(meta(x)));
    QCOMPARE(next.run(runs.run(x)).as<float>()[1], 8.f);
    fake().new_log();
    QCOMPARE(runs.run(y).as<float>()[1], 2.f);
    QVERIFY2(has(fake().log(), "graph\n"), fake().log().c_str());
  }

  void skips_with_its_reason_data() {
    QTest::addColumn<int>("which");
    QTest::addColumn<QString>("why");
    QTest::newRow("mutated") << 0 << "mutated inputs (1 instances)";
    QTest::newRow("cpu") << 1 << "cpu device (input 0)";
    QTest::newRow("nothing") << 2 << "nothing to launch";
    QTest::newRow("fails") << 3
                           << "recording failed: cuStreamEndCapture: CUDA_ERROR_OTHER (a fake error) on a fake device";
  }
  void skips_with_its_reason() {
    QFETCH(int, which);
    QFETCH(QString, why);
    const Tensor x = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8});
    Program program = doubling(meta(x));
    if (which == 0) program.written[0] = true;
    if (which == 1) {
      program.plan.inputs.push_back(meta(x));
      program.plan.inputs.back().device.type = DeviceType::Cuda;
    }
    if (which == 2) program.plan.steps.clear();
    if (which == 3) fake().fail("end capture", 901);
    const CudaGraphCounts before = cuda_graph_counts();
    const std::int64_t skips = skipped(why.toStdString());
    const OnDevice runs(std::move(program));
    const std::vector<Value> inputs(which == 1 ? 2 : 1, x);
    for (int i = 0; i < 4; ++i) {
      const auto out = runs.executable->run(inputs);
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      if (which != 2) QCOMPARE((*out)[0].get<Tensor>()->as<float>()[7], 16.f);
    }
    QVERIFY(!has(fake().log(), "graph\n"));
    QCOMPARE(cuda_graph_counts().recorded, before.recorded);
    QCOMPARE(skipped(why.toStdString()), skips + 1);
  }

  /// A static copy has each element once.
  void expanded_inputs() {
    const Tensor x = f32({2}, {3, 5});
    const Tensor wide = x.view_as({4, 2}, {0, 1}, 0);
    const OnDevice runs(doubling(meta(wide)));
    for (int i = 0; i < 4; ++i) {
      fake().new_log();
      QCOMPARE(runs.run(wide).as<float>()[1], 10.f);
      QVERIFY2(has(fake().log(), "to device 8\n"), fake().log().c_str());
    }
    QVERIFY(has(fake().log(), "graph\n"));
  }

  void kernels_are_timed_by_events() {
    const Tensor x = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8});
    Program program = doubling(meta(x));
    program.kernels[0].entry.phases.push_back(program.kernels[0].entry.phases[0]);  // the fake takes 1 ms for each
    const OnDevice runs(std::move(program));
    std::vector<double> seconds;
    runs.executable->step_seconds = &seconds;
    for (int i = 0; i < 3; ++i) runs.run(x);
    QCOMPARE(seconds, std::vector<double>({0.002, 0.002, 0.002}));
    QVERIFY(!has(fake().log(), "capture"));
  }

  void products_by_cublaslt_data() {
    QTest::addColumn<int>("which");
    int which = 0;
    for (const char* name : {"mm", "left transposed", "right transposed", "a row", "a column", "bmm", "one for all",
                             "addmm with a bias", "addmm with a matrix", "addmm, beta 0"})
      QTest::newRow(name) << which++;
  }
  /// The fake multiplies what it is told to.
  void products_by_cublaslt() {
    QFETCH(int, which);
    const auto call = [&]() -> OneCall {
      const Tensor a = random_tensor({5, 7}, 1), b = random_tensor({7, 3}, 2);
      const Tensor aa = random_tensor({4, 5, 7}, 3), bb = random_tensor({4, 7, 3}, 4);
      switch (which) {
        case 0:
          return {"aten.mm.default", {a, b}};
        case 1:
          return {"aten.mm.default", {transposed(random_tensor({7, 5}, 5)), b}};
        case 2:
          return {"aten.mm.default", {a, transposed(random_tensor({3, 7}, 6))}};
        case 3:
          return {"aten.mm.default", {random_tensor({1, 7}, 7), b}};
        case 4:
          return {"aten.mm.default", {a, random_tensor({7, 1}, 8)}};
        case 5:
          return {"aten.bmm.default", {aa, bb}};
        case 6:
          return {"aten.bmm.default", {aa, b.view_as({4, 7, 3}, {0, 3, 1}, 0)}};
        case 7:
          return {"aten.addmm.default", {random_tensor({3}, 9), a, b, std::int64_t{1}, 2.0}};
        case 8:
          return {"aten.addmm.default", {random_tensor({5, 3}, 10), a, b, 0.5, 2.0}};
        default:
          return {"aten.addmm.default", {random_tensor({3}, 9), a, b, std::int64_t{0}, std::int64_t{1}}};
      }
    };
    const ConfigScope scope(*patched_config({{"cuda_path", PARTITA_FAKE_TOOLKIT}}));
    OneCall c = call();
    c.plan.target = emulated_machine()->target(1);
    const auto e = compile_plan(*cuda_machine(opened()), c.plan, {});
    QVERIFY2(e, e ? "" : e.error().line().c_str());
    QCOMPARE((*e)->externs.size(), std::size_t{1});
    QCOMPARE((*e)->externs[0].library, std::string(which == 7 ? "cuBLASLt 13.0.2 with bias" : "cuBLASLt 13.0.2"));
    const auto got = (*e)->run(c.inputs);
    QVERIFY2(got, got ? "" : got.error().line().c_str());
    QVERIFY(worst(*(*got)[0].get<Tensor>(), *c.expected.get<Tensor>()) < 1e-5);
    // A library's failure is an error with the call's name.
    tell_cublaslt("fake_matmul_fails", 13);
    const auto failed = (*e)->run(c.inputs);
    tell_cublaslt("fake_matmul_fails", 0);
    QVERIFY(!failed);
    QCOMPARE(failed.error().code, std::string("cuda.library"));
    QVERIFY2(has(failed.error().message, "status 13"), failed.error().message.c_str());
  }

  /// Its reasons; kernels of our own do these.
  void products_that_cublaslt_does_not_take() {
    const auto why_not = [device = opened()](OneCall c, LibraryRoutine routine) {
      const ExternContext context{.call = c.call(), .routine = routine};
      std::string why;
      return prepare_on_device(device, context, why).step ? "it does" : why;
    };
    const ConfigScope scope(*patched_config({{"cuda_path", PARTITA_FAKE_TOOLKIT}}));
    const Tensor a = random_tensor({4, 4}, 1);
    const OneCall plain("aten.mm.default", {a, a});
    QCOMPARE(why_not(plain, LibraryRoutine::Matmul), std::string("it does"));
    QCOMPARE(why_not({"aten.mm.default", {*a.to(DType::Int64), *a.to(DType::Int64)}}, LibraryRoutine::Matmul),
             std::string("cuBLASLt 13.0.2: a dtype that it does not take"));
    const Tensor apart = random_tensor({4, 8}, 2).view_as({4, 4}, {8, 2}, 0);
    QCOMPARE(why_not({"aten.mm.default", {apart, a}}, LibraryRoutine::Matmul),
             std::string("cuBLASLt 13.0.2: strides that it does not take"));
    QCOMPARE(why_not({"aten.addmm.default", {random_tensor({4}, 3), a, a, 0.5, 1.0}}, LibraryRoutine::AddMatmul),
             std::string("cuBLASLt 13.0.2: strides of what is added that it does not take"));
    tell_cublaslt("fake_refuse", 1);
    QCOMPARE(why_not(plain, LibraryRoutine::Matmul), std::string("cuBLASLt 13.0.2: it has no kernel for this product"));
    tell_cublaslt("fake_refuse", 0);
    const ConfigScope own(*patched_config({{"cuda_libraries", "false"}}));
    QCOMPARE(why_not(plain, LibraryRoutine::Matmul), std::string());
    QCOMPARE(device_libraries_text(), std::string());
  }

  void devices_without_matrix_instructions() {
    fake().devices(1, 7, 5);
    const BackendOptions options{.machine = cuda_machine(opened())};
    const auto made = (*find_backend("cuda"))->make(options)(*fx("x: <bf16[8][1]>", "a = $sin(x)\nreturn (a,)"));
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("cuda.dtype"));
    QVERIFY2(has(made.error().message, "(sm_75) has no matrix instructions for bfloat16"),
             made.error().message.c_str());
  }

  /// Code of a device is kept as the CPU's is, and neither planned nor compiled again.
  void graphs_are_kept_in_the_cache() {
    if (const auto found = find_cuda_compiler(); !found) QSKIP(found.error().message.c_str());
    const QTemporaryDir folder;
    const ConfigScope scope(*patched_config({{"store", folder.path().toStdString()}}));
    const auto graph = fx("x: <f32[8][1]>", "a = $mul.Tensor(x, 2.0)\nreturn (a,)");
    fake().on_launch([](const char*, unsigned, unsigned, void** arguments) { doubles("", 2, 4, arguments); });
    const auto device = opened();
    for (const char* outcome : {"fxgraph_cache_miss", "fxgraph_cache_hit"}) {
      const BackendOptions options{.store = std::make_shared<CodeStore>(), .machine = cuda_machine(device)};
      const std::int64_t before = cache_log().counts()[outcome];
      const auto run = (*find_backend("cuda"))->make(options)(*graph);
      QVERIFY2(run, run ? "" : run.error().line().c_str());
      QCOMPARE(cache_log().counts()[outcome], before + 1);
      const auto out = (*run)({f32({8}, {1, 2, 3, 4, 5, 6, 7, 8})});
      QVERIFY2(out, out ? "" : out.error().line().c_str());
      QCOMPARE((*out)[0].get<Tensor>()->as<float>()[7], 16.f);
    }
  }

  void backend_without_a_device() {
    const auto backend = find_backend("cuda");
    QVERIFY(backend);
    const auto graph = fx("x: <f32[8][1]>", "a = $sin(x)\nreturn (a,)");
    const auto made = (*backend)->make({})(*graph);
    if (made) QSKIP("this machine has a device");
    QCOMPARE(made.error().code, std::string("cuda.device"));
    QVERIFY(has(made.error().message, "--backend cuda-emulate"));
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestCudaDriver)
#include "test_cuda_driver.moc"
