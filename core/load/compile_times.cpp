#include "core/load/compile_times.h"

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

}  // namespace

std::vector<CompileStep> compile_steps(const Artefact& chromium_events) {
  constexpr std::size_t most_depth = 200;
  std::vector<CompileStep> out;
  const auto text = chromium_events.text();
  if (!text) return out;
  struct Open {
    Step* step;
    double begin;  // microseconds
  };
  Step root;
  std::map<std::int64_t, std::vector<Open>> threads;
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
    std::vector<Open>& open = threads[thread];
    if (phase == "B" && open.size() < most_depth) {
      open.push_back({(open.empty() ? &root : open.back().step)->of(name), at});
    } else if (phase == "E") {
      // Steps within this one that have no end of their own end with it.
      const auto begun = std::find_if(open.rbegin(), open.rend(), [&](const Open& o) { return o.step->name == name; });
      if (begun == open.rend()) continue;
      begun->step->seconds += (at - begun->begin) * 1e-6;
      ++begun->step->count;
      open.erase(begun.base() - 1, open.end());
    }
  }
  list(root, 0, out);
  return out;
}

}  // namespace partita
