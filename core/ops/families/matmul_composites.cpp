// Composites of matrix products. Their decompositions are those in PyTorch's traced graphs.
#include <algorithm>

#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

SymList without_last(const SymList& sizes) {
  return {sizes.begin(), sizes.end() - 1};
}

SymList broadcast(DecomposeCall& c, SymList a, SymList b) {
  if (a.size() < b.size()) std::swap(a, b);
  std::size_t lead = a.size() - b.size();
  for (std::size_t i = 0; i < b.size(); ++i) {
    SymExpr& size = a[lead + i];
    if (size == b[i] || b[i].is(1)) continue;
    if (size.is(1))
      size = b[i];
    else if (!checked(c, sym_eq(size, b[i]), "batch dimensions broadcast"))
      fail("Shape mismatch: objects cannot be broadcast to a single shape");
  }
  return a;
}

/// Whether matmul folds the batch of the larger operand into its rows (PyTorch's should_fold).
bool folds(const TensorMeta& left, const TensorMeta& right) {
  const TensorMeta& large = left.dim() >= right.dim() ? left : right;
  const TensorMeta& small = left.dim() >= right.dim() ? right : left;
  if (large.dim() < 3 || small.dim() > 2) return false;
  if (small.requires_grad) return true;
  if (left.dim() == 2) return false;
  if (large.numel().is(0)) return true;
  SymExpr expected = 1;
  for (std::size_t i = large.dim(); i-- > 0;) {
    if (!large.sizes[i].is(1) && large.strides[i] != expected) return false;
    expected = expected * large.sizes[i];
  }
  return true;
}

Node* transposed(Builder& b, Node* x) {
  return b.call("aten.transpose.int", {x, -2, -1});
}

Node* folded_product(Builder& b, Node* x, Node* y) {
  bool transpose = b.tensor(y).dim() > b.tensor(x).dim();
  Node* large = transpose ? transposed(b, y) : x;
  Node* small = !transpose ? y : b.tensor(x).dim() == 2 ? b.call("aten.t.default", {x}) : x;
  SymList sizes = b.tensor(large).sizes;
  SymList output = without_last(sizes);
  SymExpr rows = product(output);
  bool matrix = b.tensor(small).dim() == 2;
  if (matrix) output.push_back(b.tensor(small).sizes[1]);
  Node* folded = b.call("aten.reshape.default", {large, b.sizes({rows, sizes.back()})});
  Node* result = b.call(matrix ? "aten.mm.default" : "aten.mv.default", {folded, small});
  result = b.call("aten._unsafe_view.default", {result, b.sizes(output)});
  return transpose && matrix ? b.call("aten.contiguous.default", {transposed(b, result)}) : result;
}

Node* batched_product(DecomposeCall& c, Node* x, Node* y) {
  Builder& b = c.build;
  SymList left = b.tensor(x).sizes, right = b.tensor(y).sizes;
  bool vector_left = left.size() == 1, vector_right = right.size() == 1;
  SymExpr n = vector_left ? SymExpr(1) : left[left.size() - 2];
  SymExpr m1 = left.back();
  SymExpr m2 = vector_right ? right.back() : right[right.size() - 2];
  SymExpr p = vector_right ? SymExpr(1) : right.back();
  SymList batch_left = vector_left ? SymList{} : SymList(left.begin(), left.end() - 2);
  SymList batch_right = vector_right ? SymList{} : SymList(right.begin(), right.end() - 2);
  SymList batch = broadcast(c, batch_left, batch_right);
  SymExpr count = product(batch);
  auto with_batch = [&](SymList tail) {
    SymList sizes = batch;
    sizes.insert(sizes.end(), tail.begin(), tail.end());
    return b.sizes(sizes);
  };
  Node* a = b.call("aten.expand.default", {x, with_batch({n, m1})});
  a = b.call("aten.reshape.default", {a, b.sizes({count, n, m1})});
  Node* d = b.call("aten.expand.default", {y, with_batch(vector_right ? SymList{m2} : SymList{m2, p})});
  d = b.call("aten.reshape.default", {d, b.sizes(vector_right ? SymList{count, m2} : SymList{count, m2, p})});
  if (vector_right) d = b.call("aten.unsqueeze.default", {d, 2});
  Node* result = b.call("aten.bmm.default", {a, d});
  if (vector_right) result = b.call("aten.squeeze.dim", {result, -1});
  SymList output;
  if (!vector_left) output.push_back(n);
  if (!vector_right) output.push_back(p);
  return b.call("aten.view.default", {result, with_batch(output)});
}

Node* matmul(DecomposeCall& c, Node* x, Node* y) {
  Builder& b = c.build;
  const TensorMeta &left = b.tensor(x), &right = b.tensor(y);
  if (left.dim() == 0 || right.dim() == 0)
    fail("both arguments to matmul need to be at least 1D, but they are " + std::to_string(left.dim()) + "D and " +
         std::to_string(right.dim()) + "D");
  if (left.dim() == 1 && right.dim() == 1) return b.call("aten.dot.default", {x, y});
  if (left.dim() == 2 && right.dim() == 1) return b.call("aten.mv.default", {x, y});
  if (left.dim() == 1 && right.dim() == 2) {
    Node* row = b.call("aten.unsqueeze.default", {x, 0});
    return b.call("aten.squeeze.dim", {b.call("aten.mm.default", {row, y}), 0});
  }
  if (left.dim() == 2 && right.dim() == 2) return b.call("aten.mm.default", {x, y});
  if (folds(left, right)) return folded_product(b, x, y);
  if (left.dim() == 3 && right.dim() == 3 && left.sizes[0] != right.sizes[0]) {
    if (left.sizes[0].is(1) && left.requires_grad) return matmul(c, b.call("aten.squeeze.dim", {x, 0}), y);
    if (right.sizes[0].is(1) && right.requires_grad) return matmul(c, x, b.call("aten.squeeze.dim", {y, 0}));
  }
  return batched_product(c, x, y);
}

Arg decompose_matmul(DecomposeCall& c) {
  return matmul(c, tensor_node(c, "self"), tensor_node(c, "other"));
}

Arg decompose_linear(DecomposeCall& c) {
  Builder& b = c.build;
  Node *x = tensor_node(c, "input"), *weight = tensor_node(c, "weight");
  const TensorMeta& input = c.tensor("input");
  if (input.dim() == 0 || c.tensor("weight").dim() == 0)
    fail("both arguments to linear need to be at least 1D, but they are " + std::to_string(input.dim()) + "D and " +
         std::to_string(c.tensor("weight").dim()) + "D");
  if (!c.has("bias")) return matmul(c, x, b.call("aten.t.default", {weight}));
  Node* bias = tensor_node(c, "bias");
  if (input.dim() == 2) return b.call("aten.addmm.default", {bias, x, b.call("aten.t.default", {weight})});
  if (input.dim() >= 3 && is_row_major(input)) {
    SymList sizes = input.sizes;
    SymList output = without_last(sizes);
    Node* rows = b.call("aten.reshape.default", {x, b.sizes({product(output), sizes.back()})});
    Node* result = b.call("aten.addmm.default", {bias, rows, b.call("aten.t.default", {weight})});
    output.push_back(b.tensor(result).sizes[1]);
    return b.call("aten.view.default", {result, b.sizes(output)});
  }
  Node* result = matmul(c, x, b.call("aten.t.default", {weight}));
  return b.call("aten.add.Tensor", {result, bias});
}

Arg decompose_tensordot(DecomposeCall& c) {
  Builder& b = c.build;
  Node *x = tensor_node(c, "self"), *y = tensor_node(c, "other");
  TensorMeta left = c.tensor("self"), right = c.tensor("other");
  Sizes dims_left = c.integers("dims_self"), dims_right = c.integers("dims_other");
  if (dims_left.size() != dims_right.size()) fail("both dimension lists should have same length");
  auto wrap = [](Sizes& dims, std::size_t rank) {
    for (auto& d : dims) d = static_cast<std::int64_t>(wrap_dim(d, rank));
    if (rank == 0 && !dims.empty()) fail("tensordot: dims are given for a tensor that has no dimensions");
    Sizes sorted = dims;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) fail("tensordot: a dim appears multiple times in the dims");
  };
  wrap(dims_left, left.dim());
  wrap(dims_right, right.dim());
  auto has = [](const Sizes& list, std::size_t d) {
    return std::find(list.begin(), list.end(), static_cast<std::int64_t>(d)) != list.end();
  };
  SymExpr contracted = 1;
  for (std::size_t i = 0; i < dims_left.size(); ++i) {
    const auto l = static_cast<std::size_t>(dims_left[i]), r = static_cast<std::size_t>(dims_right[i]);
    // A dimension that is broadcast is summed before the product.
    auto summed = [&](Node* t, std::int64_t d) {
      return b.call("aten.sum.dim_IntList", {t, Arg::list({d}), true}, {{"dtype", b.tensor(t).dtype}});
    };
    if (right.sizes[r].is(1)) {
      x = summed(x, dims_left[i]);
      left = b.tensor(x);
    } else if (left.sizes[l].is(1)) {
      y = summed(y, dims_right[i]);
      right = b.tensor(y);
    } else if (!checked(c, sym_eq(left.sizes[l], right.sizes[r]), "tensordot")) {
      fail("contracted dimensions need to match, but first has size " + left.sizes[l].str() + " in dim " +
           std::to_string(l) + " and second has size " + right.sizes[r].str() + " in dim " + std::to_string(r));
    }
    contracted = contracted * left.sizes[l];
  }
  std::vector<Arg> order_left, order_right;
  SymList rows, columns;
  for (std::size_t d = 0; d < left.dim(); ++d)
    if (!has(dims_left, d)) {
      order_left.emplace_back(static_cast<std::int64_t>(d));
      rows.push_back(left.sizes[d]);
    }
  for (auto d : dims_left) order_left.emplace_back(d);
  for (auto d : dims_right) order_right.emplace_back(d);
  for (std::size_t d = 0; d < right.dim(); ++d)
    if (!has(dims_right, d)) {
      order_right.emplace_back(static_cast<std::int64_t>(d));
      columns.push_back(right.sizes[d]);
    }
  Node* a = b.call("aten.permute.default", {x, Arg::list(order_left)});
  a = b.call("aten.reshape.default", {a, b.sizes({product(rows), contracted})});
  Node* d = b.call("aten.permute.default", {y, Arg::list(order_right)});
  d = b.call("aten.reshape.default", {d, b.sizes({contracted, product(columns)})});
  SymList output = rows;
  output.insert(output.end(), columns.begin(), columns.end());
  return b.call("aten.reshape.default", {b.call("aten.mm.default", {a, d}), b.sizes(output)});
}

}  // namespace

void register_matmul_composites(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add("aten.matmul.default", {.decompose = decompose_matmul});
  t.add("aten.linear.default", {.decompose = decompose_linear, .role = Role::Linear});
  for (const char* name : {"aten.outer.default", "aten.ger.default"})
    t.add(name, {.program = "aten.mul.Tensor(aten.reshape.default(self, [size(self, 0), 1]), vec2) "
                            "if dim(self) == 1 and dim(vec2) == 1 else "
                            "refuse('outer: Expected 1-D arguments self and vec2')"});
  t.add("aten.inner.default", {.program = "aten.mul.Tensor(self, other) if dim(self) == 0 or dim(other) == 0 else "
                                          "tensordot(self, other, [dim(self) - 1], [dim(other) - 1])"});
  t.add("aten.tensordot.default", {.decompose = decompose_tensordot});
}

}  // namespace partita
