// Operators that fill tensors with random numbers: factories, and operators that fill in place (uniform_ and others).
// All draw from the run's generator in the order of memory, and give the numbers that eager PyTorch gives on a CPU.

#include "core/ops/families/factory_parts.h"
#include "core/ops/kernels/distributions.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

using namespace kernels;
using Fill = void (*)(const Tensor& out, const EvalCall& call);

double real(const EvalCall& call, std::string_view name) {
  return as_double(call.number(name));
}

// The fill functions of the operators.
void unit_uniform(const Tensor& out, const EvalCall& call) {
  fill_uniform(out, 0, 1, call.generator());
}
void unit_normal(const Tensor& out, const EvalCall& call) {
  fill_normal(out, 0, 1, call.generator());
}
void uniform(const Tensor& out, const EvalCall& call) {
  fill_uniform(out, real(call, "from"), real(call, "to"), call.generator());
}
void normal(const Tensor& out, const EvalCall& call) {
  fill_normal(out, real(call, "mean"), real(call, "std"), call.generator());
}
void log_normal(const Tensor& out, const EvalCall& call) {
  fill_log_normal(out, real(call, "mean"), real(call, "std"), call.generator());
}
void cauchy(const Tensor& out, const EvalCall& call) {
  fill_cauchy(out, real(call, "median"), real(call, "sigma"), call.generator());
}
void exponential(const Tensor& out, const EvalCall& call) {
  if (!is_floating(out.dtype))
    fail(
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
        "specified " +
        std::string(torch_name(out.dtype)));
  fill_exponential(out, real(call, "lambd"), call.generator());
}
void geometric(const Tensor& out, const EvalCall& call) {
  fill_geometric(out, real(call, "p"), call.generator());
}
void coins(const Tensor& out, const EvalCall& call) {
  fill_bernoulli(out, real(call, "p"), call.generator());
}
void biased_coins(const Tensor& out, const EvalCall& call) {
  fill_bernoulli(out, call.tensor(call.schema.index_of("p") >= 0 ? "p" : "self"), call.generator());
}
/// Integers from low (0 if the overload has none) up to, but not including, high. randint_like may take high as a
/// tensor with one element.
void integers(const Tensor& out, const EvalCall& call) {
  const std::int64_t low = call.schema.index_of("low") >= 0 ? call.integer("low") : 0;
  std::int64_t high;
  if (call.is_tensor("high")) {
    const Tensor& t = call.tensor("high");
    if (t.numel() != 1) fail("high must be a scalar tensor");
    high = *unwrap(t.to(DType::Int64)).as<std::int64_t>();
  } else {
    high = call.integer("high");
  }
  fill_integers(out, low, high, call.generator());
}
void any_integers(const Tensor& out, const EvalCall& call) {
  fill_integers(out, call.generator());
}
void integers_between(const Tensor& out, const EvalCall& call) {
  const bool from = call.schema.index_of("from") >= 0;
  fill_integers(out, from ? call.integer("from") : 0, call.has("to") ? std::optional(call.integer("to")) : std::nullopt,
                call.generator());
}

Meta fake_new(FakeCall& call) {
  return new_meta(call, DType::Float32, call.schema.index_of("size") >= 0 ? "size" : "shape");
}
Meta fake_new_int(FakeCall& call) {
  return new_meta(call, DType::Int64, "size");
}
Meta fake_self(FakeCall& call) {
  return call.tensor("self");
}

template <Meta (*fake)(FakeCall&), Fill fill>
Value made(EvalCall& call) {
  Tensor out = empty_of(call, fake);
  fill(out, call);
  return out;
}
template <Fill fill>
Value filled(EvalCall& call) {
  fill(call.tensor("self"), call);
  return call.tensor("self");
}

/// normal(mean, std) where at least one is a tensor: standard normal numbers times std plus mean, in the dtype of the
/// first tensor.
Meta fake_normal(FakeCall& call) {
  if (!call.is_tensor("mean")) return new_like(call.tensor("std"), call.tensor("std").sizes);
  const TensorMeta& mean = call.tensor("mean");
  if (!call.is_tensor("std")) return new_like(mean, mean.sizes);
  return new_like(mean, broadcast(call, std::vector{mean.sizes, call.tensor("std").sizes}));
}
Value eval_normal(EvalCall& call) {
  const Tensor out = empty_of(call, fake_normal);
  const auto update = [&](const char* op, const Value& other) {
    unwrap(evaluate(Op::torch(op), {out, other}, {}, call.context));
  };
  if (call.is_tensor("std")) {
    const Tensor least = unwrap(call.tensor("std").to(DType::Float64));
    for (std::int64_t i : steps(least.numel()))
      if (!(least.as<double>()[i] >= 0)) fail("normal expects all elements of std >= 0.0");
    fill_normal(out, 0, 1, call.generator());
    update("aten.mul_.Tensor", call.arg("std"));
  } else {
    fill_normal(out, 0, real(call, "std"), call.generator());
  }
  update("aten.add_.Tensor", call.arg("mean"));
  return out;
}

/// The generator's state, as torch.get_rng_state() gives it, and back.
Meta fake_state(FakeCall&) {
  return TensorMeta::contiguous(DType::UInt8, {static_cast<std::int64_t>(Generator::state_size)}, Device{});
}
Value eval_state(EvalCall& call) {
  const Tensor out = empty_of(call, fake_state);
  std::ranges::copy(call.generator().state(), reinterpret_cast<std::byte*>(out.as<std::uint8_t>()));
  return out;
}
Meta fake_set_state(FakeCall&) {
  return {};
}
Value eval_set_state(EvalCall& call) {
  const Tensor state = unwrap(call.tensor("state").clone());
  if (state.dtype != DType::UInt8) fail("RNG state must be a torch.ByteTensor");
  const auto* bytes = reinterpret_cast<const std::byte*>(state.as<std::uint8_t>());
  if (!call.generator().set_state({bytes, static_cast<std::size_t>(state.numel())}))
    fail("RNG state is no state of the CPU's generator");
  return {};
}

template <Meta (*fake)(FakeCall&), Fill fill>
void add_factory(OpTable& t, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    t.add(name, fake, made<fake, fill>, {}, {.autograd = {.not_differentiable = true}, .random = true});
}

/// An operator that returns a filled tensor, and the one that fills its argument. Their gradient by the old values is
/// 0.
template <Fill fill, Meta (*fake)(FakeCall&) = preserving_self>
void add_pair(OpTable& t, std::string_view name, std::string_view in_place,
              const std::vector<Derivative>& derivative = {{"self", "zeros_like(grad)"}}) {
  t.add(name, fake, made<fake, fill>, derivative, {.random = true});
  t.add(in_place, fake_self, filled<fill>, derivative, {.random = true});
}

}  // namespace

void register_random(OpTable& t) {
  t.default_family = Family::Random;
  t.add("partita.get_rng_state.default", fake_state, eval_state, {},
        {.autograd = {.not_differentiable = true}, .random = true});
  t.add("partita.set_rng_state.default", fake_set_state, eval_set_state, {},
        {.autograd = {.not_differentiable = true}, .random = true, .side_effect = true});
  add_factory<fake_new, unit_uniform>(t, {"aten.rand.default", "aten.rand.generator"});
  add_factory<fake_new, unit_normal>(t, {"aten.randn.default", "aten.randn.generator"});
  add_factory<fake_like, unit_uniform>(t, {"aten.rand_like.default", "aten.rand_like.generator"});
  add_factory<fake_like, unit_normal>(t, {"aten.randn_like.default", "aten.randn_like.generator"});
  add_factory<fake_new_int, integers>(
      t, {"aten.randint.default", "aten.randint.generator", "aten.randint.low", "aten.randint.low_generator"});
  add_factory<fake_like, integers>(t, {"aten.randint_like.default", "aten.randint_like.generator",
                                       "aten.randint_like.Tensor", "aten.randint_like.Tensor_generator",
                                       "aten.randint_like.low_dtype", "aten.randint_like.low_generator_dtype"});
  add_factory<fake_new, normal>(t, {"aten.normal.float_float", "prims.normal.default"});
  add_pair<uniform>(t, "aten.uniform.default", "aten.uniform_.default");
  add_pair<normal>(t, "aten.normal_functional.default", "aten.normal_.default");
  add_pair<log_normal>(t, "aten.log_normal.default", "aten.log_normal_.default");
  add_pair<cauchy>(t, "aten.cauchy.default", "aten.cauchy_.default");
  add_pair<exponential>(t, "aten.exponential.default", "aten.exponential_.default");
  add_pair<geometric>(t, "aten.geometric.default", "aten.geometric_.default");
  add_pair<any_integers>(t, "aten.random.default", "aten.random_.default");
  add_pair<integers_between>(t, "aten.random.from", "aten.random_.from");
  add_pair<integers_between>(t, "aten.random.to", "aten.random_.to");
  add_pair<coins, row_major_self>(t, "aten.bernoulli.p", "aten.bernoulli_.float");
  add_pair<biased_coins>(t, "aten.bernoulli.Tensor", "aten.bernoulli_.Tensor",
                         {{"self", "zeros_like(grad)"}, {"p", "zeros_like(p)"}});
  t.add("aten.bernoulli.default", row_major_self, made<row_major_self, biased_coins>, {{"self", "zeros_like(grad)"}},
        {.random = true});
  // mean and std get zeros of their own sizes, whatever they were broadcast to.
  const Derivative mean{"mean", "zeros_like(mean)"}, std{"std", "zeros_like(std)"};
  t.add("aten.normal.Tensor_float", fake_normal, eval_normal, {mean}, {.random = true});
  t.add("aten.normal.float_Tensor", fake_normal, eval_normal, {std}, {.random = true});
  t.add("aten.normal.Tensor_Tensor", fake_normal, eval_normal, {mean, std}, {.random = true});
}

}  // namespace partita
