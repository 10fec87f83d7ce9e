// What a joined profile says: sums and medians over steps, times of nodes, and both as text and JSON.
#include "app/tasks/joined_profile.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/base/number_text.h"
#include "core/load/records.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;
using CallKind = ProfiledCall::Kind;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

StepTimes times(const ProfiledGraph& graph, const std::vector<double>& seconds, const std::vector<int>& calls,
                StepRange steps) {
  StepTimes out;
  std::vector<double> taken, counts;
  for (std::size_t s = steps.from; s < std::min(steps.to, graph.runs.size()); ++s) {
    if (graph.runs[s] == 0) continue;
    taken.push_back(seconds[s]);
    counts.push_back(calls[s]);
    out.sum += seconds[s];
  }
  out.steps = taken.size();
  if (taken.empty()) return out;
  out.least = std::ranges::min(taken);
  out.most = std::ranges::max(taken);
  out.median = median_of(std::move(taken));
  out.calls = median_of(std::move(counts));
  return out;
}

std::string share_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

std::string rate_text(const StepTimes& t, const std::optional<CallCost>& cost, double CallCost::* what, bool assumed) {
  const auto rate = cost && (*cost).*what > 0 ? t.rate((*cost).*what) : std::nullopt;
  return rate ? (assumed ? "~" : "") + amount_text(*rate) : "-";
}

/// A graph's calls, and the wrapper's time, as lines.
std::string graph_text(const ProfiledLog& log, const ProfiledGraph& graph, StepRange steps, double whole) {
  const StepTimes all = times_of(graph, steps);
  std::string out = fmt::format("\n{}{}: ran in {}, {} a step ({} to {}), {} of the time\n", graph.name,
                                graph.key.empty() ? "" : fmt::format(" ({})", graph.key),
                                count_text(static_cast<std::int64_t>(all.steps), "step"), seconds_text(all.median),
                                seconds_text(all.least), seconds_text(all.most), share_text(all.sum, whole));
  if (all.steps == 0) return out;
  out += fmt::format("{:>6} {:>9} {:>9} {:>9} {:>7} {:>8} {:>8}  {}\n", "calls", "time", "least", "most", "share",
                     "B/s", "op/s", "name");
  for (const ProfiledCall& call : graph.calls) {
    const StepTimes t = times_of(graph, call, steps);
    const bool is_wrapper = call.kind == CallKind::Wrapper;
    out += fmt::format(
        "{:>6} {:>9} {:>9} {:>9} {:>7} {:>8} {:>8}  {}\n", is_wrapper ? "" : fmt::format("{:g}", t.calls),
        seconds_text(t.median), seconds_text(t.least), seconds_text(t.most),
        is_wrapper && log.profile->on_device ? "-" : share_text(t.sum, whole),
        rate_text(t, call.cost, &CallCost::bytes, graph.assumed_sizes),
        rate_text(t, call.cost, &CallCost::operations, graph.assumed_sizes),
        is_wrapper ? log.profile->on_device ? "(the wrapper's own time, on the CPU)" : "(the wrapper's own time)"
                   : call.name);
    const auto list = [&](const char* what, const std::vector<std::string>& names) {
      if (!names.empty()) out += fmt::format("         {}{}\n", what, fmt::join(names, ", "));
    };
    list("of ", call.nodes);
    if (call.nodes.empty()) list("of the program's ", call.sources);
    if (call.kind == CallKind::Other) out += "         its code is not that of the log\n";
    if (call.match == ProfiledCall::Match::Place) out += "         several operators between two other calls\n";
  }
  return out;
}

Json times_json(const StepTimes& t) {
  return {{"median", t.median}, {"least", t.least}, {"most", t.most}, {"sum", t.sum}, {"steps", t.steps}};
}

Json call_json(const ProfiledGraph& graph, const ProfiledCall& call, StepRange steps, double whole, bool on_device) {
  const StepTimes t = times_of(graph, call, steps);
  Json out = {{"name", call.name},       {"kind", name(call.kind)}, {"match", name(call.match)}, {"nodes", call.nodes},
              {"sources", call.sources}, {"calls", t.calls},        {"seconds", times_json(t)}};
  if (whole > 0 && !(call.kind == CallKind::Wrapper && on_device)) out["share"] = t.sum / whole;
  Json each = Json::array();
  for (std::size_t s = steps.from; s < steps.to; ++s)
    each.push_back(graph.runs[s] > 0 ? Json(call.seconds[s]) : Json());
  out["by_step"] = std::move(each);
  if (!call.cost) return out;
  out["bytes"] = call.cost->bytes;
  out["operations"] = call.cost->operations;
  if (const auto rate = t.rate(call.cost->bytes)) out["bytes_per_second"] = *rate;
  if (const auto rate = t.rate(call.cost->operations)) out["operations_per_second"] = *rate;
  return out;
}

/// The names of a graph's nodes that another one has, with the same operator.
bool has_node(const Graph& graph, const Node& other) {
  const Node* node = graph.find(other.name());
  return node && node->op() == other.op();
}

}  // namespace

std::string_view name(ProfiledCall::Kind kind) {
  constexpr std::string_view names[] = {"kernel", "library", "other", "wrapper"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(ProfiledCall::Match match) {
  constexpr std::string_view names[] = {"none", "order", "name", "place"};
  return names[static_cast<std::size_t>(match)];
}

std::optional<double> StepTimes::rate(double of_one_call) const {
  if (median <= 0 || calls <= 0) return std::nullopt;
  return of_one_call * calls / median;
}

StepTimes times_of(const ProfiledGraph& graph, const ProfiledCall& call, StepRange steps) {
  return times(graph, call.seconds, call.calls, steps);
}

StepTimes times_of(const ProfiledGraph& graph, StepRange steps) {
  return times(graph, graph.seconds, graph.runs, steps);
}

ProfileSum sum_of(const ProfiledLog& log, StepRange steps) {
  ProfileSum sum;
  for (const ProfiledGraph& graph : log.graphs) {
    sum.total += times_of(graph, steps).sum;
    for (const ProfiledCall& call : graph.calls) {
      const double seconds = times_of(graph, call, steps).sum;
      (call.kind == CallKind::Wrapper ? sum.wrapper : call.on_nodes() ? sum.on_nodes : sum.named) += seconds;
    }
  }
  sum.outside = 1e-9 * static_cast<double>(log.profile->device_outside);
  return sum;
}

std::string summary(const ProfiledLog& log, StepRange steps) {
  const Profile& profile = *log.profile;
  const ProfileSum sum = sum_of(log, steps);
  const std::size_t count = steps.to - steps.from;
  std::string which = count_text(static_cast<std::int64_t>(count), "step");
  if (count < profile.steps.size()) which += fmt::format(" of {}", profile.steps.size());
  std::string out = fmt::format("{} (by {}): compiled graphs took {}{}; {} ({}) in calls at nodes, {} in others", which,
                                profile.steps_by, seconds_text(sum.total), profile.on_device ? " on the device" : "",
                                seconds_text(sum.on_nodes), share_text(sum.on_nodes, sum.total),
                                sum.named > 0 ? seconds_text(sum.named) : "nothing");
  out += profile.on_device
             ? fmt::format("; their wrappers took {} of the CPU; kernels that no compiled graph launched took {}",
                           seconds_text(sum.wrapper), seconds_text(sum.outside))
             : fmt::format(", {} ({}) in the wrappers", seconds_text(sum.wrapper), share_text(sum.wrapper, sum.total));
  return out;
}

std::string call_id(const ProfiledGraph& graph, const ProfiledCall& call) {
  if (call.kernel < 0) return fmt::format("{} of {}", call.name, graph.name);
  return fmt::format("{}, call {} of {}", call.name, call.kernel + 1, graph.name);
}

double NodeTime::seconds() const {
  double sum = 0;
  for (const Part& part : parts) sum += part.seconds;
  return sum;
}

std::unordered_map<std::string, NodeTime> node_times(const ProfiledLog& log, const Artefact& artefact,
                                                     const Graph& graph, StepRange steps) {
  std::unordered_map<std::string, NodeTime> out;
  for (const ProfiledGraph& ran : log.graphs) {
    const auto of = std::ranges::find_if(ran.codes, [&](std::size_t c) {
      return log.codes[c].code->group == artefact.group && log_of(*log.codes[c].code) == log_of(artefact);
    });
    if (of == ran.codes.end()) continue;
    const InductorCode& code = log.codes[*of];
    const auto is = [&](const Artefact* a) { return a && a->id == artefact.id; };
    const bool before = artefact.kind == ArtefactKind::Dynamo || artefact.kind == ArtefactKind::PreGrad;
    std::unique_ptr<Graph> post;
    if (!before && !is(code.post_grad)) {
      auto parsed = code.post_grad ? code.post_grad->graph() : Result<std::unique_ptr<Graph>>(nullptr);
      if (!parsed || !*parsed) continue;
      post = *std::move(parsed);
      // The forward of a compilation has nodes of the names of its backward.
      const bool backward = artefact.kind == ArtefactKind::Backward, forward = artefact.kind == ArtefactKind::Forward;
      const bool takes_tangents =
          std::ranges::any_of(post->placeholders(), [](const Node* n) { return n->name().starts_with("tangents_"); });
      if ((backward && !takes_tangents) || (forward && takes_tangents)) continue;
    }
    for (const ProfiledCall& call : ran.calls) {
      const StepTimes t = times_of(ran, call, steps);
      if (t.steps == 0 || t.calls == 0) continue;
      for (const std::string& name : before ? call.sources : call.nodes) {
        const Node* node = graph.find(name);
        if (!node || (post && !has_node(*post, *node))) continue;
        out[name].parts.push_back({call_id(ran, call), t.median});
      }
    }
  }
  return out;
}

Json to_json(const ProfiledLog& log, StepRange steps) {
  const Profile& profile = *log.profile;
  const ProfileSum sum = sum_of(log, steps);
  Json graphs = Json::array(), step_rows = Json::array();
  for (const ProfiledGraph& graph : log.graphs) {
    Json calls = Json::array(), codes = Json::array();
    for (const ProfiledCall& call : graph.calls)
      calls.push_back(call_json(graph, call, steps, sum.total, profile.on_device));
    for (const std::size_t c : graph.codes) codes.push_back(log.codes[c].code->id);
    Json row = {{"name", graph.name}, {"key", graph.key}, {"codes", codes}};
    if (!graph.codes.empty() && log.codes[graph.codes.front()].post_grad)
      row["post_grad"] = log.codes[graph.codes.front()].post_grad->id;
    row["assumed_sizes"] = graph.assumed_sizes;
    row["seconds"] = times_json(times_of(graph, steps));
    row["calls"] = std::move(calls);
    row["not_in_profile"] = graph.silent;
    graphs.push_back(std::move(row));
  }
  for (std::size_t s = steps.from; s < steps.to; ++s) {
    const Profile::Step& step = profile.steps[s];
    step_rows.push_back({{"name", step.name},
                         {"begin", 1e-9 * static_cast<double>(step.begin - profile.steps.front().begin)},
                         {"seconds", 1e-9 * static_cast<double>(step.end - step.begin)},
                         {"compiled", sum_of(log, {s, s + 1}).total}});
  }
  return {{"backend", "pytorch"},
          {"profile", profile.path},
          {"device", profile.on_device ? Json(profile.device.empty() ? "gpu" : profile.device) : Json()},
          {"steps_by", profile.steps_by},
          {"steps", step_rows},
          {"seconds",
           {{"total", sum.total},
            {"on_nodes", sum.on_nodes},
            {"in_other_calls", sum.named},
            {"wrappers", sum.wrapper},
            {"outside", sum.outside}}},
          {"graphs", graphs},
          {"notes", log.notes}};
}

std::string to_text(const ProfiledLog& log, StepRange steps) {
  std::string out = summary(log, steps) + "\n";
  if (!log.profile->device.empty()) out += "device: " + log.profile->device + "\n";
  for (const std::string& note : log.notes) out += "note: " + note + "\n";
  const double whole = sum_of(log, steps).total;
  for (const ProfiledGraph& graph : log.graphs) out += graph_text(log, graph, steps, whole);
  if (std::ranges::any_of(log.graphs, &ProfiledGraph::assumed_sizes))
    out += "\n~: by the sizes that the graph was compiled for; it takes others, too\n";
  return out;
}

Status keep_graph(ProfiledLog& log, const std::string& id) {
  const auto is = [&](const Artefact* a) { return a && a->id == id; };
  const auto made = [&](std::size_t c) {
    return is(log.codes[c].code) || is(log.codes[c].post_grad) || is(log.codes[c].pre_grad);
  };
  std::erase_if(log.graphs, [&](const ProfiledGraph& graph) { return std::ranges::none_of(graph.codes, made); });
  if (!log.graphs.empty()) return {};
  return input_error("profile.graph",
                     "no graph of the profile was made from " + id + "; without --graph, all that ran are listed");
}

Result<StepRange> steps_of(const Profile& profile, const std::string& words) {
  const std::size_t count = profile.steps.size();
  if (words.empty()) return StepRange{0, count};
  const std::size_t dash = words.find('-');
  const auto number = [&](std::string_view word) {
    std::size_t n = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), n);
    return failed == std::errc() && end == word.data() + word.size() ? n : 0;
  };
  const std::size_t first = number(std::string_view(words).substr(0, dash)),
                    last = dash == std::string::npos ? first : number(std::string_view(words).substr(dash + 1));
  if (first == 0 || last < first || last > count)
    return input_error("profile.steps",
                       fmt::format("there are no steps {}; give one of 1 to {}, or a range of them like 2-{}", words,
                                   count, std::max<std::size_t>(count, 2)));
  return StepRange{first - 1, last};
}

}  // namespace partita
