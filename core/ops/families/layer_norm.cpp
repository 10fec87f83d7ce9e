// native_layer_norm with its gradient, and the composites layer_norm and rms_norm.
#include <cmath>
#include <limits>

#include "core/ops/families/lower_norm.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/formula.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

std::vector<bool> trailing(std::size_t rank, std::size_t count, bool value = true) {
  std::vector<bool> mask(rank, !value);
  for (std::size_t d = rank - count; d < rank; ++d) mask[d] = value;
  return mask;
}

void lower_layer_norm(LowerCall& call) {
  LoweredTensor input = call.in("input");
  Arithmetic make = arithmetic(call, input);
  LoweredTensor x = call.to.cast(input, make.dtype);
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
}

void lower_layer_norm_backward(LowerCall& call) {
  LoweredTensor dy = call.to.reshape(call.in("grad_out"), call.in("input").sizes);
  Arithmetic make = arithmetic(call, dy);
  LoweredTensor g = call.to.cast(dy, make.dtype), x = call.to.cast(call.in("input"), make.dtype);
  std::size_t inner = call.integers("normalized_shape").size();
  std::vector<bool> row = trailing(x.dim(), inner), outer = trailing(x.dim(), inner, false);
  // mean and rstd may be flat or have the input's rank; only their number of elements matters.
  SymList statistics = x.sizes;
  for (std::size_t d = 0; d < row.size(); ++d)
    if (row[d]) statistics[d] = 1;
  LoweredTensor mean = call.to.reshape(call.in("mean"), statistics);
  LoweredTensor rstd = call.to.reshape(call.in("rstd"), statistics), weight = optional(call, "weight");
  LoweredTensor hat = make.mul(make.sub(x, mean), rstd);
  const std::vector<bool> wanted = call.booleans("output_mask");
  give_if(call, wanted.at(0), [&] {
    LoweredTensor scaled = weight.valid() ? make.mul(g, weight) : g;
    LoweredTensor m1 = make.mean(scaled, row), m2 = make.mean(make.mul(scaled, hat), row);
    return make({scaled, m1, hat, m2, rstd},
                [](ScalarBuilder& b, auto v) { return b.Mul(v[4], b.Sub(b.Sub(v[0], v[1]), b.Mul(v[2], v[3]))); });
  });
  give_if(call, wanted.at(1) && weight.valid(), [&] { return make.sum(make.mul(g, hat), outer); });
  give_if(call, wanted.at(2) && call.has("bias"), [&] { return make.sum(g, outer); });
}

void lower_rms_norm(LowerCall& call) {
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
}

using namespace kernels;

std::string text(const SymList& sizes) {
  std::string out;
  for (SymExpr s : sizes) out += (out.empty() ? "" : ", ") + s.str();
  return "[" + out + "]";
}

/// The sizes before the normalised dimensions. Fails unless the call is well-formed.
SymList leading_sizes(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  SymList shape = c.syms("normalized_shape");
  if (shape.empty())
    fail(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
        "normalized_shape = []");
  const std::size_t lead = input.dim() - std::min(input.dim(), shape.size());
  if (!checked_sizes(c, std::span(input.sizes).subspan(lead), shape, "normalized_shape"))
    fail("Given normalized_shape=" + text(shape) + ", expected input with shape " + text(shape) +
         ", but got input of size" + text(input.sizes));
  for (const char* name : {"weight", "bias"}) {
    if (c.schema.index_of(name) < 0 || !c.has(name)) continue;
    const SymList& sizes = c.tensor(name).sizes;
    if (!checked_sizes(c, sizes, shape, name))
      fail("Expected " + std::string(name) + " to be of same shape as normalized_shape, but got " + name +
           " of shape " + text(sizes) + " and normalized_shape = " + text(shape));
  }
  return {input.sizes.begin(), input.sizes.begin() + static_cast<std::ptrdiff_t>(lead)};
}

/// Fails unless a tensor's element count is the product of `sizes`.
void check_count(FakeCall& c, const char* name, const SymList& sizes) {
  SymExpr count = 1;
  for (SymExpr s : sizes) count = count * s;
  if (!checked(c, sym_eq(c.tensor(name).numel(), count), "layer_norm_backward"))
    fail("native_layer_norm_backward: " + std::string(name) + " of shape " + text(c.tensor(name).sizes) +
         " does not fit the input");
}

Meta fake_native_layer_norm(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  SymList sizes = leading_sizes(c);
  sizes.resize(input.dim(), 1);
  TensorMeta statistics = new_like(input, sizes);
  return MetaTuple{{new_like(input, input.sizes), statistics, statistics}};
}

Meta fake_native_layer_norm_backward(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  const SymList rows = leading_sizes(c);
  check_count(c, "grad_out", input.sizes);
  check_count(c, "mean", rows);
  check_count(c, "rstd", rows);
  std::vector<bool> mask = c.booleans("output_mask");
  if (mask.size() != 3) fail("output_mask must have 3 items");
  MetaTuple result;
  // PyTorch's decomposition ends with rstd * (...), an elementwise operator, which decides the strides.
  TensorMeta grad_input = new_like(c.tensor("grad_out"), input.sizes);
  const TensorMeta* operands[] = {&c.tensor("rstd"), &c.tensor("grad_out")};
  grad_input.strides = elementwise_strides(c, input.sizes, operands);
  result.items.push_back(meta_if(mask[0], std::move(grad_input)));
  for (std::size_t i : {1, 2}) {
    const char* parameter = i == 1 ? "weight" : "bias";
    bool wanted = mask[i] && c.has(parameter);
    result.items.push_back(
        meta_if(wanted, new_like(c.has(parameter) ? c.tensor(parameter) : input, c.syms("normalized_shape"))));
  }
  return result;
}

/// Returns {normalised and scaled input, 1 / root mean square}, as at::rms_norm_composite.
std::pair<Node*, Node*> rms_norm(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& input = c.tensor("input");
  leading_sizes(c);
  DType dtype = evaluation_dtype(input.dtype);
  Node* x = to_dtype(b, c.arg("input"), dtype);
  double eps = c.has("eps")              ? as_double(c.number("eps"))
               : dtype == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                         : static_cast<double>(std::numeric_limits<float>::epsilon());
  if (dtype == DType::Float32) eps = static_cast<double>(static_cast<float>(eps));
  std::vector<Arg> dims;
  for (std::size_t i = 0; i < c.syms("normalized_shape").size(); ++i)
    dims.emplace_back(static_cast<std::int64_t>(input.dim() - i - 1));
  Node* squares = b.call("aten.pow.Tensor_Scalar", {x, 2});
  Node* mean = b.call("aten.mean.dim", {squares, Arg::list(dims), true});
  Node* scale = b.call("aten.rsqrt.default", {b.call("aten.add.Scalar", {mean, eps})});
  Node* result = b.call("aten.mul.Tensor", {x, scale});
  if (c.has("weight")) result = b.call("aten.mul.Tensor", {result, c.arg("weight")});
  result = to_dtype(b, result, input.dtype);
  const MemoryFormat format = suggest_memory_format(input, c.shapes);
  return {b.call("aten.contiguous.default", {result}, {{"memory_format", format}}), scale};
}
Arg decompose_rms_norm(DecomposeCall& c) {
  return rms_norm(c).first;
}
Arg decompose_fused_rms_norm(DecomposeCall& c) {
  auto [result, scale] = rms_norm(c);
  return Arg::list({result, scale});
}

/// last_dims(normalized_shape)
Arg last_dims(const FormulaCall& f) {
  std::vector<Arg> dims;
  for (std::size_t i = f.args[0].get<ArgList>()->items.size(); i > 0; --i)
    dims.emplace_back(-static_cast<std::int64_t>(i));
  return Arg::list(std::move(dims));
}

/// row_gradient(v, n, rstd, dims): v without a row's mean and without what lies along the normalised row n, over the
/// row's deviation. The gradient of a layer norm; its own transpose, and the derivative of n.
Arg row_gradient(const FormulaCall& f) {
  return f("x2 * (x0 - aten.mean.dim(x0, x3, True) - x1 * aten.mean.dim(x0 * x1, x3, True))");
}

}  // namespace

void register_layer_norm(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.native_layer_norm.default", fake_native_layer_norm, nullptr,
        {{"input, weight, bias",
          "aten.native_layer_norm_backward.default(grad, input, normalized_shape, result1, result2, weight, "
          "bias, output_mask)"}},
        {.lower = lower_layer_norm});
  t.add_formula_functions({{"last_dims", last_dims}, {"row_gradient", row_gradient}});
  // layer_norm_double_backward
  t.add(
      "aten.native_layer_norm_backward.default", fake_native_layer_norm_backward, nullptr,
      {{"grad_out, input, weight",
        "d = last_dims(normalized_shape); n = (input - mean) * rstd; gi = grads[0]; gw = grads[1]; "
        "a = grad_out if weight is None else grad_out * weight; "
        "p = None if gi is None else row_gradient(gi, n, rstd, d); "
        "cg = None if gi is None else aten.mean.dim(gi * n, d, True); "
        "ca = None if gi is None else aten.mean.dim(a * n, d, True); "
        "k = None if gi is None else aten.mean.dim(gi * a, d, True) - "
        "aten.mean.dim(gi, d, True) * aten.mean.dim(a, d, True) - cg * ca; "
        "x = None if gi is None else -rstd * (rstd * k * n + p * ca + cg * row_gradient(a, n, rstd, d)); "
        "(sum_of(sum_of(None if gi is None else p if weight is None else p * weight, None if gw is None else gw * n), "
        "None if grads[2] is None else grads[2] + n * 0), "
        "sum_of(x, None if gw is None else row_gradient(grad_out * gw, n, rstd, d)), "
        "None if gi is None else grad_out * p)"},
       {"bias", "zeros_like(bias)"}},
      {.autograd = {.all_results_differentiable = true}, .lower = lower_layer_norm_backward});
  t.add("aten.layer_norm.default", {.program = "native_layer_norm(input, normalized_shape, weight, bias, eps)[0]"});
  t.add("aten.rms_norm.default", {.decompose = decompose_rms_norm});
  t.add("aten._fused_rms_norm.default", {.decompose = decompose_fused_rms_norm, .lower = lower_rms_norm});
}

}  // namespace partita
