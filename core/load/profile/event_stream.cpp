// Finds the events of a chrome trace by brackets and strings alone; what is in them the reader of events parses.
#include "core/load/profile/event_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/text.h"

namespace partita {
namespace {

constexpr std::size_t chunk_bytes = 1 << 20;
constexpr std::size_t padding_bytes = 64;          // that simdjson may read behind an event
constexpr std::size_t most_event_bytes = 1 << 26;  // an event with a long stack has some KiB

}  // namespace

bool is_gzip(std::string_view head) {
  return head.starts_with("\x1f\x8b\x08");
}

bool is_chrome_trace(std::string_view head) {
  const std::string_view text = trimmed(head);
  if (text.starts_with("[")) return text.find("\"ph\"") != std::string_view::npos;
  if (!text.starts_with("{")) return false;
  // The properties of many devices may fill what was read of the file before the first event.
  for (const char* key : {"\"traceEvents\"", "\"deviceProperties\""})
    if (text.find(key) != std::string_view::npos) return true;
  return false;
}

/// The bytes of a file, unpacked when it is compressed.
class EventStream::Source {
 public:
  static Result<std::unique_ptr<Source>> open(const std::string& path) {
    auto source = std::unique_ptr<Source>(new Source);
    source->file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (source->file_ < 0)
      return input_error(errno == ENOENT ? "file.missing" : "file.read",
                         errno == ENOENT ? "no such file; give one that exists"
                                         : std::string("cannot be read: ") + std::strerror(errno),
                         {.file = path});
    struct stat status = {};
    if (::fstat(source->file_, &status) != 0 || S_ISDIR(status.st_mode))
      return input_error("file.read", "is a folder; give the file that export_chrome_trace wrote", {.file = path});
    source->size_ = static_cast<std::uint64_t>(status.st_size);
    source->packed_.resize(chunk_bytes);
    source->refill();
    source->gzip_ = is_gzip({source->packed_.data(), source->packed_end_});
    if (source->gzip_ && ::inflateInit2(&source->inflate_, 15 + 16) != Z_OK)
      return Diagnostic{Fault::Internal, "profile.gzip", "zlib could not be started", {.file = path}};
    source->inflating_ = source->gzip_;
    return source;
  }
  ~Source() {
    if (inflating_) ::inflateEnd(&inflate_);
    if (file_ >= 0) ::close(file_);
  }

  /// Up to `room` bytes; 0 at the end, or where what is compressed is damaged.
  std::size_t read(char* into, std::size_t room) {
    if (!gzip_) {
      if (packed_at_ == packed_end_ && !refill()) return 0;
      const std::size_t n = std::min(room, packed_end_ - packed_at_);
      std::memcpy(into, packed_.data() + packed_at_, n);
      packed_at_ += n;
      return n;
    }
    inflate_.next_out = reinterpret_cast<Bytef*>(into);
    inflate_.avail_out = static_cast<uInt>(room);
    while (inflate_.avail_out == room && damage_.empty()) {
      if (packed_at_ == packed_end_ && !refill()) {
        if (!between_) damage_ = "the compressed data ends too soon";
        return 0;
      }
      inflate_.next_in = reinterpret_cast<Bytef*>(packed_.data() + packed_at_);
      inflate_.avail_in = static_cast<uInt>(packed_end_ - packed_at_);
      const int code = ::inflate(&inflate_, Z_NO_FLUSH);
      packed_at_ = packed_end_ - inflate_.avail_in;
      between_ = code == Z_STREAM_END;
      if (between_ && ::inflateReset(&inflate_) != Z_OK) damage_ = "the compressed data is damaged";
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) damage_ = "the compressed data is damaged";
    }
    return room - inflate_.avail_out;
  }

  const std::string& damage() const { return damage_; }
  double fraction() const {
    return size_ > 0 ? std::min(1.0, static_cast<double>(taken_) / static_cast<double>(size_)) : 1;
  }

 private:
  Source() = default;
  bool refill() {
    ssize_t n = 0;
    do n = ::read(file_, packed_.data(), packed_.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) damage_ = std::string("reading it failed: ") + std::strerror(errno);
    packed_at_ = 0;
    packed_end_ = n > 0 ? static_cast<std::size_t>(n) : 0;
    taken_ += packed_end_;
    return n > 0;
  }

  int file_ = -1;
  std::uint64_t size_ = 0, taken_ = 0;
  std::vector<char> packed_;  ///< as it is in the file
  std::size_t packed_at_ = 0, packed_end_ = 0;
  bool gzip_ = false, inflating_ = false;
  bool between_ = false;  ///< two compressed parts
  z_stream inflate_ = {};
  std::string damage_;
};

EventStream::EventStream(std::unique_ptr<Source> source) : source_(std::move(source)) {}
EventStream::~EventStream() = default;

Result<std::unique_ptr<EventStream>> EventStream::open(const std::string& path) {
  TRY(std::unique_ptr<Source> source, Source::open(path));
  std::unique_ptr<EventStream> stream(new EventStream(std::move(source)));
  if (stream->find_list()) return stream;
  const std::string why = stream->damage_.empty() ? std::string() : ": " + stream->damage_;
  return input_error(
      "profile.format",
      "is no profile: it has no list of traceEvents" + why + "; give what export_chrome_trace of torch.profiler wrote",
      {.file = path});
}

double EventStream::fraction() const {
  return source_->fraction();
}

bool EventStream::more() {
  if (kept_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + kept_, end_ - kept_);
    before_ += kept_;
    at_ -= kept_;
    end_ -= kept_;
    kept_ = 0;
  }
  if (end_ > most_event_bytes) {
    damage_ = fmt::format("an event at byte {} is longer than {} MiB", before_, most_event_bytes >> 20);
    return false;
  }
  if (buffer_.size() < end_ + chunk_bytes + padding_bytes) buffer_.resize(2 * end_ + 2 * chunk_bytes);
  const std::size_t n = source_->read(buffer_.data() + end_, chunk_bytes);
  end_ += n;
  std::memset(buffer_.data() + end_, 0, padding_bytes);
  if (n == 0 && damage_.empty()) damage_ = source_->damage();
  return n > 0;
}

std::optional<char> EventStream::peek() {
  while (true) {
    while (at_ < end_ && (buffer_[at_] == ' ' || buffer_[at_] == '\n' || buffer_[at_] == '\r' || buffer_[at_] == '\t'))
      ++at_;
    if (at_ < end_) return buffer_[at_];
    kept_ = at_;
    if (!more()) return std::nullopt;
  }
}

bool EventStream::scan(char open) {
  kept_ = at_;
  int depth = 0;
  bool in_string = open == '"';
  std::size_t i = at_ + (in_string ? 1 : 0);
  while (true) {
    const char* text = buffer_.data();
    for (; i < end_; ++i) {
      const char c = text[i];
      if (in_string) {
        if (c == '\\') {
          ++i;
        } else if (c == '"') {
          in_string = false;
          if (depth == 0) {
            at_ = i + 1;
            return true;
          }
        }
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        at_ = i + 1;
        return true;
      }
    }
    const std::size_t scanned = i - kept_;  // a backslash may be the last byte that was read
    at_ = kept_;
    if (!more()) return false;
    i = scanned;
  }
}

std::optional<std::string> EventStream::read_string() {
  if (!scan('"')) return std::nullopt;
  return std::string(buffer_.data() + kept_ + 1, at_ - kept_ - 2);
}

bool EventStream::skip_value() {
  const auto first = peek();
  if (!first) return false;
  if (*first == '{' || *first == '[' || *first == '"') return scan(*first);
  kept_ = at_;
  while (true) {  // a number or a word
    while (at_ < end_ && buffer_[at_] != ',' && buffer_[at_] != '}') ++at_;
    if (at_ < end_) return true;
    if (!more()) return false;
  }
}

bool EventStream::find_list() {
  const auto first = peek();
  if (first == '[') {
    ++at_;
    return true;
  }
  if (first != '{') return false;
  ++at_;
  while (true) {
    auto c = peek();
    if (c == ',') {
      ++at_;
      c = peek();
    }
    if (c != '"') return false;
    const auto key = read_string();
    if (!key || peek() != ':') return false;
    ++at_;
    if (*key == "traceEvents") {
      if (peek() != '[') return false;
      ++at_;
      return true;
    }
    if (!skip_value()) return false;
    if (*key == "deviceProperties") devices_.assign(buffer_.data() + kept_, at_ - kept_);
  }
}

std::optional<std::string_view> EventStream::next() {
  if (ended_) return std::nullopt;
  auto c = peek();
  while (c == ',') {
    ++at_;
    c = peek();
  }
  ended_ = true;
  if (c == ']') return std::nullopt;
  const std::uint64_t begin = before_ + at_;
  if (c == '{' && scan('{')) {
    ended_ = false;
    return std::string_view(buffer_.data() + kept_, at_ - kept_);
  }
  if (damage_.empty())
    damage_ = c == '{' ? fmt::format("it ends within the event at byte {}", begin)
              : c      ? fmt::format("at byte {} there is no event", begin)
                       : std::string("it ends within its list of events");
  return std::nullopt;
}

}  // namespace partita
