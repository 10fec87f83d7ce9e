#pragma once
#include <string_view>
#include <vector>

#include "core/ir/op.h"

namespace partita {

/// What operators that run sub graphs, or an operator in the order of effect tokens, do with them.
enum class Control : unsigned char { Cond, WhileLoop, Map, Scan, Wrapper, GradMode, Autocast, InvokeSubgraph, WithEffects };

struct ControlOp {
  std::string_view name;
  Control kind;
  // Where metas follow from the sub graphs:
  std::size_t body = 0;                    ///< argument that holds the sub graph whose results count
  std::vector<std::size_t> graphs = {};    ///< arguments that are sub graphs
  std::vector<std::size_t> operands = {};  ///< list arguments that become the sub graphs' placeholders, in order
};
/// Null for all other operators.
const ControlOp* find_control(const Op* op);

/// torch._C._set_grad_enabled
const Op* set_grad_enabled();
/// A call of Python that begins or ends an autocast region.
bool is_autocast(const Op* op);

}  // namespace partita
