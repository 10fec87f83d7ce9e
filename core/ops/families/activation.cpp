// Activations, and the backward functions of pointwise operators: one row for each overload.
#include <numbers>

#include "core/ops/families/body.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

constexpr double cubic = 0.044715;                                       // coefficient in gelu's tanh form
constexpr double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double sqrt_half = std::numbers::sqrt2 / 2;

bool tanh_form(In& in) {
  std::string form = in.call.string("approximate");
  if (form != "none" && form != "tanh") fail("approximate argument must be either none or tanh.");
  return form == "tanh";
}

V gelu(In& in) {
  V x = in[0];
  if (tanh_form(in)) return x * 0.5 * (Tanh((x + x * x * x * cubic) * beta) + 1.0);
  return x * 0.5 * (Erf(x * sqrt_half) + 1.0);
}

V gelu_backward(In& in) {
  V grad = in[0], x = in[1];
  if (tanh_form(in)) {
    V t = Tanh((x + x * x * x * cubic) * beta);
    V slope = (x * x * (3 * cubic) + 1.0) * beta;
    return grad * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * slope);
  }
  V cdf = (Erf(x * sqrt_half) + 1.0) * 0.5;
  V pdf = Exp(x * x * -0.5) * (beta / 2);
  return grad * (cdf + x * pdf);
}

V silu_backward(In& in) {
  V s = Sigmoid(in[1]);
  return in[0] * s * (in[1] * (1.0 - s) + 1.0);
}

V mish(V x) {
  return x * Tanh(Log1p(Exp(x)));
}
V mish_backward(In& in) {
  V x = in[0], t = Tanh(Log1p(Exp(x)));
  return in[1] * (t + x * Sigmoid(x) * (1.0 - t * t));
}
/// Unlike other operators of two dtypes, it gives self's.
Meta fake_mish_backward(FakeCall& c) {
  const TensorMeta &grad = c.tensor("grad_output"), &self = c.tensor("self");
  const SymList both[] = {grad.sizes, self.sizes};
  const TensorMeta* operands[] = {&grad, &self};
  TensorMeta out = new_like(self, broadcast(c, both));
  out.strides = elementwise_strides(c, out.sizes, operands);
  return out;
}

V elu(In& in) {
  V x = in[0], scale = in.number("scale");
  V negative = Expm1(x * in.number("input_scale")) * (in.number("alpha") * scale);
  return where(x <= 0.0, negative, x * scale);
}
V elu_backward(In& in) {
  V grad = in[0], x = in[1], scale = in.number("scale"), input_scale = in.number("input_scale");
  V coefficient = in.number("alpha") * scale;
  V negative = in.call.boolean("is_result") ? grad * input_scale * (x + coefficient)
                                            : grad * input_scale * coefficient * Exp(x * input_scale);
  return where(x > 0.0, grad * scale, negative);
}
V celu(In& in) {
  V x = in[0], alpha = in.number("alpha");
  return where(x <= 0.0, Expm1(x / alpha) * alpha, x);
}

V softplus(In& in) {
  V x = in[0], beta = in.number("beta"), z = x * beta;
  return where(z > in.number("threshold"), x, Log1p(Exp(z)) / beta);
}
V softplus_backward(In& in) {
  V grad = in[0], z = in[1] * in.number("beta"), e = Exp(z);
  return where(z > in.number("threshold"), grad, grad * e / (e + 1.0));
}

V leaky_relu(In& in) {
  return where(in[0] > 0.0, in[0], in[0] * in.number("negative_slope"));
}
// These two take self before the gradient, as PyTorch's kernels do, so the result gets self's strides.
V leaky_relu_backward(In& in) {
  return where(in[0] > 0.0, in[1], in[1] * in.number("negative_slope"));
}
V threshold(In& in) {
  return where(in[0] <= in.number("threshold"), in.number("value"), in[0]);
}
V threshold_backward(In& in) {
  return where(in[0] <= in.number("threshold"), in.constant(0), in[1]);
}
V hardtanh(In& in) {
  return Min(Max(in[0], in.number("min_val")), in.number("max_val"));
}
V hardtanh_backward(In& in) {
  return where((in[1] > in.number("min_val")) && (in[1] < in.number("max_val")), in[0], in.constant(0));
}
V relu6(V x) {
  return Min(Max(x, 0.0), 6.0);
}
V hardswish_backward(In& in) {
  V grad = in[0], x = in[1];
  return where(x <= -3.0, in.constant(0), where(x >= 3.0, grad, grad * (x / 3.0 + 0.5)));
}
V hardsigmoid_backward(In& in) {
  V x = in[1];
  return where((x > -3.0) && (x < 3.0), in[0] / 6.0, in.constant(0));
}
/// Whether x lies within [-lambd, lambd]; false for NaN.
V shrunk(In& in, V x) {
  const V lambd = in.kept(in.number("lambd"));
  return (x >= -lambd) && (x <= lambd);
}
V hardshrink(In& in) {
  return where(shrunk(in, in[0]), in.constant(0), in[0]);
}
V shrink_backward(In& in) {
  const V x = in[1], lambd = in.kept(in.number("lambd"));
  return where((x < -lambd) || (x > lambd), in[0], in.constant(0));
}
V softshrink(In& in) {
  V x = in[0], lambd = in.number("lambd");
  return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0.0));
}

V log_sigmoid_backward(In& in) {
  V grad = in[0], negative = in[1] < 0.0, z = in[2] / (in[2] + 1.0);
  return grad * where(negative, 1.0 - z, z);
}
}  // namespace

#define F(expression)    \
  body<[](In& in) {      \
    V x = in[0];         \
    return (expression); \
  }>

namespace {
using Names = std::vector<std::string_view>;

void add_activations(OpTable& t) {
  const Names self = {"self"};
  auto row = [&](std::string_view name, Pointwise::Function f, const Names& inputs, std::string_view derivative = {},
                 Promotion promotion = Promotion::Default) {
    OpRecord record{.pointwise = {f, promotion, inputs}};
    if (!derivative.empty()) record.autograd.derivative = {{"self", derivative}};
    t.add(name, std::move(record));
  };
  row("aten.relu.default", F(Max(x, 0.0)), self, "threshold_backward(grad, result, 0)");
  row("aten.gelu.default", body<gelu>, self, "gelu_backward(grad, self, approximate=approximate)");
  row("aten.silu.default", F(x * Sigmoid(x)), self, "silu_backward(grad, self)");
  row("aten.mish.default", F(mish(x)), self, "mish_backward(grad, self)");
  row("aten.elu.default", body<elu>, self, "elu_backward(grad, alpha, scale, input_scale, False, self)");
  row("aten.celu.default", body<celu>, self, "elu_backward(grad, alpha, 1, 1.0 / alpha, False, self)");
  row("aten.softplus.default", body<softplus>, self, "softplus_backward(grad, self, beta, threshold)");
  row("aten.leaky_relu.default", body<leaky_relu>, self, "leaky_relu_backward(grad, self, negative_slope, False)");
  row("aten.threshold.default", body<threshold>, self, "threshold_backward(grad, self, threshold)");
  row("aten.hardtanh.default", body<hardtanh>, self, "hardtanh_backward(grad, self, min_val, max_val)");
  row("aten.hardswish.default", F(x * relu6(x + 3.0) / 6.0), self, "hardswish_backward(grad, self)");
  row("aten.hardsigmoid.default", F(relu6(x + 3.0) / 6.0), self, "hardsigmoid_backward(grad, self)");
  row("aten.hardshrink.default", body<hardshrink>, self, "hardshrink_backward(grad, self, lambd)");
  row("aten.softshrink.default", body<softshrink>, self, "softshrink_backward(grad, self, lambd)");
  t.add("aten._prelu_kernel.default",
        {.pointwise = {body<[](In& in) { return where(in[0] > 0.0, in[0], in[0] * in[1]); }>},
         .autograd = {.derivative = {{"self", "_prelu_kernel_backward(grad, self, weight)[0]"},
                                     {"weight", "_prelu_kernel_backward(grad, self, weight)[1]"}}}});
  t.add(
      "aten._prelu_kernel_backward.default",
      {.program =
           "(where(gt(self, 0), grad_output, weight * grad_output), where(gt(self, 0), 0.0, self * grad_output))",
       .autograd = {
           .derivative =
               {{"grad_output",
                 "where(ge(self, 0), grads[0], grads[0] * weight) if grads[1] is None else where(ge(self, 0), 0.0, "
                 "grads[1] * self) if grads[0] is None else where(ge(self, 0), grads[0], grads[0] * weight + grads[1] "
                 "* self)"},
                {"self", "zeros_like(self) if grads[1] is None else where(ge(self, 0), 0.0, grad_output * grads[1])"},
                {"weight",
                 "zeros_like(self) if grads[0] is None else where(ge(self, 0), 0.0, grad_output * grads[0])"}},
           .all_results_differentiable = true}});
  t.add("aten.log_sigmoid_forward.default",
        {.program = "buffer = exp(-abs(self)); "
                    "(clamp_max(self, 0) - log1p(buffer), buffer)",
         .autograd = {.derivative = {{"self", "log_sigmoid_backward(grad, self, result1)"}}}});
}

/// Their derivatives are those of derivatives.yaml.
void add_backwards(OpTable& t) {
  const Names grad_self = {"grad_output", "self"}, grad_output = {"grad_output", "output"};
  auto backward = [&](std::string_view name, Pointwise::Function f, const Names& inputs,
                      std::vector<Derivative> derivative) {
    t.add(name, {.pointwise = {f, Promotion::Default, inputs}, .autograd = {.derivative = std::move(derivative)}});
  };
  backward(
      "aten.gelu_backward.default", body<gelu_backward>, grad_self,
      {{"grad_output", "gelu_backward(grad, self, approximate=approximate)"},
       {"self",
        "t = tanh((self + 0.044715 * self * self * self) * 0.7978845608028654) if approximate == 'tanh' else None; "
        "d = (1 + 0.134145 * self * self) * 0.7978845608028654 if approximate == 'tanh' else None; "
        "grad * grad_output * (exp(self * self * -0.5) * 0.3989422804014327 * (2 - self * self) if t is None else "
        "(1 - t * t) * (d + self * (0.10703222408 * self - t * d * d)))"}});
  backward("aten.silu_backward.default", body<silu_backward>, grad_self,
           {{"grad_output", "silu_backward(grad, self)"},
            {"self", "s = sigmoid(self); grad * grad_output * s * (1 - s) * (2 + self * (1 - 2 * s))"}});
  t.add("aten.mish_backward.default",
        {.fake = fake_mish_backward, .pointwise = {.body = body<mish_backward>, .inputs = {"self", "grad_output"}}});
  backward("aten.elu_backward.default", body<elu_backward>, {"grad_output", "self_or_result"},
           {{"grad_output", "elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)"},
            {"self_or_result",
             "where(ge(self_or_result, 0), 0.0, grad * grad_output * input_scale if is_result else "
             "elu_backward(grad * grad_output * input_scale, alpha, scale, input_scale, is_result, self_or_result))"}});
  backward("aten.softplus_backward.default", body<softplus_backward>, grad_self,
           {{"grad_output", "softplus_backward(grad, self, beta, threshold)"},
            {"self",
             "where(gt(self * beta, threshold), 0.0, "
             "sigmoid_backward(grad * grad_output, sigmoid(self * beta)) * beta)"}});
  backward("aten.leaky_relu_backward.default", body<leaky_relu_backward>, {"self", "grad_output"},
           {{"grad_output", "leaky_relu_backward(grad, self, negative_slope, False)"}, {"self", "zeros_like(self)"}});
  backward("aten.threshold_backward.default", body<threshold_backward>, {"self", "grad_output"},
           {{"grad_output", "threshold_backward(grad, self, threshold)"}, {"self", "zeros_like(self)"}});
  backward("aten.hardtanh_backward.default", body<hardtanh_backward>, grad_self,
           {{"grad_output", "hardtanh_backward(grad, self, min_val, max_val)"}, {"self", "zeros_like(self)"}});
  backward("aten.hardswish_backward.default", body<hardswish_backward>, grad_self,
           {{"grad_output", "hardswish_backward(grad, self)"},
            {"self", "where(lt(abs(self), 3), grad * grad_output / 3.0, 0.0)"}});
  backward("aten.hardsigmoid_backward.default", body<hardsigmoid_backward>, grad_self,
           {{"grad_output", "hardsigmoid_backward(grad, self)"}});
  backward("aten.hardshrink_backward.default", body<shrink_backward>, {"grad_out", "self"},
           {{"grad_out", "hardshrink_backward(grad, self, lambd)"}, {"self", "zeros_like(self)"}});
  backward("aten.softshrink_backward.default", body<shrink_backward>, grad_self,
           {{"grad_output", "softshrink_backward(grad, self, lambd)"}, {"self", "zeros_like(self)"}});
  backward("aten.log_sigmoid_backward.default", body<log_sigmoid_backward>, {"grad_output", "self", "buffer"},
           {{"grad_output", "log_sigmoid_backward(grad, self, buffer)"},
            {"self", "z = sigmoid(self); grad * grad_output * (z - 1) * z"}});
  backward("aten.tanh_backward.default", F(x * Conj(1.0 - in[1] * in[1])), grad_output,
           {{"grad_output", "tanh_backward(grad, conj(output))"},
            {"output", "conj(grad) * (-2 * conj(output) * grad_output)"}});
  backward("aten.sigmoid_backward.default", F(x * Conj(1.0 - in[1]) * Conj(in[1])), grad_output,
           {{"grad_output", "sigmoid_backward(grad, conj(output))"},
            {"output", "conj(grad) * grad_output * (-2 * conj(output) + 1)"}});
}
}  // namespace

void register_activation(OpTable& t) {
  t.default_family = Family::Pointwise;
  add_activations(t);
  add_backwards(t);
}

#undef F

}  // namespace partita
