// softmax, log_softmax and logsumexp, with gradients.
#include <cmath>
#include <limits>

#include "core/ops/families/lower_reduce.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

struct Rows {
  LoweredTensor x;            ///< the argument in the arithmetic dtype
  std::vector<bool> reduced;  ///< the softmax dim
};

Rows rows(LowerCall& call, std::string_view name) {
  LoweredTensor t = call.in(name);
  Rows r{call.to.cast(t, promote(opmath_dtype(t.dtype), opmath_dtype(call.out().dtype))),
         std::vector<bool>(t.dim(), false)};
  if (t.dim() > 0) r.reduced[call.dim("dim", t.dim())] = true;
  return r;
}

LoweredTensor sum(Lowering& to, const LoweredTensor& t, const std::vector<bool>& reduced) {
  return to.reduce(t, ScalarOp::Add, reduced);
}

/// `t`, but `instead` where it is `value`.
LoweredTensor replaced(Lowering& to, const LoweredTensor& t, double value, double instead) {
  return pointwise(to, t.dtype, t.dtype, {t}, [=](ScalarBuilder& b, auto v) {
    const DType dtype = b.dtype(v[0]);
    return b.where(b.Eq(v[0], b.constant(dtype, value)), b.constant(dtype, instead), v[0]);
  });
}

/// A line of -inf gives zeros when `safe`, else NaN.
template <bool safe>
void lower_softmax(LowerCall& call) {
  if (!is_floating(call.out().dtype)) fail_unsupported("softmax of integers");
  auto [x, reduced] = rows(call, "self");
  LoweredTensor top = call.to.reduce(x, ScalarOp::Max, reduced);
  if (safe) top = replaced(call.to, top, -INFINITY, 0);
  LoweredTensor e =
      pointwise(call.to, x.dtype, x.dtype, {x, top}, [](ScalarBuilder& b, auto v) { return b.Exp(b.Sub(v[0], v[1])); });
  LoweredTensor total = sum(call.to, e, reduced);
  if (safe) total = replaced(call.to, total, 0, 1);
  // One division for a line, not one for each element.
  LoweredTensor inverse = pointwise(call.to, x.dtype, x.dtype, {total},
                                    [](ScalarBuilder& b, auto v) { return b.Div(b.constant(b.dtype(v[0]), 1), v[0]); });
  call.give(
      pointwise(call.to, x.dtype, x.dtype, {e, inverse}, [](ScalarBuilder& b, auto v) { return b.Mul(v[0], v[1]); }));
}

/// In the last dimension, half types round the sum and its logarithm to the tensor's dtype, as PyTorch's kernel does.
void lower_log_softmax(LowerCall& call) {
  auto [x, reduced] = rows(call, "self");
  LoweredTensor top = call.to.reduce(x, ScalarOp::Max, reduced);
  const DType kept = !reduced.empty() && reduced.back() ? call.in("self").dtype : x.dtype;
  auto rounded = [&](const LoweredTensor& t) { return call.to.cast(call.to.cast(t, kept), x.dtype); };
  LoweredTensor shifted =
      pointwise(call.to, x.dtype, x.dtype, {x, top}, [](ScalarBuilder& b, auto v) { return b.Sub(v[0], v[1]); });
  LoweredTensor e =
      pointwise(call.to, x.dtype, x.dtype, {shifted}, [](ScalarBuilder& b, auto v) { return b.Exp(v[0]); });
  LoweredTensor log = pointwise(call.to, x.dtype, x.dtype, {rounded(sum(call.to, e, reduced))},
                                [](ScalarBuilder& b, auto v) { return b.Log(v[0]); });
  call.give(pointwise(call.to, x.dtype, x.dtype, {shifted, rounded(log)},
                      [](ScalarBuilder& b, auto v) { return b.Sub(v[0], v[1]); }));
}

/// output * (grad - sum(grad * output))
void lower_softmax_backward(LowerCall& call) {
  auto [grad, reduced] = rows(call, "grad_output");
  LoweredTensor output = call.to.cast(call.in("output"), grad.dtype);
  LoweredTensor product = pointwise(call.to, grad.dtype, grad.dtype, {grad, output},
                                    [](ScalarBuilder& b, auto v) { return b.Mul(v[0], v[1]); });
  LoweredTensor total = sum(call.to, product, reduced);
  call.give(pointwise(call.to, grad.dtype, grad.dtype, {grad, output, total},
                      [](ScalarBuilder& b, auto v) { return b.Mul(v[1], b.Sub(v[0], v[2])); }));
}

/// grad - exp(output) * sum(grad)
void lower_log_softmax_backward(LowerCall& call) {
  auto [grad, reduced] = rows(call, "grad_output");
  LoweredTensor output = call.to.cast(call.in("output"), grad.dtype);
  LoweredTensor total = sum(call.to, grad, reduced);
  call.give(pointwise(call.to, grad.dtype, grad.dtype, {grad, output, total},
                      [](ScalarBuilder& b, auto v) { return b.Sub(v[0], b.Mul(b.Exp(v[1]), v[2])); }));
}

void lower_logsumexp(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  LoweredTensor top = call.to.reduce(x, ScalarOp::Max, reduced);
  // An infinite maximum is not subtracted, since inf - inf is NaN.
  LoweredTensor shift = pointwise(call.to, x.dtype, x.dtype, {top}, [](ScalarBuilder& b, auto v) {
    DType t = b.dtype(v[0]);
    return b.where(b.Eq(b.Abs(v[0]), b.constant(t, INFINITY)), b.constant(t, 0), v[0]);
  });
  LoweredTensor wide = call.to.expand(shift, x.sizes);
  LoweredTensor total = call.to.reduce(x.dtype, x.sizes, reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
    return body.b.Exp(body.b.Sub(body.read(x, i), body.read(wide, i)));
  });
  call.give(pointwise(call.to, x.dtype, x.dtype, {total, shift},
                      [](ScalarBuilder& b, auto v) { return b.Add(b.Log(v[0]), v[1]); }));
}

using namespace kernels;

Meta fake_softmax(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  TensorMeta meta = new_like(self, self.sizes);
  if (c.boolean("half_to_float")) {
    if (self.dtype != DType::Float16 && self.dtype != DType::BFloat16)
      fail("softmax: conversion is supported for Half type only, got " + std::string(torch_name(self.dtype)));
    meta.dtype = DType::Float32;
  }
  if (!is_floating(meta.dtype))
    fail("\"softmax_lastdim_kernel_impl\" not implemented for '" + std::string(torch_name(meta.dtype)) + "'");
  return meta;
}

Meta fake_softmax_backward(FakeCall& c) {
  const TensorMeta& grad = c.tensor("grad_output");
  wrap_dim(c.integer("dim"), grad.dim());
  const TensorMeta& output = c.tensor("output");
  bool same = grad.dim() == output.dim();
  for (std::size_t d = 0; same && d < grad.dim(); ++d)
    same = checked(c, sym_eq(grad.sizes[d], output.sizes[d]), "softmax_backward sizes");
  if (!same) fail("Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'");
  TensorMeta meta = new_like(grad, grad.sizes);
  meta.dtype = *c.dtype("input_dtype");
  const bool narrows = grad.dtype == DType::Float32 && (meta.dtype == DType::Float16 || meta.dtype == DType::BFloat16);
  if (!is_floating(grad.dtype) || (grad.dtype != meta.dtype && !narrows))
    fail("softmax_backward: expected input and grad types to match, or input to be at::Half and grad to be at::Float");
  if (output.dtype != grad.dtype)
    fail("softmax_backward: expected scalar type " + std::string(torch_name(grad.dtype)) + " but found " +
         std::string(torch_name(output.dtype)));
  return meta;
}

/// Calls f(offset of the first element) for every line along the split dimension.
template <class F>
void along(const DimSplit& split, F f) {
  for (std::int64_t o = 0; o < split.outer; ++o)
    for (std::int64_t i : steps(split.inner, split.length)) f(o * split.length * split.inner + i);
}

/// Softmax of one line. A line of -inf gives zeros when `safe`, else NaN. As in PyTorch's kernels, half types round
/// between steps: in the last dimension the sum and its logarithm (kept_sum), in others the exponentials (kept_exp).
template <bool logarithm, bool safe, class T>
void softmax_line(const T* in, T* out, std::int64_t stride, std::int64_t length, DType kept_sum, DType kept_exp) {
  T high = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < length; ++i) {
    T v = in[i * stride];
    if (v > high || std::isnan(v)) high = v;
    if (std::isnan(v)) break;
  }
  if (safe && high == -std::numeric_limits<T>::infinity()) {
    for (std::int64_t i = 0; i < length; ++i) out[i * stride] = T(0);
    return;
  }
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    T e = std::exp(in[i * stride] - high);
    if (!logarithm) out[i * stride] = rounded(kept_exp, e);
    sum += static_cast<double>(e);
  }
  const T scale = static_cast<T>(sum);
  const T log = logarithm ? rounded(kept_sum, static_cast<T>(std::log(rounded(kept_sum, scale)))) : T(0);
  // The maximum is subtracted first: its sum with the logarithm would round more than their difference needs.
  for (std::int64_t i = 0; i < length; ++i)
    out[i * stride] = logarithm ? in[i * stride] - high - log : out[i * stride] / scale;
}

template <bool logarithm, bool safe>
Value softmax(const Tensor& self, std::int64_t dim, Tensor out) {
  DType dtype = evaluation_dtype(out.dtype);
  Tensor x = load(self, dtype), y = empty(dtype, x.sizes);
  dim = wrap_dim(dim, x.dim());
  DimSplit split = split_at(x.sizes, dim);
  const bool last = dim + 1 == x.dim();
  const DType kept_sum = last ? self.dtype : dtype, kept_exp = last ? dtype : out.dtype;
  dispatch_floating(dtype, "softmax_lastdim_kernel_impl", [&]<class T>() {
    along(split, [&](std::int64_t at) {
      softmax_line<logarithm, safe>(x.as<T>() + at, y.as<T>() + at, split.inner, split.length, kept_sum, kept_exp);
    });
  });
  return with_elements(out, y);
}

template <bool logarithm>
Value eval_softmax(EvalCall& c) {
  return softmax<logarithm, false>(c.tensor("self"), c.integer("dim"), allocate(c, fake_softmax));
}

template <bool logarithm>
Value eval_softmax_backward(EvalCall& c) {
  Tensor out = allocate(c, fake_softmax_backward);
  DType dtype = evaluation_dtype(promote(c.tensor("grad_output").dtype, c.tensor("output").dtype));
  Tensor grad = load(c.tensor("grad_output"), dtype), y = load(c.tensor("output"), dtype),
         dx = empty(dtype, grad.sizes);
  DimSplit split = split_at(grad.sizes, wrap_dim(c.integer("dim"), grad.dim()));
  dispatch_floating(dtype, "softmax_backward_lastdim_kernel_impl", [&]<class T>() {
    along(split, [&](std::int64_t at) {
      double sum = 0;
      for (std::int64_t i = 0; i < split.length; ++i) {
        std::int64_t j = at + i * split.inner;
        double g = static_cast<double>(grad.as<T>()[j]);
        sum += logarithm ? g : g * static_cast<double>(y.as<T>()[j]);
      }
      T total = static_cast<T>(sum);
      for (std::int64_t i = 0; i < split.length; ++i) {
        std::int64_t j = at + i * split.inner;
        T g = grad.as<T>()[j], v = y.as<T>()[j];
        dx.as<T>()[j] = logarithm ? g - std::exp(v) * total : v * (g - total);
      }
    });
  });
  return with_elements(out, dx);
}

/// self converted to the `dtype` argument, which softmax does first.
Node* converted(DecomposeCall& c) {
  Node* self = tensor_node(c, "self");
  auto dtype = c.dtype("dtype");
  if (!dtype || *dtype == c.tensor("self").dtype) return self;
  return c.build.call("aten._to_copy.default", {self}, {{"dtype", *dtype}});
}

template <const char* op>
Arg decompose_softmax(DecomposeCall& c) {
  return c.build.call(op, {converted(c), c.arg("dim"), false});
}

constexpr char softmax_op[] = "aten._softmax.default", log_softmax_op[] = "aten._log_softmax.default";

Meta fake_safe_softmax(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  TensorMeta meta = new_like(self, self.sizes);
  if (auto dtype = c.dtype("dtype")) meta.dtype = *dtype;
  return meta;
}

Value eval_safe_softmax(EvalCall& c) {
  return softmax<false, true>(c.tensor("self"), c.integer("dim"), allocate(c, fake_safe_softmax));
}

/// A flag for each dimension that is reduced; all of them when none is named.
std::vector<bool> reduced(const Sizes& dims, std::size_t rank) {
  std::vector<bool> flags(rank, dims.empty());
  for (auto d : dims) {
    std::int64_t i = wrap_dim(d, rank);
    if (rank > 0) flags[static_cast<std::size_t>(i)] = true;
  }
  return flags;
}

Meta fake_logsumexp(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  std::vector<bool> flags = reduced(c.integers("dim"), self.dim());
  bool keepdim = c.boolean("keepdim");
  SymList sizes;
  for (std::size_t i = 0; i < self.dim(); ++i) {
    if (!flags[i])
      sizes.push_back(self.sizes[i]);
    else if (keepdim)
      sizes.push_back(1);
  }
  TensorMeta meta = new_like(self, sizes);
  if (!is_floating(meta.dtype) && !is_complex(meta.dtype)) meta.dtype = DType::Float32;
  return meta;
}

Value eval_logsumexp(EvalCall& c) {
  Tensor out = allocate(c, fake_logsumexp);
  const Tensor& self = c.tensor("self");
  DType dtype = evaluation_dtype(out.dtype);
  std::vector<bool> flags = reduced(c.integers("dim"), self.sizes.size());
  // Moves the reduced dimensions to the end, so that each element of the result has one contiguous line.
  Sizes sizes, strides, tail_sizes, tail_strides;
  std::int64_t length = 1;
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    (flags[i] ? tail_sizes : sizes).push_back(self.sizes[i]);
    (flags[i] ? tail_strides : strides).push_back(self.strides[i]);
    if (flags[i]) length *= self.sizes[i];
  }
  sizes.insert(sizes.end(), tail_sizes.begin(), tail_sizes.end());
  strides.insert(strides.end(), tail_strides.begin(), tail_strides.end());
  Tensor x = load(self.view_as(sizes, strides, self.offset), dtype), y = empty(dtype, out.sizes);
  if (is_complex(dtype)) {
    dispatch_compute(dtype, "logsumexp", [&]<class T>() {
      if constexpr (!std::is_arithmetic_v<T>) {
        for (std::int64_t r : steps(y.numel())) {
          const T* in = x.as<T>() + r * length;
          T sum = 0;
          auto high = -std::numeric_limits<typename T::value_type>::infinity();
          for (std::int64_t i = 0; i < length; ++i) high = std::max(high, in[i].real());
          if (std::isinf(high)) high = 0;
          for (std::int64_t i = 0; i < length; ++i) sum += std::exp(in[i] - high);
          y.as<T>()[r] = std::log(sum) + high;
        }
      }
    });
    return with_elements(out, y);
  }
  dispatch_floating(dtype, "logsumexp", [&]<class T>() {
    for (std::int64_t r : steps(y.numel())) {
      const T* in = x.as<T>() + r * length;
      T high = -std::numeric_limits<T>::infinity();
      for (std::int64_t i = 0; i < length; ++i) high = std::isnan(in[i]) ? in[i] : std::max(high, in[i]);
      if (std::isinf(high)) {
        // inf - inf would be NaN. The result is the infinite maximum.
        y.as<T>()[r] = high;
        continue;
      }
      double sum = 0;
      for (std::int64_t i = 0; i < length; ++i) sum += static_cast<double>(std::exp(in[i] - high));
      y.as<T>()[r] = high + static_cast<T>(std::log(sum));
    }
  });
  return with_elements(out, y);
}

}  // namespace

void register_softmax(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten._softmax.default", fake_softmax, eval_softmax<false>,
        {{"self", "aten._softmax_backward_data.default(grad, result, dim, dtype(self))"}},
        {.lower = lower_softmax<false>});
  t.add("aten._log_softmax.default", fake_softmax, eval_softmax<true>,
        {{"self", "aten._log_softmax_backward_data.default(grad, result, dim, dtype(self))"}},
        {.lower = lower_log_softmax});
  t.add("aten._softmax_backward_data.default", fake_softmax_backward, eval_softmax_backward<false>,
        {{"grad_output", "_softmax_backward_data(grad, output, dim, input_dtype)"},
         {"output",
          "grad_output * grad - sum(output * grad_output, [dim], True) * grad - "
          "grad_output * sum(output * grad, [dim], True)"}},
        {.lower = lower_softmax_backward});
  t.add("aten._log_softmax_backward_data.default", fake_softmax_backward, eval_softmax_backward<true>,
        {{"grad_output", "grad - sum(grad * exp(output), [dim], True)"},
         {"output", "-sum(grad_output, [dim], True) * exp(output) * grad"}},
        {.lower = lower_log_softmax_backward});
  t.add("aten._safe_softmax.default", fake_safe_softmax, eval_safe_softmax,
        {{"self", "aten._softmax_backward_data.default(grad, result, dim, dtype(self))"}},
        {.lower = lower_softmax<true>});
  t.add("aten.logsumexp.default", fake_logsumexp, eval_logsumexp,
        {{"self", "logsumexp_backward(grad, self, result, dim, keepdim)"}}, {.lower = lower_logsumexp});
  t.add("aten.softmax.int", {.decompose = decompose_softmax<softmax_op>});
  t.add("aten.log_softmax.int", {.decompose = decompose_softmax<log_softmax_op>});
  t.add("aten.special_softmax.default", {.decompose = decompose_softmax<softmax_op>});
  t.add("aten.special_log_softmax.default", {.decompose = decompose_softmax<log_softmax_op>});
}

}  // namespace partita
