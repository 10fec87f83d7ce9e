// The text of a tiled contraction: a block of 256 threads fetches tiles of both factors to shared memory and sums by
// fma, or by mma on tensor cores. Where blocks are few, k is split and a second function adds the parts.
#include "codegen/cuda/matrix/contraction.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"

namespace partita::codegen {
namespace {

/// How the work is laid out: a block of 256 threads computes a tile of m x n, and k is walked in steps.
struct Tiles {
  int m = 64, n = 64, k = 16;
  std::int64_t parts = 1;  ///< of k, which blocks of their own sum; the parts are added in order
};

constexpr int threads = 256;

std::int64_t divided(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// By the sizes m, n, k and groups as they are now.
Tiles tiles_of(const Contraction& c, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t groups) {
  const bool tensor = c.unit == MatrixUnit::Tensor;
  const auto fitting = [&](std::int64_t extent) {
    if (extent > 32) return 64;
    return extent > 16 || tensor ? 32 : 16;
  };
  Tiles t;
  t.m = fitting(m);
  t.n = fitting(n);
  // Large tiles reuse each element more, and pay when they still fill the device.
  constexpr std::int64_t many_tiles = 256;
  if (c.dtype != DType::Float64 && groups * divided(m, 128) * divided(n, 128) >= many_tiles) t.m = t.n = 128;
  t.k = tensor && itemsize(c.dtype) == 2 ? 32 : t.m == 128 && !tensor ? 8 : 16;
  const std::int64_t blocks = groups * divided(m, t.m) * divided(n, t.n), steps = divided(k, t.k);
  // Few blocks leave most of a device idle; a part must be worth the pass that adds the parts.
  constexpr std::int64_t enough_blocks = 128, least_steps = 16;
  t.parts = std::clamp<std::int64_t>(
      std::min(divided(enough_blocks, std::max<std::int64_t>(blocks, 1)), steps / least_steps), 1, 64);
  const std::int64_t part_k = divided(steps, t.parts) * t.k;
  t.parts = std::max<std::int64_t>(divided(k, std::max<std::int64_t>(part_k, 1)), 1);
  return t;
}

/// A tensor core's instruction by its PTX name. Under the emulation each lane gathers the fragments of all lanes and
/// computes its four elements.
constexpr std::string_view mma_words = R"(
#ifndef PARTITA_MMA
#define PARTITA_MMA
#if defined(PARTITA_EMULATE) || defined(PARTITA_EMULATED)
struct MmaFragments {
  unsigned a[4], b[2];
};
template <class Product>
__device__ void mma_plain(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], Product product) {
  MmaFragments mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, all[32];
  partita_warp_gather(mine, all);
  const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
  for (int i = 0; i < 4; ++i)
    for (int word = 0; word < 8; ++word)
      c[i] = product(c[i], all[row * 4 + word % 4].a[i / 2 + word / 4 * 2], all[(column + i % 2) * 4 + word % 4].b[word / 4]);
}
template <class T>
__device__ float mma_pair(float sum, unsigned a, unsigned b) {
  sum = fma(to_float(bitcast<T>(static_cast<unsigned short>(a))), to_float(bitcast<T>(static_cast<unsigned short>(b))), sum);
  return fma(to_float(bitcast<T>(static_cast<unsigned short>(a >> 16))),
             to_float(bitcast<T>(static_cast<unsigned short>(b >> 16))), sum);
}
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], Half) {
  mma_plain(c, a, b, mma_pair<Half>);
}
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], BFloat16) {
  mma_plain(c, a, b, mma_pair<BFloat16>);
}
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], float) {
  mma_plain(c, a, b, [](float sum, unsigned x, unsigned y) { return fma(bitcast<float>(x), bitcast<float>(y), sum); });
}
// A float's 10 upper bits of fraction, rounded to nearest with ties away from zero.
__device__ inline float to_tf32(float v) {
  const unsigned bits = bitcast<unsigned>(v);
  return (bits & 0x7f800000u) == 0x7f800000u ? v : bitcast<float>((bits + 0x1000u) & 0xffffe000u);
}
#else
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], Half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], BFloat16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], float) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline float to_tf32(float v) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return bitcast<float>(bits);
}
#endif
#endif
)";

// The words in angle brackets are replaced; C++'s braces stay.

/// Which tile a block computes, where its factors' elements are, and how threads fetch those of a step. The launch
/// bounds say that one block per multiprocessor is enough, because the assembler else takes 64 registers, and spills.
constexpr std::string_view tiles_beginning = R"(
// <what>
// <groups> x [<m>, <k>] x [<k>, <n>]; a block computes <tile_m> x <tile_n>, <tile_k> of k at a time<in_parts>.
extern "C" __global__ void __launch_bounds__(256, 1) <name>(<parameters>) {
  using Index = <index>;
  using Sum = <sum>;
  <fixed> Index m_size = <m>, n_size = <n>, k_size = <k>;
  constexpr int tile_m = <tile_m>, tile_n = <tile_n>, tile_k = <tile_k>, parts = <parts>;
  <fixed> unsigned blocks_m = (m_size + tile_m - 1) / tile_m, blocks_n = (n_size + tile_n - 1) / tile_n;
  <fixed> unsigned groups = <groups>;
  <fixed> Index part_k = (k_size + tile_k * parts - 1) / (tile_k * parts) * tile_k;
  const Index m0 = static_cast<Index>(blockIdx.x / blocks_n % blocks_m) * tile_m;
  const Index n0 = static_cast<Index>(blockIdx.x % blocks_n) * tile_n;
  [[maybe_unused]] const Index g = static_cast<Index>(blockIdx.x / (blocks_m * blocks_n) % groups);
  const Index part = static_cast<Index>(blockIdx.x / (blocks_m * blocks_n * groups));
  const Index k_begin = part * part_k, k_end = k_begin + part_k < k_size ? k_begin + part_k : k_size;
  const int tid = static_cast<int>(threadIdx.x);
  constexpr <element> nothing{};
  [[maybe_unused]] const auto a_at = [&]([[maybe_unused]] Index m, [[maybe_unused]] Index k) -> <element> {
    if (m >= m_size || k >= k_end) return nothing;
<a>
  };
  [[maybe_unused]] const auto b_at = [&]([[maybe_unused]] Index k, [[maybe_unused]] Index n) -> <element> {
    if (n >= n_size || k >= k_end) return nothing;
<b>
  };
  [[maybe_unused]] const auto finish = [&]([[maybe_unused]] Index m, [[maybe_unused]] Index n, Sum sum) {
    if (m >= m_size || n >= n_size) return;
<finish>
  };
  constexpr int fetched_a = tile_m * tile_k / 256, fetched_b = tile_n * tile_k / 256;
  <element> next_a[fetched_a], next_b[fetched_b];
  const auto fetch = [&](Index k0) {
<fetch_a>
<fetch_b>
  };
)";

/// A factor's elements one by one, or by packs.
constexpr std::string_view fetch_each = R"(#pragma unroll
    for (int e = 0; e < fetched_<f>; ++e) {
      const int i = tid + e * 256;
      const Index <row> = <row>0 + (<along_k> ? i / tile_k : i % tile_<row>);
      const Index k = k0 + (<along_k> ? i % tile_k : i / tile_<row>);
      next_<f>[e] = <f>_at(<first>, <second>);
    })";
constexpr std::string_view fetch_packs = R"(#pragma unroll
    for (int e = 0; e < fetched_<f>; e += <pack>) {
      const int i = (tid + e / <pack> * 256) * <pack>;
      const Index <row> = <row>0 + (<along_k> ? i / tile_k : i % tile_<row>);
      const Index k = k0 + (<along_k> ? i % tile_k : i / tile_<row>);
      Pack<<element>, <pack>> pack = {};
      if (<inside>) pack = load<<pack>>(<address>, <left>);
#pragma unroll
      for (int j = 0; j < <pack>; ++j) next_<f>[e + j] = pack[j];
    })";

/// Each thread sums quads of columns and rows with fma. Sums of one step are added to the whole, so that rounding
/// errors grow with k / tile_k.
constexpr std::string_view scalar_body = R"(
  constexpr int rows = tile_m / 16, columns = tile_n / 16, padding = 4;
  constexpr int quad_m = rows < 4 ? rows : 4, quad_n = columns < 4 ? columns : 4;
  alignas(16) __shared__ Sum as[2][tile_k][tile_m + padding];
  alignas(16) __shared__ Sum bs[2][tile_k][tile_n + padding];
  const auto put = [&](int stage) {
#pragma unroll
    for (int e = 0; e < fetched_a; ++e) {
      const int i = (tid + e / <pack_a> * 256) * <pack_a> + e % <pack_a>;
      as[stage][<a_along_k> ? i % tile_k : i / tile_m][<a_along_k> ? i / tile_k : i % tile_m] = next_a[e];
    }
#pragma unroll
    for (int e = 0; e < fetched_b; ++e) {
      const int i = (tid + e / <pack_b> * 256) * <pack_b> + e % <pack_b>;
      bs[stage][<b_along_k> ? i % tile_k : i / tile_n][<b_along_k> ? i / tile_k : i % tile_n] = next_b[e];
    }
  };
  const int row = tid / 16, column = tid % 16;
  Sum sums[rows][columns] = {};
  if (k_begin < k_end) {
    fetch(k_begin);
    put(0);
  }
  __syncthreads();
  int stage = 0;
  for (Index k0 = k_begin; k0 < k_end; k0 += tile_k) {
    const bool more = k0 + tile_k < k_end;
    if (more) fetch(k0 + tile_k);
    Sum step[rows][columns] = {};
#pragma unroll
    for (int k = 0; k < tile_k; ++k) {
      Sum a[rows], b[columns];
#pragma unroll
      for (int i = 0; i < rows; ++i) a[i] = as[stage][k][i / quad_m * (16 * quad_m) + row * quad_m + i % quad_m];
#pragma unroll
      for (int j = 0; j < columns; ++j) b[j] = bs[stage][k][j / quad_n * (16 * quad_n) + column * quad_n + j % quad_n];
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < columns; ++j) step[i][j] = <fma>;
    }
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) sums[i][j] += step[i][j];
    if (more) put(1 - stage);
    __syncthreads();
    stage = 1 - stage;
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
      <keep>(m0 + i / quad_m * (16 * quad_m) + row * quad_m + i % quad_m,
             n0 + j / quad_n * (16 * quad_n) + column * quad_n + j % quad_n, sums[i][j]);
}
)";

/// Two by four warps; each multiplies fragments of 16 x 8 by mma. Both factors lie in shared memory with k innermost,
/// so that a fragment's registers are 32-bit words of it.
constexpr std::string_view tensor_body = R"(
  constexpr int padding = <padding>;  // of a row of k, so that the rows of a fragment lie in different banks
  constexpr int rows = tile_m / 32, columns = tile_n / 32, steps = tile_k / <mma_k>;
  alignas(16) __shared__ <element> as[2][tile_m][tile_k + padding];
  alignas(16) __shared__ <element> bs[2][tile_n][tile_k + padding];
  const auto put = [&](int stage) {
#pragma unroll
    for (int e = 0; e < fetched_a; ++e) {
      const int i = (tid + e / <pack_a> * 256) * <pack_a> + e % <pack_a>;
      as[stage][<a_along_k> ? i / tile_k : i % tile_m][<a_along_k> ? i % tile_k : i / tile_m] = <rounded>(next_a[e]);
    }
#pragma unroll
    for (int e = 0; e < fetched_b; ++e) {
      const int i = (tid + e / <pack_b> * 256) * <pack_b> + e % <pack_b>;
      bs[stage][<b_along_k> ? i / tile_k : i % tile_n][<b_along_k> ? i % tile_k : i / tile_n] = <rounded>(next_b[e]);
    }
  };
  const int lane = tid % 32, warp = tid / 32, in_row = lane / 4, in_column = lane % 4;
  const int warp_m = warp / 4 * (tile_m / 2), warp_n = warp % 4 * (tile_n / 4);
  float sums[rows][columns][4] = {};
  if (k_begin < k_end) {
    fetch(k_begin);
    put(0);
  }
  __syncthreads();
  int stage = 0;
  for (Index k0 = k_begin; k0 < k_end; k0 += tile_k) {
    const bool more = k0 + tile_k < k_end;
    if (more) fetch(k0 + tile_k);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int word = step * 8 + in_column;
      unsigned a[rows][4], b[columns][2];
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          a[i][r] = reinterpret_cast<const unsigned*>(as[stage][warp_m + i * 16 + in_row + r % 2 * 8])[word + r / 2 * 4];
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          b[j][r] = reinterpret_cast<const unsigned*>(bs[stage][warp_n + j * 8 + in_row])[word + r * 4];
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < columns; ++j) mma(sums[i][j], a[i], b[j], <element>{});
    }
    if (more) put(1 - stage);
    __syncthreads();
    stage = 1 - stage;
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r)
        <keep>(m0 + warp_m + i * 16 + in_row + r / 2 * 8, n0 + warp_n + j * 8 + in_column * 2 + r % 2, sums[i][j][r]);
}
)";

/// Adds the parts of k, in order.
constexpr std::string_view adding_text = R"(
extern "C" __global__ void __launch_bounds__(256, 1) <name>(<parameters>) {
  using Index = <index>;
  using Sum = <sum>;
  <fixed> long long m_size = <m>, n_size = <n>, results = <groups> * m_size * n_size;
  const long long at = blockIdx.x * 256ll + threadIdx.x;
  if (at >= results) return;
  Sum sum = <workspace>[at];
  for (int part = 1; part < <parts>; ++part) sum += <workspace>[at + part * results];
  [[maybe_unused]] const Index n = static_cast<Index>(at % n_size), m = static_cast<Index>(at / n_size % m_size);
  [[maybe_unused]] const Index g = static_cast<Index>(at / (n_size * m_size));
<finish>
}
)";

}  // namespace

std::string_view mma_text() {
  return mma_words;
}

std::string filled(std::string_view pattern, const PatternWords& words) {
  std::string out;
  while (!pattern.empty()) {
    const auto at = pattern.find('<');
    out += pattern.substr(0, at);
    if (at == pattern.npos) break;
    pattern.remove_prefix(at);
    const auto word = std::ranges::find_if(words, [&](const auto& w) {
      return pattern.substr(1).starts_with(w.first) && pattern.substr(1 + w.first.size()).starts_with('>');
    });
    const std::size_t taken = word == words.end() ? 1 : word->first.size() + 2;
    out += word == words.end() ? "<" : word->second;
    pattern.remove_prefix(taken);
  }
  return out;
}

void MatrixKernelBuilder::emit(const Contraction& c, std::size_t number) {
  const bool tensor = c.unit == MatrixUnit::Tensor, halves = itemsize(c.dtype) == 2 && tensor;
  const Tiles t = tiles_of(c, hint(c.m), hint(c.n), hint(c.k), hint(c.groups));
  const SymExpr blocks = c.groups * sym_floordiv(c.m + (t.m - 1), t.m) * sym_floordiv(c.n + (t.n - 1), t.n);
  const SymExpr results = c.groups * c.m * c.n;
  const std::string sum(sum_type(c.dtype)), suffix = fmt::format("_{}", number);
  const std::string parts = t.parts > 1 ? workspace(sum == "float"    ? DType::Float32
                                                    : sum == "double" ? DType::Float64
                                                                      : DType::UInt64,
                                                    t.parts * results)
                                        : "";
  const auto fetch = [&](const Factor& f, bool left) {
    // A thread fetches so many elements of a step.
    const int fetched = (left ? t.m : t.n) * t.k / threads, pack = std::min(f.pack, fetched);
    const std::string row = left ? "m" : "n", along = f.along_k ? "k" : row, across = f.along_k ? row : "k";
    const auto end = [](const std::string& index) { return index == "k" ? std::string("k_end") : index + "_size"; };
    return filled(pack > 1 ? fetch_packs : fetch_each, {{"f", left ? "a" : "b"},
                                                        {"row", row},
                                                        {"along_k", f.along_k ? "true" : "false"},
                                                        {"first", left ? row : "k"},
                                                        {"second", left ? "k" : row},
                                                        {"pack", std::to_string(pack)},
                                                        {"element", std::string(cuda_memory_type(c.dtype))},
                                                        {"inside", fmt::format("{} < {}", across, end(across))},
                                                        {"address", f.address},
                                                        {"left", fmt::format("{} - {}", end(along), along)}});
  };
  const auto pack_of = [&](const Factor& f, int tile) {
    return std::to_string(std::min(f.pack, tile * t.k / threads));
  };
  for (const SymExpr size : {c.k, c.m, c.n})
    large_ |= !size.is_int() || size.as_int() > std::numeric_limits<std::int32_t>::max() / 4;
  const std::string keeping =
      fmt::format("    {}[((static_cast<long long>(part) * groups + g) * m_size + m) * n_size + n] = sum;\n", parts);
  const auto words = [&](const std::string& finish) {
    return PatternWords{{"what", c.what},
                        {"name", names_.symbol + suffix},
                        {"parameters", "{parameters}"},
                        {"index", "{index}"},
                        {"sum", sum},
                        {"element", tensor ? std::string(cuda_memory_type(c.dtype)) : sum},
                        {"groups", text(c.groups)},
                        {"m", text(c.m)},
                        {"n", text(c.n)},
                        {"k", text(c.k)},
                        {"tile_m", std::to_string(t.m)},
                        {"tile_n", std::to_string(t.n)},
                        {"tile_k", std::to_string(t.k)},
                        {"fixed", std::string(fixed())},
                        {"in_parts", t.parts > 1 ? fmt::format(", in {} parts", t.parts) : ""},
                        {"a", c.a.body},
                        {"b", c.b.body},
                        {"finish", finish},
                        {"a_along_k", c.a.along_k ? "true" : "false"},
                        {"b_along_k", c.b.along_k ? "true" : "false"},
                        {"fma", is_floating(c.dtype) ? "fma(a[i], b[j], step[i][j])" : "step[i][j] + a[i] * b[j]"},
                        {"keep", "finish"},
                        {"padding", halves ? "8" : "4"},
                        {"mma_k", halves ? "16" : "8"},
                        {"rounded", halves ? "" : "to_tf32"},
                        {"fetch_a", fetch(c.a, true)},
                        {"fetch_b", fetch(c.b, false)},
                        {"pack_a", pack_of(c.a, t.m)},
                        {"pack_b", pack_of(c.b, t.n)},
                        {"workspace", parts},
                        {"parts", std::to_string(t.parts)}};
  };
  const bool split = t.parts > 1;
  const std::string finish = split ? keeping : c.finish;
  functions_.push_back({suffix,
                        (tensor ? std::string(mma_text()) : "") + filled(tiles_beginning, words(finish)) +
                            filled(tensor ? tensor_body : scalar_body, words(finish)),
                        blocks * t.parts, threads, 0, true,
                        2.0 * static_cast<double>(hint(results)) * static_cast<double>(hint(c.k))});
  if (!split) return;
  PatternWords adding = words(c.finish);
  adding[1].second += "_sum";
  functions_.push_back({suffix + "_sum", filled(adding_text, adding), sym_floordiv(results + (threads - 1), threads),
                        threads, 0, false});
}

}  // namespace partita::codegen
