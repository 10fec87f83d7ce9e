// Norms, condition numbers, ranks and pseudo-inverses of matrices.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

using Names = std::vector<std::pair<std::string, Arg>>;

struct MatrixDims {
  std::int64_t rows, columns;
};

MatrixDims matrix_dims(const TensorMeta& t, const Sizes& dims) {
  if (t.dim() < 2) fail("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
  if (dims.size() != 2) fail("linalg.matrix_norm: dim must be a 2-tuple");
  auto rows = static_cast<std::int64_t>(wrap_dim(dims[0], t.dim()));
  auto columns = static_cast<std::int64_t>(wrap_dim(dims[1], t.dim()));
  if (rows == columns) fail("linalg.matrix_norm: dims must be different");
  return {rows, columns};
}

/// Applies `reduction` to the singular values of the matrices in two dimensions, which are first permuted to the end.
Arg of_singular_values(DecomposeCall& c, Arg x, MatrixDims dims, bool keep, std::string_view reduction) {
  std::vector<std::int64_t> order, back(c.build.tensor(x).dim());
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(back.size()); ++d)
    if (d != dims.rows && d != dims.columns) order.push_back(d);
  order.insert(order.end(), {dims.rows, dims.columns});
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  Arg values = build_program(c, "linalg_svdvals(permute(x, order))", {{"x", x}, {"order", list_of(order)}});
  values = build_program(c, reduction, {{"s", values}, {"keep", keep}});
  if (!keep) return values;
  return build_program(c, "permute(unsqueeze(s, -1), back)", {{"s", values}, {"back", list_of(back)}});
}

/// How the greatest or least of `count` numbers is found: the greatest of none is 0, as for other norms.
const char* extreme_of(SymExpr count, bool greatest) {
  return !greatest ? "amin" : count.is(0) ? "aten.sum.dim_IntList" : "amax";
}

double order_number(const Arg& order) {
  if (order.node()) fail_unsupported("a norm of an order that is known only at run time");
  const auto number = as_number(order);
  return number ? as_double(*number) : 0;
}

/// linalg.matrix_norm of x. `order` is a number, 'fro' or 'nuc'.
Arg matrix_norm(DecomposeCall& c, const Arg& x, const Arg& order, const Sizes& over, bool keep, const Arg& dtype) {
  MatrixDims dims = matrix_dims(c.build.tensor(x), over);
  Names names = {{"x", x}, {"keep", keep}, {"type", dtype}};
  auto converted = [&] { return dtype.is_none() ? x : build_program(c, "aten.to.dtype(x, type)", names); };
  if (auto* name = order.get<std::string>()) {
    names.emplace_back("dims", Arg::list({dims.rows, dims.columns}));
    if (*name == "fro") return build_program(c, "linalg_vector_norm(x, 2, dims, keep, dtype=type)", names);
    if (*name != "nuc") fail(fmt::format("linalg.matrix_norm: Order {} not supported.", *name));
    return of_singular_values(c, converted(), dims, keep, "aten.sum.dim_IntList(s, [-1], keep)");
  }
  const double ord = order_number(order), size = std::abs(ord);
  if (size != 1 && size != 2 && !std::isinf(size))
    fail(fmt::format("linalg.matrix_norm: Order {} not supported.", ord));
  const SymList sizes = c.build.tensor(x).sizes;
  const SymExpr rows = sizes[static_cast<std::size_t>(dims.rows)],
                columns = sizes[static_cast<std::size_t>(dims.columns)], fewest = rows.is(0) ? rows : columns;
  if (size == 2)
    return of_singular_values(c, converted(), dims, keep,
                              fmt::format("{}(s, [-1], keep)", extreme_of(fewest, ord > 0)));
  if (std::isinf(size)) std::swap(dims.rows, dims.columns);
  const SymExpr summed = sizes[static_cast<std::size_t>(dims.columns)];
  if (!keep && dims.rows < dims.columns) --dims.columns;
  names.insert(names.end(), {{"r", dims.rows}, {"c", dims.columns}});
  Arg sums = build_program(c, "linalg_vector_norm(x, 1.0, [r], keep, dtype=type)", names);
  names.emplace_back("sums", sums);
  return build_program(c, fmt::format("{}(sums, [c], keep)", extreme_of(summed, ord > 0)), names);
}

Arg linalg_matrix_norm(DecomposeCall& c) {
  return matrix_norm(c, c.arg("self"), c.arg("ord"), c.integers("dim"), c.boolean("keepdim"), c.arg("dtype"));
}

Arg linalg_norm(DecomposeCall& c) {
  std::size_t rank = c.tensor("self").dim(), count = c.has("dim") ? c.integers("dim").size() : rank;
  bool ordered = c.has("ord");
  if (c.has("dim") && count != 1 && count != 2) fail("linalg.norm: If dim is specified, it must be of length 1 or 2");
  if (!c.has("dim") && ordered && rank != 1 && rank != 2)
    fail("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D");
  if (ordered && c.arg("ord").get<std::string>() && count != 2)
    fail("linalg.norm: a string order needs a matrix: an input of 2 dimensions, or dim of length 2");
  if (ordered && count == 2) {
    Sizes dims = c.has("dim") ? c.integers("dim") : Sizes{0, 1};
    return matrix_norm(c, c.arg("self"), c.arg("ord"), dims, c.boolean("keepdim"), c.arg("dtype"));
  }
  return build_program(c, "linalg_vector_norm(self, order, dim, keepdim, dtype=dtype)",
                       {{"order", ordered ? c.arg("ord") : Arg(2.0)}});
}

Arg nuclear_norm(DecomposeCall& c) {
  bool named = c.schema.index_of("dim") >= 0;
  return matrix_norm(c, c.arg("self"), Arg(std::string("nuc")), named ? c.integers("dim") : Sizes{-2, -1},
                     c.boolean("keepdim"), Arg());
}

Arg frobenius_norm(DecomposeCall& c) {
  if (c.integers("dim").size() > 2) fail("Expected at most 2 dimensions, but got more instead.");
  return build_program(c, "aten.norm.ScalarOpt_dim(self, 2.0, dim, keepdim)");
}

/// linalg.cond: the norm of a matrix times that of its inverse. For order 2 it is the ratio of the largest and the
/// smallest singular value, for order -2 the inverse of that.
Arg condition(DecomposeCall& c) {
  Arg order = c.arg("p");
  const TensorMeta& self = c.tensor("self");
  if (self.dim() < 2) fail("linalg.cond: The input tensor must have at least 2 dimensions.");
  const double ord = order.is_none() ? 2 : order_number(order);
  if (std::abs(ord) == 2) {
    SymExpr count = sym_min(self.sizes[self.dim() - 1], self.sizes[self.dim() - 2]);
    Names names = {{"k", c.build.size(count)}, {"j", c.build.size(count - 1)}};
    names.emplace_back("up", ord > 0);
    return build_program(c,
                         "s = linalg_svdvals(self); a = slice(s, -1, 0, 1); z = slice(s, -1, j, k);"
                         "aten.squeeze.dim(a / z if up else z / a, -1)",
                         names);
  }
  if (!checked(c, sym_eq(self.sizes[self.dim() - 1], self.sizes[self.dim() - 2]), "cond"))
    fail("linalg.cond(with this order): A must be batches of square matrices");
  if (self.numel().is(0))
    return c.build.call("aten.zeros.default", {c.build.sizes({self.sizes.begin(), self.sizes.end() - 2})},
                        options_of(self, real_of(self.dtype)));
  if (auto* name = order.get<std::string>(); name && *name == "nuc")
    return build_program(c,
                         "s = linalg_svdvals(self); inverses = aten.sum.dim_IntList(reciprocal(s), [-1]);"
                         "aten.sum.dim_IntList(s, [-1]) * inverses");
  Arg inverse = build_program(c,
                              "f = linalg_inv_ex(self); x = f[0]; i = unsqueeze_(unsqueeze_(f[1], -1), -1);"
                              "masked_fill_(x, gt(i, 0), inf)");
  Arg norm = matrix_norm(c, c.arg("self"), order, {-2, -1}, false, Arg());
  Arg inverse_norm = matrix_norm(c, inverse, order, {-2, -1}, false, Arg());
  return build_program(c, "nan_to_num_(n * m, inf, inf, -inf)", {{"n", norm}, {"m", inverse_norm}});
}

struct Tolerances {
  Arg absolute, relative;
};

double default_relative(DecomposeCall& c, const TensorMeta& t) {
  if (t.dim() < 2) fail("linalg.matrix_rank: The input tensor must have at least 2 dimensions.");
  bool narrow = t.dtype == DType::Float32 || t.dtype == DType::Complex64;
  double epsilon = narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  SymExpr longer = sym_max(t.sizes[t.dim() - 1], t.sizes[t.dim() - 2]);
  auto size = c.shapes.hint(longer);
  if (!size || !c.test(sym_eq(longer, *size), "a default tolerance"))
    fail_unsupported("a default tolerance for matrices of symbolic size");
  return epsilon * static_cast<double>(*size);
}

Node* scalar(DecomposeCall& c, const TensorMeta& like, double value) {
  return c.build.call("aten.full.default", {Arg::list({}), value}, options_of(like, DType::Float64));
}

/// The tolerances as PyTorch completes them: an absent atol is 0; an absent rtol is 0 when atol is above 0, else
/// epsilon times the larger side of the matrix.
Tolerances tolerances(DecomposeCall& c, const TensorMeta& t) {
  auto given = [&](const char* name) { return c.schema.index_of(name) >= 0 && c.has(name); };
  bool absolute = given("atol"), relative = given("rtol");
  if (c.schema.name.ends_with("_float")) {
    double atol = absolute ? as_double(c.number("atol")) : 0;
    double rtol = relative ? as_double(c.number("rtol")) : atol > 0 ? 0 : default_relative(c, t);
    Node* a = scalar(c, t, atol);
    return {a, scalar(c, t, rtol)};
  }
  auto zero = [&] { return c.build.call("aten.zeros.default", {Arg::list({})}, options_of(t, DType::Float64)); };
  Arg atol = absolute ? c.arg("atol") : Arg(zero());
  if (relative) return {atol, c.arg("rtol")};
  Node* usual = scalar(c, t, default_relative(c, t));
  if (!absolute) return {atol, usual};
  return {atol, build_program(c, "aten.where.self(gt(a, 0), z, r)", {{"a", atol}, {"z", zero()}, {"r", usual}})};
}

/// How many singular values exceed the tolerance; for Hermitian matrices, how many absolute eigenvalues.
Arg rank_above(DecomposeCall& c, const char* name, const Tolerances& tolerance) {
  const TensorMeta& x = c.tensor(name);
  if (x.dim() < 2) fail("linalg.matrix_rank: The input tensor must have at least 2 dimensions.");
  if (c.test(sym_eq(x.numel(), 0), "matrices without elements")) {
    Node* none = c.build.call("aten.empty.memory_format", {c.build.sizes({x.sizes.begin(), x.sizes.end() - 2})},
                              options_of(x, DType::Int64));
    return c.build.call("aten.fill_.Scalar", {none, 0});
  }
  Names names = {{"x", c.arg(name)}, {"a", tolerance.absolute}, {"r", tolerance.relative}};
  Arg values = build_program(c, c.boolean("hermitian") ? "abs(linalg_eigvalsh(x))" : "linalg_svdvals(x)", names);
  names.emplace_back("s", values);
  Arg largest = build_program(c, c.boolean("hermitian") ? "amax(s, [-1], True)" : "slice(s, -1, 0, 1)", names);
  names.emplace_back("largest", largest);
  return build_program(c,
                       "above = unsqueeze(r, -1) * largest; tolerance = maximum(unsqueeze(a, -1), above);"
                       "aten.sum.dim_IntList(gt(s, tolerance), [-1])",
                       names);
}

Arg matrix_rank(DecomposeCall& c) {
  const char* name = c.schema.args[0].name == "input" ? "input" : "self";
  if (c.schema.index_of("tol") < 0) return rank_above(c, name, tolerances(c, c.tensor(name)));
  if (c.is_tensor("tol")) {
    Node* zero = c.build.call("aten.zeros.default", {Arg::list({})}, options_of(c.tensor("tol")));
    return rank_above(c, name, {c.arg("tol"), zero});
  }
  Node* absolute = scalar(c, c.tensor(name), as_double(c.number("tol")));
  return rank_above(c, name, {absolute, scalar(c, c.tensor(name), 0)});
}

Arg pseudo_inverse(DecomposeCall& c, const Arg& absolute, const Arg& relative, bool hermitian) {
  return c.build.call("aten.linalg_pinv.atol_rtol_tensor", {c.arg("self")},
                      {{"atol", absolute}, {"rtol", relative}, {"hermitian", hermitian}});
}

Arg pinv(DecomposeCall& c) {
  const TensorMeta& self = c.tensor("self");
  bool hermitian = c.schema.index_of("hermitian") >= 0 && c.boolean("hermitian");
  if (c.schema.index_of("rcond") < 0) {
    Tolerances tolerance = tolerances(c, self);
    return pseudo_inverse(c, tolerance.absolute, tolerance.relative, hermitian);
  }
  if (c.is_tensor("rcond")) {
    Node* zero = c.build.call("aten.zeros.default", {Arg::list({})}, options_of(self, DType::Float64));
    return pseudo_inverse(c, zero, c.arg("rcond"), hermitian);
  }
  Node* zero = scalar(c, self, 0);
  return pseudo_inverse(c, zero, scalar(c, self, as_double(c.number("rcond"))), hermitian);
}

}  // namespace

void register_matrix_norm_composites(OpTable& t) {
  t.add("aten.linalg_matrix_norm.default", {.decompose = linalg_matrix_norm});
  t.add("aten.linalg_matrix_norm.str_ord", {.decompose = linalg_matrix_norm});
  t.add("aten.linalg_norm.default", {.decompose = linalg_norm});
  t.add("aten.linalg_norm.ord_str", {.decompose = linalg_norm});
  t.add("aten.nuclear_norm.default", {.decompose = nuclear_norm});
  t.add("aten.nuclear_norm.dim", {.decompose = nuclear_norm});
  t.add("aten.frobenius_norm.dim", {.decompose = frobenius_norm});
  t.add("aten.linalg_cond.default", {.decompose = condition});
  t.add("aten.linalg_cond.p_str", {.decompose = condition});
  for (const char* overload : {"default", "tol_tensor", "atol_rtol_float", "atol_rtol_tensor"})
    t.add(fmt::format("aten.linalg_matrix_rank.{}", overload), {.decompose = matrix_rank});
  for (const char* overload : {"default", "rcond_tensor", "atol_rtol_float"})
    t.add(fmt::format("aten.linalg_pinv.{}", overload), {.decompose = pinv});
  t.add("aten.pinverse.default", {.decompose = pinv});
}

}  // namespace partita
