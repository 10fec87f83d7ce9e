// nll_loss for [N, C] and [N, C, H, W] inputs, and its gradient.

#include "core/ops/families/loss.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

/// Log probabilities as [samples, classes, positions], and the classes as [samples, positions]: one position unless
/// they are images, and a tensor [classes] is one sample.
struct Samples {
  LoweredTensor x, target, weight;
  std::int64_t ignored;
  Reduction reduction;
  Bound bound;  ///< range of the classes

  explicit Samples(LowerCall& call)
      : x(call.in("self")),
        target(call.in("target")),
        ignored(call.integer("ignore_index")),
        reduction(reduction_of(call)) {
    const std::size_t dim = x.dim() == 1 ? 0 : 1;
    const std::span<const SymExpr> sizes(x.sizes);
    const SymExpr classes = sizes[dim];
    if (classes.is(0) || (classes.is(1) && !call.evaluates))
      fail_unsupported("a loss over less than 2 classes, whose numbers need not be read");
    bound = {call.to.origin, "Target {} is out of bounds.", classes, false};
    if (call.has("weight")) weight = call.to.reshape(call.in("weight"), {classes});
    x = call.to.reshape(call.to.cast(x, opmath_dtype(x.dtype)),
                        {product(sizes.first(dim)), classes, product(sizes.subspan(dim + 1))});
    target = call.to.reshape(target, targets());
  }

  SymList targets() const { return {x.sizes[0], x.sizes[2]}; }
  Scalar class_of(Body& body, const Index& i) const { return body.b.cast(body.read(target, i), DType::Int64); }
  Scalar counts(Body& body, Scalar c) const { return body.b.Ne(c, body.b.constant_int(DType::Int64, ignored)); }
  /// The class as an index; 0 for an ignored class.
  Scalar checked(Body& body, Scalar c) const {
    return body.b.within(body.b.where(counts(body, c), c, body.b.constant_int(DType::Int64, 0)), bound);
  }
  SymExpr place(Body& body, Scalar c) const { return body.indirect(checked(body, c), x.sizes[1]); }
  /// The weight of a target; 0 when its class is ignored.
  Scalar weight_of(Body& body, Scalar c) const {
    Scalar w = weight.valid() ? body.b.cast(body.read(weight, {place(body, c)}), x.dtype) : body.b.constant(x.dtype, 1);
    return body.b.where(counts(body, c), w, body.b.constant(x.dtype, 0));
  }
};

void lower_nll_loss(LowerCall& call) {
  const Samples samples(call);
  Lowering& to = call.to;
  const SymList targets = samples.targets();
  const DType dtype = samples.x.dtype;
  auto loss = [samples](Body& body, const Index& i) {
    Scalar c = samples.class_of(body, i);
    Scalar value =
        body.b.Neg(body.b.Mul(body.read(samples.x, {i[0], samples.place(body, c), i[1]}), samples.weight_of(body, c)));
    return body.b.where(samples.counts(body, c), value, body.b.constant(samples.x.dtype, 0));
  };
  if (samples.reduction == Reduction::None && call.in("self").dim() > 1) {
    call.give(to.map(dtype, targets, loss));
    call.give(to.constant(dtype, {}, 0));
    return;
  }
  LoweredTensor total = to.reduce(dtype, targets, {true, true}, ScalarOp::Add, loss);
  LoweredTensor weight = to.reduce(dtype, targets, {true, true}, ScalarOp::Add, [samples](Body& body, const Index& i) {
    return samples.weight_of(body, samples.class_of(body, i));
  });
  if (samples.reduction == Reduction::Mean)
    call.give(pointwise(to, dtype, dtype, {total, weight}, [](ScalarBuilder& b, auto v) { return b.Div(v[0], v[1]); }));
  else
    call.give(total);
  call.give(weight);
}

void lower_nll_loss_backward(LowerCall& call) {
  const Samples samples(call);
  LoweredTensor grad = call.in("grad_output");
  const bool each = !grad.numel().is(1);
  grad = call.to.reshape(grad, each ? samples.targets() : SymList{1, 1});
  LoweredTensor total = call.to.reshape(call.in("total_weight"), {1});
  call.give(call.to.map(samples.x.dtype, samples.x.sizes, [=, dtype = call.out().dtype](Body& body, const Index& i) {
    ScalarBuilder& b = body.b;
    DType t = samples.x.dtype;
    const Index at{i[0], i[2]};
    Scalar c = samples.class_of(body, at);
    Scalar g = b.cast(body.read(grad, each ? at : Index{0, 0}), t);
    // Eager PyTorch rounds the mean's gradient to its dtype.
    if (samples.reduction == Reduction::Mean) g = b.cast(b.cast(b.Div(g, b.cast(body.read(total, {0}), t)), dtype), t);
    Scalar value = b.Neg(b.Mul(samples.weight_of(body, c), g));
    Scalar hit = b.BitAnd(b.Eq(samples.checked(body, c), body.scalar(i[1])), samples.counts(body, c));
    return b.where(hit, value, b.constant(t, 0));
  }));
}

/// Fails unless target and weight fit the input, which is [classes], [samples, classes] or, for images, [samples,
/// classes, h, w].
void check_target(const FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &target = c.tensor("target");
  const bool images = c.schema.base.find("nll_loss2d") != std::string::npos;
  if (images && self.dim() != 4)
    fail("only batches of images supported (4D tensors) as input, but got a tensor of " + std::to_string(self.dim()) +
         " dimensions");
  if (!images && (self.dim() == 0 || self.dim() > 2)) fail("input tensor should be 1D or 2D");
  if (target.dim() + 1 != self.dim()) fail("0D or 1D target tensor expected, multi-target not supported");
  if (target.dtype != DType::Int64 && target.dtype != DType::UInt8)
    fail("expected target dtype to be Long or Byte, but got " + std::string(torch_name(target.dtype)));
  for (std::size_t i = 0; i < target.dim(); ++i)
    if (!checked(c, sym_eq(target.sizes[i], self.sizes[i == 0 ? 0 : i + 1]), "nll_loss target"))
      fail("size mismatch (got input: " + self.sizes[i == 0 ? 0 : i + 1].str() + ", target: " + target.sizes[i].str() +
           ")");
  if (!c.has("weight")) return;
  const TensorMeta& weight = c.tensor("weight");
  const SymExpr classes = self.sizes[self.dim() == 1 ? 0 : 1];
  if ((weight.dim() != 1 && !images) || !checked(c, sym_eq(weight.numel(), classes), "nll_loss weight"))
    fail("weight tensor should be defined either for all " + classes.str() + " classes or no classes");
  if (weight.dtype != self.dtype)
    fail("expected scalar type " + std::string(torch_name(self.dtype)) + " but found " +
         std::string(torch_name(weight.dtype)));
}

Meta fake_nll_loss_forward(FakeCall& c) {
  check_target(c);
  const TensorMeta& self = c.tensor("self");
  bool none = reduction_of(c) == Reduction::None;
  return MetaTuple{{new_like(self, none ? c.tensor("target").sizes : SymList{}), new_like(self, {})}};
}

Meta fake_nll_loss_backward(FakeCall& c) {
  check_target(c);
  const TensorMeta &grad = c.tensor("grad_output"), &target = c.tensor("target");
  const bool each = reduction_of(c) == Reduction::None && target.dim() > 0;
  if (!checked(c, sym_eq(grad.numel(), each ? target.numel() : SymExpr(1)), "nll_loss gradient"))
    fail("Expected a gradient for " + std::string(each ? "each target" : "one number") + ", but got " +
         grad.numel().str() + " elements");
  if (const SymExpr n = c.tensor("total_weight").numel(); !checked(c, sym_eq(n, 1), "nll_loss total_weight"))
    fail("expected total_weight to be a single element tensor, got " + n.str() + " elements");
  return new_like(c.tensor("self"), c.tensor("self").sizes);
}

constexpr char nll_backward_1d[] = "aten.nll_loss_backward.default",
               nll_backward_2d[] = "aten.nll_loss2d_backward.default";

constexpr char forward_1d[] = "aten.nll_loss_forward.default", forward_2d[] = "aten.nll_loss2d_forward.default";

Arg decompose_nll_loss_nd(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta &self = c.tensor("self"), &target = c.tensor("target");
  Node *x = tensor_node(c, "self"), *y = tensor_node(c, "target");
  if (self.dim() < 1) fail("Expected 1 or more dimensions (got 0)");
  if (self.dim() != 1 && (target.dim() == 0 || !checked(c, sym_eq(self.sizes[0], target.sizes[0]), "nll_loss batch")))
    fail("Expected input batch_size (" + self.sizes[0].str() + ") to match target batch_size (" +
         (target.dim() ? target.sizes[0].str() : "") + ").");
  auto loss = [&](const char* op) {
    Node* result = b.call(op, {x, y, c.arg("weight"), c.arg("reduction"), c.arg("ignore_index")});
    return b.getitem(result, 0);
  };
  if (self.dim() <= 2) return loss(forward_1d);
  if (self.dim() == 4) return loss(forward_2d);
  // An input [N, C, d1, ...] is viewed as an image of height 1.
  SymExpr n = self.sizes[0];
  SymList output(self.sizes.begin() + 2, self.sizes.end());
  output.insert(output.begin(), n);
  bool empty = self.numel().is(0);
  x = b.call("aten.contiguous.default", {x});
  y = b.call("aten.contiguous.default", {y});
  x = b.call("aten.reshape.default", {x, b.sizes({n, self.sizes[1], empty ? 0 : 1, empty ? 0 : -1})});
  y = b.call("aten.reshape.default", {y, b.sizes({n, empty ? 0 : 1, empty ? 0 : -1})});
  Node* result = loss(forward_2d);
  if (reduction_of(c) != Reduction::None) return result;
  return b.call("aten.view.default", {result, b.sizes(output)});
}

}  // namespace

void register_nll_loss(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add(forward_1d, fake_nll_loss_forward, nullptr,
        {{"self", "aten.nll_loss_backward.default(grad, self, target, weight, reduction, ignore_index, result1)"}},
        {.lower = lower_nll_loss});
  t.add(forward_2d, fake_nll_loss_forward, nullptr,
        {{"self", "aten.nll_loss2d_backward.default(grad, self, target, weight, reduction, ignore_index, result1)"}},
        {.lower = lower_nll_loss});
  t.add(nll_backward_1d, fake_nll_loss_backward, nullptr,
        {{"grad_output", "aten.nll_loss_forward.default(grad, target, weight, reduction, ignore_index)[0]"},
         {"self", "zeros_like(self)"}},
        {.lower = lower_nll_loss_backward});
  t.add(nll_backward_2d, fake_nll_loss_backward, nullptr,
        {{"grad_output", "aten.nll_loss2d_forward.default(grad, target, weight, reduction, ignore_index)[0]"},
         {"self", "zeros_like(self)"}},
        {.lower = lower_nll_loss_backward});
  t.add("aten.nll_loss.default", {.program = "nll_loss_forward(self, target, weight, reduction, ignore_index)[0]"});
  t.add("aten.nll_loss2d.default", {.program = "nll_loss2d_forward(self, target, weight, reduction, ignore_index)[0]"});
  t.add("aten.nll_loss_nd.default", {.decompose = decompose_nll_loss_nd});
}

}  // namespace partita
