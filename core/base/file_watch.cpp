#include "core/base/file_watch.h"

#include <array>
#include <cerrno>
#include <chrono>

#include <poll.h>
#include <sys/inotify.h>

namespace partita {

FileWatch::FileWatch(std::string only) : watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), only_(std::move(only)) {}

void FileWatch::add(const std::string& folder) {
  constexpr std::uint32_t what = IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR;
  if (watch_.get() >= 0) ::inotify_add_watch(watch_.get(), folder.c_str(), what);
}

bool FileWatch::take() {
  alignas(inotify_event) std::array<char, 1 << 16> events;
  bool changed = false;
  while (true) {
    const ssize_t size = ::read(watch_.get(), events.data(), events.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return changed;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      const std::string_view name = event->len > 0 ? event->name : "";
      changed = changed || only_.empty() || name == only_ || event->mask & IN_Q_OVERFLOW;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
}

void FileWatch::wait(double seconds, const Progress* progress) {
  constexpr int turn = 50;  // milliseconds until a cancellation is noticed
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end && !(progress && progress->cancelled())) {
    pollfd changed{watch_.get(), POLLIN, 0};
    if (::poll(&changed, 1, turn) > 0 && take()) return;
  }
}

}  // namespace partita
