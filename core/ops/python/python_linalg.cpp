// Functions of linear algebra that PyTorch writes in Python: torch.lu, torch.norm, torch.svd_lowrank, torch.cdist.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/record/operator_program.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

/// torch.functional.lu: (LU, pivots), and infos where they are asked for, instead of an error.
Arg lu(Builder& b, NamedArgs& names) {
  const bool infos = value_of(names, "get_infos") == Arg(true);
  Node* const all = b.call("aten._lu_with_info.default", {node_of(names, "A"), value_of(names, "pivot"), !infos});
  std::vector<Arg> results{b.getitem(all, 0), b.getitem(all, 1)};
  if (infos) results.emplace_back(b.getitem(all, 2));
  return Arg::tuple(std::move(results));
}

/// torch.functional.norm: of vectors for numbers and 'fro', of matrices for 'nuc'.
Arg norm(Builder& b, NamedArgs& names) {
  Node* const input = node_of(names, "input");
  Arg p = value_of(names, "p"), dim = value_of(names, "dim");
  if (!dim.is_none()) dim = repeated(dim, 1);
  Kwargs kwargs;
  if (!value_of(names, "dtype").is_none()) kwargs.emplace_back("dtype", value_of(names, "dtype"));
  const Arg keepdim = value_of(names, "keepdim");
  const auto* text = p.get<std::string>();
  if (text && (*text != "fro" || (dim.get<ArgList>() && dim.get<ArgList>()->items.size() > 2))) {
    if (dim.is_none()) {
      std::vector<Arg> all;
      for (std::size_t d = 0; d < b.tensor(input).dim(); ++d) all.emplace_back(static_cast<std::int64_t>(d));
      dim = Arg::list(std::move(all));
    }
    return b.call("aten.linalg_matrix_norm.str_ord", {input, p, dim, keepdim}, kwargs);
  }
  if (text || p.is_none()) p = 2;
  return b.call("aten.linalg_vector_norm.default", {input, p, dim, keepdim}, kwargs);
}

std::int64_t whole(NamedArgs& names, std::string_view key, std::int64_t otherwise) {
  const Arg& given = value_of(names, key);
  if (given.is_none()) return otherwise;
  const auto* number = given.get<std::int64_t>();
  if (!number) fail_unsupported(fmt::format("a {} that is no constant", key));
  return *number;
}

Arg mH(Builder& b, const Arg& x) {
  return b.call("aten.mH.default", {x});
}

/// a @ x, and (a - m) @ x where m is not None.
Arg product(Builder& b, const Arg& a, const Arg& m, const Arg& x) {
  Node* const all = b.call("aten.matmul.default", {a, x});
  return m.is_none() ? all : b.call("aten.sub.Tensor", {all, b.call("aten.matmul.default", {m, x})});
}

/// Orthonormal columns that span about what the q greatest singular vectors of a - m do, out of random numbers
/// (get_approximate_basis).
Arg approximate_basis(Builder& b, const Arg& a, std::int64_t q, std::int64_t rounds, const Arg& m) {
  const TensorMeta of = b.tensor(a);
  const auto basis = [&](const Arg& x) { return Arg(b.getitem(b.call("aten.linalg_qr.default", {x}), 0)); };
  Node* const random = b.call("aten.randn.default", {b.sizes({of.sizes.back(), q})},
                              {{"dtype", of.dtype}, {"device", of.device}, {"pin_memory", false}});
  Arg found = basis(product(b, a, m, random));
  for (std::int64_t i = 0; i < rounds; ++i) {
    found = basis(product(b, mH(b, a), m.is_none() ? m : mH(b, m), found));
    found = basis(product(b, a, m, found));
  }
  return found;
}

/// (U, S, V) with about the q greatest singular values of a - m (algorithm 5.1 of Halko et al., 2009).
Arg low_rank_svd(Builder& b, Arg a, std::int64_t q, std::int64_t rounds, Arg m) {
  const SymList sizes = b.tensor(a).sizes;
  if (sizes.size() < 2) fail("svd_lowrank expects a matrix or a batch of matrices");
  const SymExpr rows = sizes[sizes.size() - 2], columns = sizes.back();
  if (!rows.is_int() || !columns.is_int()) fail_unsupported("a low-rank decomposition of a matrix of symbolic sizes");
  if (!is_floating(b.tensor(a).dtype) && !is_complex(b.tensor(a).dtype))
    fail_unsupported("a low-rank decomposition of integers");
  if (!m.is_none()) m = b.call("aten.expand.default", {m, b.sizes(sizes)});
  const bool wide = rows.as_int() < columns.as_int();
  if (wide) a = mH(b, a);
  if (wide && !m.is_none()) m = mH(b, m);
  const Arg basis = approximate_basis(b, a, q, rounds, m), adjoint = mH(b, basis);
  Arg small = b.call("aten.matmul.default", {adjoint, a});
  if (!m.is_none()) small = b.call("aten.sub.Tensor", {small, b.call("aten.matmul.default", {adjoint, m})});
  Node* const parts = b.call("aten.linalg_svd.default", {small, false});
  Arg s = b.getitem(parts, 1), v = mH(b, b.getitem(parts, 2));
  Arg u = b.call("aten.matmul.default", {basis, b.getitem(parts, 0)});
  if (wide) std::swap(u, v);
  return Arg::tuple({u, s, v});
}

Arg svd_lowrank(Builder& b, NamedArgs& names) {
  return low_rank_svd(b, node_of(names, "A"), whole(names, "q", 6), whole(names, "niter", 2), value_of(names, "M"));
}

Arg pca_lowrank(Builder& b, NamedArgs& names) {
  Arg a = node_of(names, "A");
  const SymList& sizes = b.tensor(a).sizes;
  if (sizes.size() < 2) fail("pca_lowrank expects a matrix or a batch of matrices");
  const SymExpr rows = sizes[sizes.size() - 2], columns = sizes.back();
  if (!rows.is_int() || !columns.is_int()) fail_unsupported("a low-rank decomposition of a matrix of symbolic sizes");
  const std::int64_t most = std::min(rows.as_int(), columns.as_int());
  const std::int64_t q = whole(names, "q", std::min<std::int64_t>(6, most));
  if (q < 0 || q > most)
    fail(fmt::format("q(={}) must be non-negative integer and not greater than min(m, n)={}", q, most));
  const std::int64_t rounds = whole(names, "niter", 2);
  if (rounds < 0) fail(fmt::format("niter(={}) must be non-negative integer", rounds));
  if (value_of(names, "center") == Arg(true)) a = b.expression("A - mean(A, [-2], True)", names);
  return low_rank_svd(b, a, q, rounds, Arg());
}

constexpr PythonSpecial linalg_rows[] = {
    {"torch.functional.lu", lu},
    {"torch.functional.norm", norm},
    {"torch._lowrank.svd_lowrank", svd_lowrank},
    {"torch._lowrank.pca_lowrank", pca_lowrank},
};

}  // namespace

std::span<const PythonSpecial> linalg_specials() {
  return linalg_rows;
}

}  // namespace partita
