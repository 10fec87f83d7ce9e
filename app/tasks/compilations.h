#pragma once
// The compilations of a log or a folder: which graphs are one program's, and which of them it begins with.
#include <string>
#include <vector>

#include "core/load/session.h"

namespace partita {

/// One program and what PyTorch made of it.
struct CompilationGraphs {
  /// A graph that PyTorch made of the first; with a forward goes its backward.
  struct Stage {
    std::string role;  ///< "pre-grad passes", "joint graph", "inference graph", "forward", "post-grad passes"
    const Artefact* graph = nullptr;
    const Artefact* backward = nullptr;  ///< may be null
  };
  const Artefact* start =
      nullptr;                ///< the earliest graph, which is given inputs: dynamo's or the exported one if there
  std::vector<Stage> stages;  ///< in the order of the compilation, without the first
  bool train = false;         ///< PyTorch made a backward of it

  bool begins_with_program() const;  ///< autograd is still to come
};

/// Those of a file, a log or a folder, in its order. Where a group has no graph of a whole program, each of its graphs
/// that inductor gets is one.
std::vector<CompilationGraphs> compilations_of(const Loaded& loaded);

}  // namespace partita
