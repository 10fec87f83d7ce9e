#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/loops/lower.h"
#include "core/ops/schema/schema.h"
#include "core/schedule/plan.h"

namespace partita::schedule {

/// The origin of a Memory definition's memory.
struct Source {
  PlanBuffer::Kind kind = PlanBuffer::Kind::Input;  ///< Temporary: result of an extern call
  int index = 0;                                    ///< Input: placeholder; Temporary: index into LoweredGraph::externs
  std::string attribute;                            ///< Constant
};

/// A call that is not lowered to loops.
struct ExternNode {
  const Node* node = nullptr;
  Args args;                 ///< in schema order
  std::vector<int> results;  ///< Memory definitions; -1 for a result that is None
  bool any_strides = false;  ///< accepts any strides: GEMM, sort; not as_strided
  bool fuses = false;        ///< a library routine of the target, which can do pointwise work on its one result
  std::shared_ptr<const Graph> graph = {};  ///< of a call of sub graphs, see ExternCall
  std::vector<std::int64_t> around = {};    ///< see ExternCall
  int narrow = -1;                          ///< see ExternCall
};

/// A graph as definitions and calls, and what must end up in memory.
struct LoweredGraph {
  std::shared_ptr<const Graph> graph;  ///< without symbols, unless sizes are kept symbolic
  loops::Lowering lowering;
  std::unordered_map<int, Source> sources;       ///< origins of Memory definitions
  std::unordered_map<int, TensorMeta> promised;  ///< metas of definitions that are results of nodes
  std::unordered_map<int, int> destination;      ///< definition -> the input memory that it overwrites (copy_)
  std::vector<ExternNode> externs;
  std::vector<Meta> outputs;  ///< the metas of what forward returns; layouts that are preferred within change no output
  std::unordered_map<const Node*, std::vector<int>> values;  ///< definitions of a node's results

  std::vector<Guard> guards;  ///< what was decided from the values of symbols while calls were lowered, with the call

  const loops::Target& target() const { return lowering.target(); }
  int value(const Node* node, std::size_t i = 0) const { return values.at(node).at(i); }
};

/// Calls f on the tensors that a call takes, in order, repeats included; not on symbolic numbers.
void for_each_tensor(const LoweredGraph& g, const ExternNode& call, const std::function<void(Node*)>& f);

/// `sizes` gives symbols values, see specialise(). If `symbolic`, sizes stay expressions, and the values are hints: the
/// graph's ShapeEnv then has a guard for each decision that depends on them.
Result<LoweredGraph> lower_graph(const Graph& graph, const std::map<std::string, std::int64_t>& sizes,
                                 const loops::Target& target, bool symbolic = false);

}  // namespace partita::schedule
