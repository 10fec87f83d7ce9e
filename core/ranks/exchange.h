#pragma once
// One collective of a group as its members start it: whether they started the same, and what each of them gets.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/record/communicator.h"

namespace partita {

/// "all_reduce(sum, f32[4, 8])": what members must have alike.
std::string text(const Collective& c);

/// The collectives of a group's members, in the group's order; unset where a member has not started it.
struct Exchange {
  std::vector<int> members;  ///< global ranks; of Send and Receive the sender, then the receiver
  std::vector<std::optional<Collective>> parts;

  bool complete() const {
    return std::ranges::all_of(parts, [](const auto& part) { return part.has_value(); });
  }
};

/// What does not match among the parts that are there: "the operators differ", "the sizes differ", ... Empty: nothing.
std::string mismatch(const Exchange& exchange);

/// What each member's outputs are to hold, in the group's order; members may share a tensor. All parts are there and
/// match. A sum is made in the order of the members: of half types in float, rounded once; of bools it is their "or",
/// as a product is their "and". The least and the greatest are NaN where one member's element is. Raises unsupported
/// for a reduction that has no meaning here: premul_sum, and for a dtype that the reduction does not have.
std::vector<std::vector<Tensor>> results(const Exchange& exchange);

}  // namespace partita
