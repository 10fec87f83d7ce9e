// Products of matrices, written as einsum is (_matrix_ops.py, gen_single_dim_einsum_strategies), and rows of a table
// (_embedding_ops.py).
#include <algorithm>
#include <set>

#include "core/dtensor/rules.h"

namespace partita {
namespace {

struct Equation {
  std::string_view left, right, out;
};
constexpr Equation of_matrices{"mk", "kn", "mn"}, of_batches{"bmk", "bkn", "bmn"};

/// The placement of an addend that is broadcast to the product.
Placement of_addend(const Placement& out, const TensorMeta& addend, std::size_t rank) {
  if (!out.is_shard()) return out;
  const int missing = static_cast<int>(rank) - static_cast<int>(addend.dim());
  const int d = out.dim - missing;
  if (d < 0 || addend.sizes[static_cast<std::size_t>(d)].is(1)) return {};
  return Placement::shard(d);
}

std::vector<Rule> products(const PlacedCall& call, const Equation& e, bool addend) {
  std::vector<Rule> rules;
  const auto add = [&](Placement out, Placement left, Placement right, bool shards) {
    Rule rule{{out}, {}, shards};
    if (addend) rule.inputs.push_back(of_addend(out, call.inputs.at(0).whole, e.out.size()));
    rule.inputs.push_back(std::move(left));
    rule.inputs.push_back(std::move(right));
    rules.push_back(std::move(rule));
  };
  const auto in = [](std::string_view dims, char c) {
    const std::size_t at = dims.find(c);
    return at == dims.npos ? Placement() : Placement::shard(static_cast<int>(at));
  };
  std::set<char> names(e.left.begin(), e.left.end());
  names.insert(e.right.begin(), e.right.end());
  enum { Batch, Contracted, Left, Right };
  const auto kind = [&](char c) {
    if (e.out.find(c) == e.out.npos) return Contracted;
    const bool left = e.left.find(c) != e.left.npos, right = e.right.find(c) != e.right.npos;
    return left && right ? Batch : left ? Left : Right;
  };
  for (const auto wanted : {Batch, Contracted, Left, Right})
    for (const char c : names)
      if (kind(c) == wanted)
        add(wanted == Contracted ? Placement::partial("sum") : in(e.out, c), in(e.left, c), in(e.right, c), true);
  for (const char* reduce : {"sum", "avg"}) {
    const Placement partial = Placement::partial(reduce);
    add(partial, partial, {}, false);
    add(partial, {}, partial, false);
  }
  return rules;
}

template <const Equation& equation, bool addend>
std::vector<Rule> products_of(const PlacedCall& c) {
  return products(c, equation, addend);
}

std::vector<Rule> embedding(const PlacedCall& c) {
  const int rank = static_cast<int>(c.inputs.at(1).whole.dim());
  const Placement masked = Placement::partial(masked_rows);
  std::vector<Rule> rules = {{{Placement::shard(rank)}, {Placement::shard(1), {}}},
                             {{masked}, {Placement::shard(0), masked}}};
  for (int d = 0; d < rank; ++d) rules.push_back({{Placement::shard(d)}, {{}, Placement::shard(d)}});
  return rules;
}

/// Where rows are sharded: those that the rank has, and zeros for others.
Node* own_rows(Builder& build, const PlacedCall& c, const PlacedPlan& plan, const Args& bound) {
  const Placements& out = plan.outputs.at(0);
  const auto masked = [](const Placement& p) { return p.reduce == masked_rows; };
  const auto dim = std::ranges::find_if(out, masked);
  if (dim == out.end()) return nullptr;
  if (std::ranges::count_if(out, masked) > 1) fail_unsupported("an embedding whose rows two mesh dimensions shard");
  const auto m = static_cast<std::size_t>(dim - out.begin());
  const Part own = part_of(c.inputs[0].whole.sizes[0].as_int(), c.mesh.sizes[m], c.mesh.coordinate(m));
  const Arg &weight = bound[0], &indices = bound[1];
  const Arg other = build.expression("bitwise_or(lt(i, begin), ge(i, end))",
                                     {{"i", indices}, {"begin", own.begin}, {"end", own.begin + own.size}});
  const Arg place =
      build.expression("masked_fill(i - begin, other, 0)", {{"i", indices}, {"begin", own.begin}, {"other", other}});
  const Arg found = build.call("aten.embedding.default", {weight, place});
  return build.expression("masked_fill(x, unsqueeze(other, -1), 0)", {{"x", found}, {"other", other}}).node();
}

std::vector<Rule> embedding_backward(const PlacedCall& c) {
  const int rank = static_cast<int>(c.inputs.at(1).whole.dim());
  const Placement sum = Placement::partial("sum");
  std::vector<Rule> rules = {{{Placement::shard(1)}, {Placement::shard(rank), {}}}};
  for (int d = 0; d < rank; ++d) rules.push_back({{sum}, {Placement::shard(d), Placement::shard(d)}});
  rules.push_back({{sum}, {sum, {}}});
  return rules;
}

}  // namespace

const std::vector<RuleRow>& matmul_rules() {
  static const std::vector<RuleRow> rows = {
      {"aten.mm.default", {.list = products_of<of_matrices, false>}},
      {"aten.bmm.default", {.list = products_of<of_batches, false>}},
      {"aten.addmm.default", {.list = products_of<of_matrices, true>}},
      {"aten.baddbmm.default", {.list = products_of<of_batches, true>}},
      {"aten.embedding.default", {.list = embedding, .build = own_rows}},
      {"aten.embedding_dense_backward.default", {.list = embedding_backward}},
  };
  return rows;
}

}  // namespace partita
