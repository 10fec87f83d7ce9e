#include "views/graph/overlay.h"

#include <algorithm>
#include <cmath>

#include "views/look/format.h"

namespace partita::views {
namespace {

// Colours for names, by their first appearance.
QColor category(std::size_t index, const Theme& theme) {
  static constexpr Family order[] = {Family::Pointwise,  Family::Index,  Family::Reduction, Family::Random,
                                     Family::Collective, Family::Matmul, Family::Control,   Family::Other};
  QColor colour = theme.family(order[index % std::size(order)]);
  return (index / std::size(order)) % 2 == 1 ? (theme.dark ? colour.darker(150) : colour.lighter(140)) : colour;
}

using Text = QString (*)(double);

// `values` by card; negative: unknown.
void scale(Overlay& overlay, const std::vector<double>& values, Text text, const Theme& theme) {
  Overlay::Ramp ramp{LogScale::of(values), text};
  int zeros = 0, without_value = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double v = values[i];
    if (v < 0) continue;
    bool not_a_number = std::isnan(v);
    zeros += v == 0;
    without_value += not_a_number;
    overlay.colours[i] = not_a_number ? nan_colour(theme) : sequential(ramp.scale.at(v), theme);
    overlay.texts[i] = text(v);
  }
  if (zeros > 0) overlay.legend.push_back({sequential(0, theme), QString("%1 (%2)").arg(text(0)).arg(zeros)});
  if (without_value > 0) overlay.legend.push_back({nan_colour(theme), QString("N: nan (%1)").arg(without_value)});
  if (!ramp.scale.empty()) overlay.ramp = ramp;
}

void categories(Overlay& overlay, const std::vector<std::string>& names, const Theme& theme) {
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::pair<std::string, int>> counts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    auto [found, fresh] = index.try_emplace(names[i], counts.size());
    if (fresh) counts.emplace_back(names[i], 0);
    ++counts[found->second].second;
    overlay.colours[i] = category(found->second, theme);
    overlay.texts[i] = QString::fromStdString(names[i]);
  }
  constexpr std::size_t kMostEntries = 8;
  for (std::size_t k = 0; k < counts.size() && k < kMostEntries; ++k)
    overlay.legend.push_back(
        {category(k, theme), QString("%1 (%2)").arg(QString::fromStdString(counts[k].first)).arg(counts[k].second)});
  if (counts.size() > kMostEntries)
    overlay.legend.push_back({QColor(), QString("and %1 more").arg(counts.size() - kMostEntries)});
}

// The number that a card is coloured by; negative: unknown.
using Number = double (*)(const Card& card, const NodeFacts& facts);
// The name that a card is coloured by; empty: unknown.
using Name = std::string (*)(const Picture& picture, const Card& card, const NodeFacts& facts);

std::string outermost_frame(const Picture& picture, const Card& card, const NodeFacts&) {
  int frame = card.frame;
  while (frame >= 0 && picture.frames[frame].parent >= 0) frame = picture.frames[frame].parent;
  return frame >= 0 ? picture.frames[frame].label : std::string();
}

// One row per kind, in the enumeration's order: by a number, by a name, or, with neither, by family.
struct OverlayRow {
  OverlayKind kind;
  const char* name;
  bool (*known)(const NodeFacts&);  ///< null: the graph says it itself
  Number number = nullptr;
  Text text = nullptr;
  Name category = nullptr;
};
constexpr OverlayRow kOverlays[] = {
    {OverlayKind::None, "Family", nullptr},
    {OverlayKind::Bytes, "Bytes", nullptr,
     [](const Card& card, const NodeFacts&) { return static_cast<double>(card.bytes); },
     [](double v) { return bytes_text(static_cast<std::int64_t>(v)); }},
    {OverlayKind::Error, "Error", [](const NodeFacts& f) { return f.error >= 0; },
     [](const Card&, const NodeFacts& f) { return f.error; }, &error_text},
    {OverlayKind::Time, "Time", [](const NodeFacts& f) { return f.seconds >= 0; },
     [](const Card&, const NodeFacts& f) { return f.seconds; }, &seconds_text},
    {OverlayKind::Kernel, "Fused kernel", [](const NodeFacts& f) { return !f.kernel.empty(); }, nullptr, nullptr,
     [](const Picture&, const Card&, const NodeFacts& f) { return f.kernel; }},
    {OverlayKind::Module, "Module", nullptr, nullptr, nullptr, &outermost_frame},
    {OverlayKind::Pass, "Pass", [](const NodeFacts& f) { return !f.pass.empty(); }, nullptr, nullptr,
     [](const Picture&, const Card&, const NodeFacts& f) { return f.pass; }},
};

const OverlayRow& row_of(OverlayKind kind) {
  return kOverlays[static_cast<std::size_t>(kind)];
}

}  // namespace

std::vector<OverlayKind> overlay_kinds() {
  std::vector<OverlayKind> kinds;
  for (const OverlayRow& row : kOverlays) kinds.push_back(row.kind);
  return kinds;
}

QString overlay_name(OverlayKind kind) {
  return row_of(kind).name;
}

std::optional<OverlayKind> overlay_of(const QString& name) {
  for (const OverlayRow& row : kOverlays) {
    const QStringList words = QString(row.name).split(' ');
    if (words.first().compare(name, Qt::CaseInsensitive) == 0 || words.last().compare(name, Qt::CaseInsensitive) == 0)
      return row.kind;
  }
  return std::nullopt;
}

bool overlay_known(OverlayKind kind, const NodeFacts& facts) {
  const auto known = row_of(kind).known;
  return known == nullptr || known(facts);
}

Overlay make_overlay(OverlayKind kind, const Picture& picture, const Facts& facts, const Theme& theme) {
  const OverlayRow& row = row_of(kind);
  Overlay overlay;
  overlay.kind = kind;
  std::size_t count = picture.cards.size();
  overlay.colours.resize(count);
  overlay.marks.resize(count);
  overlay.texts.resize(count);
  std::vector<double> numbers(count, -1);
  std::vector<std::string> names(count);
  int over = 0;
  double tolerance = -1;
  for (std::size_t i = 0; i < count; ++i) {
    const Card& card = picture.cards[i];
    const auto found = card.node ? facts.find(card.node->name()) : facts.end();
    const NodeFacts known = found == facts.end() ? NodeFacts() : found->second;
    if (row.number) numbers[i] = row.number(card, known);
    if (row.category) names[i] = row.category(picture, card, known);
    if (kind != OverlayKind::Error) continue;
    overlay.marks[i] = std::isnan(known.error) ? 'N' : known.wrong ? '!' : 0;
    over += known.wrong;
    tolerance = std::max(tolerance, known.tolerance);
  }
  if (row.category) {
    categories(overlay, names, theme);
  } else if (row.number) {
    scale(overlay, numbers, row.text, theme);
    if (over > 0) overlay.legend.push_back({theme.bad, QString("!: over tolerance (%1)").arg(over)});
    if (overlay.ramp && kind == OverlayKind::Error) overlay.ramp->mark = tolerance;
  } else {
    std::vector<int> per_family(16);
    for (const Card& card : picture.cards) ++per_family[static_cast<int>(card.family)];
    for (int f = 0; f <= static_cast<int>(Family::Other); ++f)
      if (per_family[f] > 0) {
        auto family = static_cast<Family>(f);
        overlay.legend.push_back({theme.family(family), text(family_name(family))});
      }
  }
  return overlay;
}

}  // namespace partita::views
