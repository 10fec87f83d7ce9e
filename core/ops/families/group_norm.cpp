// native_group_norm with its gradient, and the composite group_norm.
#include "core/ops/families/lower_index.h"
#include "core/ops/families/lower_norm.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/formula.h"
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
/// PyTorch uses it when mean and rstd have gradients too.
std::vector<Node*> grad_through_statistics(GradCall& c) {
  GradientSlots slots(c);
  Builder& b = c.build;
  const SymExpr batch = c.sym("N"), groups = c.sym("group"), inner = c.sym("HxW"),
                depth = sym_floordiv(c.sym("C"), groups), size = depth * inner;
  if (!size.is_int()) fail_unsupported("the gradient of group norm's statistics of symbolic size");
  std::vector<std::pair<std::string, Arg>> names = {{"s", 1.0 / static_cast<double>(size.as_int())}};
  auto shaped = [&](const char* name, const Arg& x, const SymList& sizes) {
    names.emplace_back(name, b.call("aten.reshape.default", {x, b.sizes(sizes)}));
  };
  auto build = [&](const char* formula) { return b.expression(formula, names); };
  auto bind = [&](const char* name, const char* formula) { names.emplace_back(name, build(formula)); };
  const bool weighted = c.has("weight");
  shaped("X", c.arg("input"), {batch, groups, depth, inner});
  shaped("mean", c.results[1], {batch, groups, 1, 1});
  shaped("rstd", c.results[2], {batch, groups, 1, 1});
  bind("cube", "rstd * rstd * rstd");
  if (weighted) shaped("gamma", c.arg("weight"), {1, groups, depth, 1});
  Node* through_output = nullptr;
  if (c.grads[0]) {
    shaped("dY", c.grads[0], {batch, groups, depth, inner});
    bind("ds", "unsqueeze(sum(dY * X, [3]), -1)");
    bind("db", "unsqueeze(sum(dY, [3]), -1)");
    bind("a", weighted ? "rstd * gamma" : "rstd");
    bind("b0", weighted ? "unsqueeze(sum(ds * gamma, [2]), -2)" : "unsqueeze(sum(ds, [2]), -2)");
    bind("c0", weighted ? "unsqueeze(sum(db * gamma, [2]), -2)" : "unsqueeze(sum(db, [2]), -2)");
    bind("b1", "(c0 * mean - b0) * cube * s");
    bind("c1", "-b1 * mean - c0 * rstd * s");
    if (c.want("input")) through_output = build("a * dY + b1 * X + c1").node();
    const SymList parameter = {c.sym("C")};
    auto flat = [&](const char* formula) {
      return b.call("aten.reshape.default", {build(formula), b.sizes(parameter)});
    };
    if (c.want("weight")) slots["weight"] = flat("sum((ds - db * mean) * rstd, [0])");
    if (c.want("bias")) slots["bias"] = flat("sum(db, [0])");
  } else {
    for (const char* name : {"weight", "bias"})
      if (c.want(name)) slots[name] = b.call("aten.zeros_like.default", {c.arg(name)});
  }
  if (!c.want("input")) return slots;
  if (c.grads[2]) {
    shaped("drstd", c.grads[2], {batch, groups, 1, 1});
    bind("dvar", "cube * -0.5 * drstd");
  } else {
    names.emplace_back("dvar", Arg());
  }
  if (c.grads[1])
    shaped("dmean", c.grads[1], {batch, groups, 1, 1});
  else
    names.emplace_back("dmean", Arg());
  Node* total = build(
                    "sum_of(None if dvar is None else var_backward(dvar, X, [2, 3], 0, True), "
                    "None if dmean is None else mean_backward(dmean, X, [2, 3], True))")
                    .node();
  if (through_output) total = b.call("aten.add.Tensor", {through_output, total});
  slots["input"] = b.call("aten.reshape.default", {total, b.sizes(c.tensor("input").sizes)});
  return slots;
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

std::vector<Node*> grad_native_group_norm(GradCall& c) {
  if (c.grads[1] || c.grads[2]) return grad_through_statistics(c);
  return apply_formulas(
      {{"input, weight, bias",
        "g = in_format(grad, input); "
        "aten.native_group_norm_backward.default(g, in_format(input, input), result1, result2, weight, N, C, HxW, "
        "group, output_mask)"}},
      c);
}

}  // namespace

void register_group_norm(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_formula_functions({{"in_format", in_format}});
  t.add("aten.native_group_norm.default", fake_native_group_norm, nullptr, {},
        {.autograd = {.gradient = grad_native_group_norm, .all_results_differentiable = true},
         .lower = lower_group_norm});
  t.add("aten.native_group_norm_backward.default", fake_native_group_norm_backward, nullptr, {},
        {.lower = lower_group_norm_backward});
  t.add("aten.group_norm.default", {.decompose = decompose_group_norm});
}

}  // namespace partita
