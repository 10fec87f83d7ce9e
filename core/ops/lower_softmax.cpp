#include "core/ops/lowerings.h"
#include "core/ops/promote.h"

namespace partita::loops {
namespace {

struct Rows {
  LoweredTensor x;            ///< the argument in the arithmetic dtype
  std::vector<bool> reduced;  ///< the softmax dim
};

Rows rows(LowerCall& call, std::string_view name) {
  LoweredTensor t = call.in(name);
  Rows r{call.to.cast(t, arithmetic_dtype(is_floating(t.dtype) ? t.dtype : call.out().dtype)),
         std::vector<bool>(t.dim(), false)};
  if (t.dim() > 0) r.reduced[call.dim("dim", t.dim())] = true;
  return r;
}

LoweredTensor sum(Lowering& to, const LoweredTensor& t, const std::vector<bool>& reduced) {
  return to.reduce(t, ScalarOp::Add, reduced);
}

}  // namespace

Status lower_softmax(LowerCall& call) {
  auto [x, reduced] = rows(call, "self");
  LoweredTensor top = call.to.reduce(x, ScalarOp::Max, reduced);
  LoweredTensor e =
      pointwise(call.to, x.dtype, x.dtype, {x, top}, [](ScalarBuilder& b, auto v) { return b.Exp(b.Sub(v[0], v[1])); });
  LoweredTensor total = sum(call.to, e, reduced);
  call.give(
      pointwise(call.to, x.dtype, x.dtype, {e, total}, [](ScalarBuilder& b, auto v) { return b.Div(v[0], v[1]); }));
  return {};
}

/// In the last dimension, half types round the sum and its logarithm to the tensor's dtype, as PyTorch's kernel does.
Status lower_log_softmax(LowerCall& call) {
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
  if (kept != x.dtype) {
    call.give(pointwise(call.to, x.dtype, x.dtype, {x, top, rounded(log)},
                        [](ScalarBuilder& b, auto v) { return b.Sub(v[0], b.Add(v[1], v[2])); }));
    return {};
  }
  call.give(
      pointwise(call.to, x.dtype, x.dtype, {shifted, log}, [](ScalarBuilder& b, auto v) { return b.Sub(v[0], v[1]); }));
  return {};
}

/// output * (grad - sum(grad * output))
Status lower_softmax_backward(LowerCall& call) {
  auto [grad, reduced] = rows(call, "grad_output");
  LoweredTensor output = call.to.cast(call.in("output"), grad.dtype);
  LoweredTensor product = pointwise(call.to, grad.dtype, grad.dtype, {grad, output},
                                    [](ScalarBuilder& b, auto v) { return b.Mul(v[0], v[1]); });
  LoweredTensor total = sum(call.to, product, reduced);
  call.give(pointwise(call.to, grad.dtype, grad.dtype, {grad, output, total},
                      [](ScalarBuilder& b, auto v) { return b.Mul(v[1], b.Sub(v[0], v[2])); }));
  return {};
}

/// grad - exp(output) * sum(grad)
Status lower_log_softmax_backward(LowerCall& call) {
  auto [grad, reduced] = rows(call, "grad_output");
  LoweredTensor output = call.to.cast(call.in("output"), grad.dtype);
  LoweredTensor total = sum(call.to, grad, reduced);
  call.give(pointwise(call.to, grad.dtype, grad.dtype, {grad, output, total},
                      [](ScalarBuilder& b, auto v) { return b.Sub(v[0], b.Mul(b.Exp(v[1]), v[2])); }));
  return {};
}

}  // namespace partita::loops
