#pragma once
// What eval functions share: results with the fake's metas, and operands in the dtype that arithmetic is done in.
#include <optional>
#include <vector>

#include "core/ops/record/call.h"

namespace partita::kernels {

/// Uninitialised tensors for a call's results, with dtype, sizes and strides by its `fake`. A result that is None in
/// the fake becomes an empty tensor without storage.
std::vector<Tensor> allocate_all(const EvalCall& call, Meta (*fake)(FakeCall&));
Tensor allocate(const EvalCall& call, Meta (*fake)(FakeCall&));  ///< of a call with one result
/// Zeros in which a result is computed, row-major, of the sizes that `fake` promises: in `dtype`, or in the one that
/// arithmetic is done in. evaluate() rounds and lays out what an evaluation returns (as_promised).
Tensor zeros_for(const EvalCall& call, Meta (*fake)(FakeCall&), std::optional<DType> dtype = {});

/// The dtype that arithmetic is done in: float32 for half types, int64 for bool and integers, else `t`.
DType evaluation_dtype(DType t);
/// `t`, row-major and in `dtype`. Shares the storage when `t` is that already.
Tensor load(const Tensor& t, DType dtype);
Tensor empty(DType dtype, Sizes sizes);
Tensor zeros(DType dtype, Sizes sizes);
Tensor number_tensor(const Number& n, DType dtype);  ///< 0-dim
/// A value of the computation dtype, rounded to `t`. PyTorch's kernels for half types round some intermediate values
/// so, and keep others in float.
template <class T>
T rounded(DType t, T v) {
  if constexpr (std::is_same_v<T, float>) {
    if (t == DType::BFloat16) return to_float(to_bfloat16(v));
    if (t == DType::Float16) return to_float(to_half(v));
  }
  return v;
}

/// The gradients of an input, a weight and a bias; None where the argument `output_mask` says no.
MetaTuple gradients_by_mask(const FakeCall& call, TensorMeta input, TensorMeta weight, TensorMeta bias);
/// A tensor argument, row-major in `dtype`; without storage when it is None.
Tensor load_optional(const EvalCall& call, std::string_view name, DType dtype);

/// Calls f.operator()<T>() for a floating computation dtype. Fails for others, naming `what`.
decltype(auto) dispatch_floating(DType t, const char* what, auto&& f) {
  switch (t) {
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    default:
      break;
  }
  fail(std::string("\"") + what + "\" not implemented for '" + std::string(torch_name(t)) + "'");
}

/// The same for float, double and complex dtypes, in which LAPACK computes.
template <class F>
decltype(auto) dispatch_inexact(DType t, const char* what, F&& f) {
  switch (t) {
    case DType::Complex64:
      return f.template operator()<std::complex<float>>();
    case DType::Complex128:
      return f.template operator()<std::complex<double>>();
    default:
      return dispatch_floating(t, what, std::forward<F>(f));
  }
}

/// The same for every computation dtype: float, double, int64 and complex.
template <class F>
decltype(auto) dispatch_compute(DType t, const char* what, F&& f) {
  if (t == DType::Int64) return f.template operator()<std::int64_t>();
  return dispatch_inexact(t, what, std::forward<F>(f));
}

/// The same for dtypes that have an order: float, double and int64.
template <class F>
decltype(auto) dispatch_ordered(DType t, const char* what, F&& f) {
  if (t == DType::Int64) return f.template operator()<std::int64_t>();
  return dispatch_floating(t, what, std::forward<F>(f));
}

/// A row-major tensor seen as [outer, length, inner] around one dimension.
struct DimSplit {
  std::int64_t outer = 1, length = 1, inner = 1;
};
/// Precondition: 0 <= dim < sizes.size(), or no sizes, which are [1, 1, 1].
DimSplit split_at(const Sizes& sizes, std::int64_t dim);

}  // namespace partita::kernels
