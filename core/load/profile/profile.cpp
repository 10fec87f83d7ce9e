// Finds the runs of compiled graphs in the events of each thread, what they called, the work of devices that a call
// launched, and the steps of the program.
#include "core/load/profile/profile.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace partita {
namespace {

using Kind = TraceEvent::Kind;

constexpr std::string_view run_begin = "## Call CompiledFxGraph ", run_end = " ##",
                           region = "Torch-Compiled Region: ", profiler_step = "ProfilerStep#",
                           optimizer_step = "Optimizer.step#";
constexpr std::size_t most_runs = 1'000'000;

bool is_run(std::string_view name) {
  return name.starts_with(run_begin) && name.ends_with(run_end) && name.size() > run_begin.size() + run_end.size();
}

class ProfileBuilder {
 public:
  explicit ProfileBuilder(TraceEvents events) : in_(std::move(events)) {
    out_.device = in_.device;
    out_.notes = in_.notes;
  }

  Result<std::shared_ptr<const Profile>> build(const std::string& path) {
    out_.path = path;
    for (std::size_t at = 0; at < in_.events.size();) at = read_thread(at);
    if (out_.runs.empty())
      return input_error("profile.no_graph",
                         "no compiled graph ran while this profile was taken: it has no event '## Call "
                         "CompiledFxGraph ... ##'; profile a step of a program that torch.compile compiled",
                         {.file = path});
    if (out_.runs.size() > most_runs || step_marks() > most_runs)
      return unsupported(
          "profile.runs",
          fmt::format("this profile has more than {} steps or runs of compiled graphs; profile fewer steps", most_runs),
          {.file = path});
    index_runs();
    read_devices();
    order_calls();
    make_steps();
    in_.events = {};
    out_.texts = std::move(in_.texts);
    return std::make_shared<const Profile>(std::move(out_));
  }

 private:
  /// The runs and calls of the thread whose first event is at `at`; the first of the next thread.
  std::size_t read_thread(std::size_t at) {
    const std::uint32_t thread = in_.events[at].thread;
    std::vector<std::pair<std::int64_t, std::uint32_t>> regions;  // end and compile id of those that are open
    std::int64_t run_until = INT64_MIN, call_until = INT64_MIN;
    for (; at < in_.events.size() && in_.events[at].thread == thread; ++at) {
      const TraceEvent& e = in_.events[at];
      if (e.kind != Kind::Op && e.kind != Kind::Annotation) continue;
      const std::string& name = in_.texts.text(e.name);
      if (e.begin >= run_until) {
        while (!regions.empty() && e.begin >= regions.back().first) regions.pop_back();
        if (name.starts_with(region)) {
          regions.emplace_back(e.end(), in_.texts.number(std::string(name.substr(region.size()))));
        } else if (is_run(name)) {
          add_run(e, name, regions.empty() ? 0 : regions.back().second);
          run_until = e.end();
          call_until = INT64_MIN;
        }
      } else if (e.begin >= call_until && (e.kind == Kind::Op || is_run(name))) {  // notes of the user are transparent
        calls_.push_back({out_.runs.size() - 1, {e.name, e.dims, e.begin, e.length, 0, 0}});
        call_until = e.end();
      }
    }
    return at;
  }

  void add_run(const TraceEvent& e, const std::string& name, std::uint32_t compile_id) {
    const std::string key = name.substr(run_begin.size(), name.size() - run_begin.size() - run_end.size());
    Profile::Run run;
    run.key = key == "None" ? 0 : in_.texts.number(key);
    run.compile_id = compile_id;
    run.thread = e.thread;
    run.begin = e.begin;
    run.length = e.length;
    out_.runs.push_back(run);
  }

  /// Runs by beginning; those of a thread by `of_thread_`, and the calls of each by `first` and `last`.
  void index_runs() {
    std::vector<std::size_t> order(out_.runs.size()), place(out_.runs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return out_.runs[i].begin; });
    std::vector<Profile::Run> runs;
    for (const std::size_t i : order) {
      place[i] = runs.size();
      runs.push_back(out_.runs[i]);
    }
    out_.runs = std::move(runs);
    for (auto& [run, call] : calls_) run = place[run];
    std::ranges::stable_sort(calls_, {}, [](const auto& c) { return std::pair(c.first, c.second.begin); });
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      Profile::Run& run = out_.runs[calls_[i].first];
      if (run.last == 0) run.first = i;
      run.last = i + 1;
    }
    for (std::size_t i = 0; i < out_.runs.size(); ++i) of_thread_[out_.runs[i].thread].push_back(i);
  }

  /// The run that was under way on a thread; null: none was.
  const Profile::Run* run_at(std::uint32_t thread, std::int64_t time) const {
    const auto of = of_thread_.find(thread);
    if (of == of_thread_.end()) return nullptr;
    const auto after =
        std::ranges::upper_bound(of->second, time, {}, [&](std::size_t i) { return out_.runs[i].begin; });
    if (after == of->second.begin()) return nullptr;
    const Profile::Run& run = out_.runs[*(after - 1)];
    return time < run.begin + run.length ? &run : nullptr;
  }

  /// Gives the work of devices to the call that launched it. Who launched it is told by the correlation, else by the
  /// operator around it, else by an arrow.
  void read_devices() {
    std::vector<const TraceEvent*> devices;
    std::unordered_map<std::int64_t, const TraceEvent*> launches, operators, arrows;
    std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> arrow_ends;  // of a stream at a time
    for (const TraceEvent& e : in_.events)
      if (e.kind == Kind::Device) devices.push_back(&e);
    if (devices.empty()) return;
    for (const TraceEvent& e : in_.events) {
      if (e.kind == Kind::Launch && e.correlation != 0) launches.try_emplace(e.correlation, &e);
      if (e.kind == Kind::Op && e.external != 0) operators.try_emplace(e.external, &e);
      if (e.kind == Kind::FlowStart) arrows.try_emplace(e.correlation, &e);
      if (e.kind == Kind::FlowEnd) arrow_ends.try_emplace({e.thread, e.begin}, e.correlation);
    }
    const auto found = [](const auto& table, std::int64_t key) {
      const auto at = table.find(key);
      return at == table.end() ? nullptr : at->second;
    };
    std::ranges::stable_sort(devices, {}, &TraceEvent::begin);
    for (const TraceEvent* work : devices) {
      const TraceEvent* by = found(launches, work->correlation);
      if (!by && work->external != 0) by = found(operators, work->external);
      if (!by)
        if (const auto end = arrow_ends.find({work->thread, work->begin}); end != arrow_ends.end())
          by = found(arrows, end->second);
      add_device(*work, by);
    }
  }

  void add_device(const TraceEvent& work, const TraceEvent* by) {
    const Profile::Run* run = by ? run_at(by->thread, by->begin) : nullptr;
    if (!run) {
      out_.device_outside += work.length;
      return;
    }
    const auto begin = calls_.begin() + static_cast<std::ptrdiff_t>(run->first),
               end = calls_.begin() + static_cast<std::ptrdiff_t>(run->last);
    const auto after =
        std::upper_bound(begin, end, by->begin, [](std::int64_t time, const auto& c) { return time < c.second.begin; });
    if (after != begin && by->begin < (after - 1)->second.begin + (after - 1)->second.host) {
      (after - 1)->second.device += work.length;
      ++(after - 1)->second.on_device;
      return;
    }
    alone_.push_back({static_cast<std::size_t>(run - out_.runs.data()), {work.name, 0, by->begin, 0, work.length, 1}});
  }

  /// Those that were launched by no operator have their place among the calls.
  void order_calls() {
    calls_.insert(calls_.end(), alone_.begin(), alone_.end());
    std::ranges::stable_sort(calls_, {}, [](const auto& c) { return std::pair(c.first, c.second.begin); });
    for (Profile::Run& run : out_.runs) run.first = run.last = 0;
    for (const auto& [of, call] : calls_) {
      Profile::Run& run = out_.runs[of];
      if (run.last == 0) run.first = out_.calls.size();
      out_.calls.push_back(call);
      out_.on_device |= call.on_device > 0;
      run.last = out_.calls.size();
    }
  }

  std::size_t step_marks() const {
    return static_cast<std::size_t>(std::ranges::count_if(in_.events, [&](const TraceEvent& e) {
      const std::string& name = in_.texts.text(e.name);
      return e.kind == Kind::Annotation && (name.starts_with(profiler_step) || name.starts_with(optimizer_step));
    }));
  }

  void make_steps() {
    std::vector<const TraceEvent*> marks, ends;
    for (const TraceEvent& e : in_.events) {
      if (e.kind != Kind::Annotation) continue;
      const std::string& name = in_.texts.text(e.name);
      if (name.starts_with(profiler_step)) marks.push_back(&e);
      if (name.starts_with(optimizer_step) && (ends.empty() || ends.front()->name == e.name)) ends.push_back(&e);
    }
    std::ranges::sort(marks, {}, &TraceEvent::begin);
    std::ranges::sort(ends, {}, &TraceEvent::begin);
    const std::int64_t last = last_end();
    if (!marks.empty()) {
      out_.steps_by = "ProfilerStep";
      if (out_.runs.front().begin < marks.front()->begin)
        out_.steps.push_back(
            {"before " + in_.texts.text(marks.front()->name), out_.runs.front().begin, marks.front()->begin});
      for (const TraceEvent* mark : marks) out_.steps.push_back({in_.texts.text(mark->name), mark->begin, mark->end()});
    } else if (!ends.empty()) {
      out_.steps_by = in_.texts.text(ends.front()->name).substr(0, optimizer_step.size() - 1);
      std::int64_t begin = out_.runs.front().begin;
      for (const TraceEvent* end : ends) {
        if (end->end() <= begin) continue;
        add_step(begin, end->end());
        begin = end->end();
      }
      if (begin < out_.runs.back().begin) add_step(begin, last);
    } else {
      out_.steps_by = "the first graph";
      const Profile::Run& first = out_.runs.front();
      for (const Profile::Run& run : out_.runs) {
        if (run.key != first.key || run.compile_id != first.compile_id) continue;
        if (!out_.steps.empty()) out_.steps.back().end = run.begin;
        add_step(run.begin, last);
      }
    }
    std::size_t step = 0;
    for (Profile::Run& run : out_.runs) {
      while (step + 1 < out_.steps.size() && run.begin >= out_.steps[step + 1].begin) ++step;
      run.step = step;
    }
  }

  void add_step(std::int64_t begin, std::int64_t end) {
    out_.steps.push_back({fmt::format("step {}", out_.steps.size() + 1), begin, end});
  }

  std::int64_t last_end() const {
    std::int64_t last = out_.runs.front().begin;
    for (const Profile::Run& run : out_.runs) last = std::max(last, run.begin + run.length);
    return last;
  }

  using CallOf = std::pair<std::size_t, Profile::Call>;  ///< of a run

  TraceEvents in_;
  Profile out_;
  std::vector<CallOf> calls_, alone_;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> of_thread_;  ///< runs by beginning
};

}  // namespace

Result<std::shared_ptr<const Profile>> read_profile(const std::string& path, const Progress* progress) {
  TRY(TraceEvents events, read_trace_events(path, progress));
  TRY_DO(step(progress, -1, "profile"));
  return ProfileBuilder(std::move(events)).build(path);
}

}  // namespace partita
