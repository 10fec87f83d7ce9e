#pragma once
// The events of a chrome trace one by one, without the whole file in memory.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace partita {

/// Is this the beginning of a chrome trace, as torch.profiler writes it? `head`: as read_head() gives it.
bool is_chrome_trace(std::string_view head);
bool is_gzip(std::string_view head);

/// Reads the objects of "traceEvents", or of a file that is one list, plain or compressed by gzip. Memory is a buffer
/// that holds the longest event. What is cut off or damaged ends the stream, and damage() says so.
class EventStream {
 public:
  /// Errors: file.missing, file.read; profile.format when it has no list of events.
  static Result<std::unique_ptr<EventStream>> open(const std::string& path);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// The JSON of the next event, followed by bytes that a parser may read; valid until the next call. Nullopt at the
  /// end.
  std::optional<std::string_view> next();
  /// The value of "deviceProperties" where it stands before the events, as JSON; empty: there is none.
  const std::string& devices() const { return devices_; }
  /// Why the stream ended before the list did; empty: it did not.
  const std::string& damage() const { return damage_; }
  /// Of the file that was read, 0..1.
  double fraction() const;

 private:
  class Source;
  explicit EventStream(std::unique_ptr<Source> source);
  bool more();       ///< reads on, and keeps what begins at `kept_`; false at the end
  bool find_list();  ///< goes behind the "[" of the events
  bool skip_value();
  std::optional<char> peek();  ///< the next byte that is no white space
  std::optional<std::string> read_string();
  bool scan(char open);  ///< goes behind the object, list or string that begins at `at_`

  std::unique_ptr<Source> source_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0, kept_ = 0;
  std::uint64_t before_ = 0;  ///< bytes of the text before the buffer
  bool ended_ = false;
  std::string devices_, damage_;
};

}  // namespace partita
