#pragma once
// Which ranks a job has, and how they are divided into process groups.
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ops/record/communicator.h"

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

bool is_point_to_point(const Collective& collective);  ///< a message from one rank to another
/// The members of a collective's group, as global ranks in the group's order; of a message the sender, then the
/// receiver. A group has them from Job::groups; "0", and a group of as many ranks as the job has, is the world. Error
/// ranks.group: they are not known, the job does not have them, or `rank` is not among them.
Result<std::vector<int>> members_of(const Job& job, int rank, const Collective& collective);
/// Members number the collectives of a channel alike: of a group, or of what one rank sends another with a tag.
std::string channel_of(const Collective& collective, const std::vector<int>& members);

/// "rank 2", "ranks 0-3, 5"; `ranks` ascends.
std::string ranks_text(const std::vector<int>& ranks);
/// "1st", "2nd", "11th"
std::string ordinal(std::int64_t number);

}  // namespace partita
