// Inductor's functional random numbers (torch/_inductor/inductor_prims.py). Seeds are drawn from the run's generator;
// every number is a function of a seed and its row-major position, so a kernel can compute it where it is read. The
// functions are those of inductor's C++ code (torch/csrc/inductor/cpp_prefix.h), which uses 32 bits of a seed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/ops/facts/seeded_numbers.h"
#include "core/ops/kernels/distributions.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"
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

/// How ATen's distribution kernels share the elements among threads (ATen/native/cuda/DistributionTemplates.h): thread
/// t of T draws blocks of four numbers for the elements t, t + T, t + 2T, ... T depends on the device only for more
/// elements than it can hold threads; here it is that of an H100 (132 multiprocessors of 2048 threads).
struct PhiloxThreads {
  static constexpr std::int64_t block = 256, most_blocks = 132 * (2048 / block);
  std::int64_t elements, threads;

  explicit PhiloxThreads(std::int64_t n)
      : elements(n), threads(block * std::clamp<std::int64_t>((n + block - 1) / block, 1, most_blocks)) {}
  /// How far philox_rand_offset (torch/_prims/rng_prims.py) moves the offset.
  std::int64_t moved() const { return elements == 0 ? 0 : ((elements - 1) / (threads * 4) + 1) * 4; }
};

std::uint64_t seed_argument(const EvalCall& c, const char* name) {
  const Tensor& t = c.tensor(name);
  if (t.numel() != 1 || t.dtype != DType::Int64) fail(std::string(name) + " must be one int64 number");
  return static_cast<std::uint64_t>(*t.as<std::int64_t>());
}

/// CUDA's curand gives numbers in (0, 1], of which ATen makes [0, 1).
template <class T>
T below_one(T number) {
  return number == 1 ? T(0) : number;
}
float unit_of(std::uint32_t bits) {
  return static_cast<float>(bits) * 0x1p-32f + 0x1p-33f;
}
double unit_of(std::uint32_t low, std::uint32_t high) {
  return static_cast<double>(std::uint64_t{low} ^ std::uint64_t{high} << 21) * 0x1p-53 + 0x1p-54;
}

/// The numbers of torch.rand on a CUDA device.
Value eval_philox(EvalCall& c) {
  const std::vector<Tensor> outputs = allocate_all(c, fake_philox);
  const Tensor& out = outputs[0];
  const std::uint64_t seed = seed_argument(c, "seed"), offset = seed_argument(c, "offset");
  if (offset % 4 != 0) fail("offset must be a multiple of 4");
  const PhiloxThreads threads(out.numel());
  const bool wide = out.dtype == DType::Float64;
  if (!is_floating(out.dtype))
    fail("philox_rand gives floating point numbers, not " + std::string(torch_name(out.dtype)));
  const std::int64_t width = wide ? 2 : 4;  // numbers of a block
  const Tensor numbers = wide || out.dtype == DType::Float32 ? out : empty(DType::Float32, out.sizes);
  for (std::int64_t i : steps(out.numel())) {
    const std::int64_t turn = i / threads.threads, thread = i % threads.threads, part = turn % width;
    const std::uint64_t block = offset / 4 + static_cast<std::uint64_t>(turn / width);
    const auto bits = philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                                  static_cast<std::uint32_t>(thread), 0},
                                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const auto at = static_cast<std::size_t>(part);
    if (wide)
      numbers.as<double>()[i] = below_one(unit_of(bits[2 * at], bits[2 * at + 1]));
    else
      numbers.as<float>()[i] = below_one(rounded(out.dtype, unit_of(bits[at])));
  }
  if (numbers.dtype != out.dtype) out.copy_from(unwrap(numbers.to(out.dtype)));
  *outputs[1].as<std::int64_t>() = threads.moved();
  return ValueList{out, outputs[1]};
}

/// philox4x32() on numbers below 2^32 in 64 bits.
std::array<loops::Scalar, 4> philox(loops::ScalarBuilder& b, std::array<loops::Scalar, 4> counter,
                                    std::array<loops::Scalar, 2> key) {
  using loops::Scalar;
  const auto number = [&](std::int64_t v) { return b.constant_int(DType::UInt64, v); };
  const auto low = [&](Scalar v) { return b.BitAnd(v, number(0xffffffff)); };
  const auto high = [&](Scalar v) { return b.Shr(v, number(32)); };
  for (int round = 0; round < 10; ++round) {
    const Scalar x = b.Mul(number(0xD2511F53), counter[0]), y = b.Mul(number(0xCD9E8D57), counter[2]);
    counter = {b.BitXor(b.BitXor(high(y), counter[1]), key[0]), low(y), b.BitXor(b.BitXor(high(x), counter[3]), key[1]),
               low(x)};
    key = {low(b.Add(key[0], number(0x9E3779B9))), low(b.Add(key[1], number(0xBB67AE85)))};
  }
  return counter;
}

/// The numbers of eval_philox(), each computed where it is read.
void lower_philox(loops::LowerCall& call) {
  using namespace loops;
  const auto sizes = concrete(call.out_sizes());
  const DType dtype = call.out().dtype;
  const LoweredTensor seed = call.in("seed"), offset = call.in("offset");
  for (const LoweredTensor& t : {seed, offset})
    if (t.dtype != DType::Int64 || !t.numel().is(1)) fail_unsupported("seeds that are not one number");
  if (!sizes || !is_floating(dtype)) fail_unsupported("random numbers of this size or dtype");
  const PhiloxThreads threads(numel(*sizes));
  const std::string node = call.node.name();
  call.give(call.to.map(dtype, call.out_sizes(), [=, at = call.out_sizes()](Body& body, const Index& i) {
    ScalarBuilder& b = body.b;
    const bool wide = dtype == DType::Float64;
    const std::int64_t width = wide ? 2 : 4;
    const auto whole = [&](Scalar v) { return b.cast(v, DType::UInt64); };
    const auto number = [&](std::int64_t v) { return b.constant_int(DType::UInt64, v); };
    const auto low = [&](Scalar v) { return b.BitAnd(v, number(0xffffffff)); };
    const auto high = [&](Scalar v) { return b.Shr(v, number(32)); };
    const SymExpr position = body.math.linear(i, at), turn = body.math.floordiv(position, threads.threads);
    const Scalar key = whole(body.read(seed, Index(seed.dim(), 0))), from = body.read(offset, Index(offset.dim(), 0));
    const Scalar rest = b.within(b.Remainder(from, b.constant_int(DType::Int64, 4)),
                                 {.node = node,
                                  .space = "index {} is out of bounds for the offset's remainder by 4 with size {}",
                                  .size = 1,
                                  .wraps = false});
    const Scalar first = b.Shr(whole(b.Sub(from, rest)), number(2));
    const Scalar block = b.Add(first, whole(body.scalar(body.math.floordiv(turn, width))));
    const Scalar thread = whole(body.scalar(body.math.mod(position, threads.threads)));
    const auto bits = philox(b, {low(block), high(block), thread, number(0)}, {low(key), high(key)});
    const auto unit = [&](std::size_t part) {
      if (wide) {
        const Scalar v = b.BitXor(bits[2 * part], b.Shl(bits[2 * part + 1], number(21)));
        return b.Add(b.Mul(b.cast(v, dtype), b.constant(dtype, 0x1p-53)), b.constant(dtype, 0x1p-54));
      }
      const DType single = DType::Float32;
      const Scalar v =
          b.Add(b.Mul(b.cast(bits[part], single), b.constant(single, 0x1p-32)), b.constant(single, 0x1p-33));
      return b.cast(b.cast(v, dtype), single);
    };
    const Scalar part = body.scalar(body.math.mod(turn, width));
    Scalar drawn = unit(0);
    for (std::int64_t p = 1; p < width; ++p)
      drawn = b.where(b.Eq(part, b.constant_int(DType::Int64, p)), unit(static_cast<std::size_t>(p)), drawn);
    const DType computed = b.dtype(drawn);
    return b.cast(b.where(b.Eq(drawn, b.constant(computed, 1)), b.constant(computed, 0), drawn), dtype);
  }));
  call.give(call.to.constant(DType::Int64, {}, static_cast<double>(threads.moved())));
}

}  // namespace

bool draws_from_seed(const Op* op) {
  const OpRecord* record = find_record(op);
  return record && (record->eval == eval_random || record->eval == eval_randint);
}

bool draws_seeds(const Op* op) {
  const OpRecord* record = find_record(op);
  return record && record->eval == eval_seeds;
}

void register_inductor_random(OpTable& t) {
  t.default_family = Family::Random;
  for (const char* name : {"prims.inductor_seed.default", "prims.inductor_seeds.default"})
    t.add(name, fake_seeds, eval_seeds, {}, {.autograd = {.not_differentiable = true}, .random = true});
  t.add("prims.inductor_lookup_seed.default",
        {.program = "clone(aten.select.int(seeds, 0, index))", .autograd = {.not_differentiable = true}});
  t.add("prims.inductor_random.default", fake_numbers, eval_random, {}, {.autograd = {.not_differentiable = true}});
  t.add("prims.inductor_randint.default", fake_numbers, eval_randint, {}, {.autograd = {.not_differentiable = true}});
  t.add("rngprims.philox_rand.default", fake_philox, eval_philox, {},
        {.autograd = {.not_differentiable = true}, .lower = lower_philox});
}

}  // namespace partita
