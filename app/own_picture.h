#pragma once
#include <string>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// The graph in the window's layout as "svg", "png" or "pdf", at any size. Error export.format.
Result<std::string> own_picture(const Graph& graph, const std::string& format);

}  // namespace partita
