// Matches the calls of two logs of DebugMode: those at the beginning and at the end that are the same, and between them
// a longest common sequence.
#include "core/diff/calls.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/load/records.h"

namespace partita {
namespace {

/// Calls of one log times those of the other, between which a common sequence is looked for.
constexpr std::size_t most_pairs = 16'000'000;

using Calls = std::vector<std::string_view>;
constexpr std::size_t none = SIZE_MAX;

const Artefact* calls_of(const Run& run) {
  for (const Compilation& c : run.compilations)
    for (const Artefact* a : c.artefacts)
      if (!a->is_graph() && record_name(*a) == "calls") return a;
  return nullptr;
}

/// For each call of `a` its partner in `b`, or none. Partners are in order.
std::vector<std::size_t> partners(const Calls& a, const Calls& b) {
  std::vector<std::size_t> out(a.size(), none);
  std::size_t begin = 0, end = 0;
  while (begin < std::min(a.size(), b.size()) && a[begin] == b[begin]) out[begin] = begin, ++begin;
  while (end < std::min(a.size(), b.size()) - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) {
    out[a.size() - 1 - end] = b.size() - 1 - end;
    ++end;
  }
  const std::size_t rows = a.size() - begin - end, columns = b.size() - begin - end;
  if (rows == 0 || columns == 0 || columns > most_pairs / rows) return out;
  // length[i][j]: of the longest sequence that a from i on and b from j on have in common.
  const auto at = [&](std::size_t i, std::size_t j) { return i * (columns + 1) + j; };
  std::vector<std::uint32_t> length((rows + 1) * (columns + 1));
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      length[at(i, j)] = a[begin + i] == b[begin + j] ? length[at(i + 1, j + 1)] + 1
                                                      : std::max(length[at(i + 1, j)], length[at(i, j + 1)]);
  for (std::size_t i = 0, j = 0; i < rows && j < columns;)
    if (a[begin + i] == b[begin + j])
      out[begin + i] = begin + j, ++i, ++j;
    else
      (length[at(i + 1, j)] >= length[at(i, j + 1)] ? i : j) += 1;
  return out;
}

std::string joined(const Calls& calls, std::size_t begin, std::size_t end) {
  constexpr std::size_t most = 4;
  std::string out;
  for (std::size_t i = begin; i < std::min(end, begin + most); ++i)
    out += (out.empty() ? "" : "; ") + std::string(trimmed(calls[i]));
  return end - begin > most ? fmt::format("{}; and {} more", out, end - begin - most) : out;
}

}  // namespace

void compare_calls(const std::vector<Run>& runs, std::vector<DiffRow>& rows) {
  if (runs.size() != 2) return;
  const Artefact *const first = calls_of(runs[0]), *const second = calls_of(runs[1]);
  if (!first || !second) return;
  const auto texts = std::pair(first->text(), second->text());
  if (!texts.first || !texts.second) return;
  const Calls a = lines_of(*texts.first), b = lines_of(*texts.second);
  const std::vector<std::size_t> partner = partners(a, b);
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && partner[i] == j) {
      ++i, ++j;
      continue;
    }
    const std::size_t i_begin = i, j_begin = j;
    while (i < a.size() && partner[i] == none) ++i;
    j = i < a.size() ? partner[i] : b.size();
    rows.push_back({DiffAspect::Call,
                    {},
                    fmt::format("call {}", i_begin + 1),
                    {{joined(a, i_begin, i), first}, {joined(b, j_begin, j), second}},
                    {}});
  }
}

}  // namespace partita
