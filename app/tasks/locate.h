#pragma once
// Which kernel of PyTorch's inductor is wrong, for each graph of a program.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/tasks/run_artefact.h"

namespace partita {

/// A buffer that inductor's code leaves wrong.
struct WrongBuffer {
  std::string kernel, buffer;
  std::string node;                   ///< whose value it is to be, after inductor's passes
  std::string what;                   ///< in words: "errors beyond rounding"
  std::int64_t wrong = 0, total = 0;  ///< elements
  double ratio = NAN;                 ///< of its error to eager's, both against double; NaN: not measured
  std::string first;                  ///< "[0, 3]: 0.5 in place of 0.25", the first wrong elements
};

/// How a node of the given graph fared in inductor's code.
struct JudgedNode {
  std::string node, kernel;
  bool wrong = false;
  double error = 0;  ///< largest absolute difference to double, NaN where NaNs or infinities differ
};

/// What was found in a graph, "forward" or "backward".
struct Located {
  std::string graph;
  nlohmann::json report;  ///< as codegen/torch/worker/locating/report.py describes it

  std::string verdict() const;  ///< "clean", "kernel", "memory", "stage", "layout", "wrapper", "exception", "unsure"
  bool clean() const { return verdict() == "clean"; }
  /// The nodes of the given graph that the wrong node comes from; empty: none is named.
  std::vector<std::string> given_nodes() const;
  std::string headline() const;   ///< what is wrong
  std::string certainty() const;  ///< how sure that is, and why not more; empty when nothing is wrong
  /// What speaks for it: "node", "at", "taken apart", each with a text.
  std::vector<std::pair<std::string, std::string>> facts() const;
  std::vector<WrongBuffer> wrong_buffers() const;
  std::vector<JudgedNode> judged_nodes() const;
  std::string kernel_name() const;  ///< of the wrong kernel; empty: none is named
  std::string kernel_code() const;  ///< its definition in inductor's output
  /// All of it as text.
  std::vector<std::string> lines() const;
};

/// Runs the program as `run` does, with PyTorch's eager kernels, and has each graph that inductor would get searched on
/// the inputs that it gets. `against`: torch:inductor[+KEY=VALUE...]; `switches`: see torch::locate(), whose errors it
/// has, and those of a run.
Result<std::vector<Located>> locate(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                    const std::string& against, bool switches = false);

/// What the window asks.
struct LocateRequest {
  std::string against = "torch:inductor";
  std::string inputs;  ///< path of an IO file; empty: the archive's samples, else made up
  bool train = false, switches = false;
};
Result<std::vector<Located>> asked_locate(const Artefact& artefact, const LocateRequest& asked,
                                          const Progress& progress);

/// {"found": true, "graphs": [...]}
nlohmann::ordered_json to_json(const std::vector<Located>& found);

}  // namespace partita
