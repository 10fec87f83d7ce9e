// max_poolNd_with_indices, its gradient, and the composites max_pool1d/2d/3d.
#include "core/ops/families/pool.h"
#include "core/ops/gradients.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/layout.h"
#include "core/ops/lowerings.h"

namespace partita {

namespace {

using namespace kernels;

template <std::size_t rank>
Meta fake_max_pool(FakeCall& c) {
  return with_indices(pooled(c, c.tensor("self"), rank));
}

template <std::size_t rank>
Value eval_max_pool(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_max_pool<rank>);
  Cells cells = sliding_cells(pool_arguments(c, rank), c.tensor("self").sizes, outputs[0].sizes, rank);
  return max_of_cells(c, outputs, rank, [&](std::int64_t) -> const Cells& { return cells; });
}

template <const char* backward>
std::vector<Node*> grad_max_pool(GradCall& c) {
  GradientSlots slots(c);
  if (c.grads[0])
    slots["self"] = c.build.call(backward, {c.grads[0], c.arg("self"), c.arg("kernel_size"), c.arg("stride"),
                                            c.arg("padding"), c.arg("dilation"), c.arg("ceil_mode"), c.results[1]});
  return slots;
}

constexpr char backward_2d[] = "aten.max_pool2d_with_indices_backward.default";
constexpr char backward_3d[] = "aten.max_pool3d_with_indices_backward.default";

Node* pool_with_indices(DecomposeCall& c, const char* op) {
  return c.build.call(op, {c.arg("self"), c.arg("kernel_size"), c.arg("stride"), c.arg("padding"), c.arg("dilation"),
                           c.arg("ceil_mode")});
}

Arg decompose_max_pool2d(DecomposeCall& c) {
  return c.build.getitem(pool_with_indices(c, "aten.max_pool2d_with_indices.default"), 0);
}
Arg decompose_max_pool3d(DecomposeCall& c) {
  return c.build.getitem(pool_with_indices(c, "aten.max_pool3d_with_indices.default"), 0);
}

/// Pools a 1-d signal as a 2-d image of height 1.
Node* pool_as_2d(DecomposeCall& c) {
  auto pair = [&](const char* name, std::int64_t first) {
    Sizes values = c.integers(name);
    if (values.empty()) return Arg::list({});
    return Arg::list({Arg(first), Arg(values[0])});
  };
  Node* x = c.build.call("aten.unsqueeze.default", {c.arg("self"), -2});
  return c.build.call(
      "aten.max_pool2d_with_indices.default",
      {x, pair("kernel_size", 1), pair("stride", 1), pair("padding", 0), pair("dilation", 1), c.arg("ceil_mode")});
}

Arg decompose_max_pool1d(DecomposeCall& c) {
  return c.build.call("aten.squeeze.dim", {c.build.getitem(pool_as_2d(c), 0), -2});
}

Arg decompose_max_pool1d_with_indices(DecomposeCall& c) {
  Node* pool = pool_as_2d(c);
  auto flat = [&](std::int64_t i) { return c.build.call("aten.squeeze.dim", {c.build.getitem(pool, i), -2}); };
  Node* values = flat(0);
  return Arg::tuple({values, flat(1)});
}

}  // namespace

void register_max_pool(OpTable& t) {
  t.add("aten.max_pool2d_with_indices.default", {.fake = fake_max_pool<2>,
                                                 .eval = eval_max_pool<2>,
                                                 .gradient = grad_max_pool<backward_2d>,
                                                 .lower = loops::lower_max_pool2d});
  t.add("aten.max_pool3d_with_indices.default",
        {.fake = fake_max_pool<3>, .eval = eval_max_pool<3>, .gradient = grad_max_pool<backward_3d>});
  t.add(backward_2d,
        {.fake = fake_pool_backward,
         .eval = eval_add_at_indices<fake_pool_backward, 2>,
         .derivative = {{"grad_output", "max_pool_double_backward(grad, indices, 2)"}, {"self", "zeros_like(self)"}},
         .lower = loops::lower_max_pool2d_backward});
  t.add(backward_3d,
        {.fake = fake_pool_backward,
         .eval = eval_add_at_indices<fake_pool_backward, 3>,
         .derivative = {{"grad_output", "max_pool_double_backward(grad, indices, 3)"}, {"self", "zeros_like(self)"}}});
  t.add("aten.max_pool1d.default", {.decompose = decompose_max_pool1d});
  t.add("aten.max_pool1d_with_indices.default", {.decompose = decompose_max_pool1d_with_indices});
  t.add("aten.max_pool2d.default", {.decompose = decompose_max_pool2d});
  t.add("aten.max_pool3d.default", {.decompose = decompose_max_pool3d});
}

}  // namespace partita
