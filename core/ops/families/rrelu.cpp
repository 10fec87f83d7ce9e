// rrelu: multiplies negative elements by slopes, which are drawn at random in training and kept as `noise` for the
// gradient.
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

double bound(const auto& c, const char* name) {
  return as_double(c.number(name));
}
double middle(const auto& c) {
  return (bound(c, "lower") + bound(c, "upper")) / 2;
}

Meta fake_rrelu(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &noise = c.tensor("noise");
  const auto lower = c.known_number("lower"), upper = c.known_number("upper");
  if (lower && upper && as_double(*lower) > as_double(*upper))
    fail("Lower bound should be less than or equal to the upper bound");
  if (c.boolean("training") && noise.dtype != self.dtype) fail("noise tensor must have the same dtype as the input");
  if (!checked(c, sym_eq(self.numel(), noise.numel()), "rrelu noise"))
    fail("noise tensor shape must match self tensor shape");
  return new_like(self, self.sizes);
}
Meta fake_rrelu_in_place(FakeCall& c) {
  fake_rrelu(c);
  return c.tensor("self");
}
Meta fake_rrelu_functional(FakeCall& c) {
  return MetaTuple{{fake_rrelu(c), c.tensor("noise")}};
}

struct Drawn {
  Tensor output, noise;  ///< row-major, in the computation dtype; noise is unchanged where nothing is drawn
};

Drawn draw(const EvalCall& c) {
  DType dtype = evaluation_dtype(c.tensor("self").dtype);
  Tensor x = load(c.tensor("self"), dtype), y = empty(dtype, x.sizes);
  Tensor noise = empty(dtype, c.tensor("noise").sizes);
  noise.copy_from(c.tensor("noise"));
  bool training = c.boolean("training");
  double low = bound(c, "lower"), high = bound(c, "upper");
  dispatch_floating(dtype, "rrelu_with_noise", [&]<class T>() {
    // Both bounds are rounded to the dtype. The number drawn between them is a double.
    const double from = static_cast<T>(low), length = static_cast<T>(high) - from;
    for (std::int64_t i : steps(x.numel())) {
      T v = x.as<T>()[i];
      T slope = static_cast<T>(training && v <= T(0) ? c.generator().uniform() * length + from : middle(c));
      y.as<T>()[i] = v <= T(0) ? v * slope : v;
      if (training) noise.as<T>()[i] = v <= T(0) ? slope : T(1);
    }
  });
  return {y, noise};
}

template <bool in_place>
Value eval_rrelu(EvalCall& c) {
  Drawn drawn = draw(c);
  if (in_place) Tensor(c.tensor("self")).copy_from(drawn.output);
  if (c.boolean("training")) Tensor(c.tensor("noise")).copy_from(drawn.noise);
  return in_place ? c.tensor("self") : drawn.output;
}

Value eval_rrelu_functional(EvalCall& c) {
  Drawn drawn = draw(c);
  return ValueList{drawn.output, drawn.noise};
}

/// In training `noise` holds the factor of each element: the drawn slope, or 1.
Arg decompose_backward(DecomposeCall& c) {
  if (c.boolean("training")) return c.build.call("aten.mul.Tensor", {c.arg("grad_output"), c.arg("noise")});
  return c.build.call("aten.leaky_relu_backward.default",
                      {c.arg("grad_output"), c.arg("self"), middle(c), c.arg("self_is_result")});
}

template <const char* op>
Arg decompose_rrelu(DecomposeCall& c) {
  Node* noise = c.build.call("aten.empty_like.default", {c.arg("self")}, {{"memory_format", MemoryFormat::Contiguous}});
  return c.build.call(op,
                      {c.arg("self"), noise, c.arg("lower"), c.arg("upper"), c.arg("training"), c.arg("generator")});
}

constexpr char with_noise[] = "aten.rrelu_with_noise.default", with_noise_[] = "aten.rrelu_with_noise_.default";

}  // namespace

void register_rrelu(OpTable& t) {
  t.default_family = Family::Random;
  const std::string_view gradient = "rrelu_with_noise_backward(grad, self, noise, lower, upper, training, False)";
  t.add(with_noise, fake_rrelu, eval_rrelu<false>, {{"self", gradient}}, {.random = true});
  t.add(with_noise_, fake_rrelu_in_place, eval_rrelu<true>, {}, {.random = true});
  t.add("aten.rrelu_with_noise_functional.default", fake_rrelu_functional, eval_rrelu_functional,
        {{"self", "rrelu_with_noise_backward(grad, self, result1, lower, upper, training, False)"}}, {.random = true});
  t.add("aten.rrelu_with_noise_backward.default",
        {.decompose = decompose_backward, .autograd = {.derivative = {{"grad_output", gradient}}}});
  t.add("aten.rrelu.default", {.decompose = decompose_rrelu<with_noise>});
  t.add("aten.rrelu_.default", {.decompose = decompose_rrelu<with_noise_>});
}

}  // namespace partita
