// softmax, log_softmax and logsumexp, with gradients.
#include <cmath>

#include "core/ops/families/lower_reduce.h"
#include "core/ops/families/reduce_parts.h"
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
  // Of complex numbers, the size of an exponential follows from the real part.
  LoweredTensor top = call.to.reduce(call.to.cast(x, real_of(x.dtype)), ScalarOp::Max, reduced);
  // An infinite maximum is not subtracted, since inf - inf is NaN.
  LoweredTensor shift = pointwise(call.to, top.dtype, top.dtype, {top}, [](ScalarBuilder& b, auto v) {
    DType t = b.dtype(v[0]);
    return b.where(b.Eq(b.Abs(v[0]), b.constant(t, INFINITY)), b.constant(t, 0), v[0]);
  });
  shift = call.to.cast(shift, x.dtype);
  LoweredTensor wide = call.to.expand(shift, x.sizes);
  LoweredTensor total = call.to.reduce(x.dtype, x.sizes, reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
    return body.b.Exp(body.b.Sub(body.read(x, i), body.read(wide, i)));
  });
  call.give(pointwise(call.to, x.dtype, x.dtype, {total, shift},
                      [](ScalarBuilder& b, auto v) { return b.Add(b.Log(v[0]), v[1]); }));
}

/// Fails for dtypes of results that PyTorch has no kernel for.
void check_softmax(DType t) {
  if (!is_floating(t)) fail("\"softmax_lastdim_kernel_impl\" not implemented for '" + std::string(torch_name(t)) + "'");
}

Meta fake_softmax(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  TensorMeta meta = new_like(self, self.sizes);
  if (c.boolean("half_to_float")) {
    if (self.dtype != DType::Float16 && self.dtype != DType::BFloat16)
      fail("softmax: conversion is supported for Half type only, got " + std::string(torch_name(self.dtype)));
    meta.dtype = DType::Float32;
  }
  check_softmax(meta.dtype);
  return meta;
}

Meta fake_softmax_backward(FakeCall& c) {
  const TensorMeta& grad = c.tensor("grad_output");
  wrap_dim(c.integer("dim"), grad.dim());
  const TensorMeta& output = c.tensor("output");
  if (!checked_sizes(c, grad.sizes, output.sizes, "softmax_backward sizes"))
    fail("Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'");
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

/// Converts self to the `dtype` argument first.
template <const char* op>
Arg decompose_softmax(DecomposeCall& c) {
  Node* self = to_dtype(c.build, c.arg("self"), c.dtype("dtype").value_or(c.tensor("self").dtype));
  return c.build.call(op, {self, c.arg("dim"), false});
}

constexpr char softmax_op[] = "aten._softmax.default", log_softmax_op[] = "aten._log_softmax.default";

Meta fake_safe_softmax(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  TensorMeta meta = new_like(self, self.sizes);
  if (auto dtype = c.dtype("dtype")) meta.dtype = *dtype;
  check_softmax(meta.dtype);
  if (is_complex(self.dtype)) fail("isneginf does not support complex inputs.");
  return meta;
}

Meta fake_logsumexp(FakeCall& c) {
  const DType t = c.tensor("self").dtype;
  return reduced_meta(c, is_floating(t) || is_complex(t) ? t : DType::Float32);
}

}  // namespace

void register_softmax(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten._softmax.default", fake_softmax, nullptr,
        {{"self", "aten._softmax_backward_data.default(grad, result, dim, dtype(self))"}},
        {.lower = lower_softmax<false>});
  t.add("aten._log_softmax.default", fake_softmax, nullptr,
        {{"self", "aten._log_softmax_backward_data.default(grad, result, dim, dtype(self))"}},
        {.lower = lower_log_softmax});
  t.add("aten._softmax_backward_data.default", fake_softmax_backward, nullptr,
        {{"grad_output", "_softmax_backward_data(grad, output, dim, input_dtype)"},
         {"output",
          "grad_output * grad - sum(output * grad_output, [dim], True) * grad - "
          "grad_output * sum(output * grad, [dim], True)"}},
        {.lower = lower_softmax_backward});
  t.add("aten._log_softmax_backward_data.default", fake_softmax_backward, nullptr,
        {{"grad_output", "grad - sum(grad * exp(output), [dim], True)"},
         {"output", "-sum(grad_output, [dim], True) * exp(output) * grad"}},
        {.lower = lower_log_softmax_backward});
  t.add("aten._safe_softmax.default", fake_safe_softmax, nullptr,
        {{"self", "aten._softmax_backward_data.default(grad, result, dim, dtype(self))"}},
        {.lower = lower_softmax<true>});
  t.add("aten.logsumexp.default", fake_logsumexp, nullptr,
        {{"self", "logsumexp_backward(grad, self, result, dim, keepdim)"}}, {.lower = lower_logsumexp});
  t.add("aten.softmax.int", {.decompose = decompose_softmax<softmax_op>});
  t.add("aten.log_softmax.int", {.decompose = decompose_softmax<log_softmax_op>});
  t.add("aten.special_softmax.default", {.decompose = decompose_softmax<softmax_op>});
  t.add("aten.special_log_softmax.default", {.decompose = decompose_softmax<log_softmax_op>});
}

}  // namespace partita
