#include "app/tasks/node_measures.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/backends.h"
#include "core/compare/per_node.h"
#include "core/interp/interpreter.h"

namespace partita {
namespace {

using Clock = std::chrono::steady_clock;
using Times = std::unordered_map<std::string, double>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr int kMostRuns = 5;
constexpr double kEnoughSeconds = 0.3;

Result<Times> time_nodes(const Graph& graph, const std::vector<Value>& inputs, const Progress& progress) {
  Times least;
  double total = 0;
  for (int run = 0; run < kMostRuns && total < kEnoughSeconds; ++run) {
    progress.at(static_cast<double>(run) / kMostRuns, "timing nodes");
    TRY(std::vector<Value> values, copy_values(inputs));
    Times now;
    auto last = Clock::now();
    InterpOptions options;
    options.progress = &progress;
    options.observer = [&](const Node& node, const Value&) -> Status {
      if (node.op()->is_call()) now[node.name()] += seconds_since(last);
      last = Clock::now();  // the time spent in this function is no node's
      return {};
    };
    auto start = Clock::now();
    TRY_DO(interpret(graph, std::move(values), options));
    total += seconds_since(start);
    for (const auto& [name, seconds] : now) {
      auto [known, fresh] = least.try_emplace(name, seconds);
      if (!fresh) known->second = std::min(known->second, seconds);
    }
  }
  return least;
}

// What passes make of a call keeps the call's origin. Each node is given one of its own, which tells whose kernel it is
// where a composite was decomposed.
Result<std::unordered_map<std::string, std::string>> kernels_of_nodes(const Graph& graph) {
  const std::unique_ptr<Graph> marked = graph.clone();
  std::unordered_map<const Origin*, std::string> calls;
  for (Node* node : *marked) {
    if (!node->op()->is_call()) continue;
    node->origin = std::make_shared<Origin>(node->origin ? *node->origin : Origin());
    calls[node->origin.get()] = node->name();
  }
  TRY(const StagedCompiler::Planned planned, default_compiler().stages({}).plan(*marked));
  const schedule::Plan& plan = planned.second;
  std::unordered_map<std::string, std::vector<std::string>> of_call;  // a composite has the kernels of its parts
  for (const auto& step : plan.steps) {
    const auto* call = std::get_if<schedule::KernelCall>(&step);
    const std::string name = call ? plan.kernels[static_cast<std::size_t>(call->kernel)].name
                                  : "library: " + std::string(std::get<schedule::ExternCall>(step).op->brief());
    for (const std::string& node : schedule::step_origins(plan, step)) {
      const Node* made = planned.first->find(node);
      const auto from = made ? calls.find(made->origin.get()) : calls.end();
      std::vector<std::string>& names = of_call[from == calls.end() ? node : from->second];
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::unordered_map<std::string, std::string> kernels;
  for (const auto& [node, names] : of_call) kernels[node] = fmt::format("{}", fmt::join(names, ", "));
  return kernels;
}

}  // namespace

Result<NodeMeasures> measure_nodes(const Graph& graph, const std::vector<Value>& inputs, const Progress& progress) {
  TRY(Times seconds, time_nodes(graph, inputs, progress));
  progress.at(-1, "planning kernels");
  return NodeMeasures{std::move(seconds), kernels_of_nodes(graph)};
}

}  // namespace partita
