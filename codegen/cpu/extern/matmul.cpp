#include "codegen/cpu/extern/onednn.h"
#include "codegen/cpu/extern/product.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// `describe`, for integers too.
std::optional<memory::desc> described(const ConcreteView& view) {
  using enum memory::data_type;
  if (view.dtype == DType::Int8) return describe(view, s8);
  if (view.dtype == DType::UInt8) return describe(view, u8);
  if (view.dtype == DType::Int32) return describe(view, s32);
  return describe(view);
}

/// Are integers multiplied without rounding? oneDNN's products of int8 saturate sums of two without VNNI.
bool are_exact(const ConcreteView& a, const ConcreteView& b, const ConcreteView& out) {
#ifdef __x86_64__
  const bool vnni = __builtin_cpu_supports("avx512vnni");
#else
  constexpr bool vnni = false;
#endif
  return vnni && (a.dtype == DType::Int8 || a.dtype == DType::UInt8) && b.dtype == DType::Int8 &&
         out.dtype == DType::Int32;
}

/// A matrix (or batch) as oneDNN takes it: repeated batches become one that is broadcast; without a dimension of stride
/// 1 it is copied to row-major order.
struct Matrix {
  ConcreteView view;
  memory::desc plain, wanted;
};

std::optional<Matrix> matrix(ConcreteView view) {
  std::size_t rank = view.sizes.size();
  for (std::size_t d = 0; d + 2 < rank; ++d)
    if (view.strides[d] == 0) view.sizes[d] = 1;
  auto plain = described(view);
  if (!plain) return std::nullopt;
  const auto& s = plain->data.format_desc.blocking.strides;
  bool direct = (s[rank - 1] == 1 && s[rank - 2] >= view.sizes[rank - 1]) ||
                (s[rank - 2] == 1 && s[rank - 1] >= view.sizes[rank - 2]);
  memory::desc wanted =
      direct ? *plain : memory::desc(view.sizes, plain->data_type(), memory::dims(row_major_strides(view.sizes)));
  return Matrix{std::move(view), *plain, wanted};
}

/// Is it worth packing a matrix that changes from run to run? oneDNN reads rows in place whose distance is a multiple
/// of a page, and few of them fit into the cache at a time. It copies them itself if the distance is a power of two.
bool pays_to_pack(const Matrix& right, std::int64_t rows_of_left) {
  constexpr std::int64_t page = 4096, least_rows = 64;  // measured with 3072 and 5120 columns of float
  const ConcreteView& v = right.view;
  const std::int64_t distance = v.strides[0] * static_cast<std::int64_t>(itemsize(v.dtype));
  return v.sizes.size() == 2 && v.strides[1] == 1 && rows_of_left >= least_rows && distance > page &&
         distance % page == 0 && (distance & (distance - 1)) != 0;
}

/// `added` has the rank of the result, sizes 1 or the result's.
Prepared prepare(const ExternContext& context, const ConcreteView& a, const ConcreteView& b,
                 std::optional<ConcreteView> added, float alpha, std::string& why_not) {
  auto out = concrete_view(context.call.results[0]);
  constexpr std::int64_t least_rows = 32;  // fewer take less time than to pack a matrix that changes
  if (out && alpha == 1 && (context.fixed(b.buffer) || a.sizes[a.sizes.size() - 2] >= least_rows))
    if (Prepared own = prepare_product(context, a, b, added, *out); own.step) return own;
  if (out && alpha == 1 && !added)
    if (Prepared own = prepare_batched_product(context, a, b, *out); own.step) return own;
  if (out && is_integral(out->dtype) && !are_exact(a, b, *out)) {
    if (Prepared own = prepare_int_product(context, a, b, *out); own.step) return own;
    return refused(why_not, "integers that oneDNN does not multiply exactly on this processor");
  }
  auto left = matrix(a), right = matrix(b);
  auto result = out ? described(*out) : std::nullopt;
  if (!left || !right || !result) return refused(why_not, "a dtype, size or stride that oneDNN does not take");
  std::size_t rank = a.sizes.size();
  std::optional<memory::desc> added_desc, added_wanted;
  bool is_bias = false;
  if (added) {
    added_desc = describe(*added);
    if (!added_desc) return refused(why_not, "the added matrix has a dtype or stride that oneDNN does not take");
    added_wanted = dense(*added);
    is_bias = alpha == 1;
    for (std::size_t d = 0; d + 1 < rank; ++d) is_bias = is_bias && added->sizes[d] == 1;
  }
  OnednnThreads limit(context.threads);
  dnnl::primitive_attr attributes;
  dnnl::post_ops post;
  if (alpha != 1) post.append_eltwise(1, dnnl::algorithm::eltwise_linear, alpha, 0);
  int position = post.len();
  if (added && !is_bias) post.append_binary(dnnl::algorithm::binary_add, *added_wanted);
  attributes.set_post_ops(post);
  const bool fixed = context.fixed(b.buffer);
  memory::desc any(right->view.sizes, right->plain.data_type(), memory::format_tag::any);
  const auto& rs = result->data.format_desc.blocking.strides;
  memory::desc dense(out->sizes, result->data_type(), memory::dims(row_major_strides(out->sizes)));
  bool row_major_out = rs[rank - 1] == 1;
  try {
    const bool packs = fixed || pays_to_pack(*right, a.sizes[rank - 2]);
    memory::desc weights = packs ? any : right->wanted;
    memory::desc target = row_major_out ? *result : dense;
    auto desc = is_bias ? dnnl::matmul::desc(left->wanted, weights, *added_wanted, target)
                        : dnnl::matmul::desc(left->wanted, weights, target);
    dnnl::matmul::primitive_desc pd(desc, attributes, cpu_engine());
    OnednnStep::Call call{
        dnnl::matmul(pd),
        {{DNNL_ARG_SRC, PrimitiveOperand(left->view, left->plain, left->wanted, weights_of(context, a.buffer))},
         {DNNL_ARG_WEIGHTS, PrimitiveOperand(right->view, right->plain, pd.weights_desc(),
                                             fixed ? weights_of(context, b.buffer) : nullptr)},
         {DNNL_ARG_DST, PrimitiveOperand(*out, *result, target), true}}};
    if (packs && !fixed) call.arguments[1].operand.keep_nothing();
    const int role = is_bias ? DNNL_ARG_BIAS : DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
    if (added) call.arguments.push_back({role, PrimitiveOperand(*added, *added_desc, *added_wanted)});
    auto step = std::make_unique<OnednnStep>(context.threads);
    step->calls.push_back(std::move(call));
    return {std::move(step), std::string("oneDNN ") + pd.impl_info_str(), false,
            "a kernel of its own: oneDNN computes the whole product"};
  } catch (const dnnl::error& e) {
    return refused(why_not, std::string("oneDNN: ") + e.what());
  }
}

}  // namespace

Prepared prepare_matmul(const ExternContext& context, std::string& why_not) {
  auto a = context.view(0), b = context.view(1);
  if (!a || !b) return refused(why_not, "symbolic sizes");
  return prepare(context, *a, *b, std::nullopt, 1, why_not);
}

Prepared prepare_addmm(const ExternContext& context, std::string& why_not) {
  auto added = context.view(0), a = context.view(1), b = context.view(2);
  auto beta = context.number(3), alpha = context.number(4);
  if (!added || !a || !b || !beta || !alpha) return refused(why_not, "symbolic sizes");
  if ((*beta != 1 && *beta != 0) || *alpha == 0)
    return refused(why_not,
                   *alpha == 0 ? "alpha is 0: the product does not count, infinities or not" : "beta is not 1");
  // Sizes of the result, broadcast ones as 1.
  while (added->sizes.size() < a->sizes.size()) {
    added->sizes.insert(added->sizes.begin(), 1);
    added->strides.insert(added->strides.begin(), 0);
  }
  for (std::size_t d = 0; d < added->sizes.size(); ++d)
    if (added->strides[d] == 0) added->sizes[d] = 1;
  return prepare(context, *a, *b, *beta == 0 ? std::nullopt : added, static_cast<float>(*alpha), why_not);
}

}  // namespace partita::codegen
