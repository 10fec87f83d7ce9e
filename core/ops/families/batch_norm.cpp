// The batch norm family. Its operators compute the same and differ in the running statistics: they are updated,
// returned as results, only read, or absent.
#include "core/ops/families/lower_norm.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

std::vector<bool> but_channel(std::size_t rank) {
  std::vector<bool> mask(rank, true);
  if (rank > 1) mask[1] = false;
  return mask;
}

/// Views a [C] tensor as [1, C, 1, ...].
LoweredTensor by_channel(Lowering& to, const LoweredTensor& t, std::size_t rank) {
  if (!t.valid()) return t;
  SymList sizes(rank, 1);
  sizes[1] = t.numel();
  return to.reshape(t, sizes);
}

LoweredTensor flat(Lowering& to, const LoweredTensor& t) {
  return to.reshape(t, {t.numel()});
}

/// The number of elements of each channel.
SymExpr samples(const LoweredTensor& x) {
  SymExpr n = 1;
  for (std::size_t d = 0; d < x.dim(); ++d)
    if (d != 1) n = n * x.sizes[d];
  return n;
}

/// Images, or rows of few images, have moments of their own, which threads compute while the image is in cache. This
/// reads the tensor once.
GroupMoments channel_moments(const Arithmetic& make, const LoweredTensor& x, const std::vector<bool>& reduced) {
  constexpr std::int64_t few_images = 8;
  std::vector<bool> parts(reduced.size(), false);
  parts[0] = true;
  if (x.dim() > 3) parts[2] = make.to.hint(x.sizes[0]) < few_images;
  return moments_by_parts(make, x, reduced, parts);
}

/// How an operator of the family treats the running statistics, and where it learns whether it trains: Argument and
/// None, Functional by its argument; NoTraining never trains; Update and UpdateFunctional always do.
enum class Stats { Argument, None, NoTraining, Functional, Update, UpdateFunctional };

template <Stats stats>
bool trains(const auto& c) {
  if constexpr (stats == Stats::NoTraining)
    return false;
  else if constexpr (stats == Stats::Update || stats == Stats::UpdateFunctional)
    return true;
  else
    return c.boolean("training");
}

template <Stats stats>
constexpr bool gives_reserve = stats == Stats::Update || stats == Stats::UpdateFunctional;
template <Stats stats>
constexpr bool is_functional = stats == Stats::Functional || stats == Stats::UpdateFunctional;

/// Gives out, save_mean and save_invstd; then, if functional, the new running statistics.
template <Stats stats>
void lower_batch_norm(LowerCall& call) {
  const bool training = trains<stats>(call);
  const auto statistic = [&](std::string_view name) {
    return call.schema.index_of(name) >= 0 ? optional(call, name) : LoweredTensor();
  };
  const LoweredTensor running_mean = statistic("running_mean"), running_var = statistic("running_var");
  if (stats == Stats::Argument && training && running_mean.valid())
    fail_unsupported("batch norm that changes its running statistics; functionalise first");
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  Lowering& to = call.to;
  LoweredTensor x = to.cast(input, make.dtype);
  std::size_t rank = x.dim();
  double eps = as_double(call.number("eps"));
  LoweredTensor weight = by_channel(to, optional(call, "weight"), rank),
                bias = by_channel(to, optional(call, "bias"), rank);
  if (!training) {
    LoweredTensor mean = by_channel(to, running_mean, rank);
    LoweredTensor rstd = make.rsqrt(by_channel(to, running_var, rank), eps);
    call.give(affine(make, make.sub(x, mean), rstd, weight, bias));
    for (std::size_t i : {1, 2}) call.give(to.constant(call.out(i).dtype, call.out_sizes(i), 0));
    if (is_functional<stats>)  // results must be copies, not the arguments
      for (const LoweredTensor& kept : {running_mean, running_var})
        call.give(to.map(kept.dtype, kept.sizes, [kept](Body& body, const Index& i) { return body.read(kept, i); }));
    return;
  }
  std::vector<bool> reduced = but_channel(rank);
  const SymExpr n = samples(x);
  // Eager PyTorch rounds the mean and 1/std to the statistics' dtype before it uses them. In bfloat16 it also rounds
  // the sum of squares and divides in bfloat16.
  const DType kept = call.out(1).dtype;
  const bool narrow = kept == DType::BFloat16;
  auto rounded = [&](const LoweredTensor& t) { return to.cast(to.cast(t, kept), make.dtype); };
  auto in_statistics = [&](const LoweredTensor& t) { return narrow ? rounded(t) : t; };
  auto divided = [&](const LoweredTensor& t, SymExpr by) {
    return in_statistics(make({t}, [=](ScalarBuilder& b, auto v) {
      const Scalar n = b.count(b.dtype(v[0]), by);
      return b.Div(v[0], narrow ? b.cast(b.cast(n, kept), b.dtype(v[0])) : n);
    }));
  };
  const GroupMoments m = channel_moments(make, x, reduced);
  LoweredTensor mean = rounded(m.mean), centred = make.sub(x, mean);
  LoweredTensor squares = in_statistics(m.squares);
  LoweredTensor rstd = rounded(make.rsqrt(divided(squares, n), eps));
  call.give(affine(make, centred, rstd, weight, bias));
  call.give(flat(to, mean));
  call.give(flat(to, rstd));
  if (gives_reserve<stats>) call.give(to.constant(call.out(3).dtype, call.out_sizes(3), 0));
  if (!is_functional<stats>) return;
  double momentum = as_double(call.number("momentum"));
  auto blend = [&](const LoweredTensor& running, const LoweredTensor& now) {
    return make({running, flat(to, now)}, [=](ScalarBuilder& b, auto v) {
      DType t = b.dtype(v[0]);
      return b.Add(b.Mul(v[1], b.constant(t, momentum)), b.Mul(v[0], b.constant(t, 1 - momentum)));
    });
  };
  give_if(call, running_mean.valid(), [&] { return blend(running_mean, mean); });
  // For a single sample this is 0 / 0, as in PyTorch.
  give_if(call, running_var.valid(), [&] { return blend(running_var, divided(squares, n - 1)); });
}

void lower_batch_norm_backward(LowerCall& call) {
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
  const std::vector<bool> wanted = call.booleans("output_mask");
  const SymExpr n = samples(x);
  give_if(call, wanted.at(0), [&] {
    LoweredTensor scale = weight.valid() ? make.mul(rstd, weight) : rstd;
    if (!train) return make.mul(g, scale);
    LoweredTensor slope = make({dot, rstd}, [=](ScalarBuilder& b, auto v) {
      return b.Div(b.Mul(b.Mul(v[0], v[1]), v[1]), b.count(b.dtype(v[0]), n));
    });
    LoweredTensor shift =
        make({sum_g}, [=](ScalarBuilder& b, auto v) { return b.Div(v[0], b.count(b.dtype(v[0]), n)); });
    return make({g, shift, centred, slope, scale},
                [](ScalarBuilder& b, auto v) { return b.Mul(b.Sub(b.Sub(v[0], v[1]), b.Mul(v[2], v[3])), v[4]); });
  });
  give_if(call, wanted.at(1), [&] { return make.mul(dot, rstd); });
  give_if(call, wanted.at(2), [&] { return sum_g; });
}

using namespace kernels;

/// The number of channels.
SymExpr channels_of(const TensorMeta& input) {
  if (input.dim() < 2) fail("batch norm expects an input of at least 2 dimensions, got " + std::to_string(input.dim()));
  return input.sizes[1];
}

void check_channels(const FakeCall& c, SymExpr channels, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (c.schema.index_of(name) < 0 || !c.has(name)) continue;
    const TensorMeta& t = c.tensor(name);
    if (t.dim() != 1 || !checked(c, sym_eq(t.sizes[0], channels), "batch norm channels"))
      fail(std::string(name) + " should contain " + channels.str() + " elements not " + t.numel().str());
  }
}

template <Stats stats>
Meta fake_batch_norm(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  const SymExpr channels = channels_of(input);
  check_channels(c, channels, {"weight", "bias", "running_mean", "running_var"});
  const bool statistics = c.schema.index_of("running_mean") >= 0 && c.has("running_mean") && c.has("running_var");
  if (!trains<stats>(c) && !statistics) fail("batch norm in evaluation needs running statistics");
  for (std::size_t d = 0; trains<stats>(c) && d < input.dim(); ++d)
    if (d != 1 && input.sizes[d].is(0)) fail("Expected more than 1 value per channel when training");
  TensorMeta out = new_like(input, input.sizes, suggest_memory_format(input, c.shapes));
  TensorMeta saved = new_like(input, {trains<stats>(c) ? channels : SymExpr(0)});
  MetaTuple result{{out, saved, saved}};
  if constexpr (gives_reserve<stats>) {
    TensorMeta reserve = new_like(input, {0});
    reserve.dtype = DType::UInt8;
    result.items.emplace_back(std::move(reserve));
  }
  if constexpr (is_functional<stats>)
    for (std::string_view name : {"running_mean", "running_var"}) {
      TensorMeta now = new_like(c.has(name) ? c.tensor(name) : input, {channels});
      // PyTorch's new statistics have the precision that is computed in; a copy_ rounds them.
      const bool kept = trains<stats>(c) && now.dtype == DType::Float64;
      if (!kept) now.dtype = opmath_dtype(input.dtype);
      result.items.push_back(meta_if(c.has(name), std::move(now)));
    }
  return result;
}

Meta fake_batch_norm_backward(FakeCall& c) {
  const TensorMeta &input = c.tensor("input"), &grad = c.tensor(c.schema.args[0].name);
  const SymExpr channels = channels_of(input);
  if (!checked_sizes(c, grad.sizes, input.sizes, "batch norm gradient"))
    fail("batch norm backward: the gradient does not have the sizes of the input");
  check_channels(c, channels, {"weight", "running_mean", "running_var"});
  // In evaluation save_mean and save_invstd may be empty.
  for (std::string_view name : {"save_mean", "save_invstd"})
    if (c.boolean("train") || (c.has(name) && !c.tensor(name).numel().is(0))) check_channels(c, channels, {name});
  const bool train = c.boolean("train");
  if (!c.has(train ? "save_mean" : "running_mean") || !c.has(train ? "save_invstd" : "running_var"))
    fail("native_batch_norm_backward: statistics are missing");
  TensorMeta parameter = new_like(c.has("weight") ? c.tensor("weight") : input, {channels});
  return gradients_by_mask(c, new_like(input, input.sizes, suggest_memory_format(input, c.shapes)), parameter,
                           parameter);
}

/// Calls the functional operator, and writes its last two results into the running statistics.
template <Stats stats>
Value eval_updating(EvalCall& c) {
  ValueList results =
      *unwrap(evaluate(Op::torch(c.schema.base + "_functional.default"), c.args, {}, c.context)).get<ValueList>();
  for (const char* name : {"running_var", "running_mean"}) {
    if (trains<stats>(c) && c.has(name)) Tensor(c.tensor(name)).copy_from(*results.back().get<Tensor>());
    results.pop_back();
  }
  return results;
}

/// Calls the overload of native_batch_norm that fits the running statistics.
Node* native_batch_norm(DecomposeCall& c, Arg input, Arg weight, Arg bias, Arg mean, Arg var) {
  Builder& b = c.build;
  if (mean.is_none() != var.is_none()) fail("running_mean and running_var should both be None or both be provided.");
  Arg training = c.arg("training"), momentum = c.arg("momentum"), eps = c.arg("eps");
  if (mean.is_none())
    return b.call("aten._native_batch_norm_legit.no_stats", {input, weight, bias, training, momentum, eps});
  if (c.boolean("training"))
    return b.call("aten._native_batch_norm_legit.default", {input, weight, bias, mean, var, training, momentum, eps});
  return b.call("aten._native_batch_norm_legit_no_training.default", {input, weight, bias, mean, var, momentum, eps});
}

Arg decompose_native_batch_norm(DecomposeCall& c) {
  Builder& b = c.build;
  Node* result =
      native_batch_norm(c, c.arg("input"), c.arg("weight"), c.arg("bias"), c.arg("running_mean"), c.arg("running_var"));
  return Arg::tuple({b.getitem(result, 0), b.getitem(result, 1), b.getitem(result, 2)});
}

Arg decompose_batch_norm(DecomposeCall& c) {
  Builder& b = c.build;
  const SymExpr numel = c.tensor("input").numel();
  if (numel.is(0)) {  // a copy, made by operators through which gradients flow
    Node* out = b.call("aten.clone.default", {c.arg("input")});
    auto first = [&](const char* name) { return b.call("aten.select.int", {c.arg(name), 0, 0}); };
    if (c.has("weight")) out = b.call("aten.mul.Tensor", {out, first("weight")});
    if (c.has("bias")) out = b.call("aten.add.Tensor", {out, first("bias")});
    return out;
  }
  return b.getitem(
      native_batch_norm(c, c.arg("input"), c.arg("weight"), c.arg("bias"), c.arg("running_mean"), c.arg("running_var")),
      0);
}

/// Batch norm with batch size 1, where every (sample, channel) pair is a channel.
Arg decompose_instance_norm(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& input = c.tensor("input");
  if (input.dim() < 2) fail("instance_norm expects at least 2 dimensions");
  SymExpr batch = input.sizes[0], channels = input.sizes[1];
  SymList folded = input.sizes;
  folded[0] = 1;
  folded[1] = batch * channels;
  Arg parameters[4];
  std::size_t i = 0;
  for (std::string_view name : {"weight", "bias", "running_mean", "running_var"}) {
    if (c.has(name)) parameters[i] = b.call("aten.repeat.default", {c.arg(name), b.sizes({batch})});
    ++i;
  }
  Node* x = b.call("aten.contiguous.default", {c.arg("input")});
  x = b.call("aten.view.default", {x, b.sizes(folded)});
  Node* normal = b.call("aten.batch_norm.default",
                        {x, parameters[0], parameters[1], parameters[2], parameters[3], c.arg("use_input_stats"),
                         c.arg("momentum"), c.arg("eps"), c.arg("cudnn_enabled")});
  i = 2;
  for (std::string_view name : {"running_mean", "running_var"}) {
    if (c.has(name)) {
      Node* view = b.call("aten.view.default", {parameters[i], b.sizes({batch, channels})});
      Node* mean = b.call("aten.mean.dim", {view, Arg::list({0})});
      b.call("aten.copy_.default", {b.call("aten.alias.default", {c.arg(name)}), mean});
    }
    ++i;
  }
  return b.call("aten.view.default", {normal, b.sizes(input.sizes)});
}

template <Stats stats>
OpRecord record(std::string_view gradients, Value (*eval)(EvalCall&) = nullptr) {
  return {.fake = fake_batch_norm<stats>,
          .eval = eval,
          .autograd = {.derivative = {{"input, weight, bias", gradients}}},
          .lower = stats == Stats::Update ? nullptr : lower_batch_norm<stats>};
}

}  // namespace

/// The gradients with these statistics.
#define BACKWARD(statistics, training)                                                                       \
  "aten.native_batch_norm_backward.default(grad, input, weight, " statistics ", result1, result2, " training \
  ", eps, output_mask)"

void register_batch_norm(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten._native_batch_norm_legit.default",
        record<Stats::Argument>(BACKWARD("running_mean, running_var", "training"), eval_updating<Stats::Argument>));
  t.add("aten._native_batch_norm_legit.no_stats", record<Stats::None>(BACKWARD("None, None", "training")));
  t.add("aten._native_batch_norm_legit_no_training.default",
        record<Stats::NoTraining>(BACKWARD("running_mean, running_var", "False")));
  // Autograd saves running_mean and running_var, which the forward call then overwrites. Results 3 and 4 hold the new
  // values.
  t.add("aten._native_batch_norm_legit_functional.default",
        record<Stats::Functional>(BACKWARD("result3, result4", "training")));
  t.add("aten._batch_norm_with_update.default",
        record<Stats::Update>(BACKWARD("running_mean, running_var", "True"), eval_updating<Stats::Update>));
  t.add("aten._batch_norm_with_update_functional.default",
        record<Stats::UpdateFunctional>(BACKWARD("running_mean, running_var", "True")));
  t.add("aten.native_batch_norm_backward.default", fake_batch_norm_backward, nullptr, {},
        {.lower = lower_batch_norm_backward});
  t.add("aten.native_batch_norm.default",
        {.decompose = decompose_native_batch_norm, .lower = lower_batch_norm<Stats::Argument>});
  t.add("aten.batch_norm.default", {.decompose = decompose_batch_norm});
  t.add("aten.instance_norm.default", {.decompose = decompose_instance_norm});
}
#undef BACKWARD

}  // namespace partita
