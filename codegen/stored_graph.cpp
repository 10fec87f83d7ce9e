#include "codegen/stored_graph.h"

#include "core/base/mapped.h"
#include "core/store/graph_entry.h"

namespace partita {

void fields(auto& a, StoredGraph::Placeholder& p) {
  a(p.name, p.target, p.note, p.meta);
}
void fields(auto& a, StoredGraph::Variant& v) {
  a(v.symbolic, v.fixed, v.guards, v.program, v.code);
}
void fields(auto& a, StoredGraph::Split& s) {
  a(s.call, s.before, s.after, s.before_inputs, s.call_inputs, s.after_inputs);
}
void fields(auto& a, StoredGraph& g) {
  a(g.name, g.placeholders, g.split, g.knows_sizes, g.keeps_symbols, g.why_not, g.variants, g.fitting, g.guards,
    g.constants);
}

namespace {
constexpr std::string_view heading = "PTF3";
}

Result<std::string> payload_bytes(StoredGraph graph) {
  return to_bytes(heading, std::move(graph));
}

Result<StoredGraph> read_stored_graph(std::string_view bytes) {
  if (auto graph = from_bytes<StoredGraph>(heading, bytes)) return *std::move(graph);
  return damaged_entry();
}

std::vector<StoredGraph::Placeholder> placeholders_of(const Graph& graph) {
  return mapped(graph.placeholders(),
                [](const Node* n) { return StoredGraph::Placeholder{n->name(), n->target, n->note, n->meta}; });
}

std::unique_ptr<Graph> signature(const std::string& name, const std::vector<StoredGraph::Placeholder>& placeholders) {
  auto graph = std::make_unique<Graph>(name);
  for (const StoredGraph::Placeholder& p : placeholders) {
    Node* node = graph->placeholder(p.name, p.meta);
    node->target = p.target;
    node->note = p.note;
  }
  return graph;
}

}  // namespace partita
