#include "views/passes/graph_diff.h"

#include "core/ir/print.h"

namespace partita::views {
namespace {

constexpr PrintOptions kStatement{.annotations = true, .origins = false, .deletions = false};

void cut_short(std::vector<DiffLine>& lines, int context) {
  std::vector<bool> keep(lines.size());
  int count = static_cast<int>(lines.size());
  for (int i = 0; i < count; ++i) {
    if (lines[i].change == Change::None) continue;
    for (int k = std::max(0, i - context); k <= std::min(count - 1, i + context); ++k) keep[k] = true;
  }
  std::vector<DiffLine> kept;
  for (int i = 0; i < count; ++i) {
    if (keep[i]) {
      kept.push_back(std::move(lines[i]));
      continue;
    }
    int run = 0;
    while (i + run < count && !keep[i + run]) ++run;
    kept.push_back(
        {Change::None, "# " + std::to_string(run) + (run == 1 ? " unchanged statement" : " unchanged statements"), ""});
    i += run - 1;
  }
  lines = std::move(kept);
}

}  // namespace

GraphDiff diff(const Graph& before, const Graph& after, int context) {
  GraphDiff result;
  auto add = [&](Change change, const Node& node, std::string text) {
    result.lines.push_back({change, std::move(text), node.name()});
  };
  const Node* old = before.first();
  // Removed statements are listed where they were: before the next statement that both graphs have.
  auto removed_until = [&](const std::string* name) {
    for (; old && (!name || old->name() != *name); old = old->next()) {
      if (after.find(old->name())) continue;
      add(Change::Removed, *old, print(*old, kStatement));
      ++result.removed;
    }
  };
  for (const Node* node : after) {
    const Node* same = before.find(node->name());
    if (!same) {
      add(Change::Added, *node, print(*node, kStatement));
      result.marks[node->name()] = Change::Added;
      ++result.added;
      continue;
    }
    // A statement that moved up comes out of order; no removed ones are listed before it.
    bool ahead = false;
    for (const Node* p = old; p && !ahead; p = p->next()) {
      ahead = p == same;
      if (!ahead && after.find(p->name())) break;
    }
    if (ahead) {
      removed_until(&node->name());
      old = old ? old->next() : nullptr;
    }
    std::string text = print(*node, kStatement), old_text = print(*same, kStatement);
    if (text == old_text) {
      add(Change::None, *node, std::move(text));
      continue;
    }
    add(Change::Removed, *node, std::move(old_text));
    add(Change::Changed, *node, std::move(text));
    result.marks[node->name()] = Change::Changed;
    ++result.changed;
  }
  removed_until(nullptr);
  cut_short(result.lines, context);
  return result;
}

}  // namespace partita::views
