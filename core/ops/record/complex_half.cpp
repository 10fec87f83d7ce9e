// Evaluates calls on complex32: widens the arguments to single precision, evaluates, and rounds the results to the
// dtypes of the fake. Also lists the operators that PyTorch computes in it on a CPU.
#include "core/ops/record/complex_half.h"

#include <algorithm>
#include <array>

#include "core/ir/place.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/record/pointwise.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

/// Without "aten.". Those that only view are not listed.
constexpr auto computed = std::to_array<std::string_view>({
    "_chunk_cat",
    "_conj_physical",
    "_local_scalar_dense",
    "_to_copy",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "_unsafe_view",
    "abs",
    "add",
    "addcmul",
    "alias_copy",
    "all",
    "allclose",
    "any",
    "as_strided_copy",
    "as_strided_scatter",
    "block_diag",
    "cat",
    "clone",
    "complex",
    "conj_physical",
    "constant_pad_nd",
    "copy",
    "count_nonzero",
    "diag_embed",
    "diagonal_backward",
    "diagonal_copy",
    "diagonal_scatter",
    "dist",
    "embedding",
    "embedding_renorm",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "eq",
    "expand_copy",
    "fill",
    "flip",
    "full",
    "full_like",
    "index",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "isinf",
    "isnan",
    "item",
    "lift_fresh",
    "lift_fresh_copy",
    "linalg_vector_norm",
    "masked_fill",
    "masked_select",
    "mul",
    "narrow_copy",
    "native_dropout_backward",
    "ne",
    "neg",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_zeros",
    "nonzero",
    "nonzero_static",
    "norm",
    "ones",
    "ones_like",
    "permute_copy",
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "repeat",
    "resize",
    "resize_as",
    "roll",
    "rot90",
    "rsub",
    "scalar_tensor",
    "select_backward",
    "select_scatter",
    "sgn",
    "slice_backward",
    "slice_scatter",
    "split_with_sizes_copy",
    "squeeze_copy",
    "stack",
    "std",
    "std_mean",
    "sub",
    "t_copy",
    "transpose_copy",
    "tril",
    "triu",
    "unbind_copy",
    "unfold_copy",
    "unsafe_split",
    "unsqueeze_copy",
    "var",
    "var_mean",
    "view_copy",
    "where",
    "zero",
    "zeros",
    "zeros_like",
});

DType wide(DType t) {
  return t == DType::Complex32 ? DType::Complex64 : t == DType::Float16 ? DType::Float32 : t;
}

bool mentions(const Value& v, DType t) {
  if (const auto* list = v.get<ValueList>())
    return std::ranges::any_of(*list, [t](const Value& item) { return mentions(item, t); });
  if (const auto* tensor = v.get<Tensor>()) return tensor->dtype == t;
  const auto* dtype = v.get<DType>();
  return dtype && *dtype == t;
}

bool is_complex_half(const Meta& m) {
  if (const MetaTuple* tuple = m.tuple())
    return std::ranges::any_of(tuple->items, [](const Meta& item) { return is_complex_half(item); });
  return m.tensor() && m.tensor()->dtype == DType::Complex32;
}

Value widened(const Value& v) {
  if (const auto* list = v.get<ValueList>()) {
    ValueList out;
    for (const Value& item : *list) out.push_back(widened(item));
    return out;
  }
  if (const auto* dtype = v.get<DType>()) return wide(*dtype);
  const auto* t = v.get<Tensor>();
  if (!t || wide(t->dtype) == t->dtype) return v;
  Tensor out = unwrap(Tensor::empty_strided(wide(t->dtype), t->sizes, t->strides));
  out.copy_from(*t);
  return out;
}

}  // namespace

bool takes_complex_half(const Op* op) {
  std::string_view base = op->name;
  if (!base.starts_with("aten.")) return false;
  base = base.substr(5, base.rfind('.') - 5);
  if (base.ends_with('_')) base.remove_suffix(1);
  return std::ranges::binary_search(computed, base);
}

Diagnostic complex_half_error(const Op& op, const Node* node) {
  return unsupported("ops.dtype", op.name + " of complex32, which PyTorch does not compute on a CPU", place_of(node));
}

std::optional<Value> eval_complex_half(const OpRecord& record, const EvalCall& call, const Node* node) {
  const Schema& schema = *record.schema;
  const auto any = [&](DType t) {
    return std::ranges::any_of(call.args, [t](const Value& v) { return mentions(v, t); });
  };
  const bool given = any(DType::Complex32);
  if (schema.is_view || schema.is_mutable || record.precision.takes_float8 || (!given && !any(DType::Float16)))
    return std::nullopt;
  if (!record.fake && !record.pointwise.body) return std::nullopt;
  CallOfValues metas(call);
  const Meta promised = record.fake ? record.fake(metas.call) : Meta(fake_pointwise(record, metas.call));
  if (!given && !is_complex_half(promised)) return std::nullopt;
  const Op* op = Op::torch(schema.name);
  if (!takes_complex_half(op)) throw Raise{complex_half_error(*op, node)};
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> kwargs;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    if (schema.args[i].keyword_only)
      kwargs.emplace_back(schema.args[i].name, widened(call.args[i]));
    else
      args.push_back(widened(call.args[i]));
  }
  return as_promised(unwrap(evaluate(op, std::move(args), std::move(kwargs), call.context, node)), promised);
}

}  // namespace partita
