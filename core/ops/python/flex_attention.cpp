// flex_attention and its backward as matrix products and a softmax (sdpa_dense in PyTorch). The sub graphs score_mod
// and mask_mod are copied into the graph and applied to all scores at once.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "core/ir/replace_uses.h"
#include "core/ops/facts/autocast.h"
#include "core/ops/record/composite_call.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/resolve.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

constexpr std::string_view forward_name = "higher_order.flex_attention",
                           backward_name = "higher_order.flex_attention_backward";

/// Is the call, which a sub graph makes on numbers, right on whole tensors too, element by element?
bool goes_by_elements(const Node& call) {
  const OpRecord* record = find_record(call.op());
  const Schema* schema = find_schema(call.op());
  const TensorMeta* result = call.meta.tensor();
  if (!record || !schema || !result || record->random || schema->nondeterministic_seeded) return false;
  if (record->pointwise.body) return true;
  std::vector<const TensorMeta*> tensors;
  for (const Node* input : call.inputs())
    if (const TensorMeta* t = input->meta.tensor()) tensors.push_back(t);
  const auto takes = [&](std::string_view name) {
    return std::ranges::any_of(schema->args, [&](const SchemaArg& a) { return a.name.starts_with(name); });
  };
  if (tensors.empty() || takes("size")) return result->sizes.empty();
  if (call.is(Op::torch("aten.index.Tensor"))) {
    // One index for each dimension of what is looked up.
    const auto* indices = call.args()[1].get<ArgList>();
    return indices && indices->items.size() == tensors[0]->sizes.size() &&
           std::ranges::all_of(indices->items, [](const Arg& i) { return i.node() != nullptr; });
  }
  return tensors.size() == 1 && tensors[0]->sizes == result->sizes && !takes("dim");
}

/// A call of flex_attention or of its backward, by the names of torch/_higher_order_ops/flex_attention.py.
struct FlexCall {
  Builder& b;
  const Node& node;
  Args args;
  std::size_t mods;  ///< position of the first sub graph's argument

  Arg query() const { return args[0]; }
  Arg scale() const { return args[args.size() - 4]; }
  Arg mask_mod() const { return block_mask().back(); }
  std::vector<Arg> block_mask() const { return list(args.size() - 5); }
  std::vector<Arg> score_buffers() const { return list(args.size() - 2); }
  std::vector<Arg> mask_buffers() const { return list(args.size() - 1); }

  std::vector<Arg> list(std::size_t i) const {
    const auto* found = args[i].get<ArgList>();
    if (!found || (i == args.size() - 5 && found->items.empty())) fail(node.op()->name + " without its lists");
    return found->items;
  }

  /// The number of batch, head, query and key of each score, as tensors that broadcast to the scores.
  std::vector<Arg> positions(const TensorMeta& scores) const {
    std::vector<Arg> out;
    for (std::size_t d = 0; d < 4; ++d) {
      SymList sizes(4, 1);
      sizes[d] = scores.sizes[d];
      Node* const along = b.call("aten.arange.default", {b.size(scores.sizes[d])}, {{"device", scores.device}});
      out.emplace_back(b.call("aten.view.default", {along, b.sizes(sizes)}));
    }
    return out;
  }

  /// The results of a sub graph that computes one score, for all of them at once (_vmap_for_bhqkv).
  Arg of_all(const Arg& mod, std::vector<Arg> operands, const std::vector<Arg>& buffers) const {
    const Node* attribute = mod.node();
    const Graph* body = attribute && attribute->is(Op::get_attr()) ? b.graph.child(attribute->target) : nullptr;
    if (!body) fail_unsupported(fmt::format("{} whose sub graph is not in the file", node.op()->name));
    for (const Node* n : *body)
      if (const TensorMeta* t = n->meta.tensor(); t && n->op()->is_call() && !t->sizes.empty())
        fail_unsupported(
            fmt::format("{} whose {} computes {}, which is no number", node.op()->name, attribute->target, n->name()));
    operands.insert(operands.end(), buffers.begin(), buffers.end());
    Node* previous = b.before->previous();
    // A node reads the results, so that those which are resolved are replaced there.
    const Arg copied = unwrap(copy_body(node, *body, operands, b.before));
    Node* const reader = b.graph.create(Op::get(OpKind::Function, "builtins.tuple"), {copied}, {}, {}, b.before);
    for (Node* n = previous->next(); n != reader; n = previous->next()) {
      n->origin = b.origin;
      if (n->op()->kind == OpKind::Function || n->op()->kind == OpKind::Method) {
        unwrap(replace_uses(*n, unwrap(resolve(*n))));
        b.graph.erase(n);
        continue;
      }
      if (n->op()->is_call()) {
        n->meta = unwrap(infer(*n));
        if (!goes_by_elements(*n) && is_composite(n->op())) {
          unwrap(replace_uses(*n, unwrap(decompose(*n))));
          b.graph.erase(n);
          continue;
        }
        if (!goes_by_elements(*n))
          fail_unsupported(fmt::format("{} whose {} calls {}", node.op()->name, attribute->target, n->op()->name));
      }
      previous = n;
    }
    const Arg results = reader->args()[0];
    b.graph.erase(reader);
    return results;
  }

  Arg program(std::string_view text, std::vector<std::pair<std::string, Arg>> names) const {
    names.emplace_back("query", query());
    names.emplace_back("scale", scale());
    return build_program(b, text, std::move(names));
  }

  /// Keys or values for each head and batch of the queries.
  Arg for_all_heads(const Arg& given) const {
    const TensorMeta& q = b.tensor(query());
    const TensorMeta& own = b.tensor(given);
    if (q.sizes.size() != 4 || own.sizes.size() != 4) fail(node.op()->name + " takes tensors of 4 dimensions");
    const SymExpr groups = sym_floordiv(q.sizes[1], own.sizes[1]);
    Arg out = given;
    if (!groups.is(1)) out = b.call("aten.repeat_interleave.self_int", {out, b.size(groups), 1});
    SymList sizes = b.tensor(out).sizes;
    sizes[0] = q.sizes[0];
    return sizes == b.tensor(out).sizes ? out : Arg(b.call("aten.expand.default", {out, b.sizes(sizes)}));
  }

  /// _permute_strides: a contiguous value in the order of memory of another.
  Arg laid_out_as(const Arg& value, const Arg& like) const {
    const TensorMeta& t = b.tensor(like);
    const auto less = [&](std::int64_t x, std::int64_t y) {
      const auto stride = [&](std::int64_t d) { return t.strides[static_cast<std::size_t>(d)]; };
      return unwrap(b.graph.shapes->evaluate(sym_lt(stride(x), stride(y)), "order of strides of flex_attention"));
    };
    std::vector<std::int64_t> order(t.strides.size());  // outermost first
    std::iota(order.begin(), order.end(), 0);
    const std::int64_t last = order.back();
    std::ranges::stable_sort(order, less);
    std::ranges::reverse(order);
    // Kernels need the last dimension innermost.
    std::erase(order, last);
    order.push_back(last);
    if (std::ranges::is_sorted(order)) return value;
    std::vector<Arg> there, back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      there.emplace_back(order[i]);
      back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    }
    return program("permute(contiguous(permute(x, there)), back)",
                   {{"x", value}, {"there", Arg::list(there)}, {"back", Arg::list(back)}});
  }
};

/// _math_attention_inner: which scores count, what they were before score_mod, and after it and the mask.
struct Scores {
  std::vector<Arg> at;  ///< positions
  Arg mask, plain, kept;
};
Scores scores_of(const FlexCall& c, const Arg& key) {
  Scores s;
  const Arg working = c.b.tensor(c.query()).dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  s.plain = c.program("matmul(to(query, working), transpose(to(key, working), -2, -1)) * scale",
                      {{"key", key}, {"working", working}});
  s.at = c.positions(c.b.tensor(s.plain));
  std::vector<Arg> operands = {s.plain};
  operands.insert(operands.end(), s.at.begin(), s.at.end());
  s.mask = c.of_all(c.mask_mod(), s.at, c.mask_buffers());
  const Arg modified = c.of_all(c.args[c.mods], operands, c.score_buffers());
  s.kept = c.program("where(mask, modified, low)", {{"mask", s.mask}, {"modified", modified}, {"low", -HUGE_VAL}});
  return s;
}

/// sdpa_dense
Arg forward(const FlexCall& c) {
  const Scores s = scores_of(c, c.for_all_heads(c.args[1]));
  const Arg out = c.program("matmul(to(_safe_softmax(kept, -1), dtype(query)), to(value, dtype(query)))",
                            {{"kept", s.kept}, {"value", c.for_all_heads(c.args[2])}});
  const Arg sums = c.program("where(all(eq(kept, low), -1), low, logsumexp(kept, [-1])) / log_2",
                             {{"kept", s.kept}, {"low", -HUGE_VAL}, {"log_2", std::numbers::ln2}});
  const Arg most = c.program("max(kept, -1)[0] / log_2", {{"kept", s.kept}, {"log_2", std::numbers::ln2}});
  return Arg::tuple({c.laid_out_as(out, c.query()), sums, most});
}

/// sdpa_dense_backward
Arg backward(const FlexCall& c) {
  const Arg &key = c.args[1], &value = c.args[2], &out = c.args[3], &grad_out = c.args[5];
  const Arg all_keys = c.for_all_heads(key);
  const Scores s = scores_of(c, all_keys);
  Arg grad_sums = 0.0;
  if (!c.args[6].is_none())
    grad_sums = c.program("unsqueeze(g / log_2, -1)", {{"g", c.args[6]}, {"log_2", std::numbers::ln2}});
  const Arg p =
      c.program("sums = unsqueeze(logsumexp * log_2, -1); where(eq(sums, low), 0, exp(kept - sums))",
                {{"logsumexp", c.args[4]}, {"kept", s.kept}, {"low", -HUGE_VAL}, {"log_2", std::numbers::ln2}});
  const Arg grad_score = c.program(
      "g = to(grad, dtype(p)); p * (matmul(g, transpose(to(value, dtype(p)), -2, -1)) - "
      "sum(to(out, dtype(p)) * g, [-1], True) + grad_sums)",
      {{"p", p}, {"grad", grad_out}, {"value", c.for_all_heads(value)}, {"out", out}, {"grad_sums", grad_sums}});
  std::vector<Arg> operands = {s.plain};
  operands.insert(operands.end(), s.at.begin(), s.at.end());
  operands.push_back(grad_score);
  const Arg results = c.of_all(c.args[c.mods + 1], operands, c.score_buffers());
  const auto* list = results.get<ArgList>();
  const auto has = [](const Arg& a) { return !a.is_none(); };
  if (!list || list->items.empty() || !has(list->items[0])) fail(c.node.op()->name + " without a gradient of scores");
  if (std::any_of(list->items.begin() + 1, list->items.end(), has))
    fail_unsupported(c.node.op()->name + " with gradients of what score_mod reads");
  const Arg g = c.program("where(mask, to(g * scale, dtype(query)), 0)", {{"mask", s.mask}, {"g", list->items[0]}});
  // Heads and batches that share keys and values add up.
  const auto summed = [&](Arg grad, const Arg& own) {
    const TensorMeta &all = c.b.tensor(grad), &t = c.b.tensor(own);
    const bool heads = all.sizes[1] != t.sizes[1], batches = all.sizes[0] != t.sizes[0];
    SymList grouped = {all.sizes[0], t.sizes[1], sym_floordiv(all.sizes[1], t.sizes[1]), all.sizes[2], all.sizes[3]};
    if (heads) grad = c.program("sum(view(x, sizes), [2])", {{"x", grad}, {"sizes", c.b.sizes(grouped)}});
    if (batches) grad = c.program("sum(x, [0], True)", {{"x", grad}});
    return c.laid_out_as(grad, own);
  };
  const Arg grad_query = c.program("matmul(g, key)", {{"g", g}, {"key", all_keys}});
  const Arg grad_key = c.program("matmul(transpose(g, -2, -1), query)", {{"g", g}});
  const Arg grad_value =
      c.program("matmul(transpose(to(p, dtype(query)), -2, -1), grad)", {{"p", p}, {"grad", grad_out}});
  return Arg::tuple({c.laid_out_as(grad_query, c.query()), summed(grad_key, key), summed(grad_value, value),
                     Arg::tuple(std::vector<Arg>(c.score_buffers().size()))});
}

}  // namespace

bool is_flex_attention(const Op* op) {
  return op->name == forward_name || op->name == backward_name;
}

Arg flex_attention(Builder& build, const Node& call) {
  const bool forwards = call.op()->name == forward_name;
  const FlexCall c{build, call, call.args(), forwards ? 3u : 7u};
  if (c.args.size() != c.mods + (forwards ? 6 : 7) || !call.kwargs().empty())
    fail(fmt::format("{} takes {} arguments", call.op()->name, c.mods + (forwards ? 6 : 7)));
  return forwards ? forward(c) : backward(c);
}

}  // namespace partita
