#include "core/load/compile_times.h"

#include <algorithm>
#include <map>

#include <simdjson.h>

namespace partita {
namespace {

struct Step {
  std::string name;
  std::int64_t count = 0;
  double seconds = 0;
  std::vector<std::unique_ptr<Step>> inner;  // in the order of the first occurrence

  Step* of(std::string_view wanted) {
    for (const auto& step : inner)
      if (step->name == wanted) return step.get();
    inner.push_back(std::make_unique<Step>());
    inner.back()->name = wanted;
    return inner.back().get();
  }
};

void list(const Step& step, int depth, std::vector<CompileStep>& out) {
  double within = 0;
  for (const auto& inner : step.inner) within += inner->seconds;
  if (step.count > 0) out.push_back({step.name, depth, step.count, step.seconds, std::max(step.seconds - within, 0.0)});
  for (const auto& inner : step.inner) list(*inner, depth + (step.count > 0), out);
}

/// What the event says beside the compilation, which the record names.
std::string about(simdjson::dom::object event) {
  std::string out;
  simdjson::dom::object args;
  if (event["args"].get(args) != simdjson::SUCCESS) return out;
  for (const auto& [key, value] : args) {
    std::string_view text;
    if (key == "compile_id" || value.is_null()) continue;
    out += out.empty() ? "" : ", ";
    out += std::string(key) + ": ";
    out += value.get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::minify(value);
  }
  return out;
}

void end(CompileSpan& span, double microseconds) {
  span.seconds = (microseconds - span.begin) * 1e-6;
}

}  // namespace

std::vector<CompileSpan> compile_spans(const Artefact& chromium_events) {
  constexpr std::size_t most_depth = 200;
  std::vector<CompileSpan> out;
  const auto text = chromium_events.text();
  if (!text) return out;
  std::map<std::int64_t, std::vector<int>> threads;  // the steps that are open in each, the innermost last
  double last = 0;
  simdjson::dom::parser parser;
  simdjson::dom::document_stream events;
  if (parser.parse_many(*text).get(events) != simdjson::SUCCESS) return out;
  for (auto event : events) {
    std::string_view name, phase;
    double at = 0;
    std::int64_t thread = 0;
    simdjson::dom::object object;
    if (event.get(object) != simdjson::SUCCESS || object["name"].get(name) != simdjson::SUCCESS ||
        object["ph"].get(phase) != simdjson::SUCCESS || object["ts"].get(at) != simdjson::SUCCESS)
      continue;
    if (object["tid"].get(thread) != simdjson::SUCCESS) thread = 0;
    last = std::max(last, at);
    std::vector<int>& open = threads[thread];
    if (phase == "B" || phase == "i") {
      if (open.size() >= most_depth) continue;
      out.push_back({std::string(name), about(object), thread, at, 0, open.empty() ? -1 : open.back(), false, false});
      if (phase == "B")
        open.push_back(static_cast<int>(out.size()) - 1);
      else
        out.back().ended = out.back().instant = true;
    } else if (phase == "E") {
      const auto begun = std::find_if(open.rbegin(), open.rend(),
                                      [&](int span) { return out[static_cast<std::size_t>(span)].name == name; });
      if (begun == open.rend()) continue;
      out[static_cast<std::size_t>(*begun)].ended = true;
      std::for_each(open.rbegin(), begun + 1, [&](int span) { end(out[static_cast<std::size_t>(span)], at); });
      open.erase(begun.base() - 1, open.end());
    }
  }
  for (const auto& [thread, open] : threads)
    for (const int span : open) end(out[static_cast<std::size_t>(span)], last);
  return out;
}

std::vector<CompileStep> compile_steps(const Artefact& chromium_events) {
  Step root;
  std::vector<Step*> step_of;
  for (const CompileSpan& span : compile_spans(chromium_events)) {
    if (span.instant) {
      step_of.push_back(nullptr);
      continue;
    }
    Step* step = (span.parent < 0 ? &root : step_of[static_cast<std::size_t>(span.parent)])->of(span.name);
    step_of.push_back(step);
    if (!span.ended) continue;
    step->seconds += span.seconds;
    ++step->count;
  }
  std::vector<CompileStep> out;
  list(root, 0, out);
  return out;
}

}  // namespace partita
