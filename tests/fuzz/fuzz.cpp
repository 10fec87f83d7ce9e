// Runs random graphs in three ways: by the interpreter (whose metas are compared with inferred ones), compiled, and
// decomposed for the compiler. Prints a difference as FX text with its seed.
//   partita_fuzz [--seed S] [--count N | --minutes M] [--jobs J] [--only NAME] [--backend B]   exit 1: it differs
//   partita_fuzz --write FOLDER ...                        cases for against_torch.py
//   partita_fuzz --programs [--train] [--write FOLDER] ...  programs with memory instead: see programs.h. What is
//                                                         written is for programs_in_torch.py
//   partita_fuzz --mutate FOLDER [--seed S] [--count N | --minutes M] ...   changes each operator case of a corpus
//                                                         folder N times, in one place: no signal, no broken
//                                                         invariant, no hang, and what compiled code accepts the
//                                                         interpreter accepts. Another seed makes other changes
//   partita_fuzz --mutate FILE.json --seed S --change G.N  that change again, in this process: for a debugger
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "codegen/backends.h"
#include "core/aot/run_compiled.h"
#include "core/base/config.h"
#include "core/compare/compare.h"
#include "core/compare/op_cases.h"
#include "core/compare/per_node.h"
#include "core/compare/rounding.h"
#include "core/grad/joint.h"
#include "core/interp/debug_interpreter.h"
#include "core/interp/interpreter.h"
#include "core/ir/print.h"
#include "core/load/safetensors.h"
#include "core/ops/facts/effects.h"
#include "core/process/workers.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/programs.h"

using namespace partita;

namespace {

/// What is wrong, in one line; nullopt when nothing is, or when the graph cannot be run this way.
using Finding = std::optional<std::string>;

Tolerance tolerance_of(const Value& v) {
  const Tensor* t = v.get<Tensor>();
  return default_tolerance(t ? t->dtype : DType::Float32);
}

/// The interpreter's values of a graph, and its values in double (empty when it cannot compute them).
struct Expected {
  const Graph& graph;
  const std::vector<Value>& inputs;
  std::vector<Value> values, exact;
};

/// `expected` with the infinities of `found` where it is so large that a sum on the way may have left the range of
/// single precision, in which PyTorch adds, too. The interpreter adds in double.
Result<Tensor> overflowed(const Tensor& expected, const Tensor& found) {
  constexpr double large = 1e30;
  if (!is_floating(expected.dtype) || expected.dtype == DType::Float64 || expected.sizes != found.sizes)
    return expected;
  TRY(Tensor wide, expected.to(DType::Float64));
  TRY(wide, wide.clone());
  TRY(Tensor other, found.to(DType::Float64));
  TRY(other, other.contiguous());
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    double& value = wide.as<double>()[i];
    const double is = other.as<double>()[i];
    if (std::isinf(is) && std::abs(value) > large && (is > 0) == (value > 0)) value = is;
  }
  return wide.to(expected.dtype);
}

/// Compares `found` with the interpreter's values. If the interpreter itself is far from its result in double, or one
/// more rounding would move the result as far, the difference comes from the graph and is not reported.
Finding compare(const Expected& expected, const std::vector<Value>& found, bool strides) {
  const std::vector<Value>& values = expected.values;
  if (values.size() != found.size()) return fmt::format("{} results for {}", found.size(), values.size());
  std::optional<Result<Moved>> moved, moved_in_parts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = fmt::format("output {}", i);
    const Tolerance tolerance = tolerance_of(values[i]);
    const Difference d = compare_values(name, values[i], found[i], tolerance, strides);
    if (d.ok()) continue;
    if (!d.layout.empty()) return name + ": " + d.layout.front();
    if (const Tensor *said = values[i].get<Tensor>(), *is = found[i].get<Tensor>(); said && is)
      if (const auto infinite = overflowed(*said, *is);
          infinite && compare_values(name, Value(*infinite), found[i], tolerance, strides).ok())
        continue;
    const Tensor *narrow = values[i].get<Tensor>(),
                 *exact = i < expected.exact.size() ? expected.exact[i].get<Tensor>() : nullptr;
    if (narrow && exact && narrow->dtype != DType::Complex32) {
      const auto rounded = exact->to(narrow->dtype);
      if (!rounded || !compare_values(name, Value(*rounded), values[i], tolerance, false).ok()) continue;
      if (!moved) moved = moved_by_rounding(expected.graph, expected.inputs, expected.exact);
      if (*moved && explained_by_rounding(*narrow, *found[i].get<Tensor>(), tolerance, (**moved)[i])) continue;
      // What a call rounds within, such as 1 + erf(x), its parts show.
      const auto parts = expected.graph.clone();
      if (!moved_in_parts && decompose_to_core(*parts))
        moved_in_parts = moved_by_rounding(*parts, expected.inputs, expected.exact);
      if (moved_in_parts && *moved_in_parts &&
          explained_by_rounding(*narrow, *found[i].get<Tensor>(), tolerance, (**moved_in_parts)[i]))
        continue;
    }
    return fmt::format(
        "{}: {} of {} elements differ{}", name, d.wrong, d.numel,
        d.first_wrong ? fmt::format(", {} expected, {} found", d.first_wrong->expected, d.first_wrong->found) : "");
  }
  return std::nullopt;
}

/// The error as a finding, unless it is a refusal.
Finding error(const Diagnostic& d) {
  if (d.fault == Fault::Unsupported) return std::nullopt;
  return d.line();
}

enum class Way { Inferred, Compiled, Decomposed };
constexpr Way ways[] = {Way::Inferred, Way::Compiled, Way::Decomposed};
constexpr const char* name_of(Way way) {
  return way == Way::Inferred ? "inferred" : way == Way::Compiled ? "compiled" : "decomposed";
}

/// Runs code that was made with other inputs. What it takes, the interpreter takes, with the same values.
Finding check_other(const Graph& graph, const std::vector<Value>& inputs, const CompiledFn& executable) {
  const auto found = executable(inputs);
  if (!found) return found.error().fault == Fault::Internal ? Finding(found.error().line()) : std::nullopt;
  const auto values = interpret(graph, inputs);
  if (!values) return "only compiled code accepts other inputs: " + values.error().line();
  InterpOptions in_double;
  in_double.float64 = true;
  const auto exact = interpret(graph, inputs, in_double);
  const Finding difference = compare({graph, inputs, *values, exact ? *exact : std::vector<Value>()}, *found, true);
  return difference ? "with other inputs " + *difference : difference;
}

Finding check(const fuzz::Case& c, Way way) {
  const Graph& graph = *c.graph;
  const std::vector<Value>& inputs = c.inputs;
  if (way == Way::Inferred) {
    const auto run = debug_interpret(graph, inputs);
    if (!run) return error(run.error());
    if (run->mismatches.empty()) return std::nullopt;
    return run->mismatches.front().node + ": " + run->mismatches.front().message();
  }
  const auto values = interpret(graph, inputs);
  if (!values) return std::nullopt;
  InterpOptions in_double;
  in_double.float64 = true;
  const auto exact = interpret(graph, inputs, in_double);
  const Expected expected{graph, inputs, *values, exact ? *exact : std::vector<Value>()};
  if (way == Way::Compiled) {
    const auto executable = fuzz::compiler->make({})(graph);
    if (!executable) return error(executable.error());
    const auto found = (*executable)(inputs);
    if (!found) return error(found.error());
    const Finding difference = compare(expected, *found, true);
    return difference || c.other_inputs.empty() ? difference : check_other(graph, c.other_inputs, *executable);
  }
  const auto simpler = graph.clone();
  if (const Status done = decompose_to_core(*simpler); !done) return error(done.error());
  const auto found = interpret(*simpler, inputs);
  return found ? compare(expected, *found, false) : error(found.error());
}

/// Reduces a case to the first node that differs alone, with what it needs.
fuzz::Case reduced(const fuzz::Case& c, Way way) {
  for (const Node* node : *c.graph) {
    if (!node->op()->is_call() || !node->meta.tensor()) continue;
    fuzz::Case part{c.graph->clone(), c.inputs, c.other_inputs};
    part.graph->set_output(Arg::tuple({part.graph->find(node->name())}));
    part.graph->eliminate_dead([](const Node&) { return false; });
    if (check(part, way)) return part;
  }
  return {c.graph->clone(), c.inputs, c.other_inputs};
}

/// Names the operator of a finding, so that findings of one kind can be counted.
std::string last_operator(const Graph& graph) {
  std::string name = "nothing";
  for (const Node* n : graph)
    if (n->op()->is_call() && !n->is(Op::getitem())) name = n->op()->name;
  return name;
}

constexpr std::size_t batch = 25;
constexpr double most_graphs_a_minute = 1e5;

/// Writes FOLDER/SEED.py and SEED.safetensors: inputs, and the interpreter's value of each call. against_torch.py
/// compares PyTorch with them.
Status write_case(const fuzz::Case& c, const std::string& stem) {
  std::vector<Arg> all;
  for (Node* n : *c.graph)
    if (n->op()->is_call() && n->meta.tensor()) all.emplace_back(n);
  const auto graph = c.graph->clone();
  for (Arg& a : all) a = graph->find(a.node()->name());
  graph->set_output(Arg::tuple(std::move(all)));
  TRY(const std::vector<Value> outputs, interpret(*graph, c.inputs));
  TensorFile file;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    file.tensors[fmt::format("input.{}", i)] = *c.inputs[i].get<Tensor>();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const Tensor* t = outputs[i].get<Tensor>()) file.tensors[fmt::format("output.{}", i)] = *t;
  std::ofstream(stem + ".py") << print(*graph);
  return write_safetensors(stem + ".safetensors", file);
}

using Clock = std::chrono::steady_clock;

/// Makes and checks a program, or writes it to `folder`.
void work_on_program(std::uint64_t number, bool train, const std::string& folder,
                     const std::function<void(const Node&)>& trying, const Workers::Send& send) {
  const fuzz::Program program = fuzz::generate_program(number, train, trying);
  if (!program.graph) return;
  const std::string text = print(*program.graph);
  send("graph\n" + text);
  if (!folder.empty()) {
    if (const Status done = fuzz::write_program(program, train, fmt::format("{}/{}", folder, number)); !done)
      send("refused\n" + done.error().code);
    return;
  }
  std::optional<fuzz::Refused> refused;
  const Finding found = fuzz::check_program(program, train, refused);
  if (refused) send("refused\n" + refused->why);
  if (!found) return;
  std::string kind;
  for (char c : *found)
    if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
  send(fmt::format("{}\n# seed {}: {}\n{}", kind.substr(0, 60), number, *found, text));
}

/// Checks how a changed graph is run. Findings are a broken invariant, and compiled code that computes what the
/// interpreter refuses. Values are not compared here.
Finding check_changed(const Graph& graph, const std::vector<Value>& inputs, bool& accepted) {
  const auto again = copy_values(inputs);
  if (!again) return std::nullopt;
  // Compilers drop dead calls unseen and take torch-level ones. The interpreter keeps more values at a time.
  const auto live = graph.clone();
  live->eliminate_dead(has_effect);
  const auto interpreted = interpret(*live, inputs);
  if (!interpreted && (interpreted.error().code == "tensor.out_of_memory" || interpreted.error().code == "ops.unknown"))
    return std::nullopt;
  if (!interpreted && interpreted.error().fault == Fault::Internal) return "interpreted: " + interpreted.error().line();
  accepted = static_cast<bool>(interpreted);
  const auto compiled = run_compiled(graph, *again, fuzz::compiler->make({}));
  if (!compiled && compiled.error().fault == Fault::Internal) return "compiled: " + compiled.error().line();
  if (compiled && !interpreted) return "only compiled code accepts: " + interpreted.error().line();
  if (!compiled || compiled->size() != interpreted->size()) return std::nullopt;
  for (std::size_t i = 0; i < compiled->size(); ++i) {
    const Tensor *a = (*interpreted)[i].get<Tensor>(), *b = (*compiled)[i].get<Tensor>();
    if (a && b && (a->sizes != b->sizes || a->dtype != b->dtype))
      return fmt::format("output {}: another dtype or other sizes when compiled", i);
  }
  return std::nullopt;
}

struct MutateOptions {
  std::string path;
  std::uint64_t seed = 1;
  std::size_t count = 1;  ///< changes of each graph
  unsigned jobs = 1;
  double hang_seconds = 10;
  Clock::time_point deadline = Clock::time_point::max();
};

/// Change `i` of graph `number` of a case file. Calls `tell` before it is run, with what is changed and the graph.
Finding check_change(const MutateOptions& options, const Graph& graph, const std::vector<Value>& inputs,
                     std::size_t number, std::size_t i, const std::function<void(const std::string&)>& tell,
                     bool& accepted) {
  const auto changed = graph.clone();
  std::vector<Value> values = inputs;
  const std::string what = fuzz::mutate(*changed, values, (options.seed * 1000 + number) * 1000 + i);
  tell(fmt::format("{}.{}\n{}\n{}", number, i, what, print(*changed)));
  return what.empty() ? Finding() : check_changed(*changed, values, accepted);
}

/// Calls f(number, graph, inputs) for every graph of a case file.
void each_case(const std::string& file,
               const std::function<void(std::size_t, const Graph&, const std::vector<Value>&)>& f) {
  std::size_t number = 0;
  CaseOptions cases;
  cases.run = [&](const Graph& graph, const std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    f(number++, graph, inputs);
    return unsupported("fuzz.changed", "not compared with its results");
  };
  (void)check_cases(file, cases);
}

/// A changed number may ask for any amount of memory, results or turns of a loop, and each costs time.
void set_low_limits() {
  set_config(*patched_config({{"memory_limit", "64MiB"}, {"graph_limit", "10k"}}));
}

/// Repeats one change: "3.1" is the second of the fourth graph. Returns the exit code.
int repeat_change(const MutateOptions& options, const std::string& change) {
  set_low_limits();
  const std::size_t dot = std::min(change.find('.'), change.size() - 1);
  const std::size_t wanted = std::strtoull(change.c_str(), nullptr, 10),
                    i = std::strtoull(change.c_str() + dot + 1, nullptr, 10);
  Finding found;
  each_case(options.path, [&](std::size_t number, const Graph& graph, const std::vector<Value>& inputs) {
    if (number != wanted) return;
    bool accepted = false;
    found = check_change(
        options, graph, inputs, number, i,
        [](const std::string& text) {
          fmt::print("{}\n", text);
          std::fflush(stdout);
        },
        accepted);
  });
  fmt::print("{}\n", found.value_or("nothing is wrong"));
  return found ? 1 : 0;
}

/// What a finding has in common with others: its words without numbers, and the operator of a crash.
std::string kind_of(const std::string& what, const std::string& file) {
  std::string kind;
  for (char c : what.substr(0, 120))
    if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
  return what.starts_with("crash") ? kind + ", " + file : kind;
}

/// Returns the exit code.
int mutate_cases(const MutateOptions& options) {
  auto files = find_case_files(options.path);
  if (!files) {
    fmt::print(stderr, "partita_fuzz: {}\n", files.error().line());
    return 2;
  }
  std::shuffle(files->begin(), files->end(), std::mt19937_64(options.seed));
  set_low_limits();
  struct Kind {
    std::size_t findings = 0;
    std::string first;
  };
  std::map<std::string, Kind> kinds;
  std::size_t changes = 0, accepted = 0, failed = 0;
  std::vector<std::size_t> begun(files->size(), 0);
  std::vector<std::string> text(files->size());  // of the change that is being run: its number, what it is, the graph
  const auto report = [&](std::size_t file, const std::string& what) {
    ++failed;
    Kind& kind = kinds[kind_of(what, std::filesystem::path((*files)[file]).stem().string())];
    if (kind.findings++ > 0) return;
    const std::size_t end = text[file].find('\n');
    kind.first = fmt::format("partita_fuzz --mutate {} --seed {} --change {}", (*files)[file], options.seed,
                             text[file].substr(0, end));
    fmt::print("# {}\n# {}\n{}\n", what, kind.first, text[file].substr(end + 1));
    std::fflush(stdout);
  };
  Workers workers;
  workers.items = files->size();
  workers.jobs = options.jobs;
  workers.step_seconds = options.hang_seconds;
  workers.work = [&](std::size_t file, std::size_t from, const Workers::Send& send) {
    if (Clock::now() > options.deadline) return;
    std::size_t step = 0;
    each_case((*files)[file], [&](std::size_t number, const Graph& graph, const std::vector<Value>& inputs) {
      for (std::size_t i = 0; i < options.count && Clock::now() < options.deadline; ++i) {
        if (step++ < from) continue;
        const auto tell = [&](const std::string& change) { send("begin\n" + change); };
        bool accepted = false;
        if (const Finding found = check_change(options, graph, inputs, number, i, tell, accepted))
          send("found\n" + *found);
        if (accepted) send("accepted\n");
      }
    });
  };
  workers.receive = [&](std::size_t file, std::string_view message) {
    const std::size_t end = message.find('\n');
    if (message.substr(0, end) == "found") return report(file, std::string(message.substr(end + 1)));
    if (message.substr(0, end) == "accepted") {
      ++accepted;
      return;
    }
    ++changes;
    ++begun[file];
    text[file] = message.substr(end + 1);
  };
  workers.died = [&](std::size_t file, const std::string& how) -> std::optional<std::size_t> {
    report(file, "crash: " + how);
    return begun[file];
  };
  if (const Status done = run_workers(workers); !done) {
    fmt::print(stderr, "partita_fuzz: {}\n", done.error().line());
    return 2;
  }
  for (const auto& [name, kind] : kinds) fmt::print("{:6} {}\n       {}\n", kind.findings, name, kind.first);
  fmt::print("{} changed graphs, {} accepted, {} findings of {} kinds\n", changes, accepted, failed, kinds.size());
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  std::size_t count = 1000;
  double minutes = 0;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::string folder, only, mutated, change;
  double hang_seconds = 10;
  bool unused = false, programs = false, train = false, numbers_only = false;
  CLI::App app{"Random graphs by the interpreter, compiled and decomposed"};
  app.add_option("--seed", seed, "of the first graph; the next has the next number")->capture_default_str();
  const auto counted = app.add_option("--count", count, "graphs")->capture_default_str();
  app.add_option("--minutes", minutes, "begin graphs for as long as this, instead of a number of them")
      ->check(CLI::PositiveNumber)
      ->excludes(counted);
  app.add_option("--jobs", jobs, "processes")->capture_default_str();
  app.add_option_function<std::string>(
      "--backend",
      [](const std::string& name) {
        const auto found = find_backend(name);
        if (!found) throw CLI::ValidationError(found.error().line());
        fuzz::compiler = *found;
      },
      "what compiles them");
  app.add_option("--only", only, "operators whose name contains this");
  app.add_flag("--no-symbols", numbers_only, "all sizes and integers are numbers");
  app.add_flag("--unused", unused, "name the operators that no graph had a call of");
  app.add_option("--write", folder, "write the graphs with their values here, for against_torch.py");
  app.add_flag("--programs", programs, "programs that write and share memory instead");
  app.add_flag("--train", train, "differentiate them")->needs("--programs");
  app.add_option("--mutate", mutated,
                 "change the operator cases of this corpus folder instead, each graph as often as --count");
  app.add_option("--change", change, "repeat this change of a case file, as a finding names it")->needs("--mutate");
  app.add_option("--hang", hang_seconds, "seconds after which a change counts as hanging")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  set_config(*patched_config({{"loop_limit", "1m"}}));

  auto deadline = Clock::time_point::max();
  if (minutes > 0) {
    deadline = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::ratio<60>>(minutes));
    count = static_cast<std::size_t>(minutes * most_graphs_a_minute);
  }
  if (!mutated.empty()) {
    if (counted->empty()) count = 4;
    const MutateOptions options{mutated, seed, count, jobs, hang_seconds, deadline};
    return change.empty() ? mutate_cases(options) : repeat_change(options, change);
  }
  std::string tried;
  const auto tell = [&](const Node& n) { std::fprintf(stderr, "%s\n", (tried = print(n)).c_str()); };
  if (fuzz::candidates(only).empty()) {
    fmt::print(stderr, "partita_fuzz: no operator has {} in its name; `partita ops` lists them\n", only);
    return 1;
  }
  std::size_t graphs = 0, failed = 0;
  std::map<std::string, std::size_t> kinds;
  std::vector<std::size_t> begun((count + batch - 1) / batch, 0);
  std::vector<std::string> graph_text(begun.size());
  std::map<std::string, std::size_t> calls, refused;
  auto report = [&](const std::string& kind, const std::string& text) {
    ++failed;
    if (++kinds[kind] <= 3) fmt::print("{}\n", text);
    std::fflush(stdout);
  };
  Workers workers;
  workers.items = begun.size();
  workers.jobs = jobs;
  workers.work = [&](std::size_t item, std::size_t from, const Workers::Send& send) {
    for (std::size_t i = from; i < batch && item * batch + i < count && Clock::now() < deadline; ++i) {
      const std::uint64_t number = seed + item * batch + i;
      send("begin");
      // A crash is reported with the last line of stderr.
      if (programs) {
        work_on_program(number, train, folder, tell, send);
        continue;
      }
      const fuzz::Case c = [&] {
        try {
          return fuzz::generate(number, only, !numbers_only, tell);
        } catch (const std::exception& e) {  // report which call it was
          send(fmt::format("threw: {}\n# seed {}: {}: {}", tried, number, e.what(), tried));
          return fuzz::Case{std::make_unique<Graph>(), {}, {}};
        }
      }();
      if (c.graph->size() == 0) continue;
      if (!folder.empty()) {
        if (const Status done = write_case(c, fmt::format("{}/{}", folder, number)); !done)
          send(fmt::format("not written\n# seed {}: {}", number, done.error().line()));
        continue;
      }
      send("graph\n" + print(*c.graph));
      std::string names = "calls\n";
      for (const Node* n : *c.graph)
        if (n->op()->is_call()) names += n->op()->name + " ";
      send(names);
      for (const Way way : ways)
        if (check(c, way)) {
          const fuzz::Case part = reduced(c, way);
          const Finding what = check(part, way);
          send(fmt::format("{} {}\n# seed {}, {}: {}\n{}", name_of(way), last_operator(*part.graph), number,
                           name_of(way), what.value_or("?"), print(*part.graph)));
        }
    }
  };
  workers.receive = [&](std::size_t item, std::string_view message) {
    if (message == "begin") {
      ++begun[item];
      graph_text[item].clear();
      return;
    }
    const std::size_t end = message.find('\n');
    if (message.substr(0, end) == "refused") {
      ++refused[std::string(message.substr(end + 1))];
      return;
    }
    if (message.substr(0, end) == "graph") {
      ++graphs;
      graph_text[item] = message.substr(end + 1);
      return;
    }
    if (message.substr(0, end) == "calls") {
      std::istringstream names{std::string(message.substr(end + 1))};
      for (std::string name; names >> name;) ++calls[name];
      return;
    }
    report(std::string(message.substr(0, end)), std::string(message.substr(end + 1)));
  };
  workers.died = [&](std::size_t item, const std::string& how) -> std::optional<std::size_t> {
    const std::uint64_t number = seed + item * batch + begun[item] - 1;
    report("crash: " + how.substr(0, 100), fmt::format("# seed {}: {}\n{}", number, how, graph_text[item]));
    return begun[item];
  };
  if (const Status done = run_workers(workers); !done) {
    fmt::print(stderr, "partita_fuzz: {}\n", done.error().line());
    return 2;
  }
  for (const auto& [kind, number] : kinds) fmt::print("{:6} {}\n", number, kind);
  if (unused)
    for (const std::string& name : fuzz::candidates(only))
      if (!calls.contains(name)) fmt::print("no call of {}\n", name);
  for (const auto& [why, number] : refused) fmt::print("{:6} refused, {}\n", number, why);
  fmt::print("{} graphs, {} differences\n", graphs, failed);
  return failed ? 1 : 0;
}
