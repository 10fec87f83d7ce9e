// What a DTensor's values pass through, where the graph around them is of a rank's own tensors: metas are those of
// whole tensors, and gradients those of torch/distributed/tensor/_api.py and _redistribute.py. core/dtensor replaces
// the calls by collectives; none is evaluated.
#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

Meta dtensor_with_sizes(FakeCall& c) {
  TensorMeta out = c.tensor("input");
  out.sizes = c.syms("size");
  out.strides = c.syms("stride");
  if (out.sizes.size() != out.strides.size()) fail("size and stride have different lengths");
  out.offset = 0;
  out.strides_known = true;
  return out;
}
Meta dtensor_itself(FakeCall& c) {
  return c.tensor("input");
}

Value dtensor_unevaluated(EvalCall& c) {
  fail_unsupported(c.schema.name +
                   " as it stands; it is a part of a graph of DTensors, which becomes one of local "
                   "tensors before it runs");
}

/// A call without gradients of its own: those of the backward.
Node* local_of_dtensor(Builder& b, Node* grad, const std::string& mesh, const std::string& placements,
                       const TensorMeta& as) {
  return b.call("_dtensor.to_local.default",
                {grad, mesh, placements, b.sizes(as.sizes), b.sizes(as.strides), std::string()});
}

std::vector<Node*> from_local_gradient(GradCall& c) {
  Builder& b = c.build;
  Node* grad = c.grads[0];
  const std::string mesh = c.string("mesh"), wanted = c.string("grad_placements");
  // The gradient of an input that is a DTensor itself stays where it is.
  if (!wanted.empty()) grad = b.call("_dtensor.redistribute.default", {grad, mesh, std::string(), wanted, false});
  return gradient_of_first(c, local_of_dtensor(b, grad, mesh, wanted, c.tensor("input")));
}

std::vector<Node*> to_local_gradient(GradCall& c) {
  Builder& b = c.build;
  const TensorMeta& whole = c.tensor("input");
  const std::string placements = c.string("grad_placements");
  if (placements.empty()) fail_unsupported("second derivatives of DTensors");
  return gradient_of_first(
      c, b.call("_dtensor.from_local.default", {c.grads[0], c.string("mesh"), placements, b.sizes(whole.sizes),
                                                b.sizes(whole.strides), std::string()}));
}

std::vector<Node*> redistribute_gradient(GradCall& c) {
  const std::string previous = c.string("previous");
  if (previous.empty()) fail_unsupported("second derivatives of DTensors");
  return gradient_of_first(
      c, c.build.call("_dtensor.redistribute.default", {c.grads[0], c.string("mesh"), std::string(), previous, true}));
}

}  // namespace

void register_dtensor(OpTable& t) {
  t.default_family = Family::Collective;
  const auto gradient = [](auto function) { return OpRecord{.autograd = {.gradient = function}}; };
  t.add("_dtensor.from_local.default", dtensor_with_sizes, dtensor_unevaluated, {}, gradient(from_local_gradient));
  t.add("_dtensor.to_local.default", dtensor_with_sizes, dtensor_unevaluated, {}, gradient(to_local_gradient));
  t.add("_dtensor.redistribute.default", dtensor_itself, dtensor_unevaluated, {}, gradient(redistribute_gradient));
  t.add("_dtensor.placed.default", dtensor_itself, dtensor_unevaluated, {{"input", "grad"}});
}

}  // namespace partita
