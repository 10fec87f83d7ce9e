// Gated linear units: the first half of a dimension times the sigmoid of the second.
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

std::size_t gated_dim(const FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (self.dim() == 0) fail("glu does not support 0-dimensional tensors");
  std::size_t dim = wrap_dim(c.integer("dim"), self.dim());
  if (!checked(c, sym_eq(sym_mod(self.sizes[dim], 2), 0), "glu halves"))
    fail("Halving dimension must be even, but dimension " + std::to_string(dim) + " is size " + self.sizes[dim].str());
  return dim;
}

Meta fake_glu(FakeCall& c) {
  std::size_t dim = gated_dim(c);
  TensorMeta half = c.tensor("self");
  half.sizes[dim] = sym_floordiv(half.sizes[dim], 2);
  const TensorMeta* halves[] = {&half, &half};
  TensorMeta out = new_like(half, half.sizes);
  out.strides = elementwise_strides(c, half.sizes, halves);
  return out;
}

/// grad_output broadcasts to the sizes of one half.
Meta fake_glu_backward(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &grad = c.tensor("grad_output");
  SymList half = self.sizes;
  SymExpr& halved = half[gated_dim(c)];
  halved = sym_floordiv(halved, 2);
  if (grad.dtype != self.dtype)
    fail("Found dtype " + std::string(torch_name(grad.dtype)) + " but expected " + std::string(torch_name(self.dtype)));
  if (grad.dim() > half.size() || broadcast(c, std::vector<SymList>{half, grad.sizes}) != half)
    fail("glu_backward: grad_output does not fit half of self");
  return new_like(self, self.sizes);
}

/// The operands of a formula: v and g are the halves of self (value and gate), grad is grad_output if the call has it.
/// Half types are converted to float32, in which eager PyTorch computes.
std::vector<std::pair<std::string, Arg>> operands(DecomposeCall& c) {
  Builder& b = c.build;
  const std::size_t dim = gated_dim(c);
  const SymExpr half = sym_floordiv(c.tensor("self").sizes[dim], 2);
  auto wide = [&](const Arg& x) -> Arg {
    const DType t = b.tensor(x).dtype;
    return opmath_dtype(t) == t ? x : b.call("aten._to_copy.default", {x}, {{"dtype", opmath_dtype(t)}});
  };
  const Arg self = wide(c.arg("self"));
  auto part = [&](SymExpr begin) {
    return b.call("aten.slice.Tensor", {self, static_cast<std::int64_t>(dim), b.size(begin), b.size(begin + half)});
  };
  std::vector<std::pair<std::string, Arg>> names = {{"v", part(0)}};
  names.emplace_back("g", part(half));
  if (c.schema.index_of("grad_output") >= 0) names.emplace_back("grad", wide(c.arg("grad_output")));
  return names;
}

Arg narrowed(DecomposeCall& c, const Arg& result) {
  const DType dtype = c.tensor("self").dtype;
  if (Builder::tensor(result).dtype == dtype) return result;
  return c.build.call("aten._to_copy.default", {result}, {{"dtype", dtype}});
}

Arg decompose_glu(DecomposeCall& c) {
  return narrowed(c, c.build.expression("v * sigmoid(g)", operands(c)));
}

Arg decompose_glu_backward(DecomposeCall& c) {
  std::vector<std::pair<std::string, Arg>> names = operands(c);
  names.emplace_back("dim", c.arg("dim"));
  names.emplace_back("s", c.build.expression("sigmoid(g)", names));
  return narrowed(c, c.build.expression("cat([s * grad, (1.0 - s) * s * v * grad], dim)", names));
}

/// One half of a dimension: the first, or the second.
Arg half(const FormulaCall& f, const Arg& x, std::int64_t dim, bool second) {
  const SymList& sizes = Builder::tensor(x).sizes;
  SymExpr length = sym_floordiv(sizes[wrap_dim(dim, sizes.size())], 2), begin = second ? length : SymExpr(0);
  return f.build.call("aten.slice.Tensor", {x, dim, f.build.size(begin), f.build.size(begin + length)});
}

/// glu_double_backward_grad_output(grad, self, dim)
Arg glu_double_backward_grad_output(const FormulaCall& f) {
  SymList sizes = f.tensor(1).sizes;
  const std::size_t dim = wrap_dim(f.integer(2), sizes.size());
  sizes[dim] = sym_floordiv(sizes[dim], 2);
  Node* ones = f.build.call("aten.new_ones.default", {f.args[1], f.build.sizes(sizes)});
  Arg slopes = f("x0 * glu_backward(ones, x1, x2)", {{"ones", ones}});
  return f("a + b", {{"a", half(f, slopes, f.integer(2), false)}, {"b", half(f, slopes, f.integer(2), true)}});
}

/// glu_double_backward(grad, grad_output, self, dim)
Arg glu_double_backward(const FormulaCall& f) {
  const std::int64_t dim = f.integer(3);
  Arg s = f("sigmoid(g)", {{"g", half(f, f.args[2], dim, true)}});
  Arg slope = f("s * (1 - s)", {{"s", s}});
  Arg by_value = half(f, f.args[0], dim, false), by_gate = half(f, f.args[0], dim, true);
  return f(
      "cat([gate * x1 * slope, gate * value * x1 * (slope * (1 - s) - s * slope) + first * x1 * slope], x3)",
      {{"s", s}, {"slope", slope}, {"first", by_value}, {"gate", by_gate}, {"value", half(f, f.args[2], dim, false)}});
}

}  // namespace

void register_glu(OpTable& t) {
  t.default_family = Family::Pointwise;
  t.add_formula_functions({{"glu_double_backward_grad_output", glu_double_backward_grad_output},
                           {"glu_double_backward", glu_double_backward}});
  t.add("aten.glu.default", {.fake = fake_glu,
                             .decompose = decompose_glu,
                             .autograd = {.derivative = {{"self", "glu_backward(grad, self, dim)"}}}});
  t.add("aten.glu_backward.default",
        {.fake = fake_glu_backward,
         .decompose = decompose_glu_backward,
         .autograd = {.derivative = {{"grad_output", "glu_double_backward_grad_output(grad, self, dim)"},
                                     {"self", "glu_double_backward(grad, grad_output, self, dim)"}}}});
}

}  // namespace partita
