// Reductions. Results are row-major. Kernels compute in double (int64, complex<double>) and round once; sums in single
// precision are an exception (eval_sum).
#include <algorithm>
#include <limits>

#include "core/ops/families.h"
#include "core/ops/families/reduce_kernels.h"
#include "core/ops/families/reduce_parts.h"
#include "core/ops/formula_functions.h"
#include "core/ops/kernels/cascade_sum.h"
#include "core/ops/lowerings.h"

namespace partita {
namespace {

bool is_whole(DType t) {
  return is_integral(t) || t == DType::Bool;
}

TensorMeta reduced_meta(const FakeCall& call, DType dtype) {
  const TensorMeta& self = call.tensor("self");
  std::vector<bool> reduced = reduced_dims(call, self.dim());
  return TensorMeta::contiguous(dtype, reduced_sizes(self.sizes, reduced, keeps_dim(call)), self.device);
}

template <class Call>
std::optional<DType> dtype_argument(const Call& call) {
  return call.schema.index_of("dtype") >= 0 ? call.dtype("dtype") : std::nullopt;
}

/// A new tensor with the sizes of the result.
Tensor result_of(const EvalCall& call, DType dtype) {
  const Tensor& self = call.tensor("self");
  return unwrap(
      Tensor::empty(dtype, reduced_sizes(self.sizes, reduced_dims(call, self.sizes.size()), keeps_dim(call))));
}

DType sum_dtype(DType self, std::optional<DType> asked) {
  return asked ? *asked : is_whole(self) ? DType::Int64 : self;
}
DType same_dtype(DType self, std::optional<DType> asked) {
  return asked.value_or(self);
}
DType mean_dtype(DType self, std::optional<DType> asked) {
  DType t = asked.value_or(self);
  if (is_whole(t))
    fail("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: " +
         std::string(torch_name(t)));
  return t;
}
DType truth_dtype(DType self, std::optional<DType>) {
  return self == DType::UInt8 ? DType::UInt8 : DType::Bool;
}
DType real_dtype(DType self, std::optional<DType> asked) {
  DType t = asked.value_or(self);
  if (is_whole(t)) fail("std and var only support floating point and complex dtypes");
  return real_of(t);
}

template <DType (*rule)(DType, std::optional<DType>)>
Meta fake(FakeCall& call) {
  return reduced_meta(call, rule(call.tensor("self").dtype, dtype_argument(call)));
}

/// Evaluates a reduction: value(call, data, line) returns an output element in the type it was computed in. The input
/// is first converted to the call's `dtype` argument, if given.
template <DType (*rule)(DType, std::optional<DType>), auto value>
Value eval(EvalCall& call) {
  Tensor self = call.tensor("self");
  std::optional<DType> asked = dtype_argument(call);
  DType type = rule(self.dtype, asked);
  // With dtype a half type, PyTorch's mean does not round the elements to it before it adds them.
  if (asked) self = unwrap(self.to(rule == mean_dtype ? compute_dtype(*asked) : *asked));
  std::vector<bool> reduced = reduced_dims(call, self.sizes.size());
  return dispatch(self.dtype, [&]<class T>() {
    const T* data = self.as<T>();
    using Result = decltype(value(call, data, std::declval<const Line&>()));
    Tensor out = result_of(call, dtype_of<Result>());
    for_each_line(self, reduced,
                  [&](std::int64_t i, const Line& line) { out.as<Result>()[i] = value(call, data, line); });
    return out.dtype == type ? out : unwrap(out.to(type));
  });
}

/// Doubles are summed with compensation (Neumaier), so that the mean of equal numbers is that number.
constexpr auto sum = [](const EvalCall&, const auto* x, const Line& line) {
  using T = std::decay_t<decltype(*x)>;
  Accumulator<T> total = 0;
  if constexpr (std::is_same_v<Accumulator<T>, double>) {
    double lost = 0;
    line.each([&](std::int64_t at) {
      const auto v = convert<double>(x[at]);
      const double next = total + v;
      lost += std::abs(total) >= std::abs(v) ? (total - next) + v : (v - next) + total;
      total = next;
    });
    return std::isfinite(lost) ? total + lost : total;
  }
  line.each([&](std::int64_t at) { total += convert<Accumulator<T>>(x[at]); });
  return total;
};
/// Sums and means in single precision are added in PyTorch's order and equal PyTorch's bit by bit. Others are rounded
/// once.
template <DType (*rule)(DType, std::optional<DType>), auto value>
Value eval_sum(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  const DType type = self.dtype;
  if ((type != DType::Float32 && type != DType::Complex64) || rule(type, dtype_argument(call)) != type)
    return eval<rule, value>(call);
  Tensor out = result_of(call, type);
  const std::vector<bool> reduced = reduced_dims(call, self.sizes.size());
  const std::int64_t terms = out.numel() == 0 ? 0 : self.numel() / out.numel();
  auto run = [&]<class T>(T* sums) {
    kernels::cascade_sum(self, reduced, sums);
    if (rule != mean_dtype) return;
    const auto count = static_cast<float>(terms);
    for (std::int64_t i = 0; i < out.numel(); ++i)
      // PyTorch multiplies complex sums by 1 / count.
      sums[i] = is_complex_type<T>::value ? sums[i] * (1 / count) : sums[i] / count;
  };
  if (type == DType::Float32)
    run(out.as<float>());
  else
    run(out.as<std::complex<float>>());
  return out;
}
constexpr auto nansum = [](const EvalCall&, const auto* x, const Line& line) {
  using T = std::decay_t<decltype(*x)>;
  Accumulator<T> total = 0;
  line.each([&](std::int64_t at) {
    auto v = convert<Accumulator<T>>(x[at]);
    if (v == v) total += v;
  });
  return total;
};
constexpr auto times = [](const EvalCall&, const auto* x, const Line& line) {
  using T = std::decay_t<decltype(*x)>;
  Accumulator<T> total = 1;
  line.each([&](std::int64_t at) {
    if constexpr (std::is_integral_v<T>)
      total = static_cast<std::int64_t>(static_cast<std::uint64_t>(total) * static_cast<std::uint64_t>(x[at]));
    else
      total *= convert<Accumulator<T>>(x[at]);
  });
  return total;
};
constexpr auto mean = [](const EvalCall& call, const auto* x, const Line& line) {
  auto total = sum(call, x, line);
  if constexpr (std::is_integral_v<decltype(total)>)
    return static_cast<double>(total) / static_cast<double>(line.length());
  else
    return total / static_cast<double>(line.length());
};
constexpr auto any = [](const EvalCall&, const auto* x, const Line& line) {
  bool found = false;
  line.each([&](std::int64_t at) { found = found || convert<bool>(x[at]); });
  return found;
};
constexpr auto all = [](const EvalCall&, const auto* x, const Line& line) {
  bool held = true;
  line.each([&](std::int64_t at) { held = held && convert<bool>(x[at]); });
  return held;
};
constexpr auto count_nonzero = [](const EvalCall&, const auto* x, const Line& line) {
  std::int64_t n = 0;
  line.each([&](std::int64_t at) { n += convert<bool>(x[at]); });
  return n;
};

/// The extreme element and its position in the line. The first NaN wins; of equal elements the first does.
template <bool greatest, class T>
std::pair<Comparable<T>, std::int64_t> extreme(const T* x, const Line& line) {
  if (line.length() == 0)
    fail(
        "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.");
  Comparable<T> best{};
  std::int64_t where = -1, i = 0;
  line.each([&](std::int64_t at) {
    auto v = convert<Comparable<T>>(x[at]);
    if constexpr (!is_complex_type<Comparable<T>>::value) {
      if (where < 0 || (!is_nan(best) && (is_nan(v) || (greatest ? v > best : v < best)))) {
        best = v;
        where = i;
      }
    } else {
      fail("the extreme of complex numbers is not defined");
    }
    ++i;
  });
  return {best, where};
}

template <bool greatest>
constexpr auto extreme_value =
    [](const EvalCall&, const auto* x, const Line& line) { return extreme<greatest>(x, line).first; };
template <bool greatest>
constexpr auto extreme_place =
    [](const EvalCall&, const auto* x, const Line& line) { return extreme<greatest>(x, line).second; };

DType index_dtype(DType, std::optional<DType>) {
  return DType::Int64;
}

/// The results (values, indices) of max.dim and similar operators.
template <class T, class Second>
MetaTuple pair_of(T first, Second second) {
  MetaTuple out;
  out.items.emplace_back(std::move(first));
  out.items.emplace_back(std::move(second));
  return out;
}
Meta fake_extreme_dim(FakeCall& call) {
  return pair_of(reduced_meta(call, call.tensor("self").dtype), reduced_meta(call, DType::Int64));
}
template <bool greatest>
Value eval_extreme_dim(EvalCall& call) {
  return ValueList{eval<same_dtype, extreme_value<greatest>>(call), eval<index_dtype, extreme_place<greatest>>(call)};
}
Meta fake_aminmax(FakeCall& call) {
  TensorMeta one = reduced_meta(call, call.tensor("self").dtype);
  return pair_of(one, one);
}
Value eval_aminmax(EvalCall& call) {
  return ValueList{eval<same_dtype, extreme_value<false>>(call), eval<same_dtype, extreme_value<true>>(call)};
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
    double a = std::abs(convert<Accumulator<T>>(x[at]));
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

}  // namespace

void register_reduce(OpTable& t) {
  add_reduction_formulas(t);
  struct Row {
    std::string_view name;
    Meta (*fake)(FakeCall&);
    Value (*eval)(EvalCall&);
    std::string_view derivative;  ///< of self; empty: not differentiable
    loops::LowerFunction lower = nullptr;
    bool recomputable = false;
  };
  constexpr auto prod = eval<sum_dtype, times>;
  const Row rows[] = {
      {"aten.sum.default", fake<sum_dtype>, eval_sum<sum_dtype, sum>, "expand(grad, sizes(self))", loops::lower_sum,
       true},
      {"aten.sum.dim_IntList", fake<sum_dtype>, eval_sum<sum_dtype, sum>, "sum_backward(grad, self, dim, keepdim)",
       loops::lower_sum, true},
      {"aten.nansum.default", fake<sum_dtype>, eval<sum_dtype, nansum>,
       "sum_backward(grad, self, dim, keepdim) * logical_not(isnan(self))"},
      {"aten.prod.default", fake<sum_dtype>, prod, "prod_backward(grad, self, result)", loops::lower_prod},
      {"aten.prod.dim_int", fake<sum_dtype>, prod, "prod_backward(grad, self, result, dim, keepdim)",
       loops::lower_prod},
      {"aten.mean.default", fake<mean_dtype>, eval_sum<mean_dtype, mean>, "mean_backward(grad, self, None, False)",
       loops::lower_mean, true},
      {"aten.mean.dim", fake<mean_dtype>, eval_sum<mean_dtype, mean>, "mean_backward(grad, self, dim, keepdim)",
       loops::lower_mean, true},
      {"aten.amax.default", fake<same_dtype>, eval<same_dtype, extreme_value<true>>,
       "extreme_backward(grad, result, self, dim, keepdim)", loops::lower_amax, true},
      {"aten.amin.default", fake<same_dtype>, eval<same_dtype, extreme_value<false>>,
       "extreme_backward(grad, result, self, dim, keepdim)", loops::lower_amin},
      {"aten.max.default", fake<same_dtype>, eval<same_dtype, extreme_value<true>>,
       "evenly_distribute_backward(grad, self, result)", loops::lower_amax, true},
      {"aten.min.default", fake<same_dtype>, eval<same_dtype, extreme_value<false>>,
       "evenly_distribute_backward(grad, self, result)", loops::lower_amin, true},
      {"aten.max.dim", fake_extreme_dim, eval_extreme_dim<true>,
       "value_selecting_reduction_backward(grad, dim, result1, self, keepdim)", loops::lower_max_dim, true},
      {"aten.min.dim", fake_extreme_dim, eval_extreme_dim<false>,
       "value_selecting_reduction_backward(grad, dim, result1, self, keepdim)", loops::lower_min_dim, true},
      {"aten.aminmax.default", fake_aminmax, eval_aminmax,
       "aminmax_backward(grads, self, dim, keepdim, result0, result1)"},
      {"aten.var.correction", fake<real_dtype>, eval<real_dtype, variance>,
       "var_backward(grad, self, dim, correction, keepdim)", loops::lower_var, true},
      {"aten.std.correction", fake<real_dtype>, eval<real_dtype, deviation>,
       "std_backward(result, grad, self, dim, correction, keepdim)", loops::lower_std, true},
      {"aten.var_mean.correction", fake_spread_and_mean, eval_spread_and_mean<variance>,
       "var_mean_backward(grads, self, dim, correction, keepdim)", loops::lower_var_mean, true},
      {"aten.std_mean.correction", fake_spread_and_mean, eval_spread_and_mean<deviation>,
       "std_mean_backward(grads, self, dim, correction, keepdim, result0)"},
      {"aten.linalg_vector_norm.default", fake<real_dtype>, eval<real_dtype, norm>,
       "vector_norm_backward(grad, self, ord, result, dim, keepdim)", loops::lower_vector_norm},
      {"aten.norm.Scalar", fake<real_dtype>, eval<real_dtype, norm>,
       "vector_norm_backward(grad, self, p, result, None, False)"},
      {"aten.norm.ScalarOpt_dim", fake<real_dtype>, eval<real_dtype, norm>,
       "vector_norm_backward(grad, self, p, result, dim, keepdim)"},
      {"aten.argmax.default", fake<index_dtype>, eval<index_dtype, extreme_place<true>>, "", loops::lower_argmax, true},
      {"aten.argmin.default", fake<index_dtype>, eval<index_dtype, extreme_place<false>>, "", loops::lower_argmin},
      {"aten.any.default", fake<truth_dtype>, eval<truth_dtype, any>, "", loops::lower_any, true},
      {"aten.any.dim", fake<truth_dtype>, eval<truth_dtype, any>, "", loops::lower_any, true},
      {"aten.any.dims", fake<truth_dtype>, eval<truth_dtype, any>, "", loops::lower_any, true},
      {"aten.all.default", fake<truth_dtype>, eval<truth_dtype, all>, "", loops::lower_all},
      {"aten.all.dim", fake<truth_dtype>, eval<truth_dtype, all>, "", loops::lower_all},
      {"aten.all.dims", fake<truth_dtype>, eval<truth_dtype, all>, "", loops::lower_all},
      {"aten.count_nonzero.default", fake<index_dtype>, eval<index_dtype, count_nonzero>, ""},
      {"aten.count_nonzero.dim_IntList", fake<index_dtype>, eval<index_dtype, count_nonzero>, ""},
  };
  for (const Row& row : rows) {
    OpRecord record{.fake = row.fake,
                    .eval = row.eval,
                    .not_differentiable = row.derivative.empty(),
                    .lower = row.lower,
                    .recomputable = row.recomputable};
    if (!row.derivative.empty()) record.derivative = {{"self", row.derivative}};
    t.add(row.name, std::move(record));
  }
  add_scans(t);
  add_renorm(t);
  add_histograms(t);
  add_segment_reductions(t);
  add_reduce_composites(t);
}

}  // namespace partita
