#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "core/base/raise.h"

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

/// While it lives, the long loops of its thread ask `progress` (null: nobody) whether to stop.
class StopsLoops {
 public:
  explicit StopsLoops(const Progress* progress) : outer_(asked_) { asked_ = progress; }
  ~StopsLoops() { asked_ = outer_; }
  StopsLoops(const StopsLoops&) = delete;
  StopsLoops& operator=(const StopsLoops&) = delete;

  /// Raises Fault::Cancelled once the work was asked to stop.
  static void check() {
    if (asked_ && asked_->cancelled()) stop();
  }

 private:
  [[noreturn, gnu::noinline]] static void stop() { throw Raise{stopped_on_request()}; }

  static inline thread_local const Progress* asked_ = nullptr;
  const Progress* outer_;
};

/// The numbers 0 .. n - 1, see steps().
class Steps {
 public:
  Steps(std::int64_t n, std::int64_t between) : n_(n), between_(between) {}

  class Iterator {
   public:
    Iterator(std::int64_t at, std::int64_t between) : at_(at), next_(at), between_(between) {}
    std::int64_t operator*() {
      if (at_ == next_) [[unlikely]] {
        StopsLoops::check();
        next_ += between_;
      }
      return at_;
    }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    std::int64_t at_, next_, between_;
  };
  Iterator begin() const { return {0, between_}; }
  Iterator end() const { return {n_, between_}; }

 private:
  std::int64_t n_, between_;
};

/// For a loop that may take long: for (std::int64_t i : steps(n)). It raises Fault::Cancelled soon after it was asked
/// to stop. `cost` is about how many operations a step takes; cheap steps ask less often.
inline Steps steps(std::int64_t n, std::int64_t cost = 1) {
  constexpr std::int64_t between = 4096;
  return {std::max<std::int64_t>(n, 0), std::max<std::int64_t>(between / std::max<std::int64_t>(cost, 1), 1)};
}

}  // namespace partita
