#pragma once
// What was found in a graph that inductor compiled, and how it is said.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

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

/// What was found in a graph, "forward" or "backward", or in the "stages" before inductor.
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

nlohmann::ordered_json to_json(const Located& located);

}  // namespace partita
