// multi_dot: a chain of matrix products in the order that takes the fewest multiplications.
#include <limits>

#include "core/ops/families/composites.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// The cheapest order of a chain of products, from the matrices' sizes (Cormen et al., section 15.2). split[i][j] is
/// the last matrix of the left factor in the product of matrices i to j. Of equally cheap splits the first is taken; of
/// three matrices the second, as PyTorch does.
std::vector<std::vector<std::size_t>> chain_order(const Sizes& sizes) {
  std::size_t n = sizes.size() - 1;
  std::vector<std::vector<std::int64_t>> cost(n, std::vector<std::int64_t>(n, 0));
  std::vector<std::vector<std::size_t>> split(n, std::vector<std::size_t>(n, 0));
  for (std::size_t length = 1; length < n; ++length)
    for (std::size_t i = 0; i + length < n; ++i) {
      std::size_t j = i + length;
      cost[i][j] = std::numeric_limits<std::int64_t>::max();
      for (std::size_t k = i; k < j; ++k) {
        std::int64_t q = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (n == 3 && length == 2 ? q > cost[i][j] : q >= cost[i][j]) continue;
        cost[i][j] = q;
        split[i][j] = k;
      }
    }
  return split;
}

Node* chain_product(Builder& b, const std::vector<Node*>& matrices, const std::vector<std::vector<std::size_t>>& split,
                    std::size_t i, std::size_t j) {
  if (i == j) return matrices[i];
  Node* right = chain_product(b, matrices, split, split[i][j] + 1, j);
  Node* left = chain_product(b, matrices, split, i, split[i][j]);
  return b.call("aten.mm.default", {left, right});
}

Node* multi_dot(Builder& b, std::vector<Node*> matrices) {
  if (matrices.size() < 2) fail("multi_dot(): expected at least 2 tensors but got " + std::to_string(matrices.size()));
  for (std::size_t i : {std::size_t{0}, matrices.size() - 1})
    if (const std::size_t rank = b.tensor(matrices[i]).dim(); rank < 1 || rank > 2)
      fail("multi_dot(): the first and the last tensor must be 1D or 2D but got " + std::to_string(rank) + "D");
  SymList out;
  if (b.tensor(matrices[0]).dim() == 1)
    matrices[0] = b.call("aten.unsqueeze.default", {matrices[0], 0});
  else
    out.push_back(b.tensor(matrices[0]).sizes.at(0));
  if (b.tensor(matrices.back()).dim() == 1)
    matrices.back() = b.call("aten.unsqueeze.default", {matrices.back(), -1});
  else
    out.push_back(b.tensor(matrices.back()).sizes.at(1));
  Sizes sizes;
  for (Node* m : matrices) {
    const TensorMeta& t = b.tensor(m);
    if (t.dim() != 2) fail("multi_dot(): tensors between the first and the last must be 2D");
    for (std::size_t d = sizes.empty() ? 0 : 1; d < 2; ++d) {
      auto known = b.graph.shapes->hint(t.sizes[d]);
      if (!known) fail_unsupported("multi_dot of matrices with symbolic sizes");
      sizes.push_back(*known);
    }
  }
  Node* product = chain_product(b, matrices, chain_order(sizes), 0, matrices.size() - 1);
  return b.call("aten.view.default", {product, b.sizes(out)});
}

Arg linalg_multi_dot(DecomposeCall& c) {
  return multi_dot(c.build, tensor_list(c, "tensors"));
}

Arg chain_matmul(DecomposeCall& c) {
  std::vector<Node*> matrices = tensor_list(c, "matrices");
  if (matrices.size() == 1) return c.build.call("aten.clone.default", {matrices[0]});
  return multi_dot(c.build, std::move(matrices));
}

}  // namespace

void register_matrix_chain(OpTable& t) {
  t.add("aten.linalg_matmul.default", {.program = "matmul(self, other)"});
  t.add("aten.linalg_multi_dot.default", {.decompose = linalg_multi_dot});
  t.add("aten.chain_matmul.default", {.decompose = chain_matmul});
}

}  // namespace partita
