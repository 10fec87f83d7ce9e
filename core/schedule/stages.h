#pragma once
#include <set>
#include <vector>

#include "core/schedule/memory_layout.h"

namespace partita::schedule {

/// What is computed as one: a definition by a loop, several writes to one memory, or a call.
struct SchedulerNode {
  enum class Kind : std::uint8_t { Stage, Writes, Extern };
  Kind kind = Kind::Stage;
  int id = 0;           ///< definition, or index into LoweredGraph::externs
  std::set<int> needs;  ///< units whose results it reads
  std::set<int> after;  ///< units to run before: readers of an input that it overwrites, or the random draw before
  std::set<int> reads;  ///< inputs and constants (Memory definitions) that it reads
};

/// Which definitions get loops, and maybe memory, of their own. The others are computed where they are read.
struct Stages {
  std::vector<bool> live;            ///< by definition
  std::vector<bool> stage;           ///< computed once, by a unit
  std::vector<bool> stored;          ///< must be in memory: outputs, arguments of calls, targets of copy_
  std::vector<int> unit_of;          ///< by definition; -1: none
  std::vector<SchedulerNode> units;  ///< in an order that can run
  std::vector<int> weight;           ///< by definition: cost of one element, with all that is computed in place for it
  std::vector<int> reads;            ///< by definition: number of memories and stages that one element reads
  std::vector<int> depth;  ///< by definition: definitions nested in it that are computed in place, itself included
};

/// Decides which definitions are computed once, by a unit, and which where they are read.
Stages find_stages(const LoweredGraph& g);

}  // namespace partita::schedule
