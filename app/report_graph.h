#pragma once
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/notes.h"
#include "core/ir/graph.h"

namespace partita {

/// A graph's picture as the window lays it out, with its code and the user's notes: what the page of `partita report`
/// draws.
nlohmann::ordered_json report_graph(std::shared_ptr<const Graph> graph, const std::string& id, const std::string& title,
                                    const Notes& notes);

}  // namespace partita
