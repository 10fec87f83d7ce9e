#pragma once
#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace partita {

/// Milliseconds that the stages of a compilation took, summed by name, in the order in which they first ran.
/// Thread-safe.
class StageTimes {
 public:
  void add(std::string_view stage, double milliseconds) {
    std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(all_, stage, &std::pair<std::string, double>::first);
    if (known != all_.end())
      known->second += milliseconds;
    else
      all_.emplace_back(stage, milliseconds);
  }
  std::vector<std::pair<std::string, double>> all() const {
    std::lock_guard lock(mutex_);
    return all_;
  }
  /// The same, and forgets them.
  std::vector<std::pair<std::string, double>> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, double>> all_;
};

}  // namespace partita
