// Variances, standard deviations and norms.
#include <algorithm>
#include <limits>

#include "core/ops/families/lower_reduce.h"
#include "core/ops/families/reduce_parts.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

struct Moments {
  LoweredTensor variance, mean;
};

/// |v|^2, which is real.
Scalar square(ScalarBuilder& b, Scalar v) {
  const DType dtype = b.dtype(v);
  return b.cast(b.Mul(v, is_complex(dtype) ? b.Conj(v) : v), real_of(dtype));
}

/// Two passes: first the mean, then the squares of the differences from it, summed in `squared`. One pass would lose
/// digits to cancellation.
Moments moments(LowerCall& call, DType squared) {
  LoweredTensor x = summand(call, call.in("self").dtype);
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  const SymExpr n = count(x, reduced);
  double correction = call.has("correction") ? as_double(call.number("correction")) : 1;
  LoweredTensor mean = divided(call.to, call.to.reduce(x, ScalarOp::Add, reduced), n);
  LoweredTensor wide = call.to.expand(mean, x.sizes);
  LoweredTensor squares = call.to.reduce(squared, x.sizes, reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
    const Scalar difference = body.b.Sub(body.read(x, i), body.read(wide, i));
    return square(body.b, body.b.cast(difference, is_complex(x.dtype) ? complex_of(squared) : squared));
  });
  LoweredTensor variance = pointwise(call.to, squared, squared, {squares}, [=](ScalarBuilder& b, auto v) {
    const DType t = b.dtype(v[0]);
    if (n.is_int()) return b.Div(v[0], b.constant(t, std::max(static_cast<double>(n.as_int()) - correction, 0.0)));
    return b.Div(v[0], b.Max(b.Sub(b.count(t, n), b.constant(t, correction)), b.constant(t, 0)));
  });
  return {variance, mean};
}

DType variance_dtype(LowerCall& call) {
  return real_of(opmath_dtype(call.in("self").dtype));
}

void lower_var(LowerCall& call) {
  call.give(moments(call, variance_dtype(call)).variance);
}

/// A deviation may be a float though its square is too large or too small for one.
void lower_std(LowerCall& call) {
  LoweredTensor v = moments(call, DType::Float64).variance;
  call.give(pointwise(call.to, v.dtype, v.dtype, {v}, [](ScalarBuilder& b, auto x) { return b.Sqrt(x[0]); }));
}

void lower_var_mean(LowerCall& call) {
  Moments m = moments(call, variance_dtype(call));
  call.give(m.variance);
  call.give(m.mean);
}

/// The dtype of linalg_vector_norm. Its `dtype` argument may widen, no more (_check_norm_dtype of torch/_refs/linalg).
DType vector_norm_dtype(DType self, std::optional<DType> asked) {
  const auto refuse = [](const std::string& why) { fail("linalg.vector_norm: " + why); };
  const auto name = [](DType t) { return "torch." + std::string(torch_name(t)); };
  if (is_whole(self)) refuse("Expected a floating point or complex tensor as input. Got " + name(self));
  if (!asked) return real_of(self);
  if (is_whole(*asked)) refuse("dtype should be floating point or complex. Got " + name(*asked));
  if (is_complex(self) != is_complex(*asked))
    refuse(is_complex(self) ? "dtype should be complex for complex inputs. Got " + name(*asked)
                            : "dtype should be real for real inputs. Got " + name(*asked));
  if (promote(self, *asked) != *asked)
    refuse("the dtype of the input (" + name(self) +
           ") should be convertible without narrowing to the specified dtype (" + name(*asked) + ")");
  return real_of(*asked);
}

/// The order of linalg_vector_norm, or of norm, where None is 2.
double order_of(LowerCall& call) {
  if (call.schema.index_of("ord") >= 0) return as_double(call.number("ord"));
  return call.has("p") ? as_double(call.number("p")) : 2;
}

/// Lowers norms of the orders 1, 2 and +-inf.
void lower_vector_norm(LowerCall& call) {
  const LoweredTensor self = call.in("self");
  const DType real = call.out().dtype, summed = is_complex(self.dtype) ? complex_of(real) : real;
  LoweredTensor x = summand(call, summed);
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  const double order = order_of(call);
  LoweredTensor size =
      call.to.cast(pointwise(call.to, x.dtype, x.dtype, {x}, [](ScalarBuilder& b, auto v) { return b.Abs(v[0]); }),
                   real_of(x.dtype));
  if (order == 1) return call.give(call.to.reduce(size, ScalarOp::Add, reduced));
  if (order == INFINITY) return call.give(call.to.reduce(size, ScalarOp::Max, reduced));
  if (order == -INFINITY) return call.give(call.to.reduce(size, ScalarOp::Min, reduced));
  if (order != 2) fail_unsupported("a vector norm of this order in loops");
  LoweredTensor squares =
      pointwise(call.to, x.dtype, real_of(x.dtype), {x}, [](ScalarBuilder& b, auto v) { return square(b, v[0]); });
  LoweredTensor total = call.to.reduce(squares, ScalarOp::Add, reduced);
  call.give(
      pointwise(call.to, total.dtype, total.dtype, {total}, [](ScalarBuilder& b, auto v) { return b.Sqrt(v[0]); }));
}

/// linalg__powsum: the sum of |x|^ord.
void lower_powsum(LowerCall& call) {
  if (is_complex(call.in("self").dtype)) fail_unsupported("power sums of complex numbers");
  double order = as_double(call.number("ord"));
  if (order == 0) fail_unsupported("a power sum of order 0");  // 0^0 does not count
  LoweredTensor x = summand(call, call.out().dtype);
  LoweredTensor powers = pointwise(call.to, x.dtype, x.dtype, {x}, [=](ScalarBuilder& b, auto v) {
    return b.Pow(b.Abs(v[0]), b.constant(b.dtype(v[0]), order));
  });
  call.give(call.to.reduce(powers, ScalarOp::Add, reduced_dims(call, x.dim())));
}

double correction(const EvalCall& call) {
  return call.has("correction") ? as_double(call.number("correction")) : 1;
}

/// Welford's running mean, as in PyTorch's kernel: equal elements have variance 0, however their mean is rounded.
constexpr auto variance = [](const EvalCall& call, const auto* x, const Line& line) {
  using T = std::decay_t<decltype(*x)>;
  std::conditional_t<is_complex_type<T>::value, std::complex<double>, double> center = 0;
  double squares = 0, count = 0;
  line.each([&](std::int64_t at) {
    const auto v = convert<decltype(center)>(x[at]), before = v - center;
    center += before / ++count;
    if constexpr (is_complex_type<T>::value)
      squares += (before * std::conj(v - center)).real();
    else
      squares += before * (v - center);
  });
  return squares / std::max(0.0, static_cast<double>(line.length()) - correction(call));
};

constexpr auto deviation = [](const EvalCall& call, const auto* x, const Line& line) {
  return std::sqrt(variance(call, x, line));
};

Meta fake_spread_and_mean(FakeCall& call) {
  DType self = call.tensor("self").dtype;
  return pair_of(reduced_meta(call, real_dtype(self, {})), reduced_meta(call, self));
}

template <auto spread>
Value eval_spread_and_mean(EvalCall& call) {
  return ValueList{eval<real_dtype, spread>(call), eval<same_dtype, mean>(call)};
}

constexpr auto norm = [](const EvalCall& call, const auto* x, const Line& line) {
  using T = std::decay_t<decltype(*x)>;
  std::string_view name = call.schema.index_of("ord") >= 0 ? "ord" : "p";
  double ord = call.has(name) ? as_double(call.number(name)) : 2;
  bool largest = ord > 0 && std::isinf(ord), smallest = ord < 0 && std::isinf(ord);
  // Unless the dtype is double, PyTorch computes powers in float, where they overflow and underflow earlier.
  constexpr bool wide = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
  auto power = [](double v) { return wide ? v : static_cast<double>(static_cast<float>(v)); };
  double total = smallest ? std::numeric_limits<double>::infinity() : 0;
  line.each([&](std::int64_t at) {
    double a = std::abs(convert<AccumulateType<T>>(x[at]));
    if (largest)
      total = a != a || a > total ? a : total;
    else if (smallest)
      total = a != a || a < total ? a : total;
    else if (ord == 0)
      total += a != 0;
    else if (ord == 1)
      total += a;
    else if (ord == 2)
      total += power(a * a);
    else
      total += power(std::pow(a, ord));
  });
  total = power(total);
  if (largest || smallest || ord == 0 || ord == 1) return total;
  return ord == 2 ? std::sqrt(total) : std::pow(total, 1 / ord);
};

constexpr auto powsum = [](const EvalCall& call, const auto* x, const Line& line) {
  using T = std::decay_t<decltype(*x)>;
  const double ord = as_double(call.number("ord"));
  double total = 0;
  line.each([&](std::int64_t at) {
    const double a = std::abs(convert<AccumulateType<T>>(x[at]));
    total += ord == 0 ? a != 0 : std::pow(a, ord);
  });
  return total;
};

}  // namespace

void register_moments(OpTable& t) {
  t.default_family = Family::Reduction;
  const ReductionRow rows[] = {
      {"aten.var.correction", fake<real_dtype>, eval<real_dtype, variance>,
       "var_backward(grad, self, dim, correction, keepdim)", lower_var, true},
      {"aten.std.correction", fake<real_dtype>, eval<real_dtype, deviation>,
       "std_backward(result, grad, self, dim, correction, keepdim)", lower_std, true},
      {"aten.var_mean.correction", fake_spread_and_mean, eval_spread_and_mean<variance>,
       "sum_of(None if grads[0] is None else var_backward(grads[0], self, dim, correction, keepdim), "
       "None if grads[1] is None else mean_backward(grads[1], self, dim, keepdim))",
       lower_var_mean, true},
      {"aten.std_mean.correction", fake_spread_and_mean, eval_spread_and_mean<deviation>,
       "sum_of(None if grads[0] is None else std_backward(result0, grads[0], self, dim, correction, keepdim), "
       "None if grads[1] is None else mean_backward(grads[1], self, dim, keepdim))"},
      {"aten.linalg_vector_norm.default", fake<vector_norm_dtype>, eval<vector_norm_dtype, norm>,
       "vector_norm_backward(grad, self, ord, result, dim, keepdim)", lower_vector_norm},
      {"aten.linalg__powsum.default", fake<real_dtype>, eval<real_dtype, powsum>,
       "unsupported('the derivative of linalg__powsum, which PyTorch does not have either')", lower_powsum},
      {"aten.norm.Scalar", fake<real_dtype>, eval<real_dtype, norm>,
       "vector_norm_backward(grad, self, p, result, None, False)", lower_vector_norm},
      {"aten.norm.ScalarOpt_dim", fake<real_dtype>, eval<real_dtype, norm>,
       "vector_norm_backward(grad, self, p, result, dim, keepdim)", lower_vector_norm},
  };
  add_reductions(t, rows);
}

}  // namespace partita
