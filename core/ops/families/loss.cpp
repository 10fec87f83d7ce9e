#include "core/ops/families/loss.h"

namespace partita {

void register_loss(OpTable& t) {
  t.add_without_record({"cross_entropy"});
  register_pointwise_losses(t);
  register_nll_loss(t);
  register_margin_losses(t);
  register_loss_composites(t);
  register_distance_losses(t);
}

}  // namespace partita
