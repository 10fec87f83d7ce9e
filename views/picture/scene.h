#pragma once
// A picture with its layout, indexed by rows for drawing and clicking. Immutable; made on a worker thread.
#include <memory>

#include "views/picture/card_rows.h"
#include "views/picture/picture_layout.h"

namespace partita::views {

struct Scene {
  Picture picture;
  PictureLayout layout;

  /// The height at which the value of a card enters the cut, so that cards of one row do not overlap there.
  std::vector<float> cut_y;

  /// -1 when there is none.
  int card_at(float x, float y) const;
  int bracket_at(float x, float y) const;
  Box bracket_box(const Bracket& bracket) const;
  /// Cards and links that may touch the area, in drawing order.
  void visible(const Box& area, std::vector<int>& cards, std::vector<int>& links) const;
  /// Links out of, into a card.
  std::span<const int> links_from(int card) const { return out_links.of(card); }
  std::span<const int> links_to(int card) const { return in_links.of(card); }
  bool crosses(int card) const;  ///< its value is drawn into the cut
  int card_of(const Node& node) const { return picture.card_of[node.id()]; }

  Adjacency out_links, in_links;  ///< by card: indices into picture.links

 private:
  friend std::shared_ptr<const Scene> make_scene(std::shared_ptr<const Graph>, const PictureOptions&, const Scene*);
  int row_of(float y) const;

  int first_row_ = 0;
  std::vector<std::vector<int>> row_cards_, row_links_;
};

/// Cards that `before` has too keep their place; it may be null.
std::shared_ptr<const Scene> make_scene(std::shared_ptr<const Graph> graph, const PictureOptions& options,
                                        const Scene* before = nullptr);

}  // namespace partita::views
