#include "core/aot/dump_folder.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/output.h"
#include "core/base/text.h"
#include "core/ir/print.h"
#include "core/load/pickle.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

std::string indented(std::string_view text, std::string_view by) {
  std::string out;
  for (const std::string_view line : lines_of(text)) {
    if (!line.empty()) out += by;
    out += line;
    out += '\n';
  }
  return out;
}

}  // namespace

Status write_module_folder(const Graph& graph, const std::string& folder, const std::string& module_name) {
  if (!graph.children.empty())
    return unsupported("dump.sub_graph", "a graph with sub graphs (cond, while_loop) cannot be written as a module",
                       Where{.graph = graph.name});
  const fs::path path = folder;
  TRY_DO(make_folder(path.string()));
  std::vector<std::pair<std::string, Tensor>> state(graph.attributes.begin(), graph.attributes.end());
  TRY_DO(save_state_dict((path / "state_dict.pt").string(), state));
  std::string text = fmt::format(
      "\nimport os\nimport torch\nfrom math import inf\nfrom math import nan\nNoneType = type(None)\nimport torch\n"
      "from torch import device\nimport torch.fx._pytree as fx_pytree\nimport torch.utils._pytree as pytree\n\n"
      "from torch.nn import *\nclass {}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n",
      module_name);
  for (const auto& [name, tensor] : state)
    text += fmt::format("        self.register_buffer({}, torch.empty([{}], dtype=torch.{}))\n", print(Arg(name)),
                        fmt::join(tensor.sizes, ", "), torch_name(tensor.dtype));
  text += "        self.load_state_dict(torch.load(os.path.join(os.path.dirname(__file__), 'state_dict.pt')))\n";
  text += indented(plain_code(graph), "    ");
  TRY_DO(write_file((path / "module.py").string(), text));
  return write_file((path / "__init__.py").string(), "from .module import *");
}

Status dump_graph(const Graph& graph, const std::string& folder, const std::string& name, const std::string& type,
                  int index, const std::vector<Value>* example_inputs) {
  const std::string stem = fmt::format("{}_{}_{}", name, type, index);
  const fs::path path = fs::path(folder) / name / stem;
  TRY_DO(write_module_folder(graph, path.string()));
  std::vector<Meta> metas;
  for (const Node* node : graph.placeholders()) {
    const SymExpr* e = node->meta.sym();
    const auto hint = e ? graph.shapes->hint(*e) : std::nullopt;
    metas.push_back(hint ? Meta(SymExpr(*hint)) : node->meta);
  }
  TRY(const std::string input, write_dumped_inputs(metas));
  TRY_DO(write_file((path / (stem + ".input")).string(), input));
  if (!example_inputs) return {};
  std::vector<Tensor> tensors;
  for (const Value& v : *example_inputs) {
    const auto* t = v.get<Tensor>();
    if (!t) return unsupported("dump.inputs", "example inputs that are not tensors cannot be written");
    tensors.push_back(*t);
  }
  return save_tensor_list((path / (stem + ".pt")).string(), tensors);
}

}  // namespace partita
