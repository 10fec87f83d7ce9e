// The guards of rewrites.def, and the passes that apply its rows at each stage.
#include <algorithm>

#include "core/ops/record/call.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace partita {
namespace {

bool always(const Match&) {
  return true;
}

/// Anything else is refused when the call is decomposed. One that is known only at run time may be any.
bool is_probability(const Match& m) {
  if (m["p"].node()) return true;
  const auto p = as_number(m["p"]);
  return p && as_double(*p) >= 0 && as_double(*p) <= 1;
}

bool integers(const Match& m) {
  const TensorMeta* x = m.tensor("x");
  return x && is_integral(x->dtype);
}

bool booleans(const Match& m) {
  const TensorMeta* x = m.tensor("x");
  return x && x->dtype == DType::Bool;
}

/// Only if x is row-major: then it can be viewed in any sizes. For other strides, the second view of x may be
/// impossible.
bool viewable(const Match& m) {
  const TensorMeta* x = m.tensor("x");
  return x && x->strides_known && x->strides == contiguous_strides(x->sizes);
}

/// A size of -1 would keep a size that the first expand may have made.
bool all_sizes_given(const Match& m) {
  const auto* sizes = m["r"].get<ArgList>();
  return sizes && std::ranges::none_of(sizes->items, [](const Arg& a) {
           const auto* size = a.get<std::int64_t>();
           return size && *size < 0;
         });
}

bool widened_and_back(const Match& m) {
  const TensorMeta* x = m.tensor("x");
  const auto *wide = m["w"].get<DType>(), *back = m["n"].get<DType>();
  return x && wide && back && *back == x->dtype && promote(x->dtype, *wide) == *wide &&
         is_floating(x->dtype) == is_floating(*wide) && is_complex(x->dtype) == is_complex(*wide);
}

/// Casts of gradients name layout and device too.
bool cast_and_back(const Match& m) {
  const TensorMeta *x = m.tensor("x"), *out = m.root->meta.tensor();
  const auto* layout = m["k"].get<Layout>();
  return widened_and_back(m) && out && out->device == x->device && (!layout || *layout == Layout::Strided);
}

bool batch_of_one(const Match& m) {
  for (const auto& [name, arg] : m.names) {
    const TensorMeta* t = m.tensor(name);
    if (!t || t->dim() != 3 || !t->sizes[0].is(1)) return false;
  }
  return true;
}

/// addmm takes a matrix or row that is no larger than the product and has its dtype. Integers and mixed dtypes stay
/// with add.
bool is_gemm_bias(const Match& m) {
  const TensorMeta *a = m.tensor("a"), *b = m.tensor("b"), *c = m.tensor("c"), *sum = m.root->meta.tensor();
  return a && b && c && sum->dim() == 2 && sum->sizes[0] == a->sizes[0] && sum->sizes[1] == b->sizes[1] &&
         is_floating(a->dtype) && c->dtype == a->dtype && b->dtype == a->dtype && c->dim() >= 1 && c->dim() <= 2;
}

constexpr unsigned PreGrad = 1U << static_cast<unsigned>(Stage::PreGradPasses);
constexpr unsigned Joint = 1U << static_cast<unsigned>(Stage::JointPasses);
constexpr unsigned PostGrad = 1U << static_cast<unsigned>(Stage::PostGradPasses);

constexpr Rewrite rows[] = {
#define REWRITE(name, stages, pattern, replacement, guard) {#name, stages, pattern, replacement, guard},
#include "core/passes/rewrites.def"
#undef REWRITE
};

std::vector<Rewrite> rows_of(unsigned stage) {
  std::vector<Rewrite> out;
  for (const Rewrite& r : rows)
    if ((r.stages & stage) != 0) out.push_back(r);
  return out;
}

}  // namespace

Result<bool> rewrite_pre_grad(Graph& graph, PassContext& context) {
  static const RewriteSet set(rows_of(PreGrad));
  return set.apply(graph, context);
}

Result<bool> rewrite_joint(Graph& graph, PassContext& context) {
  static const RewriteSet set(rows_of(Joint));
  return set.apply(graph, context);
}

Result<bool> rewrite_post_grad(Graph& graph, PassContext& context) {
  static const RewriteSet set(rows_of(PostGrad));
  return set.apply(graph, context);
}

}  // namespace partita
