// The device's runtime against a library that has the driver's functions and no device (fake_cuda_driver.cpp).
#include <QtTest>

#include <dlfcn.h>

#include "codegen/backends.h"
#include "codegen/cpu/executable.h"
#include "codegen/cpu/program.h"
#include "codegen/cuda/driver.h"
#include "codegen/cuda/emulate.h"
#include "tests/codegen/one_call.h"
#include "tests/support/fx.h"

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
    QVERIFY(has(CudaDevice::open(PARTITA_FAKE_DRIVER).error().message, "the driver counts none"));
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
    const auto kernels = kernel_device(device, *code, false);
    float in[8], out[8] = {};
    for (int i = 0; i < 8; ++i) in[i] = static_cast<float>(i);
    const KernelDevice::Memory memory[] = {{reinterpret_cast<std::byte*>(in), sizeof in, true, true, false},
                                           {reinterpret_cast<std::byte*>(out), sizeof out, false, false, true}};
    const KernelDevice::Launch launch{"k", 2, 4, 50'000};
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

  /// A product as the compiler makes it, whose kernel the test computes: arguments, launch and copies.
  void runs_a_plan() {
    if (const auto found = find_cuda_compiler(); !found) QSKIP(found.error().message.c_str());
    OneCall c("aten.mm.default", {random_tensor({70, 40}, 1), random_tensor({40, 21}, 2)});
    c.plan.target = emulated_target(1);
    const auto device = opened();
    auto e = compile_cpu(c.plan, {}, {.device = device});
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
