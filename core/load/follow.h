#pragma once
// Files and folders that grow while they are looked at: a log that a program still writes, a folder that gets files.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/load/session.h"

namespace partita {

class FileBytes;
struct Loading;

/// What was not there when a Followed was asked before.
struct LoadNews {
  /// New ones, and those that have grown, under the ids that they had.
  std::vector<Artefact> artefacts;
  std::vector<Diagnostic> warnings;
  /// Files that hold something else than when they were read. They are not read again.
  std::vector<std::string> rewritten;

  bool empty() const { return artefacts.empty() && warnings.empty() && rewritten.empty(); }
};

/// Puts the news into what was loaded: artefacts that have grown in their place, new ones at the end.
void add_news(Loaded& loaded, LoadNews news);

/// A file or a folder that is read as it grows. A TORCH_TRACE log is read from where it was left; in a folder, new
/// files are read, and changed ones again.
class Followed {
 public:
  explicit Followed(std::string path);
  ~Followed();
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  /// All that there is, as load() gives it, without the last record of a log where it may go on. Errors as load().
  Result<Loaded> begin(const Progress* progress);
  /// What has come since. A file that is gone brings nothing.
  Result<LoadNews> next(const Progress* progress);
  /// The folders in which something may change.
  std::vector<std::string> folders() const;

 private:
  struct File;
  struct Stamp;
  Status look(Loading& loading, LoadNews* news);
  Status look_at_recording(Loading& loading, LoadNews* news);
  Status look_at(const std::string& path, const std::string& prefix, Loading& loading, LoadNews* news);
  Status read_log(File& file, const std::string& path, const std::shared_ptr<const FileBytes>& bytes, Loading& loading);
  Status read_again(File& file, const std::string& path, const std::string& prefix, Loading& loading);

  const std::string path_;
  std::map<std::string, File> files_;
  std::unordered_map<std::string, int> copies_;
};

}  // namespace partita
