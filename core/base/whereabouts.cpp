#include "core/base/whereabouts.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

namespace partita {
namespace {

std::atomic<Whereabouts*> page = nullptr;
std::mutex one_writer;

/// A text of the page, which a dying process may have left without its end.
template <std::size_t n>
std::string text_in(const char (&field)[n]) {
  return std::string(field, ::strnlen(field, n));
}

}  // namespace

void write_whereabouts_to(Whereabouts* to) {
  page = to;
}

bool watched() {
  return page.load(std::memory_order_relaxed) != nullptr;
}

void now_at(std::string_view what, std::span<const std::string> nodes) {
  Whereabouts* to = page.load(std::memory_order_relaxed);
  if (!to) return;
  const std::lock_guard lock(one_writer);
  const std::size_t length = std::min(what.size(), sizeof to->what - 1);
  std::memcpy(to->what, what.data(), length);
  to->what[length] = 0;
  std::size_t at = 0;
  for (const std::string& node : nodes) {
    const std::string_view comma = at == 0 ? "" : ", ";
    if (at + comma.size() + node.size() >= sizeof to->nodes) break;
    std::memcpy(to->nodes + at, comma.data(), comma.size());
    std::memcpy(to->nodes + at + comma.size(), node.data(), node.size());
    at += comma.size() + node.size();
  }
  to->nodes[at] = 0;
  to->notes.fetch_add(1, std::memory_order_release);
}

Diagnostic death(std::string_view who, std::string_view how, const Whereabouts& last) {
  const std::string what = text_in(last.what), nodes = text_in(last.nodes);
  std::string message = fmt::format("{} ended: {}", who, how);
  if (!what.empty()) message += " while " + what;
  if (!nodes.empty()) message += fmt::format(" ({})", nodes);
  return {Fault::Internal, "process.died", message + "; partita minify finds the part of the graph that does it",
          Where{.node = nodes.substr(0, nodes.find(','))}};
}

bool is_death(const Diagnostic& error) {
  return error.code == "process.died";
}

}  // namespace partita
