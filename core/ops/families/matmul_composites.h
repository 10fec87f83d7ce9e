#pragma once
#include "core/ops/record.h"

namespace partita {

/// linear, matmul, einsum and their kin, which decompose into products.
void register_matmul_composites(OpTable& t);

}  // namespace partita
