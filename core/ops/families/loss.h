#pragma once
#include "core/ops/record.h"

namespace partita {

enum class Reduction : std::int64_t { None = 0, Mean = 1, Sum = 2 };

/// Applies the call's `reduction`: returns the losses, their mean or their sum (apply_loss_reduction, native/Loss.cpp).
Node* reduced(DecomposeCall& c, Node* losses);

void register_pointwise_losses(OpTable& t);
void register_nll_loss(OpTable& t);
void register_margin_losses(OpTable& t);
void register_loss_composites(OpTable& t);
void register_distance_losses(OpTable& t);

}  // namespace partita
