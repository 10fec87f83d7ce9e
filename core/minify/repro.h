#pragma once
// What is handed on: a folder to paste into a bug report.
#include <string>

#include "core/minify/candidate.h"
#include "core/minify/reduce.h"

namespace partita::minify {

/// graph.py (FX text without source lines), inputs.safetensors (input.N, constant.NAME) and, when every input is a
/// tensor or a number, graph.input (the pickle of torch._functorch's get_inputs).
Status write_case(const Candidate& candidate, const std::string& folder);

/// Who is to blame, as far as it was found out. Empty: not known.
struct Culprit {
  std::string pass;    ///< the first pass after which it fails; "none" when it fails without any
  std::string kernel;  ///< the step of the plan: "kernel 0 (tanh)" or "aten.mm.default (mm)"
  std::string detail;  ///< the kernel's loops, as text
};

struct ReproText {
  std::string check;    ///< "accuracy:cpu"
  std::string again;    ///< the command that shows the failure again, run in the folder
  std::string version;  ///< "partita 0.1.0"
  double tolerance = 1e-3;
  Culprit culprit;
};

/// write_case() and repro.py, which runs the graph in PyTorch, and README.md. Nothing in them but the graph's own data:
/// no paths, no source lines, nothing of the machine.
Status write_repro(const Reduced& reduced, const std::string& folder, const ReproText& text);

}  // namespace partita::minify
