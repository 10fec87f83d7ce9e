#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/diff/diff.h"

namespace partita {

/// What a compilation's texts say of an aspect: name and value. Equal names are one fact with several values.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Where dynamo broke the graph, and why; why it compiled again.
Facts break_facts(const Compilation& c);
Facts recompilation_facts(const Compilation& c);
Facts option_facts(const Compilation& c);  ///< of dynamo, AOTAutograd and the compiler; the version of PyTorch
Facts guard_facts(const Compilation& c);   ///< by kind and what is guarded, without addresses
Facts kernel_facts(const Compilation& c);  ///< how often the output code calls each
Facts cache_facts(const Compilation& c);   ///< "hit", "miss" or "bypass" of each cache
Facts time_facts(const Compilation& c);    ///< seconds, as the metrics have them

}  // namespace partita
