#pragma once
#include "core/ops/record.h"

namespace partita {

/// fft_composites.cpp: the operators of torch.fft.
void add_fft_composites(OpTable& t);

}  // namespace partita
