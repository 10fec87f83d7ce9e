// Horizontal places of one side's cards. Sweeps over the rows order them by their neighbours and place each row by
// least squares; then loose parts are gathered, and rows pulled toward the cut.
#include "views/picture/card_columns.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace partita::views {
namespace {

// Something that takes a place in a row: a card, or a lane, which is the place that a long link needs in each row
// between its ends.
struct Item {
  int card = -1;  ///< -1: lane
  float width = 0;
  float x = 0;       ///< centre
  float weight = 1;  ///< how strongly it stays where its neighbours want it
  float bias = 0;    ///< where it wants to be relative to its neighbours
  float placed = 0;  ///< x before bends were taken out
};

struct Tie {
  int other = 0;
  float weight = 1;
};

// Items in rows. An item is tied to items of the row before and of the row after, in the direction of flow.
struct Rack {
  std::vector<Item> items;
  std::vector<std::vector<int>> rows;
  std::vector<std::vector<Tie>> before, after;

  int add(int row, Item item) {
    int index = static_cast<int>(items.size());
    items.push_back(item);
    rows[row].push_back(index);
    before.emplace_back();
    after.emplace_back();
    return index;
  }
  void tie(int a, int b, float weight) {
    after[a].push_back({b, weight});
    before[b].push_back({a, weight});
  }
};

float wanted(const Rack& rack, const std::vector<Tie>& ties, const Item& item) {
  float sum = 0, weights = 0;
  for (const Tie& tie : ties) {
    sum += tie.weight * rack.items[tie.other].x;
    weights += tie.weight;
  }
  return weights > 0 ? sum / weights + item.bias : item.x;
}

// The centres that keep order and gaps and are nearest to `want` by weighted least squares. The algorithm is "pool
// adjacent violators".
void settle(Rack& rack, const std::vector<int>& row, std::vector<float>& want) {
  struct Pool {
    float weight, mean;
    int count;
  };
  static thread_local std::vector<Pool> pools;
  static thread_local std::vector<float> offset;
  pools.clear();
  offset.assign(row.size(), 0);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Item& item = rack.items[row[i]];
    if (i > 0) {
      const Item& left = rack.items[row[i - 1]];
      offset[i] = offset[i - 1] + (left.width + item.width) / 2 + PictureLayout::kGap;
    }
    Pool pool{item.weight, want[i] - offset[i], 1};
    while (!pools.empty() && pools.back().mean > pool.mean) {
      const Pool& top = pools.back();
      pool.mean = (pool.mean * pool.weight + top.mean * top.weight) / (pool.weight + top.weight);
      pool.weight += top.weight;
      pool.count += top.count;
      pools.pop_back();
    }
    pools.push_back(pool);
  }
  std::size_t i = 0;
  for (const Pool& pool : pools)
    for (int k = 0; k < pool.count; ++k, ++i) rack.items[row[i]].x = pool.mean + offset[i];
}

void sweep(Rack& rack, bool along_flow, bool reorder) {
  std::vector<float> want;
  std::vector<std::pair<float, int>> keyed;
  auto visit = [&](std::vector<int>& row) {
    want.clear();
    for (int i : row) want.push_back(wanted(rack, along_flow ? rack.before[i] : rack.after[i], rack.items[i]));
    if (reorder) {
      keyed.clear();
      for (std::size_t k = 0; k < row.size(); ++k) keyed.emplace_back(want[k], row[k]);
      std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t k = 0; k < row.size(); ++k) want[k] = keyed[k].first, row[k] = keyed[k].second;
    }
    settle(rack, row, want);
  };
  if (along_flow) {
    for (auto& row : rack.rows) visit(row);
  } else {
    for (auto row = rack.rows.rbegin(); row != rack.rows.rend(); ++row) visit(*row);
  }
}

// Straightens bends that are too small to mean anything. A card moves by less than half the gap in all, so that no two
// overlap.
void align_chains(Rack& rack) {
  constexpr float kBend = 3, kMost = 6;
  for (const auto& row : rack.rows)
    for (int i : row) {
      Item& item = rack.items[i];
      const Tie* heaviest = nullptr;
      for (const Tie& tie : rack.before[i])
        if (!heaviest || tie.weight > heaviest->weight) heaviest = &tie;
      if (!heaviest) continue;
      float above = rack.items[heaviest->other].x;
      if (std::abs(above - item.x) < kBend && std::abs(above - item.placed) < kMost) item.x = above;
    }
}

// Places items by both neighbouring rows at once, without changing their order.
void straighten(Rack& rack) {
  std::vector<float> want;
  for (auto& row : rack.rows) {
    want.clear();
    for (int i : row) {
      float sum = 0, weights = 0;
      for (const auto* ties : {&rack.before[i], &rack.after[i]})
        for (const Tie& tie : *ties) sum += tie.weight * rack.items[tie.other].x, weights += tie.weight;
      want.push_back(weights > 0 ? sum / weights + rack.items[i].bias : rack.items[i].x);
    }
    settle(rack, row, want);
  }
}

// The parts of a rack that no tie connects, as a number for each item, and how many items each part has.
std::pair<std::vector<int>, std::vector<int>> parts_of(const Rack& rack) {
  std::vector<int> part(rack.items.size(), -1), sizes, reached;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] >= 0) continue;
    reached = {static_cast<int>(i)};
    part[i] = static_cast<int>(sizes.size());
    for (std::size_t k = 0; k < reached.size(); ++k)
      for (const auto* ties : {&rack.before[reached[k]], &rack.after[reached[k]]})
        for (const Tie& tie : *ties)
          if (std::exchange(part[tie.other], part[i]) < 0) reached.push_back(tie.other);
    sizes.push_back(static_cast<int>(reached.size()));
  }
  return {std::move(part), std::move(sizes)};
}

// The spans that are taken in a row, from left to right.
using Spans = std::vector<std::pair<float, float>>;

// Nothing keeps parts that no tie connects near each other. Those that lie outside of the largest move to the free
// place nearest to its middle.
void gather(Rack& rack) {
  const auto [part, sizes] = parts_of(rack);
  if (sizes.size() < 2) return;
  std::vector<int> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&sizes = sizes](int a, int b) { return sizes[a] > sizes[b]; });
  std::vector<std::vector<std::pair<int, int>>> items(sizes.size());  // row and item
  for (std::size_t row = 0; row < rack.rows.size(); ++row)
    for (int i : rack.rows[row]) items[part[i]].emplace_back(static_cast<int>(row), i);
  std::vector<Spans> taken(rack.rows.size());
  constexpr float kSlack = 0.5;  // more than the rounding of places, so that each push goes on
  // How far the part must move, beyond `by` and in that direction, so that none of its items lies on a taken span.
  const auto pushed = [&](int which, float by, bool right) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [row, i] : items[which]) {
        const float half = rack.items[i].width / 2 + PictureLayout::kGap;
        const auto push = [&](const std::pair<float, float>& span) {
          const float x = rack.items[i].x + by;
          if (x - half >= span.second - kSlack || x + half <= span.first + kSlack) return;
          by += right ? span.second - (x - half) : span.first - (x + half);
          moved = true;
        };
        if (right)
          std::for_each(taken[row].begin(), taken[row].end(), push);
        else
          std::for_each(taken[row].rbegin(), taken[row].rend(), push);
      }
    }
    return by;
  };
  float low = 0, high = 0;
  for (int which : order) {
    float left = 1e9F, right = -1e9F;
    for (const auto& [row, i] : items[which]) {
      left = std::min(left, rack.items[i].x - rack.items[i].width / 2);
      right = std::max(right, rack.items[i].x + rack.items[i].width / 2);
    }
    float by = 0;
    if (which == order.front()) {
      low = left, high = right;
    } else if (left < low || right > high || pushed(which, 0, true) != 0) {
      const float middle = (low + high) / 2 - (left + right) / 2;
      const float to_left = pushed(which, middle, false), to_right = pushed(which, middle, true);
      by = to_right - middle <= middle - to_left ? to_right : to_left;
    }
    for (const auto& [row, i] : items[which]) {
      Item& item = rack.items[i];
      item.x += by;
      const std::pair span(item.x - item.width / 2, item.x + item.width / 2);
      taken[row].insert(std::ranges::upper_bound(taken[row], span), span);
    }
  }
}

// Long chains drift sideways, away from the cut. This moves whole rows back, slowly from row to row so that chains stay
// about straight. Then the few rows that are far wider than the rest (a loss, the first embedding) grow outward only.
void pull_to_cut(Rack& rack, const Picture& picture, Side side) {
  float sign = side == Side::Forward ? 1.0F : -1.0F;
  auto shift = [&](const std::vector<int>& row, float by) {
    for (int i : row) rack.items[i].x += by;
  };
  auto reach_of = [&](const std::vector<int>& row, bool main_only) {
    float reach = -1e9F;
    for (int i : row) {
      const Item& item = rack.items[i];
      if (main_only && (item.card < 0 || picture.cards[item.card].minor)) continue;
      reach = std::max(reach, sign * item.x + item.width / 2);
    }
    return reach;
  };
  constexpr int kWindow = 24;
  int rows = static_cast<int>(rack.rows.size());
  if (rows < 2 * kWindow) return;
  std::vector<double> sum(rows + 1), known(rows + 1);
  for (int r = 0; r < rows; ++r) {
    float reach = reach_of(rack.rows[r], true);
    sum[r + 1] = sum[r] + (reach > -1e8F ? reach : 0);
    known[r + 1] = known[r] + (reach > -1e8F ? 1 : 0);
  }
  std::vector<float> drift(rows);
  for (int r = 0; r < rows; ++r) {
    int low = std::max(0, r - kWindow), high = std::min(rows, r + kWindow + 1);
    double n = known[high] - known[low];
    drift[r] = n > 0 ? static_cast<float>((sum[high] - sum[low]) / n) : r > 0 ? drift[r - 1] : 0;
  }
  std::vector<float> reach;
  for (int r = 0; r < rows; ++r) {
    shift(rack.rows[r], -sign * drift[r]);
    if (!rack.rows[r].empty()) reach.push_back(reach_of(rack.rows[r], false));
  }
  auto limit = reach.begin() + static_cast<std::ptrdiff_t>(reach.size() * 90 / 100);
  std::nth_element(reach.begin(), limit, reach.end());
  float most = *limit;
  for (const auto& row : rack.rows) {
    if (row.empty()) continue;
    if (float excess = reach_of(row, false) - most; excess > 0) shift(row, -sign * excess);
  }
}

/// The cards of one side and the lanes of their links as items of a rack.
struct Placed {
  Rack rack;
  std::vector<int> item_of;              ///< by card; -1: it is of the other side
  std::vector<std::vector<int>> trunks;  ///< by card: its lane's items in the following rows
};

Placed rack_of(const Picture& picture, const std::vector<int>& rows, const Adjacency& sources, const Adjacency& readers,
               Side side) {
  const int count = static_cast<int>(picture.cards.size());
  Placed placed{{}, std::vector<int>(count, -1), std::vector<std::vector<int>>(count)};
  auto& [rack, item_of, trunks] = placed;
  int row_count = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()) + 1;
  // Rows in the direction of flow: down for the forward, up for the backward.
  auto flow_row = [&](int card) { return side == Side::Forward ? rows[card] : row_count - 1 - rows[card]; };
  rack.rows.resize(row_count);
  for (int i = 0; i < count; ++i) {
    const Card& card = picture.cards[i];
    if (card.side != side) continue;
    Item item{i, card.width, 0, card.minor ? 1.0F : 1000.0F};
    bool feeds_only = true;
    for (int in : sources.of(i)) feeds_only = feeds_only && picture.cards[in].side != side;
    // Parameters and other small sources are placed outward of their readers, so that the main chain stays straight.
    if (card.minor && feeds_only) item.bias = side == Side::Forward ? -card.width * 0.7F : card.width * 0.7F;
    item_of[i] = rack.add(flow_row(i), item);
  }
  for (int i = 0; i < count; ++i) {
    if (item_of[i] < 0) continue;
    int longest = 0;
    for (int out : readers.of(i)) {
      int span = item_of[out] < 0 ? 0 : flow_row(out) - flow_row(i);
      if (span > 1 && span <= PictureLayout::kLongestLine) longest = std::max(longest, span);
    }
    bool minor = picture.cards[i].minor;
    int above = item_of[i];
    for (int k = 1; k < longest; ++k) {
      int lane = rack.add(flow_row(i) + k, {-1, 6, 0, minor ? 0.5F : 50.0F});
      rack.tie(above, lane, k == 1 ? 1.0F : 8.0F);
      trunks[i].push_back(lane);
      above = lane;
    }
    for (int out : readers.of(i)) {
      int span = item_of[out] < 0 ? 0 : flow_row(out) - flow_row(i);
      if (span < 1 || span > PictureLayout::kLongestLine) continue;
      // Ties of the main chain weigh so much that it stays straight, whatever else is tied to it.
      float weight = span > 1                            ? 1.0F
                     : minor && sources.of(i).empty()    ? 0.5F
                     : minor || picture.cards[out].minor ? 40.0F
                                                         : 64.0F;
      rack.tie(span == 1 ? item_of[i] : trunks[i][span - 2], item_of[out], weight);
    }
  }
  return placed;
}

}  // namespace

Columns place_columns(const Picture& picture, const std::vector<int>& rows, const Adjacency& sources,
                      const Adjacency& readers, Side side) {
  auto [rack, item_of, trunks] = rack_of(picture, rows, sources, readers, side);
  for (int round = 0; round < 2; ++round) {
    sweep(rack, true, true);
    sweep(rack, false, true);
  }
  sweep(rack, true, true);
  straighten(rack);
  sweep(rack, false, false);
  straighten(rack);

  gather(rack);
  if (picture.joint) pull_to_cut(rack, picture, side);

  for (Item& item : rack.items) item.placed = item.x;
  align_chains(rack);

  float low = 0, high = 0;
  bool first = true;
  for (const Item& item : rack.items) {
    low = first ? item.x - item.width / 2 : std::min(low, item.x - item.width / 2);
    high = first ? item.x + item.width / 2 : std::max(high, item.x + item.width / 2);
    first = false;
  }
  const int count = static_cast<int>(picture.cards.size());
  Columns columns{std::vector<float>(count), std::vector<std::vector<float>>(count), high - low};
  for (int i = 0; i < count; ++i) {
    if (item_of[i] < 0) continue;
    columns.x[i] = std::round(rack.items[item_of[i]].x - low) - picture.cards[i].width / 2;
    // A lane has space on both sides, so that small bends in it can be straightened.
    float course = columns.x[i] + picture.cards[i].width / 2;
    for (int lane : trunks[i]) {
      float x = std::round(rack.items[lane].x - low);
      if (std::abs(x - course) > 9) course = x;
      columns.lanes[i].push_back(course);
    }
  }
  return columns;
}

}  // namespace partita::views
