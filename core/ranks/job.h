#pragma once
// Which ranks a job has, and how they are divided into process groups.
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace partita {

struct Job {
  static constexpr int most_ranks = 1024;

  int ranks = 0;
  /// Members by a group's name, as global ranks in the group's order. The world, "0", need not be among them.
  std::map<std::string, std::vector<int>> groups;
};

/// Error ranks.count for less than one rank or more than most_ranks; ranks.group for a group that is empty, or names a
/// rank that the job does not have, or one twice.
Status check(const Job& job);

/// "rank 2", "ranks 0-3, 5"; `ranks` ascends.
std::string ranks_text(const std::vector<int>& ranks);
/// "1st", "2nd", "11th"
std::string ordinal(std::int64_t number);

}  // namespace partita
