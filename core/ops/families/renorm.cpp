// Reductions over several dimensions besides sums and norms: renorm, hash_tensor.
#include <algorithm>
#include <bit>

#include "core/ops/families/reduce_parts.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

Tensor run(const char* op, std::vector<Value> args, std::vector<std::pair<std::string, Value>> kwargs = {}) {
  return *unwrap(evaluate(Op::torch(op), std::move(args), std::move(kwargs))).get<Tensor>();
}

std::vector<std::int64_t> all_but(std::int64_t dim, std::size_t rank) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(rank); ++d)
    if (d != dim) out.push_back(d);
  return out;
}

template <class T>
auto list_of(const std::vector<std::int64_t>& numbers) {
  if constexpr (std::is_same_v<T, Value>) {
    ValueList out;
    for (std::int64_t n : numbers) out.emplace_back(n);
    return out;
  } else {
    return Arg::list(std::vector<Arg>(numbers.begin(), numbers.end()));
  }
}

/// Norms of half types are computed in float32.
DType norm_dtype(DType t) {
  return t == DType::BFloat16 || t == DType::Float16 ? DType::Float32 : t;
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
Value eval_renorm(EvalCall& c) {
  Tensor out = allocate(c, fake_renorm);
  const Tensor& self = c.tensor("self");
  std::vector<std::int64_t> dims = all_but(wrap_dim(c.integer("dim"), self.dim()), self.sizes.size());
  std::vector<std::pair<std::string, Value>> options;
  if (norm_dtype(self.dtype) != self.dtype) options.emplace_back("dtype", norm_dtype(self.dtype));
  Tensor norm =
      run("aten.linalg_vector_norm.default", {self, as_double(c.number("p")), list_of<Value>(dims), true}, options);
  Tensor factor = unwrap(load(norm, norm.dtype).clone());
  double most = as_double(c.number("maxnorm"));
  dispatch_floating(factor.dtype, "renorm", [&]<class T>() {
    for (std::int64_t i : steps(factor.numel())) {
      T& v = factor.as<T>()[i];
      v = v > static_cast<T>(most) ? static_cast<T>(most) / (v + static_cast<T>(1e-7)) : T(1);
    }
  });
  out.copy_from(run("aten.mul.Tensor", {self, unwrap(factor.to(self.dtype))}));
  return out;
}

std::vector<Node*> grad_renorm(GradCall& c) {
  GradientSlots slots(c);
  const TensorMeta& self = c.tensor("self");
  DType dtype = norm_dtype(self.dtype);
  std::int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  std::vector<std::pair<std::string, Arg>> names = {{"grad", c.grads[0]},
                                                    {"self", c.arg("self")},
                                                    {"p", as_double(c.number("p"))},
                                                    {"dims", list_of<Arg>(all_but(dim, self.dim()))},
                                                    {"maxnorm", c.arg("maxnorm")},
                                                    {"real", real_of(dtype)},
                                                    {"type", self.dtype}};
  auto build = [&](const char* formula) { return c.build.expression(formula, names); };
  auto bind = [&](const char* name, const char* formula) { names.emplace_back(name, build(formula)); };
  bool half = dtype != self.dtype;
  bind("norm",
       half ? "linalg_vector_norm(self, p, dims, True, dtype=real)" : "linalg_vector_norm(self, p, dims, True)");
  bind("along", "sum(real_of(conj(self) * grad), dims, True, dtype=real)");
  bind("nb", "vector_norm_backward(along, self, p, norm, dims, True)");
  bind("inverse", "reciprocal(norm + 1e-7)");
  bind("scaled", "maxnorm * inverse * (grad - inverse * nb)");
  if (half) bind("narrow", "aten._to_copy.default(scaled, dtype=type)");
  slots["self"] =
      build(half ? "where(gt(norm, maxnorm), narrow, grad)" : "where(gt(norm, maxnorm), scaled, grad)").node();
  return slots;
}

Meta fake_hash(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (c.integer("mode") != 0) fail("Unknown hash_tensor mode: " + std::to_string(c.integer("mode")));
  if (is_complex(self.dtype)) fail("\"xor_sum_cpu\" not implemented for '" + std::string(torch_name(self.dtype)) + "'");
  Sizes dims = c.integers("dim");
  if (dims.empty() && self.numel().is(0))
    fail(
        "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
        "the "
        "'dim' argument.");
  std::vector<bool> reduced(self.dim(), dims.empty());
  for (std::int64_t d : dims)
    if (self.dim() > 0) reduced[wrap_dim(d, self.dim())] = true;
  SymList sizes;
  for (std::size_t d = 0; d < self.dim(); ++d) {
    if (!reduced[d])
      sizes.push_back(self.sizes[d]);
    else if (c.boolean("keepdim"))
      sizes.push_back(1);
  }
  TensorMeta out = new_like(self, sizes);
  out.dtype = DType::UInt64;
  return out;
}

/// The exclusive or of the elements' bits. Floating elements are first converted to double, integers to int64.
Value eval_hash(EvalCall& c) {
  Tensor out = allocate(c, fake_hash);
  const Tensor& self = c.tensor("self");
  bool floating = is_floating(self.dtype);
  Tensor x = load(self, floating ? DType::Float64 : DType::Int64);
  Sizes dims = c.integers("dim");
  // Strides of the result for the input's dimensions: 0 for those that are reduced.
  Sizes strides(self.sizes.size(), 0);
  std::int64_t step = 1;
  for (std::size_t d = self.sizes.size(); d-- > 0;) {
    bool reduced = dims.empty();
    for (std::int64_t r : dims) reduced = reduced || wrap_dim(r, self.dim()) == d;
    if (reduced) continue;
    strides[d] = step;
    step *= self.sizes[d];
  }
  std::fill_n(out.as<std::uint64_t>(), out.numel(), 0);
  for (std::int64_t i : steps(x.numel())) {
    std::int64_t rest = i, to = 0;
    for (std::size_t d = self.sizes.size(); d-- > 0; rest /= self.sizes[d]) to += rest % self.sizes[d] * strides[d];
    out.as<std::uint64_t>()[to] ^= floating ? std::bit_cast<std::uint64_t>(x.as<double>()[i])
                                            : static_cast<std::uint64_t>(x.as<std::int64_t>()[i]);
  }
  return out;
}

}  // namespace

void register_renorm(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.renorm.default", fake_renorm, eval_renorm, {}, {.autograd = {.gradient = grad_renorm}});
  t.add("aten.hash_tensor.default", fake_hash, eval_hash, {}, {.autograd = {.not_differentiable = true}});
}

}  // namespace partita
