#pragma once
// What the files of the reduce family share.
#include <optional>
#include <span>

#include "core/ops/families/reduce_kernels.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {

struct ReductionRow {
  std::string_view name;
  Meta (*fake)(FakeCall&);
  Value (*eval)(EvalCall&);
  std::string_view derivative;  ///< of self; empty: not differentiable
  loops::LowerFunction lower = nullptr;
  bool recomputable = false;
};
/// A record for each row.
void add_reductions(OpTable& t, std::span<const ReductionRow> rows);

/// Whole numbers and booleans, whose sums are whole numbers.
inline bool is_whole(DType t) {
  return is_integral(t) || t == DType::Bool;
}

/// The result's meta: the sizes that are left, in row-major order.
inline TensorMeta reduced_meta(const FakeCall& call, DType dtype) {
  const TensorMeta& self = call.tensor("self");
  std::vector<bool> reduced = reduced_dims(call, self.dim());
  return TensorMeta::contiguous(dtype, reduced_sizes(self.sizes, reduced, keeps_dim(call)), self.device);
}

/// The call's `dtype` argument; nullopt where it is None or the schema has none.
std::optional<DType> dtype_argument(const auto& call) {
  return call.schema.index_of("dtype") >= 0 ? call.dtype("dtype") : std::nullopt;
}

/// A new tensor with the sizes of the result.
inline Tensor result_of(const EvalCall& call, DType dtype) {
  const Tensor& self = call.tensor("self");
  return unwrap(
      Tensor::empty(dtype, reduced_sizes(self.sizes, reduced_dims(call, self.sizes.size()), keeps_dim(call))));
}

/// Of sums and products: whole numbers are added as int64.
inline DType sum_dtype(DType self, std::optional<DType> asked) {
  return asked ? *asked : is_whole(self) ? DType::Int64 : self;
}

/// Of what keeps the dtype.
inline DType same_dtype(DType self, std::optional<DType> asked) {
  return asked.value_or(self);
}

/// Of means. Error: whole numbers.
inline DType mean_dtype(DType self, std::optional<DType> asked) {
  DType t = asked.value_or(self);
  if (is_whole(t))
    fail("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: " +
         std::string(torch_name(t)));
  return t;
}

/// Of any and all: uint8 stays, as in PyTorch.
inline DType truth_dtype(DType self, std::optional<DType>) {
  return self == DType::UInt8 ? DType::UInt8 : DType::Bool;
}

/// Of variances and norms: the real dtype of a complex one. Error: whole numbers.
inline DType real_dtype(DType self, std::optional<DType> asked) {
  DType t = asked.value_or(self);
  if (is_whole(t)) fail("std and var only support floating point and complex dtypes");
  return real_of(t);
}

/// The meta of a reduction whose result has the dtype that rule(self's dtype, `dtype` argument) gives.
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
  if (asked) self = unwrap(self.to(rule == mean_dtype ? opmath_dtype(*asked) : *asked));
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
inline constexpr auto sum_of_line = [](const EvalCall&, const auto* x, const Line& line) {
  using T = std::decay_t<decltype(*x)>;
  AccumulateType<T> total = 0;
  if constexpr (std::is_same_v<AccumulateType<T>, double>) {
    double compensation = 0;
    line.each([&](std::int64_t at) {
      const auto v = convert<double>(x[at]);
      const double next = total + v;
      compensation += std::abs(total) >= std::abs(v) ? (total - next) + v : (v - next) + total;
      total = next;
    });
    return std::isfinite(compensation) ? total + compensation : total;
  }
  line.each([&](std::int64_t at) { total = kernels::wrapping_sum(total, convert<AccumulateType<T>>(x[at])); });
  return total;
};

inline constexpr auto mean = [](const EvalCall& call, const auto* x, const Line& line) {
  auto total = sum_of_line(call, x, line);
  if constexpr (std::is_integral_v<decltype(total)>)
    return static_cast<double>(total) / static_cast<double>(line.length());
  else
    return total / static_cast<double>(line.length());
};

/// Of argmax and argmin.
inline DType index_dtype(DType, std::optional<DType>) {
  return DType::Int64;
}

/// The results (values, indices) of max.dim and similar operators.
MetaTuple pair_of(auto first, auto second) {
  MetaTuple out;
  out.items.emplace_back(std::move(first));
  out.items.emplace_back(std::move(second));
  return out;
}

// The parts of the reduce family that have files of their own.

}  // namespace partita
