#pragma once
// The calls of the texts by which the user says what an operator computes.
#include <string>
#include <vector>

#include "core/ops/record/user_operator.h"

namespace partita {

/// The parameter of a text that a call of it writes, which only copy_ does; null: none. Calls of Python need not be
/// resolved yet.
Node* written_argument(const Node& node);
/// Does a call of a text draw random numbers, as far as its name tells?
bool draws_by_name(const Op* op);
/// What a backward calls result k: "result", or "resultK" of several.
std::string result_name(std::size_t k, std::size_t results);

/// For the record of an operator with a meaning. They raise what the texts do that the operator's schema and record do
/// not say: writes, effects, views of arguments.
Arg decompose_by_text(DecomposeCall& call);
std::vector<Node*> gradient_by_text(GradCall& call);

}  // namespace partita
