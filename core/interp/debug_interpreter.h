#pragma once
#include <string>
#include <vector>

#include "core/interp/interpreter.h"
#include "core/interp/symbols.h"

namespace partita {

/// A value that differs from its node's meta.
struct MetaMismatch {
  std::string graph, node, origin;
  int output = 0;               ///< index of the leaf in the node's value
  std::string what;             ///< "dtype", "sizes", "strides", "value", "count"
  std::string expected, found;  ///< in the words of PyTorch's DebugInterpreter
  std::string symbols;          ///< values of symbols at that time: "{s75: 5}"

  /// "output 0 where {}: torch.float32 != torch.float64", as PyTorch words it.
  std::string message() const;
};

struct DebugRun {
  std::vector<Value> outputs;
  std::vector<MetaMismatch> mismatches;  ///< all of them, in execution order
};

/// Runs interpret() and compares each node's dtype, sizes and significant strides (of dimensions of size > 1 of
/// non-empty tensors) with its meta, using the actual values of symbols. Goes on after a mismatch. Also calls
/// `options.observer`.
Result<DebugRun> debug_interpret(const Graph& graph, std::vector<Value> inputs, const InterpOptions& options = {});

/// Makes one error of all mismatches: exit code 1, the first in the message, the others in the notes. Precondition: not
/// empty.
Diagnostic mismatch_error(const std::vector<MetaMismatch>& mismatches);

}  // namespace partita
