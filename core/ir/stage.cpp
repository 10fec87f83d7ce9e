#include "core/ir/stage.h"

namespace partita {

const StageRow& row_of(Stage stage) {
  static constexpr StageRow rows[] = {
#define STAGE(name, text, rules, passes, before, after, ...) {text, GraphRules::rules, passes, before, after},
#include "core/ir/flow.def"
#undef STAGE
  };
  return rows[static_cast<unsigned char>(stage)];
}

}  // namespace partita
