#pragma once
// The collectives of a folder of ranks side by side: what the view of ranks draws, and the question `collectives`.
#include <string>
#include <vector>

#include "app/tasks/queries.h"
#include "app/tasks/rank_folder.h"
#include "core/ranks/ladder.h"

namespace partita {

struct RankLadder {
  /// What the ranks of a lane do at a collective.
  enum class Part : unsigned char {
    None,  ///< they are not in its group
    Starts,
    Missing,  ///< they are, and never start it
  };
  struct Cell {
    Part part = Part::None;
    int call = -1;  ///< which of the lane's collectives
  };
  struct Row {
    std::size_t rung = 0;     ///< of the ladder; of several that are alike, the first
    std::size_t count = 1;    ///< how many are: those of groups that lie in the same lanes
    std::vector<Cell> lanes;  ///< by lane
  };

  RankFolder folder;
  Ladder ladder;
  std::vector<std::vector<int>> lanes;  ///< ranks with equal graphs
  std::vector<Row> rows;

  std::size_t wrong() const;                                            ///< how many rows do not match
  const GraphCollective* call(const Row& row, std::size_t lane) const;  ///< null: none starts it there
  /// The lane of whom a row is about: that which is alone in starting it, else the first that does.
  std::size_t lane_of(const Row& row) const;
  std::string lane_name(std::size_t lane) const;  ///< "ranks 0-3"
  std::string summary() const;                    ///< in one line
};

/// Reads the folder's graphs as read_rank_folder() does, and matches them. Errors: its and make_ladder()'s.
Result<RankLadder> read_ladder(const std::string& path, const std::string& graph, const Progress* progress);

/// "all_reduce (model.py:12), meanwhile mm, add": where a collective starts, and what runs until it is waited for.
std::string place_of(const GraphCollective& c);

/// The question `collectives`: of a folder of ranks, how they match; of one graph, those that it starts, and the calls
/// that run while each is under way.
Result<QueryAnswer> answer_collectives(const QuerySubject& subject);

}  // namespace partita
