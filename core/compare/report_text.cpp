// A Report's verdict, its text with the worst rows first, and its JSON, written and read.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/compare/report_json.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;

/// Orders rows by "worst first": a death, differing layouts, then wrong values, then those whose inputs differed
/// already, then rounding; within these, differing NaN counts, then the largest error.
bool worse(const Difference* a, const Difference* b) {
  const auto rank = [](const Difference& d) {
    if (!d.died.empty()) return 5;
    if (d.inherited()) return 2;
    return d.layout.empty() ? (d.values_agree ? 0 : d.rounding ? 1 : 3) : 4;
  };
  if (rank(*a) != rank(*b)) return rank(*a) > rank(*b);
  const bool nan_a = a->nan_expected != a->nan_found, nan_b = b->nan_expected != b->nan_found;
  if (nan_a != nan_b) return nan_a;
  return a->max_abs > b->max_abs;
}

std::string line(const Difference& d) {
  if (!d.died.empty()) return fmt::format("{:<9}{:<32} {}", "DIED", d.name, d.died);
  std::string text = fmt::format("{:<9}{:<32} max abs {:<10.3g} rel {:<10.3g}",
                                 d.ok() ? (d.rounding ? "rounding" : "ok") : "DIFFERS", d.name, d.max_abs, d.max_rel);
  if (d.max_ulp) text += fmt::format(" ulp {:<8}", *d.max_ulp);
  if (d.wrong > 0) text += fmt::format(" {} of {} wrong", d.wrong, d.numel);
  if (d.first_wrong)
    text += fmt::format(", first at [{}]: {:.9g} expected, {:.9g} found", fmt::join(d.first_wrong->index, ", "),
                        d.first_wrong->expected, d.first_wrong->found);
  if (d.nan_expected != d.nan_found) text += fmt::format(", NaNs {} expected, {} found", d.nan_expected, d.nan_found);
  if (d.inf_expected != d.inf_found)
    text += fmt::format(", infinities {} expected, {} found", d.inf_expected, d.inf_found);
  if (d.expected_error)
    text += fmt::format(", from f64: {:.3g} expected, {:.3g} found", *d.expected_error, *d.found_error);
  if (d.expected_is_off) text += ", and rounding does not explain the expected one";
  for (const std::string& l : d.layout) text += "; " + l;
  if (d.own && !d.ok()) text += fmt::format(", alone max abs {:.3g}", d.own->max_abs);
  if (d.inherited()) text += fmt::format(", after {}", d.inherited_from);
  if (!d.ok() && !d.origin.empty()) text += fmt::format(" (from {})", d.origin);
  return text;
}

/// {"equal": 90, "-7": 10}: numbers of elements by the power of ten of their error.
Json histogram(const ErrorHistogram& h) {
  Json j = {{"equal", h.equal}};
  for (std::size_t k = 0; k < h.decades.size(); ++k)
    if (h.decades[k] > 0) j[fmt::format("{}", ErrorHistogram::lowest + static_cast<int>(k))] = h.decades[k];
  if (h.not_finite > 0) j["not_finite"] = h.not_finite;
  return j;
}

ErrorHistogram histogram_of(const Json& j) {
  ErrorHistogram h;
  for (const auto& [key, count] : j.items()) {
    if (key == "equal")
      h.equal = count;
    else if (key == "not_finite")
      h.not_finite = count;
    else
      h.decades.at(static_cast<std::size_t>(std::stoi(key) - ErrorHistogram::lowest)) = count;
  }
  return h;
}

Json row(const Difference& d) {
  Json j = {{"name", d.name},
            {"ok", d.ok()},
            {"max_abs", number_json(d.max_abs)},
            {"max_rel", number_json(d.max_rel)},
            {"numel", d.numel},
            {"wrong", d.wrong},
            {"nan", {d.nan_expected, d.nan_found}},
            {"inf", {d.inf_expected, d.inf_found}}};
  if (d.max_ulp) j["max_ulp"] = *d.max_ulp;
  if (d.cosine) j["cosine"] = *d.cosine;
  j["histogram"] = histogram(d.histogram);
  if (d.first_wrong)
    j["first_wrong"] = {{"index", d.first_wrong->index},
                        {"expected", number_json(d.first_wrong->expected)},
                        {"found", number_json(d.first_wrong->found)}};
  if (d.expected_error)
    j["baseline"] = {
        {"expected", number_json(*d.expected_error)}, {"found", number_json(*d.found_error)}, {"rounding", d.rounding}};
  if (d.expected_is_off) j["baseline"]["expected_is_off"] = true;
  if (d.own)
    j["own"] = {{"ok", d.own->ok},
                {"max_abs", number_json(d.own->max_abs)},
                {"max_rel", number_json(d.own->max_rel)},
                {"wrong", d.own->wrong}};
  if (d.expected_statistics) j["statistics"]["expected"] = statistics_json(*d.expected_statistics);
  if (d.found_statistics) j["statistics"]["found"] = statistics_json(*d.found_statistics);
  if (d.by_statistics) j["by_statistics"] = true;
  if (!d.layout.empty()) j["layout"] = d.layout;
  if (!d.died.empty()) j["died"] = d.died;
  if (d.inherited()) j["inherited_from"] = d.inherited_from;
  if (!d.origin.empty()) j["origin"] = d.origin;
  return j;
}

double number_of(const Json& j) {
  return j.is_string() ? std::stod(j.get<std::string>()) : j.get<double>();  // stod reads nan and inf
}

Statistics statistics_of(const Json& j) {
  return {.numel = j.at("numel"),
          .nan = j.at("nan"),
          .inf = j.at("inf"),
          .norm = number_of(j.at("norm")),
          .mean = number_of(j.at("mean")),
          .least = number_of(j.at("least")),
          .greatest = number_of(j.at("greatest")),
          .magnitudes = histogram_of(j.at("magnitudes")),
          .hash = j.at("hash")};
}

Difference difference_of(const Json& j) {
  Difference d;
  d.name = j.at("name");
  d.max_abs = number_of(j.at("max_abs"));
  d.max_rel = number_of(j.at("max_rel"));
  d.numel = j.at("numel");
  d.wrong = j.at("wrong");
  d.by_statistics = j.value("by_statistics", false);
  d.layout = j.value("layout", std::vector<std::string>());
  d.values_agree = d.by_statistics ? j.at("ok").get<bool>() : d.wrong == 0;
  d.nan_expected = j.at("nan").at(0);
  d.nan_found = j.at("nan").at(1);
  d.inf_expected = j.at("inf").at(0);
  d.inf_found = j.at("inf").at(1);
  if (j.contains("max_ulp")) d.max_ulp = j["max_ulp"].get<std::int64_t>();
  if (j.contains("cosine")) d.cosine = j["cosine"].get<double>();
  if (j.contains("histogram")) d.histogram = histogram_of(j["histogram"]);
  if (j.contains("first_wrong")) {
    const Json& w = j["first_wrong"];
    d.first_wrong = WrongElement{w.at("index"), number_of(w.at("expected")), number_of(w.at("found"))};
  }
  if (j.contains("baseline")) {
    const Json& b = j["baseline"];
    d.expected_error = number_of(b.at("expected"));
    d.found_error = number_of(b.at("found"));
    d.rounding = b.at("rounding");
    d.expected_is_off = b.value("expected_is_off", false);
  }
  if (j.contains("own")) {
    const Json& o = j["own"];
    d.own = Difference::Own{o.at("ok"), number_of(o.at("max_abs")), number_of(o.at("max_rel")), o.at("wrong")};
  }
  if (const auto s = j.find("statistics"); s != j.end()) {
    if (s->contains("expected")) d.expected_statistics = statistics_of(s->at("expected"));
    if (s->contains("found")) d.found_statistics = statistics_of(s->at("found"));
  }
  if (j.contains("died")) d.died = j["died"];
  if (j.contains("inherited_from")) d.inherited_from = j["inherited_from"];
  if (j.contains("origin")) d.origin = j["origin"];
  return d;
}

}  // namespace

Json number_json(double v) {
  return std::isfinite(v) ? Json(v) : Json(fmt::format("{}", v));
}

Json statistics_json(const Statistics& s) {
  return {{"numel", s.numel},
          {"nan", s.nan},
          {"inf", s.inf},
          {"norm", number_json(s.norm)},
          {"mean", number_json(s.mean)},
          {"least", number_json(s.least)},
          {"greatest", number_json(s.greatest)},
          {"magnitudes", histogram(s.magnitudes)},
          {"hash", s.hash}};
}

Result<Report> Report::from_json(std::string_view text) {
  try {
    const Json j = Json::parse(text);
    Report report;
    report.expected_name = j.at("expected");
    report.found_name = j.at("found");
    report.graph = j.value("graph", std::string());
    report.seconds = j.value("seconds", 0.0);
    report.why_not_own = j.value("why_not_own", std::string());
    report.unsteady = j.value("not_deterministic", std::vector<std::string>());
    report.left_out = j.value("left_out", std::map<std::string, std::string>());
    for (const Json& row : j.at("rows")) report.rows.push_back(difference_of(row));
    return report;
  } catch (const std::exception& e) {
    return input_error("compare.json", fmt::format("not a report of a comparison: {}", e.what()));
  }
}

bool Report::ok() const {
  return std::ranges::all_of(rows, &Difference::ok);
}

const Difference* Report::first_bad() const {
  const auto it = std::ranges::find_if_not(rows, &Difference::ok);
  return it == rows.end() ? nullptr : &*it;
}

std::size_t Report::bad() const {
  return rows.size() - static_cast<std::size_t>(std::ranges::count_if(rows, &Difference::ok));
}

std::size_t Report::inherited() const {
  return static_cast<std::size_t>(std::ranges::count_if(rows, &Difference::inherited));
}

std::string Report::text(std::size_t limit) const {
  std::vector<const Difference*> order;
  for (const Difference& d : rows) order.push_back(&d);
  std::ranges::stable_sort(order, worse);
  std::string text;
  const std::size_t shown = limit ? std::min(limit, order.size()) : order.size();
  for (std::size_t i = 0; i < shown; ++i) text += line(*order[i]) + "\n";
  if (shown < order.size()) text += fmt::format("... {} more\n", order.size() - shown);
  text += fmt::format("{} against {}: {} compared, {} differ", found_name, expected_name, rows.size(), bad());
  text += inherited() > 0 ? fmt::format(", {} of them after an input that does\n", inherited()) : "\n";
  if (const Difference* first = first_bad()) text += fmt::format("first that differs: {}\n", first->name);
  return text;
}

std::string Report::json() const {
  Json j = {{"expected", expected_name}, {"found", found_name}, {"ok", ok()}};
  if (!graph.empty()) j["graph"] = graph;
  if (seconds > 0) j["seconds"] = seconds;
  if (!why_not_own.empty()) j["why_not_own"] = why_not_own;
  if (!unsteady.empty()) j["not_deterministic"] = unsteady;
  if (!left_out.empty()) j["left_out"] = left_out;
  j["first_that_differs"] = first_bad() ? Json(first_bad()->name) : Json();
  j["first_differences"] = Json::array();
  for (const Difference& d : rows)
    if (!d.ok() && !d.inherited()) j["first_differences"].push_back(d.name);
  j["rows"] = Json::array();
  for (const Difference& d : rows) j["rows"].push_back(row(d));
  return j.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> not_compared(std::span<const Report> reports) {
  std::map<std::string, std::set<std::string>> keys;  // by reason
  for (const Report& report : reports)
    for (const auto& [key, reason] : report.left_out) keys[reason].insert(key);
  std::vector<std::string> out;
  for (const auto& [reason, of] : keys)
    out.push_back(fmt::format("{} {} not compared: {}", fmt::join(of, ", "), of.size() == 1 ? "is" : "are", reason));
  return out;
}

}  // namespace partita
