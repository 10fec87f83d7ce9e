#pragma once
#include <span>

#include "views/picture/picture.h"

namespace partita::views {

/// Links as adjacency lists: neighbours of card i are list[begin[i]] .. list[begin[i + 1]].
struct Adjacency {
  std::vector<int> begin, list;
  std::span<const int> of(int card) const { return {list.data() + begin[card], list.data() + begin[card + 1]}; }
};
/// By card: indices into picture.links, by the end of the link that is `key`.
Adjacency link_index(const Picture& picture, int Link::* key);
Adjacency readers_of(const Picture& picture);
Adjacency sources_of(const Picture& picture);

/// The row of each card, from 0. Forward links lead down, backward links up. Rows form levels, each as many rows high
/// as its backward needs; a backward node is never in a level above the forward values that it reads, a folded module
/// not above half of them.
std::vector<int> assign_rows(const Picture& picture, const Adjacency& sources, const Adjacency& readers);

}  // namespace partita::views
