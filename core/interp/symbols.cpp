// Finds the values of symbols from inputs. SymbolBinder notes once where each symbol is read, and leaves what is rare
// or wrong to bind_symbols(). Also checks inputs against placeholders.
#include "core/interp/symbols.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/interp/widen.h"
#include "core/ir/place.h"
#include "core/sym/float_symbol.h"
#include "core/sym/solve.h"

namespace partita {

bool SymbolMap::bind(SymExpr e, double value) {
  if (e.kind() == SymKind::Symbol)
    return values_.emplace(e.name(), float_bits(value)).first->second == float_bits(value);
  return true;
}

bool SymbolMap::bind(SymExpr e, std::int64_t value) {
  if (const auto known = this->value(e)) return *known == value;
  const auto solved = solve(e, value);
  if (solved && !solved->value) return false;
  if (solved) values_[solved->symbol] = *solved->value;
  return true;
}

std::optional<std::int64_t> SymbolMap::value(SymExpr e) const {
  if (e.is_int()) return e.as_int();
  return e.evaluate_integer([&](const std::string& name) -> std::optional<std::int64_t> {
    const auto it = values_.find(name);
    return it == values_.end() ? std::nullopt : std::optional(it->second);
  });
}

std::string SymbolMap::str() const {
  std::vector<std::string> items;
  for (const auto& [name, value] : values_)
    items.push_back(fmt::format("{}: {}", name, symbol_value(name, value).str()));
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

namespace {

std::set<std::string> symbols_of(SymExpr e) {
  const auto names = e.symbols();
  return {names.begin(), names.end()};
}

bool is_symbol(SymExpr e) {
  return e.kind() == SymKind::Symbol || (-e).kind() == SymKind::Symbol;
}

/// "2*s0 is 8 by an earlier input"
std::string wanted(const SymbolMap& map, SymExpr e) {
  const auto known = map.value(e);
  return known ? fmt::format("{} is {} by an earlier input", e.str(), *known) : e.str() + " is expected";
}

Status bind_all(SymbolMap& map, const SymList& expected, const Sizes& found, const Node& node, std::string_view what) {
  for (std::size_t i = 0; i < expected.size() && i < found.size(); ++i)
    if (expected[i].symbols().size() == 1 && !map.bind(expected[i], found[i]))
      return input_error(
          "interp.symbols",
          fmt::format("{} {} of {} is {}, but {}", what, i, node.name(), found[i], wanted(map, expected[i])),
          place_of(node));
  return {};
}

}  // namespace

Result<SymbolMap> bind_symbols(const Graph& graph, const std::vector<Value>& inputs) {
  SymbolMap map;
  const auto placeholders = graph.placeholders();
  for (std::size_t i = 0; i < placeholders.size() && i < inputs.size(); ++i) {
    const Node& node = *placeholders[i];
    if (const SymExpr* e = node.meta.sym()) {
      if (const auto* n = inputs[i].get<std::int64_t>(); n && !map.bind(*e, *n))
        return input_error("interp.symbols", fmt::format("{} is {}, but {}", node.name(), *n, wanted(map, *e)),
                           place_of(node));
      if (const auto* real = inputs[i].get<double>(); real && e->is_float() && !map.bind(*e, *real))
        return input_error(
            "interp.symbols",
            fmt::format("{} is {}, but an earlier input says that it is another number", node.name(), *real),
            place_of(node));
      continue;
    }
    const TensorMeta* meta = node.meta.tensor();
    const auto* t = inputs[i].get<Tensor>();
    if (!meta || !t) continue;
    TRY_DO(bind_all(map, meta->sizes, t->sizes, node, "size"));
    // Strides of dimensions of size 0 or 1, and of empty tensors, have no meaning. A multiple of a size is no place to
    // learn the size from.
    SymList strides;
    Sizes found;
    for (std::size_t d = 0; d < meta->strides.size() && d < t->strides.size(); ++d)
      if (t->sizes[d] > 1 && t->numel() > 0 && (is_symbol(meta->strides[d]) || map.value(meta->strides[d]))) {
        strides.push_back(meta->strides[d]);
        found.push_back(t->strides[d]);
      }
    if (meta->strides_known) TRY_DO(bind_all(map, strides, found, node, "stride"));
  }
  return map;
}

SymbolBinder::SymbolBinder(const Graph& graph) : graph_(graph) {
  const auto placeholders = graph.placeholders();
  const auto for_each = [&](const auto& f) {
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      if (const SymExpr* e = placeholders[i]->meta.sym()) f(*e, i, Part::Number, std::size_t{0});
      const TensorMeta* meta = placeholders[i]->meta.tensor();
      if (!meta) continue;
      for (std::size_t d = 0; d < meta->sizes.size(); ++d) f(meta->sizes[d], i, Part::Size, d);
      for (std::size_t d = 0; meta->strides_known && d < meta->strides.size(); ++d)
        f(meta->strides[d], i, Part::Stride, d);
    }
  };
  std::set<std::string> names;
  for_each([&](SymExpr e, std::size_t, Part part, std::size_t) {
    const bool is_given = e.is_float()           ? part == Part::Number && e.kind() == SymKind::Symbol
                          : part == Part::Stride ? is_symbol(e)
                                                 : solve(e, 0).has_value();
    if (is_given) names.merge(symbols_of(e));
  });
  names_.assign(names.begin(), names.end());
  for_each([&](SymExpr e, std::size_t input, Part part, std::size_t dim) {
    if (e.is_int()) return;
    if (e.kind() == SymKind::Symbol) {
      const auto at = std::ranges::lower_bound(names_, e.name()) - names_.begin();
      symbols_.push_back({input, part, dim, static_cast<std::size_t>(at)});
    } else if (!e.is_float() && (part == Part::Number || e.symbols().size() == 1)) {
      auto known = std::ranges::find(expressions_, e, &Expression::e);
      if (known == expressions_.end()) known = expressions_.insert(known, {e, std::nullopt});
      others_.push_back({input, part, dim, static_cast<std::size_t>(known - expressions_.begin())});
    }
  });
}

/// nullopt where there is nothing to bind; strides of dimensions of size 0 or 1, and of empty tensors, have no meaning.
std::optional<std::int64_t> SymbolBinder::found(const Source& source, const Value& value) {
  if (source.part == Part::Number) {
    if (const auto* real = value.get<double>()) return float_bits(*real);
    const auto* n = value.get<std::int64_t>();
    return n ? std::optional(*n) : std::nullopt;
  }
  const auto* t = value.get<Tensor>();
  if (!t || source.dim >= t->sizes.size()) return std::nullopt;
  if (source.part == Part::Size) return t->sizes[source.dim];
  if (source.dim >= t->strides.size() || t->sizes[source.dim] <= 1 || t->numel() == 0) return std::nullopt;
  return t->strides[source.dim];
}

void SymbolBinder::expect() {
  for (Expression& each : expressions_) {
    each.expected = each.e.evaluate_integer([&](const std::string& name) -> std::optional<std::int64_t> {
      const auto at = std::ranges::lower_bound(names_, name);
      if (at == names_.end() || *at != name) return std::nullopt;
      const std::int64_t value = values_[static_cast<std::size_t>(at - names_.begin())];
      return value == unbound ? std::nullopt : std::optional(value);
    });
  }
}

Result<std::span<const std::int64_t>> SymbolBinder::bind(const std::vector<Value>& inputs) {
  next_.assign(names_.size(), unbound);
  bool agree = true;
  for (const Source& source : symbols_) {
    if (source.input >= inputs.size()) continue;
    const auto value = found(source, inputs[source.input]);
    if (!value) continue;
    std::int64_t& symbol = next_[source.index];
    agree = agree && (symbol == unbound || symbol == *value);
    symbol = *value;
  }
  if (next_ != values_) {
    values_ = next_;
    expect();
  }
  for (const Source& source : others_) {
    const auto& expected = expressions_[source.index].expected;
    if (!agree || source.input >= inputs.size() || !expected) continue;
    const auto value = found(source, inputs[source.input]);
    agree = !value || *value == *expected;
  }
  // What is rare, and the words of an error, are left to the other function: a symbol that only a multiple of it
  // gives, and sizes that disagree.
  if (agree && std::ranges::find(values_, unbound) == values_.end()) return std::span<const std::int64_t>(values_);
  TRY(const SymbolMap slow, bind_symbols(graph_, inputs));
  for (std::size_t i = 0; i < names_.size(); ++i) values_[i] = slow.value(SymExpr::symbol(names_[i])).value_or(unbound);
  expect();
  return std::span<const std::int64_t>(values_);
}

std::map<std::string, std::int64_t> SymbolBinder::named(std::span<const std::int64_t> values) const {
  std::map<std::string, std::int64_t> out;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (values[i] != unbound) out.emplace(names_[i], values[i]);
  return out;
}

Status check_inputs(const Graph& graph, const std::vector<Value>& inputs, bool float64) {
  const auto placeholders = graph.placeholders();
  if (inputs.size() != placeholders.size())
    return input_error("interp.inputs",
                       fmt::format("the graph takes {} inputs and got {}", placeholders.size(), inputs.size()),
                       Where{.graph = graph.name});
  SymbolMap map;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = *placeholders[i];
    const auto refuse = [&](std::string what) {
      return input_error("interp.inputs", fmt::format("input.{} ({}) {}", i, node.name(), what),
                         Where{.graph = graph.name});
    };
    if (const SymExpr* e = node.meta.sym()) {
      const auto* n = inputs[i].get<std::int64_t>();
      if (n && !map.bind(*e, *n)) return refuse(fmt::format("is {}, but {}", *n, wanted(map, *e)));
      continue;
    }
    const TensorMeta* meta = node.meta.tensor();
    if (!meta || (inputs[i].is_none() && node.users().empty())) continue;
    const auto* t = inputs[i].get<Tensor>();
    if (!t) return refuse(fmt::format("is not a tensor; {} is expected", annotation(node.meta)));
    if (t->dtype != meta->dtype && !(float64 && t->dtype == widened(meta->dtype)))
      return refuse(fmt::format("is {}; {} is expected", torch_name(t->dtype), torch_name(meta->dtype)));
    bool same = t->sizes.size() == meta->sizes.size();
    for (std::size_t d = 0; same && d < t->sizes.size(); ++d) same = map.bind(meta->sizes[d], t->sizes[d]);
    if (!same)
      return refuse(fmt::format("has sizes [{}]; {} is expected", fmt::join(t->sizes, ", "), annotation(node.meta)));
  }
  return {};
}

}  // namespace partita
