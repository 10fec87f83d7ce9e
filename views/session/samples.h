#pragma once
#include <QString>
#include <vector>

#include "core/base/result.h"

namespace partita::views {

/// A file in the program to begin with.
struct Sample {
  QString title, detail;  ///< "gpt2", "joint graph"
  QString path;           ///< ":/samples/gpt2/joint.py"
};
std::vector<Sample> samples();

/// Where a file is on disk: for a sample, which is written to the user's cache with what lies beside it, else the path
/// itself. Error samples.write.
Result<QString> path_on_disk(const QString& path);

}  // namespace partita::views
