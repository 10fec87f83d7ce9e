#include "core/ops/families/norm.h"

namespace partita {

void register_norm(OpTable& t) {
  register_layer_norm(t);
  register_batch_norm(t);
  register_group_norm(t);
}

}  // namespace partita
