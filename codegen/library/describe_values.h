#pragma once
// What a library says of its inputs and results.
#include <string>

#include "codegen/library/description.h"
#include "core/ir/graph.h"

namespace partita::codegen {

LibraryValue value_of_meta(std::string name, const Meta& meta);
/// Of a result, which may be a number that the graph has.
LibraryValue value_of_result(std::string name, const Meta& meta, const Arg& result);

/// "input_ids: int64[1, s0]"
std::string shown(const LibraryValue& v);

}  // namespace partita::codegen
