#include "codegen/cuda/matrix/products.h"

#include <cmath>

#include <fmt/format.h>

#include "codegen/cuda/matrix/contraction.h"

namespace partita::codegen {
namespace {

/// A number as a literal of the sum's type.
std::string literal(double value, DType dtype) {
  const std::string sum(sum_type(dtype));
  if (!is_floating(dtype)) return fmt::format("static_cast<{}>({}ll)", sum, static_cast<std::int64_t>(value));
  return fmt::format("static_cast<{}>({:a})", sum, value);
}

std::optional<MatrixKernel> kernel(const ExternContext& context, const MatrixNames& names, const schedule::PlanView& a,
                                   const schedule::PlanView& b, std::optional<schedule::PlanView> added, double alpha,
                                   double beta, std::string& why_not) {
  const schedule::PlanView& out = context.call.results[0];
  const bool same = a.dtype == b.dtype && a.dtype == out.dtype && (!added || added->dtype == a.dtype);
  if (!same || sum_type(a.dtype).empty()) {
    why_not = "a dtype that kernels of matrix products do not take";
    return std::nullopt;
  }
  const bool whole = std::trunc(alpha) == alpha && std::trunc(beta) == beta;
  if (!is_floating(a.dtype) && !whole) {
    why_not = "factors of integers that are no integers";
    return std::nullopt;
  }
  MatrixKernelBuilder builder(context, names);
  const std::size_t rank = a.sizes.size();
  const auto at = [&](const char* row, const char* column) {
    std::vector<std::string> indices = {row, column};
    if (rank == 3) indices.insert(indices.begin(), "g");
    return indices;
  };
  Contraction c;
  c.what = "product of " + context.call.origin;
  c.dtype = a.dtype;
  c.unit = matrix_unit(a.dtype);
  c.groups = rank == 3 ? a.sizes[0] : SymExpr(1);
  c.m = a.sizes[rank - 2];
  c.k = a.sizes[rank - 1];
  c.n = b.sizes[rank - 1];
  const bool a_along_k = a.strides[rank - 1].is(1), b_along_k = b.strides[rank - 2].is(1) && !b.strides[rank - 1].is(1);
  c.a = builder.factor_of(c.unit, a, at("m", "k"), a_along_k, a_along_k ? rank - 1 : rank - 2);
  c.b = builder.factor_of(c.unit, b, at("k", "n"), b_along_k, b_along_k ? rank - 2 : rank - 1);
  std::string value = alpha == 1 ? "sum" : literal(alpha, a.dtype) + " * sum";
  if (added) {
    while (added->sizes.size() < rank) {
      added->sizes.insert(added->sizes.begin(), 1);
      added->strides.insert(added->strides.begin(), 0);
    }
    const std::string term = builder.number(*added, at("m", "n"));
    value += beta == 1 ? " + " + term : fmt::format(" + {} * {}", literal(beta, a.dtype), term);
  }
  c.finish = builder.store(out, at("m", "n"), value);
  builder.add(std::move(c));
  return builder.build(why_not);
}

}  // namespace

std::optional<MatrixKernel> product_kernel(const ExternContext& context, const MatrixNames& names,
                                           std::string& why_not) {
  const auto a = tensor_view(context, 0), b = tensor_view(context, 1);
  if (a && b) return kernel(context, names, *a, *b, std::nullopt, 1, 0, why_not);
  why_not = "symbolic numbers";
  return std::nullopt;
}

std::optional<MatrixKernel> added_product_kernel(const ExternContext& context, const MatrixNames& names,
                                                 std::string& why_not) {
  const auto added = tensor_view(context, 0), a = tensor_view(context, 1), b = tensor_view(context, 2);
  const auto beta = context.number(3), alpha = context.number(4);
  if (added && a && b && beta && alpha)
    return kernel(context, names, *a, *b, *beta == 0 ? std::nullopt : added, *alpha, *beta, why_not);
  why_not = "symbolic numbers";
  return std::nullopt;
}

}  // namespace partita::codegen
