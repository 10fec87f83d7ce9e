// native_group_norm with its gradient, and the composite group_norm.
#include "core/ops/families/lower_index.h"
#include "core/ops/families/lower_norm.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

/// Are groups normalised by their channels? A CPU reads the channels of a pixel side by side; a GPU has a group of
/// threads for each group, in one kernel.
bool by_channels(const Lowering& to) {
  return to.target().device == DeviceType::Cpu;
}

/// A number of each group; by channels it is in memory for each of them.
LoweredTensor for_channels(Lowering& to, const LoweredTensor& t, SymExpr channels) {
  if (!by_channels(to)) return t;
  const LoweredTensor each = to.expand(t, to.plain({t.sizes[0], t.sizes[1], channels, 1}));
  return to.writes(t.dtype, each.sizes, {whole(each)});
}

void lower_group_norm(LowerCall& call) {
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  Lowering& to = call.to;
  const std::int64_t groups = call.integer("group");
  const SymExpr channels = sym_floordiv(call.sym("C"), groups);
  LoweredTensor x =
      to.reshape(to.cast(input, make.dtype), to.plain({call.sym("N"), groups, channels, call.sym("HxW")}));
  const GroupMoments moments =
      moments_by_parts(make, x, {false, false, true, true}, {false, false, by_channels(to), false});
  const SymExpr n = channels * call.sym("HxW");
  const LoweredTensor variance =
      make({moments.squares}, [=](ScalarBuilder& b, auto v) { return b.Div(v[0], b.count(b.dtype(v[0]), n)); });
  const LoweredTensor rstd = make.rsqrt(variance, as_double(call.number("eps")));
  auto channel = [&](std::string_view name) {
    LoweredTensor t = optional(call, name);
    return t.valid() ? to.reshape(t, {1, groups, channels, 1}) : t;
  };
  call.give(affine(make, make.sub(x, for_channels(to, moments.mean, channels)), for_channels(to, rstd, channels),
                   channel("weight"), channel("bias")));
  call.give(moments.mean);
  call.give(rstd);
}

/// One traversal sums each channel, another makes the gradient of the input.
void lower_group_norm_backward(LowerCall& call) {
  LoweredTensor input = call.in("input"), weight = optional(call, "weight");
  Arithmetic make = arithmetic(call, input);
  Lowering& to = call.to;
  const std::int64_t groups = call.integer("group");
  const SymExpr batch = call.sym("N"), inner = call.sym("HxW"), channels = sym_floordiv(call.sym("C"), groups);
  const auto shaped = [&](const LoweredTensor& t, const SymList& sizes) {
    return to.reshape(to.cast(t, make.dtype), to.plain(sizes));
  };
  const SymList whole_sizes = {batch, groups, channels, inner};
  const auto of_group = [&](const char* name) {
    return for_channels(to, shaped(call.in(name), {batch, groups, 1, 1}), channels);
  };
  const LoweredTensor grad = shaped(call.in("grad_out"), whole_sizes), rstd = of_group("rstd");
  const LoweredTensor normal = make.mul(make.sub(shaped(input, whole_sizes), of_group("mean")), rstd);
  const std::vector<bool> positions{false, false, false, true};
  const LoweredTensor sums = make.sum(grad, positions), dots = make.sum(make.mul(grad, normal), positions);
  const auto weighted = [&](const LoweredTensor& t) {
    return weight.valid() ? make.mul(t, shaped(weight, {1, groups, channels, 1})) : t;
  };
  const std::vector<bool> wanted = call.booleans("output_mask");
  give_if(call, wanted.at(0), [&] {
    const std::vector<bool> in_group{false, false, true, false};
    const LoweredTensor sum = for_channels(to, make.sum(weighted(sums), in_group), channels),
                        dot = for_channels(to, make.sum(weighted(dots), in_group), channels);
    const SymExpr n = channels * inner;
    return make({weighted(grad), sum, normal, dot, rstd}, [=](ScalarBuilder& b, auto v) {
      const Scalar mean = b.Div(b.Add(v[1], b.Mul(v[2], v[3])), b.count(b.dtype(v[0]), n));
      return b.Mul(b.Sub(v[0], mean), v[4]);
    });
  });
  for (std::size_t i : {1, 2})
    give_if(call, wanted.at(i), [&] { return make.sum(i == 1 ? dots : sums, {true, false, false, false}); });
}

using namespace kernels;

/// Fails unless a tensor's element count is the product of the arguments named in `sizes`.
void check_count(FakeCall& c, const char* name, std::initializer_list<const char*> sizes) {
  SymExpr count = 1;
  std::string product;
  for (const char* size : sizes) {
    if (!checked(c, sym_le(0, c.sym(size)), "group norm sizes"))
      fail(std::string(size) + " must be non-negative, got " + c.sym(size).str());
    count = count * c.sym(size);
    product += (product.empty() ? "" : " * ") + std::string(size);
  }
  if (!checked(c, sym_eq(c.tensor(name).numel(), count), "group norm sizes"))
    fail("Expected " + std::string(name) + " to have " + product + " = " + count.str() + " elements, but it has " +
         c.tensor(name).numel().str());
}

Meta fake_native_group_norm(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  check_count(c, "input", {"N", "C", "HxW"});
  std::int64_t group = c.integer("group");
  if (group <= 0) fail("Expected num groups to be greater than 0, got " + std::to_string(group));
  if (!checked(c, sym_eq(sym_mod(c.sym("C"), group), 0), "group norm channels"))
    fail("Expected number of channels in input to be divisible by num_groups, but got input of shape with " +
         c.sym("C").str() + " channels and num_groups=" + std::to_string(group));
  for (const char* name : {"weight", "bias"}) {
    if (!c.has(name)) continue;
    const TensorMeta& t = c.tensor(name);
    if (t.dim() != 1 || !checked(c, sym_eq(t.sizes[0], c.sym("C")), "group norm parameters"))
      fail("Expected " + std::string(name) + " to be a vector of size equal to the number of channels in input, " +
           c.sym("C").str());
  }
  TensorMeta statistics = new_like(input, {c.sym("N"), group});
  return MetaTuple{{new_like(input, input.sizes, suggest_memory_format(input, c.shapes)), statistics, statistics}};
}

Meta fake_native_group_norm_backward(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  for (const char* name : {"grad_out", "input"}) check_count(c, name, {"N", "C", "HxW"});
  for (const char* name : {"mean", "rstd"}) check_count(c, name, {"N", "group"});
  if (c.has("weight")) check_count(c, "weight", {"C"});
  TensorMeta parameter = new_like(input, {c.sym("C")});
  return gradients_by_mask(c, new_like(input, input.sizes, suggest_memory_format(input, c.shapes)), parameter,
                           parameter);
}

/// infinitely_differentiable_native_group_norm_backward of PyTorch's FunctionsManual.cpp, with its calls in its order.
/// PyTorch uses it when mean and rstd have gradients too. Takes the results' gradients, input, mean, rstd, weight,
/// bias, N, C, HxW, group and output_mask.
Arg group_norm_gradients(const FormulaCall& f) {
  const SymExpr depth = sym_floordiv(f.sizes(9)[0], f.sizes(11)[0]), size = depth * f.sizes(10)[0];
  if (!size.is_int()) fail_unsupported("the gradient of group norm's statistics of symbolic size");
  std::vector<std::pair<std::string, Arg>> names = {{"D", f.build.size(depth)},
                                                    {"s", 1.0 / static_cast<double>(size.as_int())}};
  for (const char* name : {"gout", "gmean", "grstd", "input", "saved_mean", "saved_rstd", "weight", "bias", "N", "C",
                           "HxW", "group", "wanted"})
    names.emplace_back(name, f.args[names.size() - 2]);
  return f(
      "X = reshape(input, [N, group, D, HxW]); mean = reshape(saved_mean, [N, group, 1, 1]); "
      "rstd = reshape(saved_rstd, [N, group, 1, 1]); "
      "cube = rstd * rstd * rstd; gamma = None if weight is None else reshape(weight, [1, group, D, 1]); "
      "dY = None if gout is None else reshape(gout, [N, group, D, HxW]); "
      "ds = None if dY is None else unsqueeze(sum(dY * X, [3]), -1); "
      "db = None if dY is None else unsqueeze(sum(dY, [3]), -1); "
      "a = None if dY is None else rstd if gamma is None else rstd * gamma; "
      "b0 = None if dY is None else unsqueeze(sum(ds if gamma is None else ds * gamma, [2]), -2); "
      "c0 = None if dY is None else unsqueeze(sum(db if gamma is None else db * gamma, [2]), -2); "
      "b1 = None if dY is None else (c0 * mean - b0) * cube * s; "
      "c1 = None if dY is None else -b1 * mean - c0 * rstd * s; "
      "out = None if dY is None or not wanted[0] else a * dY + b1 * X + c1; "
      "gw = None if not wanted[1] else zeros_like(weight) if dY is None else "
      "reshape(sum((ds - db * mean) * rstd, [0]), [C]); "
      "gb = None if not wanted[2] else zeros_like(bias) if dY is None else reshape(sum(db, [0]), [C]); "
      "drstd = None if grstd is None or not wanted[0] else reshape(grstd, [N, group, 1, 1]); "
      "dvar = None if drstd is None else cube * -0.5 * drstd; "
      "dmean = None if gmean is None or not wanted[0] else reshape(gmean, [N, group, 1, 1]); "
      "more = sum_of(None if dvar is None else var_backward(dvar, X, [2, 3], 0, True), "
      "None if dmean is None else mean_backward(dmean, X, [2, 3], True)); "
      "(None if not wanted[0] else reshape(sum_of(out, more), sizes(input)), gw, gb)",
      std::move(names));
}

Arg decompose_group_norm(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& input = c.tensor("input");
  if (input.dim() < 2)
    fail("Expected at least 2 dimensions for input tensor but received " + std::to_string(input.dim()));
  SymExpr inner = 1;
  for (std::size_t i = 2; i < input.dim(); ++i) inner = inner * input.sizes[i];
  Node* x = tensor_node(c, "input");
  MemoryFormat format = suggest_memory_format(input, c.shapes);
  if (format == MemoryFormat::Contiguous) x = b.call("aten.contiguous.default", {x});
  Node* result = b.call("aten.native_group_norm.default",
                        {x, c.arg("weight"), c.arg("bias"), b.size(input.sizes[0]), b.size(input.sizes[1]),
                         b.size(inner), c.arg("num_groups"), c.arg("eps")});
  return b.getitem(result, 0);
}

/// in_format(x, like): x in the memory format that `like` suggests.
Arg in_format(const FormulaCall& f) {
  const TensorMeta& x = f.tensor(0);
  const MemoryFormat format = suggest_memory_format(f.tensor(1), *f.build.graph.shapes);
  if (x.strides == strides_for(format, x.sizes)) return f.args[0];
  return f.build.call("aten.clone.default", {f.args[0]}, {{"memory_format", format}});
}

}  // namespace

void register_group_norm(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_formula_functions({{"in_format", in_format}, {"group_norm_gradients", group_norm_gradients}});
  t.add("aten.native_group_norm.default", fake_native_group_norm, nullptr,
        {{"input, weight, bias",
          "aten.native_group_norm_backward.default(in_format(grads[0], input), in_format(input, input), result1, "
          "result2, weight, N, C, HxW, group, output_mask) if grads[1] is None and grads[2] is None else "
          "group_norm_gradients(grads[0], grads[1], grads[2], input, result1, result2, weight, bias, N, C, HxW, group, "
          "output_mask)"}},
        {.autograd = {.all_results_differentiable = true}, .lower = lower_group_norm});
  t.add("aten.native_group_norm_backward.default", fake_native_group_norm_backward, nullptr, {},
        {.lower = lower_group_norm_backward});
  t.add("aten.group_norm.default", {.decompose = decompose_group_norm});
}

}  // namespace partita
