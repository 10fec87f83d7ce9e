#pragma once
#include <functional>

#include "core/ops/record.h"

namespace partita {

void register_max_pool(OpTable& t);
void register_avg_pool(OpTable& t);
void register_adaptive_pool(OpTable& t);
void register_fractional_pool(OpTable& t);
void register_max_unpool(OpTable& t);
void register_low_memory_pool(OpTable& t);

/// kernel_size, stride, padding, dilation of a call, repeated to `rank`.
struct PoolArguments {
  Sizes kernel, stride, padding, dilation;
  bool ceil_mode = false;
};
PoolArguments pool_arguments(const FakeCall& c, std::size_t rank);
PoolArguments pool_arguments(const EvalCall& c, std::size_t rank);
/// Result of pooling `input` over its last `rank` dimensions.
TensorMeta pooled(FakeCall& c, const TensorMeta& input, std::size_t rank);
/// The gradient by `self`: its sizes, in the memory format it suggests.
Meta fake_pool_backward(FakeCall& c);
/// {values, indices} of a pooling that keeps where its maxima were.
MetaTuple with_indices(TensorMeta values);

/// What one place of the output covers along one dimension: the inputs begin, begin + step, ... below end.
struct Span {
  std::int64_t begin = 0, end = 1, step = 1;
  std::int64_t padded = 1;  ///< extent before it was cut to the input; padding counts, what lies beyond it does not
  std::int64_t count() const { return begin < end ? (end - begin + step - 1) / step : 0; }
};

/// What one place of the output covers; lower ranks are padded in front to three dimensions.
struct Cell {
  const Span* along[3];
  std::int64_t count() const { return along[0]->count() * along[1]->count() * along[2]->count(); }
  std::int64_t padded() const { return along[0]->padded * along[1]->padded * along[2]->padded; }
};

/// Which inputs the places of a pooling's output cover, in each plane (one of a batch, one channel). Every pooling is
/// one of these and what it does with the elements of a cell.
struct Cells {
  std::int64_t in[3] = {1, 1, 1};
  std::vector<Span> along[3] = {{Span{}}, {Span{}}, {Span{}}};
  std::int64_t planes = 1;

  std::int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_plane() const {
    return static_cast<std::int64_t>(along[0].size() * along[1].size() * along[2].size());
  }

  /// f(output position in the plane, cell)
  template <class F>
  void each(F f) const {
    std::int64_t position = 0;
    for (const Span& d : along[0])
      for (const Span& h : along[1])
        for (const Span& w : along[2]) f(position++, Cell{{&d, &h, &w}});
  }
  std::int64_t first(const Cell& c) const {
    return (c.along[0]->begin * in[1] + c.along[1]->begin) * in[2] + c.along[2]->begin;
  }
  /// f(input position in the plane) for every element of a cell, in row-major order
  template <class F>
  void inputs(const Cell& c, F f) const {
    const Span &a = *c.along[0], &b = *c.along[1], &e = *c.along[2];
    for (std::int64_t d = a.begin; d < a.end; d += a.step)
      for (std::int64_t h = b.begin; h < b.end; h += b.step)
        for (std::int64_t w = e.begin; w < e.end; w += e.step) f((d * in[1] + h) * in[2] + w);
  }
};

/// A window that moves by the stride; only what lies within the input is covered.
Cells sliding_cells(const PoolArguments& arguments, const Sizes& in, const Sizes& out, std::size_t rank);
/// Output place i covers the inputs from floor(i * in / out) to ceil((i + 1) * in / out).
Cells adaptive_cells(const Sizes& in, const Sizes& out, std::size_t rank);
/// Without places: the spans of the last `rank` dimensions are the caller's to fill.
Cells empty_cells(const Sizes& in, std::size_t rank);
/// Number of (batch, channel) planes of a tensor pooled over its last `rank` dimensions.
std::int64_t planes(const Sizes& sizes, std::size_t rank);

/// Fails when a gradient has not the planes of the gradient `dx` to be made of it.
void check_planes(const Tensor& grad, const Tensor& dx, std::size_t rank);

/// The largest element of each cell (a NaN wins, then the first) and its position in the plane. `outputs` are the
/// call's results {values, indices}; cells(plane) may differ from plane to plane.
Value max_of_cells(const EvalCall& c, const std::vector<Tensor>& outputs, std::size_t rank,
                   const std::function<const Cells&(std::int64_t plane)>& cells);
/// The gradient of a maximum: each element of grad_output added at the place in its plane that `indices` names.
Value add_at_indices(EvalCall& c, Meta (*fake)(FakeCall&), std::size_t rank);
template <Meta (*fake)(FakeCall&), std::size_t rank>
Value eval_add_at_indices(EvalCall& c) {
  return add_at_indices(c, fake, rank);
}

}  // namespace partita
