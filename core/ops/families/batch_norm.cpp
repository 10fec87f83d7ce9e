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

void lower_batch_norm(LowerCall& call) {
  if (call.boolean("training") && call.schema.index_of("running_mean") >= 0 && call.has("running_mean"))
    fail_unsupported("batch norm that changes its running statistics; functionalise first");
  give_batch_norm(call, call.boolean("training"), false);
}

void lower_batch_norm_functional(LowerCall& call) {
  give_batch_norm(call, call.boolean("training"), true);
}

void lower_batch_norm_inference(LowerCall& call) {
  give_batch_norm(call, false, false);
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

struct Moments {
  double mean = 0, variance = 0;  ///< biased variance
};

/// The moments of `blocks` runs of `count` elements, which are `block_stride` apart. The mean is updated with every
/// element, as in PyTorch's RowwiseMoments, so that equal elements have variance 0, however their sum is rounded. If
/// elements are infinite the mean is that of their sum, as in PyTorch's batch norm; its layer norm gives that or NaN,
/// depending on where they are.
Moments moments(const auto* x, std::int64_t blocks, std::int64_t block_stride, std::int64_t count) {
  double n = 0, mean = 0, squares = 0, sum = 0;
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i : steps(count)) {
      const double v = static_cast<double>(x[b * block_stride + i]), before = v - mean;
      mean += before / ++n;
      squares += before * (v - mean);
      sum += v;
    }
  return {std::isfinite(mean) ? mean : sum / n, squares / n};
}

/// How an operator of the family treats the running statistics, and where it learns whether it trains: Argument and
/// None, Functional by its argument; NoTraining never trains; Update and UpdateFunctional always do.
enum class Stats { Argument, None, NoTraining, Functional, Update, UpdateFunctional };

template <Stats stats>
bool trains(auto& c) {
  if constexpr (stats == Stats::NoTraining)
    return false;
  else if constexpr (stats == Stats::Update || stats == Stats::UpdateFunctional)
    return true;
  else
    return c.boolean("training");
}

template <Stats stats>
Meta fake_batch_norm(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  if (input.dim() < 2) fail("batch norm expects an input of at least 2 dimensions, got " + std::to_string(input.dim()));
  SymExpr channels = input.sizes[1];
  for (std::string_view name : {"weight", "bias", "running_mean", "running_var"}) {
    if (c.schema.index_of(name) < 0 || !c.has(name)) continue;
    const TensorMeta& t = c.tensor(name);
    if (t.dim() != 1 || !checked(c, sym_eq(t.sizes[0], channels), "batch norm channels"))
      fail(std::string(name) + " should contain " + channels.str() + " elements not " + t.numel().str());
  }
  const bool statistics = c.schema.index_of("running_mean") >= 0 && c.has("running_mean") && c.has("running_var");
  if (!trains<stats>(c) && !statistics) fail("batch norm in evaluation needs running statistics");
  for (std::size_t d = 0; trains<stats>(c) && d < input.dim(); ++d)
    if (d != 1 && input.sizes[d].is(0)) fail("Expected more than 1 value per channel when training");
  TensorMeta out = new_like(input, input.sizes, suggest_memory_format(input, c.shapes));
  TensorMeta saved = new_like(input, {trains<stats>(c) ? channels : SymExpr(0)});
  MetaTuple result{{out, saved, saved}};
  if constexpr (stats == Stats::Update || stats == Stats::UpdateFunctional) {
    TensorMeta reserve = new_like(input, {0});
    reserve.dtype = DType::UInt8;
    result.items.emplace_back(std::move(reserve));
  }
  if constexpr (stats == Stats::Functional || stats == Stats::UpdateFunctional)
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
  if (input.dim() < 2) fail("batch norm expects an input of at least 2 dimensions, got " + std::to_string(input.dim()));
  if (!checked_sizes(c, grad.sizes, input.sizes, "batch norm gradient"))
    fail("batch norm backward: the gradient does not have the sizes of the input");
  for (std::string_view name : {"weight", "running_mean", "running_var", "save_mean", "save_invstd"}) {
    if (c.schema.index_of(name) < 0 || !c.has(name)) continue;
    const TensorMeta& t = c.tensor(name);
    // In evaluation save_mean and save_invstd may be empty.
    const bool unsaved = name.starts_with("save") && t.numel().is(0) && !c.boolean("train");
    if (!unsaved && (t.dim() != 1 || !checked(c, sym_eq(t.sizes[0], input.sizes[1]), "batch norm channels")))
      fail(std::string(name) + " should contain " + input.sizes[1].str() + " elements not " + t.numel().str());
  }
  const bool train = c.boolean("train");
  if (!c.has(train ? "save_mean" : "running_mean") || !c.has(train ? "save_invstd" : "running_var"))
    fail("native_batch_norm_backward: statistics are missing");
  TensorMeta parameter = new_like(c.has("weight") ? c.tensor("weight") : input, {input.sizes[1]});
  return gradients_by_mask(c, new_like(input, input.sizes, suggest_memory_format(input, c.shapes)), parameter,
                           parameter);
}

/// A tensor seen as [batch, channels, inner].
struct ChannelPositions {
  std::int64_t batch, channels, inner;
  std::int64_t count() const { return batch * inner; }
};

ChannelPositions positions_of(const Tensor& x) {
  DimSplit split = split_at(x.sizes, 1);
  return {split.outer, split.length, split.inner};
}

/// running = momentum * statistic + (1 - momentum) * running, into `to`.
void blend(const Tensor& running, const std::vector<double>& statistic, double momentum, Tensor& to) {
  Tensor mixed = load(running, DType::Float64);
  mixed = unwrap(mixed.clone());
  for (std::size_t c = 0; c < statistic.size(); ++c)
    mixed.as<double>()[c] = momentum * statistic[c] + (1 - momentum) * mixed.as<double>()[c];
  to.copy_from(mixed);
}

template <Stats stats>
Value eval_batch_norm(EvalCall& c) {
  const Tensor& input = c.tensor("input");
  DType dtype = evaluation_dtype(input.dtype);
  bool train = trains<stats>(c);
  std::vector<Tensor> outputs = allocate_all(c, fake_batch_norm<stats>);
  Tensor x = load(input, dtype), weight = load_optional(c, "weight", dtype), bias = load_optional(c, "bias", dtype);
  ChannelPositions g = positions_of(x);
  auto channels = static_cast<std::size_t>(g.channels);
  std::vector<double> mean(channels), unbiased(channels);
  double eps = as_double(c.number("eps"));
  Tensor running_mean, running_var;
  if constexpr (stats != Stats::None) {
    running_mean = load_optional(c, "running_mean", DType::Float64);
    running_var = load_optional(c, "running_var", DType::Float64);
  }
  Tensor y = empty(dtype, x.sizes), save_mean = empty(dtype, {train ? g.channels : 0});
  Tensor save_invstd = empty(dtype, save_mean.sizes);
  dispatch_floating(dtype, "batch_norm", [&]<class T>() {
    for (std::int64_t k : steps(g.channels, 4096)) {
      auto i = static_cast<std::size_t>(k);
      const T* in = x.as<T>() + k * g.inner;
      T invstd;
      if (train) {
        // Eager PyTorch rounds the mean and 1/std to the statistics' dtype before it uses them. In bfloat16 it also
        // rounds the sum of squares and divides in bfloat16.
        const DType kept = outputs[1].dtype;
        const auto in_statistics = [&](double v) {
          return kept == DType::BFloat16 ? static_cast<double>(rounded(kept, static_cast<T>(v))) : v;
        };
        const auto n = static_cast<double>(g.count());
        Moments m = moments(in, g.batch, g.channels * g.inner, g.inner);
        mean[i] = static_cast<double>(rounded(kept, static_cast<T>(m.mean)));
        const double squares = in_statistics(m.variance * n);
        unbiased[i] = in_statistics(squares / in_statistics(n - 1));
        invstd = rounded(kept, static_cast<T>(1 / std::sqrt(in_statistics(squares / in_statistics(n)) + eps)));
        save_mean.as<T>()[k] = static_cast<T>(mean[i]);
        save_invstd.as<T>()[k] = invstd;
      } else {
        mean[i] = running_mean.as<double>()[k];
        invstd = static_cast<T>(1 / std::sqrt(running_var.as<double>()[k] + eps));
      }
      T scale = invstd * (weight.storage ? weight.as<T>()[k] : T(1));
      T center = static_cast<T>(mean[i]), shift = bias.storage ? bias.as<T>()[k] : T(0);
      for (std::int64_t n : steps(g.batch, g.inner))
        for (std::int64_t j = 0; j < g.inner; ++j) {
          std::int64_t at = n * g.channels * g.inner + j;
          y.as<T>()[k * g.inner + at] = (in[at] - center) * scale + shift;
        }
    }
  });
  outputs[0].copy_from(y);
  if (train) {
    outputs[1].copy_from(save_mean);
    outputs[2].copy_from(save_invstd);
  }
  if constexpr (stats != Stats::None && stats != Stats::NoTraining) {
    constexpr bool functional = stats == Stats::Functional || stats == Stats::UpdateFunctional;
    double momentum = as_double(c.number("momentum"));
    std::size_t at = outputs.size() - 2;
    for (auto [name, statistic] : {std::pair{"running_mean", &mean}, std::pair{"running_var", &unbiased}}) {
      if (!c.has(name)) continue;
      Tensor to = functional ? outputs[at++] : c.tensor(name);
      if (train)
        blend(c.tensor(name), *statistic, momentum, to);
      else if (functional)
        to.copy_from(c.tensor(name));
    }
  }
  ValueList results;
  for (Tensor& t : outputs) results.push_back(t.storage ? Value(t) : Value());
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
OpRecord record(std::string_view gradients, loops::LowerFunction lower = nullptr) {
  return {.fake = fake_batch_norm<stats>,
          .eval = eval_batch_norm<stats>,
          .autograd = {.derivative = {{"input, weight, bias", gradients}}},
          .lower = lower};
}

}  // namespace

/// The gradients with these statistics.
#define BACKWARD(statistics, training)                                                                       \
  "aten.native_batch_norm_backward.default(grad, input, weight, " statistics ", result1, result2, " training \
  ", eps, output_mask)"

void register_batch_norm(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten._native_batch_norm_legit.default",
        record<Stats::Argument>(BACKWARD("running_mean, running_var", "training"), lower_batch_norm));
  t.add("aten._native_batch_norm_legit.no_stats",
        record<Stats::None>(BACKWARD("None, None", "training"), lower_batch_norm));
  t.add("aten._native_batch_norm_legit_no_training.default",
        record<Stats::NoTraining>(BACKWARD("running_mean, running_var", "False"), lower_batch_norm_inference));
  // Autograd saves running_mean and running_var, which the forward call then overwrites. Results 3 and 4 hold the new
  // values.
  t.add("aten._native_batch_norm_legit_functional.default",
        record<Stats::Functional>(BACKWARD("result3, result4", "training"), lower_batch_norm_functional));
  t.add("aten._batch_norm_with_update.default", record<Stats::Update>(BACKWARD("running_mean, running_var", "True")));
  t.add("aten._batch_norm_with_update_functional.default",
        record<Stats::UpdateFunctional>(BACKWARD("running_mean, running_var", "True")));
  t.add("aten.native_batch_norm_backward.default", fake_batch_norm_backward, nullptr, {},
        {.lower = lower_batch_norm_backward});
  t.add("aten.native_batch_norm.default", {.decompose = decompose_native_batch_norm, .lower = lower_batch_norm});
  t.add("aten.batch_norm.default", {.decompose = decompose_batch_norm});
  t.add("aten.instance_norm.default", {.decompose = decompose_instance_norm});
}
#undef BACKWARD

}  // namespace partita
