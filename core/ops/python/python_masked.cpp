// torch.masked: reductions and normalisations of the elements that a mask keeps (torch/masked/_ops.py).
#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include <fmt/format.h>

#include "core/ops/record/operator_program.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

/// What stands in the place of the elements that the mask leaves out (_reduction_identity).
enum class Fill : unsigned char { Zero, One, Lowest, Highest, Nan };

Arg extreme(bool lowest, DType dtype) {
  if (is_floating(dtype) || is_complex(dtype)) return lowest ? -HUGE_VAL : HUGE_VAL;
  if (dtype == DType::UInt8) return lowest ? 0 : 255;
  if (!is_integral(dtype) || !is_signed(dtype))
    fail_unsupported(fmt::format("a masked extreme of {}", torch_name(dtype)));
  const std::int64_t highest = std::numeric_limits<std::int64_t>::max() >> (64 - 8 * itemsize(dtype));
  return lowest ? -highest - 1 : highest;
}

Arg fill_number(Fill fill, DType dtype) {
  switch (fill) {
    case Fill::Zero:
      return 0;
    case Fill::One:
      return 1;
    case Fill::Lowest:
      return extreme(true, dtype);
    case Fill::Highest:
      return extreme(false, dtype);
    case Fill::Nan:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

/// The mask as booleans of the sizes of x.
Node* whole_mask(Builder& b, Node* x, Node* mask) {
  const TensorMeta of = b.tensor(x);
  if (b.tensor(mask).dim() > of.dim())
    fail("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)");
  if (b.tensor(mask).sizes != of.sizes)
    mask = b.call("aten.expand.default", {b.call("aten.clone.default", {mask}), b.sizes(of.sizes)});
  return b.tensor(mask).dtype == DType::Bool ? mask : b.call("aten.to.dtype", {mask, DType::Bool});
}

Node* filled(Builder& b, Node* x, const Arg& mask, Fill fill) {
  if (mask.is_none()) return x;
  const TensorMeta of = b.tensor(x);
  Node* const kept = whole_mask(b, x, mask.node());
  Node* const other = b.call("aten.full.default", {Arg::list({}), fill_number(fill, of.dtype)},
                             {{"dtype", of.dtype}, {"device", of.device}, {"pin_memory", false}});
  return b.call("aten.where.self", {kept, x, other});
}

/// A tensor parameter that may be None; fails for anything else.
Arg mask_of(NamedArgs& names, std::string_view key) {
  return value_of(names, key).is_none() ? Arg() : Arg(node_of(names, key));
}

/// The dimensions, sorted and counted from 0. None and () mean all.
std::vector<std::int64_t> dims_of(Builder& b, NamedArgs& names) {
  const Arg given = repeated(value_of(names, "dim"), 1);
  const auto rank = static_cast<std::int64_t>(b.tensor(node_of(names, "input")).dim());
  const ArgList* list = given.get<ArgList>();
  std::vector<std::int64_t> dims;
  if (!list || list->items.empty()) {
    for (std::int64_t d = 0; d < rank; ++d) dims.push_back(d);
    return dims;
  }
  const std::int64_t count = std::max<std::int64_t>(rank, 1);
  for (const Arg& item : list->items) {
    const auto* d = item.get<std::int64_t>();
    if (!d || *d < -count || *d >= count) fail("Dimension out of range");
    dims.push_back(*d < 0 ? *d + count : *d);
  }
  std::ranges::sort(dims);
  if (std::ranges::adjacent_find(dims) != dims.end()) fail("a dimension appears multiple times in the list of dims");
  return dims;
}

/// Names what the programs below read beside the parameters: x, the input with what the mask leaves out replaced, dims
/// and first, the dimensions, and dtype and keepdim where they are not given.
void name_parts(Builder& b, NamedArgs& names, Fill fill) {
  Node* const input = node_of(names, "input");
  if (Arg* keep = lookup(names, "keepdim"); keep && keep->is_none()) *keep = false;
  if (Arg& dtype = value_of(names, "dtype"); dtype.is_none()) dtype = b.tensor(input).dtype;
  const std::vector<std::int64_t> dims = dims_of(b, names);
  names.emplace_back("first", dims.empty() ? 0 : dims[0]);
  names.emplace_back("dims", Arg::list(std::vector<Arg>(dims.begin(), dims.end())));
  names.emplace_back("x", filled(b, input, mask_of(names, "mask"), fill));
}

Arg masked(Builder& b, NamedArgs& names, Fill fill, std::string_view program) {
  name_parts(b, names, fill);
  return build_program(b, program, names);
}

/// Sums and products of narrower integers are of int64.
void widen_integers(Builder& b, NamedArgs& names) {
  const DType dtype = b.tensor(node_of(names, "input")).dtype;
  const bool narrow = dtype == DType::Bool ||
                      (is_integral(dtype) && itemsize(dtype) < 8 && (is_signed(dtype) || dtype == DType::UInt8));
  if (Arg& wanted = value_of(names, "dtype"); wanted.is_none() && narrow) wanted = DType::Int64;
}

Arg sum(Builder& b, NamedArgs& names) {
  widen_integers(b, names);
  return masked(b, names, Fill::Zero, "sum(x, dims, keepdim, dtype=dtype)");
}

Arg prod(Builder& b, NamedArgs& names) {
  widen_integers(b, names);
  Arg result = masked(b, names, Fill::One, "aten.to.dtype(x, dtype)");
  std::vector<Arg> dims = value_of(names, "dims").get<ArgList>()->items;
  for (const Arg& d : std::views::reverse(dims))
    result = b.call("aten.prod.dim_int", {result, d, value_of(names, "keepdim")});
  return result;
}

/// Names `kept`, of which the sum is the number of elements.
void name_kept(Builder& b, NamedArgs& names) {
  Node* const input = node_of(names, "input");
  const Arg mask = mask_of(names, "mask");
  names.emplace_back("kept", mask.node()
                                 ? Arg(whole_mask(b, input, mask.node()))
                                 : b.expression("ones_like(input, dtype=torch.int64, pin_memory=False)", names));
}

Arg mean(Builder& b, NamedArgs& names) {
  name_parts(b, names, Fill::Zero);
  if (const DType dtype = *value_of(names, "dtype").get<DType>(); !is_floating(dtype) && !is_complex(dtype))
    fail("mean(): Could not infer output dtype. It must be either a floating point or complex dtype");
  name_kept(b, names);
  return build_program(b, "count = sum(kept, dims, keepdim); sum(x, dims, keepdim, dtype=dtype) / count", names);
}

Arg median(Builder& b, NamedArgs& names) {
  const DType given = b.tensor(node_of(names, "input")).dtype;
  Arg& dtype = value_of(names, "dtype");
  if (dtype.is_none()) dtype = given;
  if (is_floating(given)) return masked(b, names, Fill::Nan, "nanmedian(x, first, keepdim)[0]");
  value_of(names, "input") = b.expression("aten.to.dtype(input, torch.float32)", names);
  return masked(b, names, Fill::Nan,
                "middle = nanmedian(x, first, keepdim)[0]; "
                "aten._assert_async.msg(logical_not(any(isnan(middle))), "
                "'masked median expects no fully masked out rows if dtype is not floating point'); "
                "aten.to.dtype(middle, dtype)");
}

Arg logaddexp(Builder& b, NamedArgs& names) {
  Node *const input = node_of(names, "input"), *const other = node_of(names, "other");
  if (Arg& dtype = value_of(names, "dtype"); dtype.is_none()) dtype = b.tensor(input).dtype;
  names.emplace_back("x", filled(b, input, mask_of(names, "input_mask"), Fill::Lowest));
  names.emplace_back("y", filled(b, other, mask_of(names, "other_mask"), Fill::Lowest));
  return b.expression("aten.to.dtype(logaddexp(x, y), dtype)", names);
}

Arg masked_norm(Builder& b, NamedArgs& names) {
  const auto order = as_number(value_of(names, "ord"));
  if (!order) fail_unsupported("a masked masked_norm of an order that is no number");
  return masked(b, names, as_double(*order) == -HUGE_VAL ? Fill::Highest : Fill::Zero,
                "linalg_vector_norm(x, ord, dims, keepdim, dtype=dtype)");
}

Arg normalize(Builder& b, NamedArgs& names) {
  names.emplace_back("keepdim", true);
  NamedArgs of_norm = names;
  names.emplace_back("length", masked_norm(b, of_norm));
  return masked(b, names, Fill::Zero,
                "least = new_full(length, [], eps, pin_memory=False); x / maximum(length, least)");
}

/// The variance, about a mean of its own.
Arg var(Builder& b, NamedArgs& names) {
  Node* const input = node_of(names, "input");
  const Arg given = value_of(names, "correction"), unbiased = value_of(names, "unbiased");
  if (!given.is_none() && !unbiased.is_none()) fail("Only one of unbiased and correction may be given");
  const auto correction = given.is_none() ? Number(unbiased == Arg(false) ? 0.0 : 1.0) : as_number(given);
  if (!correction) fail_unsupported("a masked variance with a correction that is no number");
  const auto computes = [](DType t) { return is_floating(t) || is_complex(t); };
  const DType own = b.tensor(input).dtype;
  if (Arg& dtype = value_of(names, "dtype"); dtype.is_none()) dtype = computes(own) ? own : DType::Float32;
  name_parts(b, names, Fill::Zero);
  name_kept(b, names);
  const DType wanted = *value_of(names, "dtype").get<DType>(), compute = computes(wanted) ? wanted : DType::Float32;
  names.emplace_back("compute", compute);
  names.emplace_back("real", real_of(compute));
  names.emplace_back("correction_", as_double(*correction));
  names.emplace_back("off", build_program(b,
                                          "count = sum(kept, dims, True); "
                                          "input - sum(x, dims, True, dtype=dtype) / count",
                                          names));
  Node* const off = value_of(names, "off").node();
  names.emplace_back("squares", b.expression(is_complex(b.tensor(off).dtype) ? "off * conj(off)" : "off * off", names));
  names.emplace_back("kept_squares", filled(b, value_of(names, "squares").node(), mask_of(names, "mask"), Fill::Zero));
  return build_program(b,
                       "total = sum(kept_squares, dims, keepdim, dtype=compute); "
                       "count = sum(kept, dims, keepdim); "
                       "count = count if correction_ == 0.0 else "
                       "clamp_min(aten.to.dtype(count, real) - correction_, 0); "
                       "aten.to.dtype(total / count, dtype)",
                       names);
}

Arg std_(Builder& b, NamedArgs& names) {
  return b.call("aten.sqrt.default", {var(b, names)});
}

/// A row whose program reads what name_parts() names.
template <Fill fill, auto& program>
Arg by_program(Builder& b, NamedArgs& names) {
  return masked(b, names, fill, program);
}

constexpr char cumsum[] = "aten.to.dtype(cumsum(x, first, dtype=dtype), dtype)";
constexpr char cumprod[] = "aten.to.dtype(cumprod(x, first, dtype=dtype), dtype)";
constexpr char amax[] = "aten.to.dtype(amax(x, dims, keepdim), dtype)";
constexpr char amin[] = "aten.to.dtype(amin(x, dims, keepdim), dtype)";
constexpr char argmax[] = "aten.to.dtype(argmax(x, dim, keepdim), dtype)";
constexpr char argmin[] = "aten.to.dtype(argmin(x, dim, keepdim), dtype)";
constexpr char logsumexp[] = "aten.to.dtype(logsumexp(x, dims, keepdim), dtype)";
constexpr char softmax[] = "softmax(x, first, dtype)";
constexpr char log_softmax[] = "log_softmax(x, first, dtype)";
constexpr char softmin[] = "softmax(-x, first, dtype)";

constexpr PythonSpecial masked_rows[] = {
    {"torch.masked._ops.sum", sum},
    {"torch.masked._ops.prod", prod},
    {"torch.masked._ops.cumsum", by_program<Fill::Zero, cumsum>},
    {"torch.masked._ops.cumprod", by_program<Fill::One, cumprod>},
    {"torch.masked._ops.amax", by_program<Fill::Lowest, amax>},
    {"torch.masked._ops.amin", by_program<Fill::Highest, amin>},
    {"torch.masked._ops.argmax", by_program<Fill::Lowest, argmax>},
    {"torch.masked._ops.argmin", by_program<Fill::Highest, argmin>},
    {"torch.masked._ops.mean", mean},
    {"torch.masked._ops.median", median},
    {"torch.masked._ops.logsumexp", by_program<Fill::Lowest, logsumexp>},
    {"torch.masked._ops.logaddexp", logaddexp},
    {"torch.masked._ops.norm", masked_norm},
    {"torch.masked._ops.normalize", normalize},
    {"torch.masked._ops.var", var},
    {"torch.masked._ops.std", std_},
    {"torch.masked._ops.softmax", by_program<Fill::Lowest, softmax>},
    {"torch.masked._ops.log_softmax", by_program<Fill::Lowest, log_softmax>},
    {"torch.masked._ops.softmin", by_program<Fill::Highest, softmin>},
};

}  // namespace

std::span<const PythonSpecial> masked_specials() {
  return masked_rows;
}

}  // namespace partita
