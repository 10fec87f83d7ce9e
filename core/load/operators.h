#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Operators with a meaning, by overload: "mylib.scale_add.default".
using UserOperators = std::map<std::string, const Op*, std::less<>>;

/// Reads a folder of texts: NAMESPACE.NAME.OVERLOAD.py and NAMESPACE.NAME.OVERLOAD.backward.py (docs/
/// operators-of-your-own.md). Nothing in it is executed. The table is kept until a file of the folder changes. Errors
/// ops.meaning: file names that are no operators', operators that Partita knows, texts that call one another in a
/// circle, and what user_operator() refuses; load.* of texts that cannot be read.
Result<std::shared_ptr<const UserOperators>> read_operators(const std::string& folder);

/// Makes the calls of a graph, sub graphs included, calls of the operators that the configuration's folder
/// (`operators`) gives a meaning; leaves it as it is where there is no folder. Errors as read_operators().
Status give_meanings(Graph& graph);

}  // namespace partita
