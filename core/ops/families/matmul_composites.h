#pragma once
#include "core/ops/record.h"

namespace partita {

/// Registers linear, matmul, einsum and similar operators, which decompose to products.
void register_matmul_composites(OpTable& t);

}  // namespace partita
