#include "core/passes/pass.h"

namespace partita {

#define PASS(function, stage, description) Result<bool> function(Graph&, PassContext&);
#include "core/passes/passes.def"
#undef PASS

std::span<const Pass> all_passes() {
  static constexpr Pass table[] = {
#define PASS(function, stage, description) {function, #function, PassStage::stage, description},
#include "core/passes/passes.def"
#undef PASS
  };
  return table;
}

std::string_view stage_name(PassStage stage) {
  switch (stage) {
    case PassStage::PreGrad:
      return "pre_grad";
    case PassStage::Joint:
      return "joint";
    case PassStage::Freezing:
      return "freezing";
    case PassStage::PostGrad:
      return "post_grad";
  }
  return {};
}

}  // namespace partita
