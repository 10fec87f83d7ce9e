// Operators that fill tensors with random numbers: factories, and operators that fill in place (uniform_ and others).
// All draw from the run's generator in the order of memory, and give the numbers that eager PyTorch gives on a CPU.

#include "core/ops/families.h"
#include "core/ops/families/factory_parts.h"
#include "core/ops/kernels/distributions.h"
#include "core/ops/layout.h"
#include "core/ops/promote.h"
#include "core/ops/values.h"

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
  CallOfValues metas(call);
  Tensor out = empty_of(*fake(metas.call).tensor());
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
  CallOfValues metas(call);
  const Tensor out = empty_of(*fake_normal(metas.call).tensor());
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

struct Row {
  std::string_view name;
  Meta (*fake)(FakeCall&);
  Value (*eval)(EvalCall&);
};
const Row factories[] = {
    {"aten.rand.default", fake_new, made<fake_new, unit_uniform>},
    {"aten.rand.generator", fake_new, made<fake_new, unit_uniform>},
    {"aten.randn.default", fake_new, made<fake_new, unit_normal>},
    {"aten.randn.generator", fake_new, made<fake_new, unit_normal>},
    {"aten.rand_like.default", fake_like, made<fake_like, unit_uniform>},
    {"aten.rand_like.generator", fake_like, made<fake_like, unit_uniform>},
    {"aten.randn_like.default", fake_like, made<fake_like, unit_normal>},
    {"aten.randn_like.generator", fake_like, made<fake_like, unit_normal>},
    {"aten.randint.default", fake_new_int, made<fake_new_int, integers>},
    {"aten.randint.generator", fake_new_int, made<fake_new_int, integers>},
    {"aten.randint.low", fake_new_int, made<fake_new_int, integers>},
    {"aten.randint.low_generator", fake_new_int, made<fake_new_int, integers>},
    {"aten.randint_like.default", fake_like, made<fake_like, integers>},
    {"aten.randint_like.generator", fake_like, made<fake_like, integers>},
    {"aten.randint_like.Tensor", fake_like, made<fake_like, integers>},
    {"aten.randint_like.Tensor_generator", fake_like, made<fake_like, integers>},
    {"aten.randint_like.low_dtype", fake_like, made<fake_like, integers>},
    {"aten.randint_like.low_generator_dtype", fake_like, made<fake_like, integers>},
    {"aten.normal.float_float", fake_new, made<fake_new, normal>},
    {"prims.normal.default", fake_new, made<fake_new, normal>},
};

/// An operator that returns a filled tensor, and the one that fills its argument. Their gradient by the old values is
/// 0.
struct Pair {
  std::string_view name, in_place;
  Meta (*fake)(FakeCall&);
  Value (*eval)(EvalCall&);
  Value (*eval_in_place)(EvalCall&);
};
const Pair pairs[] = {
    {"aten.uniform.default", "aten.uniform_.default", preserving_self, made<preserving_self, uniform>, filled<uniform>},
    {"aten.normal_functional.default", "aten.normal_.default", preserving_self, made<preserving_self, normal>,
     filled<normal>},
    {"aten.log_normal.default", "aten.log_normal_.default", preserving_self, made<preserving_self, log_normal>,
     filled<log_normal>},
    {"aten.cauchy.default", "aten.cauchy_.default", preserving_self, made<preserving_self, cauchy>, filled<cauchy>},
    {"aten.exponential.default", "aten.exponential_.default", preserving_self, made<preserving_self, exponential>,
     filled<exponential>},
    {"aten.geometric.default", "aten.geometric_.default", preserving_self, made<preserving_self, geometric>,
     filled<geometric>},
    {"aten.random.default", "aten.random_.default", preserving_self, made<preserving_self, any_integers>,
     filled<any_integers>},
    {"aten.random.from", "aten.random_.from", preserving_self, made<preserving_self, integers_between>,
     filled<integers_between>},
    {"aten.random.to", "aten.random_.to", preserving_self, made<preserving_self, integers_between>,
     filled<integers_between>},
    {"aten.bernoulli.p", "aten.bernoulli_.float", row_major_self, made<row_major_self, coins>, filled<coins>},
    {"aten.bernoulli.Tensor", "aten.bernoulli_.Tensor", preserving_self, made<preserving_self, biased_coins>,
     filled<biased_coins>},
};

}  // namespace

void register_random(OpTable& t) {
  for (const Row& row : factories)
    t.add(row.name, {.fake = row.fake, .eval = row.eval, .not_differentiable = true, .random = true});
  const std::vector<Derivative> none = {{"self", "zeros_like(grad)"}};
  for (const Pair& row : pairs) {
    t.add(row.name, {.fake = row.fake, .eval = row.eval, .derivative = none, .random = true});
    t.add(row.in_place, {.fake = fake_self, .eval = row.eval_in_place, .derivative = none, .random = true});
  }
  t.add("aten.bernoulli.default", row_major_self, made<row_major_self, biased_coins>, none, {.random = true});
  // mean and std get zeros of their own sizes, whatever they were broadcast to.
  const Derivative mean{"mean", "zeros_like(mean)"}, std{"std", "zeros_like(std)"};
  t.add("aten.normal.Tensor_float", fake_normal, eval_normal, {mean}, {.random = true});
  t.add("aten.normal.float_Tensor", fake_normal, eval_normal, {std}, {.random = true});
  t.add("aten.normal.Tensor_Tensor", fake_normal, eval_normal, {mean, std}, {.random = true});
}

}  // namespace partita
