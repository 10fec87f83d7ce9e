#include <fmt/format.h>

#include "core/ir/fx_dot.h"

namespace partita {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string_view fill_color(const Node& node) {
  switch (node.op()->kind) {
    case OpKind::Placeholder:
      return "#dbeafe";
    case OpKind::GetAttr:
      return "#fef3c7";
    case OpKind::Output:
      return "#dcfce7";
    default:
      return "#f8fafc";
  }
}

std::string label(const Node& node) {
  std::string out = node.name();
  std::string_view op = node.op()->name;
  if (node.op()->is_call()) out += fmt::format("\n{}{}", node.op()->kind == OpKind::Method ? "." : "", op);
  if (node.is(Op::get_attr())) out += "\nself." + node.target;
  if (std::string type = annotation(node.meta); !type.empty()) out += "\n" + type;
  return out;
}

void body(const Graph& graph, const std::string& prefix, const std::string& indent, std::string& out) {
  for (Node* node : graph) {
    out += fmt::format("{}\"{}{}\" [label=\"{}\", fillcolor=\"{}\"];\n", indent, escaped(prefix), escaped(node->name()),
                       escaped(label(*node)), fill_color(*node));
    for (Node* input : node->inputs())
      out += fmt::format("{}\"{}{}\" -> \"{}{}\";\n", indent, escaped(prefix), escaped(input->name()), escaped(prefix),
                         escaped(node->name()));
  }
  for (const auto& [target, child] : graph.children) {
    out += fmt::format("{}subgraph \"cluster_{}{}\" {{\n{}  label=\"{}\";\n", indent, escaped(prefix), escaped(target),
                       indent, escaped(target));
    body(*child, prefix + target + ".", indent + "  ", out);
    out += indent + "}\n";
  }
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string out = fmt::format("digraph \"{}\" {{\n", escaped(graph.name));
  out += "  node [shape=box, style=\"filled,rounded\", fontname=\"DejaVu Sans\", fontsize=10];\n";
  body(graph, "", "  ", out);
  return out + "}\n";
}

}  // namespace partita
