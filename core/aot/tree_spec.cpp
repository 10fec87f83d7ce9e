#include "core/aot/tree_spec.h"

#include <functional>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/ir/print.h"

namespace partita {

bool is_leaf(const Arg& tree) {
  return !tree.get<ArgList>() && !tree.get<ArgDict>();
}

std::vector<Arg> tree_children(const Arg& tree) {
  if (const auto* list = tree.get<ArgList>()) return list->items;
  std::vector<Arg> out;
  if (const auto* dict = tree.get<ArgDict>())
    for (const auto& [key, value] : dict->items) out.push_back(value);
  return out;
}

std::vector<Arg> tree_leaves(const Arg& tree) {
  if (is_leaf(tree)) return {tree};
  std::vector<Arg> out;
  for (const Arg& child : tree_children(tree))
    for (Arg& leaf : tree_leaves(child)) out.push_back(std::move(leaf));
  return out;
}

Arg with_leaves(const Arg& tree, const std::vector<Arg>& leaves) {
  std::size_t next = 0;
  const std::function<Arg(const Arg&)> filled = [&](const Arg& part) -> Arg {
    if (is_leaf(part)) return leaves[next++];
    if (const auto* dict = part.get<ArgDict>()) {
      ArgDict out;
      for (const auto& [key, value] : dict->items) out.items.emplace_back(key, filled(value));
      return out;
    }
    ArgList out{{}, part.get<ArgList>()->is_tuple};
    for (const Arg& item : part.get<ArgList>()->items) out.items.push_back(filled(item));
    return out;
  };
  CHECK(tree_leaves(tree).size() == leaves.size(), "with_leaves: other number of leaves");
  return filled(tree);
}

std::string tree_spec(const Arg& tree, std::size_t indent) {
  if (is_leaf(tree)) return "*";
  std::string type = "dict", context = "None";
  if (const auto* list = tree.get<ArgList>()) {
    type = list->is_tuple ? "tuple" : "list";
  } else {
    std::vector<Arg> keys;
    for (const auto& [key, value] : tree.get<ArgDict>()->items) keys.emplace_back(key);
    context = print(Arg::list(std::move(keys)));
  }
  std::string children;
  for (const Arg& child : tree_children(tree))
    children += (children.empty() ? "" : ",\n" + std::string(indent + 2, ' ')) + tree_spec(child, indent + 2);
  return fmt::format("TreeSpec({}, {}, [{}])", type, context, children);
}

}  // namespace partita
