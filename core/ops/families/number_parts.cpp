// Operators between numbers and their parts: complex, polar, angle, frexp, gcd, lcm.
#include <cmath>
#include <complex>
#include <concepts>
#include <utility>

#include "core/ops/families/special.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

Meta fake_complex(FakeCall& call) {
  const std::string &first = call.schema.args[0].name, &second = call.schema.args[1].name;
  DType a = call.tensor(first).dtype, b = call.tensor(second).dtype;
  if (a != b || !is_floating(a) || itemsize(a) == 1 || a == DType::BFloat16)
    fail("Expected both inputs to be Half, Float or Double tensors but got " + std::string(torch_name(a)) + " and " +
         std::string(torch_name(b)));
  Meta meta = fake_special(call);
  TensorMeta out = *meta.tensor();
  out.dtype = complex_of(a);
  return out;
}

constexpr auto cartesian = []<class T>(T real, T imaginary) { return std::complex<T>(real, imaginary); };
constexpr auto from_polar = []<class T>(T radius, T angle) {
  return std::complex<T>(radius * std::cos(angle), radius * std::sin(angle));
};

template <auto f>
Value eval_complex(EvalCall& call) {
  SpecialCall s(call);
  auto run = [&]<class T>(T) -> Value {
    Tensor flat = unwrap(Tensor::empty(complex_of(s.computed.dtype), s.result.sizes));
    const T *a = s.inputs[0].as<T>(), *b = s.inputs[1].as<T>();
    for (std::int64_t i : steps(flat.numel())) flat.as<std::complex<T>>()[i] = f(a[i], b[i]);
    Tensor out = unwrap(Tensor::empty_strided(complex_of(s.result.dtype), s.result.sizes, s.result.strides));
    out.copy_from(flat);
    return out;
  };
  if (s.result.dtype == DType::Float16) fail_unsupported(call.schema.name + " of half precision");
  return s.computed.dtype == DType::Float64 ? run(double()) : run(float());
}

/// The real (0) or imaginary (1) part of a complex tensor.
Node* part_of(Builder& b, Node* x, std::int64_t part) {
  return b.call("aten.select.int", {b.call("aten.view_as_real.default", {x}), Arg(-1), Arg(part)});
}

std::vector<Node*> complex_gradient(GradCall& call) {
  std::vector<Node*> out(call.args.size(), nullptr);
  for (std::size_t i = 0; i < 2; ++i)
    if (call.wants[i]) out[i] = part_of(call.build, call.grads[0], static_cast<std::int64_t>(i));
  return out;
}

/// The derivative of r e^(i t) by r is e^(i t), that by t is i times the result. The gradient is multiplied by their
/// conjugates.
std::vector<Node*> polar_gradient(GradCall& call) {
  Builder& b = call.build;
  std::vector<Node*> out(call.args.size(), nullptr);
  Node *grad = call.grads[0], *result = call.results[0];
  auto real_product = [&](Node* direction) {
    Node* conjugate = b.call("aten._conj.default", {direction});
    return part_of(b, b.call("aten.mul.Tensor", {grad, conjugate}), 0);
  };
  if (call.wants[0]) out[0] = real_product(b.call("aten.sgn.default", {result}));
  if (call.wants[1]) out[1] = real_product(b.call("aten.mul.Tensor", {result, Arg(std::complex<double>(0, 1))}));
  return out;
}

Meta fake_angle(FakeCall& call) {
  Meta meta = fake_by_promotion(call);
  TensorMeta out = *meta.tensor();
  out.dtype = real_of(out.dtype);
  return out;
}

/// The angle of a real number is pi when it is negative, else 0. NaN stays NaN.
Value eval_angle(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  SpecialCall s(call);
  DType real = real_of(s.computed.dtype);
  Tensor out = unwrap(Tensor::empty_strided(real_of(s.result.dtype), s.result.sizes, s.result.strides));
  Tensor flat = unwrap(Tensor::empty(real, s.result.sizes));
  auto run = [&]<class T>(T) {
    for (std::int64_t i : steps(flat.numel())) {
      if (is_complex(self.dtype)) {
        flat.as<T>()[i] = std::arg(s.inputs[0].as<std::complex<T>>()[i]);
      } else {
        T x = s.inputs[0].as<T>()[i];
        flat.as<T>()[i] = std::isnan(x) ? x : x < 0 ? std::numbers::pi_v<T> : T(0);
      }
    }
  };
  if (real == DType::Float64)
    run(double());
  else
    run(float());
  out.copy_from(flat);
  return out;
}

/// The derivative is 0 for real numbers; i z / |z|^2 for complex ones, and 0 at z = 0.
std::vector<Node*> angle_gradient(GradCall& call) {
  Builder& b = call.build;
  std::vector<Node*> out(call.args.size(), nullptr);
  Node* self = call.arg("self").node();
  if (!is_complex(call.tensor("self").dtype)) {
    out[0] = b.call("aten.zeros_like.default", {self});
    return out;
  }
  std::vector<std::pair<std::string, Arg>> names = {
      {"grad", call.grads[0]}, {"z", self}, {"i", Arg(std::complex<double>(0, 1))}};
  names.emplace_back("r", b.call("aten.abs.default", {self}));
  out[0] = b.expression("where(eq(z, 0), 0.0, grad * (mul(z, i) / (r * r)))", names).node();
  return out;
}

Meta fake_frexp(FakeCall& call) {
  TensorMeta mantissa = *fake_special(call).tensor();
  if (!is_floating(mantissa.dtype)) fail("torch.frexp() only supports floating-point dtypes");
  TensorMeta exponent = mantissa;
  exponent.dtype = DType::Int32;
  return MetaTuple{{mantissa, exponent}};
}

Value eval_frexp(EvalCall& call) {
  SpecialCall s(call);
  Tensor exponent = unwrap(Tensor::empty_strided(DType::Int32, s.result.sizes, s.result.strides));
  Tensor whole = unwrap(Tensor::empty(DType::Int32, s.result.sizes));
  auto run = [&]<class T>(T) {
    for (std::int64_t i : steps(whole.numel())) {
      int e = 0;
      s.computed.as<T>()[i] = std::frexp(s.inputs[0].as<T>()[i], &e);
      whole.as<std::int32_t>()[i] = e;
    }
  };
  if (s.computed.dtype == DType::Float64)
    run(double());
  else
    run(float());
  s.result.copy_from(s.computed);
  exponent.copy_from(whole);
  return ValueList{s.result, exponent};
}

template <class T>
T magnitude(T v) {
  if constexpr (std::signed_integral<T>)
    if (v < 0) return kernels::wrapping_difference(T(0), v);
  return v;
}
// As ATen's calc_gcd: the least integer has no absolute value, and may make a result negative.
constexpr auto gcd = []<class T>(T a, T b) {
  a = magnitude(a);
  b = magnitude(b);
  while (a != 0) b = std::exchange(a, static_cast<T>(b % a));
  return b;
};
constexpr auto lcm = []<class T>(T a, T b) {
  using Wide = decltype(a * b);
  const Wide divisor = gcd(a, b);
  if (divisor == 0) return T(0);
  // The least integer divided by -1 is itself.
  const Wide part = divisor == Wide(-1) ? kernels::wrapping_product(Wide(a), divisor) : Wide(a) / divisor;
  return static_cast<T>(magnitude(kernels::wrapping_product(part, Wide(b))));
};

template <auto f>
Value eval_divisor(EvalCall& call) {
  SpecialCall s(call);
  if (!is_integral(s.computed.dtype)) fail(call.schema.name + " takes integers only");
  dispatch(s.computed.dtype, [&]<class T>() {
    if constexpr (std::integral<T>) {
      const T *a = s.inputs[0].as<T>(), *b = s.inputs[1].as<T>();
      for (std::int64_t i : steps(s.computed.numel())) s.computed.as<T>()[i] = f(a[i], b[i]);
    }
  });
  s.result.copy_from(s.computed);
  return s.result;
}

}  // namespace

void register_number_parts(OpTable& t) {
  t.default_family = Family::Pointwise;
  t.add("aten.complex.default", fake_complex, eval_complex<cartesian>, {},
        {.autograd = {.gradient = complex_gradient}});
  t.add("aten.polar.default", fake_complex, eval_complex<from_polar>, {}, {.autograd = {.gradient = polar_gradient}});
  t.add("aten.angle.default", fake_angle, eval_angle, {},
        {.pointwise = {.promotion = Promotion::IntToFloat}, .autograd = {.gradient = angle_gradient}});
  t.add("aten.frexp.Tensor", fake_frexp, eval_frexp, {{"self", "grad / exp2(result1)"}});
  t.add("aten.gcd.default", fake_special, eval_divisor<gcd>, {}, {.autograd = {.not_differentiable = true}});
  t.add("aten.lcm.default", fake_special, eval_divisor<lcm>, {}, {.autograd = {.not_differentiable = true}});
}

}  // namespace partita
