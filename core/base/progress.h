#pragma once
#include <atomic>
#include <functional>
#include <string_view>

#include "core/base/result.h"

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

/// Fault::Cancelled once `progress` (may be null) was asked to stop.
inline Status check_cancelled(const Progress* progress) {
  if (progress && progress->cancelled()) return stopped_on_request();
  return {};
}
/// The same; also reports the current step.
inline Status step(const Progress* progress, double fraction, std::string_view what) {
  TRY_DO(check_cancelled(progress));
  if (progress) progress->at(fraction, what);
  return {};
}

}  // namespace partita
