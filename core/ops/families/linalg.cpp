#include "core/ops/families/linalg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ops/kernels/broadcast.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

TensorMeta column_major(const TensorMeta& like, SymList sizes) {
  std::size_t n = sizes.size();
  SymList swapped = sizes;
  if (n >= 2) std::swap(swapped[n - 1], swapped[n - 2]);
  TensorMeta out = new_like(like, std::move(sizes));
  out.strides = strides_for(MemoryFormat::Contiguous, swapped);
  if (n >= 2) std::swap(out.strides[n - 1], out.strides[n - 2]);
  return out;
}

SymList leading(const SymList& sizes, std::size_t count) {
  if (sizes.size() < count) fail("The input tensor must have at least " + std::to_string(count) + " dimensions");
  return {sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(count)};
}

SymList with_batch(SymList batch, std::initializer_list<SymExpr> sizes) {
  batch.insert(batch.end(), sizes);
  return batch;
}

TensorMeta int32_like(const TensorMeta& like, SymList sizes) {
  TensorMeta out = new_like(like, std::move(sizes));
  out.dtype = DType::Int32;
  return out;
}

SymExpr rows_of(const TensorMeta& t) {
  if (t.dim() < 2) fail("The input tensor must have at least 2 dimensions");
  return t.sizes[t.dim() - 2];
}
SymExpr columns_of(const TensorMeta& t) {
  if (t.dim() < 1) fail("The input tensor must have at least 1 dimension");
  return t.sizes[t.dim() - 1];
}
SymExpr smaller(SymExpr a, SymExpr b) {
  return sym_min(a, b);
}

void check_matrix(const TensorMeta& t, const char* what) {
  if (t.dim() < 2)
    fail(std::string(what) + ": The input tensor must have at least 2 dimensions, but it has " +
         std::to_string(t.dim()));
}

void check_same_dtype(const TensorMeta& a, const TensorMeta& b, const char* what) {
  if (a.dtype != b.dtype)
    fail(std::string(what) + ": Expected A and B to have the same dtype, but found A of type " +
         std::string(torch_name(a.dtype)) + " and B of type " + std::string(torch_name(b.dtype)) + " instead");
}

void check_square(FakeCall& c, const TensorMeta& t, const char* what) {
  check_matrix(t, what);
  if (!checked(c, sym_eq(rows_of(t), columns_of(t)), "square matrices"))
    fail(std::string(what) + ": A must be batches of square matrices, but they are " + rows_of(t).str() + " by " +
         columns_of(t).str() + " matrices");
}

void check_pivot_sizes(FakeCall& c, const TensorMeta& matrices, const TensorMeta& pivots, const char* what) {
  if (checked_sizes(c, pivots.sizes, leading(matrices.sizes, 1), what)) return;
  std::vector<std::string> found;
  for (SymExpr s : pivots.sizes) found.push_back(s.str());
  fail(fmt::format(
      "{}: Expected the factors' shape[:-1] and pivots.shape to be the same, but got pivots with shape [{}]", what,
      fmt::join(found, ", ")));
}

bool are_vectors(const FakeCall& c, const SymList& a, const SymList& b) {
  if (b.size() == 1) return true;
  if (b.size() + 1 != a.size()) return false;
  for (std::size_t i = 0; i < b.size(); ++i)
    if (!c.test(sym_eq(a[i], b[i]), "solve of vectors")) return false;
  return true;
}

SymList common_batch(FakeCall& c, const TensorMeta& a, const TensorMeta& b) {
  SymList batches[] = {leading(a.sizes, 2), leading(b.sizes, 2)};
  return broadcast(c, batches);
}

Sizes batch_of(const Tensor& t, std::size_t matrix_dims) {
  if (t.sizes.size() < matrix_dims)
    fail("The input tensor must have at least " + std::to_string(matrix_dims) + " dimensions");
  return {t.sizes.begin(), t.sizes.end() - static_cast<std::ptrdiff_t>(matrix_dims)};
}

namespace {

/// `t` with its leading dimensions broadcast to `batch`; the last `kept` ones stay. Fails if they do not broadcast.
Tensor expanded(const Tensor& t, const Sizes& batch, std::size_t kept) {
  Sizes sizes = batch, strides(batch.size(), 0);
  std::size_t own = batch_of(t, kept).size();
  if (own > batch.size()) fail("The batch dimensions of the operands do not broadcast");
  std::size_t lead = batch.size() - own;
  for (std::size_t i = 0; i < own; ++i) {
    if (t.sizes[i] != 1 && t.sizes[i] != batch[lead + i]) fail("The batch dimensions of the operands do not broadcast");
    strides[lead + i] = t.sizes[i] == 1 ? 0 : t.strides[i];
  }
  for (std::size_t i = own; i < t.sizes.size(); ++i) {
    sizes.push_back(t.sizes[i]);
    strides.push_back(t.strides[i]);
  }
  return t.view_as(std::move(sizes), std::move(strides), t.offset);
}

Tensor empty_matrices(DType dtype, const Sizes& batch, std::int64_t rows, std::int64_t columns) {
  Sizes sizes = batch;
  sizes.insert(sizes.end(), {columns, rows});
  Tensor t = kernels::zeros(dtype, sizes);
  std::size_t n = sizes.size();
  std::swap(t.sizes[n - 1], t.sizes[n - 2]);
  std::swap(t.strides[n - 1], t.strides[n - 2]);
  return t;
}

std::int64_t count_of(const Sizes& sizes) {
  std::int64_t count = 1;
  for (std::int64_t s : sizes) count *= s;
  return count;
}

}  // namespace

Matrices::Matrices(DType dtype, const Sizes& batch, std::int64_t rows, std::int64_t columns)
    : values(empty_matrices(dtype, batch, rows, columns)), count(count_of(batch)), rows(rows), columns(columns) {}

Matrices::Matrices(const Tensor& t, const Sizes& batch)
    : Matrices(t.dtype, batch, t.sizes[t.sizes.size() - 2], t.sizes.back()) {
  if (values.numel() > 0) values.copy_from(expanded(t, batch, 2));
}

Matrices::Matrices(const Tensor& t) : Matrices(t, batch_of(t)) {}

Tensor expand_batch(const Tensor& t, const Sizes& batch, std::size_t kept) {
  Tensor view = expanded(t, batch, kept), out = kernels::empty(t.dtype, view.sizes);
  if (out.numel() > 0) out.copy_from(view);
  return out;
}

Tensor transposed(const Tensor& t) {
  Tensor out = t;
  std::size_t n = out.sizes.size();
  std::swap(out.sizes[n - 1], out.sizes[n - 2]);
  std::swap(out.strides[n - 1], out.strides[n - 2]);
  return out;
}

Sizes common_batch(const Tensor& a, const Tensor& b) {
  Sizes x = batch_of(a), y = batch_of(b);
  if (x.size() < y.size()) std::swap(x, y);
  std::size_t lead = x.size() - y.size();
  for (std::size_t i = 0; i < y.size(); ++i)
    if (x[lead + i] == 1) x[lead + i] = y[i];
  return x;
}

namespace {

Meta fake_check_errors(FakeCall&) {
  return {};
}

Value eval_check_errors(EvalCall& c) {
  Tensor info = kernels::load(c.tensor("info"), DType::Int32);
  for (std::int64_t i : steps(info.numel()))
    if (int at = info.as<std::int32_t>()[i]; at != 0)
      fail(c.string("api_name") + (c.boolean("is_matrix") ? "" : ": (Batch element " + std::to_string(i) + ")") +
           ": the input has no such factorisation or inverse; LAPACK reports " + std::to_string(at));
  return {};
}

}  // namespace

void register_linalg(OpTable& t) {
  t.add("aten._linalg_check_errors.default", fake_check_errors, eval_check_errors, {},
        {.autograd = {.not_differentiable = true}, .side_effect = true});
}

}  // namespace partita
