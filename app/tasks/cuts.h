#pragma once
// PyTorch's cut of a training step, from the graphs that it left, and ours of the same program.
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/tasks/kernels.h"
#include "core/aot/aot.h"
#include "core/load/records.h"
#include "core/partition/read_cut.h"

namespace partita {

/// Two named cuts of one program; a cut may be missing.
struct Cuts {
  std::optional<Partition> theirs;    ///< as PyTorch's graphs have it
  std::optional<Partition> ours;      ///< of the joint graph beside them, as `run` makes it
  std::optional<Diagnostic> no_ours;  ///< why there is none where there is a joint graph
  std::vector<CutDifference> values;  ///< of both; of the only one
  std::optional<double> budget;       ///< PyTorch's, where the log tells
  /// PyTorch saved what the default partitioner saves, and min-cut would not. No log says which one it was.
  bool by_default_partitioner = false;
};
/// Error query.cut where neither forward and backward nor a joint graph is there.
Result<Cuts> read_cuts(const StepGraphs& graphs);

/// What a step holds, each cut as our compiler runs it.
struct CutMemory {
  std::optional<StepMemory> theirs;  ///< of a training step whose forward and backward PyTorch left
  std::optional<StepMemory> ours;    ///< unset for a graph that PyTorch cut, unless the request trains it
};
Result<CutMemory> cut_memory(const Loaded& loaded, const Artefact& artefact, const RunRequest& request);

/// "12 values: 24576 bytes of activations, 29056 bytes of inputs; 23 calls computed again".
std::string summary(const Partition& cut);
nlohmann::ordered_json saved_json(const Partition& cut);
nlohmann::ordered_json to_json(const Cuts& cuts);

}  // namespace partita
