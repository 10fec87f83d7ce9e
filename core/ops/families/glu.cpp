// Gated linear units: the first half of a dimension times the sigmoid of the second.
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/operator_program.h"
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
  auto wide = [&](const Arg& x) { return to_dtype(b, x, opmath_dtype(b.tensor(x).dtype)); };
  const Arg self = wide(c.arg("self"));
  auto part = [&](SymExpr begin) {
    return b.call("aten.slice.Tensor", {self, static_cast<std::int64_t>(dim), b.size(begin), b.size(begin + half)});
  };
  std::vector<std::pair<std::string, Arg>> names = {{"v", part(0)}};
  names.emplace_back("g", part(half));
  if (c.schema.index_of("grad_output") >= 0) names.emplace_back("grad", wide(c.arg("grad_output")));
  return names;
}

Arg decompose_glu(DecomposeCall& c) {
  return to_dtype(c.build, c.build.expression("v * sigmoid(g)", operands(c)), c.tensor("self").dtype);
}

Arg decompose_glu_backward(DecomposeCall& c) {
  const Arg gradient = build_program(c, "s = sigmoid(g); cat([s * grad, (1.0 - s) * s * v * grad], dim)", operands(c));
  return to_dtype(c.build, gradient, c.tensor("self").dtype);
}

/// half(x, dim, second): the first or the second half of a dimension.
Arg half(const FormulaCall& f) {
  const SymList& sizes = f.tensor(0).sizes;
  SymExpr length = sym_floordiv(sizes[wrap_dim(f.integer(1), sizes.size())], 2),
          begin = f.flag(2) ? length : SymExpr(0);
  return f.build.call("aten.slice.Tensor", {f.args[0], f.args[1], f.build.size(begin), f.build.size(begin + length)});
}

}  // namespace

void register_glu(OpTable& t) {
  t.default_family = Family::Pointwise;
  t.add_formula_functions({{"half", half}});
  t.add("aten.glu.default", {.fake = fake_glu,
                             .decompose = decompose_glu,
                             .autograd = {.derivative = {{"self", "glu_backward(grad, self, dim)"}}}});
  t.add("aten.glu_backward.default",
        {.fake = fake_glu_backward,
         .decompose = decompose_glu_backward,
         .autograd = {
             .derivative = {
                 {"grad_output",
                  "ones = aten.new_ones.default(self, sizes(grad_output)); "
                  "slopes = grad * glu_backward(ones, self, dim); a = half(slopes, dim, False); b = half(slopes, dim, "
                  "True); a + b"},
                 {"self",
                  "s = sigmoid(half(self, dim, True)); slope = s * (1 - s); "
                  "first = half(grad, dim, False); gate = half(grad, dim, True); value = half(self, dim, False); "
                  "cat([gate * grad_output * slope, gate * value * grad_output * (slope * (1 - s) - s * slope) + "
                  "first * grad_output * slope], dim)"}}}});
}

}  // namespace partita
