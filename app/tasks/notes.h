#pragma once
#include <map>
#include <string>

#include "core/base/result.h"

namespace partita {

/// What the user wrote at nodes, by node. A bookmark has no text.
using Notes = std::map<std::string, std::string>;

/// Those that the store has for a graph of a file; none when there is no store yet. `graph`: the artefact's id, with
/// "/joint" and the like behind it for what was made of it.
Result<Notes> notes_of(const std::string& path, const std::string& graph);

}  // namespace partita
