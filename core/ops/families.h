#pragma once
#include "core/ops/record.h"

namespace partita {

// V(name, family): register_NAME in core/ops/families/NAME.cpp; families.cpp calls them all. Records that neither say
// their family (colours and legends) nor let it be derived take the one here.
#define PARTITA_FAMILY_FILES(V) \
  V(pointwise, Pointwise)       \
  V(compare, Pointwise)         \
  V(reduce, Reduction)          \
  V(view, View)                 \
  V(factory, Index)             \
  V(cast, View)                 \
  V(random, Random)             \
  V(symint, Other)              \
  V(matmul, Matmul)             \
  V(conv, Matmul)               \
  V(norm, Reduction)            \
  V(pool, Reduction)            \
  V(index, Index)               \
  V(softmax, Reduction)         \
  V(loss, Reduction)            \
  V(sort, Reduction)            \
  V(embedding, Index)           \
  V(attention, Matmul)          \
  V(grouped_mm, Matmul)         \
  V(composite, Other)           \
  V(pad, Index)                 \
  V(embedding_bag, Index)       \
  V(upsample, Index)            \
  V(grid_sampler, Index)        \
  V(affine_grid, Other)         \
  V(fold, Index)                \
  V(shuffle, Index)             \
  V(glu, Pointwise)             \
  V(rrelu, Random)              \
  V(sample, Random)             \
  V(inductor_random, Random)    \
  V(dropout, Random)            \
  V(bilinear, Matmul)           \
  V(quantized, Matmul)          \
  V(torchao, Pointwise)         \
  V(ctc_loss, Reduction)        \
  V(rnn, Matmul)                \
  V(fft, Other)                 \
  V(linalg, Other)

#define V(name, family) void register_##name(OpTable& table);
PARTITA_FAMILY_FILES(V)
#undef V

void register_families(OpTable& table);

}  // namespace partita
