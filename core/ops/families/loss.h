#pragma once
#include "core/ops/record.h"

namespace partita {

enum class Reduction : std::int64_t { None = 0, Mean = 1, Sum = 2 };

void register_pointwise_losses(OpTable& t);
void register_nll_loss(OpTable& t);
void register_margin_losses(OpTable& t);
void register_loss_composites(OpTable& t);
void register_distance_losses(OpTable& t);

}  // namespace partita
