#pragma once
#include <string>
#include <vector>

#include "core/interp/interpreter.h"
#include "core/interp/symbols.h"

namespace partita {

/// A value that is not what its node's meta promises.
struct MetaMismatch {
  std::string graph, node, origin;
  int output = 0;               ///< which leaf of the node's value
  std::string what;             ///< "dtype", "sizes", "strides", "value", "count"
  std::string expected, found;  ///< as PyTorch's DebugInterpreter writes them
  std::string symbols;          ///< "{s75: 5}" at that time

  /// "output 0 where {}: torch.float32 != torch.float64", PyTorch's words.
  std::string message() const;
};

struct DebugRun {
  std::vector<Value> outputs;
  std::vector<MetaMismatch> mismatches;  ///< all of them, in execution order
};

/// interpret() that holds each node's dtype, sizes and significant strides (dimensions of size > 1 of non-empty
/// tensors) against its meta with the symbols' values put in. Goes on after a mismatch. `options.observer` is called as
/// well.
Result<DebugRun> debug_interpret(const Graph& graph, std::vector<Value> inputs, const InterpOptions& options = {});

/// One failure for all of them: exit 1, the first in the message, the rest in the notes. Precondition: not empty.
Diagnostic mismatch_error(const std::vector<MetaMismatch>& mismatches);

}  // namespace partita
