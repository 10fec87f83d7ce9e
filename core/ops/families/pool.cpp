// What pooling operators share: their arguments, the inputs that each output covers, maxima with their positions.
#include "core/ops/families/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/kernels/accumulate_type.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

PoolArguments read_arguments(const auto& c, std::size_t rank) {
  auto list = [&](const char* name, const Sizes& fallback) {
    if (c.schema.index_of(name) < 0 || !c.has(name)) return fallback;
    Sizes values = c.integers(name);
    if (values.empty()) return fallback;
    if (values.size() == 1) values.resize(rank, values[0]);
    if (values.size() != rank)
      fail(c.schema.base.substr(5) + ": " + name + " must either be a single int, or a tuple of " +
           std::to_string(rank) + " ints");
    return values;
  };
  PoolArguments a;
  a.kernel = list("kernel_size", {});
  if (a.kernel.empty()) fail(c.schema.base.substr(5) + ": kernel_size must not be empty");
  a.stride = list("stride", a.kernel);
  a.padding = list("padding", Sizes(rank, 0));
  a.dilation = list("dilation", Sizes(rank, 1));
  if (c.schema.index_of("ceil_mode") >= 0) a.ceil_mode = c.boolean("ceil_mode");
  for (std::size_t i = 0; i < rank; ++i) {
    if (a.kernel[i] <= 0 || a.stride[i] <= 0 || a.dilation[i] <= 0)
      fail("kernel size, stride and dilation should be greater than zero");
    const SymExpr reach = SymExpr(a.kernel[i] - 1) * a.dilation[i] + 1;
    if (a.padding[i] < 0 || a.padding[i] > reach.as_int() / 2)
      fail("pad should be at most half of effective kernel size, but got pad=" + std::to_string(a.padding[i]) +
           ", kernel_size=" + std::to_string(a.kernel[i]) + " and dilation=" + std::to_string(a.dilation[i]));
  }
  return a;
}

}  // namespace

PoolArguments pool_arguments(const FakeCall& c, std::size_t rank) {
  return read_arguments(c, rank);
}
PoolArguments pool_arguments(const EvalCall& c, std::size_t rank) {
  return read_arguments(c, rank);
}

TensorMeta pooled(FakeCall& c, const TensorMeta& input, std::size_t rank) {
  if (input.dim() != rank + 1 && input.dim() != rank + 2)
    fail("non-empty " + std::to_string(rank + 1) + "D or " + std::to_string(rank + 2) +
         "D (batch mode) tensor expected for input");
  // Only the batch dimension may be empty.
  for (std::size_t d = input.dim() - rank - 1; d < input.dim(); ++d)
    if (input.sizes[d].is(0))
      fail("Expected " + std::to_string(rank + 1) + "D or " + std::to_string(rank + 2) +
           "D (batch mode) tensor with optional 0 dim batch size for input, but dimension " + std::to_string(d) +
           " is empty");
  if (c.schema.index_of("divisor_override") >= 0 && c.has("divisor_override") && c.sym("divisor_override").is(0))
    fail("divisor must be not zero");
  PoolArguments a = pool_arguments(c, rank);
  SymList sizes = input.sizes;
  std::size_t lead = input.dim() - rank;
  for (std::size_t i = 0; i < rank; ++i) {
    SymExpr in = input.sizes[lead + i];
    SymExpr span = in + 2 * SymExpr(a.padding[i]) - SymExpr(a.dilation[i]) * (a.kernel[i] - 1) - 1;
    SymExpr out = sym_floordiv(span + (a.ceil_mode ? a.stride[i] - 1 : 0), a.stride[i]) + 1;
    // The last window must start inside the image or its left padding.
    if (a.ceil_mode && c.test(sym_le(in + a.padding[i], (out - 1) * a.stride[i]), "pooling ceil_mode")) out = out - 1;
    if (!checked(c, sym_lt(0, out), "pooling output"))
      fail("Given input size: (" + in.str() + "), calculated output size: (" + out.str() +
           "). Output size is too small");
    sizes[lead + i] = out;
  }
  return new_like(input, sizes, suggest_memory_format(input, c.shapes));
}

Meta fake_pool_backward(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &grad = c.tensor("grad_output");
  if (grad.dtype != self.dtype)
    fail("expected dtype " + std::string(torch_name(self.dtype)) + " for `gradOutput` but got dtype " +
         std::string(torch_name(grad.dtype)));
  if (grad.dim() != self.dim())
    fail(c.schema.base.substr(5) + ": grad_output has " + std::to_string(grad.dim()) + " dimensions, self " +
         std::to_string(self.dim()));
  if (c.schema.index_of("indices") >= 0 && c.tensor("indices").dtype != DType::Int64)
    fail(c.schema.base.substr(5) + ": indices must be int64, got " +
         std::string(torch_name(c.tensor("indices").dtype)));
  // Symbolic sizes are compared when the call is evaluated.
  auto differ = [](const SymList& a, const SymList& b) { return concrete(a) && concrete(b) && a != b; };
  if (c.schema.index_of("stride") >= 0) {
    const SchemaArg& kernel = c.schema.args[static_cast<std::size_t>(c.schema.index_of("kernel_size"))];
    if (differ(pooled(c, self, static_cast<std::size_t>(kernel.list_size)).sizes, grad.sizes))
      fail(c.schema.base.substr(5) + ": grad_output does not have the sizes of the pooled input");
  }
  if (c.schema.index_of("indices") >= 0 && differ(c.tensor("indices").sizes, grad.sizes))
    fail(c.schema.base.substr(5) + ": indices and grad_output must have the same sizes");
  return new_like(self, self.sizes, suggest_memory_format(self, c.shapes));
}

Meta fake_volume_pool_backward(FakeCall& c) {
  const Meta checked = fake_pool_backward(c);
  return new_like(*checked.tensor(), checked.tensor()->sizes);
}

void check_planes(FakeCall& c, std::size_t rank) {
  const TensorMeta &grad = c.tensor("grad_output"), &self = c.tensor("self");
  const std::string op = c.schema.base.substr(5);
  if (grad.dim() != rank + 1 && grad.dim() != rank + 2)
    fail(op + ": Expected " + std::to_string(rank + 1) + "D or " + std::to_string(rank + 2) + "D tensor, but got " +
         std::to_string(grad.dim()) + "D");
  if (grad.dim() != self.dim())
    fail(op + ": Expected dimensions " + std::to_string(self.dim()) + " for `grad_output` but got dimensions " +
         std::to_string(grad.dim()));
  for (std::size_t d = 0; d + rank < self.dim(); ++d)
    if (!checked(c, sym_eq(grad.sizes[d], self.sizes[d]), "planes of a pooling"))
      fail(op + ": grad_output must have the batch and the channels of self");
}

MetaTuple with_indices(TensorMeta values) {
  TensorMeta indices = values;
  indices.dtype = DType::Int64;
  return {{std::move(values), std::move(indices)}};
}

namespace {

std::int64_t planes(const Sizes& sizes, std::size_t rank) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i + rank < sizes.size(); ++i) n *= sizes[i];
  return n;
}

}  // namespace

Cells empty_cells(const Sizes& in, std::size_t rank) {
  Cells cells;
  cells.planes = planes(in, rank);
  std::copy(in.end() - static_cast<std::ptrdiff_t>(rank), in.end(), cells.in + (3 - rank));
  for (std::size_t d = 3 - rank; d < 3; ++d) cells.along[d].clear();
  return cells;
}

namespace {

/// `span(d, i)` gives the inputs that output position i covers along spatial dimension d.
Cells filled_cells(const Sizes& in, const Sizes& out, std::size_t rank, auto span) {
  Cells cells = empty_cells(in, rank);
  for (std::size_t d = 0; d < rank; ++d)
    for (std::int64_t i : steps(out[out.size() - rank + d])) cells.along[3 - rank + d].push_back(span(d, i));
  return cells;
}

}  // namespace

Cells sliding_cells(const PoolArguments& a, const Sizes& in, const Sizes& out, std::size_t rank) {
  return filled_cells(in, out, rank, [&](std::size_t d, std::int64_t i) {
    std::int64_t size = in[in.size() - rank + d], step = a.dilation[d];
    std::int64_t begin = i * a.stride[d] - a.padding[d], end = begin + (a.kernel[d] - 1) * step + 1;
    Span span{begin, std::min(end, size), step, std::min(end, size + a.padding[d]) - begin};
    if (begin < 0) span.begin += (-begin + step - 1) / step * step;
    return span;
  });
}

Cells adaptive_cells(const Sizes& in, const Sizes& out, std::size_t rank) {
  return filled_cells(in, out, rank, [&](std::size_t d, std::int64_t i) {
    std::int64_t size = in[in.size() - rank + d], places = out[out.size() - rank + d];
    return Span{i * size / places, ((i + 1) * size + places - 1) / places};
  });
}

Value means_of_cells(const Tensor& x, const Tensor& y, const Cells& cells, const Divisor& divisor) {
  dispatch_ordered(y.dtype, "avg_pool", [&]<class T>() {
    for (std::int64_t p : steps(cells.planes, 4096)) {
      const T* in = x.as<T>() + p * cells.in_plane();
      cells.each([&](std::int64_t position, const Cell& cell) {
        AccumulateType<T> sum = 0;
        cells.inputs(cell, [&](std::int64_t i) { sum = wrapping_sum(sum, static_cast<AccumulateType<T>>(in[i])); });
        y.as<T>()[p * cells.out_plane() + position] =
            sum == 0 ? T(0) : static_cast<T>(sum / static_cast<AccumulateType<T>>(divisor(cell)));
      });
    }
  });
  return y;
}

Value share_among_cells(const Tensor& grad, const Tensor& dx, const Cells& cells, const Divisor& divisor) {
  dispatch_floating(dx.dtype, "avg_pool_backward", [&]<class T>() {
    for (std::int64_t p : steps(cells.planes, 4096))
      cells.each([&](std::int64_t position, const Cell& cell) {
        const T share = grad.as<T>()[p * cells.out_plane() + position] / static_cast<T>(divisor(cell));
        cells.inputs(cell, [&](std::int64_t i) { dx.as<T>()[p * cells.in_plane() + i] += share; });
      });
  });
  return dx;
}

Value max_of_cells(const EvalCall& c, const Sizes& sizes, std::size_t rank,
                   const std::function<const Cells&(std::int64_t plane)>& cells_of) {
  DType dtype = evaluation_dtype(c.tensor("self").dtype);
  Tensor x = load(c.tensor("self"), dtype), y = empty(dtype, sizes), at = empty(DType::Int64, sizes);
  dispatch_ordered(dtype, c.schema.base.c_str(), [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    for (std::int64_t p = 0; p < planes(x.sizes, rank); ++p) {
      const Cells& cells = cells_of(p);
      const T* in = x.as<T>() + p * cells.in_plane();
      T* values = y.as<T>() + p * cells.out_plane();
      auto* places = at.as<std::int64_t>() + p * cells.out_plane();
      cells.each([&](std::int64_t position, const Cell& cell) {
        T largest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        std::int64_t place = cells.first(cell);
        cells.inputs(cell, [&](std::int64_t i) {
          bool wins = in[i] > largest;
          if constexpr (std::is_floating_point_v<T>) wins = wins || std::isnan(in[i]);
          if (!wins) return;
          largest = in[i];
          place = i;
        });
        values[position] = largest;
        places[position] = place;
      });
    }
  });
  return ValueList{y, at};
}

namespace {

/// as_2d(list, first): an argument of 1-d pooling for 2-d pooling; an empty list stays empty.
Arg as_2d(const FormulaCall& f) {
  const auto* list = f.args[0].get<ArgList>();
  if (list && list->items.empty()) return f.args[0];
  if (list && list->items.size() != 1) fail("1-d pooling takes one number for each argument");
  return Arg::list({f.args[1], list ? list->items[0] : f.args[0]});
}

}  // namespace

void register_pool(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_formula_functions({{"as_2d", as_2d}});
}

}  // namespace partita
