// Backwards of cond, map_impl, scan and while_loop: a sub graph is differentiated by make_joint(), and a region of
// these backwards is called. Calls with effects run only in the forward, which then returns their results.
#include "core/grad/region_backward.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/grad/joint.h"
#include "core/ir/place.h"
#include "core/ops/facts/effects.h"

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
  /// A placeholder for a result of a forward call that must not run again.
  struct Saved {
    std::size_t call = 0;  ///< its place among the sub graph's calls with an effect
    std::int64_t part = -1;
    Node* input = nullptr;
  };
  std::vector<Saved> saved;

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
    return while_loop();
  }

 private:
  Result<BodyBackward> backward_of(std::size_t argument, const std::vector<bool>& wants) const {
    TRY(const Graph* const body, region_graph(call_, argument));
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
    std::vector<Arg> gradients = out.graph->outputs();
    gradients.erase(gradients.begin(), gradients.begin() + static_cast<std::ptrdiff_t>(results));
    out.graph->set_output(Arg::list(std::move(gradients)));
    out.graph->eliminate_dead(has_effect);
    TRY_DO(keep_effects(*body, out));
    for (const Arg& g : out.graph->outputs()) out.gradients.push_back(g.node());
    return out;
  }

  static std::vector<Node*> effects_of(const Graph& graph) {
    std::vector<Node*> out;
    for (Node* n : graph)
      if (n->op()->is_call() && has_effect(*n)) out.push_back(n);
    return out;
  }

  /// Calls that draw random numbers or have another effect run in the forward only: what the backward reads of them
  /// becomes an input.
  Status keep_effects(const Graph& body, BodyBackward& out) const {
    const std::vector<Node*> before = effects_of(body), again = effects_of(*out.graph);
    if (!std::ranges::equal(before, again, {}, &Node::op, &Node::op))
      return no_derivative(call_, "its sub graph has an effect in a call that is decomposed");
    for (std::size_t i = 0; i < again.size(); ++i) {
      std::vector<Node*> parts = again[i]->users();
      if (!std::ranges::all_of(parts, [](const Node* n) { return n->is(Op::getitem()); })) parts = {again[i]};
      std::ranges::sort(parts, {}, &Node::id);
      for (Node* part : parts) {
        if (part->users().empty()) continue;
        const auto* index = part == again[i] ? nullptr : part->args()[1].get<std::int64_t>();
        const MetaTuple* known = before[i]->meta.tuple();
        if (!part->meta.tensor() || (known && (!index || static_cast<std::size_t>(*index) >= known->items.size())))
          return no_derivative(call_, "the backward of its sub graph reads a result of " + before[i]->name() +
                                          ", which has an effect, that is no tensor");
        Node* input = out.graph->placeholder("saved", part->meta, out.graph->first());
        part->replace_all_uses_with(input);
        out.saved.push_back({i, index ? *index : -1, input});
      }
      for (Node* part : std::vector<Node*>(again[i]->users())) out.graph->erase(part);
      out.graph->erase(again[i]);
    }
    return {};
  }

  /// The forward's values for what its backward saves.
  std::vector<Arg> saved_values(Graph& forward, const BodyBackward& backward) const {
    const std::vector<Node*> effects = effects_of(forward);
    const std::vector<Arg> returned = forward.outputs();
    std::vector<Arg> out;
    for (const BodyBackward::Saved& s : backward.saved) {
      Node *call = effects[s.call], *value = call;
      if (s.part >= 0) {
        const auto of_part = [&](const Node* n) { return *n->args()[1].get<std::int64_t>() == s.part; };
        const auto it = std::ranges::find_if(call->users(), of_part);
        value = it != call->users().end() ? *it : Builder(forward, call->next(), call->origin).getitem(call, s.part);
      }
      // Results of a sub graph have memory of their own.
      if (std::ranges::find(returned, Arg(value)) != returned.end())
        value = Builder(forward, forward.output()).call("aten.clone.default", {value});
      out.emplace_back(value);
    }
    return out;
  }

  /// Makes the forward return more values, those of the sub graphs in the order of op_.graphs.
  std::vector<Node*> return_more(const std::vector<std::vector<Arg>>& more) {
    std::size_t first = 0;
    for (std::size_t g = 0; g < more.size(); ++g) {
      Graph& forward = *unwrap(region_graph(call_, op_.graphs[g]));
      std::vector<Arg> results = forward.outputs();
      first = results.size();
      results.insert(results.end(), more[g].begin(), more[g].end());
      forward.set_output(Arg::list(std::move(results)));
    }
    MetaTuple metas = *call_.meta.tuple();
    const MetaTuple now = region_results(op_, call_);
    metas.items.insert(metas.items.end(), now.items.begin() + static_cast<std::ptrdiff_t>(first), now.items.end());
    call_.meta = std::move(metas);
    Node* after = call_.next();
    while (after->is(Op::getitem()) && after->args()[0].node() == &call_) after = after->next();
    Builder build(call_.graph(), after, call_.origin);
    std::vector<Node*> out;
    for (std::size_t k = 0; k < more[0].size(); ++k)
      out.push_back(build.getitem(&call_, static_cast<std::int64_t>(first + k)));
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
    const std::vector<std::vector<Node*>> saved = save_of_branches(branches, operands);
    const std::vector<std::string> names = region_names(op_, call_.graph());
    Args args = {call_.args()[0]};
    for (std::size_t b = 0; b < branches.size(); ++b) {
      std::vector<Node*> placeholders = branches[b].primals;
      for (const std::size_t i : results) placeholders.push_back(branches[b].tangent(i, result(i)));
      placeholders.insert(placeholders.end(), saved[b].begin(), saved[b].end());
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

  /// Both branches return what either of them saves, the other one zeros. Appends the values to the operands of the
  /// backward; returns the placeholders for them, by branch.
  std::vector<std::vector<Node*>> save_of_branches(const std::vector<BodyBackward>& branches,
                                                   std::vector<Arg>& operands) {
    std::vector<std::vector<Arg>> values(branches.size());
    std::vector<std::vector<Node*>> inputs(branches.size());
    for (std::size_t b = 0; b < branches.size(); ++b) {
      const std::vector<Arg> own = saved_values(*unwrap(region_graph(call_, op_.graphs[b])), branches[b]);
      for (std::size_t k = 0; k < own.size(); ++k)
        for (std::size_t other = 0; other < branches.size(); ++other) {
          Node* input = branches[b].saved[k].input;
          Graph& forward = *unwrap(region_graph(call_, op_.graphs[other]));
          const TensorMeta& t = *input->meta.tensor();
          Builder build(forward, forward.output());
          values[other].push_back(
              other == b ? own[k]
                         : build.call("aten.full.default", {build.sizes(t.sizes), 0}, {{"dtype", Arg(t.dtype)}}));
          if (other != b) {
            Graph& backward = *branches[other].graph;
            input = backward.placeholder("unread", input->meta, backward.first());
          }
          inputs[other].push_back(input);
        }
    }
    if (values[0].empty()) return inputs;
    for (Node* n : return_more(values)) operands.emplace_back(n);
    return inputs;
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
    for (Node* n : saved_rows(body)) rows.emplace_back(n);
    for (const BodyBackward::Saved& s : body.saved) placeholders.push_back(s.input);
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

  /// What a backward saves of each step, as rows.
  std::vector<Node*> saved_rows(const BodyBackward& body) {
    if (body.saved.empty()) return {};
    return return_more({saved_values(*unwrap(region_graph(call_, op_.body)), body)});
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
    for (Node* n : saved_rows(body)) rows.emplace_back(reversed(n));
    for (const BodyBackward::Saved& s : body.saved) row_inputs.push_back(s.input);
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

  static Meta counter() { return TensorMeta::contiguous(DType::Int64, {}); }
  static Node* zero(Graph& graph, Node* before) {
    return Builder(graph, before).call("aten.full.default", {Arg::list({}), 0}, {{"dtype", Arg(DType::Int64)}});
  }
  static Node* first_call(Graph& graph) {
    Node* n = graph.first();
    while (n->is_placeholder()) n = n->next();
    return n;
  }

  /// A graph with placeholders like these, and nothing that it returns yet.
  std::unique_ptr<Graph> graph_over(const std::vector<Node*>& placeholders, std::string name) const {
    auto graph = std::make_unique<Graph>(std::move(name));
    graph->shapes = call_.graph().shapes;
    for (std::size_t i = 0; i < placeholders.size(); ++i)
      graph->placeholder(fmt::format("arg{}_1", i), placeholders[i]->meta);
    return graph;
  }

  /// Makes the forward loop count its steps, and returns their number.
  Node* count_steps(std::size_t carried) {
    Args args = call_.args();
    for (const std::size_t argument : op_.graphs) {
      Graph& graph = *unwrap(region_graph(call_, argument));
      const std::vector<Node*> placeholders = graph.placeholders();
      Node* const before = carried < placeholders.size() ? placeholders[carried] : first_call(graph);
      Node* const steps = graph.placeholder("steps", counter(), before);
      if (argument != op_.body) continue;
      std::vector<Arg> results = graph.outputs();
      results.emplace_back(Builder(graph, graph.output()).call("aten.add.Tensor", {steps, 1}));
      graph.set_output(Arg::tuple(std::move(results)));
    }
    const auto at = static_cast<std::size_t>(op_.carried);
    ArgList values = *args[at].get<ArgList>();
    values.items.emplace_back(zero(call_.graph(), &call_));
    args[at] = std::move(values);
    call_.set_args(std::move(args), call_.kwargs());
    MetaTuple metas = *call_.meta.tuple();
    metas.items.push_back(counter());
    call_.meta = std::move(metas);
    return Builder(call_.graph(), call_.next(), call_.origin).getitem(&call_, static_cast<std::int64_t>(carried));
  }

  /// A loop from the last step to the first. PyTorch stacks what each step begins with; the number of steps, and so the
  /// size of that stack, is known only at run time. Here the steps before are run again instead, which takes time in
  /// the square of their number.
  Result<std::vector<Node*>> while_loop() {
    const auto carried = static_cast<std::size_t>(std::ranges::count_if(operands_, &RegionOperand::carried));
    std::vector<bool> wants = wants_;
    for (std::size_t i = 0; i < carried; ++i) {
      const Node* n = operands_[i].value.node();
      if (!n || !n->meta.tensor()) return no_derivative(call_, "it carries a number that is no tensor");
      wants[i] = can_differentiate(n);
    }
    TRY(BodyBackward step, backward_of(op_.body, wants));
    TRY(const Graph* const original, region_graph(call_, op_.body));
    if (const std::vector<Node*> effects = effects_of(*original); !effects.empty())
      return no_derivative(call_, effects[0]->name() +
                                      " in its sub graph draws random numbers or has an effect, so it must "
                                      "not run again in the backward");
    const std::unique_ptr<Graph> forward = original->clone();
    Graph& graph = *step.graph;

    // Of the loop: the number of steps left, gradients of what is carried and of what all steps read; and what the
    // forward loop began with.
    Node* const left = graph.placeholder("left", counter(), graph.first());
    std::vector<Node*> placeholders = {left};
    std::vector<Arg> carry = {count_steps(carried)}, rest, returned = {Arg()};
    std::vector<std::size_t> gradient_of;  // by what is carried besides the number: the operand
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      rest.push_back(operands_[i].value);
      if (!wants[i]) continue;
      gradient_of.push_back(i);
      if (i < carried) {
        placeholders.push_back(step.tangent(i, result(i)));
        carry.emplace_back(arriving(i));
        returned.emplace_back(step.gradient(i));
      } else {
        placeholders.push_back(graph.placeholder("sum", step.primals[i]->meta, graph.first()));
        carry.emplace_back(build_.call("aten.zeros_like.default", {operands_[i].value}));
        returned.emplace_back(
            Builder(graph, step.output()).call("aten.add.Tensor", {placeholders.back(), step.gradient(i)}));
      }
    }
    placeholders.insert(placeholders.end(), step.primals.begin(), step.primals.end());
    graph.set_output(Arg::tuple(returned));  // before the values that it reads are replaced

    Node* const first = first_call(graph);
    Node* const now = Builder(graph, first).call("aten.sub.Tensor", {left, 1});
    returned[0] = now;
    run_again(step, *forward, carried, now, first);
    for (std::size_t k = 1; k < returned.size(); ++k) returned[k] = graph.outputs()[k];

    std::unique_ptr<Graph> test = graph_over(placeholders, "while_loop_cond");
    test->set_output(Builder(*test, nullptr).call("aten.gt.Scalar", {test->first(), 0}));
    const std::vector<std::string> names = region_names(op_, call_.graph());
    Args args = {add_graph(std::move(test), names[0], build_.before),
                 add_graph(step.finish(placeholders, std::move(returned)), names[1], build_.before),
                 Arg::tuple(std::move(carry)), Arg::tuple(std::move(rest))};
    Node* made = region(std::move(args));
    std::vector<Node*> out(operands_.size(), nullptr);
    for (std::size_t k = 0; k < gradient_of.size(); ++k)
      if (wants_[gradient_of[k]]) out[gradient_of[k]] = item(made, k + 1);
    return out;
  }

  /// Makes `step` read, in place of what the forward loop began with, what it carried after `steps` steps.
  void run_again(BodyBackward& step, const Graph& forward, std::size_t carried, Node* steps, Node* before) const {
    Graph& graph = *step.graph;
    Node* const begin = zero(graph, before);
    std::vector<Node*> placeholders = {begin};
    placeholders.insert(placeholders.end(), step.primals.begin(),
                        step.primals.begin() + static_cast<std::ptrdiff_t>(carried));
    placeholders.push_back(steps);
    placeholders.insert(placeholders.end(), step.primals.begin() + static_cast<std::ptrdiff_t>(carried),
                        step.primals.end());
    std::unique_ptr<Graph> test = graph_over(placeholders, "while_loop_cond");
    const std::vector<Node*> tested = test->placeholders();
    test->set_output(Builder(*test, nullptr).call("aten.lt.Tensor", {tested[0], tested[carried + 1]}));
    std::unique_ptr<Graph> body = forward.clone();
    const std::vector<Node*> own = body->placeholders();
    Node* const done = body->placeholder("done", counter(), body->first());
    body->placeholder("steps", counter(), carried < own.size() ? own[carried] : first_call(*body));
    std::vector<Arg> results = {Builder(*body, body->output()).call("aten.add.Tensor", {done, 1})};
    for (const Arg& a : body->outputs()) results.push_back(a);
    body->set_output(Arg::tuple(std::move(results)));

    const std::vector<std::string> names = region_names(op_, graph);
    Args args(4);
    for (std::size_t g = 0; g < 2; ++g) {
      graph.children.emplace_back(names[g], g == 0 ? std::move(test) : std::move(body));
      Node* attribute = graph.create(Op::get_attr(), {}, {}, names[g], before);
      attribute->target = names[g];
      args[g] = attribute;
    }
    Node* const loop = graph.create(call_.op(), {}, {}, {}, before);
    std::vector<Arg> values = {begin}, rest = {steps};
    for (std::size_t i = 0; i < carried; ++i) {
      Node* const now = graph.create(Op::getitem(), {loop, static_cast<std::int64_t>(i + 1)}, {}, {}, before);
      now->meta = step.primals[i]->meta;
      step.primals[i]->replace_all_uses_with(now);
      values.emplace_back(step.primals[i]);
    }
    for (std::size_t i = carried; i < step.primals.size(); ++i) rest.emplace_back(step.primals[i]);
    args[2] = Arg::tuple(std::move(values));
    args[3] = Arg::tuple(std::move(rest));
    loop->set_args(std::move(args), {});
    loop->meta = region_results(op_, *loop);
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
    const std::vector<Node*> placeholders = forward->placeholders();
    std::vector<Arg> values;
    for (const std::size_t i : saved)
      values.emplace_back(Builder(*forward, forward->output()).call("aten.clone.default", {placeholders[i]}));
    const std::vector<Node*> stacks = return_more({values});
    for (std::size_t k = 0; k < saved.size(); ++k) {
      row_inputs.push_back(body.primals[saved[k]]);
      rows.emplace_back(reversed(stacks[k]));
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
