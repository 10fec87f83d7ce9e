#pragma once
// Why dynamo ended a graph or compiled a function again, as the records of a trace log say in words.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/ir/graph.h"

namespace partita {

/// A graph that ended before its function did (dynamo_graph_break_reason; torch/_dynamo/symbolic_convert.py).
struct GraphBreak {
  StackFrame at;                   ///< the line of the program; no file: the text names none
  std::string reason;              ///< "Unsupported Tensor.item() call with capture_scalar_outputs=False"
  std::string explanation;         ///< empty in logs of older versions
  std::vector<std::string> hints;  ///< what would avoid it
  bool runs_in_eager = false;      ///< the whole function, since it could not be cut here
};
/// Reads what dynamo wrote of a break.
GraphBreak read_graph_break(std::string_view text);

/// A compilation that ended with an exception.
struct CompileFailure {
  std::string type;  ///< "Unsupported", "BackendCompilerFailed"
  GraphBreak why;
};
/// From the metrics at the end of a compilation (compilation_metrics); nullopt where it did not fail.
std::optional<CompileFailure> read_compile_failure(const nlohmann::json& metrics);

/// A guard of earlier compiled code that did not hold, so that the function was compiled again (recompile_reasons;
/// torch/_dynamo/guards.py).
struct FailedGuard {
  std::string earlier;  ///< the compilation that it guards, "0/0"; empty: not said
  std::string guard;    ///< "tensor 'x' size mismatch at index 0. expected 8, actual 12"
  StackFrame at;        ///< the line of the program that made the guard; no file: not said
};
/// All of one recompilation, the newest code first. `text`: a JSON list of reasons, or one reason as it is.
std::vector<FailedGuard> read_recompile_reasons(std::string_view text);

}  // namespace partita
