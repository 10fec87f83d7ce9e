// The options of `partita minify` as an oracle: a crash, a wrong result or the user's command, tried by this process
// and its forks or by `partita minify --once`. Also the search for the guilty pass or kernel, and the report.
#include "app/tasks/minify_question.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/tasks/config_values.h"
#include "app/tasks/locate.h"
#include "app/tasks/plant.h"
#include "codegen/torch/column.h"
#include "core/base/assign.h"
#include "core/base/hash.h"
#include "core/base/whereabouts.h"
#include "core/compare/check_passes.h"
#include "core/ir/print.h"

namespace partita {

using minify::Candidate;
using minify::Oracle;

namespace {

/// "accuracy:cpu" -> accuracy and cpu, the default compiler when it names none.
std::pair<std::string, std::string> split_check(const std::string& check) {
  const std::size_t colon = check.find(':');
  return {check.substr(0, colon),
          colon == std::string::npos ? std::string(default_compiler().name) : check.substr(colon + 1)};
}

/// Tries the graph of a folder and no other; `mode`: --once or --blame. PyTorch runs in this process's Python.
minify::CaseProgram try_program(const MinifyCheck& check, const std::string& program, const char* mode) {
  return [check, program, mode](const std::string& folder) -> Result<ProcessWork> {
    ProcessWork work;
    std::vector<std::string> words = {program, "minify", folder + "/graph.py", "--inputs",
                                      folder + "/inputs.safetensors"};
    words.insert(words.end(), {"--check", check.check, "--tolerance", fmt::format("{}", check.tolerance), "--timeout",
                               fmt::format("{}", check.timeout), "--memory-limit",
                               fmt::format("{}", check.memory_limit), mode, "--json"});
    if (!check.plant.empty()) words.insert(words.end(), {"--plant", check.plant});
    if (check.train) words.emplace_back("--train");
    if (torch::is_column(split_check(check.check).second)) {
      constexpr int in_program = 3;
      TRY(Descriptor process, torch::share_process(config(), nullptr));
      work.descriptors.emplace_back(std::make_shared<Descriptor>(std::move(process)), in_program);
      words.insert(words.end(), {"--python-process", fmt::format("{}", in_program)});
    }
    work.words = with_configuration(std::move(words));
    return work;
  };
}

/// Longer than the program gives its own tries, so that it can report a time-out itself.
ProcessLimits outer_limits(const MinifyCheck& check) {
  constexpr double seconds_to_start = 5;
  return {check.timeout + seconds_to_start, 0};
}

/// The nodes that locate() names, in the graph that is minified. An error is no answer: the search goes on without.
std::function<std::vector<std::string>(const Candidate&, const Progress*)> located_nodes(
    const std::string& column, const BackendOptions& options) {
  return [column, how = options.config, inference = options.inference](
             const Candidate& candidate, const Progress* progress) -> std::vector<std::string> {
    const auto inputs = candidate.inputs();
    constexpr int most_askings = 5;  // the process may be killed from elsewhere
    for (int asking = 1; inputs && asking <= most_askings; ++asking) {
      auto report = torch::locate(column, *candidate.graph, *inputs,
                                  {.config = how, .progress = progress, .inference = inference});
      if (report) return Located{"", *std::move(report)}.given_nodes();
      if (!minify::is_lost(report.error()) && !is_death(report.error())) break;
    }
    return {};
  };
}

Result<MinifyQuestion> command_question(const MinifyCheck& check) {
  MinifyQuestion q;
  q.name = "command";
  q.jobs = std::max(check.jobs, 1);
  TRY(q.oracle, minify::command_oracle(check.command, check.matches, {check.timeout, check.memory_limit << 20}));
  q.oracle.in_child = q.jobs > 1;
  q.again = check.command;
  return q;
}

/// A text that other inputs do not have.
std::string identity(const Value& value) {
  if (const auto* n = value.get<std::int64_t>()) return fmt::format("{}", *n);
  if (const auto* x = value.get<double>()) return fmt::format("{:a}", *x);
  const auto* t = value.get<Tensor>();
  if (!t) return {};
  std::string text = fmt::format("{}[{}]", short_name(t->dtype), fmt::join(t->sizes, ", "));
  if (const auto dense = t->contiguous())
    text += content_hash({reinterpret_cast<const char*>(dense->data()),
                          static_cast<std::size_t>(dense->numel()) * itemsize(dense->dtype)});
  return text;
}

}  // namespace

Result<MinifyQuestion> minify_question(const MinifyCheck& check) {
  if (check.check.empty() == check.command.empty())
    return input_error("cli.usage", "minify takes --check crash|accuracy[:backend] or --command 'CMD {}'");
  if (!check.command.empty()) return command_question(check);
  const auto [kind, backend] = split_check(check.check);
  if (kind != "crash" && kind != "accuracy")
    return input_error(
        "cli.usage",
        fmt::format("--check takes crash or accuracy, with a backend behind a colon, and got {}", check.check));
  MinifyQuestion q;
  q.jobs = check.jobs > 0 ? check.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  TRY(q.backend, find_backend(backend));
  q.name = kind + ":" + backend;
  q.tolerance = check.tolerance;
  std::optional<std::pair<const Op*, Plant>> plant;
  if (!check.plant.empty()) TRY_DO(assign(plant, parse_plant(check.plant)));
  // A try's limits are those of its process in Python, too.
  if (check.memory_limit > 0) q.backend_options.config.python_memory = check.memory_limit << 20;
  q.backend_options.config.python_seconds = check.timeout;
  q.backend_options.inference = !check.train;
  if (torch::is_column(backend)) {
    TRY(torch::ColumnName column, torch::parse_column(backend));
    q.torch_backend = std::move(column.name);
    q.torch_settings = std::move(column.options);
  }
  if (check.python_process >= 0) TRY_DO(torch::use_process(config(), check.python_process));
  minify::CallUnknown call_unknown;
  if (!config().python_import.empty())
    call_unknown = [how = q.backend_options.config](const Node& node, const std::vector<Value>& args,
                                                    const ValueKwargs& kwargs) {
      return torch::call_operator(node, args, kwargs, {.config = how});
    };
  q.oracle_of = [=, kind = kind, backend = backend](const CompileFn& compile) {
    const CompileFn faulty = plant && compile ? planted(compile, plant->first, plant->second) : compile;
    Oracle oracle = kind == "crash" ? minify::crash_oracle(backend, faulty)
                                    : minify::accuracy_oracle(backend, faulty, {.tolerance = check.tolerance},
                                                              config().threads, call_unknown);
    oracle.limits = {check.timeout, check.memory_limit << 20};
    oracle.call_unknown = call_unknown;
    oracle.in_child = true;  // compiled code may crash whatever is asked of it
    if (torch::is_column(backend))
      oracle.ready = [config = q.backend_options.config] { return torch::start(config, nullptr); };
    if (backend.starts_with("torch:inductor")) oracle.suspects = located_nodes(backend, q.backend_options);
    return oracle;
  };
  q.oracle = q.oracle_of(q.backend->make(q.backend_options));
  q.oracle.question += check.plant.empty() ? "" : " planted " + check.plant;
  q.oracle.question += check.train ? " in a training step" : "";
  q.options = fmt::format("--check {}{}{}", q.name, check.plant.empty() ? "" : " --plant " + check.plant,
                          check.train ? " --train" : "");
  const bool configured = !config_part(config(), ConfigPart::Differs).empty();
  q.again = fmt::format("partita minify graph.py --inputs inputs.safetensors {} --once{}", q.options,
                        configured ? " --config-file partita.config" : "");
  return q;
}

Oracle asked_elsewhere(const MinifyQuestion& question, const MinifyCheck& check, const std::string& program) {
  Oracle oracle;
  oracle.question = question.oracle.question;
  oracle.program = try_program(check, program, "--once");
  oracle.limits = outer_limits(check);
  oracle.ready = question.oracle.ready;
  oracle.call_unknown = question.oracle.call_unknown;
  oracle.cut_first = question.oracle.cut_first;
  oracle.suspects = question.oracle.suspects;
  return oracle;
}

Result<minify::Culprit> find_culprit(const MinifyQuestion& question, const Candidate& smallest,
                                     const minify::Failure& failure, double hang_seconds) {
  if (!question.backend || !question.backend->machine) return minify::Culprit();
  const auto oracle_of = [&](const CompileFn& compile) {
    Oracle oracle = question.oracle_of(compile);
    if (hang_seconds > 0) oracle.limits.seconds = std::min(oracle.limits.seconds, hang_seconds);
    return oracle;
  };
  return find_culprit(question.backend->stages(question.backend_options), oracle_of, smallest, failure,
                      {.tolerance = question.tolerance});
}

Result<minify::Culprit> culprit_elsewhere(const MinifyCheck& check, const std::string& program,
                                          const minify::MinifyResult& reduced, const Progress* progress) {
  const Candidate smallest = minify::with_inputs(reduced.graph, reduced.inputs, 0);
  // A try for each pass and each step of the plan, each within its own limit.
  const ProcessLimits no_limit;
  MinifyCheck quick = check;
  quick.timeout = std::min(check.timeout, reduced.hang_seconds);
  TRY(const ProcessEnd end, minify::run_on_case(try_program(quick, program, "--blame"), smallest, no_limit, progress));
  const auto answer = nlohmann::json::parse(end.output, nullptr, false);
  if (!answer.is_object() || !answer.contains("pass") || !answer.contains("kernel"))
    return Diagnostic{Fault::Differs, "minify.no_culprit", "who is to blame could not be found out: " + end.output};
  return minify::Culprit{answer["pass"], answer["kernel"], answer.value("detail", std::string())};
}

std::string to_json(const minify::Culprit& culprit) {
  return nlohmann::ordered_json{{"pass", culprit.pass}, {"kernel", culprit.kernel}, {"detail", culprit.detail}}.dump();
}

minify::Memory remembered_tries(const std::shared_ptr<CodeStore>& store, const std::string& session) {
  minify::Memory memory;
  memory.recall = [store, session](std::uint64_t candidate) { return store->find_try(session, candidate); };
  memory.remember = [store, session](std::uint64_t candidate, const std::string& answer) {
    store->add_try(session, candidate, answer);
  };
  return memory;
}

std::string minify_session(const minify::Start& start, const MinifyQuestion& question) {
  std::string text;
  for (const std::string& part : {std::string(PARTITA_VERSION), question.oracle.question,
                                  config_text(config(), ConfigPart::Differs), print(*start.graph)})
    add_part(text, part);
  for (const Node* node : *start.graph)
    if (node->op()->meaning) add_part(text, node->op()->meaning_hash);
  for (const Value& v : start.inputs) add_part(text, identity(v));
  return content_hash(text);
}

minify::ReproText repro_text(const MinifyQuestion& question, const minify::Culprit& culprit) {
  minify::ReproText text{question.name,      question.again, "partita " PARTITA_VERSION,
                         question.tolerance, culprit,        config_text(config(), ConfigPart::Differs)};
  if (question.backend) text.with_meanings = fmt::format(" --operators {}", minify::operators_folder);
  if (question.torch_backend.empty()) return text;
  text.backend = question.torch_backend;
  text.settings = question.torch_settings;
  text.inference = question.backend_options.inference;
  text.imports = config().python_import;
  return text;
}

std::string minify_report(const minify::MinifyResult& r, const minify::Culprit& culprit, const std::string& folder) {
  nlohmann::ordered_json document = {
      {"folder", folder},
      {"config", config_json(config(), ConfigPart::Differs)},
      {"failure", {{"what", r.failure.what}, {"op", r.failure.op}, {"message", r.failure.message}}},
      {"calls", {{"before", r.start_calls}, {"after", r.calls}}},
      {"tries", r.tries},
      {"recalled", r.recalled},
      {"nodes_tried", r.nodes_tried},
      {"seconds", r.seconds},
      {"tries_per_second", r.seconds > 0 ? static_cast<double>(r.tries) / r.seconds : 0},
      {"nodes_per_second", r.seconds > 0 ? static_cast<double>(r.nodes_tried) / r.seconds : 0},
      {"pass", culprit.pass},
      {"kernel", culprit.kernel},
      {"made_up", r.made_up},
      {"graph", print(*r.graph, {.annotations = true, .origins = false, .deletions = false})},
      {"strategies", nlohmann::ordered_json::array()}};
  for (const minify::StrategyRun& s : r.strategies)
    if (s.tries > 0)
      document["strategies"].push_back({{"name", s.name},
                                        {"tries", s.tries},
                                        {"taken", s.successes},
                                        {"calls_before", s.calls_before},
                                        {"calls_after", s.calls_after},
                                        {"seconds", s.seconds}});
  // What a dying child prints need not be UTF-8.
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<MinifyTool> minify_tool(const Artefact& artefact, const MinifyRequest& asked, const std::string& plant,
                               const std::string& program) {
  const bool planted = asked.compiler == kPlanted;
  MinifyCheck check;
  check.check = with_recorded_options(
      fmt::format("{}:{}", asked.check, planted ? default_compiler().name : asked.compiler), artefact);
  if (planted) check.plant = plant;
  TRY(MinifyQuestion question, minify_question(check));
  MinifyTool tool;
  tool.oracle = asked_elsewhere(question, check, program);
  tool.jobs = question.jobs;
  tool.functional = question.functional();
  tool.options = question.options;
  tool.words = repro_text(question, {});
  tool.memory = [question](const minify::Start& start) {
    return remembered_tries(std::make_shared<CodeStore>(), minify_session(start, question));
  };
  if (question.backend->machine)
    tool.culprit = [check, program](const minify::MinifyResult& reduced, const Progress& progress) {
      return culprit_elsewhere(check, program, reduced, &progress);
    };
  tool.report = [](const minify::MinifyResult& reduced, const minify::Culprit& culprit) {
    return minify_report(reduced, culprit);
  };
  return tool;
}

}  // namespace partita
