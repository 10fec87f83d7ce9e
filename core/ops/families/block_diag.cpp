// block_diag: places matrices along the diagonal of a larger matrix of zeros.
#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

struct Block {
  Node* matrix;
  SymExpr row, column, end_row, end_column;
};

/// The place of each tensor in the result. A vector counts as one row, a scalar as a 1 x 1 matrix.
std::vector<Block> blocks_of(Builder& b, const std::vector<Node*>& tensors) {
  std::vector<Block> out;
  SymExpr row = 0, column = 0;
  for (Node* t : tensors) {
    const SymList& sizes = b.tensor(t).sizes;
    if (sizes.size() > 2)
      fail(fmt::format("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input has {} dimensions",
                       sizes.size()));
    SymExpr height = sizes.size() == 2 ? sizes[0] : SymExpr(1), width = sizes.empty() ? SymExpr(1) : sizes.back();
    out.push_back({t, row, column, row + height, column + width});
    row = row + height;
    column = column + width;
  }
  return out;
}

Node* place(Builder& b, Node* whole, const Block& block) {
  Node* rows = slice(b, whole, 0, b.size(block.row), b.size(block.end_row));
  return slice(b, rows, 1, b.size(block.column), b.size(block.end_column));
}

/// Pads each block with zeros to the full width and stacks the blocks.
Arg block_diag(DecomposeCall& c) {
  Builder& b = c.build;
  std::vector<Node*> tensors = tensor_list(c, "tensors"), rows;
  if (tensors.empty()) return b.call("aten.empty.memory_format", {Arg::list({1, 0})});
  std::vector<Block> blocks = blocks_of(b, tensors);
  for (const Block& block : blocks) {
    Node* matrix = block.matrix;
    SymExpr height = block.end_row - block.row, width = block.end_column - block.column;
    if (b.tensor(matrix).dim() < 2) matrix = b.call("aten.view.default", {matrix, b.sizes({height, width})});
    Arg padding = b.sizes({block.column, blocks.back().end_column - block.end_column});
    rows.push_back(b.call("aten.constant_pad_nd.default", {matrix, padding}));
  }
  return concatenate(b, rows);
}

std::vector<Node*> block_diag_gradient(GradCall& c) {
  Builder& b = c.build;
  std::vector<Node*> tensors = tensor_list(c, "tensors"), grads;
  for (const Block& block : blocks_of(b, tensors)) {
    const TensorMeta& t = b.tensor(block.matrix);
    Node* grad = place(b, c.grads[0], block);
    for (std::size_t d = t.dim(); d < 2; ++d) grad = b.call("aten.squeeze.dim", {grad, 0});
    if (is_complex(b.tensor(grad).dtype) && !is_complex(t.dtype)) grad = b.call("aten.real.default", {grad});
    grads.push_back(grad);
  }
  return gradients_of_items(c, "tensors", std::move(grads));
}

}  // namespace

void register_block_diag(OpTable& t) {
  t.add("aten.block_diag.default", {.decompose = block_diag, .autograd = {.gradient = block_diag_gradient}});
}

}  // namespace partita
