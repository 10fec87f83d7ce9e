#include "core/ir/arg.h"

#include <cmath>

namespace partita {

Arg::Arg(const Arg&) = default;
Arg::Arg(Arg&&) noexcept = default;
Arg& Arg::operator=(const Arg&) = default;
Arg& Arg::operator=(Arg&&) noexcept = default;
Arg::~Arg() = default;

bool ArgList::operator==(const ArgList& o) const {
  return is_tuple == o.is_tuple && items == o.items;
}
bool ArgSlice::operator==(const ArgSlice& o) const {
  return parts == o.parts;
}
bool ArgDict::operator==(const ArgDict& o) const {
  return items == o.items;
}

bool Arg::operator==(const Arg& o) const {
  if (auto *a = get<double>(), *b = o.get<double>(); a && b) return *a == *b || (std::isnan(*a) && std::isnan(*b));
  return v == o.v;
}

void for_each_node(const Arg& arg, const std::function<void(Node*)>& f) {
  if (Node* n = arg.node()) return f(n);
  if (auto* list = arg.get<ArgList>())
    for (const Arg& a : list->items) for_each_node(a, f);
  if (auto* slice = arg.get<ArgSlice>())
    for (const Arg& a : slice->parts) for_each_node(a, f);
  if (auto* dict = arg.get<ArgDict>())
    for (const auto& [key, a] : dict->items) for_each_node(a, f);
}

Arg map_nodes(const Arg& arg, const std::function<Arg(Node*)>& f) {
  if (Node* n = arg.node()) return f(n);
  if (auto* list = arg.get<ArgList>()) return ArgList{map_nodes(list->items, f), list->is_tuple};
  if (auto* slice = arg.get<ArgSlice>()) return ArgSlice{map_nodes(slice->parts, f)};
  if (auto* dict = arg.get<ArgDict>()) return ArgDict{map_nodes(dict->items, f)};
  return arg;
}

Args map_nodes(const Args& args, const std::function<Arg(Node*)>& f) {
  Args out;
  out.reserve(args.size());
  for (const Arg& a : args) out.push_back(map_nodes(a, f));
  return out;
}

Kwargs map_nodes(const Kwargs& kwargs, const std::function<Arg(Node*)>& f) {
  Kwargs out;
  for (const auto& [key, a] : kwargs) out.emplace_back(key, map_nodes(a, f));
  return out;
}

}  // namespace partita
