#pragma once
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/tasks/notes.h"
#include "app/tasks/report.h"
#include "core/ir/graph.h"

namespace partita {

/// A graph's picture as the window lays it out, with its code and the user's notes: what the page of `partita report`
/// draws (ReportRequest::picture).
nlohmann::ordered_json report_graph(std::shared_ptr<const Graph> graph, const std::string& id, const std::string& title,
                                    const Notes& notes);

/// The summary and the tables of a report as a PDF file. Makes an application of Qt where there is none.
Result<std::string> report_pdf(const ReportContent& content);

}  // namespace partita
