#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// Numbered items that are worked on in child processes, so that a crash or an endless loop costs one step of one item.
struct Workers {
  using Send = std::function<void(std::string_view message)>;

  std::size_t items = 0;
  unsigned jobs = 1;         ///< children at a time
  double step_seconds = 60;  ///< a child that sends nothing for this long is killed
  /// Runs in a child. Works on `item` from step `from` on (0: the beginning) and sends its findings to the parent.
  std::function<void(std::size_t item, std::size_t from, const Send& send)> work;
  /// Runs in the parent, in the order of sending. Messages of different items come interleaved.
  std::function<void(std::size_t item, std::string_view message)> receive;
  /// Runs in the parent when a child died while it worked on `item`. `how` is "signal 11 (Segmentation fault): LAST
  /// LINE OF STDERR" (a sanitizer's summary, if there is one). Returns a later step, at which another child goes on;
  /// nullopt gives up the rest of the item.
  std::function<std::optional<std::size_t>(std::size_t item, const std::string& how)> died;
};

/// Runs all items. Children are forked without exec, so call this while the process has one thread. Error
/// process.start.
Status run_workers(const Workers& workers);

}  // namespace partita
