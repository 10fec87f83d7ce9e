// Compares compiled kernels and calls with what the machine can do: bytes moved against memcpy of the same bytes, and
// GFLOP/s.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "core/base/threads.h"

using namespace partita;
using namespace partita::codegen;
using schedule::ExternCall;
using schedule::KernelCall;
using schedule::Plan;
using schedule::PlanBuffer;
using schedule::PlanView;

namespace {

SymExpr var(const char* name) {
  return SymExpr::symbol(name);
}

/// For busy machines: measures processor time, which other programs do not take (a share per thread).
bool processor_time = false;

double now(int threads) {
  timespec t{};
  clock_gettime(processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9) / (processor_time ? threads : 1);
}

/// The median of the times of f, in seconds.
template <class F>
double seconds(int threads, F f) {
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    double start = now(threads);
    f();
    times.push_back(now(threads) - start);
  }
  std::sort(times.begin() + 3, times.end());
  return times[3 + (times.size() - 3) / 2];
}

Tensor filled(const Sizes& sizes) {
  Tensor t = *Tensor::empty(DType::Float32, sizes);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.as<float>()[i] = static_cast<float>((i * 7919) % 1000) / 250 - 2;
  return t;
}

double memcpy_rate(std::size_t bytes, int threads) {
  auto from = *Storage::allocate(bytes, true), to = *Storage::allocate(bytes, true);
  const double s = seconds(threads, [&] {
    parallel_for(threads, static_cast<std::int64_t>(bytes), 1 << 16, 64,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   std::memcpy(to->data() + begin, from->data() + begin, static_cast<std::size_t>(end - begin));
                 });
  });
  return 2 * static_cast<double>(bytes) / s / 1e9;
}

TensorMeta meta(const Tensor& t) {
  TensorMeta m;
  m.sizes.assign(t.sizes.begin(), t.sizes.end());
  m.strides.assign(t.strides.begin(), t.strides.end());
  return m;
}

std::unique_ptr<Executable> compiled(Plan plan, const CompileOptions& options) {
  auto e = compile_plan(*cpu_machine(), plan, {}, options);
  if (!e) {
    fmt::print("{}\n", e.error().line());
    std::exit(1);
  }
  return std::move(*e);
}

/// Measures one kernel over inputs. The output has the size of the first input.
void bench_kernel(const char* name, loops::Kernel k, const std::vector<Tensor>& inputs, int threads, double copy_rate) {
  Plan plan;
  plan.target = host_target(threads);
  double bytes = 0;
  std::vector<Value> values;
  KernelCall call;
  for (const Tensor& t : inputs) {
    plan.buffers.push_back(
        {PlanBuffer::Kind::Input, static_cast<int>(values.size()), "", DType::Float32, t.numel(), 0});
    plan.inputs.push_back(meta(t));
    values.push_back(t);
    bytes += 4.0 * static_cast<double>(t.numel());
    call.buffers.push_back(static_cast<int>(call.buffers.size()));
  }
  // A temporary, so that page faults of new outputs are not measured.
  plan.buffers.push_back({PlanBuffer::Kind::Temporary, 0, "", DType::Float32, inputs[0].numel(), 0});
  plan.arena_bytes = static_cast<std::size_t>(inputs[0].numel()) * 4;
  call.buffers.push_back(static_cast<int>(inputs.size()));
  bytes += 4.0 * static_cast<double>(inputs[0].numel());
  plan.kernels.push_back(std::move(k));
  plan.steps.push_back(call);
  auto e = compiled(plan, {});
  double s = seconds(threads, [&] { (void)e->run(values); });
  fmt::print("{:24} {} threads {:8.3f} ms {:6.1f} GB/s  {:3.0f} % of memcpy   compile {:.1f} ms link {:.1f} ms\n", name,
             threads, s * 1e3, bytes / s / 1e9, bytes / s / 1e9 / copy_rate * 100, e->times.compile_ms,
             e->times.link_ms);
}

loops::Kernel pointwise_chain(std::int64_t rows, std::int64_t columns) {
  loops::Kernel k;
  k.name = "pointwise_chain";
  k.buffers = {{"x", DType::Float32, rows * columns, loops::Buffer::Role::Input},
               {"y", DType::Float32, rows * columns, loops::Buffer::Role::Input},
               {"b", DType::Float32, columns, loops::Buffer::Role::Input},
               {"out", DType::Float32, rows * columns, loops::Buffer::Role::Output}};
  auto& s = k.scalars;
  auto c = [&](double v) { return s.constant(DType::Float32, v); };
  SymExpr at = var("i0") * SymExpr(columns) + var("i1");
  loops::Scalar x = s.load(0, at, DType::Float32), y = s.load(1, at, DType::Float32),
                b = s.load(2, var("i1"), DType::Float32);
  loops::Scalar t = s.Add(s.Mul(x, y), b);
  loops::Scalar h = s.Mul(s.Mul(t, c(0.5)), s.Add(s.Erf(s.Mul(t, c(0.70710678118654752440))), c(1)));
  loops::Scalar out = s.Add(s.Mul(s.Sigmoid(h), h), s.Mul(s.Tanh(s.Sub(x, y)), c(0.5)));
  k.body.push_back(
      loops::Loop{"i0",
                  rows,
                  loops::Mapping::Thread,
                  false,
                  {},
                  {loops::Loop{"i1", columns, loops::Mapping::Serial, true, {}, {loops::Store{3, at, {}, out}}}}});
  return k;
}

loops::Kernel add(std::int64_t n) {
  loops::Kernel k;
  k.name = "add";
  k.buffers = {{"x", DType::Float32, n, loops::Buffer::Role::Input},
               {"y", DType::Float32, n, loops::Buffer::Role::Input},
               {"out", DType::Float32, n, loops::Buffer::Role::Output}};
  auto& s = k.scalars;
  k.body.push_back(loops::Loop{
      "i0",
      n,
      loops::Mapping::Thread,
      true,
      {},
      {loops::Store{
          2, var("i0"), {}, s.Add(s.load(0, var("i0"), DType::Float32), s.load(1, var("i0"), DType::Float32))}}});
  return k;
}

loops::Kernel softmax(std::int64_t rows, std::int64_t columns) {
  loops::Kernel k;
  k.name = "softmax";
  k.buffers = {{"x", DType::Float32, rows * columns, loops::Buffer::Role::Input},
               {"row", DType::Float32, columns, loops::Buffer::Role::Scratch},
               {"y", DType::Float32, rows * columns, loops::Buffer::Role::Output}};
  k.accumulators = {{loops::ScalarOp::Max, DType::Float32, -std::numeric_limits<double>::infinity()},
                    {loops::ScalarOp::Add, DType::Float32, 0}};
  auto& s = k.scalars;
  SymExpr base = var("i0") * SymExpr(columns);
  loops::Scalar x = s.load(0, base + var("i1"), DType::Float32);
  loops::Scalar e = s.Exp(s.Sub(s.load(0, base + var("i2"), DType::Float32), s.input(0, DType::Float32)));
  loops::Scalar y = s.Div(s.load(1, var("i3"), DType::Float32), s.input(1, DType::Float32));
  k.body.push_back(loops::Loop{
      "i0",
      rows,
      loops::Mapping::Thread,
      false,
      {},
      {loops::Loop{"i1", columns, loops::Mapping::Serial, true, {0}, {loops::Reduce{0, x}}},
       loops::Loop{
           "i2", columns, loops::Mapping::Serial, true, {1}, {loops::Store{1, var("i2"), {}, e}, loops::Reduce{1, e}}},
       loops::Loop{"i3", columns, loops::Mapping::Serial, true, {}, {loops::Store{2, base + var("i3"), {}, y}}}}});
  return k;
}

void bench_matmul(std::int64_t m, std::int64_t k, std::int64_t n, bool fixed, int threads) {
  Tensor a = filled({m, k}), b = filled({k, n});
  Plan plan;
  plan.target = host_target(threads);
  plan.buffers = {{PlanBuffer::Kind::Input, 0, "", DType::Float32, m * k, 0},
                  {PlanBuffer::Kind::Input, 1, "", DType::Float32, k * n, 0},
                  {PlanBuffer::Kind::Temporary, 0, "", DType::Float32, m * n, 0}};
  plan.arena_bytes = static_cast<std::size_t>(m * n) * 4;
  plan.inputs = {meta(a), meta(b)};
  ExternCall call;
  call.op = Op::torch("aten.mm.default");
  call.args = {PlanView{0, DType::Float32, {m, k}, {k, 1}, 0}, PlanView{1, DType::Float32, {k, n}, {n, 1}, 0}};
  call.results = {PlanView{2, DType::Float32, {m, n}, {n, 1}, 0}};
  plan.steps.push_back(call);
  CompileOptions options;
  if (fixed) options.fixed_inputs = {1};
  auto e = compiled(plan, options);
  double s = seconds(threads, [&] { (void)e->run({a, b}); });
  fmt::print("mm {}x{}x{}{} {} threads {:.3f} ms {:.0f} GFLOP/s ({})\n", m, k, n, fixed ? " packed" : "", threads,
             s * 1e3, 2.0 * static_cast<double>(m * k * n) / s / 1e9, e->externs[0].library);
}

}  // namespace

int main(int argc, char** argv) {
  processor_time = argc > 1 && std::string_view(argv[1]) == "--processor-time";
  for (int threads : {1, 2}) {
    double rate = memcpy_rate(std::size_t{64} << 20, threads);
    fmt::print("memcpy {} threads {:.1f} GB/s\n", threads, rate);
    Tensor x = filled({2048, 4096}), y = filled({2048, 4096}), b = filled({4096});
    bench_kernel("pointwise_chain", pointwise_chain(2048, 4096), {x, y, b}, threads, rate);
    bench_kernel("add", add(2048 * 4096), {x, y}, threads, rate);
    bench_kernel("softmax 8192x512", softmax(8192, 512), {filled({8192, 512})}, threads, rate);
    for (bool fixed : {false, true}) {
      bench_matmul(1024, 1024, 1024, fixed, threads);
      bench_matmul(128, 768, 3072, fixed, threads);
    }
  }
}
