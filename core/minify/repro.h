#pragma once
// Writes a folder to attach to a bug report.
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/minify/candidate.h"
#include "core/minify/reduce_graph.h"
#include "core/tensor/value.h"

namespace partita::minify {

/// Writes graph.py (FX text without source lines), inputs.safetensors (input.N, constant.NAME) and, if every input is a
/// tensor or a number, graph.input (the pickle for torch._functorch's get_inputs).
Status write_case(const Candidate& candidate, const std::string& folder);

/// The cause, as far as it was found. Empty fields: unknown.
struct Culprit {
  std::string pass;    ///< the first pass after which it fails; "none" if it fails without any
  std::string kernel;  ///< the step of the plan: "kernel 0 (tanh)" or "aten.mm.default (mm)"
  std::string detail;  ///< the kernel's loops, as text
};

struct ReproText {
  std::string check;    ///< "accuracy:cpu"
  std::string again;    ///< command that repeats the failure, run in the folder
  std::string version;  ///< "partita 0.1.0"
  double tolerance = 1e-3;
  Culprit culprit;
  std::string config;  ///< lines of what is not at its default; empty: nothing
  /// What repro.py asks PyTorch for: the backend, inductor's settings, and modules of the user that it imports.
  std::string backend = "inductor";
  bool inference = true;  ///< inductor's is_inference
  std::map<std::string, std::string> settings = {};
  std::vector<std::string> imports = {};
  std::string with_meanings = {};  ///< what `again` needs to read operators_folder, where it is a command of Partita's
};

/// The folder, in the one that write_repro() writes, with the meanings of the graph's operators of the user's own.
constexpr const char* operators_folder = "operators";

/// Calls write_case() and writes repro.py, which runs the graph in PyTorch, README.md and, if something is not at its
/// default, partita.config, and operators_folder if there are such operators. They hold only the graph's
/// own data: no paths, no source lines, nothing about the machine.
Status write_repro(const MinifyResult& reduced, const std::string& folder, ReproText text);

/// Keeps the smallest failing graph so far in the folder while a minification runs, so that one that is stopped, in
/// whatever way, leaves what it found. Writes no more than a second and a tenth of the time. Of the start itself, which
/// the user has, only README.md is written. Says in one line on stderr when it cannot write, and then writes no more.
class SmallestSoFar {
 public:
  /// `check`: as ReproText has it.
  SmallestSoFar(std::string folder, std::string check);

  /// Keeps a smaller graph that fails; writes it when it is time.
  void take(const Candidate& candidate, const Failure& failure);
  void write_what_waits();  ///< to be called now and then

 private:
  Status write(const Candidate& candidate) const;
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }

  const std::string folder_, check_;
  const std::chrono::steady_clock::time_point begun_;
  std::optional<Candidate> waiting_;
  bool is_start_ = false;  ///< what waits, or was written last
  Failure failure_;
  std::size_t start_calls_ = 0, calls_ = 0;  ///< of the start, and of the smallest
  double spent_ = 0;                         ///< seconds
  bool given_up_ = false;
};

/// A Python script around the FX text of a graph whose class is GraphModule. It reads inputs.safetensors beside it,
/// runs the graph eagerly and by the backend that `text` names or `--backend NAME` or `--backend FILE.py:FUNCTION`, and
/// compares the results as PyTorch's accuracy minifier does. A graph of ATen calls goes to inductor as AOTAutograd
/// would hand it over, with the graph's symbols. Exit code 0 when they agree, 1 when not.
std::string repro_script(const Graph& graph, const std::vector<Value>& inputs, const ReproText& text);

}  // namespace partita::minify
