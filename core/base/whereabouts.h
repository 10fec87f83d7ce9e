#pragma once
// What a process is at, written where another process can read it after the first one has died.
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// A page that two processes share. All zero: nothing was noted yet.
struct Whereabouts {
  std::atomic<std::uint64_t> notes;  ///< while this number stands still, the process is at the same step
  char what[1024];                   ///< "running kernel 3", ends with a zero byte
  char nodes[3064];                  ///< names with ", " between them; cut off when there are many
};
static_assert(sizeof(Whereabouts) == 4096);

/// From here on now_at() writes to `page`; null: nowhere.
void write_whereabouts_to(Whereabouts* page);
/// Does somebody watch this process? Else now_at() does nothing, and its arguments need not be made.
bool watched();
/// Notes what this process begins to do now, and for which nodes.
void now_at(std::string_view what, std::span<const std::string> nodes = {});

/// Writes to a page what another process tells of itself.
void write(Whereabouts* page, std::string_view what, std::span<const std::string> nodes);

/// "running kernel 3 (mul, add)"; empty when nothing was noted.
std::string text_of(const Whereabouts& page);
/// The first of the nodes; empty: none.
std::string node_of(const Whereabouts& page);

/// The error for a process that ended before its work: Fault::Internal, code process.died. `how` is "signal 11
/// (Segmentation fault)"; the message names it, what the process was at and the nodes, and Where::node is the first.
Diagnostic death(std::string_view who, std::string_view how, const Whereabouts& last);
bool is_death(const Diagnostic& error);

}  // namespace partita
