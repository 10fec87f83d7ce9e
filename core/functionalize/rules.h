#pragma once
#include "core/ir/verify.h"

namespace partita {

/// How far a graph has come; each stage keeps the rules of those before it.
enum class Stage : unsigned char {
  Aten,  ///< every call is of an ATen operator with a schema or of another library, or is getitem or arithmetic on
         ///< symbolic integers; the metas of all operators that have a record are known
  Functional,  ///< nothing writes, but for a copy_ epilogue onto placeholders
  Joint,  ///< placeholders primals_* then tangents_*; at least a gradient or None per primal, of its rank and dtype
};

/// Structure, then the rules of the stage. Collects every violation; a pass may not leave one behind.
std::vector<Diagnostic> verify(const Graph& graph, Stage stage);

/// Called where a graph reaches a stage: while verification() is on, the first violation as an internal error, the
/// others in its notes.
Status check_stage(const Graph& graph, Stage stage);

}  // namespace partita
