// Losses by distance, angle and margin, composed of pointwise operators (native/Loss.cpp, native/Distance.cpp).
#include "core/ops/families/loss.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

Arg pairwise_distance(DecomposeCall& c) {
  const std::size_t rank = std::max(c.tensor("x1").dim(), c.tensor("x2").dim());
  const Arg difference = build_program(c, "x1 - x2 + eps");
  return c.build.call("aten.norm.ScalarOpt_dim",
                      {difference, c.arg("p"), Arg::list({static_cast<std::int64_t>(rank) - 1}), c.arg("keepdim")});
}

Arg cosine_similarity(DecomposeCall& c) {
  Builder& b = c.build;
  const Operand operands[] = {Operand::of(c.tensor("x1")), Operand::of(c.tensor("x2"))};
  const DType type = result_type(operands);
  if (!is_floating(type) && !is_complex(type)) fail("expected common dtype to be floating point");
  const SymList sizes[] = {c.tensor("x1").sizes, c.tensor("x2").sizes};
  const SymList common = broadcast(c, sizes);
  Node *x[2], *norm[2];
  for (int i : {0, 1}) {
    x[i] = to_dtype(b, c.arg(i == 0 ? "x1" : "x2"), type);
    if (b.tensor(x[i]).sizes != common) x[i] = b.call("aten.expand.default", {x[i], b.sizes(common)});
  }
  for (int i : {0, 1}) {
    norm[i] = b.call("aten.linalg_vector_norm.default", {x[i], 2, Arg::list({c.arg("dim")}), true});
    // PyTorch clamps the norm to eps without autograd, so the gradient is that of the norm: n - detach(n) is 0 and
    // carries it.
    norm[i] = b.expression("where(lt(n, eps), n - detach(n) + eps, n)", {{"n", norm[i]}, {"eps", c.arg("eps")}}).node();
  }
  Node* second = b.call("aten.div.Tensor", {x[1], norm[1]});
  Node* product = b.call("aten.mul.Tensor", {b.call("aten.div.Tensor", {x[0], norm[0]}), second});
  return b.call("aten.sum.dim_IntList", {product, Arg::list({c.arg("dim")})});
}

}  // namespace

void register_distance_losses(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.hinge_embedding_loss.default",
        {.program = "zeros = zeros_like(self); "
                    "far = clamp_min(full_like(self, margin) - self, 0); "
                    "reduced(where(ne(target, 1), far, zeros) + where(ne(target, -1), self, zeros), reduction)"});
  t.add("aten.margin_ranking_loss.default",
        {.program = "reduced(clamp_min(neg(target) * (input1 - input2) + margin, 0), reduction)"});
  t.add("aten.cosine_embedding_loss.default",
        {.program = "product = refuse('0D or 1D target tensor expected, multi-target not supported') if 1 < "
                    "dim(target) else sum(input1 * input2, [dim(target)]); "
                    "first = sum(input1 * input1, [dim(target)]) + 9.999999960041972e-13; "
                    "second = sum(input2 * input2, [dim(target)]) + 9.999999960041972e-13; "
                    "cosine = product / sqrt(first * second); "
                    "zeros = zeros_like(cosine); "
                    "less = full_like(cosine, 1) - cosine; "
                    "near = where(eq(target, 1), less, zeros); "
                    "reduced(near + where(eq(target, -1), clamp_min(cosine - margin, 0), zeros), reduction)"});
  t.add(
      "aten.poisson_nll_loss.default",
      {.program = "loss = exp(input) - target * input if log_input else input - target * log(input + eps); "
                  "stirling = target * log(target) - target + log(target * 6.283185307179586) * 0.5 if full else None; "
                  "reduced(loss + masked_fill(stirling, le(target, 1), 0) if full else loss, reduction)"});
  t.add("aten.pairwise_distance.default", {.decompose = pairwise_distance});
  t.add("aten.triplet_margin_loss.default",
        {.program = "near = pairwise_distance(anchor, positive, p, eps); "
                    "far = pairwise_distance(anchor, negative, p, eps); "
                    "far = minimum(far, pairwise_distance(positive, negative, p, eps)) if swap else far; "
                    "reduced(clamp_min(near + margin - far, 0), reduction)"});
  t.add("aten.cosine_similarity.default", {.decompose = cosine_similarity});
}

}  // namespace partita
