#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// GraphModule.to_folder(folder, module_name): __init__.py, module.py and state_dict.pt, which PyTorch imports. Makes
/// the folder. The class reads its state_dict beside itself.
Status write_module_folder(const Graph& graph, const std::string& folder, const std::string& module_name = "FxModule");

/// What torch._functorch's graph_dumper_aot writes of one graph: the folder NAME_TYPE_INDEX under folder/name with the
/// module and NAME_TYPE_INDEX.input, and, with example inputs, NAME_TYPE_INDEX.pt.
Status dump_graph(const Graph& graph, const std::string& folder, const std::string& name, const std::string& type,
                  int index, const std::vector<Value>* example_inputs = nullptr);

}  // namespace partita
