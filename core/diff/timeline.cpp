#include "core/diff/timeline.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/base/number_text.h"
#include "core/diff/compared_runs.h"
#include "core/load/compile_times.h"
#include "core/load/records.h"

namespace partita {
namespace {

constexpr double kResolution = 1e-7;  // of the log's times, in seconds

double end_of(const TimelineSpan& span) {
  return span.begin + span.seconds;
}

/// Counts an artefact's spans to their steps. `at`: where they begin in the time line.
void add_steps(const std::vector<CompileSpan>& spans, std::size_t at, Timeline& timeline,
               std::map<std::string, TimelineStep>& steps) {
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].instant) continue;
    const TimelineSpan& span = timeline.spans[at + i];
    TimelineStep& step = steps[span.name];
    if (step.count++ == 0 || span.seconds > timeline.spans[static_cast<std::size_t>(step.longest)].seconds)
      step.longest = static_cast<int>(at + i);
    step.self_seconds += span.self_seconds;
    bool within_itself = false;
    for (int p = spans[i].parent; p >= 0 && !within_itself; p = spans[static_cast<std::size_t>(p)].parent)
      within_itself = spans[static_cast<std::size_t>(p)].name == spans[i].name;
    if (!within_itself) step.seconds += span.seconds;
  }
}

/// Below all that has not ended when the span begins. Records of several compilations, and threads that the log does
/// not tell apart, overlap.
void place(std::vector<TimelineSpan>& spans, std::vector<TimelineTrack>& tracks) {
  std::vector<std::vector<double>> ends(tracks.size());  // of each lane
  std::vector<double> reached(tracks.size(), -1);
  for (TimelineSpan& span : spans) {
    const auto track = static_cast<std::size_t>(span.track);
    std::vector<double>& lanes = ends[track];
    while (!lanes.empty() && lanes.back() <= span.begin + kResolution) lanes.pop_back();
    span.lane = static_cast<int>(lanes.size());
    if (!span.instant) lanes.push_back(end_of(span));
    tracks[track].lanes = std::max(tracks[track].lanes, span.lane + 1);
    const double from = std::max(span.begin, reached[track]);
    tracks[track].busy_seconds += std::max(0.0, end_of(span) - from);
    reached[track] = std::max(reached[track], end_of(span));
  }
}

}  // namespace

bool has_timeline(const Artefact& artefact) {
  return !artefact.is_graph() && record_name(artefact) == "chromium_event";
}

Timeline make_timeline(const Loaded& loaded) {
  Timeline out;
  std::map<std::string, TimelineStep> steps;
  std::map<std::pair<std::size_t, std::int64_t>, int> track_of;  // by run and thread
  double first = 0;                                              // in microseconds
  std::vector<double> begins;
  const std::vector<Run> runs = runs_of({&loaded});
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (const Compilation& compilation : runs[r].compilations)
      for (const Artefact* record : compilation.artefacts) {
        if (!has_timeline(*record)) continue;
        const std::vector<CompileSpan> spans = compile_spans(*record);
        const std::size_t at = out.spans.size();
        for (const CompileSpan& span : spans) {
          const auto [track, is_new] = track_of.emplace(std::pair(r, span.thread), static_cast<int>(out.tracks.size()));
          if (is_new) {
            std::string name = runs[r].name;
            if (span.thread != 0) name += fmt::format(", thread {}", span.thread);
            out.tracks.push_back({name, 0, 0});
          }
          out.spans.push_back({span.name, span.about, compilation.key, record->id, 0, span.seconds, span.seconds,
                               track->second, 0, span.ended, span.instant});
          begins.push_back(span.begin);
          first = begins.size() == 1 ? span.begin : std::min(first, span.begin);
          if (span.parent >= 0 && !span.instant)
            out.spans[at + static_cast<std::size_t>(span.parent)].self_seconds -= span.seconds;
        }
        for (std::size_t i = at; i < out.spans.size(); ++i)
          out.spans[i].self_seconds = std::max(0.0, out.spans[i].self_seconds);
        add_steps(spans, at, out, steps);
      }
  for (std::size_t i = 0; i < begins.size(); ++i) out.spans[i].begin = (begins[i] - first) * 1e-6;

  // Sorted, with what steps say of their longest occurrence.
  std::vector<std::size_t> order(out.spans.size()), place_of(out.spans.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const TimelineSpan &x = out.spans[a], &y = out.spans[b];
    return x.begin != y.begin ? x.begin < y.begin : x.seconds > y.seconds;
  });
  std::vector<TimelineSpan> sorted;
  for (const std::size_t i : order) {
    place_of[i] = sorted.size();
    sorted.push_back(std::move(out.spans[i]));
    out.seconds = std::max(out.seconds, end_of(sorted.back()));
  }
  out.spans = std::move(sorted);
  place(out.spans, out.tracks);
  for (auto& [name, step] : steps) {
    step.name = name;
    step.longest = static_cast<int>(place_of[static_cast<std::size_t>(step.longest)]);
    out.steps.push_back(step);
  }
  std::ranges::stable_sort(out.steps, std::greater(), &TimelineStep::self_seconds);
  return out;
}

std::string Timeline::summary() const {
  if (steps.empty()) return "no times of compiling are in it";
  const auto [least, most] = std::ranges::minmax_element(tracks, {}, &TimelineTrack::busy_seconds);
  std::string out = fmt::format("{:.3g} s of compiling", most->busy_seconds);
  if (tracks.size() > 1) {
    double all = 0;
    for (const TimelineTrack& track : tracks) all += track.busy_seconds;
    out += fmt::format(" in {}, {:.3g} s in {}; of {:.3g} s in all, most", most->name, least->busy_seconds, least->name,
                       all);
  } else {
    out += "; most of it";
  }
  out += fmt::format(", {:.3g} s, in {}", steps.front().self_seconds, steps.front().name);
  const auto open = std::ranges::count_if(spans, [](const TimelineSpan& s) { return !s.ended; });
  if (open > 0) out += fmt::format("; {} without an end in the log", count_text(open, "step"));
  return out;
}

}  // namespace partita
