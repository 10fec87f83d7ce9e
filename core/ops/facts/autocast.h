#pragma once
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/facts/control.h"
#include "core/ops/schema/schema.h"

namespace partita {

/// How autocast on the CPU casts an operator's floating arguments, in PyTorch's words: "lower_precision_fp", "fp32",
/// "promote"; empty: it leaves them.
std::string_view autocast_policy(const Schema& schema);

/// The autocast regions around a place in a graph, and what they do to calls there, by PyTorch's lists for the CPU.
class AutocastRegions {
 public:
  /// Begins or ends a region: a call for which is_autocast() holds. An end is erased with its beginning; a beginning
  /// stays until then. Returns the node after it. Errors ops.autocast.
  Result<Node*> follow(Node* node);
  /// Casts the call's floating arguments as its list says, in calls before it, and infers its meta anew, which may
  /// change the metas of calls that read it, too. Nothing outside of regions, and in calls made for one that was cast:
  /// PyTorch switches autocast off inside of it.
  Status cast_arguments(Node& call);
  /// Is this a composite in a region that casts the parts, not the whole?
  bool casts_parts(const Node& call) const;
  /// Sub graphs that the call runs lie in the region that it lies in: makes them begin and end it themselves.
  void enter_sub_graphs(const Node& call);
  /// Says that the calls from `made` up to `call`, which is erased next, take its place.
  void replaced(const Node& call, const Node* made);

 private:
  struct Region {
    const Node* begin = nullptr;
    bool enabled = false;
    DType dtype = DType::BFloat16;
    bool caches = true;
  };
  bool enabled() const { return !regions_.empty() && regions_.back().enabled; }
  Status follow_dtypes(Node& call);
  Status enter_attention(Node& call);

  std::vector<Region> regions_;
  std::unordered_set<const Graph*> entered_;
  std::map<std::pair<const Node*, DType>, Node*> cached_;  ///< casts of leaves, which all calls in the regions share
  std::unordered_set<const Node*> done_;                   ///< calls of the lists, and those made for them
  std::unordered_set<const Node*> changed_;                ///< calls whose casts changed the dtype of their results
};

/// Copies the calls of a sub graph before `before`, in `call`'s graph and over these operands, and returns its result
/// or the list of them. Error ops.region.
Result<Arg> copy_body(const Node& call, const Graph& body, const std::vector<Arg>& operands, Node* before);
/// torch.export keeps regions (no_grad, autocast) as calls of sub graphs. Puts the body of one between a beginning and
/// an end of the region, and returns the first of them. `begin`: the beginning, null when there is none. Error
/// ops.region.
Result<Node*> inline_region(Node* call, Node* begin, const std::vector<Arg>& operands, const Graph& body);
/// Inlines the sub graph of a wrapper that means nothing to the values within: wrap, invoke_subgraph, and checkpoints,
/// whose calls are marked to be recomputed in the backward. Returns the first node that takes its place.
Result<Node*> inline_wrapper(Node* call, const ControlOp& op);
/// Inlines wrap_with_autocast. Returns the first node that takes its place.
Result<Node*> inline_autocast(Node* call);

}  // namespace partita
