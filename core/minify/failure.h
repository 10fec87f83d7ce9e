#pragma once
#include <string>

#include "core/base/result.h"

namespace partita::minify {

/// How a graph fails. Two failures are the same if `what` and `op` are equal. The rest is for people, and for guessing
/// where to look.
struct Failure {
  /// "signal 11", "exit 3", "timeout", "out of memory", "error CODE", "values", "nan", "dtype", "sizes", "command"; of
  /// an exception in PyTorch "error torch.exception.CLASS: ITS FIRST LINE", without words that hold numbers.
  std::string what;
  std::string op;       ///< operator of the node that an error names, or dtype of the wrong output; empty when unknown
  std::string node;     ///< that node's name in the graph that failed
  std::string message;  ///< one line

  bool same(const Failure& other) const { return what == other.what && op == other.op; }
  std::string text() const;  ///< "signal 11" or "error ops.unknown at aten.foo.default"
};

/// One line of JSON, for stores and pipes.
std::string to_json(const Failure& failure);
Result<Failure> failure_from_json(const std::string& json);

}  // namespace partita::minify
