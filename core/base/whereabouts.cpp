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
  write(to, what, nodes);
}

void write(Whereabouts* to, std::string_view what, std::span<const std::string> nodes) {
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

std::string text_of(const Whereabouts& of) {
  const std::string nodes = text_in(of.nodes);
  return text_in(of.what) + (nodes.empty() ? "" : fmt::format(" ({})", nodes));
}

std::string node_of(const Whereabouts& of) {
  const std::string nodes = text_in(of.nodes);
  return nodes.substr(0, nodes.find(','));
}

Diagnostic death(std::string_view who, std::string_view how, const Whereabouts& last) {
  const std::string at = text_of(last);
  return {Fault::Internal, "process.died",
          fmt::format("{} ended: {}{}{}; partita minify finds the part of the graph that does it", who, how,
                      at.empty() ? "" : " while ", at),
          Where{.node = node_of(last)}};
}

bool is_death(const Diagnostic& error) {
  return error.code == "process.died";
}

}  // namespace partita
