#pragma once
// Writes a folder to attach to a bug report.
#include <string>

#include "core/minify/candidate.h"
#include "core/minify/reduce.h"

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
};

/// Calls write_case() and writes repro.py, which runs the graph in PyTorch, README.md and, if something is not at its
/// default, partita.config. They hold only the graph's
/// own data: no paths, no source lines, nothing about the machine.
Status write_repro(const MinifyResult& reduced, const std::string& folder, const ReproText& text);

}  // namespace partita::minify
