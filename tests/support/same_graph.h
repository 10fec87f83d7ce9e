#pragma once
// Compares graphs by their text.
#include <string>

#include <fmt/format.h>

#include "core/ir/graph.h"
#include "core/ir/print.h"

namespace partita::testing {

/// Ignores the module path and the caller's frame, because FX text does not hold them.
inline bool same_origin(const Node& a, const Node& b) {
  if (!a.origin || !b.origin) return !a.origin && !b.origin;
  Origin x = *a.origin;
  x.modules = b.origin->modules;
  x.caller = b.origin->caller;
  return x == *b.origin;
}

/// Names what differs between two nodes; empty when they are equal. Arguments are compared as printed, so nodes by
/// name.
inline std::string difference(const Node& a, const Node& b) {
  auto differs = [](const char* what, const std::string& x, const std::string& y) {
    return fmt::format("{} '{}' and '{}'", what, x, y);
  };
  if (a.name() != b.name()) return differs("names", a.name(), b.name());
  if (a.op() != b.op()) return differs("operators", a.op()->name, b.op()->name);
  if (a.target != b.target) return differs("targets", a.target, b.target);
  std::string x = print(Arg::list(a.args())), y = print(Arg::list(b.args()));
  if (x != y) return differs("arguments", x, y);
  auto keywords = [](const Node& n) {
    ArgDict dict;
    for (const auto& [key, value] : n.kwargs()) dict.items.emplace_back(key, value);
    return print(Arg(std::move(dict)));
  };
  x = keywords(a), y = keywords(b);
  if (x != y) return differs("keyword arguments", x, y);
  x = annotation(a.meta), y = annotation(b.meta);
  if (x != y) return differs("annotations", x, y);
  if (a.recompute != b.recompute) return "recompute tags";
  if (!same_origin(a, b)) return "origins";
  return {};
}

/// Says whether two graphs have the same FX text: names, operators, arguments, targets, annotations, recompute tags,
/// origins, outputs and sub graphs. `why` (may be null) receives the first difference.
inline bool same_graph(const Graph& a, const Graph& b, std::string* why = nullptr) {
  auto fail = [&](std::string text) {
    if (why) *why = std::move(text);
    return false;
  };
  if (a.name != b.name) return fail(fmt::format("graph names '{}' and '{}'", a.name, b.name));
  if (a.form != b.form) return fail("graph forms");
  if (a.size() != b.size()) return fail(fmt::format("{} and {} nodes", a.size(), b.size()));
  for (Node *x = a.first(), *y = b.first(); x; x = x->next(), y = y->next())
    if (std::string what = difference(*x, *y); !what.empty()) return fail(fmt::format("node {}: {}", x->name(), what));
  if (a.children.size() != b.children.size())
    return fail(fmt::format("{} and {} sub graphs", a.children.size(), b.children.size()));
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (a.children[i].first != b.children[i].first) return fail("names of sub graphs");
    std::string inner;
    if (!same_graph(*a.children[i].second, *b.children[i].second, &inner))
      return fail(a.children[i].first + ": " + inner);
  }
  return true;
}

}  // namespace partita::testing
