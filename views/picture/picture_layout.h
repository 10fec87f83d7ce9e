#pragma once
// Places the cards of a picture. This is our own layered layout, linear in cards and links: the forward runs down, the
// backward is mirrored beside it and runs up, so that a backward card lies near the row of the forward values it reads.
#include <cstdint>
#include <vector>

#include "views/picture/picture.h"

namespace partita::views {

struct Point {
  float x = 0, y = 0;
};

struct Box {
  float x = 0, y = 0, w = 0, h = 0;
  float right() const { return x + w; }
  float bottom() const { return y + h; }
  float center_x() const { return x + w / 2; }
  float center_y() const { return y + h / 2; }
};

enum class RouteKind : unsigned char {
  Line,      ///< within a side; its points lead from card to card
  Crossing,  ///< from the forward to the backward
  Stub,      ///< the ends are too far apart: each card gets a short end with the name of the other; no points
};

struct Route {
  RouteKind kind = RouteKind::Line;
  std::uint32_t begin = 0,
                count = 0;  ///< into PictureLayout::points; none for Crossing, which is drawn through the cut
};

/// A frame, drawn as a bracket beside its cards, kBracketLane wide from `x` on, along the rows that it covers.
struct Bracket {
  int frame = 0;
  float x = 0;
  float top = 0, bottom = 0;
};

struct PictureLayout {
  static constexpr float kCardHeight = 36, kMinorHeight = 22, kPitch = 48, kGap = 16, kCutWidth = 108, kMargin = 24,
                         kBracketLane = 18;
  static constexpr int kLongestLine = 12;  ///< rows; longer links are stubs

  std::vector<Box> boxes;     ///< by card
  std::vector<int> rows;      ///< by card, 0 at the top; negative rows come from later insertions
  std::vector<Route> routes;  ///< by link
  std::vector<Point> points;
  std::vector<Bracket> brackets;
  Box bounds;                                  ///< with brackets
  float cut_left = 0, cut_right = 0;           ///< the band between forward and backward; equal when there is none
  float forward_left = 0, backward_right = 0;  ///< outer edges, with brackets
};

PictureLayout lay_out(const Picture& picture);
/// Lays out a picture that changed a little: cards of equal key keep their place, new ones get free places near the
/// cards that they are linked to. Makes a new layout when less than half of the cards are kept.
PictureLayout lay_out(const Picture& picture, const Picture& before, const PictureLayout& before_layout);

}  // namespace partita::views
