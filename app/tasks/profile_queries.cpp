// Answers about the program's own run: `query times --profile`, and run times in `diff`.
#include "app/tasks/profile_queries.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/mapped.h"
#include "core/base/number_text.h"

namespace partita {
namespace {

using Kind = ProfiledCall::Kind;

std::string span_text(const StepTimes& t) {
  return t.steps > 1 ? fmt::format("{} ({} to {})", seconds_text(t.median), seconds_text(t.least), seconds_text(t.most))
                     : seconds_text(t.median);
}

std::string frame_text(const ProfiledCall& call) {
  if (call.frames.empty()) return {};
  const StackFrame& frame = call.frames.front();
  return fmt::format("{}:{}", frame.file.substr(frame.file.rfind('/') + 1), frame.line);
}

/// The same call in other runs: of the same nodes, or, without nodes, of the same name; and its turn among these.
struct CallKey {
  std::string graph, what;
  int turn = 0;
  auto operator<=>(const CallKey&) const = default;
};

struct TimedCall {
  StepTimes times;
  std::string name, where;
  const Artefact* artefact = nullptr;
  std::string node;
  double share = 0;
};

using TimedCalls = std::map<CallKey, TimedCall>;

/// The calls of a run, and each graph as a whole. `order`: keys as they come, new ones added.
TimedCalls timed_calls(const ProfiledLog& log, std::vector<CallKey>& order) {
  TimedCalls out;
  const double whole = sum_of(log, log.all()).total;
  for (const ProfiledGraph& graph : log.graphs) {
    const Artefact* post = graph.codes.empty() ? nullptr : log.codes[graph.codes.front()].post_grad;
    const auto add = [&](const std::string& what, TimedCall call) {
      CallKey key{graph.name, what, 0};
      while (out.contains(key)) ++key.turn;
      call.share = whole > 0 ? call.times.sum / whole : 0;
      if (std::ranges::find(order, key) == order.end()) order.push_back(key);
      out.emplace(std::move(key), std::move(call));
    };
    add("", {times_of(graph, log.all()), "all its runs", {}, post, {}});
    for (const ProfiledCall& call : graph.calls) {
      const std::string what = call.nodes.empty() ? call.name : fmt::format("{}", fmt::join(call.nodes, ", "));
      add(what, {times_of(graph, call, log.all()), call.name, frame_text(call), post,
                 call.nodes.empty() ? std::string() : call.nodes.front()});
    }
  }
  return out;
}

/// Do runs differ by more than their steps do? What takes a hundredth of the time or less is not told.
bool is_telling(const std::vector<const TimedCall*>& calls) {
  constexpr double least_share = 0.01, factor = 1.1;
  const bool matters = std::ranges::any_of(calls, [](const TimedCall* c) { return c && c->share > least_share; });
  if (!matters) return false;
  for (const TimedCall* a : calls)
    for (const TimedCall* b : calls) {
      if (!a || !b) return true;
      if (a->times.median > factor * b->times.median && a->times.least > b->times.most) return true;
    }
  return false;
}

}  // namespace

Result<QueryAnswer> run_times_of(const QuerySubject& subject) {
  TRY(const ProfiledLog log, profiled(subject.loaded, subject.request.profile, subject.request.progress));
  TRY(const StepRange steps, steps_of(*log.profile, subject.request.steps));
  QueryAnswer out{summary(log, steps), {}, {"Time", "Share", "Calls", "Kernel", "Graph", "Line", "Nodes"}};
  for (const std::string& note : log.notes) out.text += "; note: " + note;
  const double whole = sum_of(log, steps).total;
  for (const ProfiledGraph& graph : log.graphs)
    for (const ProfiledCall& call : graph.calls) {
      const StepTimes t = times_of(graph, call, steps);
      if (t.steps == 0) continue;
      const bool is_wrapper = call.kind == Kind::Wrapper;
      const std::string share =
          whole > 0 && !(is_wrapper && log.profile->on_device) ? fmt::format("{:.1f} %", 100 * t.sum / whole) : "-";
      const std::string kernel = is_wrapper ? "(the wrapper's own time)" : call.name, where = frame_text(call),
                        nodes = fmt::format(
                            "{}", fmt::join(call.on_nodes() && call.nodes.empty() ? call.sources : call.nodes, ", "));
      QueryRow row{
          call.nodes.empty() ? std::string() : call.nodes.front(),
          fmt::format("{:>9} {:>7}  {}  {}{}{}", seconds_text(t.median), share, kernel, graph.name,
                      where.empty() ? "" : "  " + where, nodes.empty() ? "" : "\n" + std::string(21, ' ') + nodes),
          t.median};
      if (!graph.codes.empty() && log.codes[graph.codes.front()].post_grad)
        row.artefact = log.codes[graph.codes.front()].post_grad->id;
      row.cells = {span_text(t), share, is_wrapper ? "" : fmt::format("{:g}", t.calls), kernel, graph.name,
                   where,        nodes};
      if (!call.frames.empty()) row.at = call.frames.front();
      out.rows.push_back(std::move(row));
    }
  std::ranges::stable_sort(out.rows, std::greater(), &QueryRow::number);
  return out;
}

void add_run_times(Diff& diff, const std::vector<ProfiledLog>& logs) {
  std::vector<CallKey> order;
  const auto runs = mapped(logs, [&](const ProfiledLog& log) { return timed_calls(log, order); });
  std::ranges::stable_sort(order, {}, &CallKey::graph);
  std::vector<DiffRow> rows;
  for (const CallKey& key : order) {
    std::vector<const TimedCall*> calls;
    for (const TimedCalls& run : runs) {
      const auto found = run.find(key);
      calls.push_back(found == run.end() ? nullptr : &found->second);
    }
    if (!key.what.empty() && !is_telling(calls)) continue;
    const TimedCall& any = **std::ranges::find_if(calls, [](const TimedCall* c) { return c != nullptr; });
    DiffRow row{DiffAspect::RunTime, key.graph, any.name, {}, {}, any.where};
    for (const TimedCall* call : calls)
      row.cells.push_back(call ? DiffCell{span_text(call->times), call->artefact, call->node} : DiffCell{});
    rows.push_back(std::move(row));
  }
  const auto place = std::ranges::find_if(diff.rows, [](const DiffRow& r) { return r.aspect > DiffAspect::RunTime; });
  diff.rows.insert(place, std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

}  // namespace partita
