#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// Numbered items worked on in child processes, so that a crash or an endless loop costs one step of one item.
struct Workers {
  using Send = std::function<void(std::string_view message)>;

  std::size_t items = 0;
  unsigned jobs = 1;         ///< children at a time
  double step_seconds = 60;  ///< a child that sends nothing for so long is ended
  /// In a child: works on `item` from its step `from` (0: the beginning) on and sends the parent what it finds.
  std::function<void(std::size_t item, std::size_t from, const Send& send)> work;
  /// In the parent, in the order sent; messages of different items come interleaved.
  std::function<void(std::size_t item, std::string_view message)> receive;
  /// In the parent: the child died over `item`, `how` says in what way ("Segmentation fault: LAST LINE OF STDERR").
  /// Returns the step to go on from in another child; nullopt leaves the rest of the item.
  std::function<std::optional<std::size_t>(std::size_t item, const std::string& how)> died;
};

/// Runs all items. The children are forked, not started anew: call it while the process has one thread. Error
/// workers.fork when the system gives no process.
Status run_workers(const Workers& workers);

}  // namespace partita
