#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita::schedule {

/// Copies the graph for one set of sizes: metas without symbols, symbolic arguments as numbers. Symbols that `sizes`
/// does not name take their hints. Errors: schedule.symbol (exit 3) when a value is known only at run time;
/// schedule.sizes, or the operator's error, when sizes contradict one another.
Result<std::unique_ptr<Graph>> specialise(const Graph& graph, const std::map<std::string, std::int64_t>& sizes);

/// Copies the graph with these symbols as numbers, in metas and arguments; other symbols stay. Error schedule.symbol
/// when a size is then no number, or beyond 64 bits.
Result<std::unique_ptr<Graph>> fix_symbols(const Graph& graph, const std::map<std::string, std::int64_t>& sizes);

}  // namespace partita::schedule
