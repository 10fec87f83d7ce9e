#include "core/compare/changes.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

namespace partita {
namespace {

void judge(ChangedRow& row) {
  const auto is = [&](RowChange change, std::string text) {
    row.change = change;
    row.text = std::move(text);
  };
  constexpr double worth_telling = 1.5;
  const Difference *a = row.a, *b = row.b;
  if (!a || !b) return is(RowChange::OnOneSide, a ? "only in A" : "only in B");
  if (a->ok() != b->ok() && b->ok()) return is(RowChange::Fixed, "fixed");
  if (a->ok() != b->ok())
    return b->inherited() ? is(RowChange::BrokenAfter, "broken after " + b->inherited_from)
                          : is(RowChange::Broken, "broken");
  if (a->specials_differ() || b->specials_differ() || a->max_abs == b->max_abs) return is(RowChange::Same, "same");
  if (a->max_abs == 0) return is(RowChange::Worse, "was exact");
  if (b->max_abs == 0) return is(RowChange::Better, "exact now");
  const double ratio = b->max_abs / a->max_abs;
  if (ratio > worth_telling) return is(RowChange::Worse, fmt::format("{:.3g} times larger", ratio));
  if (ratio < 1 / worth_telling) return is(RowChange::Better, fmt::format("{:.3g} times smaller", 1 / ratio));
  is(RowChange::Same, "about the same");
}

}  // namespace

std::vector<ChangedRow> changed_rows(const Report& a, const Report& b) {
  std::vector<ChangedRow> rows;
  std::unordered_map<std::string_view, std::size_t> index;
  for (const Difference& d : a.rows)
    if (index.try_emplace(d.name, rows.size()).second) rows.push_back({&d, nullptr, {}, {}});
  for (const Difference& d : b.rows) {
    const auto [found, fresh] = index.try_emplace(d.name, rows.size());
    if (fresh) rows.emplace_back();
    rows[found->second].b = &d;
  }
  for (ChangedRow& row : rows) judge(row);
  const auto error = [](const ChangedRow& row) { return row.any().specials_differ() ? INFINITY : row.any().max_abs; };
  std::ranges::stable_sort(rows, [&](const ChangedRow& x, const ChangedRow& y) {
    return x.change != y.change ? x.change < y.change : error(x) > error(y);
  });
  return rows;
}

}  // namespace partita
