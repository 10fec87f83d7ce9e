#include "core/sym/sign.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "core/sym/sym_node.h"

namespace partita {
namespace {

Sign sign_of_number(double v) {
  return {v >= 0, v > 0, v <= 0, v < 0};
}

bool is_backed_size(SymExpr e) {
  const std::string& name = e.name();
  return name.size() > 1 && name[0] == 's' && std::isdigit(static_cast<unsigned char>(name[1]));
}

Sign product_sign(std::span<const SymExpr> factors, Symbols symbols) {
  Sign out = sign_of_number(1);
  for (SymExpr f : factors) {
    const Sign s = sign_of(f, symbols);
    out = {(out.nonnegative && s.nonnegative) || (out.nonpositive && s.nonpositive),
           (out.positive && s.positive) || (out.negative && s.negative),
           (out.nonnegative && s.nonpositive) || (out.nonpositive && s.nonnegative),
           (out.positive && s.negative) || (out.negative && s.positive)};
  }
  return out;
}

/// The least value of a polynomial in one backed size n >= 1, if it grows from n = 1 on; nullopt otherwise. The test is
/// that p(t + 1) has no negative coefficient except the constant. sympy finds the same from the roots of the
/// derivative.
std::optional<std::int64_t> least_from_one(SymExpr e) {
  constexpr std::int64_t max_degree = 8;
  std::array<std::int64_t, max_degree + 1> shifted{};
  std::optional<SymExpr> symbol;
  for (SymExpr term : e.args()) {
    auto [c, rest] = split_coefficient(term);
    std::int64_t degree = 0;
    if (rest.kind() == SymKind::Pow && rest.args()[1].is_int()) {
      degree = rest.args()[1].as_int();
      rest = rest.args()[0];
    } else if (!rest.is_int()) {
      degree = 1;
    }
    if (degree != 0) {
      if (degree < 0 || degree > max_degree || rest.kind() != SymKind::Symbol || !is_backed_size(rest) ||
          (symbol && *symbol != rest))
        return std::nullopt;
      symbol = rest;
    }
    std::int64_t binomial = 1;  // the binomial coefficient (degree over k)
    for (std::int64_t k = 0; k <= degree; ++k) {
      std::int64_t part = 0;
      if (__builtin_mul_overflow(c, binomial, &part) ||
          __builtin_add_overflow(shifted[static_cast<std::size_t>(k)], part, &shifted[static_cast<std::size_t>(k)]))
        return std::nullopt;
      binomial = binomial * (degree - k) / (k + 1);
    }
  }
  if (std::any_of(shifted.begin() + 1, shifted.end(), [](std::int64_t c) { return c < 0; })) return std::nullopt;
  return shifted[0];
}

/// The least value of a term that is not a sum, as far as its sign and parity tell.
std::optional<std::int64_t> least_of_term(SymExpr term, Symbols symbols) {
  const Sign s = sign_of(term, symbols);
  if (s.positive) return split_coefficient(term).first % 2 == 0 ? 2 : 1;
  if (s.nonnegative) return 0;
  return std::nullopt;
}

Sign sum_sign(SymExpr e, Symbols symbols) {
  const auto terms = e.args();
  std::optional<std::int64_t> least = symbols == Symbols::Sizes ? least_from_one(e) : std::nullopt;
  if (!least && terms.size() == 2 && terms.back().is_int())
    if (auto term = least_of_term(terms[0], symbols)) least = *term + terms.back().as_int();
  if (least && *least >= 0) return {.nonnegative = true, .positive = *least > 0};
  Sign out{true, false, true, false};
  for (SymExpr t : terms) {
    const Sign s = sign_of(t, symbols);
    out = {out.nonnegative && s.nonnegative, out.positive || s.positive, out.nonpositive && s.nonpositive,
           out.negative || s.negative};
  }
  return {out.nonnegative, out.nonnegative && out.positive, out.nonpositive, out.nonpositive && out.negative};
}

Sign extremum_sign(SymExpr e, Symbols symbols) {
  const bool greatest = e.kind() == SymKind::Max;
  Sign out{!greatest, !greatest, greatest, greatest};
  for (SymExpr a : e.args()) {
    const Sign s = sign_of(a, symbols);
    if (greatest)
      out = {out.nonnegative || s.nonnegative, out.positive || s.positive, out.nonpositive && s.nonpositive,
             out.negative && s.negative};
    else
      out = {out.nonnegative && s.nonnegative, out.positive && s.positive, out.nonpositive || s.nonpositive,
             out.negative || s.negative};
  }
  return out;
}

}  // namespace

Sign sign_of(SymExpr e, Symbols symbols) {
  switch (e.kind()) {
    case SymKind::Int:
      return sign_of_number(static_cast<double>(e.as_int()));
    case SymKind::Float:
      return sign_of_number(e.as_float());
    case SymKind::Symbol:
      return symbols == Symbols::Sizes && is_backed_size(e) ? sign_of_number(1) : Sign{};
    case SymKind::Add:
      return sum_sign(e, symbols);
    case SymKind::Mul:
      return product_sign(e.args(), symbols);
    case SymKind::Pow: {
      const Sign base = sign_of(e.args()[0], symbols);
      const bool even = e.args()[1].is_int() && e.args()[1].as_int() % 2 == 0;
      return {.nonnegative = base.nonnegative || even, .positive = base.positive};
    }
    case SymKind::FloorDiv:
      return {.nonnegative = sign_of(e.args()[0], symbols).nonnegative && sign_of(e.args()[1], symbols).nonnegative};
    case SymKind::Mod:
      return {.nonnegative = sign_of(e.args()[1], symbols).positive};
    case SymKind::Min:
    case SymKind::Max:
      return extremum_sign(e, symbols);
    default:
      return {};
  }
}

}  // namespace partita
