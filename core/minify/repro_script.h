#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace partita::minify {

/// A Python script around the FX text of a graph whose class is GraphModule. It reads inputs.safetensors beside it,
/// runs the graph eagerly and through torch.compile with `--backend NAME` or `--backend FILE.py:FUNCTION`, and compares
/// the results as PyTorch's accuracy minifier does. Exit code 0 when they agree, 1 when not. `numbers`: the indices of
/// inputs that are not tensors.
std::string repro_script(const std::string& graph, const std::vector<std::size_t>& numbers, double tolerance);

}  // namespace partita::minify
