// PyTorch's functionalize_rng_ops: expands random calls by a table to rand_like, and makes each a philox_rand at the
// next offset, by one stream for the forward and one for what hangs on tangents.
#include "core/functionalize/functional_rng.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

Arg uniform(DecomposeCall& c, std::optional<DType> dtype = {}) {
  Kwargs kwargs;
  if (dtype) kwargs.emplace_back("dtype", *dtype);
  return c.build.call("aten.rand_like.default", {c.args[0]}, std::move(kwargs));
}

Arg dropout(DecomposeCall& c) {
  Builder& b = c.build;
  const Arg& input = c.arg("input");
  const double p = as_double(c.number("p"));
  if ((c.has("train") && !c.boolean("train")) || p == 0)
    return Arg::tuple(
        {b.call("aten.clone.default", {input}), b.call("aten.ones_like.default", {input}, {{"dtype", DType::Bool}})});
  if (p == 1)
    return Arg::tuple({b.call("aten.zeros_like.default", {input}),
                       b.call("aten.zeros_like.default", {input}, {{"dtype", DType::Bool}})});
  Node* mask = b.call("aten.gt.Scalar", {uniform(c), c.arg("p")});
  Node* kept = b.call("aten.mul.Tensor", {mask, input});
  return Arg::tuple({b.call("aten.mul.Tensor", {kept, 1 / (1 - p)}), mask});
}

Arg bernoulli(DecomposeCall& c) {
  Node* drawn = c.build.call("aten.lt.Scalar", {uniform(c, DType::Float32), c.arg("p")});
  return c.build.call("aten._to_copy.default", {drawn},
                      {{"dtype", c.tensor("self").dtype}, {"layout", Layout::Strided}});
}

double half_epsilon(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return 0x1p-53;
    case DType::Float32:
      return 0x1p-24;
    case DType::Float16:
      return 0x1p-11;
    case DType::BFloat16:
      return 0x1p-8;
    default:
      fail_unsupported("exponential numbers of " + std::string(torch_name(dtype)));
  }
}

Arg exponential(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  const double rate = as_double(c.number("lambd")), least = half_epsilon(self.dtype);
  if (!(rate > 0)) fail(fmt::format("exponential_ expects lambda > 0.0, but found lambda={}", rate));
  const Arg drawn = uniform(c);
  Node* is_one = b.call("aten.ge.Scalar", {drawn, 1 - least});
  Node* log = b.call("aten.log.default", {drawn});
  Node* almost_zero = b.call("aten.scalar_tensor.default", {-least},
                             {{"dtype", self.dtype}, {"layout", Layout::Strided}, {"device", self.device}});
  return b.call("aten.mul.Tensor", {b.call("aten.where.self", {is_one, almost_zero, log}), -1 / rate});
}

Arg cauchy(DecomposeCall& c) {
  Builder& b = c.build;
  Node* centred = b.call("aten.sub.Tensor", {uniform(c), 0.5});
  Node* tangent = b.call("aten.tan.default", {b.call("aten.mul.Tensor", {centred, std::numbers::pi})});
  return b.call("aten.add.Tensor", {b.call("aten.mul.Tensor", {tangent, c.arg("sigma")}), c.arg("median")});
}

Arg geometric(DecomposeCall& c) {
  Builder& b = c.build;
  const double p = as_double(c.number("p"));
  if (!(p > 0 && p < 1)) fail(fmt::format("geometric_ expects p to be in (0, 1), but got p={}", p));
  Node* log = b.call("aten.log1p.default", {b.call("aten.neg.default", {uniform(c)})});
  Node* whole = b.call("aten.floor.default", {b.call("aten.div.Tensor", {log, std::log1p(-p)})});
  return b.call("aten.add.Tensor", {whole, 1});
}

struct RngRow {
  std::string_view name;
  Arg (*decompose)(DecomposeCall&);
};
/// The functional overloads that PyTorch's table has. uniform and normal_functional are not among them.
constexpr RngRow rng_rows[] = {
    {"aten.native_dropout.default", dropout},  {"aten.bernoulli.p", bernoulli},
    {"aten.exponential.default", exponential}, {"aten.cauchy.default", cauchy},
    {"aten.geometric.default", geometric},
};

class Rewriter {
 public:
  Rewriter(Graph& graph, std::size_t forward_outputs) : graph_(graph), forward_outputs_(forward_outputs) {}

  Status run() {
    for (const auto& [target, child] : graph_.children) TRY_DO(refuse_draws(*child));
    const bool joint = graph_.form == GraphForm::Joint;
    add_inputs(joint);
    bool in_backward = false;
    for (Node* n = graph_.first(); n;) {
      in_backward |= hangs_on_tangent(*n);
      if (!n->op()->is_call() || n->op()->kind != OpKind::Torch) {
        n = n->next();
        continue;
      }
      Node* previous = n->previous();
      if (const auto* row = std::ranges::find(rng_rows, n->op()->name, &RngRow::name); row != std::end(rng_rows)) {
        TRY_DO(expand(*n, *row));
        n = previous ? previous->next() : graph_.first();
        continue;
      }
      Node* next = n->next();
      if (n->op()->name == "aten.rand.default" || n->op()->name == "aten.rand_like.default")
        TRY_DO(draw(*n, in_backward ? backward_ : forward_));
      n = next;
    }
    TRY_DO(follow_strides());
    add_outputs(joint);
    graph_.eliminate_dead(has_effect);  // what a call took that needs none any more: the sizes of an empty_like
    return {};
  }

 private:
  /// The numbers that one run of the forward or of the backward draws.
  struct Stream {
    Node *seed = nullptr, *base = nullptr;
    Node* relative = nullptr;  ///< how far the offset has moved; null before the first draw
  };

  static Status refuse_draws(const Graph& child) {
    for (const Node* n : child)
      if (n->op()->is_call() && draws(n->op()))
        return unsupported("functional_rng.region",
                           fmt::format("{} in sub graph {} draws random numbers, which cannot be functionalised there",
                                       n->op()->name, child.name),
                           place_of(*n));
    for (const auto& [target, inner] : child.children) TRY_DO(refuse_draws(*inner));
    return {};
  }

  void add_inputs(bool joint) {
    std::size_t count = 0;
    Node* first = graph_.first();
    for (; first && first->is_placeholder(); first = first->next()) ++count;
    const auto add = [&](std::string_view name) {
      const std::string plain = fmt::format("arg{}_1", count++);
      Node* made = graph_.placeholder(joint ? std::string(name) : plain,
                                      TensorMeta::contiguous(DType::Int64, {}, Device{}), first);
      made->target = made->name();
      return made;
    };
    forward_.seed = add("fwd_seed_1");
    forward_.base = add("fwd_base_offset_1");
    if (!joint) return;
    backward_.seed = add("bwd_seed_1");
    backward_.base = add("bwd_base_offset_1");
  }

  bool hangs_on_tangent(const Node& n) {
    bool hangs = n.is_placeholder() && n.name().starts_with("tangents_");
    for (const Node* input : n.inputs()) hangs |= on_tangents_.contains(input);
    if (hangs) on_tangents_.insert(&n);
    return hangs && !n.is_placeholder() && !n.is_output();
  }

  Status expand(Node& node, const RngRow& row) {
    Node* previous = node.previous();
    Builder build(graph_, &node, node.origin);
    const Schema* schema = find_schema(node.op());
    TRY(Args bound, bind_arguments(*schema, node.args(), node.kwargs()));
    DecomposeCall call(*schema, std::move(bound), build);
    const Arg value = row.decompose(call);
    for (Node* made = previous ? previous->next() : graph_.first(); made != &node; made = made->next())
      made->recompute = node.recompute;
    TRY_DO(replace_uses(node, value));
    graph_.erase(&node);
    return {};
  }

  Status draw(Node& node, Stream& stream) {
    Builder build(graph_, &node, node.origin);
    const TensorMeta meta = Builder::tensor(&node);
    const Arg sizes = node.op()->name == "aten.rand.default" ? node.args()[0] : build.sizes(meta.sizes);
    Node* offset = build.call("aten.add.Tensor", {stream.base, stream.relative ? Arg(stream.relative) : Arg(0)});
    Node* call = build.call("rngprims.philox_rand.default", {sizes, stream.seed, offset, {}, meta.device, meta.dtype});
    Node* numbers = build.getitem(call, 0);
    Node* moved = build.getitem(call, 1);
    stream.relative = stream.relative ? build.call("aten.add.Tensor", {stream.relative, moved})
                                      : build.call("aten.add.Tensor", {moved, 0});
    call->recompute = numbers->recompute = node.recompute;
    if (Builder::tensor(numbers).strides != meta.strides) moved_.insert(numbers);
    TRY_DO(replace_uses(node, numbers));
    graph_.erase(&node);
    return {};
  }

  /// philox_rand gives row-major tensors where rand_like follows its argument.
  Status follow_strides() {
    if (moved_.empty()) return {};
    for (Node* n : graph_) {
      const std::vector<Node*> inputs = n->inputs();
      if (!n->op()->is_call() || std::ranges::none_of(inputs, [&](const Node* in) { return moved_.contains(in); }))
        continue;
      TRY(Meta now, infer(*n));
      TensorMeta *then = n->meta.tensor(), *found = now.tensor();
      if (then && found) {
        if (then->strides == found->strides) continue;
        then->strides = found->strides;
      } else {
        n->meta = std::move(now);
      }
      moved_.insert(n);
    }
    return {};
  }

  /// PyTorch keeps offsets at multiples of 4.
  Arg new_offset(const Stream& stream) {
    if (!stream.relative) return stream.base;
    Builder build(graph_, graph_.output());
    Node* sum = build.call("aten.add.Tensor", {stream.base, stream.relative});
    Node* above = build.call("aten.add.Tensor", {sum, 3});
    Node* fours = build.call("aten.floor_divide.default", {above, 4});
    return build.call("aten.mul.Tensor", {fours, 4});
  }

  void add_outputs(bool joint) {
    std::vector<Arg> outputs = graph_.outputs();
    outputs.insert(outputs.begin() + static_cast<std::ptrdiff_t>(forward_outputs_), new_offset(forward_));
    if (joint) outputs.push_back(new_offset(backward_));
    graph_.set_output(joint ? Arg::list(std::move(outputs)) : Arg::tuple(std::move(outputs)));
  }

  Graph& graph_;
  std::size_t forward_outputs_;
  Stream forward_, backward_;
  std::unordered_set<const Node*> on_tangents_, moved_;
};

bool is_input_named(const Node& node, std::string_view seed, std::string_view offset) {
  return node.is_placeholder() && (node.name().starts_with(seed) || node.name().starts_with(offset));
}

}  // namespace

bool is_forward_seed(const Node& node) {
  return is_input_named(node, "fwd_seed", "fwd_base_offset");
}

bool is_backward_seed(const Node& node) {
  return is_input_named(node, "bwd_seed", "bwd_base_offset");
}

Status functionalize_random(Graph& graph, std::size_t forward_outputs) {
  return catch_raised<void>([&] { return Rewriter(graph, forward_outputs).run(); });
}

}  // namespace partita
