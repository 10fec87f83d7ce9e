#include <memory>
#include <unordered_map>

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

class Matmul final : public ExternStep {
 public:
  Matmul(Operand a, Operand b, Operand out, std::optional<Operand> added)
      : a_(std::move(a)), b_(std::move(b)), out_(std::move(out)), added_(std::move(added)), stream_(cpu_engine()) {}

  dnnl::matmul primitive;
  bool added_is_bias = false;
  int added_position = 0;  ///< among the post-operations
  int threads = 1;

  Status run(std::byte* const* buffers) override {
    OnednnThreads limit(threads);
    a_.load(stream_, buffers);
    b_.load(stream_, buffers);
    out_.attach(buffers);
    if (added_) added_->load(stream_, buffers);
    if (args_.empty()) {
      args_ = {{DNNL_ARG_SRC, a_.memory()}, {DNNL_ARG_WEIGHTS, b_.memory()}, {DNNL_ARG_DST, out_.memory()}};
      int added = added_is_bias ? DNNL_ARG_BIAS : DNNL_ARG_ATTR_MULTIPLE_POST_OP(added_position) | DNNL_ARG_SRC_1;
      if (added_) args_.insert({added, added_->memory()});
    }
    primitive.execute(stream_, args_);
    out_.store(stream_);
    return {};
  }

 private:
  Operand a_, b_, out_;
  std::optional<Operand> added_;
  dnnl::stream stream_;
  std::unordered_map<int, memory> args_;
};

/// `added` has the rank of the result, sizes 1 or the result's.
Prepared prepare(const ExternContext& context, const ConcreteView& a, const ConcreteView& b,
                 std::optional<ConcreteView> added, float alpha, std::string& why_not) {
  auto out = concrete_view(context.call.results[0]);
  auto left = matrix(a), right = matrix(b);
  auto result = out ? describe(*out) : std::nullopt;
  if (!left || !right || !result) {
    why_not = "a dtype, size or stride that oneDNN does not take";
    return {};
  }
  std::size_t rank = a.sizes.size();
  std::optional<memory::desc> added_desc, added_wanted;
  bool is_bias = false;
  if (added) {
    added_desc = describe(*added);
    if (!added_desc) {
      why_not = "the added matrix has a dtype or stride that oneDNN does not take";
      return {};
    }
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
  // Packing reads and writes the whole weight once; in a product of many rows the kernel's own copy is a small share.
  constexpr std::int64_t many_rows = 64;
  const bool fixed = context.fixed(b.buffer) && a.sizes[rank - 2] < many_rows;
  memory::desc any(right->view.sizes, right->plain.data_type(), memory::format_tag::any);
  const auto& rs = result->data.format_desc.blocking.strides;
  memory::desc dense(out->sizes, result->data_type(), memory::dims(row_major_strides(out->sizes)));
  bool row_major_out = rs[rank - 1] == 1;
  try {
    memory::desc weights = fixed ? any : right->wanted;
    memory::desc target = row_major_out ? *result : dense;
    auto desc = is_bias ? dnnl::matmul::desc(left->wanted, weights, *added_wanted, target)
                        : dnnl::matmul::desc(left->wanted, weights, target);
    dnnl::matmul::primitive_desc pd(desc, attributes, cpu_engine());
    std::optional<Operand> added_operand;
    if (added) added_operand.emplace(*added, *added_desc, *added_wanted, false);
    auto step = std::make_unique<Matmul>(Operand(left->view, left->plain, left->wanted, context.fixed(a.buffer)),
                                         Operand(right->view, right->plain, pd.weights_desc(), fixed),
                                         Operand(*out, *result, target, false), std::move(added_operand));
    step->primitive = dnnl::matmul(pd);
    step->added_is_bias = is_bias;
    step->added_position = position;
    step->threads = context.threads;
    return {std::move(step), false, std::string("oneDNN ") + pd.impl_info_str()};
  } catch (const dnnl::error& e) {
    why_not = std::string("oneDNN: ") + e.what();
    return {};
  }
}

}  // namespace

Prepared prepare_matmul(const ExternContext& context, std::string& why_not) {
  auto a = context.view(0), b = context.view(1);
  if (!a || !b) {
    why_not = "symbolic sizes";
    return {};
  }
  return prepare(context, *a, *b, std::nullopt, 1, why_not);
}

Prepared prepare_addmm(const ExternContext& context, std::string& why_not) {
  auto added = context.view(0), a = context.view(1), b = context.view(2);
  auto beta = context.number(3), alpha = context.number(4);
  if (!added || !a || !b || !beta || !alpha) {
    why_not = "symbolic sizes";
    return {};
  }
  if ((*beta != 1 && *beta != 0) || *alpha == 0) {
    why_not = *alpha == 0 ? "alpha is 0: the product does not count, infinities or not" : "beta is not 1";
    return {};
  }
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
