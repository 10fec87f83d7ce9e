#pragma once
#include <atomic>
#include <functional>
#include <string_view>

namespace partita {

/// Lets a caller watch and stop long work. The work takes it by reference and asks `cancelled()` between its steps.
struct Progress {
  std::atomic<bool> stop = false;
  /// Called by the working thread with a fraction 0..1 and the name of the current step.
  std::function<void(double, std::string_view)> report;

  bool cancelled() const { return stop.load(std::memory_order_relaxed); }
  void at(double fraction, std::string_view what) const {
    if (report) report(fraction, what);
  }
};

}  // namespace partita
