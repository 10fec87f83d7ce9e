// Call by call, in order: the placements of the arguments decide the rule (rules.h), the arguments are brought to what
// it asks for (redistribute.cpp), and the operator is called on the rank's own tensors.
#include "core/dtensor/local.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/dtensor/calls.h"
#include "core/dtensor/choose.h"
#include "core/functionalize/to_aten.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// What stands for a value of the graph of whole tensors.
struct Local {
  Node* node = nullptr;
  std::vector<Placements> placements = {};  ///< of each result; empty: a plain value
  bool whole() const { return !placements.empty(); }
};

class Localizer {
 public:
  explicit Localizer(const Graph& graph) : graph_(graph) { out_ = without_nodes(graph); }

  Result<std::unique_ptr<Graph>> run() {
    for (const Node* node : graph_) {
      if (node->is_output() && has_whole(*node)) return refused(*node, "a DTensor is returned as it is");
      if (!node->op()->is_call() || !(has_whole(*node) || node->is(from_local_op()))) {
        TRY_DO(copy(*node));
        continue;
      }
      TRY(locals_[node], catch_raised_at<Local>(*node, [&] { return local(*node); }));
    }
    out_->eliminate_dead(has_effect);
    return std::move(out_);
  }

 private:
  bool has_whole(const Node& node) const {
    return std::ranges::any_of(node.inputs(), [&](const Node* n) { return locals_.at(n).whole(); });
  }

  /// Copies a node on plain tensors. What comes from a DTensor may lie otherwise than the whole tensor did.
  Status copy(const Node& node) {
    Node* made = out_->copy_node(node, [&](Node* n) -> Arg { return locals_.at(n).node; });
    locals_[&node] = {made};
    const auto lies_as_before = [&](const Node* n) { return same_annotation(n->meta, locals_.at(n).node->meta); };
    if (!node.op()->is_call() || !node.meta.tensor() || std::ranges::all_of(node.inputs(), lies_as_before)) return {};
    TRY(locals_[&node].node, catch_raised_at<Node*>(node, [&] {
          Builder build = builder(node);
          Node* again = call_or_copy(build, node.op(), made->args(), made->kwargs());
          again->note = made->note;
          again->recompute = made->recompute;
          return again;
        }));
    return {};
  }

  /// The call; a view that the strides do not allow is one of a copy.
  static Node* call_or_copy(Builder& build, const Op* op, Args args, Kwargs kwargs) {
    const OpRecord* record = find_record(op);
    if (!record || record->role != Role::OtherSizes) return build.call(op, std::move(args), std::move(kwargs));
    const Args written = args;
    auto made = catch_raised<Node*>([&] { return build.call(op, args, kwargs); });
    if (made) return *made;
    args[0] = build.call("aten.clone.default", {written[0]}, {{"memory_format", MemoryFormat::Contiguous}});
    return build.call(op, std::move(args), std::move(kwargs));
  }

  static Diagnostic refused(const Node& node, std::string why) {
    return unsupported("dtensor.rule", std::move(why), place_of(node));
  }

  Local local(const Node& node) {
    if (node.is(from_local_op())) return entered(node);
    if (node.is(to_local_op())) return left(node);
    if (node.is(redistribute_op())) return moved(node);
    if (node.is(placed_op())) return checked(node);
    if (node.is(Op::getitem())) return item(node);
    return call(node);
  }

  static const std::string& text_argument(const Node& node, std::size_t i) {
    const auto* text = node.args().at(i).get<std::string>();
    if (!text) fail("an argument is no text");
    return *text;
  }
  const Local& input(const Node& node) const { return locals_.at(node.args().at(0).node()); }

  Local entered(const Node& node) {
    const Mesh mesh = unwrap(parse_mesh(text_argument(node, 1)));
    if (mesh_ && !(*mesh_ == mesh)) fail_unsupported("DTensors on two meshes");
    mesh_ = mesh;
    Placements placements = unwrap(parse_placements(text_argument(node, 2)));
    describe(*input(node).node, *node.meta.tensor(), placements);
    return {input(node).node, {std::move(placements)}};
  }

  /// For readers of the local graph: which tensor the node is a part of. What a node is to compilers stays.
  static void describe(Node& local, const TensorMeta& whole, const Placements& placements) {
    if (local.note.empty()) local.note = text(DTensorMeta{whole, placements});
  }

  /// The placements that a text names, or those that the value has where it is empty.
  Local left(const Node& node) {
    const Local& from = input(node);
    if (!from.whole()) fail("its argument is no DTensor");
    const std::string& expected = text_argument(node, 2);
    if (!expected.empty() && text(from.placements[0]) != expected) differ(node, text(from.placements[0]), expected);
    return {from.node};
  }

  [[noreturn]] static void differ(const Node& node, const std::string& ours, const std::string& theirs) {
    throw Raise{
        unsupported("dtensor.differs",
                    fmt::format("{} would be placed {} here, and is {} in PyTorch; its operator is not followed",
                                node.args()[0].node()->name(), ours, theirs),
                    place_of(node))};
  }

  Local checked(const Node& node) {
    const Local& from = input(node);
    if (from.placements.size() != 1) fail("its argument is no DTensor");
    const std::string& expected = text_argument(node, 2);
    if (text(from.placements[0]) != expected) differ(node, text(from.placements[0]), expected);
    return from;
  }

  /// redistribute(input, mesh, previous, placements, backward). A gradient is not made partial.
  Local moved(const Node& node) {
    const Local& from = input(node);
    if (from.placements.size() != 1) fail("its argument is no DTensor");
    Placements to = unwrap(parse_placements(text_argument(node, 3)));
    const bool* backward = node.args().at(4).get<bool>();
    for (std::size_t i = 0; backward && *backward && i < to.size(); ++i)
      if (to[i].is_partial() && !from.placements[0][i].is_partial()) to[i] = Placement();
    Builder build = builder(node);
    const TensorMeta& whole = Builder::tensor(node.args()[0]);
    Node* made = redistribute(build, from.node, whole, from.placements[0], to, *mesh_);
    describe(*made, whole, to);
    return {made, {to}};
  }

  Local item(const Node& node) {
    const Local& from = input(node);
    const auto* index = node.args().at(1).get<std::int64_t>();
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= from.placements.size())
      fail_unsupported("an item of a DTensor");
    Builder build = builder(node);
    return {build.getitem(from.node, *index), {from.placements[static_cast<std::size_t>(*index)]}};
  }

  Builder builder(const Node& node) { return Builder(*out_, nullptr, node.origin); }

  static std::vector<std::optional<TensorMeta>> outputs_of(const Node& node) {
    std::vector<std::optional<TensorMeta>> out;
    const auto add = [&](const Meta& meta) {
      out.push_back(meta.tensor() ? std::optional(*meta.tensor()) : std::nullopt);
    };
    if (const MetaTuple* tuple = node.meta.tuple())
      std::ranges::for_each(tuple->items, add);
    else
      add(node.meta);
    return out;
  }

  /// The placements of an argument. A number, or a tensor of none of the graph's inputs, is the same on all ranks.
  Placements placements_of(const Node& argument) const {
    const Local& own = locals_.at(&argument);
    if (own.placements.size() == 1) return own.placements[0];
    const TensorMeta* meta = argument.meta.tensor();
    if (own.whole() || !meta || (meta->dim() > 0 && !argument.inputs().empty()) ||
        (meta->dim() > 0 && !argument.op()->is_call()))
      fail_unsupported(fmt::format("an operator on DTensors and {}, which is none", argument.name()));
    return Placements(mesh_->dims());
  }

  Local call(const Node& node) {
    const Schema* schema = find_schema(node.op());
    if (!schema) fail_unsupported(fmt::format("{} on DTensors", node.op()->name));
    if (schema->nondeterministic_seeded)
      fail_unsupported(fmt::format("{} on DTensors: PyTorch gives each rank random numbers of its own", schema->name));
    const Args bound = unwrap(bind_arguments(*schema, node.args(), node.kwargs()));
    PlacedCall call(*schema, bound, *graph_.shapes, *mesh_);
    std::vector<Node*> tensors;
    for (const Arg& arg : bound)
      for_each_node(arg, [&](Node* n) {
        tensors.push_back(n);
        call.inputs.push_back({Builder::tensor(n), placements_of(*n)});
      });
    call.outputs = outputs_of(node);
    const PlacedPlan plan = planned(call);
    Builder build = builder(node);
    std::vector<Node*> locals;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      locals.push_back(to_place(build, *tensors[i], call.inputs[i], plan.inputs[i]));
    Node* made = operator_call(build, node, call, plan, locals);
    check_sizes(node, *made, call, plan);
    if (call.outputs.size() == 1 && call.outputs[0]) describe(*made, *call.outputs[0], plan.outputs[0]);
    return {made, plan.outputs};
  }

  PlacedPlan planned(const PlacedCall& call) const {
    for (const PlacedArgument& a : call.inputs)
      if (!concrete(a.whole.sizes)) fail_unsupported("a DTensor of symbolic sizes");
    const OperatorRules rules = rules_of(call.schema);
    if (!rules.list && !rules.decide)
      fail_unsupported(fmt::format("{} on DTensors ({})", call.schema.name, arguments_text(call)));
    PlacedPlan plan = rules.decide ? rules.decide(call) : unwrap(choose(call, rules.list(call), rules.uneven));
    plan.outputs.resize(call.outputs.size(), Placements(mesh_->dims()));
    if (plan.inputs.size() != call.inputs.size())
      fail_unsupported(fmt::format("{} of {} DTensors", call.schema.name, call.inputs.size()));
    return plan;
  }

  static std::string arguments_text(const PlacedCall& call) {
    std::string out;
    for (const PlacedArgument& a : call.inputs) out += (out.empty() ? "" : ", ") + text(a.placements);
    return out;
  }

  /// The local tensor in the placements of the plan. Indices of an embedding with sharded rows stay as they are.
  Node* to_place(Builder& build, const Node& node, const PlacedArgument& own, Placements to) {
    for (std::size_t i = 0; i < to.size(); ++i)
      if (to[i].reduce == masked_rows && own.placements[i].is_replicate()) to[i] = own.placements[i];
    Node* local = locals_.at(&node).node;
    return redistribute(build, local, own.whole, own.placements, to, *mesh_);
  }

  /// The arguments as they are written, with local tensors, and the local sizes of the result where one says them.
  Node* operator_call(Builder& build, const Node& node, const PlacedCall& call, const PlacedPlan& plan,
                      const std::vector<Node*>& locals) {
    std::size_t next = 0;
    Args bound;
    for (const Arg& arg : call.args) bound.push_back(map_nodes(arg, [&](Node*) -> Arg { return locals[next++]; }));
    const OperatorRules rules = rules_of(call.schema);
    if (!rules.sizes.empty() && call.outputs[0]) {
      std::vector<Arg> sizes;
      for (const std::int64_t n : plain_sizes(local_meta(*call.outputs[0], plan.outputs[0], *mesh_)))
        sizes.emplace_back(n);
      bound[static_cast<std::size_t>(call.schema.index_of(rules.sizes))] = Arg::list(std::move(sizes));
    }
    if (Node* other = rules.build ? rules.build(build, call, plan, bound) : nullptr) return other;
    Args args(bound.begin(), bound.begin() + static_cast<std::ptrdiff_t>(node.args().size()));
    Kwargs kwargs;
    for (const auto& [key, value] : node.kwargs())
      kwargs.emplace_back(key, bound[static_cast<std::size_t>(call.schema.index_of(key))]);
    return call_or_copy(build, node.op(), std::move(args), std::move(kwargs));
  }

  /// Operators know nothing of placements, so their results tell whether a rule was the right one.
  void check_sizes(const Node& node, const Node& made, const PlacedCall& call, const PlacedPlan& plan) const {
    const auto found = outputs_of(made);
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      if (!call.outputs[i] || i >= found.size() || !found[i]) continue;
      const TensorMeta expected = local_meta(*call.outputs[i], plan.outputs[i], *mesh_);
      if (found[i]->sizes == expected.sizes) continue;
      throw Raise{refused(
          node, fmt::format("{} on DTensors ({}): a rank's result would have the sizes [{}] and not [{}]",
                            call.schema.name, arguments_text(call), join(found[i]->sizes), join(expected.sizes)))};
    }
  }

  const Graph& graph_;
  std::unique_ptr<Graph> out_;
  std::optional<Mesh> mesh_;
  std::unordered_map<const Node*, Local> locals_;
};

}  // namespace

Result<std::unique_ptr<Graph>> on_local_tensors(const Graph& graph) {
  return Localizer(graph).run();
}

Status refuse_writes(const Graph& graph) {
  // What torch-level calls write is seen once they are ATen's.
  TRY(const AtenGraph aten, to_aten(graph));
  const auto becomes_dtensor = [](const Node* user) { return user->is(from_local_op()); };
  for (const Node* node : *aten.graph)
    for (const Node* written : written_by(*node)) {
      const Node* memory = memory_owner(static_cast<const Node*>(written));
      if (memory->is_placeholder() && std::ranges::none_of(memory->users(), becomes_dtensor)) continue;
      return unsupported(
          "dtensor.write",
          fmt::format("{} writes to its argument, which is not followed in a graph of DTensors", node->op()->brief()),
          place_of(*node));
    }
  return {};
}

}  // namespace partita
