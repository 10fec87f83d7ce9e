// Linear algebra decomposed to other operators (CompositeImplicitAutograd; native/LinearAlgebra.cpp,
// BatchLinearAlgebra.cpp).
#include <algorithm>

#include "core/ops/families/linalg.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// A to the power n by repeated squaring. A negative n inverts A first.
Arg matrix_power(DecomposeCall& c) {
  Builder& b = c.build;
  Node* x = tensor_node(c, "self");
  const TensorMeta& self = c.tensor("self");
  check_square(c, self, "linalg.matrix_power");
  std::int64_t n = c.integer("n");
  auto times = [&](Node* l, Node* r) { return b.call("aten.matmul.default", {l, r}); };
  if (n == 0) {
    // A copy of A is overwritten, so that A has a gradient, of zeros.
    Node* copy = b.call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
    Node* identity = b.call("aten.eye.default", {b.size(rows_of(self))}, {{"dtype", self.dtype}});
    return b.call("aten.copy.default", {copy, identity});
  }
  if (n < 0) {
    x = b.call("aten.linalg_inv.default", {x});
    n = (-SymExpr(n)).as_int();  // fails for the smallest integer
  }
  if (n == 1) return b.call("aten.clone.default", {x});
  if (n == 3) return times(times(x, x), x);
  Node *square = nullptr, *result = nullptr;
  for (; n > 0; n /= 2) {
    square = square ? times(square, square) : x;
    if (n % 2 == 1) result = result ? times(result, square) : square;
  }
  return result;
}

/// The powers 0 to N - 1 of each element, along a new last dimension.
Arg vander(DecomposeCall& c) {
  Builder& b = c.build;
  Node* x = tensor_node(c, "x");
  if (b.tensor(x).dtype == DType::Bool) fail("linalg.vander does not support boolean tensors");
  if (b.tensor(x).dim() == 0) x = b.call("aten.unsqueeze.default", {x, -1});
  SymList sizes = b.tensor(x).sizes;
  const SymExpr n = c.has("N") ? c.sym("N") : sizes.back();
  if (!checked(c, sym_lt(1, n), "linalg.vander")) fail("N must be greater than 1.");
  sizes.push_back(n - 1);
  x = b.call("aten.expand.default", {b.call("aten.unsqueeze.default", {x, -1}), b.sizes(sizes)});
  x = b.call("aten.cumprod.default", {x, -1});
  sizes.back() = 1;
  Node* ones = b.call("aten.new_ones.default", {x, b.sizes(sizes)});
  return b.call("aten.cat.default", {Arg::list({ones, x}), -1});
}

Arg kron(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta &self = c.tensor("self"), &other = c.tensor("other");
  const std::size_t rank = std::max(self.dim(), other.dim());
  SymList left(2 * rank, 1), right(2 * rank, 1), sizes(rank, 1);
  for (std::size_t d = 0; d < self.dim(); ++d) left[2 * (rank - self.dim() + d)] = self.sizes[d];
  for (std::size_t d = 0; d < other.dim(); ++d) right[2 * (rank - other.dim() + d) + 1] = other.sizes[d];
  for (std::size_t d = 0; d < rank; ++d) sizes[d] = left[2 * d] * right[2 * d + 1];
  auto view = [&](const Arg& x, const SymList& to) { return b.call("aten._unsafe_view.default", {x, b.sizes(to)}); };
  Node* dense_left = b.call("aten.contiguous.default", {c.arg("self")});
  Node* dense_right = b.call("aten.contiguous.default", {c.arg("other")});
  Node* product = b.call("aten.mul.Tensor", {view(dense_left, left), view(dense_right, right)});
  return view(product, sizes);
}

Arg tensorinv(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  const std::int64_t ind = c.integer("ind");
  if (ind <= 0) fail("Expected a strictly positive integer for 'ind'");
  const auto split = self.sizes.begin() + std::min(ind, static_cast<std::int64_t>(self.dim()));
  SymList rows(self.sizes.begin(), split), columns(split, self.sizes.end()), swapped = columns;
  swapped.insert(swapped.end(), rows.begin(), rows.end());
  if (!checked(c, sym_eq(product(rows), product(columns)), "linalg.tensorinv"))
    fail("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got " +
         product(columns).str() + " != " + product(rows).str());
  Node* matrix = b.call("aten.reshape.default", {c.arg("self"), b.sizes({product(columns), product(rows)})});
  return b.call("aten.reshape.default", {b.call("aten.linalg_inv.default", {matrix}), b.sizes(swapped)});
}

Arg tensorsolve(DecomposeCall& c) {
  Builder& b = c.build;
  Node* x = tensor_node(c, "self");
  const std::size_t rank = b.tensor(x).dim();
  if (c.has("dims")) {
    std::vector<std::int64_t> order;
    std::vector<std::size_t> moved;
    for (std::int64_t d : c.integers("dims")) moved.push_back(wrap_dim(d, rank));
    for (std::size_t d = 0; d < rank; ++d)
      if (std::ranges::find(moved, d) == moved.end()) order.push_back(static_cast<std::int64_t>(d));
    for (std::size_t d : moved) order.push_back(static_cast<std::int64_t>(d));
    x = b.call("aten.permute.default", {x, Arg::list(std::vector<Arg>(order.begin(), order.end()))});
  }
  const SymList sizes = b.tensor(x).sizes;
  const std::size_t kept = std::min(c.tensor("other").dim(), rank);
  const SymList solution(sizes.begin() + static_cast<std::ptrdiff_t>(kept), sizes.end());
  const SymExpr columns = product(solution), rows = product(std::span(sizes).first(kept));
  if (!checked(c, sym_eq(columns, rows), "linalg.tensorsolve"))
    fail(
        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
        "but got " +
        columns.str() + " != " + rows.str());
  x = b.call("aten.reshape.default", {x, b.sizes({columns, columns})});
  Node* right = b.call("aten.reshape.default", {c.arg("other"), Arg::list({-1})});
  return b.call("aten.reshape.default", {b.call("aten.linalg_solve.default", {x, right}), b.sizes(solution)});
}

/// Without a dim argument, cross takes the first dimension of size 3.
Arg cross(DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  Arg dim = c.arg("dim");
  if (dim.is_none()) {
    const auto it = std::ranges::find_if(self.sizes, [](SymExpr s) { return s.is(3); });
    if (it == self.sizes.end()) fail("no dimension of size 3 in input");
    dim = static_cast<std::int64_t>(it - self.sizes.begin());
  }
  return c.build.call("aten.linalg_cross.default", {c.arg("self"), c.arg("other")}, {{"dim", dim}});
}

}  // namespace

void register_linalg_composites(OpTable& t) {
  t.add("aten.linalg_matrix_power.default", {.decompose = matrix_power});
  t.add("aten.matrix_power.default", {.decompose = matrix_power});
  t.add("aten.linalg_vander.default", {.decompose = vander});
  t.add("aten.kron.default", {.decompose = kron});
  t.add("aten.linalg_tensorinv.default", {.decompose = tensorinv});
  t.add("aten.linalg_tensorsolve.default", {.decompose = tensorsolve});
  t.add("aten.cross.default", {.decompose = cross});
  // Results with LAPACK's error codes, which a second call checks.
  const CompositeRow programs[] = {
      {"aten.linalg_inv.default",
       "t = aten.linalg_inv_ex.default(A); r0 = t[0]; "
       "_linalg_check_errors(t[1], 'linalg.inv', is_matrix=dim(A) == 2); r0"},
      {"aten.inverse.default",
       "t = aten.linalg_inv_ex.default(self); r0 = t[0]; "
       "_linalg_check_errors(t[1], 'linalg.inv', is_matrix=dim(self) == 2); r0"},
      {"aten.linalg_cholesky.default",
       "t = aten.linalg_cholesky_ex.default(self, upper=upper); r0 = t[0]; "
       "_linalg_check_errors(t[1], 'linalg.cholesky', is_matrix=dim(self) == 2); r0"},
      {"aten.linalg_lu_factor.default",
       "t = aten.linalg_lu_factor_ex.default(A, pivot=pivot); r0 = t[0]; r1 = t[1]; "
       "_linalg_check_errors(t[2], 'torch.linalg.lu_factor', is_matrix=dim(A) == 2); (r0, r1)"},
      {"aten.linalg_ldl_factor.default",
       "t = aten.linalg_ldl_factor_ex.default(self, hermitian=hermitian); r0 = t[0]; r1 = t[1]; "
       "_linalg_check_errors(t[2], 'torch.linalg.ldl_factor', is_matrix=dim(self) == 2); (r0, r1)"},
      {"aten.linalg_solve.default",
       "t = _linalg_solve_ex(A, B, left=left); r0 = t[0]; "
       "_linalg_check_errors(t[3], 'torch.linalg.solve', is_matrix=dim(A) == 2); r0"},
      {"aten._lu_with_info.default",
       "t = linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors); "
       "(t[0], t[1], t[2])"},
      {"aten.lu_solve.default", "linalg_lu_solve(LU_data, LU_pivots, self)"},
      {"aten.linalg_solve_ex.default",
       "t = _linalg_solve_ex(A, B, left=left, check_errors=check_errors); "
       "(t[0], t[3])"},
      {"aten.linalg_det.default", "_linalg_det(A)[0]"},
      {"aten.det.default", "_linalg_det(self)[0]"},
      {"aten.linalg_slogdet.default", "t = _linalg_slogdet(A); (t[0], t[1])"},
      {"aten.slogdet.default", "t = _linalg_slogdet(self); (t[0], t[1])"},
      {"aten.logdet.default",
       "t = _linalg_slogdet(self); sign = t[0]; size = t[1]; "
       "log(sign) + size if is_complex(self) else aten.where.ScalarSelf(aten.eq.Scalar(sign, -1.0), nan, size)"},
      {"aten.linalg_vecdot.default", "vdot(x, y) if dim(x) == 1 and dim(y) == 1 else sum(conj(x) * y, [dim])"},
      {"aten.linalg_diagonal.default", "diagonal(A, offset, dim1, dim2)"},
      {"aten.pdist.default", "_pdist_forward(aten.contiguous.default(self), p)"},
      {"aten.cdist.default", "_cdist_forward(x1, x2, p, compute_mode)"},
  };
  add_composites(t, programs);
}

}  // namespace partita
