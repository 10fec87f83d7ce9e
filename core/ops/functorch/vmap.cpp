// Replaces the calls inside a vmap by calls with the batch dimension in front: composites are decomposed, then the
// rules of vmap_rules.cpp are tried, and a map over the batch does the rest.
#include "core/ops/functorch/vmap.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/composite_call.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/functional_variant.h"

namespace partita {
namespace {

Diagnostic refused_in_vmap(const Node& node, std::string_view why) {
  return unsupported("ops.vmap", fmt::format("{} in a vmap {}", node.op()->name, why), place_of(node));
}

Diagnostic bad(const Node& node, std::string_view why) {
  return input_error("ops.vmap", fmt::format("{} {}", node.op()->name, why), place_of(node));
}

/// A dimension as the call has it, wrapped.
Result<std::size_t> dim_of(const Node& call, std::size_t argument, std::size_t rank) {
  const auto* dim = argument < call.args().size() ? call.args()[argument].get<std::int64_t>() : nullptr;
  const auto wrapped = dim && *dim < 0 ? *dim + static_cast<std::int64_t>(rank) : dim ? *dim : -1;
  if (wrapped < 0 || wrapped >= static_cast<std::int64_t>(rank))
    return bad(call, fmt::format("has no dimension of its tensor's {} as argument {}", rank, argument));
  return static_cast<std::size_t>(wrapped);
}

Arg moved(Builder& build, const Arg& tensor, std::size_t from, std::size_t to) {
  if (from == to) return tensor;
  std::vector<Arg> order;
  for (std::size_t d = 0; d < BatchedCall::rank(tensor); ++d)
    if (d != from) order.emplace_back(static_cast<std::int64_t>(d));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), Arg(static_cast<std::int64_t>(from)));
  return build.call("aten.permute.default", {tensor, Arg::list(std::move(order))});
}

class Batch {
 public:
  Batch(Node* begin, Node* end) : graph_(end->graph()), begin_(begin), end_(end) {}

  Result<Node*> replace() {
    if (begin_->args().empty()) return bad(*begin_, "has no size of the batch");
    size_ = begin_->args()[0];
    Node* const before = begin_->previous();
    for (Node *node = begin_->next(), *next = nullptr; node != end_; node = next) {
      next = node->next();
      if (!node->op()->is_call()) continue;
      TRY(next, take(node));
    }
    for (Node* node = end_->previous(); node != begin_;) {
      Node* const previous = node->previous();
      const Functorch kind = functorch_call(node->op());
      if (batched_.contains(node) || kind == Functorch::AddBatch || kind == Functorch::RemoveBatch) {
        if (!node->users().empty()) return bad(*node->users().front(), "reads a value of a vmap that has ended");
        graph_.erase(node);
      }
      node = previous;
    }
    for (Node* node : {begin_, end_})
      if (!node->users().empty()) return bad(*node->users().front(), "reads the level of a vmap");
    Node* const after = end_->next();
    graph_.erase(begin_);
    graph_.erase(end_);
    Node* const first = before ? before->next() : graph_.first();
    return first ? first : after;
  }

 private:
  /// Returns the node to go on with.
  Result<Node*> take(Node* node) {
    Builder build(graph_, node, node->origin);
    const Functorch kind = functorch_call(node->op());
    if (kind == Functorch::AddBatch || kind == Functorch::RemoveBatch) {
      TRY_DO(
          catch_raised<void>([&] { return kind == Functorch::AddBatch ? add(*node, build) : remove(*node, build); }));
      return node->next();
    }
    // They are where they were among the new calls, too.
    if (node->is(set_grad_enabled()) || is_autocast(node->op()) || kind == Functorch::BeginGrad ||
        kind == Functorch::EndGrad)
      return node->next();
    const std::vector<Node*> inputs = node->inputs();
    const bool any = std::ranges::any_of(inputs, [&](Node* in) { return batched_.contains(in); });
    if (node->is(Op::getitem()) && any && batched_.contains(node->args()[0].node())) {
      const std::vector<Arg>& items = batched_.at(node->args()[0].node());
      const auto* index = node->args()[1].get<std::int64_t>();
      if (!index || *index < 0 || *index >= static_cast<std::int64_t>(items.size()))
        return bad(*node, "picks what its tuple does not have");
      batched_[node] = {items[static_cast<std::size_t>(*index)]};
      return node->next();
    }
    const std::vector<Node*> written = written_by(*node);
    const Schema* schema = find_schema(node->op());
    if (written.empty() ? has_effect(*node) && !(schema && schema->returns.empty()) : draws(node->op()))
      return refused_in_vmap(*node, "draws random numbers or is not known");
    if (!any) return node->next();
    for (Node* target : written)
      if (!batched_.contains(target)) return refused_in_vmap(*node, "writes parts of a batch to a tensor without one");
    if (const SymExpr* number = node->meta.sym()) {
      if (!node->op()->name.starts_with("aten.sym_"))
        return refused_in_vmap(*node, "makes a number of each part of the batch");
      TRY(const Arg value, catch_raised<Arg>([&] { return build.size(*number); }));
      TRY_DO(replace_uses(*node, value));
      Node* const next = node->next();
      graph_.erase(node);
      return next;
    }
    if (is_composite(node->op()) && !node->op()->name.starts_with("higher_order.")) return take_apart(node);
    Node* const previous = node->previous();
    const auto by_rule =
        catch_raised<std::optional<std::vector<Arg>>>([&] { return call_on_batch({*node, build, size_, batched_}); });
    if (by_rule && *by_rule && as_said(*node, **by_rule)) {
      batched_[node] = **by_rule;
      return node->next();
    }
    while (node->previous() != previous) graph_.erase(node->previous());
    if (!written.empty()) {
      TRY(batched_[node], write(node, build));
      return node->next();
    }
    if (schema && schema->is_view) return refused_in_vmap(*node, "is a view without a rule for batches");
    TRY(batched_[node], map_over_batch(*node, build));
    return node->next();
  }

  /// The functional variant of a call that writes, and a copy of its result.
  Result<std::vector<Arg>> write(Node* node, Builder& build) {
    const std::optional<FunctionalVariant> variant = functional_variant(node->op());
    if (!variant || variant->written.size() != 1) return refused_in_vmap(*node, "writes memory");
    TRY(Node* const value, catch_raised<Node*>([&] { return call_functional(build, *variant, *node); }));
    TRY_DO(take(value));
    const Node* target = written_by(*node).front();
    return catch_raised<std::vector<Arg>>([&] {
      return std::vector<Arg>{
          build.call("aten.copy_.default", {batched_.at(target).front(), batched_.at(value).front()})};
    });
  }

  Result<Node*> take_apart(Node* node) {
    Node* const previous = node->previous();
    TRY(const Arg value, decompose(*node));
    TRY_DO(replace_uses(*node, value));
    Node* const next = previous->next() == node ? node->next() : previous->next();
    graph_.erase(node);
    return next;
  }

  Status add(Node& node, Builder& build) {
    TRY(const std::size_t dim, dim_of(node, 1, BatchedCall::rank(node.args()[0])));
    batched_[&node] = {moved(build, node.args()[0], dim, 0)};
    return {};
  }

  Status remove(Node& node, Builder& build) {
    const Arg& inner = node.args().at(0);
    const auto found = batched_.find(inner.node());
    const Arg whole = found == batched_.end() ? for_each_part(build, inner, size_) : found->second.front();
    TRY(const std::size_t dim, dim_of(node, 3, BatchedCall::rank(whole)));
    return replace_uses(node, moved(build, whole, 0, dim));
  }

  /// Have the results the dtypes and ranks that the call says? Where a tensor without dimensions has become one with
  /// the batch's, types are promoted in another way.
  static bool as_said(const Node& node, const std::vector<Arg>& results) {
    const MetaTuple* tuple = node.meta.tuple();
    const bool none = !tuple && !node.meta.tensor();
    if (results.size() != (tuple ? tuple->items.size() : none ? 0 : 1)) return false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TensorMeta* annotated = tuple ? tuple->items[i].tensor() : node.meta.tensor();
      if (!annotated && results[i].is_none()) continue;
      const TensorMeta* found = results[i].node() ? results[i].node()->meta.tensor() : nullptr;
      if (!annotated || !found || found->dtype != annotated->dtype ||
          found->sizes.size() != annotated->sizes.size() + 1)
        return false;
    }
    return true;
  }

  /// As functorch does for operators without a rule: the call for one part of the batch after the other.
  Result<std::vector<Arg>> map_over_batch(const Node& node, Builder& build) {
    auto body = std::make_unique<Graph>("body_graph");
    body->shapes = graph_.shapes;
    std::unordered_map<const Node*, Node*> inner;
    std::vector<Arg> rows, others;
    std::vector<Node*> attributes;
    for (const bool row : {true, false})
      for (Node* in : node.inputs()) {
        if (inner.contains(in) || batched_.contains(in) != row) continue;
        if (in->is(Op::get_attr())) {
          attributes.push_back(in);
          continue;
        }
        if (row && batched_.at(in).size() != 1) return refused_in_vmap(node, "takes a list of tensors with a batch");
        (row ? rows : others).push_back(row ? batched_.at(in).front() : Arg(in));
        inner[in] = body->placeholder(in->name(), in->meta);
      }
    for (Node* in : attributes) {
      if (inner.contains(in)) continue;
      inner[in] = body->copy_node(*in, [](Node* n) { return n; });
      if (const Graph* child = graph_.child(in->target)) body->children.emplace_back(in->target, child->clone());
      if (const auto it = graph_.attributes.find(in->target); it != graph_.attributes.end())
        body->attributes.insert(*it);
    }
    Node* const copy = body->copy_node(node, [&](Node* n) { return Arg(inner.at(n)); });
    const MetaTuple* tuple = node.meta.tuple();
    std::vector<Arg> outputs{copy};
    if (tuple) {
      outputs.clear();
      for (std::size_t i = 0; i < tuple->items.size(); ++i) {
        if (!tuple->items[i].tensor()) continue;  // a gradient that is not wanted
        Node* item = body->create(Op::getitem(), {copy, static_cast<std::int64_t>(i)});
        item->meta = tuple->items[i];
        outputs.push_back(item);
      }
    }
    for (const Arg& output : outputs)
      if (!output.node()->meta.tensor()) return refused_in_vmap(node, "gives what is no tensor");
    body->set_output(Arg::tuple(outputs));

    const Op* const op = Op::torch("higher_order.map_impl");
    const ControlOp& control = *find_control(op);
    const std::string name = region_names(control, graph_).front();
    graph_.children.emplace_back(name, std::move(body));
    Node* const attribute = graph_.create(Op::get_attr(), {}, {}, name, build.before);
    attribute->target = name;
    Node* const map = graph_.create(op, {attribute, Arg::list(rows), Arg::list(others)}, {}, {}, build.before);
    map->origin = node.origin;
    const MetaTuple results = region_results(control, *map);
    map->meta = results;
    std::vector<Arg> wholes(tuple ? tuple->items.size() : 1);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      if (tuple && !tuple->items[i].tensor()) continue;
      Node* whole = graph_.create(Op::getitem(), {map, next}, {}, {}, build.before);
      whole->meta = results.items[static_cast<std::size_t>(next++)];
      whole->origin = node.origin;
      wholes[i] = whole;
    }
    return wholes;
  }

  Graph& graph_;
  Node *begin_, *end_;
  Arg size_;
  std::unordered_map<const Node*, std::vector<Arg>> batched_;
};

/// Text need not say what the calls that show and hide the batch give.
Result<Meta> meta_of_call(const Node& call, Functorch kind) {
  const Node* in = call.args().empty() ? nullptr : call.args()[0].node();
  const TensorMeta* t = in ? in->meta.tensor() : nullptr;
  if (!t) return bad(call, "takes no tensor");
  TensorMeta out = *t;
  const bool adds = kind == Functorch::AddBatch;
  TRY(const std::size_t dim, dim_of(call, adds ? 1 : 3, t->sizes.size() + (adds ? 0 : 1)));
  const auto at = static_cast<std::ptrdiff_t>(dim);
  if (adds) {
    out.sizes.erase(out.sizes.begin() + at);
    out.strides.erase(out.strides.begin() + at);
    return Meta(std::move(out));
  }
  const Arg size = call.args().size() > 2 ? call.args()[2] : Arg();
  const SymExpr* symbol = size.node() ? size.node()->meta.sym() : nullptr;
  const auto* number = size.get<std::int64_t>();
  if (!symbol && !number) return bad(call, "has no size of the batch");
  out.sizes.insert(out.sizes.begin() + at, symbol ? *symbol : SymExpr(*number));
  return Meta(TensorMeta::contiguous(out.dtype, std::move(out.sizes), out.device));
}

}  // namespace

Status give_vmap_meta(Node& call) {
  TRY(Meta meta, meta_of_call(call, functorch_call(call.op())));
  const TensorMeta* annotated = call.meta.tensor();
  if (call.meta.known() && (!annotated || annotated->sizes.size() != meta.tensor()->sizes.size()))
    return bad(call, "is annotated with another number of dimensions");
  if (!annotated) call.meta = std::move(meta);
  return {};
}

Result<Node*> replace_vmap(Node* end) {
  Node* begin = end->previous();
  while (begin && functorch_call(begin->op()) != Functorch::BeginVmap) begin = begin->previous();
  if (!begin) return bad(*end, "ends no vmap");
  return Batch(begin, end).replace();
}

}  // namespace partita
