#include "core/passes/pass.h"

namespace partita {

#define PASS(function, stage, description) Result<bool> function(Graph&, PassContext&);
#include "core/passes/passes.def"
#undef PASS

std::span<const Pass> all_passes() {
  static constexpr Pass table[] = {
#define PASS(function, stage, description) {function, #function, Stage::stage, description},
#include "core/passes/passes.def"
#undef PASS
  };
  return table;
}

std::string_view stage_name(Stage stage) {
  switch (stage) {
    case Stage::PreGrad:
      return "pre_grad";
    case Stage::Joint:
      return "joint";
    case Stage::PostGrad:
      return "post_grad";
  }
  return {};
}

}  // namespace partita
