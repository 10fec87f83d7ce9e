#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/tasks/notes.h"
#include "app/tasks/run_artefact.h"

namespace partita {

struct ReportRequest {
  RunRequest run;
  std::string repro;  ///< a folder that `partita minify` wrote; empty: none
  /// Gives what the page draws of a graph, with its code and the user's notes. Must be set.
  nlohmann::ordered_json (*picture)(std::shared_ptr<const Graph> graph, const std::string& id, const std::string& title,
                                    const Notes& notes) = nullptr;
};

/// What a report says.
struct ReportContent {
  std::string path;                                          ///< of the file
  std::vector<std::pair<std::string, std::string>> summary;  ///< a name and a line each
  nlohmann::ordered_json data;                               ///< what the page's program shows
};
/// About a file: its graphs, and of one graph the cut, the passes with what they changed, the kernels and, with inputs,
/// a comparison of the compiler with the interpreter. What of this is not possible for the graph is said in the
/// summary. Errors: those of load() and of reading the inputs and the repro.
Result<ReportContent> report_content(const ReportRequest& request);

/// One HTML page, which needs no other file and no network: graphs as pictures beside their code. All text of files is
/// data of the page's program, never markup.
std::string report_page(const ReportContent& content);
/// Text of a page of HTML.
std::string html_text(std::string_view text);

}  // namespace partita
