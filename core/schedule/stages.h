#pragma once
#include <set>
#include <vector>

#include "core/schedule/layout.h"

namespace partita::schedule {

/// What runs by itself: a definition that a loop computes, several writes into one memory, or a call.
struct Unit {
  enum class Kind : std::uint8_t { Stage, Writes, Extern };
  Kind kind = Kind::Stage;
  int id = 0;           ///< definition, or index into LoweredGraph::externs
  std::set<int> needs;  ///< units whose results it reads
  std::set<int> after;  ///< units that read the input it overwrites; of what draws random numbers, the draw before
  std::set<int> reads;  ///< Memory definitions of inputs and constants it reads
};

/// Which definitions get loops (and maybe memory) of their own; the others are computed where they are read.
struct Stages {
  std::vector<bool> live;    ///< by definition
  std::vector<bool> stage;   ///< computed once, by a unit
  std::vector<bool> stored;  ///< must be in memory: outputs, arguments of calls, targets of copy_
  std::vector<int> unit_of;  ///< by definition; -1: none
  std::vector<Unit> units;   ///< in an order that can run
  std::vector<int> weight;   ///< by definition: what one element costs, with all that is computed along with it
  std::vector<int> reads;    ///< by definition: memories and stages that one element reads
};

Stages find_stages(const LoweredGraph& g);

}  // namespace partita::schedule
