// Joins rows (card_rows.cpp) and columns (card_columns.cpp), routes links along their lanes, and sets brackets beside
// the frames. A picture that changed a little keeps its places, and new cards look for free ones.
#include "views/picture/picture_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "views/picture/card_columns.h"
#include "views/picture/card_rows.h"

namespace partita::views {
namespace {

float height_of(const Card& card) {
  return card.minor ? PictureLayout::kMinorHeight : PictureLayout::kCardHeight;
}

Box box_at(const Card& card, float x, int row) {
  float h = height_of(card);
  return {x, static_cast<float>(row) * PictureLayout::kPitch + (PictureLayout::kCardHeight - h) / 2, card.width, h};
}

float row_center(int row) {
  return static_cast<float>(row) * PictureLayout::kPitch + PictureLayout::kCardHeight / 2;
}

// Where a link leaves or enters a card: as near to straight above or below the other end as the card's width allows.
float port(const Box& box, float toward) {
  float inset = std::min(10.0F, box.w / 2);
  return std::clamp(toward, box.x + inset, box.right() - inset);
}

struct Router {
  const Picture& picture;
  PictureLayout& layout;

  void begin(RouteKind kind) { layout.routes.push_back({kind, static_cast<std::uint32_t>(layout.points.size()), 0}); }
  void to(float x, float y) {
    layout.points.push_back({x, y});
    ++layout.routes.back().count;
  }

  void line(const Link& link, const std::vector<float>& lanes, bool down) {
    const Box &from = layout.boxes[link.from], &to_box = layout.boxes[link.to];
    int span = std::abs(layout.rows[link.to] - layout.rows[link.from]);
    float first = lanes.empty() || span < 2 ? to_box.center_x() : lanes[0];
    begin(RouteKind::Line);
    float x = port(from, first);
    to(x, down ? from.bottom() : from.y);
    for (int k = 1; k < span && k <= static_cast<int>(lanes.size()); ++k) {
      x = lanes[k - 1];
      float center = row_center(layout.rows[link.from] + (down ? k : -k));
      float half = (down ? PictureLayout::kCardHeight : -PictureLayout::kCardHeight) / 2;
      to(x, center - half);
      to(x, center + half);
    }
    to(port(to_box, x), down ? to_box.y : to_box.bottom());
  }

  // Links within a row, or against the direction of flow (after an incremental layout), run from side to side.
  void sideways(const Link& link) {
    const Box &from = layout.boxes[link.from], &to_box = layout.boxes[link.to];
    bool right = to_box.center_x() > from.center_x();
    begin(RouteKind::Line);
    to(right ? from.right() : from.x, from.center_y());
    to(right ? to_box.x : to_box.right(), to_box.center_y());
  }

  void route(const Link& link, const std::vector<float>& lanes) {
    const Card &from = picture.cards[link.from], &to_card = picture.cards[link.to];
    int rows = layout.rows[link.to] - layout.rows[link.from];
    if (from.side != to_card.side) {
      return begin(std::abs(rows) > PictureLayout::kLongestLine ? RouteKind::Stub : RouteKind::Crossing);
    }
    if (std::abs(rows) > PictureLayout::kLongestLine) return begin(RouteKind::Stub);
    bool down = from.side == Side::Forward;
    if (rows == 0 || (rows > 0) != down) return sideways(link);
    line(link, lanes, down);
  }
};

/// How far cards and lines reach outward in each row: to the left in the forward, to the right in the backward.
class OuterEdges {
 public:
  OuterEdges(const Picture& picture, const PictureLayout& layout) {
    for (const Box& box : layout.boxes) {
      first_ = std::min(first_, row_of(box.y));
      last_ = std::max(last_, row_of(box.y));
    }
    for (auto& side : edges_) side.assign(static_cast<std::size_t>(last_ - first_ + 1), std::nullopt);
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
      const Box& box = layout.boxes[i];
      const bool forward = picture.cards[i].side == Side::Forward;
      add(forward, forward ? box.x : box.right(), box.y, box.bottom());
    }
    for (std::size_t i = 0; i < layout.routes.size(); ++i) {
      const Route& route = layout.routes[i];
      const bool forward = picture.cards[picture.links[i].from].side == Side::Forward;
      for (std::uint32_t k = 0; k + 1 < route.count; ++k) {
        const Point &a = layout.points[route.begin + k], &b = layout.points[route.begin + k + 1];
        add(forward, forward ? std::min(a.x, b.x) : std::max(a.x, b.x), std::min(a.y, b.y), std::max(a.y, b.y));
      }
    }
  }

  void add(bool forward, float x, float top, float bottom) {
    for (int row = row_of(top); row <= row_of(bottom); ++row) {
      std::optional<float>& edge = at(forward, row);
      edge = !edge ? x : forward ? std::min(*edge, x) : std::max(*edge, x);
    }
  }
  float within(bool forward, float top, float bottom) {
    std::optional<float> out;
    for (int row = row_of(top); row <= row_of(bottom); ++row)
      if (const auto& edge = at(forward, row))
        out = !out ? *edge : forward ? std::min(*out, *edge) : std::max(*out, *edge);
    return out.value_or(0);
  }

 private:
  static int row_of(float y) { return static_cast<int>(std::floor(y / PictureLayout::kPitch)); }
  std::optional<float>& at(bool forward, int row) {
    return edges_[forward ? 0 : 1][static_cast<std::size_t>(std::clamp(row, first_, last_) - first_)];
  }

  int first_ = std::numeric_limits<int>::max(), last_ = std::numeric_limits<int>::min();
  std::vector<std::optional<float>> edges_[2];
};

void add_brackets(const Picture& picture, PictureLayout& layout) {
  struct Rows {
    float top = 0, bottom = -1;
  };
  std::vector<Rows> extent(picture.frames.size());
  for (std::size_t i = 0; i < picture.cards.size(); ++i) {
    const Card& card = picture.cards[i];
    if (card.node == nullptr || card.again) continue;
    const Box& box = layout.boxes[i];
    for (int f = card.frame; f >= 0; f = picture.frames[f].parent) {
      Rows& rows = extent[f];
      if (rows.bottom < rows.top) {
        rows = {box.y, box.bottom()};
      } else {
        rows = {std::min(rows.top, box.y), std::max(rows.bottom, box.bottom())};
      }
    }
  }
  // Inner frames come first. Each bracket stands beside what lies outermost in its rows, which may be another bracket.
  std::vector<int> order;
  for (std::size_t f = 0; f < picture.frames.size(); ++f)
    if (extent[f].bottom > extent[f].top) order.push_back(static_cast<int>(f));
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    int da = picture.frames[a].depth, db = picture.frames[b].depth;
    return da != db ? da > db : extent[a].top < extent[b].top;
  });
  if (order.empty()) return;
  OuterEdges edges(picture, layout);
  for (int f : order) {
    const bool forward = picture.frames[f].side == Side::Forward;
    const float edge = edges.within(forward, extent[f].top, extent[f].bottom);
    constexpr float gap = 4;
    const float x = forward ? edge - gap - PictureLayout::kBracketLane : edge + gap;
    layout.brackets.push_back({f, x, extent[f].top, extent[f].bottom});
    edges.add(forward, x, extent[f].top, extent[f].bottom);
    edges.add(forward, x + PictureLayout::kBracketLane, extent[f].top, extent[f].bottom);
    layout.forward_left = std::min(layout.forward_left, x);
    layout.backward_right = std::max(layout.backward_right, x + PictureLayout::kBracketLane);
  }
}

void finish(const Picture& picture, PictureLayout& layout) {
  float top = 0, bottom = 0, left = 0, right = layout.cut_right;
  for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
    const Box& box = layout.boxes[i];
    top = std::min(top, box.y);
    bottom = std::max(bottom, box.bottom());
    left = std::min(left, box.x);
    right = std::max(right, box.right());
  }
  layout.forward_left = left - PictureLayout::kMargin;
  layout.backward_right = right + PictureLayout::kMargin;
  add_brackets(picture, layout);
  layout.bounds = {layout.forward_left, top - PictureLayout::kMargin, layout.backward_right - layout.forward_left,
                   bottom - top + 2 * PictureLayout::kMargin};
}

// The places that are taken in each row, for adding single cards to a layout that is kept.
class Occupied {
 public:
  void add(int row, const Box& box) {
    auto& list = rows_[row];
    list.insert(std::upper_bound(list.begin(), list.end(), box.x, [](float x, const auto& s) { return x < s.first; }),
                {box.x, box.right()});
  }
  bool free(int row, float left, float right, float gap = PictureLayout::kGap) const {
    auto found = rows_.find(row);
    if (found == rows_.end()) return true;
    return std::none_of(found->second.begin(), found->second.end(),
                        [&](const auto& span) { return span.first < right + gap && left < span.second + gap; });
  }
  /// The left edge nearest to `want` within [low, high] where `width` fits.
  float nearest(int row, float want, float width, float low, float high) const {
    float best = want;
    float best_distance = -1;
    auto offer = [&](float x) {
      x = std::clamp(x, low, std::max(low, high - width));
      float distance = std::abs(x - want);
      if ((best_distance < 0 || distance < best_distance) && free(row, x, x + width))
        best = x, best_distance = distance;
    };
    offer(want);
    if (auto found = rows_.find(row); found != rows_.end())
      for (const auto& [left, right] : found->second) {
        offer(left - PictureLayout::kGap - width);
        offer(right + PictureLayout::kGap);
      }
    return best;
  }

 private:
  std::unordered_map<int, std::vector<std::pair<float, float>>> rows_;
};

/// Places what is new in a picture beside what was there before, which stays where it is.
class Relayout {
 public:
  /// `old` has the index in `before` of each card; -1 for a new one.
  Relayout(const Picture& picture, const Picture& before, const PictureLayout& before_layout, std::vector<int> old)
      : picture_(picture),
        before_(before),
        before_layout_(before_layout),
        old_(std::move(old)),
        placed_(picture.cards.size()) {
    layout_.boxes.resize(picture.cards.size());
    layout_.rows.assign(picture.cards.size(), 0);
    layout_.cut_left = before_layout.cut_left;
    layout_.cut_right = before_layout.cut_right;
  }

  PictureLayout lay_out() {
    for (std::size_t i = 0; i < picture_.cards.size(); ++i)
      if (old_[i] >= 0) keep(i);
    const Adjacency sources = sources_of(picture_), readers = readers_of(picture_);
    for (std::size_t i = 0; i < picture_.cards.size(); ++i)
      if (!placed_[i]) place_near(i, sources, readers);
    route();
    finish(picture_, layout_);
    return std::move(layout_);
  }

 private:
  void place(std::size_t i, int row, const Box& box) {
    layout_.rows[i] = row;
    layout_.boxes[i] = box;
    occupied_.add(row, box);
    placed_[i] = true;
  }

  /// A card whose text grew into a neighbour is left to be placed anew.
  void keep(std::size_t i) {
    const Card& card = picture_.cards[i];
    const Box& box = before_layout_.boxes[old_[i]];
    const int row = before_layout_.rows[old_[i]];
    Box kept = box_at(card, card.width == box.w ? box.x : box.center_x() - card.width / 2, row);
    if (!occupied_.free(row, kept.x, kept.right(), 0)) kept = box_at(card, box.x, row);
    if (occupied_.free(row, kept.x, kept.right(), 0)) place(i, row, kept);
  }

  /// In the row after what it reads, or before what reads it, as near to them as there is room.
  void place_near(std::size_t i, const Adjacency& sources, const Adjacency& readers) {
    const Card& card = picture_.cards[i];
    const int step = card.side == Side::Forward ? 1 : -1;
    bool any = false;
    int row = 0;
    float sum = 0, neighbours = 0;
    auto near = [&](int other, int away) {
      if (!placed_[other] || picture_.cards[other].side != card.side) return;
      const int r = layout_.rows[other] + away;
      row = !any ? r : away * step > 0 ? (step > 0 ? std::max(row, r) : std::min(row, r)) : row;
      sum += layout_.boxes[other].center_x();
      neighbours += 1;
      any = true;
    };
    for (int in : sources.of(static_cast<int>(i))) near(in, step);
    for (int out : readers.of(static_cast<int>(i))) near(out, -step);
    const float want = (neighbours > 0 ? sum / neighbours : before_layout_.bounds.x) - card.width / 2;
    const float low = card.side == Side::Forward ? -1e6F : layout_.cut_right + PictureLayout::kMargin;
    const float high = card.side == Side::Forward && picture_.joint ? layout_.cut_left - PictureLayout::kMargin : 1e6F;
    place(i, row, box_at(card, occupied_.nearest(row, want, card.width, low, high), row));
  }

  bool stays(int now) const {
    if (old_[now] < 0) return false;
    const Box &a = layout_.boxes[now], &b = before_layout_.boxes[old_[now]];
    return a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h;
  }

  /// Links between cards that stay keep their route; others look for free lanes.
  void route() {
    const auto key = [](int from, int to) {
      return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
    };
    std::unordered_map<std::uint64_t, std::uint32_t> old_links;
    for (std::size_t i = 0; i < before_.links.size(); ++i)
      old_links.emplace(key(before_.links[i].from, before_.links[i].to), static_cast<std::uint32_t>(i));
    Router router{picture_, layout_};
    for (const Link& link : picture_.links) {
      const auto found =
          stays(link.from) && stays(link.to) ? old_links.find(key(old_[link.from], old_[link.to])) : old_links.end();
      if (found == old_links.end()) {
        router.route(link, free_lanes(link));
        continue;
      }
      const Route& route = before_layout_.routes[found->second];
      router.begin(route.kind);
      for (std::uint32_t k = 0; k < route.count; ++k)
        router.to(before_layout_.points[route.begin + k].x, before_layout_.points[route.begin + k].y);
    }
  }

  std::vector<float> free_lanes(const Link& link) const {
    std::vector<float> lanes;
    const int span = layout_.rows[link.to] - layout_.rows[link.from], step = span > 0 ? 1 : -1;
    float want = layout_.boxes[link.to].center_x();
    for (int k = 1; k < std::abs(span) && k <= PictureLayout::kLongestLine; ++k) {
      want = occupied_.nearest(layout_.rows[link.from] + k * step, want, 6, -1e6F, 1e6F);
      lanes.push_back(want);
    }
    return lanes;
  }

  const Picture& picture_;
  const Picture& before_;
  const PictureLayout& before_layout_;
  std::vector<int> old_;
  std::vector<bool> placed_;
  PictureLayout layout_;
  Occupied occupied_;
};

}  // namespace

PictureLayout lay_out(const Picture& picture) {
  PictureLayout layout;
  Adjacency sources = sources_of(picture), readers = readers_of(picture);
  layout.rows = assign_rows(picture, sources, readers);
  Columns forward = place_columns(picture, layout.rows, sources, readers, Side::Forward);
  Columns backward;
  layout.cut_left = layout.cut_right = forward.width;
  if (picture.joint) {
    backward = place_columns(picture, layout.rows, sources, readers, Side::Backward);
    layout.cut_left = forward.width + PictureLayout::kMargin;
    layout.cut_right = layout.cut_left + PictureLayout::kCutWidth;
  }
  float backward_left = layout.cut_right + PictureLayout::kMargin;
  layout.boxes.reserve(picture.cards.size());
  for (std::size_t i = 0; i < picture.cards.size(); ++i) {
    const Card& card = picture.cards[i];
    float x = card.side == Side::Forward ? forward.x[i] : backward.x[i] + backward_left;
    layout.boxes.push_back(box_at(card, x, layout.rows[i]));
  }
  for (auto& lanes : backward.lanes)
    for (float& x : lanes) x += backward_left;
  Router router{picture, layout};
  layout.routes.reserve(picture.links.size());
  for (const Link& link : picture.links) {
    const Columns& columns = picture.cards[link.from].side == Side::Forward ? forward : backward;
    router.route(link, columns.lanes[link.from]);
  }
  finish(picture, layout);
  return layout;
}

PictureLayout lay_out(const Picture& picture, const Picture& before, const PictureLayout& before_layout) {
  std::vector<int> old(picture.cards.size(), -1);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < picture.cards.size(); ++i) {
    int index = before.card_by_key(picture.cards[i].key);
    if (index < 0 || before.cards[index].side != picture.cards[i].side) continue;
    old[i] = index;
    ++kept;
  }
  if (kept * 2 < picture.cards.size() || before.joint != picture.joint) return lay_out(picture);
  return Relayout(picture, before, before_layout, std::move(old)).lay_out();
}

}  // namespace partita::views
