#pragma once
#include <memory>

#include "core/ops/lower_call.h"
#include "core/ops/record.h"

// The lowerings that records name in `.lower`; each file lower_FAMILY.cpp holds a family. Compound operators (softmax,
// normalisation, variance) become several definitions over the same rows, which the scheduler fuses.
namespace partita::loops {

#define PARTITA_LOWERINGS(V)                                                                                         \
  /* view */ V(alias) V(reshape) V(expand) V(permute) V(t) V(transpose) V(select) V(slice) V(split) V(split_sizes)   \
      V(unbind) V(as_strided) V(diagonal) /* arrange */ V(flip) V(roll) V(repeat) V(cat) V(stack) V(pad) V(          \
          slice_scatter) V(select_scatter) V(slice_backward) V(select_backward) /* factory */ V(full) V(full_like)   \
          V(zeros) V(ones) V(arange) V(iota) V(tril) V(triu) V(copy) V(copy_from) V(fill) V(eye) /* reduce */ V(sum) \
              V(mean) V(prod) V(amax) V(amin) V(max_dim) V(min_dim) V(any) V(all) V(argmax) V(argmin) V(var)         \
                  V(var_mean) V(std) V(logsumexp) V(vector_norm) /* softmax */ V(softmax) V(log_softmax)             \
                      V(softmax_backward) V(log_softmax_backward) /* norm */ V(layer_norm) V(layer_norm_backward)    \
                          V(group_norm) V(batch_norm) V(batch_norm_functional) V(batch_norm_inference)               \
                              V(batch_norm_backward) V(rms_norm) /* index */ V(embedding) V(embedding_backward)      \
                                  V(index_select) V(gather) V(index) V(index_put) V(scatter) V(scatter_add)          \
                                      V(masked_index) V(masked_index_put) /* loss */ V(nll_loss)                     \
                                          V(nll_loss_backward) /* pool */ V(max_pool2d) V(max_pool2d_backward)       \
                                              V(avg_pool2d) V(adaptive_avg_pool2d) V(adaptive_avg_pool2d_backward)

#define V(name) Status lower_##name(LowerCall& call);
PARTITA_LOWERINGS(V)
#undef V

using LowerFunction = Status (*)(LowerCall&);

/// A pointwise record's value as a definition, which keeps the call.
Status lower_pointwise(const OpRecord& record, std::shared_ptr<LowerCall> call);

}  // namespace partita::loops
