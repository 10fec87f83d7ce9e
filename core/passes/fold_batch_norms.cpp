// Puts a batch norm in evaluation into the weight and bias of the convolution before it, where all of them keep their
// values between runs: what is made of them becomes part of the constants graph, which runs once. Scales are computed
// in double and rounded once.
#include "core/ir/place.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/call.h"
#include "core/ops/record/record.h"
#include "core/passes/channel_affine.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

class BatchNormFolder {
 public:
  BatchNormFolder(Graph& graph, PassContext& context) : graph_(graph), context_(context), aliases_(graph) {}

  Result<bool> run() {
    bool changed = false;
    for (Node* node : graph_) {
      TRY(const bool folded, fold(*node));
      changed |= folded;
    }
    if (changed) graph_.eliminate_dead(has_effect);
    return changed;
  }

 private:
  using Names = std::vector<std::pair<std::string, Arg>>;

  /// None, or a fixed vector of this dtype.
  bool is_parameter(const Arg& arg, DType dtype) const {
    if (arg.is_none()) return true;
    const TensorMeta* t = arg.node() && is_fixed(*arg.node()) ? arg.node()->meta.tensor() : nullptr;
    return t && t->dim() == 1 && t->dtype == dtype;
  }
  bool is_fixed(const Node& node) const {
    return node.is_placeholder() && context_.fixed.contains(node.name()) && !aliases_.mutated(node);
  }

  Result<bool> fold(Node& node) {
    const OpRecord* record = node.op()->is_call() ? find_record(node.op()) : nullptr;
    const TensorMeta* meta = node.meta.tensor();
    if (!record || record->library != LibraryRoutine::Convolution || !meta || meta->dim() < 2) return false;
    const DType dtype = meta->dtype;
    Args args = bound_arguments(node);
    const auto norm = batch_norm_of(node);
    if (args.size() != 9 || !norm || (dtype != DType::Float32 && dtype != DType::Float64)) return false;
    const Node* weight = args[1].node();
    const auto* transposed = args[6].get<bool>();
    if (!transposed || *transposed || !weight || !is_fixed(*weight) || !weight->meta.tensor() ||
        weight->meta.tensor()->dtype != dtype || norm->mean.is_none() || norm->var.is_none())
      return false;
    for (const Arg& arg : {args[2], norm->weight, norm->bias, norm->mean, norm->var})
      if (!is_parameter(arg, dtype)) return false;
    if (!as_number(norm->eps)) return false;  // a number that the graph computes may come after the convolution
    if (!may_stand_for(node, *norm->result, aliases_) || !context_.may_rewrite("into weights", node)) return false;

    const std::size_t first_new = graph_.id_limit();
    TRY_DO(catch_raised_at<void>(node, [&]() -> Status {
      const Names names = {{"w", args[1]},       {"b", args[2]},        {"gamma", norm->weight},
                           {"beta", norm->bias}, {"mean", norm->mean},  {"var", norm->var},
                           {"eps", norm->eps},   {"dtype", Arg(dtype)}, {"wide", Arg(DType::Float64)}};
      Builder build(graph_, &node, node.origin);
      const auto made = [&](std::string_view text, const Names& more = {}) {
        Names all = names;
        all.insert(all.end(), more.begin(), more.end());
        return build.expression(text, all);
      };
      const Arg spread = made("rsqrt(_to_copy(var, dtype=wide) + eps)");
      const Arg scale = made("spread if gamma is None else _to_copy(gamma, dtype=wide) * spread", {{"spread", spread}});
      const Arg shift = made(
          "-_to_copy(mean, dtype=wide) * scale if b is None else "
          "(_to_copy(b, dtype=wide) - _to_copy(mean, dtype=wide)) * scale",
          {{"scale", scale}});
      Args column(weight->meta.tensor()->dim(), Arg(std::int64_t{1}));
      column[0] = Arg(std::int64_t{-1});
      args[1] = made("_to_copy(_to_copy(w, dtype=wide) * view(scale, column), dtype=dtype)",
                     {{"scale", scale}, {"column", Arg::list(std::move(column))}});
      args[2] = made("_to_copy(shift if beta is None else shift + _to_copy(beta, dtype=wide), dtype=dtype)",
                     {{"shift", shift}});
      return {};
    }));
    std::vector<Node*> made;
    for (Node* n = node.previous(); n && n->id() >= first_new; n = n->previous()) made.push_back(n);
    for (auto n = made.rbegin(); n != made.rend(); ++n) aliases_.add(**n);
    node.set_args(std::move(args), {});
    norm->result->replace_all_uses_with(&node);
    return true;
  }

  Graph& graph_;
  PassContext& context_;
  Aliases aliases_;
};

}  // namespace

Result<bool> fold_batch_norms(Graph& graph, PassContext& context) {
  return BatchNormFolder(graph, context).run();
}

}  // namespace partita
