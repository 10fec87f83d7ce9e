#include "core/load/profile/trace_events.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <simdjson.h>

#include "core/base/number_text.h"
#include "core/load/profile/event_stream.h"

namespace partita {
namespace {

constexpr std::size_t most_events = 12'000'000;    // 576 MB
constexpr std::size_t most_text_bytes = 64 << 20;  // names and sizes
constexpr double most_microseconds = 9e15;         // that nanoseconds in 64 bits hold

struct Category {
  std::string_view name;
  TraceEvent::Kind kind;
};
constexpr Category categories[] = {
    {"cpu_op", TraceEvent::Kind::Op},          {"user_annotation", TraceEvent::Kind::Annotation},
    {"kernel", TraceEvent::Kind::Device},      {"gpu_memcpy", TraceEvent::Kind::Device},
    {"gpu_memset", TraceEvent::Kind::Device},  {"cuda_runtime", TraceEvent::Kind::Launch},
    {"cuda_driver", TraceEvent::Kind::Launch}, {"xpu_runtime", TraceEvent::Kind::Launch},
    {"xpu_driver", TraceEvent::Kind::Launch},
};

class EventReader {
 public:
  explicit EventReader(TraceEvents& out) : out_(out) {}

  void read(std::string_view json) {
    simdjson::dom::object event;
    if (parser_.parse(json.data(), json.size(), false).get(event) != simdjson::SUCCESS) {
      ++unreadable;
      return;
    }
    std::string_view phase, category;
    if (event["ph"].get(phase) != simdjson::SUCCESS || event["cat"].get(category) != simdjson::SUCCESS) return;
    TraceEvent e;
    if (phase == "X") {
      const auto row = std::ranges::find(categories, category, &Category::name);
      if (row == std::end(categories)) return;
      e.kind = row->kind;
    } else if ((phase == "s" || phase == "f") && category == "ac2g") {
      e.kind = phase == "s" ? TraceEvent::Kind::FlowStart : TraceEvent::Kind::FlowEnd;
      if (event["id"].get(e.correlation) != simdjson::SUCCESS) e.correlation = 0;
    } else {
      return;
    }
    std::string_view name;
    if (!nanoseconds(event["ts"], e.begin) || event["name"].get(name) != simdjson::SUCCESS ||
        (phase == "X" && (!nanoseconds(event["dur"], e.length) || e.length < 0))) {
      ++unreadable;
      return;
    }
    if (out_.events.size() >= most_events) {
      ++left_out;
      return;
    }
    e.name = out_.texts.number(name);
    e.thread = thread_of(event);
    read_args(event, e);
    out_.events.push_back(e);
  }

  std::size_t unreadable = 0, left_out = 0;

 private:
  static bool nanoseconds(simdjson::simdjson_result<simdjson::dom::element> value, std::int64_t& out) {
    double microseconds = 0;
    if (value.get(microseconds) != simdjson::SUCCESS || !(std::abs(microseconds) < most_microseconds)) return false;
    out = std::llround(microseconds * 1000);
    return true;
  }

  /// Process and thread are numbers, or, of a device, sometimes texts.
  std::uint32_t thread_of(simdjson::dom::object event) {
    const auto id = [&](const char* key) -> std::int64_t {
      std::int64_t number = 0;
      std::string_view text;
      if (event[key].get(number) == simdjson::SUCCESS) return number;
      if (event[key].get(text) == simdjson::SUCCESS) return -1 - static_cast<std::int64_t>(out_.texts.number(text));
      return 0;
    };
    const auto [found, is_new] =
        threads_.try_emplace(std::pair(id("pid"), id("tid")), static_cast<std::uint32_t>(threads_.size()));
    return found->second;
  }

  void read_args(simdjson::dom::object event, TraceEvent& e) {
    simdjson::dom::object args;
    if (event["args"].get(args) != simdjson::SUCCESS) return;
    for (const auto& [key, value] : args) {
      std::int64_t number = 0;
      if (key == "External id") {
        if (value.get(number) == simdjson::SUCCESS) e.external = number;
      } else if (key == "correlation") {
        if (value.get(number) == simdjson::SUCCESS) e.correlation = number;
      } else if (key == "Input Dims" && e.kind == TraceEvent::Kind::Op) {
        dims_ = simdjson::minify(value);
        e.dims = out_.texts.number(dims_);
      }
    }
  }

  TraceEvents& out_;
  simdjson::dom::parser parser_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> threads_;
  std::string dims_;
};

/// The names in a list of devices, each once: "2 x NVIDIA H200".
std::string device_names(const std::string& json) {
  simdjson::dom::parser parser;
  simdjson::dom::array devices;
  std::vector<std::pair<std::string, int>> counts;
  if (parser.parse(json).get(devices) != simdjson::SUCCESS) return {};
  for (const auto device : devices) {
    std::string_view name;
    if (device["name"].get(name) != simdjson::SUCCESS) continue;
    const auto known = std::ranges::find(counts, name, &std::pair<std::string, int>::first);
    if (known == counts.end())
      counts.emplace_back(name, 1);
    else
      ++known->second;
  }
  std::string out;
  for (const auto& [name, count] : counts)
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", count > 1 ? fmt::format("{} x ", count) : "", name);
  return out;
}

void note(TraceEvents& out, const std::string& path, std::string what) {
  out.notes.push_back(input_error("profile.damaged", std::move(what), {.file = path}));
  out.notes.back().severity = Severity::Warning;
}

}  // namespace

std::uint32_t TextTable::number(std::string_view text) {
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  if (bytes_ + text.size() > most_text_bytes) return 0;
  bytes_ += text.size() + sizeof(void*) * 8;
  const auto added = numbers_.emplace(text, static_cast<std::uint32_t>(texts_.size())).first;
  texts_.push_back(&added->first);
  return added->second;
}

Result<TraceEvents> read_trace_events(const std::string& path, const Progress* progress) {
  TRY(const std::unique_ptr<EventStream> stream, EventStream::open(path));
  TraceEvents out;
  if (!stream->devices().empty()) out.device = device_names(stream->devices());
  EventReader reader(out);
  constexpr std::size_t between = 1 << 14;
  for (std::size_t count = 0;; ++count) {
    if (count % between == 0) TRY_DO(step(progress, stream->fraction(), "profile"));
    const auto event = stream->next();
    if (!event) break;
    reader.read(*event);
  }
  const auto read = static_cast<std::int64_t>(out.events.size());
  if (!stream->damage().empty())
    note(out, path,
         fmt::format("the profile is damaged: {}; {} before it were read", stream->damage(),
                     count_text(read, "event of use", "events of use")));
  if (reader.unreadable > 0)
    note(out, path,
         count_text(static_cast<std::int64_t>(reader.unreadable), "event") + " cannot be read and were left out");
  if (reader.left_out > 0)
    note(out, path,
         fmt::format("only the first {} events were read, {} more were left out; profile fewer steps", most_events,
                     reader.left_out));
  if (out.events.empty())
    return input_error("profile.empty",
                       "holds no event of a CPU or GPU" +
                           (stream->damage().empty() ? std::string() : ": " + stream->damage()) +
                           "; give what export_chrome_trace of torch.profiler wrote",
                       {.file = path});
  std::ranges::sort(out.events, {}, [](const TraceEvent& e) { return std::tuple(e.thread, e.begin, -e.length); });
  return out;
}

}  // namespace partita
