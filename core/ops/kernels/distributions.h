#pragma once
// Tensors filled with random numbers by a run's generator, as ATen's CPU kernels do
// (native/cpu/DistributionTemplates.h, native/DistributionTemplates.h, core/DistributionsHelper.h): the same draws in
// the same order, which is that of memory, not of indices. Parameters out of range and dtypes without a kernel fail in
// PyTorch's words.
#include <optional>

#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace partita::kernels {

/// `t` with its dimensions in the order of their strides, the longest first: a walk over it row by row is
/// TensorIterator's over `t`.
Tensor in_memory_order(const Tensor& t);

void fill_uniform(const Tensor& out, double from, double to, Generator& numbers);  ///< in [from, to)
/// Blocks of 16 by box_muller_16 for 16 and more row-major elements, else Generator::normal. Complex numbers are pairs,
/// of half the variance each.
void fill_normal(const Tensor& out, double mean, double deviation, Generator& numbers);
void fill_log_normal(const Tensor& out, double mean, double deviation, Generator& numbers);
void fill_cauchy(const Tensor& out, double median, double sigma, Generator& numbers);
void fill_exponential(const Tensor& out, double lambda, Generator& numbers);
void fill_geometric(const Tensor& out, double p, Generator& numbers);
void fill_bernoulli(const Tensor& out, double p, Generator& numbers);
void fill_bernoulli(const Tensor& out, const Tensor& p, Generator& numbers);  ///< p broadcasts to out
/// Whole numbers in [from, to); without `to` up to what the dtype holds.
void fill_integers(const Tensor& out, std::int64_t from, std::optional<std::int64_t> to, Generator& numbers);
/// From 0 to what an integer dtype holds, or to 2^digits of a floating one.
void fill_integers(const Tensor& out, Generator& numbers);

}  // namespace partita::kernels
