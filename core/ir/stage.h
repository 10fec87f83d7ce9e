#pragma once
#include <string_view>

namespace partita {

/// What holds for a graph, which verify(graph, stage) checks (core/functionalize/stage_rules.h). Each keeps the rules
/// of those before it.
enum class GraphRules : unsigned char {
  Structure,  ///< verify(graph)
  Aten,       ///< every call is of an ATen operator with a schema or of another library, or is getitem or arithmetic on
              ///< symbolic integers; the metas of all operators that have a record are known
  Functional,  ///< nothing writes, but for a copy_ epilogue onto placeholders
  Joint,  ///< placeholders primals_* then tangents_*; at least a gradient or None per primal, of its rank and dtype
};

/// How far a graph has come: the rows of flow.def, in order.
enum class Stage : unsigned char {
#define STAGE(name, ...) name,
#include "core/ir/flow.def"
#undef STAGE
};

/// A row of flow.def, which says what the columns are.
struct StageRow {
  std::string_view name;
  GraphRules rules;
  std::string_view passes;
  const char *before, *after;
};
/// The row of a stage.
const StageRow& row_of(Stage stage);

}  // namespace partita
