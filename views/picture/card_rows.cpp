// Levels of the forward by its longest paths, levels of the backward by the forward values that it reads, then steps
// within a level. Sources and trees with one reader stand just before that reader.
#include "views/picture/card_rows.h"

#include <algorithm>
#include <climits>

namespace partita::views {
namespace {

Adjacency adjacency(const Picture& picture, int Link::* key, int Link::* value) {
  Adjacency a = link_index(picture, key);
  for (int& link : a.list) link = picture.links[link].*value;
  return a;
}

constexpr int kUnset = INT_MIN;

struct Rows {
  const Picture& picture;
  const Adjacency& sources;
  const Adjacency& readers;
  int count = static_cast<int>(picture.cards.size());
  std::vector<int> level = std::vector<int>(count, kUnset);
  std::vector<int> row = std::vector<int>(count, kUnset);
  std::vector<bool> lifted =
      std::vector<bool>(count);  ///< placed just before its first reader, not as early as possible

  Side side(int card) const { return picture.cards[card].side; }
  bool is_forward(int card) const { return side(card) == Side::Forward; }

  // Cards without inputs, and small cards that read only such ones.
  void find_lifted() {
    for (int i = 0; i < count; ++i) {
      bool all = true, any = false;
      for (int in : sources.of(i)) {
        if (side(in) != side(i)) {
          // A backward card that reads the forward only (t of a saved weight) is placed beside its reader.
          continue;
        }
        any = true;
        all = all && lifted[in] && in < i;
      }
      bool tangent = !is_forward(i) && picture.cards[i].family == Family::Input;
      lifted[i] = all && !tangent && (!any || picture.cards[i].minor || picture.cards[i].again);
    }
  }

  void forward_levels() {
    for (int i = 0; i < count; ++i) {
      if (!is_forward(i) || lifted[i]) continue;
      int l = 0;
      for (int in : sources.of(i))
        if (in < i && !lifted[in]) l = std::max(l, level[in] + 1);
      level[i] = l;
    }
  }

  // A tree that only one card reads (a mask, shifted labels) moves down to that card.
  void lower_loose_trees() {
    std::vector<bool> loose(count);
    auto only_reader = [&](int card) {
      int readers_here = 0;
      for (int out : readers.of(card)) readers_here += is_forward(out);
      return readers_here == 1;
    };
    for (int i = 0; i < count; ++i) {
      if (!is_forward(i) || lifted[i]) continue;
      loose[i] = only_reader(i);
      for (int in : sources.of(i)) loose[i] = loose[i] && in < i && (lifted[in] || loose[in]);
    }
    for (int i = count - 1; i >= 0; --i) {
      if (!loose[i]) continue;
      for (int out : readers.of(i))
        if (is_forward(out) && out > i) level[i] = std::max(level[i], level[out] - 1);
    }
  }

  void lift_sources() {
    for (int i = count - 1; i >= 0; --i) {
      if (!is_forward(i) || !lifted[i]) continue;
      int l = INT_MAX;
      for (int out : readers.of(i))
        if (is_forward(out) && level[out] != kUnset) l = std::min(l, level[out] - 1);
      if (l != INT_MAX) level[i] = l;
    }
  }

  void backward_levels() {
    int lowest = 0;
    for (int i = 0; i < count; ++i)
      if (is_forward(i) && level[i] != kUnset) lowest = std::max(lowest, level[i]);
    std::vector<int> read;
    for (int i = count - 1; i >= 0; --i) {
      if (is_forward(i)) continue;
      read.clear();
      for (int in : sources.of(i))
        if (is_forward(in) && level[in] != kUnset) read.push_back(level[in]);
      // One value may come from far away: a folded module lies beside the forward from which most of its values come.
      std::ranges::sort(read);
      if (!read.empty()) level[i] = picture.cards[i].node ? read.back() : read[(read.size() - 1) / 2];
      for (int out : readers.of(i))
        if (out > i) level[i] = std::max(level[i], level[out]);
    }
    for (int i = 0; i < count; ++i) {
      if (is_forward(i) || level[i] != kUnset) continue;
      int l = INT_MAX;
      for (int in : sources.of(i))
        if (!is_forward(in) && in < i) l = std::min(l, level[in]);
      level[i] = l == INT_MAX ? lowest : l;
      ends.push_back(i);
    }
  }

  // Forward values that only the backward reads.
  void forward_leftovers() {
    for (int i = count - 1; i >= 0; --i) {
      if (!is_forward(i) || level[i] != kUnset) continue;
      int l = kUnset;
      for (int out : readers.of(i)) l = std::max(l, level[out]);
      level[i] = l == kUnset ? 0 : l;
    }
  }

  // Steps within a level, counted upwards from its bottom.
  void backward_steps() {
    step.assign(count, 0);
    std::vector<bool> is_end(count);
    for (int i : ends) is_end[i] = true;
    for (int i = 0; i < count; ++i) {
      if (is_forward(i) || is_end[i]) continue;
      for (int in : sources.of(i))
        if (!is_forward(in) && in < i && level[in] == level[i]) step[i] = std::max(step[i], step[in] + 1);
    }
    for (int i = count - 1; i >= 0; --i) {
      if (is_forward(i) || is_end[i] || !lifted[i]) continue;
      int s = INT_MAX;
      for (int out : readers.of(i))
        if (level[out] == level[i] && !is_end[out]) s = std::min(s, step[out] - 1);
      if (s != INT_MAX) step[i] = std::max(s, step[i]);
    }
  }

  void rows() {
    int low = INT_MAX, high = INT_MIN;
    for (int l : level) low = std::min(low, l), high = std::max(high, l);
    if (count == 0) return;
    std::size_t levels = high - low + 1;
    std::vector<int> height(levels, 1), top(levels);
    std::vector<bool> is_end(count);
    for (int i : ends) is_end[i] = true;
    for (int i = 0; i < count; ++i)
      if (!is_forward(i) && !is_end[i]) height[level[i] - low] = std::max(height[level[i] - low], step[i] + 1);
    for (std::size_t l = 1; l < levels; ++l) top[l] = top[l - 1] + height[l - 1];
    // The row of the forward within its level: the one from which most of the backward reads.
    std::vector<int> sum(levels), readings(levels);
    for (const Link& link : picture.links)
      if (is_forward(link.from) && !is_forward(link.to) && level[link.from] == level[link.to] && !lifted[link.from] &&
          !is_end[link.to]) {
        sum[level[link.to] - low] += step[link.to];
        ++readings[level[link.to] - low];
      }
    for (int i = 0; i < count; ++i) {
      int l = level[i] - low;
      int up = !is_forward(i) ? step[i] : readings[l] ? (sum[l] + readings[l] / 2) / readings[l] : height[l] / 2;
      row[i] = top[l] + height[l] - 1 - up;
    }
    for (int i : ends) {
      int r = INT_MAX;
      for (int in : sources.of(i))
        if (!is_forward(in) && in < i) r = std::min(r, row[in] - 1);
      if (r != INT_MAX) row[i] = r;
    }
    for (int i = count - 1; i >= 0; --i) {
      if (!is_forward(i) || !lifted[i]) continue;
      int r = INT_MAX;
      for (int out : readers.of(i))
        if (is_forward(out)) r = std::min(r, row[out] - 1);
      if (r != INT_MAX) row[i] = r;
    }
  }

  // Removes empty rows and numbers the others from 0.
  void close_gaps() {
    if (row.empty()) return;
    int low = *std::min_element(row.begin(), row.end());
    int high = *std::max_element(row.begin(), row.end());
    std::vector<int> used(high - low + 1);
    for (int r : row) used[r - low] = 1;
    int next = 0;
    for (int& u : used) u = u ? next++ : -1;
    for (int& r : row) r = used[r - low];
  }

  std::vector<int> step;
  std::vector<int> ends;  ///< backward cards that lead to no forward value: gradients that are returned
};

}  // namespace

Adjacency link_index(const Picture& picture, int Link::* key) {
  Adjacency a;
  a.begin.assign(picture.cards.size() + 1, 0);
  a.list.resize(picture.links.size());
  for (const Link& link : picture.links) ++a.begin[link.*key + 1];
  for (std::size_t i = 1; i < a.begin.size(); ++i) a.begin[i] += a.begin[i - 1];
  std::vector<int> at(a.begin.begin(), a.begin.end() - 1);
  for (std::size_t i = 0; i < picture.links.size(); ++i) a.list[at[picture.links[i].*key]++] = static_cast<int>(i);
  return a;
}
Adjacency readers_of(const Picture& picture) {
  return adjacency(picture, &Link::from, &Link::to);
}
Adjacency sources_of(const Picture& picture) {
  return adjacency(picture, &Link::to, &Link::from);
}

std::vector<int> assign_rows(const Picture& picture, const Adjacency& sources, const Adjacency& readers) {
  Rows rows{picture, sources, readers};
  rows.find_lifted();
  rows.forward_levels();
  rows.lower_loose_trees();
  rows.lift_sources();
  rows.backward_levels();
  rows.forward_leftovers();
  rows.backward_steps();
  rows.rows();
  rows.close_gaps();
  return std::move(rows.row);
}

}  // namespace partita::views
