#pragma once
// Random graphs over the operator records, with inputs they run on.
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
  std::unique_ptr<Graph> graph;  ///< functional ATen calls, annotated
  std::vector<Value> inputs;     ///< of random dtypes, sizes (0 and 1 too) and strides (transposed, gaps, expanded)
};

/// The same graph for the same seed. Each call is accepted only when it can be inferred and evaluated: what is
/// wrong with the graph afterwards is a difference. `only` is part of the names of the operators to call.
/// `trying` sees each call before it is tried: it may crash.
Case generate(std::uint64_t seed, std::string_view only = {}, const std::function<void(const Node&)>& trying = {});
/// The operators it may call.
std::vector<std::string> candidates(std::string_view only = {});

}  // namespace partita::fuzz
