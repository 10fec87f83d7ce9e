#include "core/ops/kernels/outputs.h"
#include "core/ops/lowerings.h"
#include "core/ops/promote.h"

namespace partita::loops {
namespace {

/// Arithmetic on tensors in one dtype, with broadcasting.
struct Arithmetic {
  Lowering& to;
  DType dtype;

  LoweredTensor operator()(const std::vector<LoweredTensor>& inputs, ScalarFunction f) const {
    return pointwise(to, dtype, dtype, inputs, std::move(f));
  }
  LoweredTensor sum(const LoweredTensor& t, const std::vector<bool>& reduced) const {
    return to.reduce(t, ScalarOp::Add, reduced);
  }
  LoweredTensor mean(const LoweredTensor& t, const std::vector<bool>& reduced) const {
    double n = 1;
    for (std::size_t d = 0; d < reduced.size(); ++d)
      if (reduced[d]) n *= static_cast<double>(t.sizes[d]);
    return (*this)({sum(t, reduced)},
                   [=](ScalarBuilder& b, auto x) { return b.Div(x[0], b.constant(b.dtype(x[0]), n)); });
  }
  LoweredTensor mul(const LoweredTensor& a, const LoweredTensor& b) const {
    return (*this)({a, b}, [](ScalarBuilder& s, auto x) { return s.Mul(x[0], x[1]); });
  }
  LoweredTensor sub(const LoweredTensor& a, const LoweredTensor& b) const {
    return (*this)({a, b}, [](ScalarBuilder& s, auto x) { return s.Sub(x[0], x[1]); });
  }
  LoweredTensor square(const LoweredTensor& a) const {
    return (*this)({a}, [](ScalarBuilder& s, auto x) { return s.Mul(x[0], x[0]); });
  }
  LoweredTensor rsqrt(const LoweredTensor& a, double eps) const {
    return (*this)({a}, [=](ScalarBuilder& b, auto x) { return b.Rsqrt(b.Add(x[0], b.constant(b.dtype(x[0]), eps))); });
  }
};

Arithmetic arithmetic(LowerCall& call, const LoweredTensor& t) {
  if (!is_floating(t.dtype)) fail_unsupported("normalisation of " + std::string(torch_name(t.dtype)));
  return {call.to, arithmetic_dtype(t.dtype)};
}

/// centred * rstd * weight + bias; operands that are not valid are left out.
LoweredTensor affine(const Arithmetic& make, const LoweredTensor& centred, const LoweredTensor& rstd,
                     const LoweredTensor& weight, const LoweredTensor& bias) {
  LoweredTensor y = rstd.valid() ? make.mul(centred, rstd) : centred;
  if (weight.valid()) y = make.mul(y, weight);
  if (bias.valid()) y = make({y, bias}, [](ScalarBuilder& b, auto x) { return b.Add(x[0], x[1]); });
  return y;
}

LoweredTensor optional(LowerCall& call, std::string_view name) {
  return call.has(name) ? call.in(name) : LoweredTensor();
}

std::vector<bool> trailing(std::size_t rank, std::size_t count, bool value = true) {
  std::vector<bool> mask(rank, !value);
  for (std::size_t d = rank - count; d < rank; ++d) mask[d] = value;
  return mask;
}

std::vector<bool> but_channel(std::size_t rank) {
  std::vector<bool> mask(rank, true);
  if (rank > 1) mask[1] = false;
  return mask;
}

/// Views a [C] tensor as [1, C, 1, ...].
LoweredTensor by_channel(Lowering& to, const LoweredTensor& t, std::size_t rank) {
  if (!t.valid()) return t;
  Sizes sizes(rank, 1);
  sizes[1] = t.numel();
  return to.reshape(t, sizes);
}

LoweredTensor flat(Lowering& to, const LoweredTensor& t) {
  return to.reshape(t, {t.numel()});
}

/// Gives out, save_mean and save_invstd; then, if `functional`, the new running statistics.
void give_batch_norm(LowerCall& call, bool training, bool functional) {
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  Lowering& to = call.to;
  LoweredTensor x = to.cast(input, make.dtype);
  std::size_t rank = x.dim();
  double eps = as_double(call.number("eps"));
  LoweredTensor weight = by_channel(to, optional(call, "weight"), rank),
                bias = by_channel(to, optional(call, "bias"), rank);
  bool has_stats = call.schema.index_of("running_mean") >= 0 && call.has("running_mean");
  LoweredTensor running_mean = has_stats ? call.in("running_mean") : LoweredTensor();
  LoweredTensor running_var = has_stats ? call.in("running_var") : LoweredTensor();
  if (!training) {
    LoweredTensor mean = by_channel(to, running_mean, rank);
    LoweredTensor rstd = make.rsqrt(by_channel(to, running_var, rank), eps);
    call.give(affine(make, make.sub(x, mean), rstd, weight, bias));
    for (std::size_t i : {1, 2}) call.give(to.constant(call.out(i).dtype, call.out_sizes(i), 0));
    if (functional)  // results must be copies, not the arguments
      for (const LoweredTensor& kept : {running_mean, running_var})
        call.give(to.map(kept.dtype, kept.sizes, [kept](Body& body, const Index& i) { return body.read(kept, i); }));
    return;
  }
  std::vector<bool> reduced = but_channel(rank);
  double n = static_cast<double>(x.numel()) / static_cast<double>(x.sizes[1]);
  // Eager PyTorch rounds the mean and 1/std to the statistics' dtype before it uses them. In bfloat16 it also rounds
  // the sum of squares and divides in bfloat16.
  const DType kept = call.out(1).dtype;
  const bool narrow = kept == DType::BFloat16;
  auto rounded = [&](const LoweredTensor& t) { return to.cast(to.cast(t, kept), make.dtype); };
  auto in_statistics = [&](const LoweredTensor& t) { return narrow ? rounded(t) : t; };
  auto divided = [&](const LoweredTensor& t, double by) {
    if (narrow) by = kernels::rounded(kept, static_cast<float>(by));
    return in_statistics(
        make({t}, [=](ScalarBuilder& b, auto v) { return b.Div(v[0], b.constant(b.dtype(v[0]), by)); }));
  };
  LoweredTensor centred_exactly = make.sub(x, make.mean(x, reduced));
  LoweredTensor mean = rounded(make.mean(x, reduced)), centred = make.sub(x, mean);
  LoweredTensor squares = in_statistics(make.sum(make.square(centred_exactly), reduced));
  LoweredTensor rstd = rounded(make.rsqrt(divided(squares, n), eps));
  call.give(affine(make, centred, rstd, weight, bias));
  call.give(flat(to, mean));
  call.give(flat(to, rstd));
  if (!functional) return;
  double momentum = as_double(call.number("momentum"));
  auto blend = [&](const LoweredTensor& running, const LoweredTensor& now) {
    return make({running, flat(to, now)}, [=](ScalarBuilder& b, auto v) {
      DType t = b.dtype(v[0]);
      return b.Add(b.Mul(v[1], b.constant(t, momentum)), b.Mul(v[0], b.constant(t, 1 - momentum)));
    });
  };
  call.give(blend(running_mean, mean));
  call.give(blend(running_var, divided(squares, n - 1)));  // for a single sample this is 0 / 0, as in PyTorch
}

}  // namespace

Status lower_layer_norm(LowerCall& call) {
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  LoweredTensor x = call.to.cast(input, make.dtype);
  if (x.numel() == 0) fail_unsupported("normalisation of rows without elements");
  std::vector<bool> reduced = trailing(x.dim(), call.integers("normalized_shape").size());
  LoweredTensor mean = make.mean(x, reduced);
  LoweredTensor centred = make.sub(x, mean);
  LoweredTensor rstd = make.rsqrt(make.mean(make.square(centred), reduced), as_double(call.number("eps")));
  LoweredTensor weight = optional(call, "weight"), bias = optional(call, "bias");
  if (make.dtype == input.dtype) {
    call.give(affine(make, centred, rstd, weight, bias));
  } else {  // PyTorch's kernel for half types adds -mean * rstd in a fused step
    LoweredTensor hat =
        make({x, rstd, mean}, [](ScalarBuilder& b, auto v) { return b.Fma(v[0], v[1], b.Neg(b.Mul(v[2], v[1]))); });
    call.give(affine(make, hat, {}, weight, bias));
  }
  call.give(mean);
  call.give(rstd);
  return {};
}

Status lower_layer_norm_backward(LowerCall& call) {
  LoweredTensor dy = call.to.reshape(call.in("grad_out"), call.in("input").sizes);
  Arithmetic make = arithmetic(call, dy);
  LoweredTensor g = call.to.cast(dy, make.dtype), x = call.to.cast(call.in("input"), make.dtype);
  std::size_t inner = call.integers("normalized_shape").size();
  std::vector<bool> row = trailing(x.dim(), inner), outer = trailing(x.dim(), inner, false);
  // mean and rstd may be flat or have the input's rank; only their number of elements matters.
  Sizes statistics = x.sizes;
  for (std::size_t d = 0; d < row.size(); ++d)
    if (row[d]) statistics[d] = 1;
  LoweredTensor mean = call.to.reshape(call.in("mean"), statistics);
  LoweredTensor rstd = call.to.reshape(call.in("rstd"), statistics), weight = optional(call, "weight");
  LoweredTensor hat = make.mul(make.sub(x, mean), rstd);
  const ArgList* mask = call.arg("output_mask").get<ArgList>();
  auto wanted = [&](std::size_t i) { return *mask->items.at(i).get<bool>(); };
  if (wanted(0)) {
    LoweredTensor scaled = weight.valid() ? make.mul(g, weight) : g;
    LoweredTensor m1 = make.mean(scaled, row), m2 = make.mean(make.mul(scaled, hat), row);
    call.give(make({scaled, m1, hat, m2, rstd},
                   [](ScalarBuilder& b, auto v) { return b.Mul(v[4], b.Sub(b.Sub(v[0], v[1]), b.Mul(v[2], v[3]))); }));
  } else {
    call.give_none();
  }
  if (wanted(1) && weight.valid())
    call.give(make.sum(make.mul(g, hat), outer));
  else
    call.give_none();
  if (wanted(2) && call.has("bias"))
    call.give(make.sum(g, outer));
  else
    call.give_none();
  return {};
}

Status lower_rms_norm(LowerCall& call) {
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  LoweredTensor x = call.to.cast(input, make.dtype);
  std::vector<bool> reduced = trailing(x.dim(), call.integers("normalized_shape").size());
  double eps = call.has("eps")                ? as_double(call.number("eps"))
               : make.dtype == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                              : std::numeric_limits<float>::epsilon();
  LoweredTensor rstd = make.rsqrt(make.mean(make.square(x), reduced), eps);
  call.give(affine(make, x, rstd, optional(call, "weight"), {}));
  call.give(rstd);
  return {};
}

Status lower_group_norm(LowerCall& call) {
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  Lowering& to = call.to;
  if (input.numel() == 0) fail_unsupported("normalisation of groups without elements");
  std::int64_t n = call.integer("N"), c = call.integer("C"), hw = call.integer("HxW"), groups = call.integer("group");
  LoweredTensor x = to.reshape(to.cast(input, make.dtype), {n, groups, c / groups, hw});
  std::vector<bool> reduced{false, false, true, true};
  LoweredTensor mean = make.mean(x, reduced);
  LoweredTensor centred = make.sub(x, mean);
  LoweredTensor rstd = make.rsqrt(make.mean(make.square(centred), reduced), as_double(call.number("eps")));
  auto channel = [&](std::string_view name) {
    LoweredTensor t = optional(call, name);
    return t.valid() ? to.reshape(t, {1, groups, c / groups, 1}) : t;
  };
  call.give(affine(make, centred, rstd, channel("weight"), channel("bias")));
  call.give(mean);
  call.give(rstd);
  return {};
}

Status lower_batch_norm(LowerCall& call) {
  if (call.boolean("training") && call.schema.index_of("running_mean") >= 0 && call.has("running_mean"))
    fail_unsupported("batch norm that changes its running statistics; functionalise first");
  give_batch_norm(call, call.boolean("training"), false);
  return {};
}

Status lower_batch_norm_functional(LowerCall& call) {
  return give_batch_norm(call, call.boolean("training"), true), Status();
}
Status lower_batch_norm_inference(LowerCall& call) {
  return give_batch_norm(call, false, false), Status();
}

Status lower_batch_norm_backward(LowerCall& call) {
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  Lowering& to = call.to;
  std::size_t rank = input.dim();
  LoweredTensor g = to.cast(call.in("grad_out"), make.dtype), x = to.cast(input, make.dtype);
  LoweredTensor weight = by_channel(to, optional(call, "weight"), rank);
  bool train = call.boolean("train");
  LoweredTensor mean = by_channel(to, call.in(train ? "save_mean" : "running_mean"), rank);
  LoweredTensor rstd = train ? by_channel(to, call.in("save_invstd"), rank)
                             : make.rsqrt(by_channel(to, call.in("running_var"), rank), as_double(call.number("eps")));
  std::vector<bool> reduced = but_channel(rank);
  LoweredTensor centred = make.sub(x, mean);
  LoweredTensor sum_g = make.sum(g, reduced), dot = make.sum(make.mul(g, centred), reduced);
  const ArgList* mask = call.arg("output_mask").get<ArgList>();
  auto wanted = [&](std::size_t i) { return *mask->items.at(i).get<bool>(); };
  double n = static_cast<double>(x.numel()) / static_cast<double>(x.sizes[1]);
  if (wanted(0)) {
    LoweredTensor scale = weight.valid() ? make.mul(rstd, weight) : rstd;
    if (train) {
      LoweredTensor slope = make({dot, rstd}, [=](ScalarBuilder& b, auto v) {
        return b.Div(b.Mul(b.Mul(v[0], v[1]), v[1]), b.constant(b.dtype(v[0]), n));
      });
      LoweredTensor shift =
          make({sum_g}, [=](ScalarBuilder& b, auto v) { return b.Div(v[0], b.constant(b.dtype(v[0]), n)); });
      call.give(make({g, shift, centred, slope, scale}, [](ScalarBuilder& b, auto v) {
        return b.Mul(b.Sub(b.Sub(v[0], v[1]), b.Mul(v[2], v[3])), v[4]);
      }));
    } else {
      call.give(make.mul(g, scale));
    }
  } else {
    call.give_none();
  }
  if (wanted(1))
    call.give(make.mul(dot, rstd));
  else
    call.give_none();
  if (wanted(2))
    call.give(sum_g);
  else
    call.give_none();
  return {};
}

}  // namespace partita::loops
