#pragma once
#include "core/ops/record.h"

namespace partita {

void register_layer_norm(OpTable& t);
void register_batch_norm(OpTable& t);
void register_group_norm(OpTable& t);

}  // namespace partita
