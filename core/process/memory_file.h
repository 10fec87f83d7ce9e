#pragma once
#include <cstddef>
#include <string>

#include "core/base/descriptor.h"
#include "core/base/result.h"

namespace partita {

/// A file in memory for what a child process prints. Writes beyond its limit fail in the child.
class MemoryFile {
 public:
  /// Error process.start when the system gives none.
  static Result<MemoryFile> make(std::size_t most_bytes);

  int fd() const { return file_.get(); }
  /// What was written, or the end of it.
  std::string text(std::size_t most = std::string::npos) const;

 private:
  Descriptor file_;
};

}  // namespace partita
