// Finds what rounding does to results by 32 runs in double, with inputs and results of calls shifted at random, each by
// its dtype's unit. What might overflow in another order of factors counts as infinite.
#include "core/compare/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/interp/interpreter.h"
#include "core/interp/widen.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

constexpr unsigned runs = 32;

/// The relative shift of a value of dtype `t`, at most that of single precision when `single`; 0 for integers, which
/// are not shifted.
double shift_of(DType t, bool single) {
  switch (t) {
    case DType::Float64:
    case DType::Complex128:
      return 0x1p-51;
    case DType::Float32:
    case DType::Complex64:
      return 0x1p-22;
    case DType::Float16:
      return single ? 0x1p-22 : 0x1p-10;
    case DType::BFloat16:
      return single ? 0x1p-22 : 0x1p-7;
    default:
      return 0;
  }
}

/// Applies f(element, row-major position) to a tensor of doubles or complex doubles; returns others unchanged. Elements
/// that share memory get memory of their own.
Tensor changed(const Tensor& t, auto f) {
  if (t.dtype != DType::Float64 && t.dtype != DType::Complex128) return t;
  bool shared = false;
  for (std::size_t d = 0; d < t.sizes.size(); ++d) shared = shared || (t.strides[d] == 0 && t.sizes[d] > 1);
  Result<Tensor> row_major = Tensor::empty(t.dtype, t.sizes),
                 out = shared ? row_major : Tensor::empty_strided(t.dtype, t.sizes, t.strides);
  if (!row_major || !out) return t;
  row_major->copy_from(t);
  auto each = [&]<class T>(T* x) {
    for (std::int64_t i = 0; i < t.numel(); ++i) f(x[i], i);
  };
  if (t.dtype == DType::Float64)
    each(row_major->as<double>());
  else
    each(row_major->as<std::complex<double>>());
  if (!shared) out->copy_from(*row_major);
  return *std::move(out);
}

class Shaker {
 public:
  explicit Shaker(unsigned seed) : random_(seed) {}

  /// Shifts the elements, those that share memory independently, because what is computed of each rounds alone. Gives
  /// NaNs a random sign, which IEEE 754 leaves open and copysign and bits show.
  Tensor shaken(const Tensor& t, double shift) {
    if (shift == 0) return t;
    return changed(t, [&]<class T>(T& x, std::int64_t) {
      if constexpr (std::is_same_v<T, double>) {
        x = std::isnan(x) ? std::copysign(x, sign()) : x * (1 + shift * sign());
      } else {
        const double size = std::isfinite(std::abs(x)) ? shift * std::abs(x) : 0;
        x += T(size * sign(), size * sign());
      }
    });
  }

  /// `read`: number of elements of the largest argument. A number made of n others may have been rounded n times, in
  /// any order.
  Value shaken(const Value& v, const Meta& meta, bool single, std::int64_t read = 0) {
    if (const auto* list = v.get<ValueList>()) {
      const MetaTuple* tuple = meta.tuple();
      ValueList out = *list;
      for (std::size_t i = 0; tuple && i < out.size() && i < tuple->items.size(); ++i)
        out[i] = shaken(out[i], tuple->items[i], single, read);
      return out;
    }
    const Tensor* t = v.get<Tensor>();
    if (!t || !meta.tensor()) return v;
    const double terms = static_cast<double>(read) / static_cast<double>(std::max<std::int64_t>(t->numel(), 1));
    return shaken(*t, shift_of(meta.tensor()->dtype, single) * std::sqrt(std::max(terms, 1.0)));
  }

 private:
  double sign() { return random_() % 2 ? 1 : -1; }
  std::mt19937_64 random_;
};

/// The number of elements of the largest tensor.
std::int64_t largest(const std::vector<Value>& args) {
  std::int64_t most = 0;
  for (const Value& v : args) {
    if (const Tensor* t = v.get<Tensor>()) most = std::max(most, t->numel());
    if (const auto* list = v.get<ValueList>()) most = std::max(most, largest(*list));
  }
  return most;
}

/// An upper bound of the values that a reduction which multiplies reaches on its way, in any order: its result with all
/// numbers of its first argument that are below 1 set to 1. For other reductions (sums, norms, maxima) this changes
/// little. None if the call does not reduce, or does not take such numbers.
Value farthest(const Node& node, std::vector<Value> args, ValueKwargs kwargs, const EvalContext& context) {
  const OpRecord* record = find_record(node.op());
  const TensorMeta* result = node.meta.tensor();
  const Tensor* numbers = args.empty() ? nullptr : args[0].get<Tensor>();
  if (!record || record->random || is_collective(node.op()) || !result || !numbers || !result->numel().is_int())
    return {};
  const bool reduces = result->numel().as_int() < numbers->numel(), rounds = shift_of(result->dtype, false) > 0;
  if (!reduces || !rounds || !(is_integral(numbers->dtype) || shift_of(numbers->dtype, false) > 0)) return {};
  const Result<Tensor> wide = numbers->to(is_complex(numbers->dtype) ? DType::Complex128 : DType::Float64);
  if (!wide) return {};
  args[0] = changed(*wide, []<class T>(T& x, std::int64_t) {
    if (std::abs(x) < 1) x = T(1);
  });
  Result<Value> reached = evaluate(node.op(), std::move(args), std::move(kwargs), context, &node);
  return reached ? *std::move(reached) : Value();
}

/// Makes a finite value infinite if it may overflow in `t` on its way in some order: 1e30 * 1e30 * 1e-30 does in
/// float32.
Value with_overflows(Value result, const Value& farthest, DType t) {
  const Tensor *whole = result.get<Tensor>(), *reached = farthest.get<Tensor>();
  if (!whole || !reached || whole->sizes != reached->sizes) return result;
  const Result<Tensor> sizes = reached->to(DType::Complex128);
  if (!sizes) return result;
  const double largest = t == DType::Float64 || t == DType::Complex128 ? std::numeric_limits<double>::max()
                                                                       : std::numeric_limits<float>::max();
  return changed(*whole, [&]<class T>(T& x, std::int64_t i) {
    if (std::isfinite(std::abs(x)) && std::abs(sizes->as<std::complex<double>>()[i]) > largest)
      x = T(std::numeric_limits<double>::infinity());
  });
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

double distance(const Tensor& a, const Tensor& b, std::int64_t i) {
  if (!is_complex(a.dtype)) return distance(a.item_as_double(i), b.item_as_double(i));
  const Tensor x = *a.contiguous(), y = *b.contiguous();
  const auto p = x.as<std::complex<double>>()[i], q = y.as<std::complex<double>>()[i];
  return std::hypot(distance(p.real(), q.real()), distance(p.imag(), q.imag()));
}

}  // namespace

Result<std::vector<Value>> interpret_shifted(const Graph& graph, const std::vector<Value>& inputs, unsigned seed,
                                             bool halves, InterpOptions options) {
  Shaker shaker(seed);
  options.float64 = true;
  options.check_inputs = false;
  options.evaluate = [&](const Node& node, std::vector<Value> args, ValueKwargs kwargs,
                         const EvalContext& context) -> Result<Value> {
    const std::int64_t read = largest(args);
    const OpRecord* record = find_record(node.op());
    // A view shows what was shifted already; the result of a collective is not there before it is waited for.
    const bool is_kept = (record && record->schema->is_view) || starts_collective(node.op());
    const Value reached = is_kept ? Value() : farthest(node, args, kwargs, context);
    TRY(Value result, evaluate(node.op(), std::move(args), std::move(kwargs), context, &node));
    TRY(Value out, widened(std::move(result)));
    if (is_kept) return out;
    if (const TensorMeta* t = node.meta.tensor()) out = with_overflows(std::move(out), reached, t->dtype);
    return shaker.shaken(out, node.meta, false, read);
  };
  options.input = [&](const Node& node, const Value& v) { return shaker.shaken(v, node.meta, !halves); };
  return interpret(graph, inputs, options);
}

Result<Moved> moved_by_rounding(const std::function<Result<std::vector<Value>>(unsigned seed)>& shifted_run,
                                const std::vector<Value>& exact) {
  Moved moved(exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k)
    if (const Tensor* t = exact[k].get<Tensor>()) moved[k].assign(static_cast<std::size_t>(t->numel()), 0);
  for (unsigned seed = 0; seed < runs; ++seed) {
    TRY(const std::vector<Value> shifted, shifted_run(seed));
    if (shifted.size() != exact.size())
      return unsupported("compare.rounding", "a run with shifted values gives other results than the one in double");
    for (std::size_t k = 0; k < exact.size(); ++k) {
      const Tensor *a = exact[k].get<Tensor>(), *b = shifted[k].get<Tensor>();
      // A result whose size depends on values has no elements that could be compared.
      if (a && (!b || a->sizes != b->sizes || a->dtype != b->dtype)) moved[k].clear();
      if (!a || !b || moved[k].empty()) continue;
      for (std::int64_t i = 0; i < a->numel(); ++i) {
        double& most = moved[k][static_cast<std::size_t>(i)];
        most = std::max(most, distance(*a, *b, i));
      }
    }
  }
  return moved;
}

Result<Moved> moved_by_rounding(const Graph& graph, const std::vector<Value>& inputs, const std::vector<Value>& exact,
                                bool halves) {
  return moved_by_rounding([&](unsigned seed) { return interpret_shifted(graph, inputs, seed, halves); }, exact);
}

bool explained_by_rounding(const Tensor& exact, const Tensor& v, const Tolerance& tolerance,
                           const std::vector<double>& moved) {
  const Result<Tensor> a = exact.to(DType::Complex128), b = v.to(DType::Complex128);
  if (!a || !b || exact.sizes != v.sizes || moved.size() != static_cast<std::size_t>(v.numel())) return false;
  for (std::int64_t i = 0; i < v.numel(); ++i) {
    const auto x = a->as<std::complex<double>>()[i], y = b->as<std::complex<double>>()[i];
    if (x == y || (std::isnan(std::abs(x)) && std::isnan(std::abs(y)))) continue;
    const double farthest = moved[static_cast<std::size_t>(i)];
    if (std::isinf(farthest)) continue;
    if (!(std::abs(y - x) <= tolerance.absolute + tolerance.relative * std::abs(x) + 4 * farthest)) return false;
  }
  return true;
}

Status judge_both_sides(Difference& d, const Value& exact, const Value& expected, const Value& found,
                        const Tolerance& tolerance, const std::function<Result<std::vector<double>>()>& moved) {
  const bool expected_is_right = judge_by_baseline(d, exact, expected, found, tolerance);
  if (d.values_agree || expected_is_right) return {};
  const Result<std::vector<double>> by_rounding = moved();
  if (!by_rounding && by_rounding.error().fault == Fault::Cancelled) return by_rounding.error();
  const Tensor *x = exact.get<Tensor>(), *theirs = expected.get<Tensor>();
  const bool explained =
      by_rounding && x && theirs && explained_by_rounding(*x, *theirs, tolerance.of(theirs->dtype), *by_rounding);
  d.expected_is_off = by_rounding && !explained;
  d.rounding = d.rounding && explained;
  return {};
}

}  // namespace partita
