#pragma once
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

/// The pointwise work of a group, done by the call that makes its main input while that is still in cache.
struct Epilogue {
  std::shared_ptr<loops::ScalarBuilder> body;  ///< input 0: an element of the call's result
  loops::Scalar value;
  std::vector<StridedView> inputs;        ///< inputs of slots 1, 2, ..., over the result's sizes
  int result = -1;                        ///< the definition that the call now writes, in the sizes of its own result
  int call = -1;                          ///< index into LoweredGraph::externs
  std::vector<std::string> origins = {};  ///< graph nodes that it computes, in order; sources of scalars count it
};

struct Epilogues {
  std::vector<std::optional<Epilogue>> of;  ///< by group
  /// By group and by unit of a call whose result it reads: why the call does not do the group's work.
  std::map<std::pair<std::size_t, int>, Apart> apart;
};

/// For each group, the call that can take over its work. The group's only stored member must be elementwise work on the
/// result of a GEMM or convolution that nothing else reads.
Epilogues find_epilogues(const LoweredGraph& g, const Stages& stages, const std::vector<Group>& groups);

}  // namespace partita::schedule
