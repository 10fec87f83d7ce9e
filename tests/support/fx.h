#pragma once
#include <cctype>
#include <memory>
#include <stdexcept>
#include <string>

#include "core/ir/graph.h"
#include "core/ir/print.h"
#include "core/load/fx_text.h"

namespace partita::testing {

/// Shorthand of the tests: "$sin(" is torch.ops.aten.sin.default(, "$add.Tensor(" is torch.ops.aten.add.Tensor(, and a
/// type in angle brackets is a CPU annotation: "x: <f32[2][1]>".
inline std::string expand(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$') {
      std::size_t end = i + 1;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' || text[end] == '.'))
        ++end;
      const std::string name = text.substr(i + 1, end - i - 1);
      out += "torch.ops.aten." + name + (name.find('.') == std::string::npos ? ".default" : "");
      i = end - 1;
    } else if (text[i] == '<' && text.find(">", i) != std::string::npos && text[i + 1] != ' ') {
      const std::size_t end = text.find('>', i);
      out += "\"" + text.substr(i + 1, end - i - 1) + "cpu\"";
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Makes a graph of parameters and body. Throws when the text does not parse, so that the test fails with the reason.
inline std::unique_ptr<Graph> fx(const std::string& parameters, const std::string& lines,
                                 const std::string& children = {}) {
  std::string text = "class GraphModule(torch.nn.Module):\n    def forward(self" +
                     (parameters.empty() ? "" : ", " + parameters) + "):\n";
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    text += "        " + lines.substr(at, end - at) + "\n";
    at = end + 1;
  }
  text = expand(text + children);
  auto graph = parse_fx_text(text);
  if (!graph) throw std::runtime_error(graph.error().line() + "\n" + text);
  return *std::move(graph);
}

/// The statements without annotations, one per line.
inline std::string body(const Graph& graph) {
  std::string text;
  for (const Node* node : graph)
    if (!node->is_placeholder())
      text += print(*node, {.annotations = false, .origins = false, .deletions = false}) + "\n";
  return text;
}

}  // namespace partita::testing
