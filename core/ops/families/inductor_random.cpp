// Inductor's functional random numbers (torch/_inductor/inductor_prims.py). Seeds are drawn from the run's generator;
// every number is a function of a seed and its row-major position, so a kernel can compute it where it is read. The
// functions are those of inductor's C++ code (torch/csrc/inductor/cpp_prefix.h), which uses 32 bits of a seed.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/ops/families.h"
#include "core/ops/kernels/distributions.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/values.h"
#include "core/tensor/philox.h"

namespace partita {
namespace {

using namespace kernels;

Meta fake_seeds(FakeCall& c) {
  SymList sizes;
  if (c.schema.index_of("count") >= 0) sizes.push_back(c.sym("count"));
  return TensorMeta::contiguous(DType::Int64, sizes, *c.device("device"));
}
/// Draws from the range that inductor's lowering uses (RandomSeeds in torch/_inductor/ir.py). The operator itself, run
/// eagerly, draws from [0, 2^63).
Value eval_seeds(EvalCall& c) {
  using Limits = std::numeric_limits<std::int64_t>;
  const Tensor out = allocate(c, fake_seeds);
  fill_integers(out, Limits::min(), Limits::max(), c.generator());
  return out;
}

Meta fake_numbers(FakeCall& c) {
  const DType dtype = c.schema.index_of("mode") >= 0 ? DType::Float32 : DType::Int64;
  return TensorMeta::contiguous(dtype, c.syms("size"), c.tensor("seed").device);
}

std::array<std::uint32_t, 4> block(const EvalCall& c, std::int64_t position) {
  const Tensor& seed = c.tensor("seed");
  if (seed.numel() != 1 || seed.dtype != DType::Int64) fail("seed must be one int64 number");
  return philox4x32({static_cast<std::uint32_t>(position), 0, 0, 0},
                    {static_cast<std::uint32_t>(*seed.as<std::int64_t>()), 0});
}

/// A number in [0, 1) from 31 bits.
float unit(std::uint32_t bits) {
  return static_cast<float>(bits & 0x7fffffffu) * 4.6566127342e-10f;
}
float normal(const std::array<std::uint32_t, 4>& bits) {
  const float u1 = 1 - unit(bits[0]), u2 = 1 - unit(bits[1]);
  return static_cast<float>(std::sqrt(-2.0 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2));
}

/// inductor_random(size, seed, mode), where mode is "rand" or "randn".
Value eval_random(EvalCall& c) {
  const std::string mode = c.string("mode");
  if (mode != "rand" && mode != "randn") fail("inductor_random has no mode '" + mode + "'");
  const Tensor out = allocate(c, fake_numbers);
  for (std::int64_t i : steps(out.numel()))
    out.as<float>()[i] = mode == "rand" ? unit(block(c, i)[0]) : normal(block(c, i));
  return out;
}

/// inductor_randint(low, high, size, seed): numbers in [low, high).
Value eval_randint(EvalCall& c) {
  const std::int64_t low = c.integer("low"), high = c.integer("high");
  if (low >= high)
    fail("inductor_randint expects low to be less than high, but got low=" + std::to_string(low) +
         " >= high=" + std::to_string(high));
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const Tensor out = allocate(c, fake_numbers);
  for (std::int64_t i : steps(out.numel())) {
    const auto bits = block(c, i);
    const std::uint64_t drawn = bits[0] | std::uint64_t{bits[1]} << 32;
    out.as<std::int64_t>()[i] = static_cast<std::int64_t>(drawn % range + static_cast<std::uint64_t>(low));
  }
  return out;
}

/// philox_rand(size, seed, offset, stride, device, dtype) -> (numbers, how far the offset moves)
Meta fake_philox(FakeCall& c) {
  if (c.has("stride")) fail("philox_rand: stride must be None");
  const Device device = c.device("device").value_or(Device{});
  return MetaTuple{{TensorMeta::contiguous(c.dtype("dtype").value_or(DType::Float32), c.syms("size"), device),
                    TensorMeta::contiguous(DType::Int64, {}, Device{})}};
}
Value eval_philox(EvalCall&) {
  fail_unsupported(
      "philox_rand, whose numbers depend on how a CUDA device shares the elements among its threads; PyTorch refuses "
      "it on the CPU too");
}

}  // namespace

void register_inductor_random(OpTable& t) {
  for (const char* name : {"prims.inductor_seed.default", "prims.inductor_seeds.default"})
    t.add(name, fake_seeds, eval_seeds, {}, {.not_differentiable = true, .random = true});
  t.add("prims.inductor_lookup_seed.default",
        {.program = "clone(aten.select.int(seeds, 0, index))", .not_differentiable = true});
  t.add("prims.inductor_random.default", fake_numbers, eval_random, {}, {.not_differentiable = true});
  t.add("prims.inductor_randint.default", fake_numbers, eval_randint, {}, {.not_differentiable = true});
  t.add("rngprims.philox_rand.default", fake_philox, eval_philox, {}, {.not_differentiable = true, .random = true});
}

}  // namespace partita
