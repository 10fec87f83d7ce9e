#include "core/load/pt2_subclasses.h"

#include <algorithm>

namespace partita::pt2 {
namespace {

bool has_inner_tensors(const ExportedProgram& program, const std::string& target) {
  const std::string prefix = target + ".";
  const auto first = program.tensors.lower_bound(prefix);
  return !program.tensors.contains(target) && first != program.tensors.end() && first->first.starts_with(prefix);
}

}  // namespace

void unwrap_subclasses(Graph& graph, ExportedProgram& program) {
  // New inputs are looked at too: what they stand for may consist of other tensors itself.
  for (std::size_t i = 0; i < program.inputs.size();) {
    const ProgramInput whole = program.inputs[i];
    Node* const placeholder = graph.find(whole.name);
    if (!placeholder || whole.target.empty() || !has_inner_tensors(program, whole.target)) {
      ++i;
      continue;
    }
    std::vector<ProgramInput> parts;
    const std::vector<Node*> users(placeholder->users().begin(), placeholder->users().end());
    for (Node* user : users) {
      const auto* attribute = user->args().size() == 2 ? user->args()[1].get<std::string>() : nullptr;
      if (!attribute) continue;
      ProgramInput part = whole;
      part.name = whole.name + "_" + *attribute;
      part.target = whole.target + "." + *attribute;
      if (!program.tensors.contains(part.target) && !has_inner_tensors(program, part.target)) continue;
      if (const auto known = std::ranges::find(parts, part.target, &ProgramInput::target); known != parts.end()) {
        user->replace_all_uses_with(graph.find(known->name));
      } else {
        Node* const own = graph.placeholder(part.name, user->meta, placeholder);
        user->replace_all_uses_with(own);
        part.name = own->name();
        parts.push_back(std::move(part));
      }
      graph.erase(user);
    }
    if (parts.empty()) ++i;
    const auto at =
        program.inputs.insert(program.inputs.begin() + static_cast<std::ptrdiff_t>(i), parts.begin(), parts.end());
    if (parts.empty() || !placeholder->users().empty()) continue;  // what reads the whole will ask for its values
    program.inputs.erase(at + std::ssize(parts));
    graph.erase(placeholder);
  }
}

}  // namespace partita::pt2
