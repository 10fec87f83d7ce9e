// Selection by boolean masks: nonzero, masked_select, masked_scatter.
#include <algorithm>

#include "core/ops/families/indexing.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/true_positions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/sym/float_symbol.h"

namespace partita {

SymExpr selected_by(const FakeCall& c, const Arg& mask) {
  const Node* node = mask.node();
  SymExpr known = 0;
  for (const Node* user : node ? node->users() : std::vector<Node*>()) {
    const Schema* schema = find_schema(user->op());
    // The mask may change between the two calls.
    if (!schema || schema->is_mutable || schema->is_view) return c.shapes.new_unbacked();
    const TensorMeta* t = user->meta.tensor();
    const bool selects =
        schema->name == "aten.nonzero.default" ||
        (schema->name == "aten.index.Tensor" && user->args() == Args{user->args()[0], Arg::list({mask})});
    // An annotation may say anything else.
    if (selects && t && t->sizes[0].kind() == SymKind::Symbol && is_unbacked(t->sizes[0].name())) known = t->sizes[0];
  }
  return known.is(0) ? c.shapes.new_unbacked() : known;
}

namespace {

using namespace kernels;

Meta fake_nonzero(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  TensorMeta meta = new_like(self, {selected_by(c, c.arg("self")), static_cast<std::int64_t>(self.dim())});
  meta.dtype = DType::Int64;
  // Eager PyTorch stores the coordinates dimension by dimension, so the result is column-major.
  meta.strides = {1, meta.sizes[0]};
  return meta;
}

Value eval_nonzero(EvalCall& c) {
  Tensor rows = nonzero(c.tensor("self"));
  Tensor out = unwrap(Tensor::empty_strided(DType::Int64, rows.sizes, {1, std::max<std::int64_t>(rows.sizes[0], 1)}));
  out.copy_from(rows);
  return out;
}

Meta fake_masked_select(FakeCall& c) {
  return new_like(c.tensor("self"), {c.shapes.new_unbacked()});
}

Value eval_masked_select(EvalCall& c) {
  const Tensor* inputs[] = {&c.tensor("self"), &c.tensor("mask")};
  Sizes sizes = broadcast_load(inputs, DType::Bool).sizes;
  Tensor x = expand_load(*inputs[0], sizes, inputs[0]->dtype), mask = expand_load(*inputs[1], sizes, DType::Bool);
  std::int64_t count = 0;
  for (std::int64_t i : steps(mask.numel())) count += mask.as<StoredBool>()[i];
  Tensor y = empty(x.dtype, {count});
  dispatch_width(x.dtype, [&]<class T>() {
    T* to = y.as<T>();
    for (std::int64_t i : steps(mask.numel()))
      if (mask.as<StoredBool>()[i]) *to++ = x.as<T>()[i];
  });
  return y;
}

Meta fake_masked_scatter(FakeCall& c) {
  SymList both[] = {c.tensor("self").sizes, c.tensor("mask").sizes};
  return new_like(c.tensor("self"), broadcast(c, both));
}

Value eval_masked_scatter(EvalCall& c) {
  Tensor y = allocate(c, fake_masked_scatter);
  y.copy_from(expand_load(c.tensor("self"), y.sizes, y.dtype));
  Tensor mask = expand_load(c.tensor("mask"), y.sizes, DType::Bool), source = load(c.tensor("source"), y.dtype);
  dispatch_width(y.dtype, [&]<class T>() {
    std::int64_t next = 0;
    for (std::int64_t i : steps(y.numel())) {
      if (!mask.as<StoredBool>()[i]) continue;
      if (next >= source.numel())
        fail("masked_scatter: expected self and source to have the same number of elements as the mask has ones");
      y.as<T>()[i] = source.as<T>()[next++];
    }
  });
  return y;
}

Meta fake_masked_scatter_backward(FakeCall& c) {
  return new_like(c.tensor("grad_output"), c.syms("sizes"));
}

/// The gradient of `source`: the gradient's elements where the mask is true, in order, then zeros.
Value eval_masked_scatter_backward(EvalCall& c) {
  const Tensor& grad = c.tensor("grad_output");
  Tensor g = load(grad, grad.dtype), mask = expand_load(c.tensor("mask"), g.sizes, DType::Bool),
         y = zeros(g.dtype, c.integers("sizes"));
  dispatch_width(g.dtype, [&]<class T>() {
    std::int64_t next = 0;
    for (std::int64_t i : steps(g.numel()))
      if (mask.as<StoredBool>()[i] && next < y.numel()) y.as<T>()[next++] = g.as<T>()[i];
  });
  return y;
}

std::vector<Node*> grad_masked_select(GradCall& c) {
  Builder& b = c.build;
  SymList both[] = {c.tensor("self").sizes, c.tensor("mask").sizes};
  Node* expanded = b.call("aten.expand.default", {c.arg("self"), b.sizes(broadcast(c, both))});
  Node* zeros = b.call("aten.zeros_like.default", {expanded}, {{"memory_format", MemoryFormat::Contiguous}});
  return gradient_of_first(c, b.call("aten.masked_scatter.default", {zeros, c.arg("mask"), c.grads[0]}));
}

}  // namespace

void register_masked(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.nonzero.default", fake_nonzero, eval_nonzero, {}, {.autograd = {.not_differentiable = true}});
  t.add("aten.masked_select.default", fake_masked_select, eval_masked_select, {},
        {.autograd = {.gradient = grad_masked_select}});
  t.add("aten.masked_scatter.default", fake_masked_scatter, eval_masked_scatter,
        {{"self", "aten.masked_fill.Scalar(grad, mask, 0)"},
         {"source", "masked_scatter_backward(grad, mask, sizes(source))"}});
  t.add("aten.masked_scatter_backward.default", fake_masked_scatter_backward, eval_masked_scatter_backward);
}

}  // namespace partita
