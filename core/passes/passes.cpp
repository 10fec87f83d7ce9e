#include "core/passes/pass.h"

namespace partita {

#define PASS(function, ...) Result<bool> function(Graph&, PassContext&);
#include "core/passes/passes.def"
#undef PASS

std::span<const Pass> all_passes() {
  static constexpr Pass table[] = {
#define PASS(function, stage, ...) {function, #function, PassStage::stage, __VA_ARGS__},
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

std::string_view stage_name(PassStage stage) {
  switch (stage) {
    case PassStage::PreGrad:
      return "pre_grad";
    case PassStage::Functional:
      return "functional";
    case PassStage::Joint:
      return "joint";
    case PassStage::Freezing:
      return "freezing";
    case PassStage::Constants:
      return "constants";
    case PassStage::PostGrad:
      return "post_grad";
  }
  return {};
}

}  // namespace partita
