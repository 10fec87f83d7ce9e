#pragma once
// Attention over blocks of queries, for one instruction set each. Sources that are compiled for more instructions than
// the machine may have include this header: nothing in it may bring code of its own (inline functions, templates).
#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace partita::codegen {

/// A [batch, heads, rows, columns] view; strides in elements. A null address: there is none.
struct AttentionOperand {
  std::byte* data = nullptr;
  DType dtype = DType::Float32;
  std::int64_t strides[4] = {};
};

/// out = softmax(scale * query key^T + mask) value for each head, and its gradients. All sizes may be 0.
struct AttentionProblem {
  AttentionOperand query, key, value, mask;  ///< any floating dtype; the mask may repeat elements, and may be boolean
  AttentionOperand out, logsumexp;           ///< logsumexp has no columns
  AttentionOperand grad_out, grad_query, grad_key, grad_value;  ///< of the backward, which reads out and logsumexp
  std::int64_t batch = 0, heads = 0, queries = 0, keys = 0, width = 0;
  double scale = 1;
  bool has_mask = false;   ///< known before the addresses are
  bool causal = false;     ///< query i attends to keys 0 .. i
  bool in_double = false;  ///< computes in double, else in float
};

/// The functions for one instruction set. Tasks are independent, and results do not depend on the threads.
struct AttentionKernel {
  const char* name;  ///< of the instructions
  std::int64_t (*forward_tasks)(const AttentionProblem& problem);
  std::size_t (*forward_scratch)(const AttentionProblem& problem);  ///< bytes for a task, to be aligned to 64
  void (*forward)(const AttentionProblem& problem, std::int64_t task, std::byte* scratch);
  /// A task of the backward is one head.
  std::size_t (*backward_scratch)(const AttentionProblem& problem);
  void (*backward)(const AttentionProblem& problem, std::int64_t task, std::byte* scratch);
};

extern const AttentionKernel attention_baseline;
#ifdef __x86_64__
extern const AttentionKernel attention_avx2;    ///< AVX2, FMA and F16C
extern const AttentionKernel attention_avx512;  ///< AVX-512 F, BW, DQ and VL beside them
#endif

}  // namespace partita::codegen
