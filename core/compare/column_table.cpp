#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/compare/side_values.h"

namespace partita {
namespace {

std::string cell(const Difference* d) {
  if (!d) return "-";
  if (!d->died.empty()) return "DIED";
  const std::string error = fmt::format("{}{:.3g}", d->by_statistics && !d->ok() ? ">= " : "", d->max_abs);
  if (!d->layout.empty()) return d->layout.front();
  if (d->ok() && d->by_statistics)
    return d->expected_statistics->hash == d->found_statistics->hash ? "the same" : "alike";
  std::string text = d->ok()          ? (d->rounding ? "rounding " : "ok ") + error
                     : d->inherited() ? "inherited " + error
                                      : "DIFFERS " + error;
  if (d->own && !d->ok()) text += fmt::format(" alone {:.3g}", d->own->max_abs);
  return text;
}

/// What the column says of its first row that differs.
std::string divergence(const Difference& d) {
  if (!d.died.empty()) return fmt::format("{}: {}", d.name, d.died);
  std::string text = d.name;
  if (!d.layout.empty())
    text += fmt::format(" ({})", d.layout.front());
  else if (d.own)
    text += d.own->ok ? fmt::format(" (alone it is right, {:.3g}: errors of its inputs grew here)", d.own->max_abs)
                      : fmt::format(" (an error of its own: alone {:.3g})", d.own->max_abs);
  if (d.expected_is_off) text += "; the expected value is the one that is off, by the run in double";
  if (!d.origin.empty()) text += ", " + d.origin;
  return text;
}

using Rows = std::unordered_map<std::string_view, const Difference*>;

const Difference* find(const Rows& rows, std::string_view name) {
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace

std::string table_text(std::span<const Report> columns, bool all, bool statistics) {
  if (columns.empty()) return {};
  std::vector<Rows> rows(columns.size());
  std::vector<std::string_view> names;  // in graph order: a column that died has the first of them
  std::unordered_set<std::string_view> known;
  std::vector<const Report*> longest;
  for (const Report& r : columns) longest.push_back(&r);
  std::ranges::stable_sort(longest, std::greater(), [](const Report* r) { return r->rows.size(); });
  for (const Report* r : longest)
    for (const Difference& d : r->rows)
      if (known.insert(d.name).second) names.push_back(d.name);
  for (std::size_t c = 0; c < columns.size(); ++c)
    for (const Difference& d : columns[c].rows) rows[c].emplace(d.name, &d);

  std::size_t name_width = 16, hidden = 0;
  for (const std::string_view name : names) name_width = std::max(name_width, std::min(name.size(), std::size_t{40}));
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    widths.push_back(columns[c].found_name.size());
    for (const auto& [name, d] : rows[c]) widths[c] = std::max(widths[c], cell(d).size());
  }
  const std::string& graph = columns.front().graph;
  std::string text = fmt::format("{:<{}}", graph.empty() ? "node" : graph, name_width);
  for (std::size_t c = 0; c < columns.size(); ++c) text += fmt::format("  {:<{}}", columns[c].found_name, widths[c]);
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
  for (const std::string_view name : names) {
    const bool differs = std::ranges::any_of(rows, [&](const Rows& r) {
      const Difference* d = find(r, name);
      return d && !d->ok();
    });
    if (!differs && !all) {
      ++hidden;
      continue;
    }
    text += fmt::format("{:<{}}", name, name_width);
    for (std::size_t c = 0; c < columns.size(); ++c)
      text += fmt::format("  {:<{}}", cell(find(rows[c], name)), widths[c]);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
    bool shown = !statistics;
    for (std::size_t c = 0; statistics && c < columns.size(); ++c) {
      const Difference* d = find(rows[c], name);
      if (d && d->expected_statistics && !std::exchange(shown, true))
        text += fmt::format("  {}: {}\n", columns[c].expected_name, statistics_text(*d->expected_statistics));
      if (d && d->found_statistics)
        text += fmt::format("  {}: {}{}\n", columns[c].found_name, statistics_text(*d->found_statistics),
                            d->cosine ? fmt::format(", cosine {:.9g}", *d->cosine) : "");
    }
  }
  if (hidden > 0) text += fmt::format("{} more agree in all columns\n", hidden);
  for (const Report& r : columns) {
    text += fmt::format("{} against {}: {} compared, {} differ", r.found_name, r.expected_name, r.rows.size(), r.bad());
    if (r.inherited() > 0) text += fmt::format(", {} of them only after an input that does", r.inherited());
    if (r.seconds > 0) text += fmt::format("; compiled and run in {:.3g} s", r.seconds);
    text += '\n';
    if (const Difference* first = r.first_bad()) text += fmt::format("  first divergence: {}\n", divergence(*first));
    if (!r.unsteady.empty())
      text += fmt::format("  not deterministic: two runs gave different bits in {}\n", fmt::join(r.unsteady, ", "));
    if (!r.why_not_own.empty()) text += fmt::format("  no node was run alone: {}\n", r.why_not_own);
  }
  return text;
}

}  // namespace partita
