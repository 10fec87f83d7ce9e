#include "codegen/stored_graph.h"

#include <algorithm>

#include "core/ops/catch_raised.h"

namespace partita {

template <class A>
void fields(A& a, StoredGraph::Placeholder& p) {
  a(p.name, p.target, p.note, p.meta);
}
template <class A>
void fields(A& a, StoredGraph::Variant& v) {
  a(v.symbolic, v.fixed, v.guards, v.program, v.code);
}
template <class A>
void fields(A& a, StoredGraph& g) {
  a(g.name, g.placeholders, g.keeps_symbols, g.why_not, g.variants, g.fitting, g.constants);
}

namespace {
constexpr std::string_view heading = "PTF1";
}

Result<std::string> to_bytes(StoredGraph graph) {
  ArchiveWriter writer;
  try {
    writer(graph);
  } catch (Diagnostic& refusal) {
    return std::move(refusal);
  }
  return std::string(heading) + writer.bytes;
}

Result<StoredGraph> read_stored_graph(std::string_view bytes) {
  return catch_raised<StoredGraph>([&]() -> Result<StoredGraph> {
    StoredGraph graph;
    ArchiveReader reader(bytes.substr(std::min(bytes.size(), heading.size())));
    reader(graph);
    if (!bytes.starts_with(heading) || !reader.complete())
      return input_error("cache.entry", "the stored entry is damaged");
    return graph;
  });
}

std::vector<StoredGraph::Placeholder> placeholders_of(const Graph& graph) {
  std::vector<StoredGraph::Placeholder> out;
  for (const Node* n : graph.placeholders()) out.push_back({n->name(), n->target, n->note, n->meta});
  return out;
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
