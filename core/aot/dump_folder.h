#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// GraphModule.to_folder(folder, module_name): writes __init__.py, module.py and state_dict.pt, which PyTorch can
/// import. Makes the folder. The class reads the state_dict from its own folder.
Status write_module_folder(const Graph& graph, const std::string& folder, const std::string& module_name = "FxModule");

/// Writes what torch._functorch's graph_dumper_aot writes for one graph: a folder NAME_TYPE_INDEX under folder/name
/// with the module, NAME_TYPE_INDEX.input and, if there are example inputs, NAME_TYPE_INDEX.pt.
Status dump_graph(const Graph& graph, const std::string& folder, const std::string& name, const std::string& type,
                  int index, const std::vector<Value>* example_inputs = nullptr);

}  // namespace partita
