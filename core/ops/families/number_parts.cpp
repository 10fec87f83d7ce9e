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
  if (call.tensor(call.schema.args[0].name).dtype == DType::Float16)
    fail_unsupported(call.schema.name + " of half precision");
  SpecialCall s(call);
  Tensor out = kernels::empty(complex_of(s.computed.dtype), s.computed.sizes);
  kernels::dispatch_floating(s.computed.dtype, call.schema.name.c_str(), [&]<class T>() {
    const T *a = s.inputs[0].as<T>(), *b = s.inputs[1].as<T>();
    for (std::int64_t i : steps(out.numel())) out.as<std::complex<T>>()[i] = f(a[i], b[i]);
  });
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
  SpecialCall s(call);
  const bool complex = is_complex(s.computed.dtype);
  Tensor out = kernels::empty(real_of(s.computed.dtype), s.computed.sizes);
  kernels::dispatch_floating(out.dtype, "angle", [&]<class T>() {
    for (std::int64_t i : steps(out.numel())) {
      const T x = complex ? std::arg(s.inputs[0].as<std::complex<T>>()[i]) : s.inputs[0].as<T>()[i];
      out.as<T>()[i] = complex || std::isnan(x) ? x : x < 0 ? std::numbers::pi_v<T> : T(0);
    }
  });
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
  Tensor exponent = kernels::empty(DType::Int32, s.computed.sizes);
  kernels::dispatch_floating(s.computed.dtype, "frexp", [&]<class T>() {
    for (std::int64_t i : steps(exponent.numel()))
      s.computed.as<T>()[i] = std::frexp(s.inputs[0].as<T>()[i], &exponent.as<std::int32_t>()[i]);
  });
  return ValueList{s.computed, exponent};
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
  return s.computed;
}

}  // namespace

void register_number_parts(OpTable& t) {
  t.default_family = Family::Pointwise;
  t.add(
      "aten.complex.default", fake_complex, eval_complex<cartesian>,
      {{"real", "aten.select.int(view_as_real(grad), -1, 0)"}, {"imag", "aten.select.int(view_as_real(grad), -1, 1)"}});
  // The derivative of r e^(i t) by r is e^(i t), that by t is i times the result. The gradient is multiplied by their
  // conjugates.
  t.add("aten.polar.default", fake_complex, eval_complex<from_polar>,
        {{"abs", "aten.select.int(view_as_real(grad * conj(sgn(result))), -1, 0)"},
         {"angle", "aten.select.int(view_as_real(grad * conj(aten.mul.Tensor(result, imaginary_unit))), -1, 0)"}});
  // The derivative is 0 for real numbers; i z / |z|^2 for complex ones, and 0 at z = 0.
  t.add("aten.angle.default", fake_angle, eval_angle,
        {{"self",
          "r = abs(self) if is_complex(self) else None; zeros_like(self) if r is None else "
          "where(eq(self, 0), 0.0, grad * (mul(self, imaginary_unit) / (r * r)))"}},
        {.pointwise = {.promotion = Promotion::IntToFloat}});
  t.add("aten.frexp.Tensor", fake_frexp, eval_frexp, {{"self", "grad / exp2(result1)"}});
  t.add("aten.gcd.default", fake_special, eval_divisor<gcd>, {}, {.autograd = {.not_differentiable = true}});
  t.add("aten.lcm.default", fake_special, eval_divisor<lcm>, {}, {.autograd = {.not_differentiable = true}});
}

}  // namespace partita
