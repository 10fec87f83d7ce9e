#include "core/ir/verify.h"

#include <algorithm>
#include <unordered_set>

namespace partita {

std::vector<Diagnostic> verify(const Graph& graph) {
  std::vector<Diagnostic> found;
  auto report = [&](const Node* node, std::string what) {
    Diagnostic d{Fault::Internal, "ir.verify", std::move(what)};
    d.where.graph = graph.name;
    if (node) d.where.node = node->name();
    found.push_back(std::move(d));
  };
  std::unordered_set<const Node*> defined;
  std::unordered_set<std::string> names;
  std::vector<std::vector<const Node*>> readers(graph.id_limit());
  bool calls_begun = false;
  std::size_t outputs = 0;
  for (Node* node : graph) {
    if (!names.insert(node->name()).second) report(node, "two nodes have this name");
    if (node->is_placeholder() && calls_begun) report(node, "a placeholder after the first call");
    calls_begun |= !node->is_placeholder() && !node->is(Op::get_attr());
    outputs += node->is_output();
    if (node->is_output() && node->next()) report(node, "the output is not the last node");
    for (Node* input : node->inputs()) {
      if (&input->graph() != &graph) {
        report(node, "reads " + input->name() + " of another graph");
        continue;
      }
      if (!defined.contains(input)) report(node, "reads " + input->name() + " before it is computed");
      readers[input->id()].push_back(node);
    }
    defined.insert(node);
  }
  for (Node* node : graph) {
    std::vector<const Node*> listed(node->users().begin(), node->users().end());
    std::sort(listed.begin(), listed.end());
    std::sort(readers[node->id()].begin(), readers[node->id()].end());
    if (listed != readers[node->id()]) report(node, "the list of users differs from the arguments");
  }
  if (outputs != 1) report(nullptr, outputs == 0 ? "no output" : "more than one output");
  for (const auto& [target, child] : graph.children) {
    std::vector<Diagnostic> inner = verify(*child);
    found.insert(found.end(), inner.begin(), inner.end());
  }
  return found;
}

}  // namespace partita
