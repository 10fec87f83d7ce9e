#pragma once
#include "views/picture/card_rows.h"
#include "views/picture/picture_layout.h"

namespace partita::views {

/// Left edges of the cards of one side, from 0. For each card of that side also the lanes that its links take through
/// the rows between their ends.
struct Columns {
  std::vector<float> x;                   ///< by card; only this side's are set
  std::vector<std::vector<float>> lanes;  ///< by card: the centre of its links' common lane in the following rows
  float width = 0;
};
Columns place_columns(const Picture& picture, const std::vector<int>& rows, const Adjacency& sources,
                      const Adjacency& readers, Side side);

}  // namespace partita::views
