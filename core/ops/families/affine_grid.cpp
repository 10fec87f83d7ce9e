// affine_grid_generator: applies an affine map to the coordinates of the output's pixels, which run from -1 to 1.
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

/// `size` is [N, C, H, W] or [N, C, D, H, W]. Fails unless theta is [N, rank, rank + 1].
SymList grid_sizes(const FakeCall& c) {
  SymList size = c.syms("size");
  if (size.size() != 4 && size.size() != 5) fail("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  return size;
}

/// Homogeneous coordinates of the output's pixels, [D, H, W, rank + 1]: x, y (and z), then 1.
Node* base_grid(DecomposeCall& c, const SymList& size, DType dtype, Device device) {
  Builder& b = c.build;
  const std::size_t rank = size.size() - 2;
  const bool align = c.boolean("align_corners");
  Node* grid = nullptr;
  for (std::size_t i = 0; i <= rank; ++i) {
    SymList shape(rank + 1, 1);
    Node* line;
    if (i == rank) {
      line = b.call("aten.ones.default", {b.sizes(shape)}, {{"dtype", dtype}, {"device", device}});
    } else {
      // Coordinates come in the order x, y, z; sizes in the order depth, height, width.
      SymExpr steps = size[size.size() - 1 - i];
      if (!steps.is_int()) fail_unsupported("affine_grid_generator of a symbolic size");
      double n = static_cast<double>(steps.as_int()), edge = n <= 1 ? 0 : align ? 1 : (n - 1) / n;
      shape[rank - 1 - i] = steps;
      line = b.call("aten.linspace.default", {-edge, edge, b.size(steps)}, {{"dtype", dtype}, {"device", device}});
      line = b.call("aten.view.default", {line, b.sizes(shape)});
    }
    auto before = static_cast<std::int64_t>(i), after = static_cast<std::int64_t>(rank - i);
    line = b.call("aten.constant_pad_nd.default", {line, Arg::list({before, after})});
    grid = grid ? b.call("aten.add.Tensor", {grid, line}) : line;
  }
  return grid;
}

Arg decompose_affine_grid(DecomposeCall& c) {
  Builder& b = c.build;
  const SymList size = grid_sizes(c);
  const TensorMeta& theta = c.tensor("theta");
  auto rank = static_cast<std::int64_t>(size.size() - 2);
  if (theta.dim() != 3 || !theta.sizes[1].is(rank) || !theta.sizes[2].is(rank + 1) ||
      !checked(c, sym_eq(theta.sizes[0], size[0]), "affine_grid batch"))
    fail("Expected a batch of " + std::to_string(rank) + "x" + std::to_string(rank + 1) + " affine matrices for theta");
  DType dtype = opmath_dtype(theta.dtype);
  Node* map = to_dtype(b, c.arg("theta"), dtype);
  Node* places =
      b.call("aten.reshape.default", {base_grid(c, size, dtype, theta.device), Arg::list({-1, rank + 1, 1})});
  map = b.call("aten.unsqueeze.default", {b.call("aten.transpose.int", {map, -2, -1}), 1});
  Node* grid = b.call("aten.sum.dim_IntList", {b.call("aten.mul.Tensor", {places, map}), Arg::list({-2})});
  SymList sizes = size;
  sizes.erase(sizes.begin() + 1);
  sizes.emplace_back(rank);
  grid = b.call("aten.reshape.default", {grid, b.sizes(sizes)});
  return to_dtype(b, grid, theta.dtype);
}

/// The gradient of theta: the sum over pixels of the gradient times the pixel's homogeneous coordinates.
Arg decompose_affine_grid_backward(DecomposeCall& c) {
  Builder& b = c.build;
  const SymList size = grid_sizes(c);
  const TensorMeta& grad = c.tensor("grad");
  auto rank = static_cast<std::int64_t>(size.size() - 2);
  Node* places =
      b.call("aten.reshape.default", {base_grid(c, size, grad.dtype, grad.device), Arg::list({1, -1, rank + 1})});
  SymExpr count = product(std::span(size).subspan(2));
  places = b.call("aten.expand.default", {places, b.sizes({size[0], count, rank + 1})});
  Node* flat = b.call("aten.reshape.default", {c.arg("grad"), b.sizes({size[0], count, rank})});
  Node* sums = b.call("aten.bmm.default", {b.call("aten.transpose.int", {places, 1, 2}), flat});
  return b.call("aten.transpose.int", {sums, 1, 2});
}

}  // namespace

void register_affine_grid(OpTable& t) {
  t.add("aten.affine_grid_generator.default",
        {.decompose = decompose_affine_grid,
         .autograd = {.derivative = {{"theta", "affine_grid_generator_backward(grad, size, align_corners)"}}}});
  t.add("aten.affine_grid_generator_backward.default", {.decompose = decompose_affine_grid_backward});
}

}  // namespace partita
