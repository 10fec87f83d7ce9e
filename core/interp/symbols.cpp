#include "core/interp/symbols.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ir/place.h"
#include "core/sym/integer.h"

namespace partita {

bool SymbolMap::bind(SymExpr e, std::int64_t value) {
  if (const auto known = this->value(e)) return *known == value;
  if (e.kind() == SymKind::Symbol) values_[e.name()] = value;
  if (const SymExpr negated = -e; negated.kind() == SymKind::Symbol) values_[negated.name()] = -value;
  return true;
}

std::optional<std::int64_t> SymbolMap::value(SymExpr e) const {
  if (e.is_int()) return e.as_int();
  const auto v = e.evaluate([&](const std::string& name) -> std::optional<std::int64_t> {
    const auto it = values_.find(name);
    return it == values_.end() ? std::nullopt : std::optional(it->second);
  });
  return v ? as_integer(*v) : std::nullopt;
}

std::string SymbolMap::str() const {
  std::vector<std::string> items;
  for (const auto& [name, value] : values_) items.push_back(fmt::format("{}: {}", name, value));
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

namespace {

Status bind_all(SymbolMap& map, const SymList& expected, const Sizes& found, const Node& node, std::string_view what) {
  for (std::size_t i = 0; i < expected.size() && i < found.size(); ++i)
    if (expected[i].symbols().size() == 1 && !map.bind(expected[i], found[i]))
      return input_error("interp.symbols",
                         fmt::format("{} {} of {} is {}, but {} is {} by an earlier input", what, i, node.name(),
                                     found[i], expected[i].str(), *map.value(expected[i])),
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
        return input_error(
            "interp.symbols",
            fmt::format("{} is {}, but {} is {} by an earlier input", node.name(), *n, e->str(), *map.value(*e)),
            place_of(node));
      continue;
    }
    const TensorMeta* meta = node.meta.tensor();
    const auto* t = inputs[i].get<Tensor>();
    if (!meta || !t) continue;
    TRY_DO(bind_all(map, meta->sizes, t->sizes, node, "size"));
    // Strides of dimensions of size 0 or 1, and of empty tensors, have no meaning.
    SymList strides;
    Sizes found;
    for (std::size_t d = 0; d < meta->strides.size() && d < t->strides.size(); ++d)
      if (t->sizes[d] > 1 && t->numel() > 0) {
        strides.push_back(meta->strides[d]);
        found.push_back(t->strides[d]);
      }
    if (meta->strides_known) TRY_DO(bind_all(map, strides, found, node, "stride"));
  }
  return map;
}

Status check_inputs(const Graph& graph, const std::vector<Value>& inputs) {
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
      if (n && !map.bind(*e, *n))
        return refuse(fmt::format("is {}; {} = {} is expected", *n, e->str(), *map.value(*e)));
      continue;
    }
    const TensorMeta* meta = node.meta.tensor();
    if (!meta || (inputs[i].is_none() && node.users().empty())) continue;
    const auto* t = inputs[i].get<Tensor>();
    if (!t) return refuse(fmt::format("is not a tensor; {} is expected", annotation(node.meta)));
    if (t->dtype != meta->dtype)
      return refuse(fmt::format("is {}; {} is expected", torch_name(t->dtype), torch_name(meta->dtype)));
    bool same = t->sizes.size() == meta->sizes.size();
    for (std::size_t d = 0; same && d < t->sizes.size(); ++d) same = map.bind(meta->sizes[d], t->sizes[d]);
    if (!same)
      return refuse(fmt::format("has sizes [{}]; {} is expected", fmt::join(t->sizes, ", "), annotation(node.meta)));
  }
  return {};
}

}  // namespace partita
