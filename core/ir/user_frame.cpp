#include "core/ir/user_frame.h"

#include <unordered_set>
#include <vector>

namespace partita {
namespace {

const StackFrame* frame_of(const Node& node) {
  return node.origin && !node.origin->of_user().file.empty() ? &node.origin->of_user() : nullptr;
}

}  // namespace

bool is_of_torch(const StackFrame& frame) {
  return frame.file.starts_with("torch/") || frame.file.find("/torch/") != std::string::npos;
}

const StackFrame* nearest_user_frame(const Node& node) {
  constexpr std::size_t most = 64;  // nodes that are looked at
  const StackFrame* own = frame_of(node);
  if (!own || !is_of_torch(*own)) return nullptr;
  std::vector<const Node*> queue{&node};
  std::unordered_set<const Node*> seen{&node};
  for (std::size_t i = 0; i < queue.size() && i < most; ++i) {
    if (const StackFrame* frame = frame_of(*queue[i]); frame && !is_of_torch(*frame)) return frame;
    std::vector<const Node*> near(queue[i]->users().begin(), queue[i]->users().end());
    for (const Node* input : queue[i]->inputs()) near.push_back(input);
    for (const Node* next : near)
      if (seen.insert(next).second) queue.push_back(next);
  }
  return nullptr;
}

}  // namespace partita
