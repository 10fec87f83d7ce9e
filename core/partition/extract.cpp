// Cuts forward and backward out of the joint graph once the saved values are chosen: marks what each side needs and can
// compute, copies it, and moves recomputed calls near their use.
#include "core/partition/extract.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/ir/place.h"
#include "core/ir/symbols_of.h"
#include "core/partition/cost.h"
#include "core/sym/solve.h"

namespace partita {
namespace {

/// The part of a joint graph that computes some outputs from some inputs, without unused nodes.
struct Part {
  std::vector<char> computed, read;  ///< by node: a call of the part; something in it or an output reads it
  const Node* missing = nullptr;     ///< the first node that is wanted and cannot be computed
};

/// Calls with an effect count as wanted unless `leave_out` has them.
Part part_of(const Graph& joint, const std::vector<Node*>& inputs, const std::vector<Arg>& outputs,
             const std::vector<char>& leave_out) {
  Part part{std::vector<char>(joint.id_limit(), 0), std::vector<char>(joint.id_limit(), 0)};
  std::vector<char> known(joint.id_limit(), 0), wanted(joint.id_limit(), 0);
  for (const Node* n : inputs) known[n->id()] = 1;
  for (const Arg& a : outputs) for_each_node(a, [&](Node* n) { wanted[n->id()] = part.read[n->id()] = 1; });
  for (Node* n = joint.last(); n; n = n->previous()) {
    if (n->is_output() || known[n->id()] || leave_out[n->id()]) continue;
    if (cost_class(*n).side_effect) wanted[n->id()] = 1;
    if (wanted[n->id()])
      for (Node* input : n->inputs()) wanted[input->id()] = 1;
  }
  for (Node* n : joint) {
    if (n->is_output() || !wanted[n->id()] || known[n->id()]) continue;
    const std::vector<Node*> inputs_of_n = n->inputs();
    if (n->is_placeholder() || leave_out[n->id()] ||
        !std::ranges::all_of(inputs_of_n, [&](Node* i) { return known[i->id()] != 0; })) {
      if (!part.missing) part.missing = n;
      continue;
    }
    known[n->id()] = part.computed[n->id()] = 1;
    for (const Node* i : inputs_of_n) part.read[i->id()] = 1;
  }
  return part;
}

/// Copies the part of `joint` that computes `outputs` from `inputs` into a graph of its own. The inputs become its
/// placeholders.
Result<std::unique_ptr<Graph>> cut_out(const Graph& joint, const std::vector<Node*>& inputs,
                                       const std::vector<Arg>& outputs, const std::vector<char>& leave_out) {
  const Part part = part_of(joint, inputs, outputs, leave_out);
  auto graph = std::make_unique<Graph>("GraphModule");
  graph->shapes = joint.shapes;
  std::vector<Node*> copy_of(joint.id_limit(), nullptr);
  for (Node* n : inputs) {
    Node* placeholder = graph->placeholder(n->name(), n->meta);
    if (n->is_placeholder()) placeholder->target = n->target;
    placeholder->note = n->is_placeholder() ? n->note : "";
    placeholder->origin = n->origin;
    copy_of[n->id()] = placeholder;
  }
  for (Node* n : joint) {
    if (!part.computed[n->id()]) continue;
    copy_of[n->id()] = graph->copy_node(*n, [&](Node* i) -> Arg { return copy_of[i->id()]; });
    if (n->is(Op::get_attr())) {
      if (auto it = joint.attributes.find(n->target); it != joint.attributes.end()) graph->attributes.insert(*it);
      if (Graph* child = joint.child(n->target); child && !graph->child(n->target))
        graph->children.emplace_back(n->target, child->clone());
    }
  }
  std::vector<Arg> returned;
  for (const Arg& a : outputs) {
    Node* n = a.node();
    if (n && !copy_of[n->id()])
      return input_error("partition.extract",
                         fmt::format("{} cannot be computed: {} needs a value that is not available", n->name(),
                                     part.missing ? part.missing->name() : n->name()),
                         place_of(*n));
    returned.push_back(n ? Arg(copy_of[n->id()]) : a);
  }
  graph->set_output(Arg::tuple(std::move(returned)));
  return graph;
}

/// Moves recomputed calls just before the backward call that needs them, in the order of the autograd engine, so that
/// their results have short lifetimes.
void bring_near_use(Graph& backward) {
  std::vector<int> order(backward.id_limit(), 0);
  int count = 0;
  for (Node* n : backward) order[n->id()] = count++;
  Node* first_user = nullptr;
  for (Node* n : backward.placeholders())
    if (is_tangent(*n))
      for (Node* user : n->users())
        if (!first_user || order[user->id()] < order[first_user->id()]) first_user = user;
  if (!first_user) return;

  std::vector<Node*> sequence;
  std::vector<char> placed(backward.id_limit(), 0);
  auto place = [&](Node* root) {
    std::vector<Node*> open = {root}, found;
    while (!open.empty()) {
      Node* n = open.back();
      open.pop_back();
      if (placed[n->id()] || n->is_placeholder()) continue;
      placed[n->id()] = 1;
      found.push_back(n);
      for (Node* input : n->inputs()) open.push_back(input);
    }
    std::sort(found.begin(), found.end(), [&](Node* a, Node* b) { return order[a->id()] < order[b->id()]; });
    sequence.insert(sequence.end(), found.begin(), found.end());
  };
  for (Node* n = backward.first(); n != first_user; n = n->next())
    if (cost_class(*n).side_effect) place(n);
  for (Node* n = first_user; n; n = n->next()) place(n);
  for (Node* n : backward)
    if (!n->is_placeholder() && !placed[n->id()]) sequence.push_back(n);
  Node* output = backward.output();
  for (Node* n : sequence)
    if (n != output) backward.move_before(n, output);
}

/// Moves getitems to their tuple, so that the tuple can be freed early.
void raise_getitems(Graph& graph) {
  std::vector<Node*> parts;
  for (Node* n : graph)
    if (n->is(Op::getitem())) parts.push_back(n);
  for (auto it = parts.rbegin(); it != parts.rend(); ++it) {
    Node* tuple = (*it)->args()[0].node();
    if (tuple && tuple->next() != *it && !tuple->is_placeholder()) graph.move_before(*it, tuple->next());
  }
}

/// The symbols in the sizes of a graph's inputs that cannot be told from them, as s0 cannot from s0 % 4.
std::set<std::string> symbols_without_values(const std::vector<Node*>& inputs) {
  std::set<std::string> mentioned;
  for (const Node* n : inputs) mentioned.merge(symbols_of(n->meta));
  const auto tell = [&](SymExpr e) {
    if (const auto solved = solve(e, 0)) mentioned.erase(solved->symbol);
  };
  for (const Node* n : inputs) {
    if (const SymExpr* e = n->meta.sym()) tell(*e);
    if (const TensorMeta* t = n->meta.tensor()) std::ranges::for_each(t->sizes, tell);
  }
  return mentioned;
}

}  // namespace

Result<Partition> extract(const Graph& joint, const JointParts& parts, const std::vector<Node*>& saved,
                          const std::vector<const char*>& why, bool reorder_backward) {
  std::vector<Node*> tensors, numbers;
  std::vector<const char*> reason(joint.id_limit(), "sizes of the backward's inputs");
  for (std::size_t i = 0; i < saved.size(); ++i) {
    (saved[i]->meta.sym() ? numbers : tensors).push_back(saved[i]);
    reason[saved[i]->id()] = why[i];
  }
  auto joined = [](std::initializer_list<std::vector<Node*>> lists) {
    std::vector<Node*> all;
    for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  // Calls with an effect that do not depend on a tangent belong to the forward.
  std::vector<char> forward_effect(joint.id_limit(), 0), nothing(joint.id_limit(), 0);
  for (Node* n : joint) forward_effect[n->id()] = cost_class(*n).side_effect && !parts.on_tangents[n->id()];
  std::vector<char> backward_part(parts.on_tangents);

  const Part backward = part_of(joint, joined({numbers, tensors, parts.tangents}), parts.gradients, forward_effect);
  auto unread = [&](Node* n) { return !backward.read[n->id()]; };
  std::erase_if(tensors, unread);
  std::erase_if(numbers, unread);

  // Saved symbols come first, then numbers computed from them.
  std::map<std::string, Node*> binding;
  for (Node* n : parts.primals)
    if (auto* e = n->meta.sym(); e && e->kind() == SymKind::Symbol) binding.emplace(e->name(), n);
  std::vector<Node*> bound, derived;
  std::set<std::string> known;
  for (Node* n : numbers) {
    auto it = n->meta.sym()->kind() == SymKind::Symbol ? binding.find(n->meta.sym()->name()) : binding.end();
    if (it != binding.end() && it->second == n) {
      bound.push_back(n);
      known.insert(n->meta.sym()->name());
    } else {
      derived.push_back(n);
    }
  }
  for (Node* n : joined({derived, tensors, parts.tangents})) {
    for (const std::string& s : symbols_of(n->meta))
      if (auto it = binding.find(s); it != binding.end() && known.insert(s).second) bound.push_back(it->second);
  }
  numbers = joined({bound, derived});
  std::ranges::stable_partition(tensors, [](const Node* n) { return !is_opaque(*n); });  // as PyTorch does
  std::set<std::string> unknown = symbols_without_values(joined({numbers, tensors, parts.tangents}));
  for (Node* n : joint) {
    const SymExpr* e = unknown.empty() || parts.backward(n) ? nullptr : n->meta.sym();
    if (e && e->kind() == SymKind::Symbol && unknown.erase(e->name()) > 0) numbers.push_back(n);
  }

  Partition p;
  p.forward_outputs = parts.forward_outputs.size();
  p.gradient_of = parts.gradient_of;
  std::vector<Arg> returned = parts.forward_outputs;
  for (Node* n : joined({tensors, numbers})) {
    returned.push_back(n);
    SavedValue value{n->name(), bytes_of(*n), n->is_placeholder(), n->meta.sym() != nullptr, reason[n->id()]};
    if (!value.is_symbol) (value.is_input ? p.input_bytes : p.activation_bytes) += value.bytes;
    p.saved.push_back(std::move(value));
  }
  p.saved_symbols = numbers.size();
  TRY(p.forward, cut_out(joint, parts.primals, returned, backward_part));
  TRY(p.backward, cut_out(joint, joined({numbers, tensors, parts.tangents}), parts.gradients, forward_effect));
  if (reorder_backward) bring_near_use(*p.backward);
  raise_getitems(*p.forward);
  raise_getitems(*p.backward);
  note_recomputed(p);
  return p;
}

void note_recomputed(Partition& p) {
  for (const Node* n : *p.backward) {
    const Node* first = n->op()->is_call() ? p.forward->find(n->name()) : nullptr;
    if (!first || first->op() != n->op()) continue;
    p.recomputed.push_back(n->name());
    p.recomputed_operations = p.recomputed_operations + symbolic_operations_of(*n);
  }
}

}  // namespace partita
