#pragma once
#include "core/ops/record.h"

namespace partita {

void register_advanced_index(OpTable& t);
void register_gather_scatter(OpTable& t);
void register_index_along(OpTable& t);
void register_masked(OpTable& t);

}  // namespace partita
