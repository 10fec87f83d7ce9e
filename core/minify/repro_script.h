#pragma once
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/minify/repro.h"
#include "core/tensor/value.h"

namespace partita::minify {

/// A Python script around the FX text of a graph whose class is GraphModule. It reads inputs.safetensors beside it,
/// runs the graph eagerly and by the backend that `text` names or `--backend NAME` or `--backend FILE.py:FUNCTION`, and
/// compares the results as PyTorch's accuracy minifier does. A graph of ATen calls goes to inductor as AOTAutograd
/// would hand it over, with the graph's symbols. Exit code 0 when they agree, 1 when not.
std::string repro_script(const Graph& graph, const std::vector<Value>& inputs, const ReproText& text);

}  // namespace partita::minify
