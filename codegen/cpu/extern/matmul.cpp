#include <algorithm>

#include "codegen/cpu/extern/onednn.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

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
  auto plain = describe(view);
  if (!plain) return std::nullopt;
  const auto& s = plain->data.format_desc.blocking.strides;
  bool direct = (s[rank - 1] == 1 && s[rank - 2] >= view.sizes[rank - 1]) ||
                (s[rank - 2] == 1 && s[rank - 1] >= view.sizes[rank - 2]);
  memory::desc wanted =
      direct ? *plain : memory::desc(view.sizes, plain->data_type(), memory::dims(row_major_strides(view.sizes)));
  return Matrix{std::move(view), *plain, wanted};
}

struct Primitive {
  OnednnStep::Call call;
  std::string kernel;
};

/// A matrix product with fixed weights as an inner product, whose kernels read packed weights faster than those of
/// matmul. `bias`: a row, or none. Nullopt where oneDNN has no such kernel for the case.
std::optional<Primitive> packed(const ExternContext& context, const ConcreteView& a, const ConcreteView& b,
                                const ConcreteView& out, const std::optional<ConcreteView>& bias,
                                const dnnl::primitive_attr& attributes) {
  ConcreteView weights = b;
  std::ranges::reverse(weights.sizes);
  std::ranges::reverse(weights.strides);
  const auto left = describe(a), plain = describe(weights), result = describe(out);
  const auto row = bias ? describe(*bias) : std::nullopt;
  if (!left || !plain || !result || (bias && !row)) return std::nullopt;
  const auto any = [](const ConcreteView& view) {
    return memory::desc(view.sizes, onednn_type(view.dtype), memory::format_tag::any);
  };
  const auto kind = dnnl::prop_kind::forward_inference;
  using Product = dnnl::inner_product_forward;
  const auto desc = bias ? Product::desc(kind, any(a), any(weights), dense(*bias), any(out))
                         : Product::desc(kind, any(a), any(weights), any(out));
  const Product::primitive_desc pd(desc, attributes, cpu_engine());
  Primitive p{{Product(pd),
               {{DNNL_ARG_SRC, PrimitiveOperand(a, *left, pd.src_desc(), weights_of(context, a.buffer))},
                {DNNL_ARG_WEIGHTS, PrimitiveOperand(weights, *plain, pd.weights_desc(), weights_of(context, b.buffer))},
                {DNNL_ARG_DST, PrimitiveOperand(out, *result, pd.dst_desc()), true}}},
              pd.impl_info_str()};
  if (!p.kernel.starts_with("brgemm")) return std::nullopt;
  if (bias) p.call.arguments.push_back({DNNL_ARG_BIAS, PrimitiveOperand(*bias, *row, pd.bias_desc())});
  return p;
}

/// `added` has the rank of the result, sizes 1 or the result's.
Prepared prepare(const ExternContext& context, const ConcreteView& a, const ConcreteView& b,
                 std::optional<ConcreteView> added, float alpha, std::string& why_not) {
  auto out = concrete_view(context.call.results[0]);
  auto left = matrix(a), right = matrix(b);
  auto result = out ? describe(*out) : std::nullopt;
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
    std::optional<Primitive> p;
    // A bias that is one number for all columns is none of an inner product's.
    if (fixed && rank == 2 && (!is_bias || added->sizes[1] == out->sizes[1])) {
      std::optional<ConcreteView> bias;
      if (is_bias)
        bias = ConcreteView{added->buffer, added->dtype, {added->sizes[1]}, {added->strides[1]}, added->offset};
      p = packed(context, a, b, *out, bias, attributes);
    }
    if (!p) {
      memory::desc weights = fixed ? any : right->wanted;
      memory::desc target = row_major_out ? *result : dense;
      auto desc = is_bias ? dnnl::matmul::desc(left->wanted, weights, *added_wanted, target)
                          : dnnl::matmul::desc(left->wanted, weights, target);
      dnnl::matmul::primitive_desc pd(desc, attributes, cpu_engine());
      p = {{dnnl::matmul(pd),
            {{DNNL_ARG_SRC, PrimitiveOperand(left->view, left->plain, left->wanted, weights_of(context, a.buffer))},
             {DNNL_ARG_WEIGHTS, PrimitiveOperand(right->view, right->plain, pd.weights_desc(),
                                                 fixed ? weights_of(context, b.buffer) : nullptr)},
             {DNNL_ARG_DST, PrimitiveOperand(*out, *result, target), true}}},
           pd.impl_info_str()};
      if (is_bias) p->call.arguments.push_back({DNNL_ARG_BIAS, PrimitiveOperand(*added, *added_desc, *added_wanted)});
    }
    if (added && !is_bias)
      p->call.arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1,
                                   PrimitiveOperand(*added, *added_desc, *added_wanted)});
    auto step = std::make_unique<OnednnStep>(context.threads);
    step->calls.push_back(std::move(p->call));
    return {std::move(step), "oneDNN " + p->kernel};
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
