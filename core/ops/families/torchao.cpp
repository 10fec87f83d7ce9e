// torchao: integers with a scale and a zero point for each block of a tensor. Checks and order of the arithmetic are
// those of torchao/quantization/quant_primitives.py.
#include <fmt/format.h>

#include "core/ops/families/composites.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// The sizes of a tensor whose blocks have dimensions of their own.
struct Blocks {
  SymList split;   ///< with one dimension for blocks and one within them, where a block is a part of a dimension
  SymList values;  ///< the same with 1 for what is within blocks: a value for each block
  SymList counts;  ///< blocks along each dimension of the tensor
  std::vector<std::int64_t> within;  ///< the dimensions of `split` within blocks

  Blocks(const DecomposeCall& c, const TensorMeta& tensor) {
    const SymList block = c.syms("block_size");
    if (block.size() != tensor.dim())
      fail(fmt::format("Got input dim:{}, block_size of {} dimensions", tensor.dim(), block.size()));
    for (std::size_t d = 0; d < block.size(); ++d) {
      if (block[d].is_int() && block[d].as_int() < 1) fail("block_size: a block has at least one element");
      const SymExpr &size = tensor.sizes[d], &of_block = block[d];
      const bool whole = c.test(sym_eq(size, of_block), "a block is a whole dimension");
      const bool single = c.test(sym_eq(of_block, 1), "a block is one element");
      if (!whole && !single && !checked(c, sym_eq(sym_mod(size, of_block), 0), "blocks fill a dimension"))
        fail(fmt::format("Expecting input size at {} dimension: {} to be divisible by block_size at {} dimension: {}",
                         d, size.str(), d, of_block.str()));
      counts.push_back(single ? size : whole ? SymExpr(1) : sym_floordiv(size, of_block));
      if (single || !whole) add(counts.back(), false);
      if (!single) add(of_block, true);
    }
  }

 private:
  void add(const SymExpr& size, bool is_within) {
    if (is_within) within.push_back(std::ssize(split));
    split.push_back(size);
    values.push_back(is_within ? SymExpr(1) : size);
  }
};

/// The bounds that the call gives or the dtype has.
struct Bounds {
  std::int64_t low, high;

  Bounds(const DecomposeCall& c, DType t) {
    if (!is_integral(t) || t == DType::Bool || itemsize(t) > 4)
      fail_unsupported("quantized values in " + std::string(torch_name(t)));
    const auto bits = 8 * static_cast<int>(itemsize(t));
    const std::int64_t least = is_signed(t) ? -(std::int64_t{1} << (bits - 1)) : 0;
    const std::int64_t most = least + (std::int64_t{1} << bits) - 1;
    low = c.has("quant_min") ? as_int(c.number("quant_min")) : least;
    high = c.has("quant_max") ? as_int(c.number("quant_max")) : most;
    if (low < least)
      fail(fmt::format("quant_min out of bound for dtype, quant_min_lower_bound: {} quant_min: {}", least, low));
    if (high > most)
      fail(fmt::format("quant_max out of bound for dtype, quant_max_upper_bound: {} quant_max: {}", most, high));
  }
};

bool is_single_or_half(DType t) {
  return t == DType::Float32 || t == DType::Float16 || t == DType::BFloat16;
}

Arg quantize(DecomposeCall& c) {
  const TensorMeta& input = c.tensor("input");
  if (!is_single_or_half(input.dtype)) fail("Unsupported input dtype: torch." + std::string(torch_name(input.dtype)));
  if (!c.has("zero_point")) fail("zero_point is None, which cannot be added");
  const Blocks blocks(c, input);
  const DType dtype = *c.dtype("output_dtype");
  const Bounds bounds(c, dtype);
  return build_program(c,
                       "x = view(input, split); s = view(scale, values); z = view(zero_point, values);"
                       "in_dtype(view(clamp(round(x * (1.0 / s)) + z, low, high), whole), dtype)",
                       {{"split", c.build.sizes(blocks.split)},
                        {"values", c.build.sizes(blocks.values)},
                        {"whole", c.build.sizes(input.sizes)},
                        {"low", bounds.low},
                        {"high", bounds.high},
                        {"dtype", dtype}});
}

Arg dequantize(DecomposeCall& c) {
  const TensorMeta& input = c.tensor("input");
  const DType dtype = *c.dtype("input_dtype"), wanted = c.dtype("output_dtype").value_or(DType::Float32);
  if (input.dtype != dtype) fail(fmt::format("Expected: {}, got: {}", torch_name(dtype), torch_name(input.dtype)));
  if (!is_single_or_half(wanted)) fail("Unsupported output dtype: torch." + std::string(torch_name(wanted)));
  const Bounds bounds(c, dtype);
  const Blocks blocks(c, input);
  const char* const moved = c.has("zero_point") ? "x - in_dtype(view(zero_point, values), dtype)" : "x";
  return build_program(c,
                       fmt::format("x = in_dtype(view(input, split), dtype);"
                                   "in_dtype(view(({}) * view(scale, values), whole), dtype)",
                                   moved),
                       {{"split", c.build.sizes(blocks.split)},
                        {"values", c.build.sizes(blocks.values)},
                        {"whole", c.build.sizes(input.sizes)},
                        {"dtype", wanted}});
}

Arg choose_qparams(DecomposeCall& c) {
  const TensorMeta& input = c.tensor("input");
  const DType dtype = input.dtype;
  const Blocks blocks(c, input);
  const Bounds bounds(c, *c.dtype("target_dtype"));
  const std::string mapping = c.string("mapping_type");
  if (mapping != "SYMMETRIC" && mapping != "SYMMETRIC_NO_CLIPPING_ERR" && mapping != "ASYMMETRIC")
    fail("Unsupported mapping type: " + mapping);
  if (!is_single_or_half(dtype)) fail_unsupported("scales of " + std::string(torch_name(dtype)));
  const bool symmetric = mapping != "ASYMMETRIC", keeps = c.boolean("keepdim");
  constexpr double smallest_half = 0x1p-14, smallest_single = 0x1p-126;  // normal; bfloat16 has single's
  const double smallest = dtype == DType::Float16 ? smallest_half : smallest_single;
  // The zero point of a symmetric mapping is cut off as Python's int() does.
  const std::int64_t middle = (bounds.high + bounds.low + 1) / 2;
  std::string program =
      "x = view(input, split); least = amin(x, within, keepdim); most = amax(x, within, keepdim);"
      "low = minimum(least, zeros_like(least)); high = maximum(most, zeros_like(most));";
  if (mapping == "SYMMETRIC")
    program += "raw = maximum(-low, high) / half;";
  else if (symmetric)
    program += "a = low / quant_low; b = high / quant_high; raw = where(gt(a, b), a, b);";
  else
    program += "raw = (high - low) / all;";
  program += "scale = clamp(raw, eps);";
  program += symmetric ? "zero = full_like(scale, middle);"
                       : "zero = clamp(low_bound - round(low / scale), low_bound, high_bound);";
  program += keeps ? "(in_dtype(view(scale, counts), of_scale), in_dtype(view(zero, counts), of_zero))"
                   : "(in_dtype(scale, of_scale), in_dtype(zero, of_zero))";
  const auto low = static_cast<double>(bounds.low), high = static_cast<double>(bounds.high);
  return build_program(c, program,
                       {{"split", c.build.sizes(blocks.split)},
                        {"within", list_of(blocks.within)},
                        {"counts", c.build.sizes(blocks.counts)},
                        {"keepdim", keeps},
                        {"half", (high - low) / 2},
                        {"all", high - low},
                        {"quant_low", low},
                        {"quant_high", high},
                        {"low_bound", bounds.low},
                        {"high_bound", bounds.high},
                        {"middle", middle},
                        {"eps", c.has("eps") ? as_double(c.number("eps")) : smallest},
                        {"of_scale", c.dtype("scale_dtype").value_or(dtype)},
                        {"of_zero", c.dtype("zero_point_dtype").value_or(symmetric ? dtype : DType::Int32)}});
}

}  // namespace

void register_torchao(OpTable& t) {
  t.default_family = Family::Pointwise;
  t.add("torchao.quantize_affine.default", {.decompose = quantize, .precision = {.as_written = true}});
  t.add("torchao.dequantize_affine.default", {.decompose = dequantize});
  t.add("torchao.choose_qparams_affine.default",
        {.decompose = choose_qparams, .precision = {.as_written = true}, .family = Family::Reduction});
}

}  // namespace partita
