#include "core/grad/region_backward.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/grad/joint.h"
#include "core/ir/place.h"
#include "core/ops/effects.h"

namespace partita {
namespace {

Diagnostic no_derivative(const Node& call, std::string_view why) {
  return unsupported("grad.region", fmt::format("no derivative for {}: {}", call.op()->name, why), place_of(call));
}

/// A functional sub graph, with what is known of its nodes.
void copy_marks(const Graph& from, const Graph& to, const std::unordered_set<const Node*>& no_grad,
                const HiddenWrites& hidden, FunctionalGraph& out) {
  for (const Node* n : from) {
    const Node* copy = to.find(n->name());
    if (no_grad.contains(n)) out.no_grad.insert(copy);
    if (const auto it = hidden.find(n); it != hidden.end()) out.hidden[copy] = to.find(it->second->name());
  }
  for (const auto& [target, child] : from.children) copy_marks(*child, *to.child(target), no_grad, hidden, out);
}

bool can_differentiate(const Node* n) {
  return n && n->meta.tensor() && can_require_grad(n->meta);
}

/// The backward of one sub graph, which takes primals and tangents and returns gradients.
struct BodyBackward {
  std::unique_ptr<Graph> graph;
  std::vector<Node*> primals;             ///< placeholders
  std::map<std::size_t, Node*> tangents;  ///< placeholders by the result that they belong to
  std::vector<Node*> gradients;           ///< by primal; null: not wanted, or zero

  Node* output() const { return graph->output(); }
  /// The tangent of a result; a new placeholder if nothing depends on it.
  Node* tangent(std::size_t result, const Meta& meta) {
    Node*& t = tangents[result];
    if (!t) t = graph->placeholder("tangents", meta, graph->placeholders().front());
    return t;
  }
  /// The gradient of a primal with memory of its own.
  Node* gradient(std::size_t primal) const {
    Builder build(*graph, output());
    Node* g = gradients[primal];
    if (!g) return build.call("aten.zeros_like.default", {primals[primal]});
    return g->is_placeholder() ? build.call("aten.clone.default", {g}) : g;
  }
  /// Gives the graph these placeholders in this order, which are all that are used, and these results.
  std::unique_ptr<Graph> finish(const std::vector<Node*>& placeholders, std::vector<Arg> results) {
    graph->set_output(Arg::list(std::move(results)));
    graph->eliminate_dead(has_effect);
    Node* first = graph->first();
    while (first->is_placeholder()) first = first->next();
    for (Node* p : placeholders) graph->move_before(p, first);
    for (Node* p : graph->placeholders())
      if (std::ranges::find(placeholders, p) == placeholders.end()) graph->erase(p);
    for (std::size_t i = 0; i < placeholders.size(); ++i) graph->rename(placeholders[i], fmt::format("p{}", i));
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      graph->rename(placeholders[i], fmt::format("arg{}_1", i));
      placeholders[i]->target = placeholders[i]->name();
    }
    return renamed_in_order(*graph);
  }
};

class RegionBackward {
 public:
  RegionBackward(Builder& build, Node& call, const ControlOp& op, const std::vector<Node*>& grads,
                 const std::vector<bool>& wants, const std::unordered_set<const Node*>& no_grad,
                 const HiddenWrites& hidden)
      : build_(build),
        call_(call),
        op_(op),
        grads_(grads),
        wants_(wants),
        no_grad_(no_grad),
        hidden_(hidden),
        operands_(operands_of(op, call.args())) {}

  Result<std::vector<Node*>> run() {
    if (op_.kind == Control::Cond) return cond();
    if (op_.kind == Control::Map) return map();
    if (op_.kind == Control::Scan) return scan();
    return no_derivative(call_, "the number of its steps is known only at run time");
  }

 private:
  Result<BodyBackward> backward_of(std::size_t argument, const std::vector<bool>& wants) const {
    TRY(const Graph* const body, region_graph(call_, argument));
    for (const Node* n : *body)
      if (n->op()->is_call() && has_effect(*n))
        return no_derivative(call_, n->name() +
                                        " in its sub graph draws random numbers or has an effect, so it must "
                                        "not run again in the backward");
    FunctionalGraph f;
    f.graph = body->clone();
    f.graph->shapes = call_.graph().shapes;
    copy_marks(*body, *f.graph, no_grad_, hidden_, f);
    for (const bool wanted : wants) f.meta.inputs.push_back({.requires_grad = wanted});
    const std::size_t results = body->outputs().size();
    f.meta.outputs.resize(results);
    TRY(Joint joint, make_joint(std::move(f)));
    BodyBackward out;
    out.graph = std::move(joint.graph);
    out.graph->form = GraphForm::Flat;
    out.graph->name = body->name;
    const std::vector<Node*> placeholders = out.graph->placeholders();
    out.primals.assign(placeholders.begin(), placeholders.begin() + static_cast<std::ptrdiff_t>(wants.size()));
    for (std::size_t k = 0; k < joint.tangent_of.size(); ++k)
      out.tangents[joint.tangent_of[k]] = placeholders[wants.size() + k];
    for (const Arg& g : out.graph->outputs()) out.gradients.push_back(g.node());
    out.gradients.erase(out.gradients.begin(), out.gradients.begin() + static_cast<std::ptrdiff_t>(results));
    return out;
  }

  const Meta& result(std::size_t i) const { return call_.meta.tuple()->items[i]; }

  /// The gradient that arrives for a result, or zeros.
  Node* arriving(std::size_t i) const {
    if (grads_[i]) return grads_[i];
    const TensorMeta& t = *result(i).tensor();
    return build_.call("aten.full.default", {build_.sizes(t.sizes), 0.0}, {{"dtype", Arg(t.dtype)}});
  }

  Node* add_graph(std::unique_ptr<Graph> graph, const std::string& name, Node* before) const {
    Graph& parent = call_.graph();
    parent.children.emplace_back(name, std::move(graph));
    Node* attribute = parent.create(Op::get_attr(), {}, {}, name, before);
    attribute->target = name;
    return attribute;
  }

  /// Makes a call of the same operator; its results' metas follow from the sub graphs'.
  Node* region(Args args) const {
    Node* made = call_.graph().create(call_.op(), std::move(args), {}, {}, build_.before);
    made->origin = call_.origin;
    made->meta = region_results(op_, *made);
    return made;
  }

  Node* item(Node* tuple, std::size_t i) const { return build_.getitem(tuple, static_cast<std::int64_t>(i)); }

  Result<std::vector<Node*>> cond() {
    std::vector<BodyBackward> branches;
    std::set<std::size_t> results;
    for (const std::size_t argument : op_.graphs) {
      TRY(branches.emplace_back(), backward_of(argument, wants_));
      for (const auto& [i, tangent] : branches.back().tangents) results.insert(i);
    }
    std::vector<Arg> operands;
    for (const RegionOperand& o : operands_) operands.push_back(o.value);
    for (const std::size_t i : results) operands.emplace_back(arriving(i));
    const std::vector<std::string> names = region_names(op_, call_.graph());
    Args args = {call_.args()[0]};
    for (std::size_t b = 0; b < branches.size(); ++b) {
      std::vector<Node*> placeholders = branches[b].primals;
      for (const std::size_t i : results) placeholders.push_back(branches[b].tangent(i, result(i)));
      std::vector<Arg> returned;
      for (std::size_t i = 0; i < wants_.size(); ++i)
        if (wants_[i]) returned.emplace_back(branches[b].gradient(i));
      args.emplace_back(add_graph(branches[b].finish(placeholders, std::move(returned)), names[b], build_.before));
    }
    args.push_back(Arg::tuple(std::move(operands)));
    Node* made = region(std::move(args));
    std::vector<Node*> out(operands_.size(), nullptr);
    std::size_t next = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (wants_[i]) out[i] = item(made, next++);
    return out;
  }

  Result<std::vector<Node*>> map() {
    TRY(BodyBackward body, backward_of(op_.body, wants_));
    std::vector<Node*> placeholders, shared;
    std::vector<Arg> rows, rest;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      (operands_[i].row ? placeholders : shared).push_back(body.primals[i]);
      (operands_[i].row ? rows : rest).push_back(operands_[i].value);
    }
    for (const auto& [i, tangent] : body.tangents) {
      placeholders.push_back(tangent);
      rows.emplace_back(arriving(i));
    }
    placeholders.insert(placeholders.end(), shared.begin(), shared.end());
    std::vector<Arg> returned;
    for (std::size_t i = 0; i < wants_.size(); ++i)
      if (wants_[i]) returned.emplace_back(body.gradient(i));
    Node* graph =
        add_graph(body.finish(placeholders, std::move(returned)), region_names(op_, call_.graph())[0], build_.before);
    Node* made = region({graph, Arg::list(std::move(rows)), Arg::list(std::move(rest))});
    std::vector<Node*> out(operands_.size(), nullptr);
    std::size_t next = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!wants_[i]) continue;
      out[i] = item(made, next++);
      // Each row has given what all of them read a gradient.
      if (!operands_[i].row) out[i] = build_.call("aten.sum.dim_IntList", {out[i], Arg::list({0})});
    }
    return out;
  }

  Node* reversed(Node* n) const { return build_.call("aten.flip.default", {n, Arg::list({0})}); }

  Result<std::vector<Node*>> scan() {
    // What is carried has a gradient even if the first value needs none: what a step reads besides gets its own by it.
    std::vector<bool> wants = wants_;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].carried) wants[i] = can_differentiate(operands_[i].value.node());
    TRY(BodyBackward body, backward_of(op_.body, wants));
    const auto carried = static_cast<std::size_t>(std::ranges::count_if(operands_, &RegionOperand::carried));

    std::vector<Node*> carried_inputs, row_inputs, shared_inputs;  // placeholders of the body's backward
    std::vector<Arg> carry, rows, rest;                            // and what they get
    std::vector<Arg> next_carry, stacked;                          // the results of a step
    std::vector<std::size_t> carry_of, stacked_of;                 // by those: the operand whose gradient it is
    for (std::size_t i = 0; i < carried; ++i) {
      if (!wants[i]) continue;
      carried_inputs.push_back(body.tangent(i, result(i)));
      carry.emplace_back(arriving(i));
      next_carry.emplace_back(body.gradient(i));
      carry_of.push_back(i);
    }
    for (std::size_t i = carried; i < operands_.size(); ++i) {
      if (!wants[i]) continue;
      if (operands_[i].row) {
        stacked.emplace_back(body.gradient(i));
        stacked_of.push_back(i);
        continue;
      }
      Node* sum = body.graph->placeholder("sum", body.primals[i]->meta, body.graph->first());
      carried_inputs.push_back(sum);
      carry.emplace_back(build_.call("aten.zeros_like.default", {operands_[i].value}));
      next_carry.emplace_back(Builder(*body.graph, body.output()).call("aten.add.Tensor", {sum, body.gradient(i)}));
      carry_of.push_back(i);
    }
    for (const auto& [i, tangent] : body.tangents) {
      if (i < carried) continue;
      row_inputs.push_back(tangent);
      rows.emplace_back(reversed(arriving(i)));
    }
    std::vector<Arg> returned = next_carry;
    returned.insert(returned.end(), stacked.begin(), stacked.end());
    body.graph->set_output(Arg::list(returned));
    body.graph->eliminate_dead(has_effect);
    TRY_DO(add_primals(body, row_inputs, rows, shared_inputs, rest));
    std::vector<Node*> placeholders = carried_inputs;
    placeholders.insert(placeholders.end(), row_inputs.begin(), row_inputs.end());
    placeholders.insert(placeholders.end(), shared_inputs.begin(), shared_inputs.end());
    if (rows.empty()) return no_derivative(call_, "no step of its backward reads a row");

    Node* graph =
        add_graph(body.finish(placeholders, std::move(returned)), region_names(op_, call_.graph())[0], build_.before);
    Node* made = region({graph, Arg::list(std::move(carry)), Arg::list(std::move(rows)), Arg::tuple(std::move(rest))});
    std::vector<Node*> out(operands_.size(), nullptr);
    for (std::size_t k = 0; k < carry_of.size(); ++k)
      if (wants_[carry_of[k]]) out[carry_of[k]] = item(made, k);
    for (std::size_t k = 0; k < stacked_of.size(); ++k) out[stacked_of[k]] = reversed(item(made, carry_of.size() + k));
    return out;
  }

  /// What the backward of a step reads of the forward: rows, what was carried into the step, and what all steps read.
  /// Makes the forward scan return what it carries, where that is read.
  Status add_primals(const BodyBackward& body, std::vector<Node*>& row_inputs, std::vector<Arg>& rows,
                     std::vector<Node*>& shared_inputs, std::vector<Arg>& rest) {
    std::vector<std::size_t> saved;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (body.primals[i]->users().empty()) continue;
      if (operands_[i].carried) {
        saved.push_back(i);
        continue;
      }
      (operands_[i].row ? row_inputs : shared_inputs).push_back(body.primals[i]);
      if (operands_[i].row)
        rows.emplace_back(reversed(operands_[i].value.node()));
      else
        rest.push_back(operands_[i].value);
    }
    if (saved.empty()) return {};
    TRY(Graph* const forward, region_graph(call_, op_.body));
    std::vector<Arg> results = forward->outputs();
    const std::vector<Node*> placeholders = forward->placeholders();
    const std::size_t first = results.size();
    for (const std::size_t i : saved)
      results.emplace_back(Builder(*forward, forward->output()).call("aten.clone.default", {placeholders[i]}));
    forward->set_output(Arg::list(std::move(results)));
    MetaTuple metas = *call_.meta.tuple();
    const MetaTuple now = region_results(op_, call_);
    metas.items.insert(metas.items.end(), now.items.begin() + static_cast<std::ptrdiff_t>(first), now.items.end());
    call_.meta = std::move(metas);
    Node* after = call_.next();
    while (after->is(Op::getitem()) && after->args()[0].node() == &call_) after = after->next();
    Builder forward_build(call_.graph(), after, call_.origin);
    for (std::size_t k = 0; k < saved.size(); ++k) {
      row_inputs.push_back(body.primals[saved[k]]);
      rows.emplace_back(reversed(forward_build.getitem(&call_, static_cast<std::int64_t>(first + k))));
    }
    return {};
  }

  Builder& build_;
  Node& call_;
  const ControlOp& op_;
  const std::vector<Node*>& grads_;
  const std::vector<bool>& wants_;
  const std::unordered_set<const Node*>& no_grad_;
  const HiddenWrites& hidden_;
  const std::vector<RegionOperand> operands_;
};

}  // namespace

Result<std::vector<Node*>> differentiate_region(Builder& build, Node& call, const ControlOp& op,
                                                const std::vector<Node*>& grads, const std::vector<bool>& wants,
                                                const std::unordered_set<const Node*>& no_grad,
                                                const HiddenWrites& hidden) {
  return RegionBackward(build, call, op, grads, wants, no_grad, hidden).run();
}

}  // namespace partita
