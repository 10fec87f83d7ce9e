// Running sums, products, extremes and logarithms of sums along one dimension. A block walks along a row: threads scan
// a few neighbours each, warps scan their threads' results by shuffles, and what is before a tile is carried to the
// next. Sums have the order of a tree, the same in each run. Rows whose elements lie apart, where there are many of
// them, have a thread each: neighbouring threads read neighbouring elements.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"
#include "codegen/cuda/matrix/contraction.h"
#include "codegen/cuda/rows/rows.h"

namespace partita::codegen {
namespace {

/// How two neighbouring parts of a row are combined: the body of a function of the Values `before` and `after`, and the
/// Value that changes no other.
struct Combination {
  LibraryRoutine routine;
  const char* what;
  std::string_view combined, nothing;
  bool placed = false;  ///< a Value says where it was found, too
};
constexpr Combination combinations[] = {
    {LibraryRoutine::Cumsum, "running sums", "    return before + after;", "Value(0)"},
    {LibraryRoutine::Cumprod, "running products", "    return before * after;", "Value(1)"},
    {LibraryRoutine::Cummax, "running maxima", "    return last_of(before, after, NotLess());", "{0, -1}", true},
    {LibraryRoutine::Cummin, "running minima", "    return last_of(before, after, NotGreater());", "{0, -1}", true},
    {LibraryRoutine::Logcumsumexp, "running logarithms of sums", "    return log_add_exp(before, after);",
     "Value(-INFINITY)"},
};

constexpr std::string_view helpers = R"(
#ifndef PARTITA_SCAN
#define PARTITA_SCAN
// An element and its place in the row; the place -1 is of no element.
template <class T>
struct Placed {
  T of;
  long long at;
};
// What the lane `step` below has; the lanes without such a one get their own.
template <class T>
__device__ T lower_lane(T v, int step) {
  return static_cast<T>(__shfl_up_sync(~0u, v, step, 32));
}
template <class R>
__device__ Complex<R> lower_lane(Complex<R> v, int step) {
  return {lower_lane(v.re, step), lower_lane(v.im, step)};
}
template <class T>
__device__ Placed<T> lower_lane(Placed<T> v, int step) {
  return {lower_lane(v.of, step), lower_lane(v.at, step)};
}
// Does the later of two elements win? NVRTC takes no generic lambdas in their place.
struct NotLess {
  template <class T>
  __device__ bool operator()(T before, T after) const { return after >= before; }
};
struct NotGreater {
  template <class T>
  __device__ bool operator()(T before, T after) const { return after <= before; }
};
// The extreme of two parts. Of equal elements the last wins, and NaN over all numbers.
template <class T, class Wins>
__device__ Placed<T> last_of(Placed<T> before, Placed<T> after, const Wins& wins) {
  if (before.at < 0) return after;
  if (after.at < 0) return before;
  return after.of != after.of || (before.of == before.of && wins(before.of, after.of)) ? after : before;
}
// log(e^a + e^b). Equal infinities give that infinity.
template <class R>
__device__ R log_add_exp(R a, R b) {
  if (a != a || b != b) return a + b;
  const R high = a < b ? b : a, low = a < b ? a : b;
  return isinf(high) && high == low ? high : high + log1p(exp(low - high));
}
// The larger operand is that with the larger real part. Of two with the real part -inf, the result is one.
__device__ inline Wide log_add_exp(Wide a, Wide b) {
  if (is_nan(a.re) || is_nan(a.im) || is_nan(b.re) || is_nan(b.im)) return {NAN, NAN};
  const Wide low = a.re < b.re ? a : b, high = a.re < b.re ? b : a;
  if (is_infinite(low.re) && low.re == high.re) return low.re < 0 ? low : wide_log(wide_exp(low) + wide_exp(high));
  const Wide ratio = is_infinite(low.re) ? Wide(0) : wide_exp(low - high);
  return high + Wide(0.5 * log1p(ratio.re * (2 + ratio.re) + ratio.im * ratio.im), atan2(ratio.im, 1 + ratio.re));
}
#endif
)";

constexpr std::string_view block_text = R"(
// <what> of <origin>: <rows> rows of <length> elements. A block walks along a row, <threads> x <each> at a time.
extern "C" __global__ void __launch_bounds__(<threads>) <name>({parameters}) {
  using Index = {index};
  using Value = <value>;
  <fixed> Index length = <length>;
  constexpr int threads = <threads>, warps = threads / 32, each = <each>;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  [[maybe_unused]] const Index row = static_cast<Index>(blockIdx.x);
<split>  const auto combined = [](Value before, Value after) -> Value {
<combined>
  };
  const Value nothing = <nothing>;
  __shared__ Value of_warps[2][warps];
  Value carry = nothing;  // of all elements before the tile
  int stage = 0;
  for (Index from = 0; from < length; from += threads * each) {
    const Index first = from + static_cast<int>(threadIdx.x) * each;
    Value v[each];
<load>
#pragma unroll
    for (int e = 1; e < each; ++e) v[e] = combined(v[e - 1], v[e]);
    Value upto = v[each - 1];  // of the warp's lanes up to this one
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const Value below = lower_lane(upto, step);
      if (lane >= step) upto = combined(below, upto);
    }
    if (lane == 31) of_warps[stage][warp] = upto;
    const Value below = lower_lane(upto, 1);
    __syncthreads();
    Value before = carry;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      if (w == warp) before = carry;
      carry = combined(carry, of_warps[stage][w]);
    }
    if (lane > 0) before = combined(before, below);
#pragma unroll
    for (int e = 0; e < each; ++e) v[e] = combined(before, v[e]);
<store>
    stage = 1 - stage;  // one barrier is enough where the next tile's sums go elsewhere
  }
}
)";

constexpr std::string_view thread_text = R"(
// <what> of <origin>: <rows> rows of <length> elements, whose elements lie apart. A thread walks along a row.
extern "C" __global__ void __launch_bounds__(<threads>) <name>({parameters}) {
  using Index = {index};
  using Value = <value>;
  <fixed> long long rows = <rows>, length = <length>;
  const long long number = blockIdx.x * <threads>ll + threadIdx.x;
  if (number >= rows) return;
  [[maybe_unused]] const Index row = static_cast<Index>(number);
<split>  const auto combined = [](Value before, Value after) -> Value {
<combined>
  };
  Value total = <nothing>;
#pragma unroll 4
  for (Index i = 0; i < length; ++i) {
    total = combined(total, <element>);
<store>
  }
}
)";

/// The dtype in which a scan of such elements is computed; nullopt for those that PyTorch does not take either.
std::optional<DType> value_dtype(const Combination& c, DType dtype) {
  if (c.routine == LibraryRoutine::Logcumsumexp) {
    if (is_complex(dtype)) return DType::Complex128;
    if (!is_floating(dtype)) return std::nullopt;
  }
  if (dtype == DType::Float16 || dtype == DType::BFloat16) return DType::Float32;
  if (c.placed) {
    if (is_complex(dtype)) return std::nullopt;
    return dtype == DType::Bool ? DType::UInt8 : dtype;
  }
  return is_floating(dtype) || is_complex(dtype) ? dtype : DType::UInt64;  // wraps as narrower sums do
}

class Scan {
 public:
  Scan(MatrixKernelBuilder& builder, const Combination& combination, schedule::PlanView in,
       std::vector<schedule::PlanView> results, std::size_t dim, DType value)
      : builder_(builder),
        combination_(combination),
        in_(std::move(in)),
        results_(std::move(results)),
        dim_(dim),
        value_(value) {}

  void add(const std::string& symbol, const std::string& origin, bool has_epilogue) {
    const bool scalar = in_.sizes.empty();
    const SymExpr length = scalar ? SymExpr(1) : in_.sizes[dim_];
    SymExpr rows = 1;
    for (std::size_t d = 0; d < in_.sizes.size(); ++d)
      if (d != dim_) rows = rows * in_.sizes[d];
    if (rows.is(0) || length.is(0)) return;
    const std::int64_t long_row = builder_.hint(length), many = builder_.hint(rows);
    // So many threads fill a device, or a row is too short for a warp.
    constexpr std::int64_t enough_rows = 1 << 12, short_row = 16;
    const bool apart = !scalar && !in_.strides[dim_].is(1);
    const bool by_thread = apart && (many >= enough_rows || long_row <= short_row);
    constexpr int each = 4;
    const int threads = by_thread ? 256
                                  : static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(
                                        std::clamp<std::int64_t>((long_row + each - 1) / each, 32, 256))));
    std::string store;
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (results_[i].buffer >= 0) store += by_thread ? stored(i, "i", "total") : stored_tile(i, has_epilogue);
    const std::string type(cuda_type(value_));
    const PatternWords words = {{"what", combination_.what},
                                {"origin", origin},
                                {"name", symbol + "_scan"},
                                {"rows", builder_.text(rows)},
                                {"length", builder_.text(length)},
                                {"threads", std::to_string(threads)},
                                {"each", std::to_string(each)},
                                {"value", combination_.placed ? "Placed<" + type + ">" : type},
                                {"fixed", std::string(builder_.fixed())},
                                {"split", split()},
                                {"combined", std::string(combination_.combined)},
                                {"nothing", std::string(combination_.nothing)},
                                {"element", by_thread ? element_at("i") : ""},
                                {"load", by_thread ? "" : load_tile()},
                                {"store", store}};
    builder_.add({.suffix = "_scan",
                  .text = std::string(helpers) + filled(by_thread ? thread_text : block_text, words),
                  .blocks = by_thread ? sym_floordiv(rows + (threads - 1), threads) : rows,
                  .threads = threads,
                  .cooperates = !by_thread,
                  .operations = static_cast<double>(many) * static_cast<double>(long_row)});
  }

 private:
  std::vector<std::string> indices(const std::string& along) const {
    std::vector<std::string> out;
    for (std::size_t d = 0; d < in_.sizes.size(); ++d) out.push_back(d == dim_ ? along : fmt::format("d{}", d));
    return out;
  }

  /// Takes the row's number apart into the indices of the other dimensions.
  std::string split() {
    std::string text, rest = "row";
    for (std::size_t d = in_.sizes.size(); d-- > 0;) {
      if (d == dim_) continue;
      text += fmt::format("  [[maybe_unused]] const Index d{0} = {1} % {2}, d{0}_rest = {1} / {2};\n", d, rest,
                          builder_.text(in_.sizes[d]));
      rest = fmt::format("d{}_rest", d);
    }
    return text;
  }

  /// A Value of an element as it lies in memory.
  std::string value_of(const std::string& element, const std::string& at) {
    Expression v{element};
    if (in_.dtype == DType::Bool) v = {element + " != 0", Expression::Equality};
    // Sums are of elements in the result's dtype.
    if (!combination_.placed) v = cuda_cast(v, in_.dtype, results_[0].dtype);
    v = cuda_cast(v, combination_.placed ? in_.dtype : results_[0].dtype, value_);
    return combination_.placed ? fmt::format("Value{{{}, {}}}", v.text, at) : v.text;
  }
  std::string element_at(const std::string& at) { return value_of(builder_.element(in_, indices(at)), at); }

  std::string load_tile() {
    const bool packs = !in_.sizes.empty() && in_.strides[dim_].is(1);
    std::string text;
    if (packs)
      text = fmt::format("    const auto pack = load_any<each>(&{}, length - first);\n",
                         builder_.element(in_, indices("first")));
    return text + fmt::format(
                      "#pragma unroll\n    for (int e = 0; e < each; ++e) {{\n      v[e] = nothing;\n"
                      "      if (first + e < length) v[e] = {};\n    }}",
                      packs ? value_of("pack[e]", "first + e") : element_at("(first + e)"));
  }

  std::string result_of(std::size_t i, const std::string& value) const {
    return !combination_.placed ? value : value + (i == 0 ? ".of" : ".at");
  }
  std::string stored(std::size_t i, const std::string& at, const std::string& value) {
    return builder_.store(results_[i], indices(at), result_of(i, value));
  }
  std::string stored_tile(std::size_t i, bool has_epilogue) {
    const bool packs = !has_epilogue && !in_.sizes.empty() && results_[i].strides[dim_].is(1);
    if (!packs)
      return fmt::format(
          "#pragma unroll\n    for (int e = 0; e < each; ++e)\n      if (first + e < length) {{\n{}"
          "      }}\n",
          stored(i, "(first + e)", "v[e]"));
    return fmt::format(
        "    Pack<{0}, each> results_{1};\n#pragma unroll\n    for (int e = 0; e < each; ++e) results_{1}[e] = {2};\n"
        "    store_any(&{3}, results_{1}, length - first);\n",
        cuda_memory_type(results_[i].dtype), i, MatrixKernelBuilder::stored(results_[i], result_of(i, "v[e]")),
        builder_.element(results_[i], indices("first"), true));
  }

  MatrixKernelBuilder& builder_;
  const Combination& combination_;
  schedule::PlanView in_;
  std::vector<schedule::PlanView> results_;
  std::size_t dim_;
  DType value_;
};

}  // namespace

std::optional<MatrixKernel> scan_kernel(const ExternContext& context, const MatrixNames& names, std::string& why_not) {
  const auto* combination = std::ranges::find(combinations, context.routine, &Combination::routine);
  const auto in = tensor_view(context, 0);
  const auto dim = context.number(1);
  if (combination == std::end(combinations) || !in || !dim) {
    why_not = "symbolic numbers";
    return std::nullopt;
  }
  const std::vector<schedule::PlanView> results(context.call.results.begin(), context.call.results.end());
  const std::optional<DType> value = value_dtype(*combination, combination->placed ? in->dtype : results[0].dtype);
  if (!value) {
    why_not = "a dtype that it does not take";
    return std::nullopt;
  }
  const auto rank = static_cast<std::int64_t>(in->sizes.size());
  const auto at = static_cast<std::int64_t>(*dim);
  MatrixKernelBuilder builder(context, names);
  Scan(builder, *combination, *in, results, static_cast<std::size_t>(at < 0 ? at + rank : at), *value)
      .add(names.symbol, context.call.origin, context.call.epilogue != nullptr);
  return builder.build(why_not);
}

}  // namespace partita::codegen
