#include "app/progress_line.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace partita {

using namespace std::chrono_literals;

ProgressLine::ProgressLine() : next_(std::chrono::steady_clock::now() + 500ms) {
  if (::isatty(STDERR_FILENO))
    progress_.report = [this](double fraction, std::string_view what) { show(fraction, what); };
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void ProgressLine::show(double fraction, std::string_view what) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + 100ms;
  shown_ = true;
  constexpr int kWidth = 24;
  constexpr std::size_t kMostText = 48;
  std::string line = "\r\033[K";
  if (fraction >= 0) {
    const int done = std::clamp(static_cast<int>(fraction * kWidth), 0, kWidth);
    line +=
        fmt::format("[{:=<{}}{:<{}}] {:3.0f} %  ", "", done, "", kWidth - done, std::clamp(fraction, 0.0, 1.0) * 100);
  }
  line += what.substr(0, kMostText);
  std::fputs(line.c_str(), stderr);
}

}  // namespace partita
