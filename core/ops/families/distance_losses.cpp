// Losses by distance, angle and margin, composed of pointwise operators (native/Loss.cpp, native/Distance.cpp).
#include <numbers>

#include "core/ops/families/loss.h"
#include "core/ops/gradients.h"
#include "core/ops/promote.h"

namespace partita {
namespace {

/// Evaluates a formula over the call's arguments, which have their schema names, and the values in `names`.
Node* formula(DecomposeCall& c, const char* text, std::vector<std::pair<std::string, Arg>> names = {}) {
  for (std::size_t i = 0; i < c.args.size(); ++i) names.emplace_back(c.schema.args[i].name, c.args[i]);
  return c.build.expression(text, names).node();
}

/// number - like, as PyTorch computes it: it fills a tensor with the number and subtracts.
Node* number_less(DecomposeCall& c, const Arg& number, Node* like) {
  Node* filled = c.build.call("aten.full_like.default", {like, number});
  return c.build.call("aten.sub.Tensor", {filled, like});
}

Arg hinge_embedding(DecomposeCall& c) {
  Node* zeros = formula(c, "zeros_like(self)");
  Node* margin = formula(c, "clamp_min(x, 0)", {{"x", number_less(c, c.arg("margin"), tensor_node(c, "self"))}});
  Node* other = formula(c, "where(ne(target, 1), m, z)", {{"m", margin}, {"z", zeros}});
  Node* same = formula(c, "where(ne(target, -1), self, z)", {{"z", zeros}});
  return reduced(c, c.build.call("aten.add.Tensor", {other, same}));
}

Arg margin_ranking(DecomposeCall& c) {
  return reduced(c, formula(c, "clamp_min(neg(target) * (input1 - input2) + margin, 0)"));
}

Arg cosine_embedding(DecomposeCall& c) {
  const std::size_t rank = c.tensor("target").dim();
  if (rank > 1) fail("0D or 1D target tensor expected, multi-target not supported");
  Arg dim = Arg::list({static_cast<std::int64_t>(rank)});
  auto dot = [&](const char* a, const char* b) {
    return formula(c, "sum(x * y, dim)", {{"x", c.arg(a)}, {"y", c.arg(b)}, {"dim", dim}});
  };
  constexpr double epsilon = 1e-12F;  // a float constant in PyTorch
  Node* product = dot("input1", "input2");
  Node* first = c.build.call("aten.add.Scalar", {dot("input1", "input1"), epsilon});
  Node* second = c.build.call("aten.add.Scalar", {dot("input2", "input2"), epsilon});
  Node* cosine = formula(c, "p / sqrt(a * b)", {{"p", product}, {"a", first}, {"b", second}});
  Node* zeros = c.build.call("aten.zeros_like.default", {cosine});
  Node* near = formula(c, "where(eq(target, 1), x, z)", {{"x", number_less(c, 1, cosine)}, {"z", zeros}});
  Node* far = formula(c, "where(eq(target, -1), clamp_min(x - margin, 0), z)", {{"x", cosine}, {"z", zeros}});
  return reduced(c, c.build.call("aten.add.Tensor", {near, far}));
}

Arg poisson_nll(DecomposeCall& c) {
  Node* loss = formula(c, c.boolean("log_input") ? "exp(input) - target * input" : "input - target * log(input + eps)");
  if (c.boolean("full")) {
    Node* stirling =
        formula(c, "target * log(target) - target + log(target * two_pi) * 0.5", {{"two_pi", 2 * std::numbers::pi}});
    loss = formula(c, "loss + masked_fill(stirling, le(target, 1), 0)", {{"loss", loss}, {"stirling", stirling}});
  }
  return reduced(c, loss);
}

Arg pairwise_distance(DecomposeCall& c) {
  const std::size_t rank = std::max(c.tensor("x1").dim(), c.tensor("x2").dim());
  Node* difference = formula(c, "x1 - x2 + eps");
  return c.build.call("aten.norm.ScalarOpt_dim",
                      {difference, c.arg("p"), Arg::list({static_cast<std::int64_t>(rank) - 1}), c.arg("keepdim")});
}

Arg triplet_margin(DecomposeCall& c) {
  auto distance = [&](const char* a, const char* b) {
    return c.build.call("aten.pairwise_distance.default", {c.arg(a), c.arg(b), c.arg("p"), c.arg("eps")});
  };
  Node* positive = distance("anchor", "positive");
  Node* negative = distance("anchor", "negative");
  if (c.boolean("swap")) negative = c.build.call("aten.minimum.default", {negative, distance("positive", "negative")});
  return reduced(c, formula(c, "clamp_min(p + margin - n, 0)", {{"p", positive}, {"n", negative}}));
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
    x[i] = tensor_node(c, i == 0 ? "x1" : "x2");
    if (b.tensor(x[i]).dtype != type) x[i] = b.call("aten._to_copy.default", {x[i]}, {{"dtype", type}});
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
  t.add("aten.hinge_embedding_loss.default", {.decompose = hinge_embedding});
  t.add("aten.margin_ranking_loss.default", {.decompose = margin_ranking});
  t.add("aten.cosine_embedding_loss.default", {.decompose = cosine_embedding});
  t.add("aten.poisson_nll_loss.default", {.decompose = poisson_nll});
  t.add("aten.pairwise_distance.default", {.decompose = pairwise_distance});
  t.add("aten.triplet_margin_loss.default", {.decompose = triplet_margin});
  t.add("aten.cosine_similarity.default", {.decompose = cosine_similarity});
}

}  // namespace partita
