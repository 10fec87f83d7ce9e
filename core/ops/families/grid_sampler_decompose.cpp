// grid_sampler_2d as PyTorch's compiler decomposes it: computes positions and weights, and reads the image with
// aten.index.

#include "core/ops/families/grid_sampler.h"
#include "core/ops/families/upsample.h"
#include "core/ops/record/gradients.h"

namespace partita {

namespace {

using Names = std::vector<std::pair<std::string, Arg>>;

class GridReads {
 public:
  explicit GridReads(DecomposeCall& c)
      : b_(c.build),
        padding_(grid_padding(c)),
        align_(c.boolean("align_corners")),
        image_(to_dtype(b_, c.arg("input"), opmath_dtype(c.tensor("input").dtype))),
        grid_(to_dtype(b_, c.arg("grid"), opmath_dtype(c.tensor("grid").dtype))) {
    const TensorMeta& image = b_.tensor(image_);
    entry_ = positions(image.sizes[0], {image.sizes[0], 1, 1, 1});
    channel_ = positions(image.sizes[1], {1, image.sizes[1], 1, 1});
  }

  SymExpr size(std::size_t axis) const { return b_.tensor(image_).sizes[3 - axis]; }  ///< axis 0 is x
  /// Component `axis` of the grid as positions in the image, before padding; [N, 1, H, W].
  Node* unnormalized(std::size_t axis) {
    Node* x = b_.call("aten.select.int", {grid_, -1, static_cast<std::int64_t>(axis)});
    x = b_.call("aten.unsqueeze.default", {x, 1});
    Arg size = b_.size(this->size(axis));
    return made("x * m + o", {{"x", x},
                              {"m", align_ ? b_.expression("s * 0.5 - 0.5", {{"s", size}})
                                           : b_.expression("s * 0.5", {{"s", size}})},
                              {"o", b_.expression("s * 0.5 - 0.5", {{"s", size}})}});
  }
  /// Applies the padding mode to positions.
  Node* padded(Node* x, std::size_t axis) {
    if (padding_ == GridPadding::Zeros) return x;
    Arg last = b_.size(size(axis) - 1);
    if (padding_ == GridPadding::Reflection) {
      if (align_ && size(axis).is(1)) return made("zeros_like(x)", {{"x", x}});
      Arg span = b_.size(align_ ? size(axis) - 1 : size(axis));
      double low = align_ ? 0.0 : -0.5;
      Node* from = made("abs(x - low)", {{"x", x}, {"low", low}});
      Node* extra = made("fmod(x, s)", {{"x", from}, {"s", span}});
      Node* flips = b_.call("aten._to_copy.default", {made("floor(x / s)", {{"x", from}, {"s", span}})},
                            {{"dtype", DType::Int8}});
      Node* there = made("x + low", {{"x", extra}, {"low", low}});
      Node* back = made("rsub(x, t)", {{"x", extra}, {"t", b_.expression("s + low", {{"s", span}, {"low", low}})}});
      x = b_.call("aten.where.self", {made("eq(bitwise_and(f, 1), 0)", {{"f", flips}}), there, back});
    }
    return b_.call("aten.clamp.default", {x, 0, last});
  }
  /// The image at whole positions times `weight` (null: 1); 0 at positions outside of the image.
  Node* read(Node* x, Node* y, Node* weight) {
    Node* within = made("logical_and(ge(x, 0), logical_and(lt(x, w), logical_and(ge(y, 0), lt(y, h))))",
                        {{"x", x}, {"y", y}, {"w", b_.size(size(0))}, {"h", b_.size(size(1))}});
    auto index = [&](Node* at) {
      Node* whole = b_.call("aten._to_copy.default", {at}, {{"dtype", DType::Int64}});
      return made("where(c, x, 0)", {{"c", within}, {"x", whole}});
    };
    Node *column = index(x), *row = index(y);
    Node* scale = weight ? made("where(c, w, 0.0)", {{"c", within}, {"w", weight}})
                         : b_.call("aten._to_copy.default", {within}, {{"dtype", b_.tensor(image_).dtype}});
    Node* values = b_.call("aten.index.Tensor", {image_, Arg::list({entry_, channel_, row, column})});
    return b_.call("aten.mul.Tensor", {values, scale});
  }

  Node* made(std::string_view formula, const Names& names) { return b_.expression(formula, names).node(); }

 private:
  Node* positions(SymExpr size, const SymList& shape) {
    Node* x =
        b_.call("aten.arange.default", {b_.size(size)}, {{"device", b_.tensor(image_).device}, {"pin_memory", false}});
    return b_.call("aten.view.default", {x, b_.sizes(shape)});
  }

  Builder& b_;
  GridPadding padding_;
  bool align_;
  Arg image_, grid_;
  Node *entry_, *channel_;
};

Node* sum(Builder& b, const std::vector<Node*>& terms) {
  Node* total = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) total = b.call("aten.add.Tensor", {total, terms[i]});
  return total;
}

Node* bilinear(Builder& b, GridReads& g, Node* x, Node* y) {
  Node *left = g.made("floor(x)", {{"x", x}}), *top = g.made("floor(x)", {{"x", y}});
  Node *right = g.made("x + 1", {{"x", left}}), *bottom = g.made("x + 1", {{"x", top}});
  auto corner = [&](Node* column, Node* row, const char* weight) {
    Node* w = g.made(weight, {{"x", x}, {"y", y}, {"l", left}, {"r", right}, {"t", top}, {"b", bottom}});
    return g.read(column, row, w);
  };
  std::vector<Node*> terms = {corner(left, top, "(r - x) * (b - y)"), corner(right, top, "(x - l) * (b - y)"),
                              corner(left, bottom, "(r - x) * (y - t)"), corner(right, bottom, "(x - l) * (y - t)")};
  return sum(b, terms);
}

Node* bicubic(Builder& b, GridReads& g) {
  Node *x = g.unnormalized(0), *y = g.unnormalized(1);
  Node *left = g.made("floor(x)", {{"x", x}}), *top = g.made("floor(x)", {{"x", y}});
  auto across = cubic_coefficients(b, g.made("x - l", {{"x", x}, {"l", left}}));
  auto down = cubic_coefficients(b, g.made("x - l", {{"x", y}, {"l", top}}));
  auto moved = [&](Node* from, std::size_t k, std::size_t axis) {
    Node* at = k == 1 ? from : b.call("aten.add.Tensor", {from, static_cast<std::int64_t>(k) - 1});
    return g.padded(at, axis);
  };
  auto weighted = [&](Node* value, Node* weight) { return b.call("aten.mul.Tensor", {value, weight}); };
  std::vector<Node*> rows;
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<Node*> terms;
    Node* row = moved(top, i, 1);
    for (std::size_t k = 0; k < 4; ++k) terms.push_back(weighted(g.read(moved(left, k, 0), row, nullptr), across[k]));
    rows.push_back(weighted(sum(b, terms), down[i]));
  }
  return sum(b, rows);
}

}  // namespace

Arg decompose_grid_sampler_2d(DecomposeCall& c) {
  Builder& b = c.build;
  GridReads g(c);
  Node* result;
  if (grid_mode(c) == GridMode::Bicubic) {
    result = bicubic(b, g);
  } else {
    Node *x = g.padded(g.unnormalized(0), 0), *y = g.padded(g.unnormalized(1), 1);
    if (grid_mode(c) == GridMode::Nearest)
      result = g.read(b.call("aten.round.default", {x}), b.call("aten.round.default", {y}), nullptr);
    else
      result = bilinear(b, g, x, y);
  }
  return to_dtype(b, result, c.tensor("input").dtype);
}

}  // namespace partita
