// Attention that is written out, softmax(scale * q k^T + masks) v, becomes one call, which keeps no scores in memory.
// As PyTorch's fuse_attention, but before autograd, so that the derivative is that of the whole; and steps are matched
// one by one, so that scales, masks and views may come in any order.
#include <algorithm>
#include <limits>
#include <span>

#include "core/ops/record/call.h"
#include "core/ops/record/layout.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace partita {
namespace {

/// Rows of a head that kernels for GPUs hold in shared memory.
constexpr std::int64_t most_width = 128;
constexpr double infinity = std::numeric_limits<double>::infinity();

const TensorMeta& meta_of(const Node& node) {
  return *node.meta.tensor();
}
/// All sizes but the last two.
SymList batch_of(const SymList& sizes) {
  return {sizes.begin(), sizes.end() - 2};
}
SymList matrices(SymList batch, const SymExpr& rows, const SymExpr& columns) {
  batch.insert(batch.end(), {rows, columns});
  return batch;
}

/// What is added to scores, which have `batch` before their last two sizes at that place: the value times the factor.
/// With `fill` the value is a mask, and that stands instead of all before it where the mask is `where`.
struct Term {
  SymList batch;
  Node* value = nullptr;
  double factor = 1;
  std::optional<double> fill = {};
  bool where = true;
};

/// scale * left right, then the terms in their order
struct Scores {
  Node *left = nullptr, *right = nullptr;  ///< [..., queries, width] and [..., width, keys]
  double scale = 1;
  std::vector<Term> terms;
};

/// The first of the patterns that matches.
std::optional<Match> first_of(std::span<const Pattern> patterns, Node& node) {
  for (const Pattern& p : patterns)
    if (auto m = p.of(node)) return m;
  return std::nullopt;
}
Node* tensor_in(const Match& m, std::string_view name) {
  Node* n = m[name].node();
  return n && n->meta.tensor() ? n : nullptr;
}
std::optional<double> number_in(const Match& m, std::string_view name) {
  const auto n = as_number(m[name]);
  return n && !std::holds_alternative<std::complex<double>>(*n) ? std::optional(as_double(*n)) : std::nullopt;
}

/// What the node shows with other batches, or in other memory: the same matrices, one after another.
Node* with_other_batch(Node& node) {
  static const Pattern patterns[] = {Pattern("view.default(x, s)"), Pattern("_unsafe_view(x, s)"),
                                     Pattern("expand(x, s)"), Pattern("clone(x)"), Pattern("clone(x, f)")};
  const auto m = first_of(patterns, node);
  Node* const x = m ? tensor_in(*m, "x") : nullptr;
  if (!x) return nullptr;
  const SymList &from = meta_of(*x).sizes, &to = meta_of(node).sizes;
  const bool same = from.size() >= 2 && to.size() >= 2 && meta_of(*x).numel() == meta_of(node).numel() &&
                    std::equal(from.end() - 2, from.end(), to.end() - 2);
  return same ? x : nullptr;
}

bool is_read_once(const Node* node) {
  return node && node->users().size() == 1;
}

/// Follows scores from `node`, which softmax reads times `factor`, up to their product. Other readers would need them
/// in memory.
bool find_scores(Node* node, double factor, Scores& found) {
  static const Pattern products[] = {Pattern("bmm(a, b)"), Pattern("mm(a, b)")};
  static const Pattern with_product("baddbmm(m, a, b, beta, alpha)"), sum("add(x, y)"), scaled("mul(x, c)"),
      divided("div(x, c)"), filled("masked_fill.Scalar(x, m, c)"), chosen("where.self(m, x, c)");
  static const Pattern constants[] = {Pattern("full(s, c, d, l, e, p)"), Pattern("scalar_tensor(c, d, l, e, p)")};
  if (!is_read_once(node) || !node->meta.tensor() || meta_of(*node).dim() < 2) return false;
  const SymList batch = batch_of(meta_of(*node).sizes);
  const auto product = [&](const Match& m, double scale) {
    found.left = tensor_in(m, "a"), found.right = tensor_in(m, "b");
    found.scale = scale;
    return true;
  };
  const auto fill = [&](const Match& m, std::optional<double> by, bool where) {
    // So much is left of a sum with a score as it is.
    constexpr double enough = -1e30;
    if (!by || factor <= 0 || *by * factor > enough || !tensor_in(m, "m")) return false;
    if (!find_scores(m["x"].node(), factor, found)) return false;
    found.terms.push_back({batch, tensor_in(m, "m"), 1, *by * factor, where});
    return true;
  };
  if (const auto m = first_of(products, *node)) return product(*m, factor);
  if (const auto m = with_product.of(*node)) {
    const auto beta = number_in(*m, "beta"), alpha = number_in(*m, "alpha");
    if (!beta || !alpha || !tensor_in(*m, "m")) return false;
    if (*beta != 0) found.terms.push_back({batch, tensor_in(*m, "m"), factor * *beta});
    return product(*m, factor * *alpha);
  }
  if (const auto m = scaled.of(*node))
    if (const auto c = number_in(*m, "c")) return find_scores((*m)["x"].node(), factor * *c, found);
  if (const auto m = divided.of(*node))
    if (const auto c = number_in(*m, "c"); c && *c != 0) return find_scores((*m)["x"].node(), factor / *c, found);
  if (const auto m = sum.of(*node)) {
    for (const auto& [scores, term] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
      Scores tried;
      Node *const s = tensor_in(*m, scores), *const t = tensor_in(*m, term);
      if (!s || !t || meta_of(*s).sizes != meta_of(*node).sizes || !find_scores(s, factor, tried)) continue;
      tried.terms.push_back({batch, t, factor});
      found = std::move(tried);
      return true;
    }
    return false;
  }
  if (const auto m = filled.of(*node)) return fill(*m, number_in(*m, "c"), true);
  if (const auto m = chosen.of(*node)) {
    Node* const c = tensor_in(*m, "c");
    const auto constant = c ? first_of(constants, *c) : std::nullopt;
    return constant && fill(*m, number_in(*constant, "c"), false);
  }
  Node* const same = with_other_batch(*node);
  return same && find_scores(same, factor, found);
}

/// Sizes of a term's batch, and the same matrices in another batch. Nullopt where it has other matrices.
struct Regrouped {
  SymList expanded, batch;
};
std::optional<Regrouped> regrouped(const SymList& term, const SymList& from, const SymList& to) {
  if (from == to) return Regrouped{term, term};
  const auto f = concrete(from), t = concrete(to), own = concrete(term);
  if (!f || !t || !own || std::ranges::count(*f, 0) + std::ranges::count(*t, 0) > 0) return std::nullopt;
  Regrouped out;
  // Sizes next to one another with equal products.
  for (std::size_t i = 0, j = 0; i < f->size() || j < t->size();) {
    const std::size_t begin = i, begin_to = j;
    std::int64_t of_from = 1, of_to = 1;
    do {
      if (i < f->size() && (of_from <= of_to || j == t->size()))
        of_from *= (*f)[i++];
      else if (j < t->size())
        of_to *= (*t)[j++];
      else
        return std::nullopt;
    } while (of_from != of_to);
    const bool repeats = std::all_of(own->begin() + static_cast<std::ptrdiff_t>(begin),
                                     own->begin() + static_cast<std::ptrdiff_t>(i), [](auto n) { return n == 1; });
    for (std::size_t k = begin; k < i; ++k) out.expanded.emplace_back(repeats ? 1 : (*f)[k]);
    for (std::size_t k = begin_to; k < j; ++k) out.batch.emplace_back(repeats ? 1 : (*t)[k]);
  }
  return out;
}

class Fuser {
 public:
  Fuser(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Result<bool> run() {
    bool changed = false;
    for (Node* node = graph_.first(); node;) {
      Node* const next = node->next();
      changed |= fuse(*node);
      node = next;
    }
    return changed;
  }

 private:
  /// Does the call weigh values by a softmax of scores? Then one call of attention takes its place.
  bool fuse(Node& root) {
    static const Pattern products[] = {Pattern("bmm(weights, values)"), Pattern("mm(weights, values)")};
    static const Pattern softmax[] = {Pattern("_softmax(x, d, False)"), Pattern("_safe_softmax(x, d)")};
    const auto m = first_of(products, root);
    if (!m || !root.meta.tensor() || !is_row_major(meta_of(root))) return false;
    Node *weights = tensor_in(*m, "weights"), *values = tensor_in(*m, "values");
    if (!weights || !values) return false;
    while (is_read_once(weights) && with_other_batch(*weights)) weights = with_other_batch(*weights);
    if (!is_read_once(weights)) return false;
    const bool safe = softmax[1].of(*weights).has_value();
    const auto of = first_of(softmax, *weights);
    const auto* dim = of ? (*of)["d"].get<std::int64_t>() : nullptr;
    const auto rank = static_cast<std::int64_t>(meta_of(*weights).dim());
    if (!dim || (*dim != -1 && *dim != rank - 1) || rank < 2) return false;
    Scores scores;
    if (!find_scores((*of)["x"].node(), 1, scores)) return false;
    return fits(root, *weights, scores, *values) && replace(root, *weights, scores, *values, safe);
  }

  /// Does attention's operator take them?
  static bool fits(const Node& root, const Node& weights, const Scores& s, Node& values) {
    const TensorMeta &left = meta_of(*s.left), &right = meta_of(*s.right), &v = meta_of(values);
    const SymExpr width = left.sizes.back();
    const DType dtype = meta_of(root).dtype;
    if (!width.is_int() || width.as_int() > most_width || width.is(0) || v.sizes.back() != width) return false;
    if (dtype != DType::Float32 && dtype != DType::Float64) return false;
    const auto differs = [&](const TensorMeta& t) { return t.dtype != dtype; };
    if (differs(left) || differs(right) || differs(v) || differs(meta_of(weights)) || left.sizes[0].is(0)) return false;
    if (v.sizes[v.dim() - 2].is(0) || left.sizes[left.dim() - 2].is(0)) return false;
    // Its mask has no gradient. What is computed in a region without gradients stays there.
    const bool gradients = requires_gradient(s.left) || requires_gradient(s.right) || requires_gradient(&values);
    for (const Term& term : s.terms) {
      const TensorMeta& t = meta_of(*term.value);
      if (t.requires_grad || (term.fill ? t.dtype != DType::Bool : t.dtype != dtype)) return false;
    }
    return gradients == meta_of(root).requires_grad;
  }

  /// Of the matrices, or of what matrices_of() may find in their place.
  static bool requires_gradient(Node* operand) {
    for (; operand; operand = with_other_batch(*operand))
      if (meta_of(*operand).requires_grad) return true;
    return false;
  }

  bool replace(Node& root, const Node& weights, const Scores& s, Node& values, bool safe) {
    const SymList& sizes = meta_of(weights).sizes;
    const SymExpr queries = sizes[sizes.size() - 2], keys = sizes.back(), width = meta_of(values).sizes.back();
    SymList batch = batch_of(sizes);
    while (batch.size() < 2) batch.insert(batch.begin(), 1);
    while (batch.size() > 2) {
      batch[1] = batch[0] * batch[1];
      batch.erase(batch.begin());
    }
    std::vector<Regrouped> groups;
    for (const Term& term : s.terms) {
      SymList own = meta_of(*term.value).sizes;
      if (own.size() > term.batch.size() + 2) return false;
      own.insert(own.begin(), term.batch.size() + 2 - own.size(), 1);
      auto group = regrouped(batch_of(own), term.batch, batch);
      if (!group) return false;
      groups.push_back(*std::move(group));
    }
    if (!context_.may_rewrite("attention", root)) return false;

    Builder b(graph_, &root, root.origin);
    Node* const query = matrices_of(b, *s.left, matrices(batch, queries, width));
    Node* const key = b.call("aten.transpose.int", {matrices_of(b, *s.right, matrices(batch, width, keys)), -2, -1});
    Node* const value = matrices_of(b, values, matrices(batch, keys, width));
    Node* bias = nullptr;
    for (std::size_t i = 0; i < s.terms.size(); ++i) bias = with_term(b, bias, s.terms[i], groups[i], meta_of(root));
    Node* const attention =
        b.call("aten._scaled_dot_product_flash_attention_for_cpu.default", {query, key, value, 0.0, false},
               {{"attn_mask", bias ? Arg(bias) : Arg()}, {"scale", s.scale}});
    Node* result = b.getitem(attention, 0);
    if (!safe) {
      // The operator gives zeros where all scores are -inf, a softmax NaN.
      Node* const nothing = b.call("aten.eq.Scalar", {b.getitem(attention, 1), -infinity});
      result = b.call("aten.masked_fill.Scalar", {result, b.call("aten.unsqueeze.default", {nothing, -1}),
                                                  std::numeric_limits<double>::quiet_NaN()});
    }
    if (!is_row_major(meta_of(*result)))
      result = b.call("aten.clone.default", {result}, {{"memory_format", MemoryFormat::Contiguous}});
    if (meta_of(*result).sizes != meta_of(root).sizes)
      result = b.call("aten.view.default", {result, b.sizes(meta_of(root).sizes)});
    root.replace_all_uses_with(result);
    graph_.erase(&root);
    return true;
  }

  /// The operand's matrices in the batch that `sizes` have: as they were before views and copies, if that is possible.
  static Node* matrices_of(Builder& b, Node& operand, const SymList& sizes) {
    Node* found = nullptr;
    for (Node* at = &operand; at; at = with_other_batch(*at))
      if (meta_of(*at).sizes == sizes) found = at;
    return found ? found : b.call("aten.view.default", {&operand, b.sizes(sizes)});
  }

  /// What is added to the scores of four dimensions, so far `bias`, with one more term.
  static Node* with_term(Builder& b, Node* bias, const Term& term, const Regrouped& group, const TensorMeta& result) {
    Node* x = term.value;
    if (term.factor != 1) x = b.call("aten.mul.Scalar", {x, term.factor});
    x = in_batch(b, x, term, group);
    if (!term.fill) return bias ? b.call("aten.add.Tensor", {bias, x}) : x;
    const Arg before = bias ? Arg(bias) : Arg(0.0);
    Node* const fill =
        b.call("aten.scalar_tensor.default", {*term.fill}, {{"dtype", result.dtype}, {"device", result.device}});
    const Arg yes = term.where ? Arg(fill) : before, no = term.where ? before : Arg(fill);
    return b.call(bias         ? "aten.where.self"
                  : term.where ? "aten.where.ScalarOther"
                               : "aten.where.ScalarSelf",
                  {x, yes, no});
  }
  static Node* in_batch(Builder& b, Node* x, const Term& term, const Regrouped& group) {
    SymList own = meta_of(*x).sizes;
    own.insert(own.begin(), term.batch.size() + 2 - own.size(), 1);
    const SymExpr rows = own[own.size() - 2], columns = own.back();
    const SymList expanded = matrices(group.expanded, rows, columns), sizes = matrices(group.batch, rows, columns);
    if (own != expanded) x = b.call("aten.expand.default", {x, b.sizes(expanded)});
    if (meta_of(*x).sizes == sizes) return x;
    if (!is_row_major(meta_of(*x)))
      x = b.call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
    return b.call("aten.view.default", {x, b.sizes(sizes)});
  }

  Graph& graph_;
  PassContext& context_;
};

}  // namespace

Result<bool> fuse_attention(Graph& graph, PassContext& context) {
  return Fuser(graph, context).run();
}

}  // namespace partita
