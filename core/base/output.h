#pragma once
// All files that users ask for are written by these functions.
#include <span>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "core/base/result.h"

namespace partita {

/// How bytes get to a path.
enum class OutputWay {
  Replace,     ///< a file beside it is written and renamed, so that a reader never sees half of it
  InPlace,     ///< a fifo or a character device takes them as they come
  Descriptor,  ///< the path is a name of an open descriptor, as /dev/stdout
};

/// Where bytes for a path go, by what is there.
struct OutputPlace {
  OutputWay way = OutputWay::Replace;
  std::string path;     ///< symbolic links are followed
  int descriptor = -1;  ///< for OutputWay::Descriptor
  bool exists = false;
  struct stat status = {};  ///< of what exists
};

/// How a file with this st_mode is written. Error file.write for folders, sockets and block devices.
Result<OutputWay> output_way(mode_t mode, const std::string& path);

/// Finds out where bytes for a path would go, and touches nothing. - is standard output. Error file.write when nothing
/// can be written there.
Result<OutputPlace> output_place(const std::string& path);

enum class OutputKind { Data, Program };  ///< a new program may be executed

/// Writes the parts one after another. A file that exists keeps its mode and, where that is allowed, its owner; it
/// stays as it is when anything fails. Error file.write.
Status write_file(const std::string& path, std::span<const std::string_view> parts, OutputKind kind = OutputKind::Data);
Status write_file(const std::string& path, std::string_view bytes, OutputKind kind = OutputKind::Data);

/// Puts a finished file in the place of another on the same file system, which keeps its mode. Error file.write.
Status move_file(const std::string& from, const std::string& path);

/// Makes a folder and what is missing above it. Error file.write.
Status make_folder(const std::string& path);
/// Whether make_folder would find something else in the folder's place; touches nothing. Error file.write.
Status check_folder(const std::string& path);

/// A file that is written line by line while others read it, for logs. Its earlier content goes when it is opened.
class OutputLog {
 public:
  /// Error file.write.
  static Result<OutputLog> open(const std::string& path);
  ~OutputLog();
  OutputLog(OutputLog&& other) noexcept;
  OutputLog& operator=(OutputLog&&) = delete;

  /// Error file.write, as for a full disk.
  Status write(std::string_view bytes);

 private:
  OutputLog(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
};

}  // namespace partita
