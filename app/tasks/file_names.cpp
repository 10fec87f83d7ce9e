#include "app/tasks/file_names.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/diff/match_nodes.h"

namespace partita {

std::unique_ptr<Graph> FileNames::forward(const Graph& graph) {
  std::unique_ptr<Graph> named = graph.clone();
  const NodeMatch match(file_, *named);
  std::map<std::string, std::string> wanted;
  for (const Node* node : *named)
    if (const Node* other = match.in_a(node); other && node->op()->is_call() && other->op() == node->op())
      wanted.emplace(node->name(), other->name());
  rename(*named, wanted);
  for (const Node* before : graph) ops_.emplace(before->name(), before->op());
  return named;
}

std::unique_ptr<Graph> FileNames::backward(const Graph& graph) {
  std::unique_ptr<Graph> named = graph.clone();
  std::map<std::string, std::string> wanted;
  for (const Node* node : *named) {
    const auto op = ops_.find(node->name());
    const auto name = new_names_.find(node->name());
    if (op != ops_.end() && name != new_names_.end() && (node->is_placeholder() || op->second == node->op()))
      wanted.insert(*name);
  }
  rename(*named, wanted);
  return named;
}

/// `wanted`: new names by old ones.
void FileNames::rename(Graph& graph, const std::map<std::string, std::string>& wanted) {
  std::set<std::string> taken;
  for (const auto& [from, to] : wanted) taken.insert(to);
  std::vector<std::pair<Node*, std::string>> changed;
  for (Node* node : graph) {
    const auto to = wanted.find(node->name());
    const Node* other = node->op()->is_call() && to == wanted.end() ? file_.find(node->name()) : nullptr;
    const bool means_other = other && other->op() != node->op() && other->op()->kind == OpKind::Torch;
    if (to != wanted.end() && to->second != node->name()) changed.emplace_back(node, to->second);
    if (to == wanted.end() && (taken.contains(node->name()) || means_other)) changed.emplace_back(node, "");
  }
  for (auto& [node, name] : changed) {
    const std::string before = node->name();
    graph.rename(node, "renamed");  // sets its name free
    if (name.empty()) name = free_name(graph, taken, std::string(node->op()->brief()));
    new_names_[before] = name;
    taken.insert(name);
  }
  for (const auto& [node, name] : changed) {
    graph.rename(node, name);
    if (node->is_placeholder()) node->target = name;  // text gives it the name of its parameter
  }
}

std::string FileNames::free_name(const Graph& graph, const std::set<std::string>& taken,
                                 const std::string& stem) const {
  for (int k = 1;; ++k)
    if (std::string name = fmt::format("{}_{}", stem, k);
        !taken.contains(name) && !graph.find(name) && !file_.find(name))
      return name;
}

}  // namespace partita
