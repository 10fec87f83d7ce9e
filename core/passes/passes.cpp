#include "core/passes/pass.h"

namespace partita {

#define PASS(function, ...) Result<bool> function(Graph&, PassContext&);
#include "core/passes/passes.def"
#undef PASS

std::span<const Pass> all_passes() {
  static constexpr Pass table[] = {
#define PASS(function, stage, ...) {function, #function, Stage::stage, __VA_ARGS__},
#include "core/passes/passes.def"
#undef PASS
  };
  return table;
}

bool PassContext::may_rewrite(std::string_view rule, const Node& node) {
  if (rewrites.size() >= rewrite_limit) return false;
  rewrites.push_back({std::string(rule), node.graph().name, node.name()});
  return true;
}

}  // namespace partita
