// Graphs with symbolic sizes: for many sets of sizes, compares compiled code with the interpreter, counts compilations,
// and times it beside code for those sizes alone.
//   bench_symbolic [--quiet] [--sets N] [--every N] PATH...
// PATH: an archive or graph text, a case file, a folder of them.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "codegen/backends.h"
#include "core/aot/aot.h"
#include "core/aot/pipeline.h"
#include "core/compare/compare.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/load/fx_text.h"
#include "core/load/session.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/specialise.h"

using namespace partita;

namespace {

using SizeSet = std::map<std::string, std::int64_t>;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Subject {
  std::string name;
  std::unique_ptr<Graph> graph;  ///< functional
  std::vector<SymExpr> guards;   ///< of PyTorch's trace
};

/// The graphs that a compiler gets of an artefact.
Result<std::vector<Subject>> graphs_of(const Graph& graph, const ExportedProgram* program, const std::string& name,
                                       bool train) {
  std::vector<Subject> out;
  AotOptions options;
  options.train = train;
  TRY(AotGraphs graphs, aot(graph, program, as_run(graph, options)));
  out.push_back({name + (train ? " forward" : ""), graphs.partition.forward->clone(), {}});
  if (graphs.partition.backward) out.push_back({name + " backward", graphs.partition.backward->clone(), {}});
  return out;
}

Result<std::vector<Subject>> of_cases(const std::string& path, const nlohmann::json& cases) {
  std::vector<Subject> out;
  for (const auto& entry : cases["cases"]) {
    const auto text = entry.find("symbolic_graph");
    if (text == entry.end() || text->is_null()) continue;
    TRY(const auto graph, parse_fx_text(text->get<std::string>()));
    if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
    const auto symbols = entry.value("symbols", nlohmann::json::object());
    for (const auto& [symbol, value] : symbols.items())
      if (value.is_number_integer() && !symbol.starts_with("u")) graph->shapes->set_hint(symbol, value);
    const std::string name =
        fmt::format("{}:{}", std::filesystem::path(path).stem().string(), entry["idx"].get<std::int64_t>());
    auto made = graphs_of(*graph, nullptr, name, false);
    if (!made) {
      fmt::print("{}\n", Json{{"graph", name}, {"left_out", made.error().line()}}.dump());
      continue;
    }
    for (const auto& guard : entry.value("symbolic_guards", nlohmann::json::array()))
      if (const auto e = SymExpr::parse(guard.get<std::string>())) made->front().guards.push_back(*e);
    std::ranges::move(*made, std::back_inserter(out));
  }
  return out;
}

Result<std::vector<Subject>> subjects(const std::string& path) {
  if (path.ends_with(".json")) {
    std::ifstream in(path);
    const auto json = nlohmann::json::parse(in, nullptr, false);
    if (json.is_object() && json.contains("cases")) return of_cases(path, json);
    return std::vector<Subject>();
  }
  TRY(const Loaded loaded, load(path));
  TRY(const Artefact* artefact, loaded.pick(""));
  TRY(const auto graph, artefact->graph());
  const std::string name = std::filesystem::path(path).parent_path().filename().string();
  TRY(std::vector<Subject> out, graphs_of(*graph, artefact->program.get(), name, false));
  auto trained = graphs_of(*graph, artefact->program.get(), name, true);
  if (trained) std::ranges::move(*trained, std::back_inserter(out));
  return out;
}

/// One set of sizes, with inputs that the interpreter takes.
struct Case {
  SizeSet sizes;
  std::unique_ptr<Graph> special;
  std::vector<Value> inputs, expected;
};

class Bench {
 public:
  Bench(Subject subject, int sets) : name_(std::move(subject.name)), graph_(std::move(subject.graph)), sets_(sets) {
    guards_ = std::move(subject.guards);
    choose_sizes(*graph_);
    std::set<std::string> symbols;
    const auto take = [&](const SymList& list) {
      for (const SymExpr e : list)
        for (std::string& s : e.symbols()) symbols.insert(std::move(s));
    };
    for (const Node* node : graph_->placeholders()) {
      if (const TensorMeta* t = node->meta.tensor()) take(t->sizes);
      if (const SymExpr* e = node->meta.sym()) take({*e});
    }
    const SizeSet hints = graph_->shapes->hints();
    for (const std::string& s : symbols) hints_[s] = hints.contains(s) ? hints.at(s) : 8;
    ranges_ = graph_->shapes->ranges();
  }

  bool has_symbols() const { return !hints_.empty(); }

  Json measure() {
    Json line = {{"graph", name_}};
    std::vector<Case> cases = make_cases();
    if (cases.empty()) {
      line["left_out"] = "the interpreter takes no random inputs: " + refusal_;
      return line;
    }
    std::vector<SizeCompilation> compilations;
    BackendOptions options;
    options.on_sizes = [&](const SizeCompilation& c) { compilations.push_back(c); };
    const auto compiled = default_compiler().make(options)(*graph_);
    if (!compiled) return line["refused"] = compiled.error().line(), line;
    std::vector<double> first_us;
    int wrong = 0;
    for (const Case& c : cases) {
      const std::size_t before = compilations.size();
      const auto start = Clock::now();
      const auto found = (*compiled)(c.inputs);
      if (compilations.size() == before) first_us.push_back(us_since(start));
      const std::string difference = found ? differs(c, *found) : found.error().line();
      if (difference.empty()) continue;
      if (wrong++ == 0) line["first_wrong"] = fmt::format("{}: {}", c.sizes, difference);
    }
    line["sets"] = cases.size();
    line["wrong"] = wrong;
    line["compilations"] = compilations.size();
    if (compilations.size() > 4) compilations.resize(4);
    for (const SizeCompilation& c : compilations) line["told"].push_back(text(c));
    if (!first_us.empty()) {
      line["new_size_us"] = median(first_us);
      line["fit_us"] = fit_us(cases.back().sizes);
    }
    if (!compilations.empty() && !compilations[0].guards.empty()) line["guard_ns"] = guard_ns(compilations[0]);
    for (std::size_t i = 0; i < std::min<std::size_t>(3, cases.size()); ++i) time(cases[i], *compiled, i == 0, line);
    return line;
  }

 private:
  static double median(std::vector<double> v) {
    std::ranges::nth_element(v, v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2));
    return v[v.size() / 2];
  }

  /// What it takes to find out whether new sizes fit together.
  double fit_us(const SizeSet& sizes) const {
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      if (schedule::specialise(*graph_, sizes)) times.push_back(us_since(start));
    }
    return median(times);
  }

  static double guard_ns(const SizeCompilation& c) {
    constexpr int rounds = 1000;
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i)
      if (!schedule::broken_guards(c.guards, c.sizes).empty()) return -1;
    return us_since(start) * 1e3 / rounds / static_cast<double>(c.guards.size());
  }

  std::string differs(const Case& c, const std::vector<Value>& found) const {
    if (found.size() != c.expected.size()) return "another number of results";
    Result<std::vector<Value>> exact = std::vector<Value>();
    for (std::size_t i = 0; i < found.size(); ++i) {
      Difference d = compare_values(fmt::format("output.{}", i), c.expected[i], found[i], {}, true);
      if (d.ok()) continue;
      if (exact && exact->empty()) exact = interpret(*graph_, c.inputs, {.float64 = true});
      if (exact) std::ignore = judge_by_baseline(d, (*exact)[i], c.expected[i], found[i], {});
      if (!d.ok()) return Report{"expected", "found", {d}}.text();
    }
    return "";
  }

  /// Times code for all sizes beside code for these, in turns.
  void time(const Case& c, const CompiledFn& all, bool first, Json& line) const {
    const auto own = default_compiler().make({})(*c.special);
    // Inputs of the special graph are the same; symbols are numbers that it ignores.
    if (!own || !(*own)(c.inputs)) return;
    double best[2] = {1e30, 1e30};
    const auto end = Clock::now() + std::chrono::milliseconds(25);
    for (int round = 0; round < 300 && (round < 12 || Clock::now() < end); ++round)
      for (int which = 0; which < 2; ++which) {
        const auto start = Clock::now();
        const auto done = (which ? all : *own)(c.inputs);
        if (done) best[which] = std::min(best[which], us_since(start));
      }
    line["times"].push_back(
        {{"sizes", fmt::format("{}", c.sizes)}, {"first", first}, {"static_us", best[0]}, {"us", best[1]}});
  }

  std::optional<Case> make_case(const SizeSet& sizes) {
    for (const auto& [symbol, value] : sizes) {
      const auto range = ranges_.find(symbol);
      if (value < 2 || (range != ranges_.end() && (value < range->second.low || value > range->second.high)))
        return std::nullopt;
    }
    for (const SymExpr guard : guards_)
      if (const auto holds = schedule::instance_value(guard, sizes); holds && *holds == 0) return std::nullopt;
    Case c{sizes, nullptr, {}, {}};
    const auto refuse = [&](const Diagnostic& d) {
      refusal_ = d.line();
      return std::nullopt;
    };
    auto special = schedule::specialise(*graph_, sizes);
    if (!special) return refuse(special.error());
    c.special = *std::move(special);
    for (const Node* node : *c.special)
      if (const TensorMeta* t = node->meta.tensor())
        if (const SymExpr n = product(t->sizes); n.is_int() && n.as_int() > most_elements) return std::nullopt;
    auto inputs = random_inputs(*c.special, 3);
    if (!inputs) return refuse(inputs.error());
    c.inputs = *std::move(inputs);
    auto expected = interpret(*graph_, c.inputs);
    if (!expected) return refuse(expected.error());
    c.expected = *std::move(expected);
    return c;
  }

  /// The first are large, so that a time is that of kernels.
  std::vector<Case> make_cases() {
    std::vector<Case> out;
    std::set<SizeSet> tried;
    const auto add = [&](const SizeSet& sizes) {
      if (static_cast<int>(out.size()) == sets_ || !tried.insert(sizes).second) return false;
      auto made = make_case(sizes);
      if (!made) return false;
      out.push_back(*std::move(made));
      return true;
    };
    const auto scaled = [&](std::int64_t up, std::int64_t down) {
      SizeSet sizes;
      for (const auto& [symbol, hint] : hints_) sizes[symbol] = std::max<std::int64_t>(hint * up / down, 2);
      return sizes;
    };
    for (const std::int64_t factor : {1024, 256, 64, 32, 16, 8, 4, 2, 1})
      if (add(scaled(factor, 1))) {
        add(scaled(3 * factor, 4));
        add(scaled(factor, 2));
        break;
      }
    std::mt19937 random(1);
    const auto within = [&](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
    };
    for (int round = 0; round < 40 * sets_ && static_cast<int>(out.size()) < sets_; ++round) {
      SizeSet sizes = scaled(within(1, 5), 1);
      for (auto& [symbol, value] : sizes)
        if (round % 3 == 0 || (round % 3 == 1 && within(0, 1))) value = within(2, 40);
      add(sizes);
    }
    return out;
  }

  static constexpr std::int64_t most_elements = 1 << 18;  ///< of a tensor

  std::string name_, refusal_;
  std::unique_ptr<Graph> graph_;
  int sets_;
  std::vector<SymExpr> guards_;
  SizeSet hints_;
  std::map<std::string, SymRange> ranges_;
};

}  // namespace

int main(int argc, char** argv) {
  int sets = 20, every = 1;
  bool quiet = false;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--sets" && i + 1 < argc) {
      sets = std::atoi(argv[++i]);
    } else if (word == "--every" && i + 1 < argc) {
      every = std::atoi(argv[++i]);
    } else if (word == "--quiet") {
      quiet = true;
    } else if (std::filesystem::is_directory(word)) {
      for (const auto& entry : std::filesystem::directory_iterator(word))
        if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
    } else {
      paths.push_back(word);
    }
  }
  std::ranges::sort(paths);
  int graphs = 0, once = 0, left_out = 0, wrong = 0, hinted[2] = {}, others[2] = {};
  for (std::size_t p = 0; p < paths.size(); p += static_cast<std::size_t>(std::max(every, 1))) {
    const std::string& path = paths[p];
    auto found = subjects(path);
    if (!found) {
      fmt::print("{}\n", Json{{"path", path}, {"error", found.error().line()}}.dump());
      continue;
    }
    for (Subject& subject : *found) {
      Bench bench(std::move(subject), sets);
      if (!bench.has_symbols()) continue;
      const Json line = bench.measure();
      ++graphs;
      if (!line.contains("sets")) {
        ++left_out;
        fmt::print("{}\n", line.dump());
        continue;
      }
      once += line["compilations"] == 1;
      wrong += line["wrong"] != 0;
      bool slow = false;
      for (const Json& t : line.value("times", Json::array())) {
        const bool first = t["first"];
        const bool fast = t["static_us"].get<double>() >= (first ? 0.9 : 0.8) * t["us"].get<double>();
        ++(first ? hinted : others)[fast];
        slow |= !fast;
      }
      if (!quiet || slow || line["compilations"] != 1 || line["wrong"] != 0) fmt::print("{}\n", line.dump());
      std::fflush(stdout);
    }
  }
  fmt::print(
      "{} graphs with symbols, {} left out; {} compiled once, {} wrong; at least 0.9 of the static speed at the first "
      "sizes: {} of {}; at least 0.8 at others: {} of {}\n",
      graphs, left_out, once, wrong, hinted[1], hinted[0] + hinted[1], others[1], others[0] + others[1]);
  return wrong > 0;
}
