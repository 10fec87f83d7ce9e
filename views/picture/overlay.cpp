// The table of overlays, and their colours: a logarithmic scale for numbers, a scale beyond the tolerance for errors, a
// colour for each name. A folded frame sums up what is known of its nodes.
#include "views/picture/overlay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "core/base/mapped.h"
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
void scale(Overlay& overlay, const std::vector<double>& values, Text text, const Theme& theme, double from = 0) {
  Overlay::Ramp ramp{LogScale::of(values), text, -1, from};
  int zeros = 0, without_value = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double v = values[i];
    if (v < 0) continue;
    bool not_a_number = std::isnan(v);
    zeros += v == 0;
    without_value += not_a_number;
    overlay.colours[i] = not_a_number ? nan_colour(theme) : ramp.colour(ramp.scale.at(v), theme);
    overlay.texts[i] = text(v);
  }
  if (zeros > 0) overlay.legend.push_back({ramp.colour(0, theme), QString("%1 (%2)").arg(text(0)).arg(zeros)});
  if (without_value > 0) overlay.legend.push_back({nan_colour(theme), QString("N: nan (%1)").arg(without_value)});
  if (!ramp.scale.empty()) overlay.ramp = ramp;
}

// Errors within the tolerance are nothing to look at: only those beyond it have a colour.
void scale_errors(Overlay& overlay, std::vector<double> errors, const std::vector<NodeFacts>& facts,
                  const Theme& theme) {
  const QColor calm = diverging(0, theme);
  int agree = 0, over = 0, after = 0;
  double worst = 0, tolerance = -1;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    tolerance = std::max(tolerance, facts[i].tolerance);
    const bool inherited = facts[i].wrong && !facts[i].inherited_from.empty();
    over += facts[i].wrong && !inherited;
    after += inherited;
    overlay.marks[i] = std::isnan(facts[i].error) ? 'N' : inherited ? '>' : facts[i].wrong ? '!' : 0;
    if (errors[i] < 0 || facts[i].wrong) continue;
    ++agree;
    worst = std::max(worst, errors[i]);
    overlay.colours[i] = calm;
    overlay.texts[i] = error_text(errors[i]);
    errors[i] = -1;
  }
  constexpr double kAlarming = 0.6;
  scale(overlay, errors, &error_text, theme, kAlarming);
  if (overlay.ramp) overlay.ramp->mark = tolerance;
  if (over > 0) overlay.legend.push_back({theme.bad, QString("!: over tolerance (%1)").arg(over)});
  if (after > 0) overlay.legend.push_back({theme.dim, QString(">: after one that is (%1)").arg(after)});
  if (agree > 0) overlay.legend.push_back({calm, QString("agrees (%1), at most %2").arg(agree).arg(error_text(worst))});
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
using Name = std::string (*)(const NodeFacts& facts);

// The modules that tell the parts of a picture apart, by path: begins with the outermost, and opens the largest while
// it holds most of the picture.
std::unordered_set<std::string> telling_modules(const Picture& picture) {
  std::map<std::string, std::pair<int, std::set<std::string>>> modules;  // by path: nodes, modules inside
  std::unordered_set<std::string> shown;
  for (const Frame& frame : picture.frames) {
    modules[frame.path].first += frame.nodes;
    if (frame.parent >= 0)
      modules[picture.frames[frame.parent].path].second.insert(frame.path);
    else
      shown.insert(frame.path);
  }
  constexpr std::size_t kMost = 64;
  while (true) {
    int all = 0;
    const std::string* largest = nullptr;
    for (const std::string& path : shown) {
      const int nodes = modules[path].first;
      all += nodes;
      if (!largest || std::pair(nodes, path) > std::pair(modules[*largest].first, *largest)) largest = &path;
    }
    if (!largest) return shown;
    const auto& [nodes, inside] = modules[*largest];
    if (nodes * 5 < all * 2 || inside.empty() || shown.size() + inside.size() > kMost) return shown;
    shown.erase(std::string(*largest));
    shown.insert(inside.begin(), inside.end());
  }
}

std::string module_of(const Picture& picture, const Card& card, const std::unordered_set<std::string>& telling) {
  int outermost = -1;
  for (int frame = card.frame; frame >= 0; frame = picture.frames[frame].parent) {
    outermost = frame;
    if (telling.contains(picture.frames[frame].path)) break;
  }
  return outermost >= 0 ? picture.frames[outermost].label : std::string();
}

// What is known of a card. A folded frame takes its nodes' times together, and the worst of their errors.
std::vector<NodeFacts> facts_by_card(const Picture& picture, const Facts& facts) {
  std::vector<NodeFacts> known(picture.cards.size());
  for (std::size_t i = 0; i < known.size(); ++i)
    if (const Node* node = picture.cards[i].node)
      if (auto found = facts.find(node->name()); found != facts.end()) known[i] = found->second;
  for (const auto& [name, fact] : facts) {
    const Node* node = picture.graph->find(name);
    const int index = node ? picture.card_of[node->id()] : -1;
    if (index < 0 || picture.cards[index].node) continue;
    NodeFacts& sum = known[index];
    sum.add_times(fact);
    if (!std::isnan(sum.error) && !(fact.error <= sum.error)) sum.error = fact.error;
    if (fact.wrong && (!sum.wrong || fact.inherited_from.empty())) sum.inherited_from = fact.inherited_from;
    sum.wrong |= fact.wrong;
    sum.tolerance = std::max(sum.tolerance, fact.tolerance);
  }
  return known;
}

// One row per kind, in the enumeration's order: by a number, by a name, or, with neither, by family or module.
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
     [](const Card& card, const NodeFacts&) {
       return card.bytes.unknown.is(0) ? static_cast<double>(card.bytes.known) : -1;
     },
     [](double v) { return bytes_text(static_cast<std::int64_t>(v)); }},
    {OverlayKind::Error, "Error", [](const NodeFacts& f) { return f.error >= 0; },
     [](const Card&, const NodeFacts& f) { return f.error; }, &error_text},
    {OverlayKind::Time, "Time", [](const NodeFacts& f) { return f.seconds >= 0; },
     [](const Card&, const NodeFacts& f) { return f.seconds; }, &seconds_text},
    {OverlayKind::Kernel, "Fused kernel", [](const NodeFacts& f) { return !f.kernel.empty(); }, nullptr, nullptr,
     [](const NodeFacts& f) { return f.kernel; }},
    {OverlayKind::Module, "Module", nullptr},
    {OverlayKind::Pass, "Pass", [](const NodeFacts& f) { return !f.pass.empty(); }, nullptr, nullptr,
     [](const NodeFacts& f) { return f.pass; }},
};

const OverlayRow& row_of(OverlayKind kind) {
  return kOverlays[static_cast<std::size_t>(kind)];
}

}  // namespace

void NodeFacts::forget_times() {
  seconds = -1;
  kernel_times.clear();
}

void NodeFacts::add_kernel(const std::string& name, double time) {
  if (std::ranges::any_of(kernel_times, [&](const auto& k) { return k.first == name; })) return;
  kernel_times.emplace_back(name, time);
  seconds = std::max(seconds, 0.0) + time;
}

void NodeFacts::add_times(const NodeFacts& other) {
  if (other.kernel_times.empty() && other.seconds >= 0) seconds = std::max(seconds, 0.0) + other.seconds;
  for (const auto& [name, time] : other.kernel_times) add_kernel(name, time);
}

std::vector<OverlayKind> overlay_kinds() {
  return mapped(kOverlays, &OverlayRow::kind);
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
  const std::vector<NodeFacts> known = facts_by_card(picture, facts);
  const bool by_module = kind == OverlayKind::Module;
  const auto telling = by_module ? telling_modules(picture) : std::unordered_set<std::string>();
  for (std::size_t i = 0; i < count; ++i) {
    const Card& card = picture.cards[i];
    if (row.number) numbers[i] = row.number(card, known[i]);
    if (row.category) names[i] = row.category(known[i]);
    if (by_module) names[i] = module_of(picture, card, telling);
  }
  if (row.category || by_module) {
    categories(overlay, names, theme);
  } else if (kind == OverlayKind::Error) {
    scale_errors(overlay, std::move(numbers), known, theme);
  } else if (row.number) {
    scale(overlay, numbers, row.text, theme);
    const bool measured = std::ranges::any_of(known, [](const NodeFacts& f) { return !f.kernel_times.empty(); });
    if (kind == OverlayKind::Time && overlay.ramp)
      overlay.legend.push_back({QColor(), measured ? "in your run, whole kernels" : "in the interpreter, one by one"});
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
