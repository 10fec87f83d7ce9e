// Products with int8 weights, and quantized_decomposed: integers with scales and zero points beside them, as exported
// programs have them. Checks and order of the arithmetic are those of torch/ao/quantization/fx/_decomposed.py.
#include <fmt/format.h>

#include "core/ops/record/formula_functions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// in_single(x): a half type's values in single precision.
Arg in_single(const FormulaCall& f) {
  const DType t = f.tensor(0).dtype;
  if (t != DType::Float32 && t != DType::Float16 && t != DType::BFloat16)
    fail(fmt::format("Expecting input to have dtype torch.float32, but got dtype: {}", torch_name(t)));
  return to_dtype(f.build, f.args[0], DType::Float32);
}

/// of_dtype(x, dtype): x, which must have the dtype.
Arg of_dtype(const FormulaCall& f) {
  const DType is = f.tensor(0).dtype, wanted = *f.args[1].get<DType>();
  if (is != wanted)
    fail(fmt::format("Expecting input to have dtype: {}, but got {}", torch_name(wanted), torch_name(is)));
  return f.args[0];
}

/// clamped(x, least, most, dtype): x in those bounds, which the integer type must hold, as such integers.
Arg clamped(const FormulaCall& f) {
  const DType t = *f.args[3].get<DType>();
  if (!is_integral(t) || itemsize(t) > 4) fail_unsupported("quantized values in " + std::string(torch_name(t)));
  const int bits = static_cast<int>(8 * itemsize(t));
  const std::int64_t least = is_signed(t) ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t most = least + (std::int64_t{1} << bits) - 1;
  if (f.is_tensor(1)) return f("in_dtype(clamp(x0, x1, x2), x3)");
  if (f.integer(1) < least) fail("quant_min out of bounds for dtype, quant_min_lower_bound: " + std::to_string(least));
  if (f.integer(2) > most) fail("quant_max out of bounds for dtype, quant_max_upper_bound: " + std::to_string(most));
  return f("in_dtype(clamp(x0, x1, x2), x3)");
}

/// inverse(x): 1 / x of a number, which Python refuses for 0.
Arg inverse(const FormulaCall& f) {
  if (const auto known = as_number(f.args[0]); known && as_double(*known) == 0) fail("float division by zero");
  return f("1.0 / x0");
}

/// unpacked(mat2, self, scales): the weights, once the arguments have the dtypes and sizes that PyTorch takes.
Arg unpacked(const FormulaCall& f) {
  const TensorMeta &weights = f.tensor(0), &self = f.tensor(1), &scales = f.tensor(2);
  if (self.dtype != DType::Float32 && self.dtype != DType::Float16 && self.dtype != DType::BFloat16)
    fail("_weight_int8pack_mm: self is " + std::string(torch_name(self.dtype)) +
         ", and must be float of 32 or 16 bits");
  if (weights.dtype != DType::Int8) fail("_weight_int8pack_mm: mat2 must be int8");
  if (scales.dtype != self.dtype || scales.dim() != 1 || weights.dim() != 2 ||
      !checked(f.guards(), sym_eq(scales.sizes[0], weights.sizes[0]), "a scale for each row"))
    fail("_weight_int8pack_mm: scales must be of self's dtype, one for each row of mat2");
  return f("t(in_dtype(x0, torch.float32))");
}

/// one_of(x): the only element of x, without dims.
Arg one_of(const FormulaCall& f) {
  if (!f.tensor(0).numel().is(1)) fail("Expecting a tensor of one element, but received " + f.tensor(0).numel().str());
  return f.build.call("aten.view.default", {f.args[0], f.build.sizes({})});
}

/// along(values, x, axis): values by x's dim `axis`, with 1 for x's other dims.
Arg along(const FormulaCall& f) {
  SymList sizes(f.tensor(1).dim(), 1);
  if (sizes.empty()) fail("axis: the input has no dimensions");
  sizes[wrap_dim(f.integer(2), sizes.size())] = f.tensor(0).numel();
  return f.build.call("aten.view.default", {f.args[0], f.build.sizes(sizes)});
}

/// single(x): a number rounded to single precision.
Arg single(const FormulaCall& f) {
  return static_cast<double>(static_cast<float>(f.real(0)));
}

/// in_wide(x): in the precision that fake quantization computes in.
Arg in_wide(const FormulaCall& f) {
  return f.tensor(0).dtype == DType::Float64 ? f.args[0] : in_single(f);
}

/// fake_quantized(x, q, scale, zero_point, least, most): what x's quantized values q stand for within the bounds, and
/// which lie there. NaN becomes the least.
Arg fake_quantized(const FormulaCall& f) {
  if (f.integer(4) > f.integer(5)) fail("`quant_min` should be less than or equal to `quant_max`.");
  if (!f.is_tensor(3) && (f.integer(3) < f.integer(4) || f.integer(3) > f.integer(5)))
    fail("`zero_point` must be between `quant_min` and `quant_max`.");
  return f(
      "above = ge(x1, x4); y = (where(above, clamp_max(x1, x5), x4) - x3) * x2; "
      "(in_dtype(y, dtype(x0)), logical_and(above, le(x1, x5)))");
}

/// in_groups(x, size): rows of so many elements.
Arg in_groups(const FormulaCall& f) {
  const TensorMeta& x = f.tensor(0);
  const std::int64_t size = f.integer(1);
  if (x.dim() != 2) fail("w_int8 must be 2-dimensional");
  if (size <= 1) fail("group_size must be > 1");
  if (!sym_mod(x.sizes[1], size).is(0)) fail("w_int8.shape[-1] must be divisible by group_size");
  return f.build.call("aten.reshape.default", {f.args[0], f.build.sizes({-1, size})});
}

/// Fake quantization: to integers and back. Where nothing had to be clamped, the gradient passes.
void add_fake_quantization(OpTable& t) {
  const auto add = [&](std::string_view name, std::string_view program) {
    t.add(name, {.program = program, .autograd = {.derivative = {{"self", "grad * result1"}}}});
  };
  add("aten.fake_quantize_per_tensor_affine_cachemask.default",
      "step = single(scale); v = round(in_wide(self) * single(1.0 / step)) + zero_point; "
      "fake_quantized(self, in_dtype(v, torch.float32), step, zero_point, quant_min, quant_max)");
  add("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
      "step = one_of(scale); zero = one_of(zero_point); v = round(in_wide(self) * (1.0 / step)) + zero; "
      "r = fake_quantized(self, in_dtype(v, torch.float32), step, zero, quant_min, quant_max); on = "
      "ne(one_of(fake_quant_enabled), 0); "
      "(where(on, r[0], self), logical_or(logical_not(on), r[1]))");
  // This one goes through integers, of which infinity and NaN are the least. A zero point that is not whole is added
  // before the rounding.
  add("aten.fake_quantize_per_channel_affine_cachemask.default",
      "step = along(scale, self, axis); zero = along(zero_point, self, axis); v = in_wide(self) * (1.0 / step); "
      "u = round(v + zero) if is_floating(zero_point) else round(v) + zero; "
      "q = in_dtype(in_dtype(u, torch.int64), dtype(v)); fake_quantized(self, q, step, zero, quant_min, quant_max)");
  for (const char* name : {"aten.fake_quantize_per_tensor_affine_cachemask_backward.default",
                           "aten.fake_quantize_per_channel_affine_cachemask_backward.default"})
    t.add(name, {.program = "grad * mask"});
  t.add("aten.fake_quantize_per_tensor_affine.default",
        {.program = "fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max)[0]"});
  t.add(
      "aten.fake_quantize_per_tensor_affine.tensor_qparams",
      {.program =
           "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, scale, zero_point, ones_like(zero_point), "
           "quant_min, quant_max)[0]"});
  t.add("aten.fake_quantize_per_channel_affine.default",
        {.program =
             "fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis, quant_min, quant_max)[0]"});
}

}  // namespace

void register_quantized(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add_formula_functions({{"in_single", in_single},
                           {"of_dtype", of_dtype},
                           {"clamped", clamped},
                           {"inverse", inverse},
                           {"unpacked", unpacked},
                           {"one_of", one_of},
                           {"along", along},
                           {"single", single},
                           {"in_wide", in_wide},
                           {"fake_quantized", fake_quantized},
                           {"in_groups", in_groups}});
  // The products are sums in single precision, which are rounded once, after the scale.
  t.add("aten._weight_int8pack_mm.default",
        {.program = "p = mm(in_dtype(self, torch.float32), unpacked(mat2, self, scales)); "
                    "in_dtype(p * in_dtype(scales, torch.float32), dtype(self))"});

  t.add("quantized_decomposed.quantize_per_tensor.default",
        {.program = "clamped(round(in_single(input) * inverse(scale)) + zero_point, quant_min, quant_max, dtype)",
         .precision = {.as_written = true}});
  t.add("quantized_decomposed.quantize_per_channel.default",
        {.program = "v = round(in_single(input) * (1.0 / along(scales, input, axis))); "
                    "clamped(v + along(zero_points, input, axis), quant_min, quant_max, dtype)",
         .precision = {.as_written = true}});
  t.add("quantized_decomposed.quantize_per_token.default",
        {.program = "clamped(round(input * (1.0 / scales) + zero_points), quant_min, quant_max, dtype)"});
  t.add("quantized_decomposed.dequantize_per_tensor.default",
        {.program = "v = in_dtype(of_dtype(input, dtype), torch.float32 if out_dtype is None else out_dtype); "
                    "(v - zero_point) * scale"});
  t.add("quantized_decomposed.dequantize_per_channel.default",
        {.program = "v = of_dtype(input, dtype); "
                    "moved = v if zero_points is None else v - along(zero_points, input, axis); "
                    "in_dtype(moved * along(scales, input, axis), torch.float32 if out_dtype is None else out_dtype)"});
  t.add("quantized_decomposed.dequantize_per_channel_group.default",
        {.program = "rows = in_groups(input, group_size); "
                    "moved = rows if zero_points is None else rows - reshape(zero_points, [-1, 1]); "
                    "in_dtype(reshape(moved * reshape(scales, [-1, 1]), sizes(input)), output_dtype)"});
  t.add("quantized_decomposed.dequantize_per_token.default",
        {.program = "in_dtype((input - zero_points) * scales, output_dtype)"});
  // Numbers in tensors are in double precision until they meet the input.
  for (const char* overload : {"tensor", "tensor2"}) {
    t.add(fmt::format("quantized_decomposed.quantize_per_tensor.{}", overload),
          {.program = "inverse = in_dtype(1.0 / in_dtype(one_of(scale), torch.float64), torch.float32); "
                      "clamped(round(in_single(input) * inverse) + one_of(zero_point), quant_min, quant_max, dtype)",
           .precision = {.as_written = true}});
    t.add(fmt::format("quantized_decomposed.dequantize_per_tensor.{}", overload),
          {.program = "v = in_dtype(of_dtype(input, dtype), torch.float32 if out_dtype is None else out_dtype); "
                      "(v - one_of(zero_point)) * one_of(scale)"});
  }
  add_fake_quantization(t);
  t.add("quantized_decomposed.choose_qparams_per_token_asymmetric.default",
        {.program = "least = amin(input, [-1], True); low = minimum(least, zeros_like(least)); "
                    "most = amax(input, [-1], True); high = maximum(most, zeros_like(most)); "
                    "scale = clamp_min((high - low) / 255.0, 1.1920928955078125e-07); "
                    "a = low / scale; b = high / scale; "
                    "zero = where(gt((a - 128) + (b + 127), 0), -128 - a, 127 - b); "
                    "(in_dtype(scale, torch.float64), in_dtype(round(clamp(zero, -128, 127)), torch.int64))"});
}

}  // namespace partita
