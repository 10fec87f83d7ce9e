#pragma once
#include <string>

#include "app/run_artefact.h"

namespace partita {

struct ReportRequest {
  RunRequest run;
  std::string repro;  ///< a folder that `partita minify` wrote; empty: none
};

/// One HTML page about a file, which needs no other file and no network: its graphs as pictures beside their code, and
/// of one graph the cut, the passes with what they changed, the kernels and, with inputs, a comparison of the compiler
/// with the interpreter. What of this is not possible for the graph is said on the page. All text of files is data of
/// the page's program, never markup. Errors: those of load() and of reading the inputs and the repro.
Result<std::string> report_page(const ReportRequest& request);

}  // namespace partita
