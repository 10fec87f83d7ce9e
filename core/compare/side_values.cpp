#include "core/compare/side_values.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/base/whereabouts.h"
#include "core/compare/report_json.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;

/// The elements of each side as doubles; unset where they cannot be laid over those of the first.
Result<std::vector<std::optional<Tensor>>> elements_of(std::span<const SideValue> sides) {
  std::vector<std::optional<Tensor>> out;
  for (const SideValue& side : sides) {
    std::optional<Tensor>& elements = out.emplace_back();
    const Tensor* t = side.value ? side.value->get<Tensor>() : nullptr;
    if (!t || !has_arithmetic(t->dtype)) continue;
    TRY(const Tensor real, as_real(*t));
    if (out.front() && real.sizes != out.front()->sizes) continue;
    TRY(elements, real.to(DType::Float64));
  }
  return out;
}

/// Over what is allowed; infinite where only one is NaN, or an infinity is on one side.
double distance(double expected, double found, const Tolerance& tolerance) {
  if (expected == found || (std::isnan(expected) && std::isnan(found))) return 0;
  const double off = std::abs(found - expected), allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  return std::isfinite(off) && allowed > 0 ? off / allowed : INFINITY;
}

}  // namespace

SideValue side_value(std::string name, Result<Value> value) {
  SideValue out{std::move(name), {}, {}, {}};
  if (!value) {
    out.why_no_value = is_death(value.error()) ? value.error().message : value.error().line();
    return out;
  }
  out.value = *std::move(value);
  out.statistics = statistics_of(*out.value);
  return out;
}

Result<Tensor> as_real(const Tensor& t) {
  TRY(Tensor row_major, t.contiguous());
  if (!is_complex(t.dtype)) return row_major;
  Sizes sizes = row_major.sizes;
  sizes.push_back(2);
  Tensor parts = row_major.view_as(sizes, row_major_strides(sizes), row_major.offset * 2);
  parts.dtype = real_of(t.dtype);
  return parts;
}

Result<std::vector<ElementRow>> farthest_elements(std::span<const SideValue> sides, const Tolerance& tolerance,
                                                  std::size_t count) {
  TRY(const auto elements, elements_of(sides));
  std::vector<ElementRow> out;
  if (elements.empty() || !elements.front() || count == 0) return out;
  const Tensor& first = *elements.front();
  struct Far {
    double distance;
    std::int64_t position;
  };
  const auto farther = [](const Far& a, const Far& b) {
    return a.distance != b.distance ? a.distance > b.distance : a.position < b.position;
  };
  std::vector<Far> heap;  // the nearest of those kept is at its top
  for (std::int64_t i = 0; i < first.numel(); ++i) {
    double most = 0;
    for (std::size_t s = 1; s < elements.size(); ++s)
      if (elements[s]) most = std::max(most, distance(first.as<double>()[i], elements[s]->as<double>()[i], tolerance));
    if (most == 0) continue;
    heap.push_back({most, i});
    std::ranges::push_heap(heap, farther);
    if (heap.size() <= count) continue;
    std::ranges::pop_heap(heap, farther);
    heap.pop_back();
  }
  std::ranges::sort(heap, farther);
  for (const Far& far : heap) {
    ElementRow& row = out.emplace_back();
    row.index = index_at(first.sizes, far.position);
    for (const auto& side : elements)
      row.values.push_back(side ? std::optional(side->as<double>()[far.position]) : std::nullopt);
  }
  return out;
}

std::string statistics_text(const Statistics& s) {
  std::string text = fmt::format("norm {:.6g}, mean {:.3g}, {:.4g} .. {:.4g}, {} NaN, {} inf; zero: {}", s.norm, s.mean,
                                 s.least, s.greatest, s.nan, s.inf, s.magnitudes.equal);
  for (std::size_t k = 0; k < s.magnitudes.decades.size(); ++k)
    if (s.magnitudes.decades[k] > 0)
      text += fmt::format(", 1e{}: {}", ErrorHistogram::lowest + static_cast<int>(k), s.magnitudes.decades[k]);
  return text;
}

Result<std::string> values_text(std::span<const SideValue> sides, const Tolerance& tolerance, std::size_t count) {
  TRY(const std::vector<ElementRow> rows, farthest_elements(sides, tolerance, count));
  std::string out;
  for (const SideValue& side : sides) {
    out += fmt::format("  {}: ", side.name);
    if (side.statistics) out += statistics_text(*side.statistics);
    if (!side.why_no_value.empty()) out += (side.statistics ? "; " : "") + side.why_no_value;
    if (!side.statistics && side.why_no_value.empty()) out += "no tensor of numbers";
    out += '\n';
  }
  if (rows.empty()) return out + "  no element differs\n";
  std::size_t index_width = 7;
  std::vector<std::string> indices;
  for (const ElementRow& row : rows) {
    indices.push_back(fmt::format("[{}]", fmt::join(row.index, ", ")));
    index_width = std::max(index_width, indices.back().size());
  }
  constexpr std::size_t least_width = 16;
  const auto width = [&](std::size_t s) { return std::max(least_width, sides[s].name.size()); };
  out += fmt::format("  {:<{}}", "element", index_width);
  for (std::size_t s = 0; s < sides.size(); ++s) out += fmt::format("  {:>{}}", sides[s].name, width(s));
  out += '\n';
  for (std::size_t r = 0; r < rows.size(); ++r) {
    out += fmt::format("  {:<{}}", indices[r], index_width);
    for (std::size_t s = 0; s < sides.size(); ++s)
      out += rows[r].values[s] ? fmt::format("  {:>{}.9g}", *rows[r].values[s], width(s))
                               : fmt::format("  {:>{}}", "-", width(s));
    out += '\n';
  }
  return out;
}

Result<Json> values_json(std::span<const SideValue> sides, const Tolerance& tolerance, std::size_t count) {
  TRY(const std::vector<ElementRow> rows, farthest_elements(sides, tolerance, count));
  Json out = {{"columns", Json::array()}, {"elements", Json::array()}};
  for (const SideValue& side : sides) {
    Json column = {{"name", side.name}};
    if (side.statistics) column["statistics"] = statistics_json(*side.statistics);
    if (!side.why_no_value.empty()) column["why_no_value"] = side.why_no_value;
    out["columns"].push_back(std::move(column));
  }
  for (const ElementRow& row : rows) {
    Json values = Json::array();
    for (const auto& value : row.values) values.push_back(value ? number_json(*value) : Json());
    out["elements"].push_back({{"index", row.index}, {"values", values}});
  }
  return out;
}

}  // namespace partita
