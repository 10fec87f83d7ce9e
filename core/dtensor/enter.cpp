// Node by node: inputs that are DTensors become the rank's own tensors, calls of torch.distributed.tensor become those
// of the library _dtensor, and all else is copied.
#include "core/dtensor/enter.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/dtensor/calls.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"

namespace partita {
namespace {

Arg numbers(const SymList& list) {
  std::vector<Arg> items;
  for (const SymExpr& e : list) items.emplace_back(e.as_int());
  return Arg::list(std::move(items));
}

/// As torch/distributed/tensor/_api.py has it: gradients are not partial unless the user wants them so.
Placements of_gradient(Placements placements) {
  for (Placement& p : placements)
    if (p.is_partial()) p = Placement();
  return placements;
}

class Entrance {
 public:
  Entrance(const Graph& graph, const Mesh& mesh) : graph_(graph), mesh_(mesh), mesh_text_(text(mesh)) {
    out_ = without_nodes(graph);
  }

  Result<std::unique_ptr<Graph>> run() {
    for (const auto& [target, child] : graph_.children)
      if (has_dtensors(*child))
        return unsupported("dtensor.region", "DTensors in a sub graph (checkpoint, cond) are not followed",
                           {.graph = target});
    for (const Node* node : graph_.placeholders()) TRY_DO(placeholder(*node));
    enter_inputs();
    for (const Node* node : graph_) {
      if (node->is_placeholder() || placement_call(*node) != PlacementCall::None) continue;
      TRY_DO(node->is_output() ? output(*node) : call(*node));
    }
    return std::move(out_);
  }

 private:
  Diagnostic refused(const Node& node, std::string what) const {
    return unsupported("dtensor.call", std::move(what), place_of(node));
  }

  Status placeholder(const Node& node) {
    auto whole = dtensor_meta(node.meta);
    if (!whole) return at_node(std::move(whole).error(), node);
    Node* made = out_->copy_node(node, [](Node* n) { return Arg(n); });
    copies_[&node] = made;
    if (!*whole) return {};
    made->meta = local_meta((*whole)->whole, (*whole)->placements, mesh_);
    inputs_.emplace_back(&node, **whole);
    return {};
  }

  /// After all placeholders.
  void enter_inputs() {
    for (const auto& [node, whole] : inputs_) {
      Node* local = copies_.at(node);
      Node* made = out_->create(from_local_op(), {local, mesh_text_, text(whole.placements), numbers(whole.whole.sizes),
                                                  numbers(whole.whole.strides), std::string()});
      made->meta = whole.whole;
      copies_[node] = made;
      placed_[made] = whole;
    }
  }

  Status call(const Node& node) {
    if (is_from_local(node)) return from_local(node);
    for (const char* method : {"redistribute", "to_local", "full_tensor"})
      if (is_method_of_dtensor(node, method)) return convert(node, method);
    Node* made = copy(node);
    auto whole = dtensor_meta(node.meta);
    if (!whole) return at_node(std::move(whole).error(), node);
    if (!*whole) return {};
    made->meta = (*whole)->whole;
    Node* placed = create(node, placed_op(), {made, mesh_text_, text((*whole)->placements)});
    placed->meta = made->meta;
    give(node, placed, **whole);
    return {};
  }

  Result<Placements> read_placements(const Node& node, const Arg& arg, std::size_t dims) const {
    const auto* list = arg.get<ArgList>();
    if (!list || list->items.size() != mesh_.dims())
      return refused(node, "its placements are not a list of one for each mesh dimension");
    Placements out;
    for (const Arg& item : list->items) TRY_DO(assign(out.emplace_back(), read_placement(node, item, dims)));
    return out;
  }

  Result<Placement> read_placement(const Node& node, const Arg& item, std::size_t dims) const {
    const Node* made = item.node();
    const PlacementCall kind = made ? placement_call(*made) : PlacementCall::None;
    if (kind == PlacementCall::None) return refused(node, "a placement is none of Shard, Replicate and Partial");
    const Arg* argument = made->args().empty() ? nullptr : &made->args()[0];
    for (const char* key : {"dim", "reduce_op"})
      if (const Arg* given = made->kwarg(key)) argument = given;
    if (kind == PlacementCall::Replicate) return Placement();
    if (kind == PlacementCall::Partial) {
      const auto* reduce = argument ? argument->get<std::string>() : nullptr;
      return Placement::partial(reduce ? *reduce : "sum");
    }
    const auto* dim = argument ? argument->get<std::int64_t>() : nullptr;
    if (!dim) return refused(node, "a Shard does not say its dimension as a number");
    const auto n = static_cast<std::int64_t>(dims);
    if (*dim < -n || *dim >= n) return refused(node, fmt::format("there is no dimension {} to shard", *dim));
    return Placement::shard(static_cast<int>(*dim < 0 ? *dim + n : *dim));
  }

  /// The argument by its place or its key; null: not given.
  static const Arg* argument(const Node& node, std::size_t place, std::string_view key) {
    if (const Arg* given = node.kwarg(key)) return given;
    return place < node.args().size() ? &node.args()[place] : nullptr;
  }
  static bool is_given(const Arg* arg) { return arg && !arg->is_none(); }

  /// from_local(input, mesh, placements, run_check, shape, stride, grad_placements)
  Status from_local(const Node& node) {
    auto whole = dtensor_meta(node.meta);
    if (!whole) return at_node(std::move(whole).error(), node);
    if (!*whole) return refused(node, "the text does not print the sizes and placements of its result");
    const Node* input = node.args().empty() ? nullptr : node.args()[0].node();
    if (!input || !input->meta.tensor()) return refused(node, "its argument is no tensor");
    if (const Arg* check = argument(node, 3, "run_check"); check && check->get<bool>() && *check->get<bool>())
      return refused(node, "run_check sends the first rank's tensor to all others, which is not followed");
    const Arg* given = argument(node, 2, "placements");
    if (is_given(given)) {
      TRY(const Placements placements, read_placements(node, *given, (*whole)->whole.dim()));
      if (placements != (*whole)->placements)
        return refused(node, fmt::format("its placements {} are not those of its annotation, {}", text(placements),
                                         text((*whole)->placements)));
    }
    Placements back = of_gradient((*whole)->placements);
    if (const Arg* wanted = argument(node, 6, "grad_placements"); is_given(wanted))
      TRY_DO(assign(back, read_placements(node, *wanted, (*whole)->whole.dim())));
    TRY_DO(check_local(node, *input->meta.tensor(), **whole));
    const DTensorMeta& meta = **whole;
    Node* made = create(node, from_local_op(),
                        {copies_.at(input), mesh_text_, text(meta.placements), numbers(meta.whole.sizes),
                         numbers(meta.whole.strides), text(back)});
    made->meta = meta.whole;
    give(node, made, meta);
    return {};
  }

  /// The sizes that the text prints for this rank's tensor must be those of its place in the mesh.
  Status check_local(const Node& node, const TensorMeta& local, const DTensorMeta& whole) const {
    const TensorMeta expected = local_meta(whole.whole, whole.placements, mesh_);
    if (local.sizes == expected.sizes) return {};
    return input_error("dtensor.mesh",
                       fmt::format("rank {} of a mesh of {} has {} of a tensor of {} that is placed {}, but the text "
                                   "has {}; it is another rank's, or the mesh is another",
                                   mesh_.rank, text(mesh_).substr(0, text(mesh_).find('@')), join(expected.sizes),
                                   join(whole.whole.sizes), text(whole.placements), join(local.sizes)),
                       place_of(node));
  }

  /// redistribute, to_local and full_tensor.
  Status convert(const Node& node, const std::string& method) {
    for (const char* key : {"forward_dtype", "backward_dtype", "shard_order"})
      if (is_given(node.kwarg(key))) return refused(node, fmt::format("{} with {} is not followed", method, key));
    Node* self = copies_.at(node.args()[0].node());
    const auto known = placed_.find(self);
    if (known == placed_.end()) return refused(node, "the placements of its argument are not known");
    DTensorMeta whole = known->second;
    const std::size_t dims = whole.whole.dim();
    if (method != "to_local") {
      Placements wanted(mesh_.dims());
      const Arg* given = method == "redistribute" ? argument(node, 2, "placements") : nullptr;
      if (is_given(given)) TRY_DO(assign(wanted, read_placements(node, *given, dims)));
      self = create(node, redistribute_op(), {self, mesh_text_, text(whole.placements), text(wanted), false});
      self->meta = whole.whole;
      whole.placements = std::move(wanted);
      give(node, self, whole);
      if (method == "redistribute") return {};
    }
    Placements back = of_gradient(whole.placements);
    if (const Arg* wanted = node.kwarg("grad_placements"); is_given(wanted)) {
      TRY(back, read_placements(node, *wanted, dims));
    } else if (method == "to_local" && node.args().size() > 1) {
      TRY(back, read_placements(node, node.args()[1], dims));
    }
    if (node.meta.tensor()) TRY_DO(check_local(node, *node.meta.tensor(), whole));
    copies_[&node] = leave(node, self, whole, back);
    return {};
  }

  Node* leave(const Node& at, Node* value, const DTensorMeta& whole, const Placements& back) {
    const TensorMeta local = local_meta(whole.whole, whole.placements, mesh_);
    Node* made =
        create(at, to_local_op(),
               {value, mesh_text_, text(whole.placements), numbers(local.sizes), numbers(local.strides), text(back)});
    made->meta = local;
    return made;
  }

  Status output(const Node& node) {
    std::vector<Arg> results;
    for (const Arg& result : graph_.outputs()) {
      const Node* n = result.node();
      if (!n) {
        results.push_back(result);
        continue;
      }
      Node* made = copies_.at(n);
      if (const auto placed = placed_.find(made); placed != placed_.end())
        made = leave(*n, made, placed->second, of_gradient(placed->second.placements));
      else if (is_dtensor(n->meta))
        return refused(*n, "the placements of a result are not known");
      results.emplace_back(made);
    }
    Node* made = out_->set_output(Arg::tuple(std::move(results)));
    made->origin = node.origin;
    return {};
  }

  Node* copy(const Node& node) {
    Node* made = out_->copy_node(node, [&](Node* n) -> Arg { return copies_.at(n); });
    copies_[&node] = made;
    return made;
  }
  Node* create(const Node& node, const Op* op, Args args) {
    Node* made = out_->create(op, std::move(args), {}, node.name());
    made->origin = node.origin;
    return made;
  }
  void give(const Node& node, Node* made, const DTensorMeta& whole) {
    copies_[&node] = made;
    placed_[made] = whole;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const std::string mesh_text_;
  std::unique_ptr<Graph> out_;
  std::unordered_map<const Node*, Node*> copies_;
  std::unordered_map<const Node*, DTensorMeta> placed_;  ///< of whole tensors
  std::vector<std::pair<const Node*, DTensorMeta>> inputs_;
};

}  // namespace

Result<std::unique_ptr<Graph>> with_local_inputs(const Graph& graph, const Mesh& mesh) {
  return Entrance(graph, mesh).run();
}

}  // namespace partita
