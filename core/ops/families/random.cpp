// Operators that depend on a generator. Their values repeat from run to run; they are not PyTorch's.
#include "core/tensor/random.h"

#include <cmath>
#include <numeric>

#include "core/ops/families.h"
#include "core/ops/families/factory_parts.h"
#include "core/ops/families/reduce_kernels.h"
#include "core/ops/promote.h"
#include "core/ops/values.h"
#include "core/tensor/convert.h"

namespace partita {
namespace {

template <class Draw>
void draw_all(const Tensor& out, Draw draw) {
  Philox numbers = next_random_stream();
  dispatch(out.dtype, [&]<class T>() {
    Line(out.sizes, out.strides).each([&](std::int64_t at) { out.as<T>()[at] = convert<T>(draw(numbers)); });
  });
}

Meta fake_new(FakeCall& call) {
  return new_meta(call, DType::Float32, "size");
}
Meta fake_new_int(FakeCall& call) {
  return new_meta(call, DType::Int64, "size");
}
Meta fake_like(FakeCall& call) {
  return like_meta(call);
}
Meta fake_permutation(FakeCall& call) {
  return TensorMeta::contiguous(call.dtype("dtype").value_or(DType::Int64), {call.sym("n")},
                                call.device("device").value_or(Device{}));
}
Meta fake_self(FakeCall& call) {
  const TensorMeta& self = call.tensor(call.schema.args[0].name);
  TensorMeta out = TensorMeta::contiguous(self.dtype, self.sizes, self.device);
  out.strides = strides_like(call, self, self.sizes, MemoryFormat::Preserve);
  return out;
}

template <Meta (*fake)(FakeCall&), auto draw>
Value drawn(EvalCall& call) {
  CallOfValues metas(call);
  Tensor out = empty_of(*fake(metas.call).tensor());
  draw_all(out, [&](Philox& numbers) { return draw(call, numbers); });
  return out;
}

constexpr auto uniform = [](const EvalCall&, Philox& numbers) { return numbers.uniform(); };
constexpr auto normal = [](const EvalCall&, Philox& numbers) { return numbers.normal(); };
constexpr auto uniform_between = [](const EvalCall& call, Philox& numbers) {
  double from = as_double(call.number("from")), to = as_double(call.number("to"));
  return from + (to - from) * numbers.uniform();
};
constexpr auto whole = [](const EvalCall& call, Philox& numbers) {
  std::int64_t low = call.schema.index_of("low") >= 0 ? call.integer("low") : 0, high = call.integer("high");
  if (high <= low) fail("random_ expects 'from' to be less than 'to'");
  return low + static_cast<std::int64_t>(numbers.next64() % static_cast<std::uint64_t>(high - low));
};
constexpr auto coin = [](const EvalCall& call, Philox& numbers) {
  return numbers.uniform() < as_double(call.number("p")) ? 1.0 : 0.0;
};
constexpr auto exponential = [](const EvalCall& call, Philox& numbers) {
  return -std::log(1 - numbers.uniform()) / as_double(call.number("lambd"));
};

Value eval_bernoulli(EvalCall& call) {
  CallOfValues metas(call);
  Tensor out = empty_of(*fake_self(metas.call).tensor());
  Tensor p = unwrap(call.tensor(call.schema.index_of("p") >= 0 ? "p" : "self").to(DType::Float64));
  Philox numbers = next_random_stream();
  Tensor row_major = unwrap(Tensor::empty(out.dtype, out.sizes));
  dispatch(out.dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      double chance = p.as<double>()[p.numel() == 1 ? 0 : i];
      if (!(chance >= 0 && chance <= 1)) fail("Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
      row_major.as<T>()[i] = convert<T>(numbers.uniform() < chance ? 1.0 : 0.0);
    }
  });
  out.copy_from(row_major);
  return out;
}

Value eval_permutation(EvalCall& call) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(call.integer("n")));
  std::iota(order.begin(), order.end(), 0);
  Philox numbers = next_random_stream();
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[numbers.next64() % i]);
  Tensor out =
      unwrap(Tensor::empty(call.dtype("dtype").value_or(DType::Int64), {static_cast<std::int64_t>(order.size())}));
  dispatch(out.dtype, [&]<class T>() {
    for (std::size_t i = 0; i < order.size(); ++i) out.as<T>()[i] = convert<T>(order[i]);
  });
  return out;
}

/// native_dropout(input, p, train) -> (output, mask)
Meta fake_dropout(FakeCall& call) {
  Meta out = fake_self(call), mask = out;
  mask.tensor()->dtype = DType::Bool;
  MetaTuple tuple;
  tuple.items = {std::move(out), std::move(mask)};
  return tuple;
}
Value eval_dropout(EvalCall& call) {
  CallOfValues metas(call);
  Meta meta = fake_dropout(metas.call);
  Tensor mask = empty_of(*meta.tuple()->items[1].tensor());
  double keep = call.has("train") && !call.boolean("train") ? 1 : 1 - as_double(call.number("p"));
  draw_all(mask, [&](Philox& numbers) { return numbers.uniform() < keep; });
  double scale = keep > 0 ? 1 / keep : 0;
  Value masked = unwrap(evaluate(Op::torch("aten.mul.Tensor"), {call.arg("input"), mask}, {}));
  Value out = unwrap(evaluate(Op::torch("aten.mul.Scalar"), {masked, scale}, {}));
  return ValueList{out, mask};
}
Arg dropout_backward(DecomposeCall& call) {
  return call.build.expression(
      "g * (aten._to_copy.default(mask, dtype=dtype(g)) * scale)",
      {{"g", call.arg("grad_output")}, {"mask", call.arg("mask")}, {"scale", call.arg("scale")}});
}

}  // namespace

void register_random(OpTable& t) {
  struct Row {
    std::string_view name;
    Meta (*fake)(FakeCall&);
    Value (*eval)(EvalCall&);
    std::string_view derivative;  ///< of self; empty: none
  };
  const Row rows[] = {
      {"aten.rand.default", fake_new, drawn<fake_new, uniform>, ""},
      {"aten.randn.default", fake_new, drawn<fake_new, normal>, ""},
      {"aten.rand_like.default", fake_like, drawn<fake_like, uniform>, ""},
      {"aten.randn_like.default", fake_like, drawn<fake_like, normal>, ""},
      {"aten.randint.default", fake_new_int, drawn<fake_new_int, whole>, ""},
      {"aten.randint.low", fake_new_int, drawn<fake_new_int, whole>, ""},
      {"aten.randint_like.default", fake_like, drawn<fake_like, whole>, ""},
      {"aten.randint_like.low_dtype", fake_like, drawn<fake_like, whole>, ""},
      {"aten.randperm.default", fake_permutation, eval_permutation, ""},
      {"aten.uniform.default", fake_self, drawn<fake_self, uniform_between>, "zeros_like(grad)"},
      {"aten.exponential.default", fake_self, drawn<fake_self, exponential>, "zeros_like(grad)"},
      {"aten.bernoulli.default", fake_self, eval_bernoulli, "zeros_like(grad)"},
      {"aten.bernoulli.p", fake_self, drawn<fake_self, coin>, "zeros_like(grad)"},
      {"aten.bernoulli.Tensor", fake_self, eval_bernoulli, "zeros_like(grad)"},
  };
  for (const Row& row : rows) {
    OpRecord record{.fake = row.fake, .eval = row.eval, .not_differentiable = row.derivative.empty(), .random = true};
    if (!row.derivative.empty()) record.derivative = {{"self", row.derivative}};
    t.add(row.name, std::move(record));
  }
  t.add("aten.native_dropout.default",
        {.fake = fake_dropout,
         .eval = eval_dropout,
         .derivative = {{"input", "native_dropout_backward(grad, result1, dropout_scale(p, train))"}},
         .random = true});
  t.add("aten.native_dropout_backward.default", {.decompose = dropout_backward});
}

}  // namespace partita
