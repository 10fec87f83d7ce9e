#pragma once
#include "views/graph/layout.h"
#include "views/graph/rows.h"

namespace partita::views {

/// Left edges of one side's cards, from 0, and for each link of that side the lanes it takes through the rows between
/// its ends.
struct Columns {
  std::vector<float> x;                   ///< by card; only this side's are set
  std::vector<std::vector<float>> lanes;  ///< by card: centre x of its trunk in the following rows, next row first
  float width = 0;
};
Columns place_columns(const Picture& picture, const std::vector<int>& rows, const Adjacency& sources,
                      const Adjacency& readers, Side side);

}  // namespace partita::views
