// Writes index expressions.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"
#include "core/base/check.h"

namespace partita::codegen {

std::optional<IndexRange> CudaEmitter::range_of(SymExpr e) const {
  return index_range(e, [&](const std::string& name) -> std::optional<std::int64_t> {
    const auto it = extents_.find(name);
    return it == extents_.end() ? std::nullopt : std::optional(it->second);
  });
}

/// Is it known to be at least 0? Loop variables and sizes are.
bool CudaEmitter::non_negative(SymExpr e) const {
  if (e.is_int()) return e.as_int() >= 0;
  if (const auto range = range_of(e); range && range->low >= 0) return true;
  switch (e.kind()) {
    case SymKind::Symbol:
      return true;
    case SymKind::Add:
    case SymKind::Mul:
    case SymKind::FloorDiv:
    case SymKind::Pow:
    case SymKind::Mod:
    case SymKind::Min:
      return std::ranges::all_of(e.args(), [&](SymExpr a) { return non_negative(a); });
    case SymKind::Max:
      return std::ranges::any_of(e.args(), [&](SymExpr a) { return non_negative(a); });
    default:
      return false;
  }
}

Expression CudaEmitter::index(SymExpr e) {
  if (e.is_int()) {
    const std::int64_t v = e.as_int();
    const bool wide = v > INT32_MAX || v < -INT32_MAX;
    return {fmt::format("{}{}", v, wide ? "LL" : ""), v < 0 ? Expression::Unary : Expression::Primary};
  }
  const auto chain = [&](std::string_view op, Expression::Level level) {
    const auto below = static_cast<Expression::Level>(level - 1);
    std::string out;
    for (SymExpr a : e.args()) out += out.empty() ? index(a).as(level) : fmt::format(" {} {}", op, index(a).as(below));
    return Expression{out, level};
  };
  const auto extreme = [&](const char* less) {
    Expression best = index(e.args()[0]);
    for (SymExpr a : e.args().subspan(1)) {
      const Expression next = index(a);
      best = {fmt::format("{} {} {} ? {} : {}", best.as(Expression::Sum), less, next.as(Expression::Sum),
                          best.as(Expression::Or), next.as(Expression::Or)),
              Expression::Conditional};
    }
    return best;
  };
  switch (e.kind()) {
    case SymKind::Symbol: {
      const auto size = symbol_names_.find(e.name());
      if (size != symbol_names_.end()) return {size->second};
      if (const auto other = variable_.find(e.name()); other != variable_.end()) return {other->second};
      CHECK(deps_.loop_of_var.contains(e.name()), "unbound index symbol " + e.name() + " in " + kernel_.name);
      return {e.name()};
    }
    case SymKind::Add:
      return index_sum(e);
    case SymKind::Mul: {
      // The number comes last: i0 * 4.
      std::string out;
      SymExpr factor = 1;
      for (SymExpr a : e.args()) {
        if (a.is_int())
          factor = factor * a;
        else
          out += (out.empty() ? "" : " * ") + index(a).as(out.empty() ? Expression::Product : Expression::Unary);
      }
      if (!factor.is(1)) out += " * " + index(factor).as(Expression::Unary);
      return {out, Expression::Product};
    }
    case SymKind::Pow: {
      const std::string base = index(e.args()[0]).as(Expression::Unary);
      std::string out = base;
      for (std::int64_t i = 1; i < e.args()[1].as_int(); ++i) out += " * " + base;
      return {out, Expression::Product};
    }
    case SymKind::FloorDiv:
    case SymKind::Mod:
      return quotient(e);
    case SymKind::Min:
      return extreme("<");
    case SymKind::Max:
      return extreme(">");
    case SymKind::Eq:
      return chain("==", Expression::Equality);
    case SymKind::Ne:
      return chain("!=", Expression::Equality);
    case SymKind::Lt:
      return chain("<", Expression::Relation);
    case SymKind::Le:
      return chain("<=", Expression::Relation);
    case SymKind::And:
      return chain("&&", Expression::And);
    case SymKind::Or:
      return chain("||", Expression::Or);
    case SymKind::Not:
      return {"!" + index(e.args()[0]).as(Expression::Unary), Expression::Unary};
    default:
      CHECK(false, "an index expression of an unsupported kind");
  }
}

/// Terms with a negative factor are subtracted, after the others.
Expression CudaEmitter::index_sum(SymExpr e) {
  std::string out;
  const auto is_negative = [](SymExpr a) {
    if (a.is_int()) return a.as_int() < 0;
    return a.kind() == SymKind::Mul &&
           std::ranges::any_of(a.args(), [](SymExpr f) { return f.is_int() && f.as_int() < 0; });
  };
  for (const bool number : {false, true})
    for (SymExpr a : e.args())
      if (!is_negative(a) && a.is_int() == number)
        out += (out.empty() ? "" : " + ") + index(a).as(out.empty() ? Expression::Sum : Expression::Product);
  for (SymExpr a : e.args())
    if (is_negative(a))
      out += (out.empty() ? "-" : " - ") + index(-a).as(out.empty() ? Expression::Primary : Expression::Product);
  return {out, Expression::Sum};
}

/// C++ rounds towards zero, index expressions round down.
Expression CudaEmitter::quotient(SymExpr e) {
  const SymExpr a = e.args()[0], b = e.args()[1];
  const bool divides = e.kind() == SymKind::FloorDiv;
  const Expression x = index(a), y = index(b);
  if (non_negative(a) && non_negative(b))
    return {fmt::format("{} {} {}", x.as(Expression::Product), divides ? "/" : "%", y.as(Expression::Unary)),
            Expression::Product};
  return {fmt::format("floor_{}<{}>({}, {})", divides ? "quotient" : "rest", index_type(), x.text, y.text)};
}

}  // namespace partita::codegen
