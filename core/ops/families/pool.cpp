#include "core/ops/families/pool.h"

#include "core/ops/kernels/outputs.h"
#include "core/ops/layout.h"

namespace partita {

namespace {

template <class C>
PoolArguments read_arguments(const C& c, std::size_t rank) {
  auto list = [&](const char* name, const Sizes& fallback) {
    if (c.schema.index_of(name) < 0 || !c.has(name)) return fallback;
    Sizes values = c.integers(name);
    if (values.empty()) return fallback;
    if (values.size() == 1) values.resize(rank, values[0]);
    if (values.size() != rank)
      fail(c.schema.base.substr(5) + ": " + name + " must either be a single int, or a tuple of " + std::to_string(rank) + " ints");
    return values;
  };
  PoolArguments a;
  a.kernel = list("kernel_size", {});
  a.stride = list("stride", a.kernel);
  a.padding = list("padding", Sizes(rank, 0));
  a.dilation = list("dilation", Sizes(rank, 1));
  if (c.schema.index_of("ceil_mode") >= 0) a.ceil_mode = c.boolean("ceil_mode");
  for (std::size_t i = 0; i < rank; ++i) {
    if (a.kernel[i] <= 0 || a.stride[i] <= 0 || a.dilation[i] <= 0)
      fail("kernel size, stride and dilation should be greater than zero");
    if (a.padding[i] < 0 || a.padding[i] > ((a.kernel[i] - 1) * a.dilation[i] + 1) / 2)
      fail("pad should be at most half of effective kernel size, but got pad=" + std::to_string(a.padding[i]) +
           ", kernel_size=" + std::to_string(a.kernel[i]) + " and dilation=" + std::to_string(a.dilation[i]));
  }
  return a;
}

}  // namespace

PoolArguments pool_arguments(const FakeCall& c, std::size_t rank) { return read_arguments(c, rank); }
PoolArguments pool_arguments(const EvalCall& c, std::size_t rank) { return read_arguments(c, rank); }

TensorMeta pooled(FakeCall& c, const TensorMeta& input, std::size_t rank) {
  if (input.dim() != rank + 1 && input.dim() != rank + 2)
    fail("non-empty " + std::to_string(rank + 1) + "D or " + std::to_string(rank + 2) + "D (batch mode) tensor expected for input");
  PoolArguments a = pool_arguments(c, rank);
  SymList sizes = input.sizes;
  std::size_t lead = input.dim() - rank;
  for (std::size_t i = 0; i < rank; ++i) {
    SymExpr in = input.sizes[lead + i];
    SymExpr span = in + 2 * a.padding[i] - a.dilation[i] * (a.kernel[i] - 1) - 1;
    SymExpr out = sym_floordiv(span + (a.ceil_mode ? a.stride[i] - 1 : 0), a.stride[i]) + 1;
    // The last window must start inside the image or its left padding.
    if (a.ceil_mode && c.test(sym_le(in + a.padding[i], (out - 1) * a.stride[i]), "pooling ceil_mode")) out = out - 1;
    if (!c.test(sym_lt(0, out), "pooling output"))
      fail("Given input size: (" + in.str() + "), calculated output size: (" + out.str() + "). Output size is too small");
    sizes[lead + i] = out;
  }
  return new_like(input, sizes, suggest_memory_format(input, c.shapes));
}

Window window(const PoolArguments& a, const Sizes& in, const Sizes& out, std::size_t rank) {
  Window w{};
  auto fill = [&](std::int64_t (&to)[3], const std::int64_t* from, std::int64_t neutral) {
    for (std::size_t i = 0; i < 3; ++i) to[i] = i + rank < 3 ? neutral : from[i + rank - 3];
  };
  fill(w.in, in.data() + (in.size() - rank), 1);
  fill(w.out, out.data() + (out.size() - rank), 1);
  fill(w.kernel, a.kernel.data(), 1);
  fill(w.stride, a.stride.data(), 1);
  fill(w.padding, a.padding.data(), 0);
  fill(w.dilation, a.dilation.data(), 1);
  return w;
}

std::int64_t planes(const Sizes& sizes, std::size_t rank) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i + rank < sizes.size(); ++i) n *= sizes[i];
  return n;
}

void register_pool(OpTable& t) {
  register_max_pool(t);
  register_avg_pool(t);
  register_adaptive_pool(t);
  register_low_memory_pool(t);
}

}  // namespace partita
