#pragma once
// What PyTorch's inductor does wrong with the graphs of a file, a log or a folder.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/tasks/compilations.h"
#include "app/tasks/located.h"
#include "app/tasks/run_artefact.h"

namespace partita {

/// What was found in one compilation, the stages first where it begins with dynamo's graph.
struct LocatedCompilation {
  std::string name;  ///< the id of the graph that it begins with
  std::vector<Located> graphs;
  std::string left_out;  ///< why it was not searched; else empty

  bool clean() const;
};

/// Has PyTorch compile a graph and searches what inductor makes of it. Of dynamo's graph, or an exported one, PyTorch
/// makes the graphs itself, and the stages are compared first. With request.train a graph of ATen calls is
/// made into a forward and a backward by Partita. `against`: torch:inductor[+KEY=VALUE...]; without options, a recorded
/// graph is compiled with those that the program set; `switches`: see torch::locate(), whose errors it has, those of a
/// run, and locate.inputs when the inputs are another graph's.
Result<std::vector<Located>> locate(const CompilationGraphs& compilation, const TensorFile& io,
                                    const RunRequest& request, const std::string& against, bool switches = false);
Result<std::vector<Located>> locate(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                    const std::string& against, bool switches = false);

/// All compilations of a log or a folder, one after another in one Python process, each on the values that read_io()
/// gives it. The error of one does not end the
/// others: it is left out with that reason. Errors: Fault::Cancelled; torch.start; backend.unknown.
Result<std::vector<LocatedCompilation>> locate_all(const std::vector<CompilationGraphs>& compilations,
                                                   const RunRequest& request, const std::string& against,
                                                   bool switches = false);

/// What the window asks.
struct LocateRequest {
  std::string against = "torch:inductor";
  std::string inputs;  ///< path of an IO file; empty: the archive's samples, else made up
  bool train = false, switches = false;
};
Result<std::vector<Located>> asked_locate(const Artefact& artefact, const LocateRequest& asked,
                                          const Progress& progress);

/// {"found": true, "graphs": [...], "left_out": [{"compilation": ID, "reason": TEXT}]}
nlohmann::ordered_json to_json(const std::vector<LocatedCompilation>& found);

}  // namespace partita
