#pragma once
// Fill tensors with random numbers from a run's generator, as ATen's CPU kernels do
// (native/cpu/DistributionTemplates.h, native/DistributionTemplates.h, core/DistributionsHelper.h): the same draws in
// the same order, which is the order of memory and not of indices. Parameters out of range and dtypes without a kernel
// fail with PyTorch's message.
#include <optional>

#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace partita::kernels {

/// `t` with its dimensions sorted by stride, the largest first. Walking over it row by row visits the elements in the
/// order in which TensorIterator visits those of `t`.
Tensor in_memory_order(const Tensor& t);

void fill_uniform(const Tensor& out, double from, double to, Generator& numbers);  ///< in [from, to)
/// At least 16 row-major elements are filled by box_muller_16 in blocks of 16, fewer by Generator::normal. A complex
/// number is a pair with half the variance each.
void fill_normal(const Tensor& out, double mean, double deviation, Generator& numbers);
void fill_log_normal(const Tensor& out, double mean, double deviation, Generator& numbers);
void fill_cauchy(const Tensor& out, double median, double sigma, Generator& numbers);
void fill_exponential(const Tensor& out, double lambda, Generator& numbers);
void fill_geometric(const Tensor& out, double p, Generator& numbers);
void fill_bernoulli(const Tensor& out, double p, Generator& numbers);
void fill_bernoulli(const Tensor& out, const Tensor& p, Generator& numbers);  ///< p broadcasts to out
/// Integers in [from, to); without `to` up to the largest one of the dtype.
void fill_integers(const Tensor& out, std::int64_t from, std::optional<std::int64_t> to, Generator& numbers);
/// Integers from 0 to the largest one of an integer dtype, or to 2^digits for a floating dtype.
void fill_integers(const Tensor& out, Generator& numbers);

}  // namespace partita::kernels
