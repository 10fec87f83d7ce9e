// im2col and col2im: the sliding blocks of an image as columns of a matrix, and the sum of such columns into an image.
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

/// A kernel that slides (d = 0: along rows, 1: columns) over an image. A block is one place of it.
struct Blocks {
  Sizes kernel, dilation, padding, stride;

  explicit Blocks(const auto& c) {
    auto pair = [&](const char* name, std::int64_t least) {
      Sizes values = c.integers(name);
      if (values.size() == 1) values.resize(2, values[0]);
      if (values.size() != 2) fail(c.schema.base.substr(6) + ": only 2D " + name + " supported");
      for (std::int64_t v : values)
        if (v < least) fail(std::string(name) + " should be greater than zero, but got " + std::to_string(v));
      return values;
    };
    kernel = pair("kernel_size", 1), dilation = pair("dilation", 1), padding = pair("padding", 0);
    stride = pair("stride", 1);
  }

  /// The places of the padded image where a block of stride 1 could begin.
  SymExpr starts(std::size_t d, SymExpr size) const {
    return size + (2 * SymExpr(padding[d]) - SymExpr(dilation[d]) * (kernel[d] - 1));
  }
  SymExpr count(std::size_t d, SymExpr size) const {
    return sym_floordiv(starts(d, size) + (stride[d] - 1), stride[d]);
  }
};

void check_count(const FakeCall& c, const Blocks& blocks, SymExpr height, SymExpr width) {
  for (std::size_t d = 0; d < 2; ++d)
    if (!checked(c, sym_lt(0, blocks.count(d, d == 0 ? height : width)), "sliding blocks"))
      fail("Given an image with spatial size (" + height.str() + ", " + width.str() +
           "), the calculated shape of the array of sliding blocks must be at least one in each dimension");
}

Meta fake_im2col(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  Blocks blocks(c);
  if (self.dim() != 3 && self.dim() != 4)
    fail("Expected 3D or 4D (batch mode) tensor for input with possibly 0 batch size, but got " +
         std::to_string(self.dim()) + "D");
  SymExpr height = self.sizes[self.dim() - 2], width = self.sizes.back();
  check_count(c, blocks, height, width);
  SymList sizes(self.sizes.begin(), self.sizes.end() - 3);
  sizes.push_back(self.sizes[self.dim() - 3] * blocks.kernel[0] * blocks.kernel[1]);
  sizes.push_back(blocks.count(0, height) * blocks.count(1, width));
  return new_like(self, sizes);
}

Meta fake_col2im(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  Blocks blocks(c);
  SymList output = c.syms("output_size");
  if (output.size() != 2) fail("col2im: only 2D output_size supported");
  if (self.dim() != 2 && self.dim() != 3)
    fail("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size, but got " +
         std::to_string(self.dim()) + "D");
  check_count(c, blocks, output[0], output[1]);
  SymExpr kernel = SymExpr(blocks.kernel[0]) * blocks.kernel[1], rows = self.sizes[self.dim() - 2];
  if (!checked(c, sym_eq(sym_mod(rows, kernel), 0), "col2im rows"))
    fail("Expected size of input's first non-batch dimension to be divisible by the product of kernel_size, but got " +
         rows.str());
  SymExpr count = blocks.count(0, output[0]) * blocks.count(1, output[1]);
  if (!checked(c, sym_eq(self.sizes.back(), count), "col2im blocks"))
    fail("expected input.size(-1) to be " + count.str() + " but got " + self.sizes.back().str());
  SymList sizes(self.sizes.begin(), self.sizes.end() - 2);
  sizes.push_back(sym_floordiv(rows, kernel));
  sizes.insert(sizes.end(), output.begin(), output.end());
  return new_like(self, sizes);
}

/// Rows (d = 0) or columns (d = 1) of the padded image that each kernel position reads: [kernel, blocks].
Node* block_indices(DecomposeCall& c, const Blocks& blocks, std::size_t d, SymExpr size) {
  Builder& b = c.build;
  auto range = [&](const Arg& end, std::int64_t step, std::int64_t new_dim) {
    Node* x = b.call("aten.arange.start_step", {0, end, step},
                     {{"dtype", DType::Int64}, {"device", c.tensor("self").device}, {"pin_memory", false}});
    return b.call("aten.unsqueeze.default", {x, new_dim});
  };
  Node* starts = range(b.size(blocks.starts(d, size)), blocks.stride[d], 0);
  Node* within = range(b.size(SymExpr(blocks.kernel[d]) * blocks.dilation[d]), blocks.dilation[d], -1);
  return b.call("aten.add.Tensor", {starts, within});
}

/// Index tensors for an image's last two dimensions: rows as [kernel rows, block rows, 1, 1], columns as [kernel
/// columns, block columns].
Arg image_indices(DecomposeCall& c, const Blocks& blocks, SymExpr height, SymExpr width) {
  Node* rows = block_indices(c, blocks, 0, height);
  for (int i = 0; i < 2; ++i) rows = c.build.call("aten.unsqueeze.default", {rows, -1});
  return Arg::list({Arg(), Arg(), rows, block_indices(c, blocks, 1, width)});
}

Arg padded(const Blocks& blocks, std::int64_t sign) {
  std::int64_t h = sign * blocks.padding[0], w = sign * blocks.padding[1];
  return Arg::list({w, w, h, h});
}

Arg decompose_im2col(DecomposeCall& c) {
  Builder& b = c.build;
  Blocks blocks(c);
  bool batched = c.tensor("self").dim() == 4;
  Node* x = tensor_node(c, "self");
  if (!batched) x = b.call("aten.unsqueeze.default", {x, 0});
  SymList in = b.tensor(x).sizes;
  Arg indices = image_indices(c, blocks, in[2], in[3]);
  x = b.call("aten.constant_pad_nd.default", {x, padded(blocks, 1)});
  Node* columns = b.call("aten.index.Tensor", {x, indices});
  columns = b.call("aten.permute.default", {columns, Arg::list({0, 1, 2, 4, 3, 5})});
  SymList sizes = {in[0], in[1] * blocks.kernel[0] * blocks.kernel[1], blocks.count(0, in[2]) * blocks.count(1, in[3])};
  columns = b.call("aten.reshape.default", {columns, b.sizes(sizes)});
  return batched ? columns : b.call("aten.squeeze.dim", {columns, 0});
}

Arg decompose_col2im(DecomposeCall& c) {
  Builder& b = c.build;
  Blocks blocks(c);
  const TensorMeta& self = c.tensor("self");
  bool batched = self.dim() == 3;
  Node* x = to_dtype(b, c.arg("self"), opmath_dtype(self.dtype));
  if (!batched) x = b.call("aten.unsqueeze.default", {x, 0});
  SymList in = b.tensor(x).sizes, output = c.syms("output_size");
  SymExpr channels = sym_floordiv(in[1], SymExpr(blocks.kernel[0]) * blocks.kernel[1]);
  x = b.call("aten.reshape.default", {x, b.sizes({in[0], channels, blocks.kernel[0], blocks.kernel[1],
                                                  blocks.count(0, output[0]), blocks.count(1, output[1])})});
  x = b.call("aten.permute.default", {x, Arg::list({0, 1, 2, 4, 3, 5})});
  Arg indices = image_indices(c, blocks, output[0], output[1]);
  Node* image =
      b.call("aten.new_zeros.default", {x, b.sizes({in[0], channels, output[0] + 2 * SymExpr(blocks.padding[0]),
                                                    output[1] + 2 * SymExpr(blocks.padding[1])})});
  image = b.call("aten._unsafe_index_put.default", {image, indices, x, true});
  image = b.call("aten.constant_pad_nd.default", {image, padded(blocks, -1)});
  if (!batched) image = b.call("aten.squeeze.dim", {image, 0});
  return to_dtype(b, image, self.dtype);
}

}  // namespace

void register_fold(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.im2col.default",
        {.fake = fake_im2col,
         .decompose = decompose_im2col,
         .autograd = {
             .derivative = {{"self", "col2im(grad, last_sizes(self, 2), kernel_size, dilation, padding, stride)"}}}});
  t.add("aten.col2im.default",
        {.fake = fake_col2im,
         .decompose = decompose_col2im,
         .autograd = {.derivative = {{"self", "im2col(grad, kernel_size, dilation, padding, stride)"}}}});
}

}  // namespace partita
