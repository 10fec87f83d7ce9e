#pragma once
#include <string>

#include "core/base/descriptor.h"
#include "core/base/progress.h"

namespace partita {

/// Notices that something changes in folders (inotify). File systems over a network do not tell what other machines
/// write, and a folder beyond the system's limit of watches is not watched: look now and then all the same.
class FileWatch {
 public:
  /// `only`: the name of the one file that is of interest; empty: all are.
  explicit FileWatch(std::string only = {});

  void add(const std::string& folder);
  /// Readable when something may have changed; -1 where the system gives no watch.
  int descriptor() const { return watch_.get(); }
  /// Whether something changed since the last call.
  bool take();
  /// Waits until something changes, `progress` (may be null) is cancelled, or this many seconds have gone.
  void wait(double seconds, const Progress* progress);

 private:
  Descriptor watch_;
  std::string only_;
};

}  // namespace partita
