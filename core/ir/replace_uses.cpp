#include "core/ir/replace_uses.h"

#include <fmt/format.h>

#include "core/ir/place.h"

namespace partita {

Status replace_uses(Node& node, const Arg& value) {
  const auto* list = value.get<ArgList>();
  while (!node.users().empty()) {
    Node* user = node.users().front();
    if (!list || !user->is(Op::getitem())) {
      user->replace_input(&node, value);
      continue;
    }
    const auto* index = user->args()[1].get<std::int64_t>();
    const auto count = static_cast<std::int64_t>(list->items.size());
    const std::int64_t at = index ? (*index < 0 ? *index + count : *index) : count;
    if (at < 0 || at >= count)
      return input_error("ir.getitem", fmt::format("{} takes an item that {} does not have", user->name(), node.name()),
                         place_of(*user));
    TRY_DO(replace_uses(*user, list->items[static_cast<std::size_t>(at)]));
    user->graph().erase(user);
  }
  return {};
}

}  // namespace partita
