// Reductions over several dimensions besides sums and norms: renorm, hash_tensor.
#include <algorithm>

#include "core/ops/families/reduce_parts.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// norm_dtype(x): norms of half types are computed in float32; None for others.
Arg norm_dtype(const FormulaCall& f) {
  const DType t = f.tensor(0).dtype;
  return t == DType::BFloat16 || t == DType::Float16 ? Arg(DType::Float32) : Arg();
}

/// other_dims(x, dim)
Arg other_dims(const FormulaCall& f) {
  const std::size_t rank = f.tensor(0).dim(), dim = wrap_dim(f.integer(1), rank);
  std::vector<Arg> out;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != dim) out.emplace_back(static_cast<std::int64_t>(d));
  return Arg::list(std::move(out));
}

Meta fake_renorm(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (self.dim() < 2)
    fail("renorm: input needs at least 2 dimensions, got " + std::to_string(self.dim()) + " dimensions");
  if (const auto p = c.known_number("p"); p && as_double(*p) <= 0) fail("renorm: non-positive norm degree");
  if (const auto most = c.known_number("maxnorm"); most && as_double(*most) < 0)
    fail("renorm: expected maxnorm to be >= 0 but got " + std::to_string(as_double(*most)));
  wrap_dim(c.integer("dim"), self.dim());
  return new_like(self, self.sizes);
}

/// Slices along `dim` whose norm exceeds maxnorm are scaled down to that norm.
Arg decompose_renorm(DecomposeCall& c) {
  return build_program(c,
                       "norm = linalg_vector_norm(self, p, other_dims(self, dim), True, dtype=norm_dtype(self)); "
                       "factor = where(gt(norm, maxnorm), maxnorm / (norm + 1e-7), 1.0); "
                       "contiguous(self * in_dtype(factor, dtype(self)))");
}

Meta fake_hash(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (c.integer("mode") != 0) fail("Unknown hash_tensor mode: " + std::to_string(c.integer("mode")));
  if (is_complex(self.dtype)) fail("\"xor_sum_cpu\" not implemented for '" + std::string(torch_name(self.dtype)) + "'");
  if (c.integers("dim").empty() && self.numel().is(0))
    fail(
        "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
        "the 'dim' argument.");
  return reduced_meta(c, DType::UInt64);
}

/// The exclusive or of the elements' bits. Floating elements are first converted to double, integers to int64.
Value eval_hash(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  const Tensor x = load(self, is_floating(self.dtype) ? DType::Float64 : DType::Int64);
  const Tensor out = result_of(c, DType::UInt64);
  for_each_line(x, reduced_dims(c, x.sizes.size()), [&](std::int64_t i, const Line& line) {
    std::uint64_t& bits = out.as<std::uint64_t>()[i] = 0;
    line.each([&](std::int64_t at) { bits ^= x.as<std::uint64_t>()[at]; });
  });
  return out;
}

}  // namespace

void register_renorm(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_formula_functions({{"norm_dtype", norm_dtype}, {"other_dims", other_dims}});
  t.add("aten.renorm.default", fake_renorm, nullptr,
        {{"self",
          "dims = other_dims(self, dim); norm = linalg_vector_norm(self, p, dims, True, dtype=norm_dtype(self)); "
          "along = sum(real_of(conj(self) * grad), dims, True, dtype=dtype(norm)); "
          "nb = vector_norm_backward(along, self, p, norm, dims, True); inverse = reciprocal(norm + 1e-7); "
          "scaled = maxnorm * inverse * (grad - inverse * nb); "
          "where(gt(norm, maxnorm), in_dtype(scaled, dtype(self)), grad)"}},
        {.compile_decompose = decompose_renorm});
  t.add("aten.hash_tensor.default", fake_hash, eval_hash, {}, {.autograd = {.not_differentiable = true}});
}

}  // namespace partita
