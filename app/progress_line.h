#pragma once
#include <chrono>
#include <mutex>

#include "core/base/progress.h"

namespace partita {

/// Progress of a long command as one line on the terminal that is stderr, which goes when the command ends. Nothing is
/// written in the first half second, and nothing at all when stderr is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  const Progress& progress() const { return progress_; }
  void clear();  ///< before something else is printed

 private:
  void show(double fraction, std::string_view what);

  Progress progress_;
  std::mutex mutex_;  ///< guards the two below
  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

}  // namespace partita
