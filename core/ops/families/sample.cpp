// Samples from a distribution given by a tensor, and random permutations.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/ops/families/factory_parts.h"
#include "core/ops/families/reduce_kernels.h"
#include "core/ops/kernels/distributions.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

using namespace kernels;

Meta fake_permutation(FakeCall& call) {
  if (!checked(call, sym_le(0, call.sym("n")), "randperm"))
    fail("Trying to create tensor with negative dimension " + call.sym("n").str());
  return made(call, DType::Int64, {call.sym("n")});
}

/// randperm_cpu of ATen/native/TensorFactories.cpp: a Fisher-Yates shuffle from the front.
Value eval_permutation(EvalCall& call) {
  const std::int64_t n = call.integer("n");
  if (n >= std::numeric_limits<std::uint32_t>::max() / 20)
    fail_unsupported("randperm of 2^32 / 20 numbers or more, for which PyTorch has another algorithm");
  const Tensor out = allocate(call, fake_permutation);
  if (out.dtype == DType::Bool || is_complex(out.dtype))
    fail("\"randperm\" not implemented for '" + std::string(torch_name(out.dtype)) + "'");
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    std::swap(order[i], order[i + call.generator().random() % (order.size() - i)]);
  dispatch(out.dtype, [&]<class T>() {
    if (n > 0 && convert<std::int64_t>(convert<T>(n - 1)) < n - 1 && is_integral(out.dtype))
      fail("value cannot be converted to type " + std::string(torch_name(out.dtype)) + " without overflow");
    for (std::size_t i = 0; i < order.size(); ++i) out.as<T>()[i] = convert<T>(order[i]);
  });
  return out;
}

/// multinomial(self, num_samples, replacement): self is [categories] or [rows, categories].
Meta fake_multinomial(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  const SymExpr samples = call.sym("num_samples");
  if (self.sizes.empty() || self.sizes.size() > 2) fail("prob_dist must be 1 or 2 dim");
  if (!is_floating(self.dtype))
    fail("multinomial only supports floating-point dtypes for input, got: " + std::string(torch_name(self.dtype)));
  if (!checked(call, sym_le(1, samples), "multinomial")) fail("cannot sample n_sample <= 0 samples");
  if (!call.boolean("replacement") && !checked(call, sym_le(samples, self.sizes.back()), "multinomial"))
    fail("cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  SymList sizes = self.sizes;
  sizes.back() = samples;
  return TensorMeta::contiguous(DType::Int64, sizes, self.device);
}

/// Draws categories by inversion: a uniform number selects the first category whose cumulative probability reaches it.
template <class T>
void draw_with_replacement(std::span<const T> chances, std::span<std::int64_t> drawn, Generator& numbers) {
  std::vector<T> sums(chances.size());
  T sum = 0;
  for (std::size_t i = 0; i < chances.size(); ++i) {
    if (!(chances[i] >= 0)) fail("invalid multinomial distribution (encountering probability entry < 0)");
    if (!std::isfinite(chances[i]))
      fail("invalid multinomial distribution (encountering probability entry = infinity or NaN)");
    sums[i] = sum += chances[i];
  }
  if (!(sum > 0)) fail("invalid multinomial distribution (sum of probabilities <= 0)");
  for (T& s : sums) s /= sum;
  sums.back() = 1;
  for (std::int64_t& category : drawn) {
    const double u = numbers.uniform();
    category = std::ranges::lower_bound(sums, u, {}, [](T s) { return static_cast<double>(s); }) - sums.begin();
  }
}

/// Takes the categories with the largest p / q, where q is drawn from the exponential distribution.
Value draw_without_replacement(const EvalCall& call) {
  const Tensor& self = call.tensor("self");
  const Tensor chances = unwrap(self.to(DType::Float64));
  const std::int64_t categories = self.sizes.back();
  for (std::int64_t row = 0; row * categories < chances.numel(); ++row) {
    double sum = 0;
    for (const double p : std::span(chances.as<double>() + row * categories, static_cast<std::size_t>(categories))) {
      if (!(p >= 0 && p < std::numeric_limits<double>::infinity()))
        fail("probability tensor contains either `inf`, `nan` or element < 0");
      sum += p;
    }
    if (sum == 0) fail("invalid multinomial distribution (sum of probabilities <= 0)");
  }
  const auto run = [&](const char* op, std::vector<Value> args) {
    return unwrap(evaluate(Op::torch(op), std::move(args), {}, call.context));
  };
  Value weights = run("aten.empty_like.default", {self});
  fill_exponential(*weights.get<Tensor>(), 1, call.generator());
  weights = run("aten.div.Tensor", {self, weights});
  const std::int64_t samples = call.integer("num_samples");
  if (samples == 1) return run("aten.argmax.default", {weights, std::int64_t{-1}, true});
  return run("aten.topk.default", {weights, samples}).get<ValueList>()->at(1);
}

/// multinomial_out of ATen/native/Distributions.cpp, and its kernel.
Value eval_multinomial(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  if (self.sizes.back() > 1 << 24) fail("number of categories cannot exceed 2^24");
  const Tensor out = allocate(call, fake_multinomial);
  if (out.numel() == 0) return out;
  if (!call.boolean("replacement")) return draw_without_replacement(call);
  const Tensor chances = load(self, evaluation_dtype(self.dtype));
  const auto categories = static_cast<std::size_t>(self.sizes.back()),
             samples = static_cast<std::size_t>(out.sizes.back());
  dispatch_floating(chances.dtype, "multinomial", [&]<class T>() {
    for (std::size_t row = 0; row * samples < static_cast<std::size_t>(out.numel()); ++row)
      draw_with_replacement<T>({chances.as<T>() + row * categories, categories},
                               {out.as<std::int64_t>() + row * samples, samples}, call.generator());
  });
  return out;
}

/// sample_poisson of ATen/native/Distributions.cpp: transformed rejection for rates of at least 10 (Hoermann 1993),
/// products of uniform numbers for smaller rates.
double poisson(double rate, Generator& numbers) {
  if (!(rate >= 0)) fail("invalid Poisson rate, expected rate to be non-negative");
  if (rate == 0) return 0;
  if (rate < 10) {
    const double least = std::exp(-rate);
    double product = numbers.uniform(), count = 0;
    for (; product > least; ++count) product *= numbers.uniform();
    return count;
  }
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b,
               inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = numbers.uniform() - 0.5, v = numbers.uniform(), s = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / s + b) * u + rate + 0.43);
    if (s >= 0.07 && v <= accepted) return k;
    if (k < 0 || (s < 0.013 && v > s)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (s * s) + b) <= -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

Value eval_poisson(EvalCall& call) {
  const Tensor& rates = call.tensor("self");
  if (!is_floating(rates.dtype))
    fail("\"poisson_cpu\" not implemented for '" + std::string(torch_name(rates.dtype)) + "'");
  const Tensor out = allocate(call, row_major_self), from = unwrap(rates.to(DType::Float64));
  dispatch(out.dtype, [&]<class T>() {
    for (std::int64_t i : steps(out.numel()))
      out.as<T>()[i] = convert<T>(poisson(from.as<double>()[i], call.generator()));
  });
  return out;
}

}  // namespace

void register_sample(OpTable& t) {
  t.default_family = Family::Random;
  for (const char* name : {"aten.randperm.default", "aten.randperm.generator"})
    t.add(name, fake_permutation, eval_permutation, {}, {.autograd = {.not_differentiable = true}, .random = true});
  t.add("aten.multinomial.default", fake_multinomial, eval_multinomial, {},
        {.autograd = {.not_differentiable = true}, .random = true});
  t.add("aten.poisson.default", row_major_self, eval_poisson, {{"self", "zeros_like(self)"}}, {.random = true});
}

}  // namespace partita
