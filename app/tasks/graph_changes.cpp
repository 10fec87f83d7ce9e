#include "app/tasks/graph_changes.h"

#include <set>

#include "core/ir/print.h"

namespace partita {

std::string graph_changes(const Graph& before, const Graph& after, std::string_view indent) {
  const PrintOptions options{.annotations = true, .origins = false, .deletions = false};
  std::multiset<std::string> old_lines, new_lines;
  for (const Node* n : before) old_lines.insert(print(*n, options));
  for (const Node* n : after) new_lines.insert(print(*n, options));
  std::string text;
  const auto add = [&](const char* sign, const std::string& line) {
    text.append(indent).append(sign).append(line) += "\n";
  };
  for (const Node* n : before)
    if (const std::string line = print(*n, options); !new_lines.contains(line)) add("- ", line);
  for (const Node* n : after)
    if (const std::string line = print(*n, options); !old_lines.contains(line)) add("+ ", line);
  return text;
}

}  // namespace partita
