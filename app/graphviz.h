#pragma once
#include <chrono>
#include <string>

#include "core/base/result.h"

namespace partita {

/// More nodes take Graphviz minutes, or its stack (design: our own layout draws those).
inline constexpr std::size_t max_graphviz_nodes = 300;

/// Runs `dot -TFORMAT` in a child process and returns what it writes. Errors graphviz.missing, graphviz.time_limit,
/// graphviz.failed; the child is killed at the limit.
Result<std::string> run_graphviz(const std::string& dot, const std::string& format, std::chrono::seconds limit);

}  // namespace partita
