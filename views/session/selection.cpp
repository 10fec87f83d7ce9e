#include "views/session/selection.h"

namespace partita::views {

void Selection::select(const Spot& spot) {
  if (spot == spot_) return;
  constexpr std::size_t kLongestWay = 1000;
  way_.resize(at_ + 1);
  if (way_.size() == kLongestWay) way_.erase(way_.begin());
  way_.push_back(spot);
  go(static_cast<int>(way_.size()) - 1);
}

void Selection::back() {
  if (can_go_back()) go(at_ - 1);
}

void Selection::forward() {
  if (can_go_forward()) go(at_ + 1);
}

void Selection::go(int at) {
  at_ = at;
  spot_ = way_[at];
  Q_EMIT changed(spot_);
}

}  // namespace partita::views
