#pragma once
// Makes random graphs of the operators with records, and inputs for them.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita::fuzz {

struct Case {
  std::unique_ptr<Graph> graph;     ///< functional ATen calls, annotated
  std::vector<Value> inputs;        ///< of random dtypes, sizes (0 and 1 too) and strides (transposed, gaps, expanded)
  std::vector<Value> other_inputs;  ///< if symbols are in it: inputs with other integers and sizes; else empty
};

/// Makes a random graph; equal seeds give equal graphs. A third of the seeds give graphs with symbolic sizes and
/// integers of either sign, a third graphs whose calls get tensors of different dtypes. A call is accepted only if it
/// can be inferred and evaluated, so anything that is wrong with the graph later is a difference. `only` is part of the
/// names of the operators to call. `trying` is called before each call is tried, because it may crash.
Case generate(std::uint64_t seed, std::string_view only = {}, bool symbols = true,
              const std::function<void(const Node&)>& trying = {});
/// The operators that generate() may call.
std::vector<std::string> candidates(std::string_view only = {});

}  // namespace partita::fuzz
