#pragma once
#include "core/ops/record.h"

namespace partita {

// One function for each file of core/ops/families. families.cpp calls all of them.
#define PARTITA_FAMILIES(V)                                                                                           \
  V(pointwise)                                                                                                        \
  V(compare)                                                                                                          \
  V(reduce)                                                                                                           \
  V(view)                                                                                                             \
  V(factory)                                                                                                          \
  V(cast) V(random) V(symint) V(matmul) V(conv) V(norm) V(pool) V(index) V(softmax) V(loss) V(sort) V(embedding)      \
      V(attention) V(composite) V(pad) V(embedding_bag) V(upsample) V(grid_sampler) V(affine_grid) V(fold) V(shuffle) \
          V(glu) V(rrelu) V(sample) V(inductor_random) V(dropout) V(bilinear) V(ctc_loss) V(rnn) V(fft) V(linalg)

#define V(family) void register_##family(OpTable& table);
PARTITA_FAMILIES(V)
#undef V

void register_families(OpTable& table);

}  // namespace partita
