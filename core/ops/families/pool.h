#pragma once
#include <functional>

#include "core/ops/record/record.h"

namespace partita {

/// The call's kernel_size, stride, padding and dilation, each repeated to `rank` numbers.
struct PoolArguments {
  Sizes kernel, stride, padding, dilation;
  bool ceil_mode = false;
};
PoolArguments pool_arguments(const FakeCall& c, std::size_t rank);
PoolArguments pool_arguments(const EvalCall& c, std::size_t rank);
/// The meta of pooling `input` over its last `rank` dimensions.
TensorMeta pooled(FakeCall& c, const TensorMeta& input, std::size_t rank);
/// The meta of self's gradient: self's sizes, in the memory format that self suggests.
Meta fake_pool_backward(FakeCall& c);
/// The same in row-major layout, which PyTorch's averages and adaptive maxima of volumes have.
Meta fake_volume_pool_backward(FakeCall& c);
/// Fails unless the gradient has the batch and the channels of self.
void check_planes(FakeCall& c, std::size_t rank);
/// The metas {values, indices} of a pooling that returns the positions of its maxima too.
MetaTuple with_indices(TensorMeta values);

/// The inputs that one output element covers along one dimension: begin, begin + step, ... below end.
struct Span {
  std::int64_t begin = 0, end = 1, step = 1;
  std::int64_t padded = 1;  ///< extent before it is cut to the input; includes padding, but nothing beyond it
  std::int64_t count() const { return begin < end ? (end - begin + step - 1) / step : 0; }
};

/// The inputs that one output element covers. Fewer than three dimensions are padded in front.
struct Cell {
  const Span* along[3];
  std::int64_t count() const { return along[0]->count() * along[1]->count() * along[2]->count(); }
  std::int64_t padded() const { return along[0]->padded * along[1]->padded * along[2]->padded; }
};

/// The inputs that each output element covers, within one plane (a channel of a sample). Every pooling consists of such
/// cells and a function of a cell's elements.
struct Cells {
  std::int64_t in[3] = {1, 1, 1};
  std::vector<Span> along[3] = {{Span{}}, {Span{}}, {Span{}}};
  std::int64_t planes = 1;

  std::int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_plane() const {
    return static_cast<std::int64_t>(along[0].size() * along[1].size() * along[2].size());
  }

  /// Calls f(output position in the plane, cell) for every output element.
  void each(auto f) const {
    std::int64_t position = 0;
    for (const Span& d : along[0])
      for (const Span& h : along[1])
        for (const Span& w : along[2]) f(position++, Cell{{&d, &h, &w}});
  }
  std::int64_t first(const Cell& c) const {
    return (c.along[0]->begin * in[1] + c.along[1]->begin) * in[2] + c.along[2]->begin;
  }
  /// Calls f(input position in the plane) for every element of a cell, in row-major order.
  void inputs(const Cell& c, auto f) const {
    const Span &a = *c.along[0], &b = *c.along[1], &e = *c.along[2];
    for (std::int64_t d = a.begin; d < a.end; d += a.step)
      for (std::int64_t h = b.begin; h < b.end; h += b.step)
        for (std::int64_t i : steps(e.count())) f((d * in[1] + h) * in[2] + e.begin + i * e.step);
  }
};

/// The cells of a window that moves by the stride; what lies outside of the input is left out.
Cells sliding_cells(const PoolArguments& arguments, const Sizes& in, const Sizes& out, std::size_t rank);
/// Output place i covers the inputs from floor(i * in / out) to ceil((i + 1) * in / out).
Cells adaptive_cells(const Sizes& in, const Sizes& out, std::size_t rank);
/// Cells whose spans the caller has to fill for the last `rank` dimensions.
Cells empty_cells(const Sizes& in, std::size_t rank);

/// What the sum over a cell is divided by.
using Divisor = std::function<std::int64_t(const Cell&)>;
/// The mean of each cell of x, in y.
Value means_of_cells(const Tensor& x, const Tensor& y, const Cells& cells, const Divisor& divisor);
/// The gradient of means: each element of grad is shared among the elements of its cell, in dx.
Value share_among_cells(const Tensor& grad, const Tensor& dx, const Cells& cells, const Divisor& divisor);
/// The largest element of each cell and its position in the plane. NaN wins; of equal elements the first does.
/// `sizes` are those of the results, values and indices. cells(plane) may differ between planes.
Value max_of_cells(const EvalCall& c, const Sizes& sizes, std::size_t rank,
                   const std::function<const Cells&(std::int64_t plane)>& cells);
}  // namespace partita
