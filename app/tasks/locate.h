#pragma once
// Which kernel of PyTorch's inductor is wrong, for each graph of a program.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/tasks/run_artefact.h"

namespace partita {

/// What was found in a graph, "forward" or "backward".
struct Located {
  std::string graph;
  nlohmann::json report;  ///< as codegen/torch/worker/locating/report.py describes it

  std::string verdict() const;  ///< "clean", "kernel", "memory", "stage", "layout", "wrapper", "exception", "unsure"
  bool clean() const { return verdict() == "clean"; }
  /// The nodes of the given graph that the wrong node comes from; empty: none is named.
  std::vector<std::string> given_nodes() const;
  /// What is wrong and how sure that is, then what speaks for it.
  std::vector<std::string> lines() const;
};

/// Runs the program as `run` does, with PyTorch's eager kernels, and has each graph that inductor would get searched on
/// the inputs that it gets. `against`: torch:inductor[+KEY=VALUE...]; `switches`: see torch::locate(), whose errors it
/// has, and those of a run.
Result<std::vector<Located>> locate(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                    const std::string& against, bool switches = false);

/// {"found": true, "graphs": [...]}
nlohmann::ordered_json to_json(const std::vector<Located>& found);

}  // namespace partita
