#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/library/draft.h"
#include "core/ir/graph.h"
#include "core/sym/shape_env.h"
#include "core/tensor/value.h"

namespace partita::codegen {

/// The graphs of a library.
enum class LibraryRole : std::uint8_t { Forward, Backward, Constants };

struct PartsRequest {
  const Graph& graph;
  LibraryRole role;
  const std::map<std::string, SymRange>& ranges;  ///< of sizes, as the program gives them
  /// Values of the graph's inputs. It is asked for them when values decide sizes, for which the example then stands.
  std::function<Result<std::vector<Value>>()> example;
};

/// Compiles a graph of a library for each of the draft's instruction sets and for all sizes that its guards permit,
/// part by part; what has no such code after a size that values decide is interpreted. Returns what is promised of the
/// results. Errors compile.dynamic, and those of plans and of the example.
Result<std::vector<Meta>> compile_parts(LibraryDraft& draft, const PartsRequest& request);

}  // namespace partita::codegen
