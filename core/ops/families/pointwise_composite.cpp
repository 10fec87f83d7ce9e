// Pointwise operators that are another operator under a second name, or decompose to two or three operators
// (CompositeImplicitAutograd).
#include "core/ops/families/body.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

struct Name {
  std::string_view name, means;
};
constexpr Name names[] = {
    {"aten.__and__.Tensor", "aten.bitwise_and.Tensor"},
    {"aten.__and__.Scalar", "aten.bitwise_and.Scalar"},
    {"aten.__or__.Tensor", "aten.bitwise_or.Tensor"},
    {"aten.__or__.Scalar", "aten.bitwise_or.Scalar"},
    {"aten.__xor__.Tensor", "aten.bitwise_xor.Tensor"},
    {"aten.__xor__.Scalar", "aten.bitwise_xor.Scalar"},
    {"aten.absolute.default", "aten.abs.default"},
    {"aten.arccos.default", "aten.acos.default"},
    {"aten.arccosh.default", "aten.acosh.default"},
    {"aten.arcsin.default", "aten.asin.default"},
    {"aten.arcsinh.default", "aten.asinh.default"},
    {"aten.arctan.default", "aten.atan.default"},
    {"aten.arctanh.default", "aten.atanh.default"},
    {"aten.arctan2.default", "aten.atan2.default"},
    {"aten.clip.default", "aten.clamp.default"},
    {"aten.clip.Tensor", "aten.clamp.Tensor"},
    {"aten.divide.Tensor", "aten.div.Tensor"},
    {"aten.divide.Scalar", "aten.div.Scalar"},
    {"aten.divide.Tensor_mode", "aten.div.Tensor_mode"},
    {"aten.divide.Scalar_mode", "aten.div.Scalar_mode"},
    {"aten.true_divide.Scalar", "aten.div.Scalar"},
    {"aten.fix.default", "aten.trunc.default"},
    {"aten.greater.Tensor", "aten.gt.Tensor"},
    {"aten.greater.Scalar", "aten.gt.Scalar"},
    {"aten.greater_equal.Tensor", "aten.ge.Tensor"},
    {"aten.greater_equal.Scalar", "aten.ge.Scalar"},
    {"aten.less.Tensor", "aten.lt.Tensor"},
    {"aten.less.Scalar", "aten.lt.Scalar"},
    {"aten.less_equal.Tensor", "aten.le.Tensor"},
    {"aten.less_equal.Scalar", "aten.le.Scalar"},
    {"aten.not_equal.Tensor", "aten.ne.Tensor"},
    {"aten.not_equal.Scalar", "aten.ne.Scalar"},
    {"aten.multiply.Tensor", "aten.mul.Tensor"},
    {"aten.multiply.Scalar", "aten.mul.Scalar"},
    {"aten.negative.default", "aten.neg.default"},
    {"aten.subtract.Tensor", "aten.sub.Tensor"},
    {"aten.subtract.Scalar", "aten.sub.Scalar"},
    {"aten.special_exp2.default", "aten.exp2.default"},
    {"aten.special_expit.default", "aten.sigmoid.default"},
    {"aten.special_expm1.default", "aten.expm1.default"},
    {"aten.special_log1p.default", "aten.log1p.default"},
    {"aten.special_logit.default", "aten.logit.default"},
    {"aten.special_erf.default", "aten.erf.default"},
    {"aten.special_erfc.default", "aten.erfc.default"},
    {"aten.special_erfinv.default", "aten.erfinv.default"},
    {"aten.special_gammaln.default", "aten.lgamma.default"},
    {"aten.special_digamma.default", "aten.digamma.default"},
    {"aten.special_psi.default", "aten.digamma.default"},
    {"aten.special_sinc.default", "aten.sinc.default"},
    {"aten.special_round.default", "aten.round.decimals"},
    {"aten.special_xlogy.default", "aten.xlogy.Tensor"},
    {"aten.special_i0.default", "aten.i0.default"},
    {"aten.special_gammainc.default", "aten.igamma.default"},
    {"aten.special_gammaincc.default", "aten.igammac.default"},
    {"aten.special_multigammaln.default", "aten.mvlgamma.default"},
    {"aten.special_polygamma.default", "aten.polygamma.default"},
};

Arg by_another_name(DecomposeCall& call) {
  for (const Name& n : names)
    if (n.name == call.schema.name) {
      Args args;
      Kwargs kwargs;
      for (std::size_t i = 0; i < call.args.size(); ++i) {
        const SchemaArg& a = call.schema.args[i];
        if (a.keyword_only)
          kwargs.emplace_back(a.name, call.args[i]);
        else
          args.push_back(call.args[i]);
      }
      return call.build.call(n.means, std::move(args), std::move(kwargs));
    }
  CHECK(false, "not in the table: " + call.schema.name);
}

/// A weight with one element per channel is reshaped so that it broadcasts along dimension 1.
Arg prelu_of(DecomposeCall& call) {
  const TensorMeta &self = call.tensor("self"), &weight = call.tensor("weight");
  const bool broadcasts = weight.dim() == 0 || (self.dim() < 2 && self.dim() == weight.dim());
  SymList shape(self.dim(), 1);
  if (self.dim() >= 2) shape[1] = weight.numel();
  return build_program(call, broadcasts ? "_prelu_kernel(self, weight)" : "_prelu_kernel(self, view(weight, shape))",
                       {{"shape", broadcasts ? Arg() : call.build.sizes(shape)}});
}

/// A power of two with a whole exponent moves the binary point, also where that power alone is infinite or 0.
V scaled(V x, V exponent) {
  if (x.dtype() != DType::Float64) {
    const V wide = exponent.as(DType::Float64);
    return (x.as(DType::Float64) * Exp2(Min(Max(wide, -600.0), 600.0))).as(x.dtype());
  }
  for (int part = 0; part < 3; ++part) {
    const V step = Min(Max(exponent, -1000.0), 1000.0);
    x = x * Exp2(step);
    exponent = exponent - step;
  }
  return x;
}

V ldexp(In& in) {
  const DType self = in.call.tensor("self").dtype, other = in.call.tensor("other").dtype;
  V x = in[0], exponent = in[1];
  if (is_floating(self) && is_integral(other)) return scaled(x, exponent);
  // Else x times 2 to the power in the exponent's own dtype.
  if (!is_complex(other)) exponent = exponent.as(real_of(x.dtype()));
  V power = Pow(exponent.constant(2), exponent);
  if (opmath_dtype(other) != other) power = power.as(other);
  return x * power.as(x.dtype());
}

/// The layout is that of self times pow(2, other), which is row-major, except where PyTorch has a kernel for both.
Meta fake_ldexp(FakeCall& call) {
  Meta meta = fake_pointwise(*find_record(Op::torch(call.schema.name)), call);
  TensorMeta& out = *meta.tensor();
  const DType self = call.tensor("self").dtype;
  if (is_floating(self) && (self != DType::Float32 || is_integral(call.tensor("other").dtype))) return meta;
  TensorMeta power = call.tensor("other");
  power.strides = strides_for(MemoryFormat::Contiguous, power.sizes);
  const TensorMeta* const operands[] = {&call.tensor("self"), &power};
  out.strides = elementwise_strides(call, out.sizes, operands);
  return meta;
}

}  // namespace

void register_pointwise_composite(OpTable& t) {
  t.default_family = Family::Pointwise;
  for (const Name& n : names) t.add(n.name, {.decompose = by_another_name});
  t.add("aten.relu6.default", {.program = "hardtanh(self, 0, 6)"});
  t.add("aten.selu.default", {.program = "elu(self, 1.6732632423543772, 1.0507009873554805)"});
  t.add("aten.square.default", {.program = "pow(self, 2)"});
  t.add("aten.log_sigmoid.default", {.program = "log_sigmoid_forward(self)[0]"});
  t.add("aten.ldexp.Tensor",
        {.fake = fake_ldexp,
         .pointwise = {body<ldexp>, Promotion::IntToFloat},
         .autograd = {.derivative = {{"self", "grad * conj(pow(2, other))"},
                                     {"other", "aten.mul.Scalar(grad * conj(result), 0.6931471805599453)"}}}});
  t.add("aten.special_ndtr.default", {.program = "(erf(self * 0.7071067811865476) + 1) * 0.5"});
  t.add("aten.isfinite.default",
        {.program = "logical_not(logical_or(isinf(self), isnan(self))) if is_complex(self) else "
                    "logical_and(eq(self, self), ne(abs(self), inf)) if is_floating(self) else "
                    "aten.ones_like.default(self, dtype=torch.bool)"});
  t.add("aten.prelu.default", {.decompose = prelu_of});
}

}  // namespace partita
